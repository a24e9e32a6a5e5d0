package pydelta.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.tables.Columns;
import pydelta.tables.Errors;
import pydelta.tables.Source;

/**
 * A catalog of a Unity Catalog server, which the settings of the session name (options/unity_settings.py). A table's path is its
 * name in the server: main.sales.orders is uc://main.sales.orders. Python sends all requests.
 */
public class UnityCatalog extends PathCatalog implements SupportsNamespaces {
  private static final String UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  public UnityCatalog() {}

  public void initialize(String name, CaseInsensitiveStringMap options) {
    super.initialize(name, new CaseInsensitiveStringMap(Map.of()));
  }

  // ---------------------------------------------------------------- names

  /** Of a table: a name in a schema. */
  String path(Identifier ident) throws NoSuchTableException {
    if (ident.namespace().length != 1) throw new NoSuchTableException(ident);
    return url(name(), ident.namespace()[0], ident.name());
  }

  String called(Identifier ident) {
    var text = new StringBuilder(Columns.quoted(name()));
    for (String part : ident.namespace()) text.append(".").append(Columns.quoted(part));
    return text.append(".").append(Columns.quoted(ident.name())).toString();
  }

  /** As url_of of delta_py/unity/server_urls.py. */
  private static String url(String... parts) {
    var url = new StringBuilder("uc://");
    for (int i = 0; i < parts.length; i++) {
      if (i > 0) url.append('.');
      for (byte letter : parts[i].getBytes(StandardCharsets.UTF_8)) {
        if (UNRESERVED.indexOf(letter) >= 0) url.append((char) letter);
        else url.append(String.format("%%%02X", letter & 0xff));
      }
    }
    return url.toString();
  }

  boolean makes(String provider) {
    return super.makes(provider) || provider.equalsIgnoreCase("delta");
  }

  /** Of an external table; the catalog chooses where a managed one is. As delta_py/unity/external_tables.py. */
  Map<String, String> locationOption(String path, String location) {
    return location == null ? Map.of() : Map.of("unity.location", location);
  }

  // ---------------------------------------------------------------- tables

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return orMissing(ident, () -> super.loadTable(ident));
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return orMissing(ident, () -> super.loadTable(ident, version));
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    return orMissing(ident, () -> super.loadTable(ident, micros));
  }

  private interface Load {
    Table table() throws NoSuchTableException;
  }

  private static Table orMissing(Identifier ident, Load load) throws NoSuchTableException {
    try {
      return load.table();
    } catch (Exception error) {  // Scala throws the checked AnalysisException undeclared
      if (Errors.isMissingInCatalog(error)) throw new NoSuchTableException(ident);
      throw Errors.unchecked(error);
    }
  }

  /** Asks the server alone: a table whose files cannot be read is a table, and may be dropped. */
  public boolean tableExists(Identifier ident) {
    if (ident.namespace().length != 1) return false;
    return !names("table", url(name(), ident.namespace()[0], ident.name())).isEmpty();
  }

  public Identifier[] listTables(String[] namespace) {
    String schema = schema(namespace);
    return texts(names("names", url(name(), schema)))
        .map(table -> Identifier.of(namespace, table)).toArray(Identifier[]::new);
  }

  public boolean dropTable(Identifier ident) {
    if (!tableExists(ident)) return false;
    Source.command(Errors.undeclared(() -> path(ident)), "dropTable", object());
    return true;
  }

  public void renameTable(Identifier from, Identifier to) {
    if (!Arrays.equals(from.namespace(), to.namespace())) {
      throw Errors.unsupported(called(from) + " cannot be moved to another schema: Unity Catalog renames tables within their "
          + "schema. Nothing was changed.");
    }
    Source.command(Errors.undeclared(() -> path(from)), "renameTable", object().put("new_name", to.name()));
  }

  // ---------------------------------------------------------------- schemas

  public String[][] listNamespaces() {
    return texts(names("names", url(name()))).map(schema -> new String[] {schema}).toArray(String[][]::new);
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) return listNamespaces();
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return new String[0][];
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 1 && !names("schema", url(name(), namespace[0])).isEmpty();
  }

  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return new HashMap<>();
  }

  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    String schema = schema(namespace);
    if (metadata.containsKey("location")) {
      throw Errors.unsupported("The server chooses where the tables of " + name() + "." + schema + " are; nothing was created. "
          + "Leave LOCATION out.");
    }
    Source.command(url(name(), schema), "createSchema", object().put("comment", metadata.get("comment")));
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw Errors.unsupported("Unity Catalog's API for Delta tables does not change schemas; nothing was changed in " + name()
        + "." + schema(namespace) + ".");
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    if (!namespaceExists(namespace)) return false;
    Source.command(url(name(), schema(namespace)), "dropSchema", object().put("with_tables", cascade));
    return true;
  }

  private String schema(String[] namespace) {
    if (namespace.length == 1) return namespace[0];
    throw Errors.of("InvalidOptionError", "REQUIRES_SINGLE_PART_NAMESPACE", "The catalog " + name() + " has schemas of one name, "
        + "and not " + String.join(".", namespace) + ".");
  }

  // ---------------------------------------------------------------- requests

  private static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  /** view: as in source/catalog_views.py. */
  private static JsonNode names(String view, String url) {
    return Source.catalogNames(url, view);
  }

  private static Stream<String> texts(JsonNode names) {
    return StreamSupport.stream(names.spliterator(), false).map(JsonNode::asText);
  }
}
