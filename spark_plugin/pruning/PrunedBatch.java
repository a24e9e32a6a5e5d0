package pydelta.pruning;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Spark's batch of a Python source, comparable: equal batches let Spark reuse an exchange or a subquery. */
class PrunedBatch implements Batch {
  private final Batch batch;
  private final ScanRequest request;

  PrunedBatch(Batch batch, ScanRequest request) {
    this.batch = batch;
    this.request = request;
  }

  public InputPartition[] planInputPartitions() {
    return batch.planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    return batch.createReaderFactory();
  }

  public boolean equals(Object object) {
    return object instanceof PrunedBatch && request.equals(((PrunedBatch) object).request);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
