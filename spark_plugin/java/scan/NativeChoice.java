package pydelta.scan;

import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.parquet.NativeReads;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/** Whether Spark's own Parquet reader reads the simple files of scans. Otherwise Python reads them. */
public class NativeChoice {
  private final RuleStatus status;

  NativeChoice(RuleStatus status) {
    this.status = status;
  }

  /** Adds the native reader, or the reason why the session has none. */
  ScanReaders addedTo(ScanReaders readers) {
    String why = whyNot();
    if (why != null) return readers.withoutNative(why);
    try {
      return ExecutorJar.isOutOfReach()
          ? readers.withoutNative(ExecutorJar.OUT_OF_REACH) : readers.withNative(ExecutorJar.reader(NativeReads.class));
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notNative(error);
      return readers.withoutNative("Spark's Parquet reader cannot be loaded: " + error);
    }
  }

  /**
   * Why settings of the session rule it out, for example because Spark's reader would read other values than the source; null if
   * they do not.
   */
  private static String whyNot() {
    SQLConf conf = SQLConf.get();
    boolean isEnabled = Switch.isOn(Switch.PARQUET) && ColumnarChoice.isEnabled();
    if (!isEnabled) return "a setting of the session disables Spark's Parquet reader";
    if (!conf.parquetVectorizedReaderEnabled()) return "spark.sql.parquet.enableVectorizedReader is false";
    if (conf.caseSensitiveAnalysis()) return "spark.sql.caseSensitive is true";
    return conf.isParquetINT96TimestampConversion() ? "spark.sql.parquet.int96TimestampConversion is true" : null;
  }

  /** Whether only Spark's Parquet reader can read the columns as columns: Python returns such scans as rows. */
  static boolean isNested(StructType schema) {
    for (StructField field : schema.fields()) {
      DataType type = field.dataType();
      if (type instanceof StructType || type instanceof ArrayType || type instanceof MapType) return true;
    }
    return false;
  }
}
