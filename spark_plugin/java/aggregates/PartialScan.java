package pydelta.aggregates;

import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import pydelta.joins.JoinedScan;
import pydelta.joins.ScanStatistics;
import pydelta.scan.PrunedScan;
import pydelta.scan.PrunedSource;
import pydelta.scan.ScanReaders;

/**
 * A scan of partial rows. It reports the size of a scan of the rows themselves: there are never more partial rows than rows, and
 * so Spark orders joins as it does over rows.
 */
public class PartialScan extends PrunedScan implements SupportsReportStatistics {
  private final JoinedScan rows;

  public PartialScan(PrunedSource source, ScanReaders readers, JoinedScan rows) {
    super(source.request(), source, readers);
    this.rows = rows;
  }

  public PrunedScan inRows() {
    return new PartialScan(source(), ScanReaders.ROWS, rows);
  }

  /** Must not fail, like the estimate for the rows. */
  public Statistics estimateStatistics() {
    return ScanStatistics.ofOtherColumns(rows.estimateStatistics(), rows.readSchema(), readSchema());
  }
}
