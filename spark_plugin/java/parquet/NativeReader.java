package pydelta.parquet;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.Iterator;

/**
 * The batches of Spark's own Parquet reader, file after file, without deleted rows.
 *
 * If a file does not store the table's types, or a batch cannot be read, Python reads from that row on, and all later files.
 * Python reads more kinds of files, checks what does not fit, and its errors say what to do. The same happens if a file needs
 * more memory or stack than there is, as pages with damaged sizes do: Spark would end the executor.
 */
class NativeReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.native_reader");

  private final NativePartition partition;
  private final NativeReaderFactory factory;
  private int file = -1;
  private DeletedRows deleted = null;
  private Iterator<?> batches = null;
  private ColumnarBatch batch = null;
  /** The number of rows of this file that Spark's reader has returned, without the rows that filters have excluded. */
  private long returnedRows = 0;
  private PartitionReader<ColumnarBatch> inPython = null;

  NativeReader(NativePartition partition, NativeReaderFactory factory) {
    this.partition = partition;
    this.factory = factory;
  }

  public boolean next() throws IOException {
    if (inPython != null) return inPython.next();
    try {
      return advance();
    } catch (Exception | LinkageError | AssertionError | StackOverflowError error) {
      return otherwise(error);
    } catch (OutOfMemoryError error) {
      if (!isOfHeap(error)) throw error;
      return otherwise(error);
    }
  }

  /** Whether one array was too large. False if the memory for threads, classes or Spark's own accounts is used up. */
  private static boolean isOfHeap(OutOfMemoryError error) {
    if (error instanceof SparkOutOfMemoryError) return false;
    String what = String.valueOf(error.getMessage());
    return what.startsWith("Requested array size") || what.startsWith("Java heap space");
  }

  /** Also raises exceptions that Scala's code does not declare. */
  private boolean otherwise(Throwable error) throws IOException {
    TaskContext task = TaskContext.get();
    if (task != null && task.isInterrupted()) Platform.throwException(error);
    close();
    long start = returnedRows == 0 ? 0 : rowBehind(returnedRows);
    String from = start == 0 ? "" : ", from its row " + start + " on,";
    PartitionedFile failed = partition.files()[file].file();
    String reason = "Data file " + failed.toPath() + from + " and those behind it are read in Python: " + error;
    LOG.warn(reason.replaceAll("\\p{Cntrl}", " "));
    long rows = start == 0 ? 0 : FileSchema.rowCount(failed);
    inPython = factory.inPython(partition.from(file, start, rows));
    return inPython.next();
  }

  /** The number in the file of the row that follows this number of returned rows. They are read again, with their numbers. */
  private long rowBehind(long count) throws IOException {
    Iterator<?> again = factory.open().apply(partition.files()[file].file());
    try {
      while (true) {
        ColumnarBatch read = (ColumnarBatch) again.next();
        if (count <= read.numRows()) return numbers(read).getLong((int) count - 1) + 1;
        count -= read.numRows();
      }
    } finally {
      close(again);
    }
  }

  private boolean advance() throws IOException {
    while (true) {
      if (batches != null && batches.hasNext()) {
        ColumnarBatch read = (ColumnarBatch) batches.next();
        batch = left(read);
        returnedRows += read.numRows();
        if (batch.numRows() > 0) return true;
      } else {
        if (file + 1 == partition.files().length) return false;
        file++;
        open(partition.files()[file]);
      }
    }
  }

  private void open(NativeFile next) throws IOException {
    returnedRows = 0;
    batches = null;
    factory.stored().check(next.file());
    deleted = next.deleted() == null ? null : next.deleted().read();
    batches = (deleted == null ? factory.openWithoutNumbers() : factory.open()).apply(next.file());
  }

  private ColumnVector numbers(ColumnarBatch read) {
    return read.column(factory.stored().count());
  }

  /** Spark's batches have the columns of files first, then the numbers of rows, if requested, then the columns of partitions. */
  private ColumnarBatch left(ColumnarBatch read) {
    int stored = factory.stored().count();
    int[] rows = deleted == null ? null : deleted.left(numbers(read), read.numRows());
    int[] places = factory.places();
    ColumnVector[] columns = new ColumnVector[places.length];
    for (int i = 0; i < columns.length; i++) {
      boolean isStored = places[i] < stored;
      ColumnVector column = read.column(isStored || deleted == null ? places[i] : places[i] + 1);
      columns[i] = isStored && rows != null ? new PickedVector(column, rows) : column;
    }
    return new ColumnarBatch(columns, rows == null ? read.numRows() : rows.length);
  }

  public ColumnarBatch get() {
    return inPython != null ? inPython.get() : batch;
  }

  public void close() throws IOException {
    batch = null;
    close(batches);
    batches = null;
    if (inPython != null) inPython.close();
  }

  private static void close(Iterator<?> batches) throws IOException {
    if (batches instanceof Closeable open) open.close();
  }

  public CustomTaskMetric[] currentMetricsValues() {
    return inPython != null ? inPython.currentMetricsValues() : new CustomTaskMetric[0];
  }
}
