package pydelta.joins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.StreamSupport;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import pydelta.rule.Lists;
import pydelta.messages.ReadPlan;

/** What the source reports about a planned scan, for the planning of joins. */
public record ScanFacts(JsonNode json) {

  /** Null if the source reports nothing. */
  public static ScanFacts of(ReadPlan plan) {
    return plan.has("joins") ? new ScanFacts(plan.part("joins")) : null;
  }

  OptionalLong rows() {
    JsonNode rows = json.path("rows");
    return rows.isNumber() ? OptionalLong.of(rows.longValue()) : OptionalLong.empty();
  }

  /** The columns of the scan whose values can exclude whole files. */
  NamedReference[] partitionColumns() {
    return StreamSupport.stream(json.get("partition_columns").spliterator(), false)
        .map(name -> reference(name.textValue())).toArray(NamedReference[]::new);
  }

  /** Statistics by column, for the columns that have some. */
  Map<NamedReference, ColumnStatistics> columns() {
    var columns = new HashMap<NamedReference, ColumnStatistics>();
    for (Map.Entry<String, JsonNode> column : json.get("columns").properties()) {
      columns.put(reference(column.getKey()), new ColumnNumbers(column.getValue()));
    }
    return columns;
  }

  /** The name is one part, even if it contains dots. */
  private static NamedReference reference(String name) {
    return new FieldReference(Lists.toScala(List.of(name)));
  }
}
