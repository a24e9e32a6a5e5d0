package pydelta.pruning;

import java.util.function.Function;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructType;

/** A stream in the plan of one batch: some of its columns, in columns where `columnar` makes Spark's reader factory so. */
class StreamView implements MicroBatchStream {
  private final PythonSourceStream stream;
  private final StructType columns;
  private final Function columnar;

  StreamView(PythonSourceStream stream, StructType columns, Function columnar) {
    this.stream = stream;
    this.columns = columns;
    this.columnar = columnar;
  }

  PythonSourceStream stream() {
    return stream;
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return stream.planInputPartitions(start, end);
  }

  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory factory = stream.factory(columns);
    if (columnar != null) return (PartitionReaderFactory) columnar.apply(factory);
    ColumnarChoice.refuseRepeatedRows();
    return factory;
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
    if (!(object instanceof StreamView)) return stream.equals(object);
    StreamView other = (StreamView) object;
    return stream == other.stream && columns.equals(other.columns) && (columnar == null) == (other.columnar == null);
  }

  public int hashCode() {
    return stream.hashCode();
  }

  public String toString() {
    return stream.toString();
  }
}
