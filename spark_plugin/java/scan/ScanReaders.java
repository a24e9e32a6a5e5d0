package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import pydelta.messages.ReadPlan;
import pydelta.parquet.NativeRequest;
import pydelta.parquet.NativeTasks;
import pydelta.rule.Switch;

/**
 * The readers of a scan's tasks in columns.
 *
 * columnar: makes Spark's reader factory columnar; null if Python's batches are read as rows. nativeReads: lets Spark's Parquet
 * reader read simple files; null if Python reads all files. whyNotColumnar, whyNotNative: null if there is such a reader.
 */
public record ScanReaders(
    UnaryOperator<PartitionReaderFactory> columnar, String whyNotColumnar,
    Function<NativeRequest, NativeTasks> nativeReads, String whyNotNative) {
  public static final String UDFS_NEED_ROWS = "Python UDFs of Spark 4.2 need rows";

  /** Spark's own reader of Python sources, by rows, for scans that were planned with other readers. */
  public static final ScanReaders ROWS = ofRows(UDFS_NEED_ROWS);

  static ScanReaders ofRows(String why) {
    return new ScanReaders(null, why, null, why);
  }

  static ScanReaders ofColumns(UnaryOperator<PartitionReaderFactory> columnar) {
    return new ScanReaders(columnar, null, null, "Python gives partial rows");
  }

  ScanReaders withNative(Function<NativeRequest, NativeTasks> reads) {
    return new ScanReaders(columnar, whyNotColumnar, reads, null);
  }

  ScanReaders withoutNative(String why) {
    return new ScanReaders(columnar, whyNotColumnar, null, why);
  }

  /** Whether Spark's own reader makes rows from everything that is read. */
  public boolean areOfRows() {
    return columnar == null && nativeReads == null;
  }

  /** What a plan request says about the readers, after a comma. */
  public String wish() {
    String columns = columnar == null ? ", \"why_not_columnar\": " + TextNode.valueOf(whyNotColumnar) : ", \"columnar\": true";
    if (nativeReads == null) return columns + ", \"why_not_native\": " + TextNode.valueOf(whyNotNative);
    return columns + ", \"native\": " + (Switch.isPreferred(Switch.PARQUET) ? "\"wherever possible\"" : "\"where quicker\"");
  }

  /** The plan as these readers carry it out: it may have been made for others, before the rule saw the UDFs above the scan. */
  ReadPlan carriedOut(ReadPlan plan) {
    boolean isInColumns = Switch.PARQUET.equals(plan.road()) || Switch.COLUMNS.equals(plan.road());
    return areOfRows() && isInColumns ? plan.by(Switch.ROWS, whyNotColumnar) : plan;
  }

  String roadInPython() {
    return columnar == null ? Switch.ROWS : Switch.COLUMNS;
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
