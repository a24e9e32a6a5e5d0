package io.unitycatalog.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.delta.catalog.DeltaCatalog;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * delta-spark as a client of Unity Catalog without the connector of that project, which the registry does not have: delta-spark
 * sends its own requests if the catalog has this class name, and its delegate is in a package of io.unitycatalog.
 */
public class UCSingleCatalog extends DeltaCatalog {
  public void initialize(String name, CaseInsensitiveStringMap options) {
    setDelegateCatalog(new WithoutTables(name));
    super.initialize(name, options);
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map<String, String> properties) {
    var managed = new HashMap<>(properties);
    managed.put("delta.feature.catalogManaged", "supported");
    return super.createTable(ident, schema, partitions, managed);
  }

  /** A catalog of any schemas, in which there is no table. */
  private record WithoutTables(String name) implements TableCatalog, SupportsNamespaces {
    public void initialize(String name, CaseInsensitiveStringMap options) {}

    public Table loadTable(Identifier ident) throws NoSuchTableException {
      throw new NoSuchTableException(ident);
    }

    public Identifier[] listTables(String[] namespace) {
      return new Identifier[0];
    }

    public boolean dropTable(Identifier ident) {
      return false;
    }

    public String[][] listNamespaces() {
      return new String[0][];
    }

    public String[][] listNamespaces(String[] namespace) {
      return new String[0][];
    }

    public Map<String, String> loadNamespaceMetadata(String[] namespace) {
      return new HashMap<>();
    }

    public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map<String, String> properties) {
      throw new UnsupportedOperationException("createTable");
    }

    public Table alterTable(Identifier ident, TableChange... changes) {
      throw new UnsupportedOperationException("alterTable");
    }

    public void renameTable(Identifier from, Identifier to) {
      throw new UnsupportedOperationException("renameTable");
    }

    public void createNamespace(String[] namespace, Map<String, String> metadata) {
      throw new UnsupportedOperationException("createNamespace");
    }

    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
      throw new UnsupportedOperationException("alterNamespace");
    }

    public boolean dropNamespace(String[] namespace, boolean cascade) {
      throw new UnsupportedOperationException("dropNamespace");
    }
  }
}
