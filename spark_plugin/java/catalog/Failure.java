package pydelta.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An error that Python has raised, with its condition and SQLSTATE, by which scripts handle it. Its message is as in a Python
 * traceback: spark_plugin/exceptions.py makes it the same error again.
 */
class Failure extends AnalysisException {
  private static final long serialVersionUID = 1;

  private final String state;

  private Failure(String message, String condition, String state, Map parameters) {
    super(message, Option.empty(), Option.empty(), Option.empty(), new Some(condition),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)), new QueryContext[0]);
    this.state = state;
  }

  /** text: JSON with message, condition, state, parameters. */
  static Failure of(String text) {
    try {
      JsonNode said = new ObjectMapper().readTree(text);
      Map parameters = new HashMap();
      for (Iterator names = said.get("parameters").fieldNames(); names.hasNext();) {
        String name = (String) names.next();
        parameters.put(name, said.get("parameters").get(name).asText());
      }
      return new Failure(said.get("message").asText(), said.get("condition").asText(), said.get("state").asText(), parameters);
    } catch (IOException error) {
      throw Errors.unchecked(error);
    }
  }

  /** As Errors.unsupported, with an SQLSTATE. */
  static Failure unsupported(String message) {
    String condition = "DELTA_OPERATION_NOT_SUPPORTED";
    return new Failure(Errors.text("UnsupportedOperationError", condition, message), condition, "0AKDC", Collections.EMPTY_MAP);
  }

  public String getSqlState() {
    return state;
  }
}
