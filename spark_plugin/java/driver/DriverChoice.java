package pydelta.driver;

import java.util.HashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
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
 * Whether tables are opened, scans are planned and the sources of streams are asked by the driver's own Python, of which a JVM has
 * one, or by worker processes. Without an offer by workers.
 *
 * A worker does what the driver's Python does not, and raises what is wrong with a request. Only what a worker could do, and the
 * driver's Python could not, is an error of the latter: after some of these in a row, or when it is silent, it is not asked any
 * more.
 */
public class DriverChoice {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");
  private static final String FORMAT = "pydelta";
  private static final int MOST_ERRORS = 3;

  private static Function offered = null;
  private static int errors = 0;

  private DriverChoice() {}

  /** planner: as DriverPlanner.java; null takes the offer back. */
  public static synchronized void offer(Function planner) {
    offered = planner;
    errors = 0;
  }

  public static synchronized Function offered() {
    return offered;
  }

  /** Who is asked for a source of this short name; null for workers, who are asked for those of others. */
  public static Function offered(String shortName) {
    return FORMAT.equalsIgnoreCase(shortName) && isWanted() ? offered() : null;
  }

  /** isStream: for the read function of a stream's tasks alone. */
  public static PythonDataSourceReadInfo plan(
      String shortName, UserDefinedPythonDataSource source, PythonDataSourceCreationResult made, StructType schema, boolean isStream,
      RuleStatus status) {
    Function planner = offered(shortName);
    if (planner == null) return source.createReadInfoInPython(made, schema, isStream);
    Object answer = answer(planner, new Object[] {"plan", made.dataSource(), schema.json(), Boolean.valueOf(isStream)});
    if (answer instanceof PythonDataSourceReadInfo) {
      succeeded();
      status.used(Switch.DRIVER_PLANNING);
      return (PythonDataSourceReadInfo) answer;
    }
    Throwable why = (Throwable) answer;
    silent(planner, why);
    PythonDataSourceReadInfo planned = source.createReadInfoInPython(made, schema, isStream);
    failed(planner, why, status);
    return planned;
  }

  /**
   * The rows of a scan that was planned for a request with this id, as an Arrow stream; null where tasks are to read them. Raises why
   * the driver's own Python could not.
   */
  public static byte[] read(String shortName, String scanId) throws Exception {
    Function planner = offered(shortName);
    if (planner == null) return null;
    Object answer = answer(planner, new Object[] {"read", scanId});
    if (answer instanceof byte[]) return ((byte[]) answer).length == 0 ? null : (byte[]) answer;
    if (answer instanceof RejectedExecutionException) return null;
    silent(planner, (Throwable) answer);
    throw answer instanceof Exception ? (Exception) answer : new IllegalStateException((Throwable) answer);
  }

  /** Our source in the active session, open at options: its DataSource is made. Raises what is wrong with the options. */
  public static PythonDataSourceV2 open(CaseInsensitiveStringMap options, RuleStatus status) {
    Function planner = isWanted() ? offered() : null;
    Throwable why = null;
    if (planner != null) {
      Object answer = answer(planner, new Object[] {"open", FORMAT, new HashMap(options)});
      if (answer instanceof PythonDataSourceV2) {
        succeeded();
        return (PythonDataSourceV2) answer;
      }
      why = (Throwable) answer;
      silent(planner, why);
    }
    PythonDataSourceV2 source = new PythonDataSourceV2();
    source.setShortName(FORMAT);
    source.inferSchema(options);
    if (why != null) failed(planner, why, status);
    return source;
  }

  /** asked: as of DriverPlanner. The answer, or a Throwable in its place. */
  public static Object answer(Function planner, Object[] asked) {
    try {
      return planner.apply(asked);
    } catch (RuntimeException | LinkageError error) {
      return error;
    }
  }

  public static synchronized void succeeded() {
    errors = 0;
  }

  /** Before a worker is asked for what the driver's Python did not do: one that is silent is not asked again. */
  public static void silent(Function planner, Throwable why) {
    if (why instanceof TimeoutException) stop(planner, why.getMessage());
  }

  /** A worker has done what the driver's Python could not. */
  public static void failed(Function planner, Throwable why, RuleStatus status) {
    status.notByDriver(why);
    boolean isItsFault = !(why instanceof RejectedExecutionException || why instanceof InterruptedException);
    if (isItsFault) count(planner, why.toString());
  }

  private static synchronized void count(Function planner, String why) {
    errors++;
    if (errors >= MOST_ERRORS) stop(planner, why);
  }

  private static synchronized void stop(Function planner, String why) {
    if (offered != planner) return;
    offered = null;
    LOG.warn("The driver's own Python is not asked any more to plan scans: " + why + ". Python workers plan them, open tables and "
        + "are asked for streams, and give the same rows. spark_plugin.driver_planning.offer(spark) has it asked again; add "
        + Switch.DRIVER_PLANNING + " to " + Switch.DISABLE_CONF + " to be rid of this.");
  }

  static boolean isWanted() {
    return Switch.isOn(Switch.DRIVER_PLANNING);
  }
}
