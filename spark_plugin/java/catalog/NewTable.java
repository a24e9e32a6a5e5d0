package pydelta.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.IdentityColumnSpec;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What CREATE and REPLACE say of a table: as a command without rows, or as options of the write that makes it. */
class NewTable {
  /** Of Spark's, not of the table's. */
  private static final Set RESERVED = new HashSet(Arrays.asList(new String[] {
      "provider", "location", "comment", "owner", "external", "is_managed_location", "table_type", "collation"}));

  private final String path;
  private final Column[] given;
  private final StructType columns;
  private final String[] partitionBy;
  private final String[] clusterBy;
  private final Map properties;
  private final String description;

  /** Raises for partitions that are no columns, and for properties that are not Delta's unless others are `kept` elsewhere. */
  NewTable(String path, Column[] columns, Transform[] partitions, Map properties, boolean kept) {
    this.path = path;
    this.given = columns;
    this.columns = structType(columns);
    List partitionColumns = new ArrayList();
    List clusteringColumns = new ArrayList();
    for (int i = 0; i < partitions.length; i++) {
      String kind = partitions[i].name();
      if (kind.equals("identity")) partitionColumns.add(name(partitions[i].references()[0]));
      // The latter is of delta-spark's parser.
      else if (kind.equals("cluster_by") || kind.equals("temp_cluster_by")) addAll(partitions[i].references(), clusteringColumns);
      else throw Errors.unsupported("Delta tables are partitioned by columns, and " + partitions[i] + " is none; nothing was created. "
          + "Add a column with the value, and partition by it.");
    }
    this.partitionBy = (String[]) partitionColumns.toArray(new String[0]);
    this.clusterBy = (String[]) clusteringColumns.toArray(new String[0]);
    this.properties = deltas(properties);
    this.description = (String) properties.get("comment");
    if (!kept) refuseOthers(properties);
  }

  /** Which columns Spark may hand over. */
  static Set capabilities() {
    return new HashSet(Arrays.asList(new TableCatalogCapability[] {
        TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE, TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS,
        TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS}));
  }

  String path() {
    return path;
  }

  Column[] givenColumns() {
    return given;
  }

  StructType columns() {
    return columns;
  }

  String[] partitionBy() {
    return partitionBy;
  }

  Map properties() {
    return properties;
  }

  /** mode: of delta_py/definition/replace.py. join: a table that is there and is defined alike is taken as it is. */
  void build(String mode, boolean join) {
    ObjectNode arguments = JsonNodeFactory.instance.objectNode();
    arguments.put("mode", mode);
    arguments.put("schema", columns.json());
    arguments.set("partition_by", list(partitionBy));
    arguments.set("cluster_by", list(clusterBy));
    arguments.put("description", description);
    ObjectNode configuration = JsonNodeFactory.instance.objectNode();
    for (Iterator all = properties.entrySet().iterator(); all.hasNext();) {
      Map.Entry property = (Map.Entry) all.next();
      configuration.put((String) property.getKey(), (String) property.getValue());
    }
    arguments.set("properties", configuration);
    arguments.put("join", join);
    Source.command(path, "buildTable", arguments);
  }

  /** Options of the write that makes the table, or puts one in its place. */
  Map writeOptions(boolean replaces) {
    Map options = Source.privateOptions(path);
    options.putAll(properties);
    options.put("path", path);
    options.put("pydelta.mode", replaces ? "overwrite" : "error");
    options.put("pydelta.partitionBy", list(partitionBy).toString());
    if (clusterBy.length > 0) {
      options.remove("pydelta.partitionBy");
      options.put("pydelta.clusterBy", list(clusterBy).toString());
    }
    if (description != null) options.put("pydelta.description", description);
    if (replaces) {
      options.put("overwriteSchema", "true");
    } else {
      options.put("pydelta.asSelect", "{\"kind\": \"create\"}");
    }
    options.put("partitionOverwriteMode", "static");
    return options;
  }

  /** Those that are no table's of Delta: an entry of a catalog may keep them. */
  static Map others(Map properties) {
    Map found = new HashMap();
    for (Iterator all = properties.entrySet().iterator(); all.hasNext();) {
      Map.Entry property = (Map.Entry) all.next();
      String name = (String) property.getKey();
      if (!isDeltas(name) && !RESERVED.contains(name) && !name.startsWith("option.")) found.put(name, property.getValue());
    }
    return found;
  }

  private static void refuseOthers(Map properties) {
    Map others = others(properties);
    if (others.isEmpty()) return;
    throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "The table property " + others.keySet().iterator().next()
        + " is not one of Delta's, whose names begin with 'delta.'; nothing was created. Leave it out.");
  }

  static Map deltas(Map properties) {
    Map found = new HashMap();
    for (Iterator all = properties.entrySet().iterator(); all.hasNext();) {
      Map.Entry property = (Map.Entry) all.next();
      if (isDeltas((String) property.getKey())) found.put(property.getKey(), property.getValue());
    }
    return found;
  }

  private static boolean isDeltas(String name) {
    return name.toLowerCase(Locale.ROOT).startsWith("delta.");
  }

  private static StructType structType(Column[] columns) {
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < fields.length; i++) {
      Column column = columns[i];
      fields[i] = new StructField(column.name(), column.dataType(), column.nullable(), metadata(column));
    }
    return Columns.stored(new StructType(fields));
  }

  /** Of a column in a table's schema: the protocol's keys (Identity Columns, Default Columns, Generated Columns). */
  private static Metadata metadata(Column column) {
    MetadataBuilder metadata = new MetadataBuilder();
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

  private static void addAll(NamedReference[] references, List names) {
    for (int i = 0; i < references.length; i++) names.add(path(references[i].fieldNames()));
  }

  /** As joined_name of delta_py/types/names.py. */
  private static String path(String[] names) {
    String[] parts = names.clone();
    for (int i = 0; i < parts.length; i++) {
      if (parts[i].indexOf('.') >= 0 || parts[i].indexOf('`') >= 0) parts[i] = Columns.quoted(parts[i]);
    }
    return String.join(".", parts);
  }

  private static String name(NamedReference reference) {
    return String.join(".", reference.fieldNames());
  }

  private static ArrayNode list(String[] texts) {
    ArrayNode list = JsonNodeFactory.instance.arrayNode();
    for (int i = 0; i < texts.length; i++) list.add(texts[i]);
    return list;
  }
}
