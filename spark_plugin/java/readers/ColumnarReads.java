package pydelta.readers;

import java.nio.ByteOrder;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The door to the columnar reader, on the driver. As a Predicate it says of a StructType whether its scan can be read in
 * columns, here and now; as a Function it makes Spark's reader factory of such a scan columnar. JDK interfaces, because the
 * caller is compiled apart from this.
 *
 * Written for Janino: no lambdas, raw types where Spark's are generic.
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
