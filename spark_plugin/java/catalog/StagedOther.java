package pydelta.catalog;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A table of another source. It is entered before its rows are written, as Spark does in catalogs that stage nothing. */
class StagedOther implements StagedTable, SupportsWrite {
  private final Table table;
  private final Runnable dropping;

  /** dropping: what to do if the rows cannot be written. */
  StagedOther(Table table, Runnable dropping) {
    this.table = table;
    this.dropping = dropping;
  }

  public String name() {
    return table.name();
  }

  public Column[] columns() {
    return table.columns();
  }

  public Transform[] partitioning() {
    return table.partitioning();
  }

  public Map<String, String> properties() {
    return table.properties();
  }

  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return ((SupportsWrite) table).newWriteBuilder(info);
  }

  public void commitStagedChanges() {}

  public void abortStagedChanges() {
    dropping.run();
  }
}
