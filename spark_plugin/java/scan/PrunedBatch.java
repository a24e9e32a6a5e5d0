package pydelta.scan;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Spark's batch of a Python source, with equality: Spark reuses an exchange or a subquery if batches are equal. */
class PrunedBatch implements Batch {
  private final Batch batch;
  private final ScanRequest request;
  private final PrunedSource source;
  private final ScanReaders readers;
  private ScanTasks tasks = null;
  private boolean isUsed = false;

  PrunedBatch(Batch batch, ScanRequest request, PrunedSource source, ScanReaders readers) {
    this.batch = batch;
    this.request = request;
    this.source = source;
    this.readers = readers;
  }

  /**
   * Only this counts as a read. If a join leaves out files, Spark takes the partitions of a smaller scan, and of this one only the
   * factory.
   */
  public synchronized InputPartition[] planInputPartitions() {
    if (!isUsed) source.noteUse(tasks(), readers);
    isUsed = true;
    return tasks().partitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    if (readers.columnar() == null) ColumnarChoice.refuseRepeatedRows();
    return tasks().factory();
  }

  private synchronized ScanTasks tasks() {
    if (tasks == null) {
      InputPartition[] partitions = batch.planInputPartitions();
      tasks = source.tasks(readers, partitions, readers.inPython(batch.createReaderFactory()));
    }
    return tasks;
  }

  public boolean equals(Object object) {
    return object instanceof PrunedBatch other && request.equals(other.request);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
