package pydelta.statements;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.driver.DriverChannel;
import pydelta.tables.Errors;

/**
 * Asks the Python process that drives this JVM (sql_requests.py) to run statements and procedures. A server has no such process.
 */
public class DriverPython {
  private static final byte STATEMENT = 7;
  private static final int CONNECT_MS = 15000;

  private static final Map<Long, PythonRequest> REQUESTS = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static volatile DriverChannel channel = null;

  private DriverPython() {}

  public static void offer(DriverChannel channel) {
    DriverPython.channel = channel;
  }

  static boolean isThere() {
    return channel != null;
  }

  /** The request that waits for its answer under this number. */
  public static PythonRequest request(long number) {
    return REQUESTS.get(number);
  }

  /** parameters: null for none. Returns null if Python has done nothing. Raises what Python raises. */
  static Dataset<Row> ask(SparkSession session, ObjectNode asked, ParameterContext parameters) {
    long number = NUMBERS.incrementAndGet();
    var request = new PythonRequest(session, parameters);
    REQUESTS.put(number, request);
    try {
      asked.put("number", number);
      byte[] json = asked.toString().getBytes(StandardCharsets.UTF_8);
      byte[] bytes = new byte[1 + json.length];
      bytes[0] = STATEMENT;
      System.arraycopy(json, 0, bytes, 1, json.length);
      channel.ask(bytes, CONNECT_MS, true);
    } catch (Throwable error) {
      throw Errors.unchecked(told(error));
    } finally {
      REQUESTS.remove(number);
    }
    return request.result();
  }

  private static Throwable told(Throwable error) {
    if (error instanceof RejectedExecutionException || error instanceof ConnectException) {
      return Errors.unsupported("The statement was not run: the driver's Python cannot be asked (" + error.getMessage()
          + "). Nothing was done. Run it again, or call register(spark) again if it stays so.");
    }
    if (!(error instanceof IOException)) return error;
    return Errors.of("CommitOutcomeUnknownError", "DELTA_COMMIT_OUTCOME_UNKNOWN", "The driver's Python has not said what became "
        + "of the statement (" + error.getMessage() + "). Look at the table's history before you run it again.");
  }
}
