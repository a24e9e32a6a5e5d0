package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import pydelta.parquet.NativeRequest;
import pydelta.parquet.NativeTasks;

/**
 * What reads a scan's tasks in columns.
 *
 * columnar: makes Spark's reader factory columnar; null where Python's batches are read by rows. nativeReads: has Spark's Parquet
 * reader read simple files; null where Python reads them all. whyNotColumnar: where `columnar` is null.
 */
public record ScanReaders(
    UnaryOperator<PartitionReaderFactory> columnar, Function<NativeRequest, NativeTasks> nativeReads, String whyNotColumnar) {
  /** Spark's own reader of Python sources, by rows. */
  public static final ScanReaders ROWS = new ScanReaders(null, null, "the rule does not read this scan in columns");

  /** Whether Spark's own reader makes rows of all that is read. */
  public boolean areOfRows() {
    return columnar == null && nativeReads == null;
  }

  /** What a planning is told of the readers, with a comma before it. */
  public String wish() {
    String columns = columnar == null ? ", \"why_not_columnar\": " + TextNode.valueOf(whyNotColumnar) : ", \"columnar\": true";
    return columns + NativeChoice.wish(nativeReads);
  }

  /** Whether rows come of the same readers. */
  public boolean isLike(ScanReaders other) {
    return (columnar == null) == (other.columnar == null) && (nativeReads == null) == (other.nativeReads == null);
  }

  /** What reads all tasks in Python. factory: Spark's own. */
  public PartitionReaderFactory inPython(PartitionReaderFactory factory) {
    return columnar == null ? factory : columnar.apply(factory);
  }
}
