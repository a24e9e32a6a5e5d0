package pydelta.sql_catalog;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * Spark's session catalog. Tables of ours are opened where their entries say that they are, at the version that a statement names;
 * their columns are the log's. Everything else is what Spark's own catalog gives.
 */
public class SessionTables extends DelegatingCatalogExtension {
  public SessionTables() {}

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Table found = super.loadTable(ident);
    return Entry.isOurs(found) ? Entry.of(ident, found).open(null, null) : BuiltIn.resolved(this, ident, found);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    Table found = super.loadTable(ident);
    return Entry.isOurs(found) ? Entry.of(ident, found).open("versionAsOf", version) : super.loadTable(ident, version);
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    Table found = super.loadTable(ident);
    return Entry.isOurs(found) ? Entry.of(ident, found).open("timestampAsOf", Travel.text(micros)) : super.loadTable(ident, micros);
  }

  /** As Spark's own catalog has it: where it takes the source's provider itself. */
  Table asEntered(Identifier ident) throws NoSuchTableException {
    return super.loadTable(ident);
  }

  /** Of ours only the location changes here, which is the entry's alone. All else is the table's, and would be done by half. */
  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    if (Entry.isOurs(super.loadTable(ident))) {
      for (int i = 0; i < changes.length; i++) {
        boolean ofEntry = changes[i] instanceof TableChange.SetProperty
            && "location".equals(((TableChange.SetProperty) changes[i]).property());
        if (!ofEntry) {
          throw Errors.unsupported("ALTER TABLE of " + Entry.called(name(), ident)
              + " is not carried out by Spark's catalogs; nothing was changed. Use the methods of DeltaTable.forName.");
        }
      }
    }
    return super.alterTable(ident, changes);
  }
}
