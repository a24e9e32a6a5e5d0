package pydelta.scan;

import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import pydelta.readers.ColumnarReads;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/** Whether scans are read in columns, and which readers do it. Without the rule's readers they are read as rows. */
public class ColumnarChoice {
  private static final String MAX_ROWS_CONF = "spark.sql.execution.arrow.maxRecordsPerOutputBatch";

  private final RuleStatus status;
  private final NativeChoice natively;
  private final String whyNotColumnar;
  private final String whyNotParquet;

  public ColumnarChoice(RuleStatus status) {
    this(status, null, null);
  }

  /** Why these scans are read as rows, and why Spark's Parquet reader reads none, whatever the settings say; null if they may. */
  private ColumnarChoice(RuleStatus status, String whyNotColumnar, String whyNotParquet) {
    this.status = status;
    this.natively = new NativeChoice(status);
    this.whyNotColumnar = whyNotColumnar;
    this.whyNotParquet = whyNotParquet;
  }

  /** The same choice for scans that are read as rows. */
  public ColumnarChoice inRows(String why) {
    return new ColumnarChoice(status, why, why);
  }

  /** The same choice for scans that Spark's Parquet reader must not read. */
  public ColumnarChoice withoutParquet(String why) {
    return new ColumnarChoice(status, whyNotColumnar, why);
  }

  /** The readers for a scan of such rows. */
  public ScanReaders readersFor(StructType schema) {
    ScanReaders readers = pythonReadersFor(schema);
    if (whyNotParquet != null) return readers.withoutNative(whyNotParquet);
    boolean mayBeNative = readers.columnar() != null || NativeChoice.isNested(schema);
    return mayBeNative ? natively.addedTo(readers) : readers;
  }

  /** The same without Spark's Parquet reader. */
  public ScanReaders pythonReadersFor(StructType schema) {
    if (whyNotColumnar != null) return ScanReaders.ofRows(whyNotColumnar);
    if (!isEnabled()) return ScanReaders.ofRows("a setting of the session disables columns");
    try {
      if (ExecutorJar.isOutOfReach()) return ScanReaders.ofRows(ExecutorJar.OUT_OF_REACH);
      ColumnarReads reads = ExecutorJar.reader(ColumnarReads.class);
      return reads.test(schema) ? ScanReaders.ofColumns(reads) : ScanReaders.ofRows("Spark gets no columns of these types from Python");
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notColumnar(error);
      return ScanReaders.ofRows("the columnar reader cannot be loaded: " + error);
    }
  }

  /**
   * Raises if Spark's own reader would return rows more than once: if a setting limits the rows of a batch, Spark 4.1 and 4.2
   * return the whole batch as the last cut.
   */
  public static void refuseRepeatedRows() {
    if (!repeatsRows()) return;
    String most = mostRowsOfBatches();
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    throw new UnsupportedOperationException(
        "Spark " + version + " gives rows of a Python data source more than once where " + MAX_ROWS_CONF + " is set, and here it "
            + "is " + most + ". Set it to -1, which is Spark's default, or use Spark 4.3.");
  }

  /** Whether Spark's own reader of Python sources returns rows more than once in this session. */
  public static boolean repeatsRows() {
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    boolean isRepeatingVersion = version.startsWith("4.1.") || version.startsWith("4.2.");
    return isRepeatingVersion && Integer.parseInt(mostRowsOfBatches()) > 0;
  }

  private static String mostRowsOfBatches() {
    return SQLConf.get().getConfString(MAX_ROWS_CONF, "-1").trim();
  }

  static boolean isEnabled() {
    return Switch.isOn(Switch.COLUMNS);
  }
}
