package pydelta.pruning;

import java.util.function.Function;

/** What reads a scan's tasks in columns. Immutable. */
class ScanReaders {
  /** Spark's own reader of Python sources, by rows. */
  static final ScanReaders ROWS = new ScanReaders(null, null);

  private final Function columnar;
  private final Function nativeReads;

  ScanReaders(Function columnar, Function nativeReads) {
    this.columnar = columnar;
    this.nativeReads = nativeReads;
  }

  /** Makes Spark's reader factory columnar; null where Python's batches are read by rows. */
  Function columnar() {
    return columnar;
  }

  /** Has Spark's Parquet reader read simple files; null where Python reads them all. */
  Function nativeReads() {
    return nativeReads;
  }
}
