package pydelta.sql_catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.BiFunction;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** The Python process that drives this JVM (spark_plugin/jvm_calls.py), for what only Python can carry out. A server has none. */
class DriverPython {
  private static volatile BiFunction python = null;

  private DriverPython() {}

  /** function: (session, request as JSON) -> a frame, null, or what went wrong: an exception, or a Failure as JSON. */
  static void offer(BiFunction function) {
    python = function;
  }

  static boolean isThere() {
    return python != null;
  }

  /** Null where Python has done nothing. Raises what Python raises. */
  static Dataset ask(SparkSession session, ObjectNode request) {
    Object answer = python.apply(session, request.toString());
    if (answer instanceof Throwable) throw Errors.unchecked((Throwable) answer);
    if (answer instanceof String) throw Errors.unchecked(Failure.of((String) answer));
    return (Dataset) answer;
  }
}
