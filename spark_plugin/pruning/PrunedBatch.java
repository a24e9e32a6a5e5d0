package pydelta.pruning;

import java.util.function.Function;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Spark's batch of a Python source, comparable: equal batches let Spark reuse an exchange or a subquery. */
class PrunedBatch implements Batch {
  private final Batch batch;
  private final ScanRequest request;
  private final Function columnar;

  PrunedBatch(Batch batch, ScanRequest request, Function columnar) {
    this.batch = batch;
    this.request = request;
    this.columnar = columnar;
  }

  public InputPartition[] planInputPartitions() {
    return batch.planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory factory = batch.createReaderFactory();
    if (columnar != null) return (PartitionReaderFactory) columnar.apply(factory);
    ColumnarChoice.refuseRepeatedRows();
    return factory;
  }

  public boolean equals(Object object) {
    return object instanceof PrunedBatch && request.equals(((PrunedBatch) object).request);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
