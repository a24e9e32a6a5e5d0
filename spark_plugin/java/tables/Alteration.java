package pydelta.tables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructType;

/**
 * ALTER TABLE as Spark hands it to a catalog, carried out as one command (source/commands.py): one commit, or none.
 *
 * Spark's analyzer has checked names and types before. Constraints are not here, since they are checked against the rows.
 */
public class Alteration {
  private final String name;
  private final TableChange[] changes;

  /** name: of the table, for messages. */
  public Alteration(String name, TableChange[] changes) {
    this.name = name;
    this.changes = changes;
  }

  public void carryOut(String path) {
    if (changes.length == 0) return;
    if (are(TableChange.SetProperty.class)) setProperties(path);
    else if (are(TableChange.RemoveProperty.class)) unsetProperties(path);
    else if (are(TableChange.AddColumn.class)) addColumns(path);
    else if (are(TableChange.DeleteColumn.class)) dropColumns(path);
    else if (changes.length == 1 && changes[0] instanceof TableChange.RenameColumn change) renameColumn(path, change);
    else if (changes.length == 1 && changes[0] instanceof TableChange.ClusterBy change) clusterBy(path, change);
    else if (replacesColumns()) replaceColumns(path);
    else changeColumns(path);
  }

  /** REPLACE COLUMNS: Spark drops them all, and adds the new ones. */
  private boolean replacesColumns() {
    return changes[0] instanceof TableChange.DeleteColumn && Arrays.stream(changes)
        .dropWhile(TableChange.DeleteColumn.class::isInstance)
        .allMatch(change -> change instanceof TableChange.AddColumn added && added.fieldNames().length == 1);
  }

  private boolean are(Class<? extends TableChange> kind) {
    return Arrays.stream(changes).allMatch(kind::isInstance);
  }

  /** The changes, all of which are of this kind. */
  private <T extends TableChange> List<T> as(Class<T> kind) {
    return Arrays.stream(changes).map(kind::cast).toList();
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
    for (var change : as(TableChange.SetProperty.class)) {
      if (change.property().equals("location")) {
        throw Errors.of("UnsupportedOperationError", "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER", "SET LOCATION of " + name
            + ": a Delta table is where its log is; nothing was changed. Enter the table at the other place under a name of its "
            + "own: CREATE TABLE ... USING pydelta LOCATION '...'.");
      }
      properties.put(change.property(), change.value());
    }
    Source.command(path, "setProperties", object().set("properties", properties));
  }

  /** Spark does not say whether the statement has IF EXISTS. */
  private void unsetProperties(String path) {
    ArrayNode names = array();
    for (var change : as(TableChange.RemoveProperty.class)) names.add(change.property());
    Source.command(path, "unsetProperties", object().put("if_exists", true).set("names", names));
  }

  private static void clusterBy(String path, TableChange.ClusterBy change) {
    ArrayNode columns = array();
    for (NamedReference column : change.clusteringColumns()) columns.add(dotted(column.fieldNames()));
    Source.command(path, "clusterBy", object().set("columns", columns));
  }

  // ---------------------------------------------------------------- columns

  private void addColumns(String path) {
    ArrayNode columns = array();
    for (var change : as(TableChange.AddColumn.class)) {
      ObjectNode column = named(change.fieldNames());
      column.put("schema", Columns.schema(change.dataType(), change.isNullable(), change.comment()));
      String text = Columns.defaultOf(change.defaultValue());
      if (text != null) column.put("default", text);
      place(column, change.position());
      columns.add(column);
    }
    Source.command(path, "addColumns", object().set("columns", columns));
  }

  private void dropColumns(String path) {
    ArrayNode names = array();
    boolean ifExists = true;
    for (var change : as(TableChange.DeleteColumn.class)) {
      names.add(dotted(change.fieldNames()));
      ifExists = ifExists && change.ifExists();
    }
    Source.command(path, "dropColumns", object().put("if_exists", ifExists).set("names", names));
  }

  private void replaceColumns(String path) {
    var schema = new StructType();
    for (TableChange change : changes) {
      if (!(change instanceof TableChange.AddColumn added)) continue;
      if (added.defaultValue() != null) throw refused();
      schema = schema.add(Columns.field(added.fieldNames()[0], added.dataType(), added.isNullable(), added.comment()));
    }
    Source.command(path, "replaceColumns", object().put("schema", Columns.stored(schema).json()));
  }

  private static void renameColumn(String path, TableChange.RenameColumn change) {
    Source.command(path, "renameColumn", named(change.fieldNames()).put("new_name", change.newName()));
  }

  /** All changes of a column become one change. */
  private void changeColumns(String path) {
    var columns = new LinkedHashMap<String, ObjectNode>();
    for (TableChange change : changes) {
      if (!(change instanceof TableChange.ColumnChange ofColumn)) throw refused();
      change(columns.computeIfAbsent(dotted(ofColumn.fieldNames()), name -> named(ofColumn.fieldNames())), change);
    }
    Source.command(path, "changeColumns", object().set("changes", array().addAll(columns.values())));
  }

  private void change(ObjectNode column, TableChange change) {
    if (change instanceof TableChange.UpdateColumnType update) {
      column.put("schema", Columns.schema(update.newDataType(), true, null));
    } else if (change instanceof TableChange.UpdateColumnNullability update) {
      column.put("nullable", update.nullable());
    } else if (change instanceof TableChange.UpdateColumnComment update) {
      column.put("comment", update.newComment());
    } else if (change instanceof TableChange.UpdateColumnPosition update) {
      place(column, update.position());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue update) {
      changeDefault(column, update);
    } else {
      throw refused();
    }
  }

  private static void changeDefault(ObjectNode column, TableChange.UpdateColumnDefaultValue change) {
    String text = change.newCurrentDefault() == null ? null : change.newCurrentDefault().getSql();
    if (text == null || text.isEmpty()) column.put("drop_default", true);
    else column.put("default", text);
  }

  private RuntimeException refused() {
    return Errors.unsupported("This ALTER TABLE of " + name + " is not carried out by Spark's catalogs; nothing was changed. Use "
        + "spark.sql of Python in a registered classic session, or the methods of DeltaTable.");
  }

  private static void place(ObjectNode column, TableChange.ColumnPosition position) {
    if (position == null) return;
    if (position instanceof TableChange.After after) column.put("after", after.column());
    else column.put("first", true);
  }

  private static ObjectNode named(String[] parts) {
    return object().put("name", dotted(parts));
  }

  private static String dotted(String[] parts) {
    return Arrays.stream(parts).map(Columns::quoted).collect(Collectors.joining("."));
  }
}
