package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import pydelta.parquet.NativeRequest;
import pydelta.parquet.NativeTasks;

/**
 * The readers of a scan's tasks in columns.
 *
 * columnar: makes Spark's reader factory columnar; null if Python's batches are read as rows. nativeReads: lets Spark's Parquet
 * reader read simple files; null if Python reads all files. whyNotColumnar: the reason if `columnar` is null.
 */
public record ScanReaders(
    UnaryOperator<PartitionReaderFactory> columnar, Function<NativeRequest, NativeTasks> nativeReads, String whyNotColumnar) {
  /** Spark's own reader of Python sources, by rows. */
  public static final ScanReaders ROWS = new ScanReaders(null, null, "the rule does not read this scan in columns");

  /** Whether Spark's own reader makes rows from everything that is read. */
  public boolean areOfRows() {
    return columnar == null && nativeReads == null;
  }

  /** What a plan request says about the readers, after a comma. */
  public String wish() {
    String columns = columnar == null ? ", \"why_not_columnar\": " + TextNode.valueOf(whyNotColumnar) : ", \"columnar\": true";
    return columns + NativeChoice.wish(nativeReads);
  }

  /** Whether the same readers return the rows. */
  public boolean isLike(ScanReaders other) {
    return (columnar == null) == (other.columnar == null) && (nativeReads == null) == (other.nativeReads == null);
  }

  /** The factory that reads all tasks in Python. factory: Spark's own. */
  public PartitionReaderFactory inPython(PartitionReaderFactory factory) {
    return columnar == null ? factory : columnar.apply(factory);
  }
}
