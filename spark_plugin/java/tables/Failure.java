package pydelta.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An error that Python has raised, with its condition and SQLSTATE, which handlers of scripts name. Its message is as in a Python
 * traceback, of which spark_plugin/exceptions.py makes the same error again.
 */
public class Failure extends AnalysisException {
  private static final long serialVersionUID = 1;

  private final String state;

  private Failure(String message, String condition, String state, Map<String, String> parameters) {
    super(message, Option.empty(), Option.empty(), Option.empty(), new Some<>(condition),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)), new QueryContext[0]);
    this.state = state;
  }

  /** text: JSON with message, condition, state, parameters. */
  public static Failure of(String text) {
    JsonNode json = Errors.undeclared(() -> new ObjectMapper().readTree(text));
    var parameters = new HashMap<String, String>();
    for (var parameter : json.get("parameters").properties()) parameters.put(parameter.getKey(), parameter.getValue().asText());
    return new Failure(json.get("message").asText(), json.get("condition").asText(), json.get("state").asText(), parameters);
  }

  /** As Errors.unsupported, with an SQLSTATE. */
  static Failure unsupported(String message) {
    String condition = "DELTA_OPERATION_NOT_SUPPORTED";
    return new Failure(Errors.text("UnsupportedOperationError", condition, message), condition, "0AKDC", Map.of());
  }

  public String getSqlState() {
    return state;
  }
}
