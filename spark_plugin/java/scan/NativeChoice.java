package pydelta.scan;

import java.util.Locale;
import java.util.function.Function;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import pydelta.parquet.NativeReads;
import pydelta.rule.RuleStatus;

/** Whether simple files of scans are read by Spark's own Parquet reader. Otherwise they are read in Python. */
public class NativeChoice {
  /** true, false, or auto: where it is likely quicker than Python, as native_files.py says. */
  public static final String ENABLED_CONF = "spark.pydelta.nativeReader.enabled";
  private static final String USUAL = "auto";

  private final RuleStatus status;

  NativeChoice(RuleStatus status) {
    this.status = status;
  }

  /** The native reader's door; null where it is not to be used, or cannot be had. */
  Function reads() {
    if (!isWanted()) return null;
    try {
      return ExecutorJar.isOutOfReach() ? null : (Function) ExecutorJar.reader(NativeReads.class);
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notNative(error);
      return null;
    }
  }

  /** What a planning is asked for beside files, with a comma before it. */
  public static String wish() {
    if (!isWanted()) return "";
    return ", \"native\": " + (said().equals("auto") ? "\"where quicker\"" : "\"wherever possible\"");
  }

  /** Where settings of the session have Spark's Parquet reader read otherwise than the source does, it is not used. */
  private static boolean isWanted() {
    SQLConf conf = SQLConf.get();
    return (said().equals("true") || said().equals("auto"))
        && ColumnarChoice.isEnabled()
        && conf.parquetVectorizedReaderEnabled()
        && !conf.caseSensitiveAnalysis()
        && !conf.isParquetINT96TimestampConversion();
  }

  private static String said() {
    return SQLConf.get().getConfString(ENABLED_CONF, USUAL).trim().toLowerCase(Locale.ROOT);
  }

  /** Whether columns can come of Spark's Parquet reader alone: Python gives such scans by rows. */
  static boolean isNested(StructType schema) {
    for (int i = 0; i < schema.fields().length; i++) {
      DataType type = schema.fields()[i].dataType();
      if (type instanceof StructType || type instanceof ArrayType || type instanceof MapType) return true;
    }
    return false;
  }
}
