package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.function.Function;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.parquet.NativeReads;
import pydelta.parquet.NativeRequest;
import pydelta.parquet.NativeTasks;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/** Whether Spark's own Parquet reader reads the simple files of scans. Otherwise Python reads them. */
public class NativeChoice {
  private final RuleStatus status;

  NativeChoice(RuleStatus status) {
    this.status = status;
  }

  /** The native reader; null if it is off or not available. */
  Function<NativeRequest, NativeTasks> reads() {
    if (whyNot() != null) return null;
    try {
      return ExecutorJar.isOutOfReach() ? null : ExecutorJar.reader(NativeReads.class);
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notNative(error);
      return null;
    }
  }

  /** What a plan request asks for besides files, after a comma. reads: null if the reader is not available. */
  public static String wish(Function<NativeRequest, NativeTasks> reads) {
    String why = whyNot();
    if (why == null && reads == null) why = "Spark's Parquet reader does not read such a scan in this session";
    if (why != null) return ", \"why_not_native\": " + TextNode.valueOf(why);
    return ", \"native\": " + (Switch.isPreferred(Switch.PARQUET) ? "\"wherever possible\"" : "\"where quicker\"");
  }

  /**
   * Why this session does not use it, for example because a setting makes it read differently from the source; null if it uses
   * it.
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
