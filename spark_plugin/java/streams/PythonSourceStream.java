package pydelta.streams;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.types.StructType;
import pydelta.driver.DriverChoice;
import pydelta.rule.ReopenScans;
import pydelta.rule.RuleStatus;
import pydelta.scan.ColumnarChoice;
import pydelta.messages.PredicateJson;
import pydelta.scan.ScanReaders;
import pydelta.scan.ScanRequest;
import scala.Option;

/**
 * A stream of a Python source, with limits for its batches, which Spark's own stream has since 4.2. StreamScans puts a StreamView
 * of it into the plan of each batch. Spark counts the rows of a batch by the stream of its scan, so a stream equals its views.
 */
class PythonSourceStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private static final String ALL = "{\"_type\": \"ReadAllAvailable\"}";

  private final ScanRequest request;
  private final StreamRunner runner;
  private final RuleStatus status;

  /** The function that reads some columns, pickled, by the schema of these columns. */
  private final Map<StructType, byte[]> functions = new HashMap<>();

  /** The views of one batch. */
  private final Map<ViewKey, StreamView> views = new HashMap<>();

  private Batch viewedBatch = null;

  private record ViewKey(ScanRequest request, boolean isByRows) {}

  private record Batch(Offset start, Offset end) {}

  PythonSourceStream(ScanRequest request, StreamRunner runner, RuleStatus status) {
    this.request = request;
    this.runner = runner;
    this.status = status;
  }

  public Offset initialOffset() {
    return new PythonStreamingSourceOffset(runner.initialOffset());
  }

  /** Spark does not call this for a stream with limits. */
  public Offset latestOffset() {
    throw new UnsupportedOperationException("a stream with limits is asked with a start and a limit");
  }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    String limitJson = limit instanceof ReadAllAvailable ? ALL : ((Limit) limit).json();
    return new PythonStreamingSourceOffset(runner.latestOffset(start.json(), limitJson));
  }

  public ReadLimit getDefaultReadLimit() {
    return new Limit(runner.getDefaultReadLimit());
  }

  public void prepareForTriggerAvailableNow() {
    runner.prepareForTriggerAvailableNow();
  }

  /** Null if nothing was read yet. */
  public Offset reportLatestOffset() {
    String place = runner.reportLatestOffset();
    return place == null ? null : new PythonStreamingSourceOffset(place);
  }

  public Offset deserializeOffset(String json) {
    return new PythonStreamingSourceOffset(json);
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    byte[][] pickled = runner.partitions(start.json(), end.json())._1();
    InputPartition[] partitions = new InputPartition[pickled.length];
    for (int i = 0; i < pickled.length; i++) partitions[i] = new PythonStreamingInputPartition(i, pickled[i], Option.empty());
    return partitions;
  }

  public void commit(Offset end) {
    runner.commit(end.json());
  }

  public void stop() {
    runner.stop();
  }

  /** All columns. */
  StructType schema() {
    return request.schema();
  }

  /** Returns false if an option of the read says that batches are read whole, and by rows. */
  boolean isPruned() {
    return request.options().getBoolean(ReopenScans.OPTION, true);
  }

  /** The request of a batch that reads some of the columns. */
  ScanRequest request(StructType columns, List<PredicateJson> predicates) {
    return request.narrowed(columns, predicates, null);
  }

  /**
   * Returns what a batch reads of the stream. A batch has one view for equal requests, however often its plan is made, so that
   * its tasks are planned once. Spark 4.1 makes the plan three times for most sinks, two of them only to print it.
   *
   * start, end: of the batch. choice: null for rows.
   */
  synchronized StreamView view(Offset start, Offset end, ScanRequest request, ColumnarChoice choice) {
    var batch = new Batch(start, end);
    if (!batch.equals(viewedBatch)) views.clear();
    viewedBatch = batch;
    return views.computeIfAbsent(new ViewKey(request, choice == null), key ->
        new StreamView(this, request, choice == null ? ScanReaders.ROWS : choice.readersFor(request.schema()), status));
  }

  /** The factory for all columns, for a batch that the rule did not change. */
  public PartitionReaderFactory createReaderFactory() {
    return factory(schema());
  }

  /** Spark's own factory of readers of some columns. */
  PartitionReaderFactory factory(StructType columns) {
    return new PythonStreamingPartitionReaderFactory(
        request.source().source(), function(columns), columns, Option.empty(), Option.empty());
  }

  private synchronized byte[] function(StructType columns) {
    return functions.computeIfAbsent(columns, each -> DriverChoice.plan(
        request.shortName(), request.source().source(), request.pythonSource(), each, true, status).func());
  }

  public boolean equals(Object object) {
    return object == this || object instanceof StreamView view && view.stream() == this;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }

  /** The name of the source in a query's progress. */
  public String toString() {
    return request.shortName() + "[" + request.path() + "]";
  }

  /** The source's limit of its batches. Spark passes it back. */
  private record Limit(String json) implements ReadLimit {}
}
