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
 * Our Python source as a session knows it: its batch writes are planned and committed by the driver's own Python, where that is asked.
 *
 * What it has planned it commits, unless it says that it has not begun with that; then a worker does. But for that no worker makes a
 * commit again that was sent to the driver's Python: what comes back is raised, and where nothing does, that nobody knows. Tasks get
 * Spark's own source.
 */
public class DriverSource extends UserDefinedPythonDataSource {
  private static final long serialVersionUID = 1L;
  private static final String LOST = "delta_py.errors.CommitOutcomeUnknownError: [DELTA_COMMIT_OUTCOME_UNKNOWN] The driver's Python has "
      + "not said what became of the commit. Its files are kept. Look at the table's history before writing again.\nSQLSTATE: 08007";

  /** Writers, as they are known by identity, of the driver's Python, with the planner that made them. Of all sessions. */
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

  /** As Spark's own, of which Java knows no checked exceptions, does. */
  private static void raise(Throwable error) {
    if (error instanceof Error fatal) throw fatal;
    Platform.throwException(error);
  }

  protected Object writeReplace() {
    return new UserDefinedPythonDataSource(dataSourceCls());
  }
}
