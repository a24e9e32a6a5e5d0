package pydelta.pruning;

import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** Whether scans are read in columns, and by what. Without an offer they are read by rows. */
class ColumnarChoice {
  static final String ENABLED_CONF = "spark.pydelta.columnarReader.enabled";

  private static final String MAX_ROWS_CONF = "spark.sql.execution.arrow.maxRecordsPerOutputBatch";

  private final RuleStatus status;
  private final NativeChoice natively;
  private volatile byte[] archive = null;

  ColumnarChoice(RuleStatus status) {
    this.status = status;
    this.natively = new NativeChoice(status);
  }

  /** The columnar reader: a zip of its sources, or of its class files. */
  void offer(byte[] archive) {
    this.archive = archive;
  }

  /** The native reader, in the same form. */
  void offerNative(byte[] archive) {
    natively.offer(archive);
  }

  /** What reads a scan of such rows. */
  ScanReaders readersFor(StructType schema) {
    Function columnar = columnarFor(schema);
    boolean mayBeNative = columnar != null || NativeChoice.isNested(schema);
    Function reads = mayBeNative ? natively.reads() : null;
    return columnar == null && reads == null ? ScanReaders.ROWS : new ScanReaders(columnar, reads);
  }

  /** What makes Spark's reader factory for such rows columnar; null where Spark's own reader is to be used. */
  Function columnarFor(StructType schema) {
    if (!isEnabled() || archive == null) return null;
    try {
      if (ExecutorUnit.isOutOfReach()) return null;
      Object unit = ExecutorUnit.door(ExecutorUnit.COLUMNAR, archive);
      if (!((Predicate) unit).test(schema)) return null;
      status.columnar();
      return (Function) unit;
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notColumnar(error);
      return null;
    }
  }

  /**
   * Raises where Spark's own reader would give rows more than once: Spark 4.1 and 4.2, where they are told to cut batches of more
   * than a number of rows, give the whole batch as the last cut.
   */
  static void refuseRepeatedRows() {
    String most = SQLConf.get().getConfString(MAX_ROWS_CONF, "-1").trim();
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    boolean repeats = version.startsWith("4.1.") || version.startsWith("4.2.");
    if (!repeats || Integer.parseInt(most) <= 0) return;
    throw new UnsupportedOperationException(
        "Spark " + version + " gives rows of a Python data source more than once where " + MAX_ROWS_CONF + " is set, and here it is " + most
            + ". Set it to -1, which is Spark's default, or use Spark 4.3.");
  }

  static boolean isEnabled() {
    return Switch.isOn(ENABLED_CONF);
  }
}
