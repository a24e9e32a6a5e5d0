package pydelta.tables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.IdentityColumnSpec;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The definition of a table in CREATE or REPLACE: for a command without rows, or for the options of the write that makes it. */
public class NewTable {
  /** Properties of Spark, not of the table. */
  private static final Set<String> RESERVED = Set.of(
      "provider", "location", "comment", "owner", "external", "is_managed_location", "table_type", "collation");

  private final String path;
  private final Column[] definedColumns;
  private final StructType columns;
  private final String[] partitionBy;
  private final String[] clusterBy;
  private final Map<String, String> properties;
  private final String description;
  private final Map<String, String> locationOption;

  /**
   * Raises for partitions that are no columns, and for properties that are not Delta's. acceptsOthers: properties that are not
   * Delta's are no error, because another place stores them.
   */
  public NewTable(String path, Column[] columns, Transform[] partitions, Map<String, String> properties, boolean acceptsOthers) {
    this(path, columns, partitions, properties, acceptsOthers, Map.of());
  }

  /** locationOption: a storage option that says where the table is to be, if the path is a name; empty if the path says it. */
  public NewTable(String path, Column[] columns, Transform[] partitions, Map<String, String> properties, boolean acceptsOthers,
      Map<String, String> locationOption) {
    this.path = path;
    this.definedColumns = columns;
    this.columns = structType(columns);
    var partitionColumns = new ArrayList<String>();
    var clusteringColumns = new ArrayList<String>();
    for (Transform partition : partitions) {
      switch (partition.name()) {
        case "identity" -> partitionColumns.add(String.join(".", partition.references()[0].fieldNames()));
        case "cluster_by", "temp_cluster_by" -> {  // the latter is of delta-spark's parser
          for (NamedReference reference : partition.references()) clusteringColumns.add(path(reference.fieldNames()));
        }
        default -> throw Errors.unsupported("Delta tables are partitioned by columns, and " + partition + " is none; nothing was "
            + "created. Add a column with the value, and partition by it.");
      }
    }
    this.partitionBy = partitionColumns.toArray(new String[0]);
    this.clusterBy = clusteringColumns.toArray(new String[0]);
    this.properties = deltas(properties);
    this.description = properties.get("comment");
    this.locationOption = locationOption;
    if (!acceptsOthers) refuseOthers(properties);
  }

  /** The kinds of columns that Spark may pass. */
  public static Set<TableCatalogCapability> capabilities() {
    return Set.of(
        TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE, TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS,
        TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS);
  }

  public String path() {
    return path;
  }

  /** Whether the path is a name, and the table is to be at a location that the user chose. */
  public boolean hasLocation() {
    return !locationOption.isEmpty();
  }

  Column[] givenColumns() {
    return definedColumns;
  }

  public StructType columns() {
    return columns;
  }

  String[] partitionBy() {
    return partitionBy;
  }

  public Map<String, String> properties() {
    return properties;
  }

  /** mode: of delta_py/definition/replace.py. join: keep an existing table with the same definition. */
  public void build(String mode, boolean join) {
    ObjectNode arguments = JsonNodeFactory.instance.objectNode();
    arguments.put("mode", mode);
    arguments.put("schema", columns.json());
    arguments.set("partition_by", list(partitionBy));
    arguments.set("cluster_by", list(clusterBy));
    arguments.put("description", description);
    ObjectNode configuration = JsonNodeFactory.instance.objectNode();
    properties.forEach(configuration::put);
    arguments.set("properties", configuration);
    arguments.put("join", join);
    Source.command(path, "buildTable", arguments, locationOption);
  }

  /** Options of the write that creates the table, or replaces it. */
  Map<String, String> writeOptions(boolean replaces) {
    Map<String, String> options = Source.privateOptions(path);
    options.putAll(properties);
    options.put("path", path);
    options.putAll(locationOption);
    options.put("pydelta.mode", replaces ? "overwrite" : "error");
    options.put("pydelta.partitionBy", list(partitionBy).toString());
    if (clusterBy.length > 0) {
      options.remove("pydelta.partitionBy");
      options.put("pydelta.clusterBy", list(clusterBy).toString());
    }
    if (description != null) options.put("pydelta.description", description);
    if (replaces) options.put("overwriteSchema", "true");
    else options.put("pydelta.asSelect", "{\"kind\": \"create\"}");
    options.put("partitionOverwriteMode", "static");
    return options;
  }

  /** Properties that are not Delta's. An entry of a catalog may keep them. */
  public static Map<String, String> others(Map<String, String> properties) {
    var others = new HashMap<>(properties);
    others.keySet().removeIf(name -> isDeltas(name) || RESERVED.contains(name) || name.startsWith("option."));
    return others;
  }

  private static void refuseOthers(Map<String, String> properties) {
    Map<String, String> others = others(properties);
    if (others.isEmpty()) return;
    throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "The table property " + others.keySet().iterator().next()
        + " is not one of Delta's, whose names begin with 'delta.'; nothing was created. Leave it out.");
  }

  public static Map<String, String> deltas(Map<String, String> properties) {
    var deltas = new HashMap<>(properties);
    deltas.keySet().removeIf(name -> !isDeltas(name));
    return deltas;
  }

  private static boolean isDeltas(String name) {
    return name.toLowerCase(Locale.ROOT).startsWith("delta.");
  }

  private static StructType structType(Column[] columns) {
    return Columns.stored(new StructType(Arrays.stream(columns)
        .map(column -> new StructField(column.name(), column.dataType(), column.nullable(), metadata(column)))
        .toArray(StructField[]::new)));
  }

  /** The metadata of a column, with the protocol's keys (Identity Columns, Default Columns, Generated Columns). */
  private static Metadata metadata(Column column) {
    var metadata = new MetadataBuilder();
    if (column.comment() != null) metadata.putString("comment", column.comment());
    if (column.generationExpression() != null) metadata.putString("delta.generationExpression", column.generationExpression());
    IdentityColumnSpec identity = column.identityColumnSpec();
    if (identity != null) {
      metadata.putLong("delta.identity.start", identity.getStart());
      metadata.putLong("delta.identity.step", identity.getStep());
      metadata.putBoolean("delta.identity.allowExplicitInsert", identity.isAllowExplicitInsert());
    }
    String text = Columns.defaultOf(column.defaultValue());
    if (text != null) metadata.putString("CURRENT_DEFAULT", text);
    return metadata.build();
  }

  /** As joined_name of delta_py/types/names.py. */
  private static String path(String[] names) {
    return Arrays.stream(names)
        .map(name -> name.indexOf('.') >= 0 || name.indexOf('`') >= 0 ? Columns.quoted(name) : name)
        .collect(Collectors.joining("."));
  }

  private static ArrayNode list(String[] texts) {
    ArrayNode list = JsonNodeFactory.instance.arrayNode();
    for (String text : texts) list.add(text);
    return list;
  }
}
