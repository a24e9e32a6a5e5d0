package pydelta.pruning;

import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;

/** A scan of partial rows that tells the size of the rows: there are no more of the others, and joins are ordered as over rows. */
class PartialScan extends PrunedScan implements SupportsReportStatistics {
  private final Statistics ofRows;

  PartialScan(PrunedSource source, ScanReaders readers, Statistics ofRows) {
    super(source.request(), source, readers);
    this.ofRows = ofRows;
  }

  PrunedScan inRows() {
    return new PartialScan(source(), ScanReaders.ROWS, ofRows);
  }

  public Statistics estimateStatistics() {
    return ofRows;
  }
}
