package pydelta.readers;

import java.nio.ByteOrder;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columnar reader, on the driver: whether the scan of a schema can be read in columns, here and now, and as a Function what makes
 * Spark's reader factory of such a scan columnar.
 */
public class ColumnarReads implements Predicate, Function {
  private static final String LARGE_TYPES_CONF = "spark.sql.execution.arrow.useLargeVarTypes";

  /** Raises if this Spark has not the fields that the reader looks into on the executors. */
  public ColumnarReads() {
    PythonStream.check();
    if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
      throw new UnsupportedOperationException("Arrow's numbers are little-endian, and this machine's are not");
    }
  }

  public boolean test(Object schema) {
    if ("true".equalsIgnoreCase(SQLConf.get().getConfString(LARGE_TYPES_CONF, "false").trim())) return false;
    StructField[] fields = ((StructType) schema).fields();
    for (int i = 0; i < fields.length; i++) {
      if (!HeapVector.covers(fields[i].dataType())) return false;
    }
    return true;
  }

  public Object apply(Object factory) {
    return new ColumnarReaderFactory((PartitionReaderFactory) factory);
  }
}
