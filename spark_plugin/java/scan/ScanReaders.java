package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.function.Function;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** What reads a scan's tasks in columns. Immutable. */
public class ScanReaders {
  /** Spark's own reader of Python sources, by rows. */
  public static final ScanReaders ROWS = new ScanReaders(null, null, "the rule does not read this scan in columns");

  private final Function columnar;
  private final Function nativeReads;
  private final String whyNotColumnar;

  /** whyNotColumnar: where `columnar` is null. */
  public ScanReaders(Function columnar, Function nativeReads, String whyNotColumnar) {
    this.columnar = columnar;
    this.nativeReads = nativeReads;
    this.whyNotColumnar = whyNotColumnar;
  }

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
