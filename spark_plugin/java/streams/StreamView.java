package pydelta.streams;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.RuleStatus;
import pydelta.scan.ColumnarChoice;
import pydelta.messages.PartitionMessages;
import pydelta.scan.ScanReaders;
import pydelta.scan.ScanRequest;
import pydelta.scan.ScanTasks;

/** A stream in the plan of one batch: some of its columns and rows, read in the same way as those of a scan. */
class StreamView implements MicroBatchStream {
  private record Bounds(Offset start, Offset end) {}

  private final PythonSourceStream stream;
  private final ScanRequest request;
  private final ScanReaders readers;
  private final RuleStatus status;
  private ScanTasks tasks = null;
  private Bounds bounds = null;
  private boolean isInPython = false;

  StreamView(PythonSourceStream stream, ScanRequest request, ScanReaders readers, RuleStatus status) {
    this.stream = stream;
    this.request = request;
    this.readers = readers;
    this.status = status;
  }

  PythonSourceStream stream() {
    return stream;
  }

  /** The scan of the same columns, which is next to this stream in the plan. */
  ViewedScan scan() {
    return new ViewedScan(request, readers);
  }

  public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
    var newBounds = new Bounds(start, end);
    if (newBounds.equals(bounds)) return tasks.partitions();  // Spark asks for a copy of the plan's node
    String wish = isInPython ? "" : readers.wish();
    InputPartition[] partitions = stream.planInputPartitions(asking(request.asking(ScanRequest.newScanId(), wish), start), end);
    var messages = new PartitionMessages(pickled(partitions));
    tasks = ScanTasks.of(readers, request, messages, partitions, inPython(), status);
    tasks.noteUse(status);
    bounds = newBounds;
    return tasks.partitions();
  }

  /** The start of a batch and the schema that asks for its files. Only stream_reader.py reads this. */
  private static Offset asking(StructType schema, Offset start) {
    String marker = TextNode.valueOf(schema.json()) + ", \"start\": " + TextNode.valueOf(start.json());
    return new PythonStreamingSourceOffset("{\"" + ScanRequest.MARKER_KEY + "\": " + marker + "}");
  }

  private static byte[][] pickled(InputPartition[] partitions) {
    return Arrays.stream(partitions)
        .map(partition -> ((PythonStreamingInputPartition) partition).pickedPartition())
        .toArray(byte[][]::new);
  }

  private PartitionReaderFactory inPython() {
    return readers.inPython(stream.factory(request.schema()));
  }

  /** If this is called before there are tasks, Python reads all tasks, and they are planned so. */
  public synchronized PartitionReaderFactory createReaderFactory() {
    if (readers.columnar() == null) ColumnarChoice.refuseRepeatedRows();
    if (tasks != null) return tasks.factory();
    isInPython = true;
    return inPython();
  }

  public Offset initialOffset() {
    return stream.initialOffset();
  }

  public Offset latestOffset() {
    return stream.latestOffset();
  }

  public Offset deserializeOffset(String json) {
    return stream.deserializeOffset(json);
  }

  public void commit(Offset end) {
    stream.commit(end);
  }

  public void stop() {
    stream.stop();
  }

  /** Equal views let Spark reuse an exchange. */
  public boolean equals(Object object) {
    if (!(object instanceof StreamView other)) return stream.equals(object);
    return stream == other.stream && request.equals(other.request) && readers.isLike(other.readers);
  }

  public int hashCode() {
    return stream.hashCode();
  }

  public String toString() {
    return stream.toString();
  }
}
