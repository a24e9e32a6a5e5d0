package pydelta.scan;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.ReopenScans;
import pydelta.rule.RuleStatus;

/**
 * Builds Spark's own scan over all columns. For a query that needs the metadata column, it builds a scan that has this column as
 * the last.
 */
public class MetadataScanBuilder implements SupportsPushDownRequiredColumns {
  private final ScanBuilder whole;
  private final StructField column;
  private final RuleStatus status;
  private boolean wanted = false;

  public MetadataScanBuilder(ScanBuilder whole, StructField column, RuleStatus status) {
    this.whole = whole;
    this.column = column;
    this.status = status;
  }

  /** All other required columns are there in any case: only the optimizer rule leaves columns out. */
  public void pruneColumns(StructType required) {
    wanted = required.getFieldIndex(column.name()).isDefined();
  }

  public Scan build() {
    PythonScan scan = (PythonScan) whole.build();
    return wanted ? new MetadataScan(ReopenScans.everything(scan).with(column), status) : scan;
  }
}
