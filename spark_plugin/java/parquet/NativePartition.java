package pydelta.parquet;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import scala.Option;

/**
 * The files of a task of a scan or of a stream, for Spark's own Parquet reader, and the same task for Python, which can always
 * take over.
 */
public class NativePartition extends PythonInputPartition {
  private static final long serialVersionUID = 1L;

  /** The pickle of a function by its name. A tuple of its arguments follows, and R for the call. */
  private static final byte[] REST_OF =
      "cspark_plugin.source.task_batches\nrest_of\n".getBytes(StandardCharsets.ISO_8859_1);

  private final NativeFile[] files;
  private final String columns;
  private final boolean isOfStream;

  /**
   * python: Spark's own partition. columns: what is read from the files, and how; a reader of other columns leaves the task to
   * Python.
   */
  NativePartition(InputPartition python, NativeFile[] files, String columns) {
    super(index(python), pickled(python));
    this.files = files;
    this.columns = columns;
    this.isOfStream = python instanceof PythonStreamingInputPartition;
  }

  private static int index(InputPartition python) {
    return python instanceof PythonStreamingInputPartition stream ? stream.index() : ((PythonInputPartition) python).index();
  }

  private static byte[] pickled(InputPartition python) {
    return python instanceof PythonStreamingInputPartition stream
        ? stream.pickedPartition() : ((PythonInputPartition) python).pickedPartition();
  }

  NativeFile[] files() {
    return files;
  }

  String columns() {
    return columns;
  }

  /** All files, for Python. */
  InputPartition inPython() {
    return inPython(pickedPartition());
  }

  /**
   * For Python: the files from this one on, and of this one the rows from `start` on. rows: the row count of this file; 0 if
   * start is 0.
   */
  InputPartition from(int first, long start, long rows) throws IOException {
    if (first == 0 && start == 0) return inPython();
    byte[] arguments = new Pickler().dumps(new Object[] {pickedPartition(), first, start, rows});
    var call = new ByteArrayOutputStream();
    call.write(arguments, 0, 2);  // the pickle's protocol
    call.write(REST_OF);
    call.write(arguments, 2, arguments.length - 3);  // without the stop
    call.write('R');
    call.write('.');
    return inPython(call.toByteArray());
  }

  private InputPartition inPython(byte[] pickled) {
    if (isOfStream) return new PythonStreamingInputPartition(index(), pickled, Option.empty());
    return new PythonInputPartition(index(), pickled);
  }
}
