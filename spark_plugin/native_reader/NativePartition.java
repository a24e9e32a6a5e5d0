package pydelta.native_reader;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;

/** A task's files for Spark's own Parquet reader, and the same task for Python, which can always take over. */
public class NativePartition extends PythonInputPartition {
  private static final long serialVersionUID = 1L;

  /** The pickle of a function by its name; a tuple of its arguments and R for the call follow. */
  private static final byte[] REST_OF =
      "cspark_plugin.source.task_batches\nrest_of\n".getBytes(StandardCharsets.ISO_8859_1);

  private final PartitionedFile[] files;
  private final DeletionVector[] deleted;
  private final String columns;

  /**
   * deleted: of each file, null for one without. columns: what is read of the files, and how; a reader of other columns leaves the
   * task to Python.
   */
  NativePartition(int index, byte[] pickled, PartitionedFile[] files, DeletionVector[] deleted, String columns) {
    super(index, pickled);
    this.files = files;
    this.deleted = deleted;
    this.columns = columns;
  }

  PartitionedFile[] files() {
    return files;
  }

  DeletionVector[] deleted() {
    return deleted;
  }

  String columns() {
    return columns;
  }

  /** For Python: the files from this one on, of this one the rows from `start` on. rows: how many it has; 0 where start is 0. */
  PythonInputPartition from(int first, long start, long rows) throws IOException {
    if (first == 0 && start == 0) return new PythonInputPartition(index(), pickedPartition());
    Object[] said = {pickedPartition(), Integer.valueOf(first), Long.valueOf(start), Long.valueOf(rows)};
    byte[] arguments = new Pickler().dumps(said);
    ByteArrayOutputStream call = new ByteArrayOutputStream();
    call.write(arguments, 0, 2);  // the protocol
    call.write(REST_OF);
    call.write(arguments, 2, arguments.length - 3);  // but for the stop
    call.write('R');
    call.write('.');
    return new PythonInputPartition(index(), call.toByteArray());
  }
}
