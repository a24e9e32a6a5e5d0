package pydelta.scan;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import pydelta.messages.PartitionMessages;
import pydelta.messages.ReadPlan;
import pydelta.parquet.NativeRequest;
import pydelta.parquet.NativeTasks;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/**
 * The tasks of a scan or of a stream's batch, and the factory that reads them. They belong together: only the factory of these
 * tasks knows which ones Spark's Parquet reader reads.
 *
 * plan: as the tasks carry it out. road: the one that `status(spark)` counts; null if it is counted elsewhere.
 */
public record ScanTasks(InputPartition[] partitions, PartitionReaderFactory factory, ReadPlan plan, String road) {

  /** messages: of the plan that made the partitions. python: the factory that reads all of them in Python. */
  public static ScanTasks of(
      ScanReaders readers, ScanRequest request, PartitionMessages messages, InputPartition[] partitions,
      PartitionReaderFactory python, RuleStatus status) {
    ReadPlan plan = readers.carriedOut(messages.readPlan());
    NativeTasks tasks = readers.nativeReads() == null ? null : natively(readers, request, messages, partitions, python, status);
    if (tasks != null) return new ScanTasks(tasks.partitions(), tasks.factory(), plan, Switch.PARQUET);
    if (Switch.PARQUET.equals(plan.road())) plan = plan.by(readers.roadInPython(), "Spark's Parquet reader failed to prepare the scan");
    return new ScanTasks(partitions, python, plan, request.isPartial() ? null : readers.roadInPython());
  }

  /** Spark has taken the partitions. */
  public void noteUse(RuleStatus status) {
    if (road != null) status.used(road);
  }

  /** The partitions and their factory, with Spark's Parquet reader for simple files; null if Python reads all of them. */
  private static NativeTasks natively(
      ScanReaders readers, ScanRequest request, PartitionMessages messages, InputPartition[] partitions,
      PartitionReaderFactory python, RuleStatus status) {
    try {
      NativeScan scan = NativeScan.of(messages, request);
      NativeRequest nativeRequest = scan == null ? null : scan.request(partitions, python, readers.columnar() == null);
      return nativeRequest == null ? null : readers.nativeReads().apply(nativeRequest);
    } catch (Exception | LinkageError | AssertionError | StackOverflowError error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notNative(error);
      return null;
    }
  }
}
