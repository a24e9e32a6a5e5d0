package pydelta.driver;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
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
  private static final Map PLANNED = Collections.synchronizedMap(new WeakHashMap());

  public DriverSource(UserDefinedPythonDataSource source) {
    super(source.dataSourceCls());
  }

  public PythonDataSourceWriteInfo createWriteInfoInPython(
      String shortName, StructType schema, CaseInsensitiveStringMap options, boolean overwrite, boolean isStreaming) {
    Function planner = isStreaming ? null : DriverChoice.offered(shortName);
    if (planner == null) return super.createWriteInfoInPython(shortName, schema, options, overwrite, isStreaming);
    String givenBack = UserDefinedPythonDataSource$.MODULE$.writeOutputSchema().json();
    Object[] asked = {"write", new HashMap(options), schema.json(), givenBack, Boolean.valueOf(overwrite)};
    Object answer = DriverChoice.answer(planner, asked);
    if (answer instanceof byte[][]) {
      DriverChoice.succeeded();
      byte[][] made = (byte[][]) answer;
      PLANNED.put(made[1], planner);
      PruneScans.statusOfSession().used("driver-writes");
      return new PythonDataSourceWriteInfo(made[0], made[1]);
    }
    DriverChoice.silent(planner, (Throwable) answer);
    PythonDataSourceWriteInfo planned = super.createWriteInfoInPython(shortName, schema, options, overwrite, isStreaming);
    DriverChoice.failed(planner, (Throwable) answer, PruneScans.statusOfSession());
    return planned;
  }

  public void commitWriteInPython(byte[] writer, WriterCommitMessage[] messages, boolean abort) {
    Function planner = (Function) PLANNED.get(writer);
    Object answer = planner == null ? new RejectedExecutionException("a worker has planned it")
        : DriverChoice.answer(planner, new Object[] {"commit", writer, pickled(messages), Boolean.valueOf(abort)});
    if (answer instanceof RejectedExecutionException || (abort && answer instanceof Throwable)) {
      super.commitWriteInPython(writer, messages, abort);  // it was not begun, or may be done twice
      return;
    }
    if (answer instanceof Throwable) PruneScans.statusOfSession().notByDriver((Throwable) answer);
    String error = answer instanceof String ? (String) answer : answer + "\n" + LOST;
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
    if (error instanceof Error) throw (Error) error;
    org.apache.spark.unsafe.Platform.throwException(error);
  }

  protected Object writeReplace() {
    return new UserDefinedPythonDataSource(dataSourceCls());
  }
}
