package pydelta.driver;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import pydelta.rule.PruneScans;

/**
 * Our Python source as a session knows it. If the driver's own Python is asked, it plans and commits the batch writes.
 *
 * It commits what it has planned. A worker commits only if the driver's Python says that it has not begun. Otherwise no worker
 * repeats a commit that was sent to the driver's Python: its error is raised, or that the outcome is unknown. Tasks get Spark's
 * own source.
 */
public class DriverSource extends UserDefinedPythonDataSource {
  private static final long serialVersionUID = 1L;
  private static final String LOST = "delta_py.errors.CommitOutcomeUnknownError: [DELTA_COMMIT_OUTCOME_UNKNOWN] The driver's "
      + "Python has not said what became of the commit. Its files are kept. Look at the table's history "
      + "before writing again.\nSQLSTATE: 08007";

  /** The planner of each writer that the driver's Python made, in all sessions. A writer is known by its identity. */
  private static final Map<byte[], DriverPlanner> PLANNED = Collections.synchronizedMap(new WeakHashMap<>());

  public DriverSource(UserDefinedPythonDataSource source) {
    super(source.dataSourceCls());
  }

  public PythonDataSourceWriteInfo createWriteInfoInPython(
      String shortName, StructType schema, CaseInsensitiveStringMap options, boolean overwrite, boolean isStreaming) {
    DriverPlanner planner = isStreaming ? null : DriverChoice.offered(shortName);
    if (planner == null) return super.createWriteInfoInPython(shortName, schema, options, overwrite, isStreaming);
    String givenBack = UserDefinedPythonDataSource$.MODULE$.writeOutputSchema().json();
    Answer<PythonDataSourceWriteInfo> answer = planner.write(new HashMap<>(options), schema.json(), givenBack, overwrite);
    if (!answer.isFailed()) {
      PLANNED.put(answer.value().writer(), planner);
      PruneScans.statusOfSession().used("driver-writes");
    }
    return DriverChoice.orByWorker(
        planner, answer, () -> super.createWriteInfoInPython(shortName, schema, options, overwrite, isStreaming),
        PruneScans::statusOfSession);
  }

  public void commitWriteInPython(byte[] writer, WriterCommitMessage[] messages, boolean abort) {
    DriverPlanner planner = PLANNED.get(writer);
    Answer<String> answer = planner == null ? Answer.failed(new RejectedExecutionException("a worker has planned it"))
        : planner.commit(writer, pickled(messages), abort);
    if (answer.failure() instanceof RejectedExecutionException || (abort && answer.isFailed())) {
      super.commitWriteInPython(writer, messages, abort);  // it was not begun, or may be done twice
      return;
    }
    if (answer.isFailed()) PruneScans.statusOfSession().notByDriver(answer.failure());
    String error = answer.isFailed() ? answer.failure() + "\n" + LOST : answer.value();
    if (!error.isEmpty()) raise(QueryCompilationErrors$.MODULE$.pythonDataSourceError("commit or abort", "write", error));
  }

  private static byte[][] pickled(WriterCommitMessage[] messages) {
    byte[][] pickled = new byte[messages.length][];
    for (int i = 0; i < pickled.length; i++) {
      pickled[i] = messages[i] == null ? null : ((PythonWriterCommitMessage) messages[i]).pickledMessage();
    }
    return pickled;
  }

  /** Throws a checked exception without declaring it, as Scala does. */
  private static void raise(Throwable error) {
    if (error instanceof Error fatal) throw fatal;
    Platform.throwException(error);
  }

  protected Object writeReplace() {
    return new UserDefinedPythonDataSource(dataSourceCls());
  }
}
