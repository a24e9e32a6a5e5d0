package pydelta.parquet;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Python's rows as columns, for a scan of nested columns in which Spark's own reader returns other files as columns. */
class RowsAsColumns implements PartitionReader<ColumnarBatch> {
  private static final int MOST_ROWS = 4096;

  private final PartitionReader<InternalRow> rows;
  private final StructType schema;
  private final RowToColumnConverter converter;
  private ColumnarBatch batch = null;

  RowsAsColumns(PartitionReader<InternalRow> rows, StructType schema) {
    this.rows = rows;
    this.schema = schema;
    this.converter = new RowToColumnConverter(schema);
  }

  /** Each batch has new vectors, so a caller may keep a batch. */
  public boolean next() throws IOException {
    OnHeapColumnVector[] vectors = OnHeapColumnVector.allocateColumns(MOST_ROWS, schema);
    int count = 0;
    while (count < MOST_ROWS && rows.next()) {
      converter.convert(rows.get(), vectors);
      count++;
    }
    batch = new ColumnarBatch(vectors, count);
    return count > 0;
  }

  public ColumnarBatch get() {
    return batch;
  }

  public void close() throws IOException {
    batch = null;
    rows.close();
  }

  public CustomTaskMetric[] currentMetricsValues() {
    return rows.currentMetricsValues();
  }
}
