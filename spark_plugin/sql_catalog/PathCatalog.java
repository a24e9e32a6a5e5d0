package pydelta.sql_catalog;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog in which a table's name is its path: pydelta.`/path`. */
public class PathCatalog implements TableCatalog {
  private String name = null;

  public PathCatalog() {}

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
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
    Map options = new HashMap();
    options.put("path", path(ident));
    if (option != null) options.put(option, value);
    return Source.open(called(ident), options, null, null);
  }

  /** The source says better than Spark what is wrong with a path, so loadTable raises its error, and this has to be asked. */
  public boolean tableExists(Identifier ident) {
    try {
      loadTable(ident);
      return true;
    } catch (Exception error) {  // Scala throws the checked AnalysisException unannounced
      if (error instanceof NoSuchTableException || Errors.isTableNotFound(error)) return false;
      throw Errors.unchecked(error);
    }
  }

  /** A name without a slash is none of a path. */
  private static String path(Identifier ident) throws NoSuchTableException {
    boolean isPath = ident.namespace().length == 0 && ident.name().indexOf('/') >= 0;
    if (!isPath) throw new NoSuchTableException(ident);
    return ident.name();
  }

  private String called(Identifier ident) {
    return name + "." + Columns.quoted(ident.name());
  }

  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  // ---------------------------------------------------------------- what a path cannot do

  public Table alterTable(Identifier ident, TableChange... changes) {
    throw Errors.unsupported("ALTER TABLE of " + called(ident)
        + " is not carried out by Spark's catalogs; nothing was changed. Use the methods of DeltaTable.forPath.");
  }

  public boolean dropTable(Identifier ident) {
    throw Errors.unsupported(called(ident) + " names a table by its path, and DROP TABLE would delete its files; nothing was dropped. "
        + "Delete its rows, or its directory.");
  }

  public void renameTable(Identifier from, Identifier to) {
    throw Errors.unsupported(called(from) + " names a table by its path, which cannot be renamed; nothing was changed.");
  }
}
