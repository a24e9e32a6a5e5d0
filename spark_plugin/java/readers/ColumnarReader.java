package pydelta.readers;

import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads one partition as batches on Java's heap, which stay valid as long as they are referenced. */
class ColumnarReader implements PartitionReader<ColumnarBatch> {
  private final PythonStream stream;
  private ColumnarBatch batch = null;

  ColumnarReader(PythonStream stream) {
    this.stream = stream;
  }

  public boolean next() {
    batch = null;
    while (batch == null && stream.hasNext()) {
      ColumnarBatch arrow = stream.next();
      if (arrow.numRows() > 0) batch = copied(arrow);
    }
    return batch != null;
  }

  public ColumnarBatch get() {
    return batch;
  }

  public void close() {
    batch = null;
  }

  public CustomTaskMetric[] currentMetricsValues() {
    return stream.metricValues();
  }

  private ColumnarBatch copied(ColumnarBatch arrow) {
    StructType schema = stream.schema();
    checkType(arrow.column(0).dataType(), schema);
    StructVector struct = (StructVector) ((ArrowColumnVector) arrow.column(0)).getValueVector();
    StructField[] fields = schema.fields();
    ColumnVector[] columns = new ColumnVector[fields.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = HeapVector.copyOf(struct.getChildByOrdinal(i), fields[i].dataType(), arrow.numRows());
    }
    return new ColumnarBatch(columns, arrow.numRows());
  }

  private static void checkType(DataType actual, StructType expected) {
    if (!DataType$.MODULE$.equalsIgnoreCompatibleNullability(actual, expected)) {
      throw new IllegalStateException(
          "the source gave a batch of " + actual.catalogString() + " where " + expected.catalogString() + " was asked for");
    }
  }
}
