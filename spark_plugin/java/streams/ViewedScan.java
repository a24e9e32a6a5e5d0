package pydelta.streams;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import pydelta.scan.ScanReaders;
import pydelta.scan.ScanRequest;

/**
 * Spark's scan of a stream in the plan of one batch, next to a StreamView: its columns, and whether they are read as columns,
 * which Spark asks the scan and not the stream. A view equals its stream, so Spark sees only by this scan that the plan has
 * changed.
 */
class ViewedScan extends PythonScan {
  private final ScanRequest request;
  private final ScanReaders readers;

  ViewedScan(ScanRequest request, ScanReaders readers) {
    super(request.source(), request.shortName(), request.schema(), request.options(), new Filter[0]);
    this.request = request;
    this.readers = readers;
  }

  /** For nested columns this is known only when the batch is planned. */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    if (readers.columnar() != null) return Scan.ColumnarSupportMode.SUPPORTED;
    return readers.areOfRows() ? Scan.ColumnarSupportMode.UNSUPPORTED : Scan.ColumnarSupportMode.PARTITION_DEFINED;
  }

  public boolean equals(Object object) {
    if (!(object instanceof ViewedScan other)) return false;
    return request.equals(other.request) && readers.isLike(other.readers);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
