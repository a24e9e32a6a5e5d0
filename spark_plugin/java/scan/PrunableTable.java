package pydelta.scan;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.RuleStatus;

/** Spark's table of a Python source, with a scan builder that can prune. */
public class PrunableTable implements Table, SupportsRead {
  private final Table table;
  private final ScanRequest everything;
  private final RuleStatus status;
  private final ColumnarChoice batches;
  private final int mostLimitedRows;

  public PrunableTable(Table table, ScanRequest everything, RuleStatus status, ColumnarChoice batches, int mostLimitedRows) {
    this.table = table;
    this.everything = everything;
    this.status = status;
    this.batches = batches;
    this.mostLimitedRows = mostLimitedRows;
  }

  public String name() {
    return table.name();
  }

  @Deprecated
  public StructType schema() {
    return table.schema();
  }

  public Column[] columns() {
    return table.columns();
  }

  public Map<String, String> properties() {
    return table.properties();
  }

  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  /** The options are those of the relation, which the reopened scan already had. */
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PrunedScanBuilder(everything, status, batches, mostLimitedRows);
  }
}
