package pydelta.pruning;

import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;

/** A scan of partial rows that tells the size of as many rows: there are no more of them, and joins are ordered as over rows. */
class PartialScan extends PrunedScan implements SupportsReportStatistics {
  private final JoinedScan rows;

  PartialScan(PrunedSource source, ScanReaders readers, JoinedScan rows) {
    super(source.request(), source, readers);
    this.rows = rows;
  }

  PrunedScan inRows() {
    return new PartialScan(source(), ScanReaders.ROWS, rows);
  }

  /** Must not fail, as that of the rows. */
  public Statistics estimateStatistics() {
    return ScanStatistics.ofOtherColumns(rows.estimateStatistics(), rows.readSchema(), readSchema());
  }
}
