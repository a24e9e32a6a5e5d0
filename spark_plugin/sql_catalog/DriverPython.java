package pydelta.sql_catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** The Python process that drives this JVM (spark_plugin/jvm_calls.py), for what only Python can carry out. A server has none. */
class DriverPython {
  private static volatile Function python = null;

  private DriverPython() {}

  /**
   * function: of a map with the session, the request as JSON, and the parameters of a statement. It gives a frame, null, or what went
   * wrong: an exception, or a Failure as JSON.
   */
  static void offer(Function function) {
    python = function;
  }

  static boolean isThere() {
    return python != null;
  }

  /** parameters: Spark's ParameterContext, or null. Null where Python has done nothing. Raises what Python raises. */
  static Dataset ask(SparkSession session, ObjectNode request, Object parameters) {
    Map asked = new HashMap();
    asked.put("session", session);
    asked.put("request", request.toString());
    asked.put("parameters", parameters);
    Object answer = python.apply(asked);
    if (answer instanceof Throwable) throw Errors.unchecked((Throwable) answer);
    if (answer instanceof String) throw Errors.unchecked(Failure.of((String) answer));
    return (Dataset) answer;
  }
}
