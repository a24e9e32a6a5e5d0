package pydelta.scan;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/**
 * The tasks of a scan or of a stream's batch, and the factory that reads them. Both at once: tasks that are for Spark's Parquet
 * reader have a factory that knows of it. Immutable.
 */
public class ScanTasks {
  private final InputPartition[] partitions;
  private final PartitionReaderFactory factory;

  private ScanTasks(InputPartition[] partitions, PartitionReaderFactory factory) {
    this.partitions = partitions;
    this.factory = factory;
  }

  /** messages: of the planning that made the partitions. python: what reads them all in Python. */
  public static ScanTasks of(
      ScanReaders readers, ScanRequest request, PartitionMessages messages, InputPartition[] partitions, PartitionReaderFactory python,
      RuleStatus status) {
    Object[] prepared = readers.nativeReads() == null ? null : natively(readers, request, messages, partitions, python, status);
    if (prepared == null) return new ScanTasks(partitions, python);
    return new ScanTasks((InputPartition[]) prepared[0], (PartitionReaderFactory) prepared[1]);
  }

  public InputPartition[] partitions() {
    return partitions;
  }

  public PartitionReaderFactory factory() {
    return factory;
  }

  /** The partitions and their factory, with Spark's Parquet reader for simple files; null for Python alone. */
  private static Object[] natively(
      ScanReaders readers, ScanRequest request, PartitionMessages messages, InputPartition[] partitions, PartitionReaderFactory python,
      RuleStatus status) {
    try {
      NativeScan files = NativeScan.of(messages, request);
      if (files == null) return null;
      Object[] prepared = files.prepared(readers.nativeReads(), partitions, python, readers.columnar() == null);
      if (prepared != null) status.used(Switch.PARQUET);
      return prepared;
    } catch (Exception error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notNative(error);
    } catch (LinkageError error) {
      status.notNative(error);
    } catch (AssertionError error) {
      status.notNative(error);
    } catch (StackOverflowError error) {
      status.notNative(error);
    }
    return null;
  }
}
