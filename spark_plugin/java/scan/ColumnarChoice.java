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
  private final boolean mayBeColumnar;

  /** mayBeColumnar: false for scans that are read as rows, whatever the settings say. */
  public ColumnarChoice(RuleStatus status, boolean mayBeColumnar) {
    this.status = status;
    this.natively = new NativeChoice(status);
    this.mayBeColumnar = mayBeColumnar;
  }

  /** The readers for a scan of such rows. */
  public ScanReaders readersFor(StructType schema) {
    ScanReaders readers = pythonReadersFor(schema);
    boolean mayBeNative = mayBeColumnar && (readers.columnar() != null || NativeChoice.isNested(schema));
    return mayBeNative ? natively.addedTo(readers) : readers;
  }

  /** The same without Spark's Parquet reader. */
  public ScanReaders pythonReadersFor(StructType schema) {
    if (!mayBeColumnar) return ScanReaders.ofRows(ScanReaders.UDFS_NEED_ROWS);
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
