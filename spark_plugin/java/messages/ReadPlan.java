package pydelta.messages;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** How the source reads a scan, and why: its one decision, as messages.json describes `plan`. Every part may be absent. */
public class ReadPlan {
  /** The plan of a source that says nothing. */
  public static final ReadPlan UNKNOWN = new ReadPlan(MissingNode.getInstance());

  private static final ObjectMapper JSON = new ObjectMapper();

  private final JsonNode message;

  private ReadPlan(JsonNode message) {
    this.message = message;
  }

  static ReadPlan parse(String message) {
    try {
      return message == null ? UNKNOWN : new ReadPlan(JSON.readTree(message));
    } catch (Exception error) {
      throw new IllegalStateException("the source's plan of a scan is not JSON: " + message, error);
    }
  }

  /** The same plan by another road. */
  public ReadPlan by(String road, String why) {
    return new ReadPlan(((ObjectNode) message.deepCopy()).put("road", road).put("why", why));
  }

  /** Null if the source returns no rows, or does not say. */
  public String road() {
    return text("road");
  }

  public String why() {
    return text("why");
  }

  /** Why the scan does not take a road; null if it does, or the source does not say. */
  public String whyNot(String road) {
    JsonNode why = part("skipped").path(road);
    return why.isTextual() ? why.textValue() : null;
  }

  /** Whether one task may do all that a small query does with the scan. */
  public boolean isSmall() {
    return part("small").asBoolean(false);
  }

  /** Whether partial rows pay off for this number of columns and aggregates that are added up for each row. */
  public boolean areWorthAdding(int work) {
    JsonNode least = part("partial_from");
    return least.isNumber() && work >= least.longValue();
  }

  /** The log's answer, an Arrow stream; null if there is none. */
  public byte[] answer() throws Exception {
    return has("answer") ? part("answer").binaryValue() : null;
  }

  public boolean has(String part) {
    return !part(part).isMissingNode();
  }

  public JsonNode part(String name) {
    return message.path(name);
  }

  private String text(String part) {
    JsonNode text = part(part);
    return text.isTextual() ? text.textValue() : null;
  }
}
