package pydelta.pruning;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Spark's batch of a Python source, comparable: equal batches let Spark reuse an exchange or a subquery. */
class PrunedBatch implements Batch {
  private final Batch batch;
  private final ScanRequest request;
  private final PrunedSource source;
  private final ScanReaders readers;
  private InputPartition[] partitions = null;
  private PartitionReaderFactory factory = null;

  PrunedBatch(Batch batch, ScanRequest request, PrunedSource source, ScanReaders readers) {
    this.batch = batch;
    this.request = request;
    this.source = source;
    this.readers = readers;
  }

  public InputPartition[] planInputPartitions() {
    prepare();
    return partitions;
  }

  public PartitionReaderFactory createReaderFactory() {
    if (readers.columnar() == null) ColumnarChoice.refuseRepeatedRows();
    prepare();
    return factory;
  }

  /** Both at once: partitions that are for Spark's Parquet reader have a factory that knows of it. */
  private synchronized void prepare() {
    if (factory != null) return;
    InputPartition[] inPython = batch.planInputPartitions();
    PartitionReaderFactory python = batch.createReaderFactory();
    if (readers.columnar() != null) python = (PartitionReaderFactory) readers.columnar().apply(python);
    Object[] prepared = readers.nativeReads() == null ? null : source.natively(readers, inPython, python);
    partitions = prepared == null ? inPython : (InputPartition[]) prepared[0];
    factory = prepared == null ? python : (PartitionReaderFactory) prepared[1];
  }

  public boolean equals(Object object) {
    return object instanceof PrunedBatch && request.equals(((PrunedBatch) object).request);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
