package pydelta.readers;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Goes to the executors: Spark's factory for a Python source, of a batch or a stream, with columnar readers. */
public class ColumnarReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final PartitionReaderFactory factory;

  ColumnarReaderFactory(PartitionReaderFactory factory) {
    this.factory = factory;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return factory.createReader(partition);
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new ColumnarReader(new PythonStream(factory, partition, TaskContext.get()));
  }
}
