package pydelta.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * ALTER TABLE as Spark hands it to a catalog, carried out as one command (source/commands.py): one commit, or none.
 *
 * Spark's analyzer has looked at names and types by then. Constraints are not here: somebody has to look at the rows.
 */
class Alteration {
  private final String name;
  private final TableChange[] changes;

  /** name: of the table, for messages. */
  Alteration(String name, TableChange[] changes) {
    this.name = name;
    this.changes = changes;
  }

  void carryOut(String path) {
    if (changes.length == 0) return;
    if (are(TableChange.SetProperty.class)) setProperties(path);
    else if (are(TableChange.RemoveProperty.class)) unsetProperties(path);
    else if (are(TableChange.AddColumn.class)) addColumns(path);
    else if (are(TableChange.DeleteColumn.class)) dropColumns(path);
    else if (are(TableChange.RenameColumn.class) && changes.length == 1) renameColumn(path, (TableChange.RenameColumn) changes[0]);
    else if (are(TableChange.ClusterBy.class) && changes.length == 1) clusterBy(path, (TableChange.ClusterBy) changes[0]);
    else if (replacesColumns()) replaceColumns(path);
    else changeColumns(path);
  }

  /** REPLACE COLUMNS: Spark drops them all, and adds the new ones. */
  private boolean replacesColumns() {
    int dropped = 0;
    while (dropped < changes.length && changes[dropped] instanceof TableChange.DeleteColumn) dropped++;
    for (int i = dropped; i < changes.length; i++) {
      if (!(changes[i] instanceof TableChange.AddColumn) || ((TableChange.AddColumn) changes[i]).fieldNames().length != 1) return false;
    }
    return dropped > 0;
  }

  private boolean are(Class kind) {
    for (int i = 0; i < changes.length; i++) {
      if (!kind.isInstance(changes[i])) return false;
    }
    return true;
  }

  private static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  private static ArrayNode array() {
    return JsonNodeFactory.instance.arrayNode();
  }

  // ---------------------------------------------------------------- properties

  private void setProperties(String path) {
    ObjectNode properties = object();
    for (int i = 0; i < changes.length; i++) {
      TableChange.SetProperty change = (TableChange.SetProperty) changes[i];
      if (change.property().equals("location")) {
        throw Errors.of("UnsupportedOperationError", "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER", "SET LOCATION of " + name
            + ": a Delta table is where its log is; nothing was changed. Enter the table at the other place under a name of its own: "
            + "CREATE TABLE ... USING pydelta LOCATION '...'.");
      }
      properties.put(change.property(), change.value());
    }
    ObjectNode arguments = object();
    arguments.set("properties", properties);
    Source.command(path, "setProperties", arguments);
  }

  /** Spark does not hand over whether IF EXISTS was said. */
  private void unsetProperties(String path) {
    ArrayNode names = array();
    for (int i = 0; i < changes.length; i++) names.add(((TableChange.RemoveProperty) changes[i]).property());
    ObjectNode arguments = object();
    arguments.set("names", names);
    arguments.put("if_exists", true);
    Source.command(path, "unsetProperties", arguments);
  }

  private static void clusterBy(String path, TableChange.ClusterBy change) {
    ArrayNode columns = array();
    for (int i = 0; i < change.clusteringColumns().length; i++) columns.add(dotted(change.clusteringColumns()[i].fieldNames()));
    ObjectNode arguments = object();
    arguments.set("columns", columns);
    Source.command(path, "clusterBy", arguments);
  }

  // ---------------------------------------------------------------- columns

  private void addColumns(String path) {
    ArrayNode columns = array();
    for (int i = 0; i < changes.length; i++) {
      TableChange.AddColumn change = (TableChange.AddColumn) changes[i];
      ObjectNode column = named(change.fieldNames());
      column.put("schema", Columns.schema(change.dataType(), change.isNullable(), change.comment()));
      String text = Columns.defaultOf(change.defaultValue());
      if (text != null) column.put("default", text);
      place(column, change.position());
      columns.add(column);
    }
    ObjectNode arguments = object();
    arguments.set("columns", columns);
    Source.command(path, "addColumns", arguments);
  }

  private void dropColumns(String path) {
    ArrayNode names = array();
    boolean ifExists = true;
    for (int i = 0; i < changes.length; i++) {
      TableChange.DeleteColumn change = (TableChange.DeleteColumn) changes[i];
      names.add(dotted(change.fieldNames()));
      ifExists = ifExists && change.ifExists().booleanValue();
    }
    ObjectNode arguments = object();
    arguments.set("names", names);
    arguments.put("if_exists", ifExists);
    Source.command(path, "dropColumns", arguments);
  }

  private void replaceColumns(String path) {
    List fields = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (!(changes[i] instanceof TableChange.AddColumn)) continue;
      TableChange.AddColumn change = (TableChange.AddColumn) changes[i];
      if (change.defaultValue() != null) refuse();
      fields.add(Columns.field(change.fieldNames()[0], change.dataType(), change.isNullable(), change.comment()));
    }
    ObjectNode arguments = object();
    arguments.put("schema", Columns.stored(new StructType((StructField[]) fields.toArray(new StructField[0]))).json());
    Source.command(path, "replaceColumns", arguments);
  }

  private static void renameColumn(String path, TableChange.RenameColumn change) {
    ObjectNode arguments = named(change.fieldNames());
    arguments.put("new_name", change.newName());
    Source.command(path, "renameColumn", arguments);
  }

  /** What is changed of a column stands together. */
  private void changeColumns(String path) {
    Map columns = new LinkedHashMap();
    for (int i = 0; i < changes.length; i++) {
      if (!(changes[i] instanceof TableChange.ColumnChange)) refuse();
      String[] parts = ((TableChange.ColumnChange) changes[i]).fieldNames();
      ObjectNode column = (ObjectNode) columns.get(dotted(parts));
      if (column == null) column = named(parts);
      columns.put(dotted(parts), column);
      change(column, changes[i]);
    }
    ObjectNode arguments = object();
    ArrayNode list = array();
    Object[] all = columns.values().toArray();
    for (int i = 0; i < all.length; i++) list.add((ObjectNode) all[i]);
    arguments.set("changes", list);
    Source.command(path, "changeColumns", arguments);
  }

  private void change(ObjectNode column, TableChange change) {
    if (change instanceof TableChange.UpdateColumnType) {
      DataType kind = ((TableChange.UpdateColumnType) change).newDataType();
      column.put("schema", Columns.schema(kind, true, null));
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      column.put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
    } else if (change instanceof TableChange.UpdateColumnComment) {
      column.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    } else if (change instanceof TableChange.UpdateColumnPosition) {
      place(column, ((TableChange.UpdateColumnPosition) change).position());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      changeDefault(column, (TableChange.UpdateColumnDefaultValue) change);
    } else {
      refuse();
    }
  }

  private static void changeDefault(ObjectNode column, TableChange.UpdateColumnDefaultValue change) {
    String text = change.newCurrentDefault() == null ? null : change.newCurrentDefault().getSql();
    if (text == null || text.isEmpty()) column.put("drop_default", true);
    else column.put("default", text);
  }

  private void refuse() {
    throw Errors.unsupported("This ALTER TABLE of " + name + " is not carried out by Spark's catalogs; nothing was changed. Use spark.sql "
        + "of Python in a registered classic session, or the methods of DeltaTable.");
  }

  private static void place(ObjectNode column, TableChange.ColumnPosition position) {
    if (position == null) return;
    if (position instanceof TableChange.After) column.put("after", ((TableChange.After) position).column());
    else column.put("first", true);
  }

  private static ObjectNode named(String[] parts) {
    ObjectNode column = object();
    column.put("name", dotted(parts));
    return column;
  }

  private static String dotted(String[] parts) {
    String[] quoted = new String[parts.length];
    for (int i = 0; i < parts.length; i++) quoted[i] = Columns.quoted(parts[i]);
    return String.join(".", quoted);
  }
}
