package pydelta.catalog;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.statements.TableProcedure;
import pydelta.tables.Alteration;
import pydelta.tables.Columns;
import pydelta.tables.Errors;
import pydelta.tables.NewTable;
import pydelta.tables.Source;
import pydelta.tables.SourceTable;
import pydelta.tables.StagedSource;

/** A catalog in which a table's name is its path: pydelta.`/path`. Its procedures are in the namespace `system`. */
public class PathCatalog extends PathChanges {
  private String name = null;

  public PathCatalog() {}

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    if (options.containsKey(Uploaded.KEY)) Uploaded.prepare(Source.session(), options.get(Uploaded.KEY));
  }

  public String name() {
    return name;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return open(ident, null, null);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return open(ident, "versionAsOf", version);
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    return open(ident, "timestampAsOf", Travel.text(micros));
  }

  private Table open(Identifier ident, String option, String value) throws NoSuchTableException {
    var options = new HashMap<String, String>();
    options.put("path", path(ident));
    if (option != null) options.put(option, value);
    return Source.open(called(ident), options, null, null);
  }

  /**
   * The source says better than Spark what is wrong with a path. So loadTable raises its error, and this method has to catch it.
   */
  public boolean tableExists(Identifier ident) {
    try {
      loadTable(ident);
      return true;
    } catch (Exception error) {  // Scala throws the checked AnalysisException undeclared
      if (error instanceof NoSuchTableException || Errors.isTableNotFound(error)) return false;
      throw Errors.unchecked(error);
    }
  }

  SourceTable changes(Identifier ident, Map<String, String> range) throws NoSuchTableException {
    return TableChanges.byPath(called(ident), path(ident), range);
  }

  String path(Identifier ident) throws NoSuchTableException {
    if (isPath(ident)) return ident.name();
    refuseHidden();
    throw new NoSuchTableException(ident);
  }

  /** A name without a slash is not a path. */
  private static boolean isPath(Identifier ident) {
    return ident.namespace().length == 0 && ident.name().indexOf('/') >= 0;
  }

  /** Raises if there is a database of the catalog's name: Spark looks for a catalog first, so its tables would be hidden. */
  private void refuseHidden() {
    if (!Source.session().sessionState().catalog().databaseExists(name)) return;
    throw Errors.unsupported(name + " is a catalog of pydelta here, in which tables have paths for names, and hides the database "
        + name + ". Write spark_catalog." + name + " in front of its tables"
        + (name.equals(Source.FORMAT) ? "." : ", or set spark.pydelta.deltaNames.enabled to false before register."));
  }

  String called(Identifier ident) {
    return name + "." + Columns.quoted(ident.name());
  }

  public Identifier[] listTables(String[] namespace) {
    refuseHidden();
    return new Identifier[0];
  }

  // ---------------------------------------------------------------- making and changing tables

  public Set<TableCatalogCapability> capabilities() {
    return NewTable.capabilities();
  }

  @Deprecated
  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    NewTable made = made(ident, columns, partitions, properties);
    made.build("create", made.hasLocation());
    return null;  // Spark does not use it
  }

  @Deprecated
  public StagedTable stageCreate(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return new StagedSource(called(ident), made(ident, columns, partitions, properties), false, false, null);
  }

  @Deprecated
  public StagedTable stageReplace(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return new StagedSource(called(ident), made(ident, columns, partitions, properties), true, true, null);
  }

  @Deprecated
  public StagedTable stageCreateOrReplace(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return new StagedSource(called(ident), made(ident, columns, partitions, properties), true, false, null);
  }

  /** Whether a table may have this provider. */
  boolean makes(String provider) {
    return provider.equalsIgnoreCase(Source.FORMAT) || provider.equalsIgnoreCase(name);
  }

  private NewTable made(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    try {
      String path = path(ident);
      String provider = properties.get("provider");
      if (provider != null && !makes(provider)) {
        throw Errors.unsupported(called(ident) + " can be a table of " + Source.FORMAT + " only, not of " + provider
            + "; nothing was created. Leave USING out.");
      }
      return new NewTable(path, columns, partitions, properties, false, locationOption(path, properties.get("location")));
    } catch (NoSuchTableException error) {
      throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", called(ident) + " names no path; nothing was created. A path "
          + "has a slash in it: " + name + ".`/data/sales`.");
    }
  }

  /** The option of writes that says where a new table is to be. location: of the statement; null for none. */
  Map<String, String> locationOption(String path, String location) {
    if (location != null && !Entry.localPath(location).equals(path)) {
      throw Errors.of("InvalidOptionError", "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH", "The table was named by the "
          + "path " + path + ", and its location is " + location + ". Leave one of them out.");
    }
    return Map.of();
  }

  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    new Alteration(called(ident), changes).carryOut(path(ident));
    return loadTable(ident);
  }

  // ---------------------------------------------------------------- procedures

  public UnboundProcedure loadProcedure(Identifier ident) {
    return TableProcedure.load(ident);
  }

  public Identifier[] listProcedures(String[] namespace) {
    return TableProcedure.list(namespace);
  }

  // ---------------------------------------------------------------- what a path cannot do

  public boolean dropTable(Identifier ident) {
    if (!isPath(ident)) refuseHidden();
    throw Errors.unsupported(called(ident) + " names a table by its path, and DROP TABLE would delete its files; nothing was "
        + "dropped. Delete its rows, or its directory.");
  }

  public void renameTable(Identifier from, Identifier to) {
    throw Errors.unsupported(called(from) + " names a table by its path, which cannot be renamed; nothing was changed.");
  }
}
