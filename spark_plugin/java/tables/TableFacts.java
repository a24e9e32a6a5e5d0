package pydelta.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What the source says about a table besides its columns (source/table_facts.py). It says nothing if there are no columns. */
class TableFacts {
  private static final String KEY = "pydelta.facts";

  private final JsonNode json;
  private final String path;

  private TableFacts(JsonNode json, String path) {
    this.json = json;
    this.path = path;
  }

  /** schema: as the source gave it. path: as the user gave it. */
  static TableFacts of(StructType schema, String path) {
    StructField[] fields = schema.fields();
    if (fields.length == 0 || !fields[0].metadata().contains(KEY)) return new TableFacts(MissingNode.getInstance(), path);
    try {
      return new TableFacts(new ObjectMapper().readTree(fields[0].metadata().getString(KEY)), path);
    } catch (Exception error) {
      throw new IllegalStateException("the source told what is no JSON of " + path, error);
    }
  }

  /** The schema without the facts in its metadata. */
  static StructType without(StructType schema) {
    StructField[] fields = schema.fields().clone();
    if (fields.length == 0) return schema;
    StructField first = fields[0];
    fields[0] = new StructField(first.name(), first.dataType(), first.nullable(),
        new MetadataBuilder().withMetadata(first.metadata()).remove(KEY).build());
    return new StructType(fields);
  }

  /** The path without a version in it. */
  String path() {
    return at("path").asText(path);
  }

  /** The version that was opened; null if the source did not say. */
  String version() {
    return at("version").isMissingNode() ? null : at("version").asText();
  }

  /** Whether the options name an older version. */
  boolean travels() {
    return at("travels").asBoolean(false);
  }

  boolean hasIdentity() {
    return at("has_identity").asBoolean(false);
  }

  String description() {
    return at("description").isTextual() ? at("description").asText() : null;
  }

  String[] partitionColumns() {
    return texts("partition_columns");
  }

  String[] clusteringColumns() {
    return texts("clustering_columns");
  }

  /** The properties of Delta, with the protocol's versions. */
  Map<String, String> properties() {
    var values = new HashMap<String, String>();
    for (var property : at("properties").properties()) values.put(property.getKey(), property.getValue().asText());
    if (!json.isMissingNode()) {
      values.put("delta.minReaderVersion", at("reader_version").asText());
      values.put("delta.minWriterVersion", at("writer_version").asText());
    }
    return values;
  }

  private JsonNode at(String name) {
    return json.path(name);
  }

  private String[] texts(String name) {
    JsonNode list = at(name);
    String[] values = new String[list.size()];
    for (int i = 0; i < values.length; i++) values[i] = list.get(i).asText();
    return values;
  }
}
