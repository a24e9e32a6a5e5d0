package pydelta.readers;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Goes to the executors: Spark's factory for a batch or a stream of a Python source, with columnar readers. */
record ColumnarReaderFactory(PartitionReaderFactory factory) implements PartitionReaderFactory {
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return factory.createReader(partition);
  }

  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new ColumnarReader(new PythonStream(factory, partition, TaskContext.get()));
  }
}
