package pydelta.columnar;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;

/** Goes to the executors: Spark's factory for a Python source, with columnar readers. */
public class ColumnarReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final PythonPartitionReaderFactory factory;

  ColumnarReaderFactory(PythonPartitionReaderFactory factory) {
    this.factory = factory;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return factory.createReader(partition);
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new ColumnarReader(new PythonStream(factory, (PythonInputPartition) partition, TaskContext.get()));
  }
}
