package pydelta.joins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;

/**
 * What the source reports about one column of a scan.
 *
 * told: distinct, nulls; min and max as Spark counts values of the type (days). They are absent if the type has no numeric order.
 */
record ColumnNumbers(JsonNode json) implements ColumnStatistics {
  public OptionalLong distinctCount() {
    return number("distinct");
  }

  public OptionalLong nullCount() {
    return number("nulls");
  }

  public Optional<Object> min() {
    return Optional.ofNullable(json.path("min").numberValue());
  }

  public Optional<Object> max() {
    return Optional.ofNullable(json.path("max").numberValue());
  }

  private OptionalLong number(String name) {
    JsonNode value = json.path(name);
    return value.isNumber() ? OptionalLong.of(value.longValue()) : OptionalLong.empty();
  }
}
