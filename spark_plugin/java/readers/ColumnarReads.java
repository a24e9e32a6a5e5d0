package pydelta.readers;

import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * The columnar reader, on the driver. It tests whether the scan of a schema can be read in columns in this session, and makes
 * Spark's reader factory of such a scan columnar.
 */
public class ColumnarReads implements Predicate<StructType>, UnaryOperator<PartitionReaderFactory> {
  private static final String LARGE_TYPES_CONF = "spark.sql.execution.arrow.useLargeVarTypes";

  /** Raises if this Spark lacks fields that the reader uses on the executors. */
  public ColumnarReads() {
    PythonStream.check();
    if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
      throw new UnsupportedOperationException("Arrow's numbers are little-endian, and this machine's are not");
    }
  }

  public boolean test(StructType schema) {
    if ("true".equalsIgnoreCase(SQLConf.get().getConfString(LARGE_TYPES_CONF, "false").trim())) return false;
    return Arrays.stream(schema.fields()).allMatch(field -> HeapVector.covers(field.dataType()));
  }

  public PartitionReaderFactory apply(PartitionReaderFactory factory) {
    return new ColumnarReaderFactory(factory);
  }
}
