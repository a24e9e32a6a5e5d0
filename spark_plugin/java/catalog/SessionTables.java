package pydelta.catalog;

import java.net.URI;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.internal.SQLConf;
import pydelta.tables.Alteration;
import pydelta.tables.Errors;
import pydelta.tables.NewTable;
import pydelta.tables.Source;
import pydelta.tables.SourceTable;
import pydelta.tables.StagedSource;

/**
 * Spark's session catalog. It opens our tables at the paths in their entries, at the version that a statement names, with the
 * columns of the log. Spark's own catalog does everything else.
 */
public class SessionTables extends SessionChanges {
  public SessionTables() {}

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Table table = super.loadTable(ident);
    return Entry.isOurs(table) ? new Entry(ident, table).open(null, null) : BuiltIn.resolved(this, ident, table);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    Table table = super.loadTable(ident);
    return Entry.isOurs(table) ? new Entry(ident, table).open("versionAsOf", version) : super.loadTable(ident, version);
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    Table table = super.loadTable(ident);
    if (!Entry.isOurs(table)) return super.loadTable(ident, micros);
    return new Entry(ident, table).open("timestampAsOf", Travel.text(micros));
  }

  SourceTable changes(Identifier ident, Map<String, String> range) throws NoSuchTableException {
    return new Entry(ident, super.loadTable(ident)).changes(range);
  }

  /** Whether a name is that of one of our tables. */
  boolean isOurs(Identifier ident) throws NoSuchTableException {
    return Entry.isOurs(super.loadTable(ident));
  }

  /** The table as Spark's own catalog loads it. */
  Table asEntered(Identifier ident) throws NoSuchTableException {
    return super.loadTable(ident);
  }

  /** For our tables, only a change of the location is a change of the entry. */
  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    Table entered = super.loadTable(ident);
    if (!Entry.isOurs(entered) || areOfEntry(changes)) return super.alterTable(ident, changes);
    new Alteration(called(ident), changes).carryOut(new Entry(ident, entered).writablePath());
    return loadTable(ident);
  }

  private static boolean areOfEntry(TableChange[] changes) {
    return Arrays.stream(changes)
        .allMatch(change -> change instanceof TableChange.SetProperty set && "location".equals(set.property()));
  }

  // ---------------------------------------------------------------- making tables

  public Set<TableCatalogCapability> capabilities() {
    var all = new HashSet<>(super.capabilities());
    all.addAll(NewTable.capabilities());
    return all;
  }

  /**
   * Makes the table first and enters its name after that: if entering fails, the table is complete. A statement without columns
   * may name an existing table. If it has options of reads, Spark enters it, and tells the source nothing about the session.
   */
  public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isOurs(properties) || (columns.length == 0 && hasOptions(properties))) {
      refuseGenerated(ident, columns);
      return super.createTable(ident, columns, partitions, properties);
    }
    String location = properties.get("location");
    if (columns.length == 0 && isThere(location)) {
      if (partitions.length > 0 || !NewTable.deltas(properties).isEmpty()) {
        return super.createTable(ident, columns, partitions, properties);  // it compares partitions, and refuses properties
      }
      new Entering(ident.namespace()[0], ident.name(), Entry.localPath(location), false, properties).run();
      return null;
    }
    NewTable made = made(ident, columns, partitions, properties);
    Entering entering = entering(ident, made, properties);
    made.build("create", location != null);
    entering.run();
    return null;
  }

  @Deprecated
  public StagedTable stageCreate(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isOurs(properties)) return other(ident, columns, partitions, properties, false);
    NewTable made = made(ident, columns, partitions, properties);
    return new StagedSource(called(ident), made, false, false, entering(ident, made, properties));
  }

  @Deprecated
  public StagedTable stageReplace(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchTableException, NoSuchNamespaceException {
    return replaced(ident, columns, partitions, properties, true);
  }

  @Deprecated
  public StagedTable stageCreateOrReplace(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    return Errors.undeclared(() -> replaced(ident, columns, partitions, properties, false));
  }

  private StagedTable replaced(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties, boolean mustExist)
      throws NoSuchTableException, NoSuchNamespaceException {
    Table present = tableExists(ident) ? super.loadTable(ident) : null;
    boolean isOurs = present == null ? isOurs(properties) : Entry.isOurs(present);
    if (isOurs != isOurs(properties)) {
      throw Errors.unsupported(called(ident) + " is a table of " + present.properties().get("provider") + ", and would become "
          + "one of " + provider(properties) + "; nothing was replaced. Drop it first, or use another name.");
    }
    if (!isOurs) return Errors.undeclared(() -> other(ident, columns, partitions, properties, present != null));
    if (present == null) {
      NewTable made = made(ident, columns, partitions, properties);
      return new StagedSource(called(ident), made, true, mustExist, entering(ident, made, properties));
    }
    String path = new Entry(ident, present).writablePath();
    String location = properties.get("location");
    if (location != null && !Entry.localPath(location).equals(path)) {
      throw Errors.of("InvalidOptionError", "DELTA_TABLE_LOCATION_MISMATCH", called(ident) + " is at " + path + " and not at "
          + location + "; nothing was replaced. Leave the location out.");
    }
    return new StagedSource(called(ident), new NewTable(path, columns, partitions, properties, false), true, mustExist, null);
  }

  /** Raises for columns that Spark's own catalog would drop from tables of other formats without an error. */
  private void refuseGenerated(Identifier ident, Column[] columns) {
    for (Column column : columns) {
      String what = column.generationExpression() != null ? "generated columns"
          : column.identityColumnSpec() != null ? "identity columns" : null;
      if (what != null) {
        throw Errors.unchecked(QueryCompilationErrors$.MODULE$.unsupportedTableOperationError(this, ident, what));
      }
    }
  }

  /** Stages a table of another format. If it is refused, nothing is dropped. */
  private StagedTable other(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties, boolean isThere)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    refuseGenerated(ident, columns);
    if (isThere) dropTable(ident);
    Table made = super.createTable(ident, columns, partitions, properties);
    Table table = made == null ? Errors.undeclared(() -> loadTable(ident)) : made;
    return new StagedOther(table, () -> dropTable(ident));
  }

  private static boolean hasOptions(Map<String, String> properties) {
    return properties.keySet().stream().anyMatch(name -> name.startsWith("option."));
  }

  /** location: null for none. */
  private static boolean isThere(String location) {
    if (location == null) return false;
    try {
      Source.open(location, Map.of("path", Entry.localPath(location)), null, null);
      return true;
    } catch (Exception error) {  // Scala throws the checked AnalysisException undeclared
      if (Errors.isTableNotFound(error)) return false;
      throw Errors.unchecked(error);
    }
  }

  private static boolean isOurs(Map<String, String> properties) {
    return Entry.isOurs(provider(properties));
  }

  /** The provider that a statement names, or else Spark's default. */
  static String provider(Map<String, String> properties) {
    String provider = properties.get("provider");
    return provider == null ? SQLConf.get().defaultDataSourceName() : provider;
  }

  String called(Identifier ident) {
    return Entry.called(name(), ident);
  }

  private NewTable made(Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    String location = properties.get("location");
    String path = location == null ? defaultPath(ident) : Entry.localPath(location);
    return new NewTable(path, columns, partitions, properties, true);
  }

  private String defaultPath(Identifier ident) throws NoSuchNamespaceException {
    URI location = URI.create(loadNamespaceMetadata(ident.namespace()).get("location"));  // the location of a table is not a URI
    String database = Entry.localPath(CatalogUtils.URIToString(location));
    String table = SQLConf.get().caseSensitiveAnalysis() ? ident.name() : ident.name().toLowerCase(Locale.ROOT);
    return database + (database.endsWith("/") ? "" : "/") + table;
  }

  /** Call this before the table is made. */
  private static Entering entering(Identifier ident, NewTable made, Map<String, String> properties) {
    boolean isManaged = properties.get("location") == null && Entering.isFree(Source.session(), made.path());
    return new Entering(ident.namespace()[0], ident.name(), made.path(), isManaged, properties);
  }
}
