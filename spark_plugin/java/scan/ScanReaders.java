package pydelta.scan;

import java.util.function.Function;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** What reads a scan's tasks in columns. Immutable. */
public class ScanReaders {
  /** Spark's own reader of Python sources, by rows. */
  public static final ScanReaders ROWS = new ScanReaders(null, null);

  private final Function columnar;
  private final Function nativeReads;

  public ScanReaders(Function columnar, Function nativeReads) {
    this.columnar = columnar;
    this.nativeReads = nativeReads;
  }

  /** Whether rows come of the same readers. */
  public boolean isLike(ScanReaders other) {
    return (columnar == null) == (other.columnar == null) && (nativeReads == null) == (other.nativeReads == null);
  }

  /** Makes Spark's reader factory columnar; null where Python's batches are read by rows. */
  public Function columnar() {
    return columnar;
  }

  /** What reads all tasks in Python. factory: Spark's own. */
  public PartitionReaderFactory inPython(PartitionReaderFactory factory) {
    return columnar == null ? factory : (PartitionReaderFactory) columnar.apply(factory);
  }

  /** Has Spark's Parquet reader read simple files; null where Python reads them all. */
  public Function nativeReads() {
    return nativeReads;
  }
}
