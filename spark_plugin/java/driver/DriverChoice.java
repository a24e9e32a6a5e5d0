package pydelta.driver;

import java.util.HashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/**
 * Decides who opens tables, plans scans and answers for the sources of streams: the driver's own Python, after it was offered, or
 * worker processes.
 *
 * A worker does what the driver's Python does not do, and raises what is wrong with a request. The driver's Python has failed if
 * it could not do what a worker could. After some failures in a row, or when it is silent, it is not asked again.
 */
public class DriverChoice {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");
  private static final String FORMAT = "pydelta";
  private static final String SECOND_NAME = "delta";  // only of our own source: delta-spark's is none of Python
  private static final int MOST_ERRORS = 3;

  private static DriverPlanner offered = null;
  private static int errors = 0;

  private DriverChoice() {}

  /** planner: null takes the offer back. */
  public static synchronized void offer(DriverPlanner planner) {
    offered = planner;
    errors = 0;
  }

  public static synchronized DriverPlanner offered() {
    return offered;
  }

  /** The planner for a source of this short name; null if workers plan it, as they do for sources of others. */
  public static DriverPlanner offered(String shortName) {
    boolean isOurs = FORMAT.equalsIgnoreCase(shortName) || SECOND_NAME.equalsIgnoreCase(shortName);
    return isOurs && isEnabled() ? offered() : null;
  }

  /** Plans a scan. isStream: only for the read function of a stream's tasks. */
  public static PythonDataSourceReadInfo plan(
      String shortName, UserDefinedPythonDataSource source, PythonDataSourceCreationResult made, StructType schema,
      boolean isStream, RuleStatus status) {
    DriverPlanner planner = offered(shortName);
    if (planner == null) return source.createReadInfoInPython(made, schema, isStream);
    Answer<PythonDataSourceReadInfo> answer = planner.plan(made.dataSource(), schema.json(), isStream);
    if (!answer.isFailed()) status.used(Switch.DRIVER_PLANNING);
    return orByWorker(planner, answer, () -> source.createReadInfoInPython(made, schema, isStream), () -> status);
  }

  /**
   * Reads the rows of the scan that was planned with this id, as an Arrow stream. Returns null if tasks have to read them. Raises
   * the error of the driver's own Python.
   */
  public static byte[] read(String shortName, String scanId) throws Exception {
    DriverPlanner planner = offered(shortName);
    if (planner == null) return null;
    Answer<byte[]> answer = planner.read(scanId);
    if (!answer.isFailed()) return answer.value().length == 0 ? null : answer.value();
    if (answer.failure() instanceof RejectedExecutionException) return null;
    stopIfSilent(planner, answer.failure());
    throw answer.failure() instanceof Exception error ? error : new IllegalStateException(answer.failure());
  }

  /** Opens our source in the active session, and makes its DataSource. Raises what is wrong with the options. */
  public static PythonDataSourceV2 open(CaseInsensitiveStringMap options, RuleStatus status) {
    DriverPlanner planner = isEnabled() ? offered() : null;
    if (planner == null) return openByWorker(options);
    return orByWorker(planner, planner.open(FORMAT, new HashMap<>(options)), () -> openByWorker(options), () -> status);
  }

  private static PythonDataSourceV2 openByWorker(CaseInsensitiveStringMap options) {
    var source = new PythonDataSourceV2();
    source.setShortName(FORMAT);
    source.inferSchema(options);
    return source;
  }

  /** The answer of the driver's Python or, if that failed, what a worker makes. */
  static <T> T orByWorker(DriverPlanner planner, Answer<T> answer, Supplier<T> worker, Supplier<RuleStatus> status) {
    if (!answer.isFailed()) {
      noteSuccess();
      return answer.value();
    }
    stopIfSilent(planner, answer.failure());
    T made = worker.get();
    noteFailure(planner, answer.failure(), status.get());
    return made;
  }

  public static synchronized void noteSuccess() {
    errors = 0;
  }

  /** Ends the offer if a planner is silent, before a worker does what the planner did not. */
  public static void stopIfSilent(DriverPlanner planner, Throwable failure) {
    if (failure instanceof TimeoutException) stop(planner, failure.getMessage());
  }

  /** Counts a failure of the driver's Python, after a worker could do the work. */
  public static void noteFailure(DriverPlanner planner, Throwable failure, RuleStatus status) {
    status.notByDriver(failure);
    boolean isItsFault = !(failure instanceof RejectedExecutionException || failure instanceof InterruptedException);
    if (isItsFault) count(planner, failure.toString());
  }

  private static synchronized void count(DriverPlanner planner, String why) {
    errors++;
    if (errors >= MOST_ERRORS) stop(planner, why);
  }

  private static synchronized void stop(DriverPlanner planner, String why) {
    if (offered != planner) return;
    offered = null;
    LOG.warn("The driver's own Python is not asked any more to plan scans: " + why + ". Python workers plan them, open tables "
        + "and are asked for streams, and give the same rows. spark_plugin.driver_planning.offer(spark) has it asked again; add "
        + Switch.DRIVER_PLANNING + " to " + Switch.DISABLE_CONF + " to be rid of this.");
  }

  static boolean isEnabled() {
    return Switch.isOn(Switch.DRIVER_PLANNING);
  }
}
