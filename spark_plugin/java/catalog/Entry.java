package pydelta.catalog;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchDatabaseException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import pydelta.rule.PruneScans;
import pydelta.tables.Errors;
import pydelta.tables.Options;
import pydelta.tables.Source;
import pydelta.tables.SourceTable;
import scala.Option;

/**
 * The entry of one of our tables in the session catalog: where the table is, and the options of CREATE TABLE.
 *
 * ident: for messages. found: the table as the session catalog gives it.
 */
record Entry(Identifier ident, Table found) {
  /**
   * The name under which Uploaded notes for the rule that a client of Spark Connect sees an entry only in the columns of its
   * table.
   */
  static final String TOLD = "entriesInColumns";

  private static final String OPTION = "option.";
  private static final Pattern FILE = Pattern.compile("file:(?://(?=/))?(/(?!/).*)", Pattern.DOTALL);

  /** found: as the session catalog gives it. Tables that delta-spark has entered are ours if delta-spark is absent. */
  static boolean isOurs(Table found) {
    return isOurs(found.properties().get("provider"));
  }

  static boolean isOurs(String provider) {
    if (Source.FORMAT.equalsIgnoreCase(provider)) return true;
    if (!"delta".equalsIgnoreCase(provider)) return false;
    PruneScans rule = PruneScans.of(Source.session());
    return rule != null && "true".equals(rule.told("deltaNames"));
  }

  /** The path of a table that may be written. Raises if the name stands for a part of the table, or an older version. */
  String writablePath() {
    Map<String, String> options = options();
    if (options.size() > 1) {
      throw Errors.unsupported(called("spark_catalog", ident) + " stands for a table read with options; nothing was replaced. "
          + "Replace it by its path " + options.get("path") + ".");
    }
    return options.get("path");
  }

  static String called(String catalog, Identifier ident) {
    var name = new StringBuilder(catalog);
    for (String part : ident.namespace()) name.append(".").append(part);
    return name.append(".").append(ident.name()).toString();
  }

  /**
   * What the session's catalog has under a name, for dataframe_api/catalog.py, as JSON; null for nothing. database: null for the
   * current one, in which temporary views come first.
   */
  static String described(SparkSession session, String database, String table)
      throws NoSuchTableException, NoSuchDatabaseException {
    SessionCatalog catalog = session.sessionState().catalog();
    var name = new TableIdentifier(table, Option.apply(database));
    ObjectNode said = JsonNodeFactory.instance.objectNode();
    if (database == null && catalog.isTempView(name)) return said.put("type", "VIEW").toString();
    boolean hasDatabase = catalog.databaseExists(database == null ? catalog.getCurrentDatabase() : database);
    if (!hasDatabase || !catalog.tableExists(name)) return null;
    var found = new V1Table(catalog.getTableMetadata(name));
    String provider = found.properties().get("provider");
    String location = found.properties().get("location");
    said.put("type", found.v1Table().tableType().name());
    said.put("provider", provider);
    said.put("tracksPartitions", found.v1Table().tracksPartitionsInCatalog());
    if (location == null) return said.toString();
    Map<String, String> options = Source.FORMAT.equalsIgnoreCase(provider) ? new Entry(null, found).options() : new HashMap<>();
    options.put("path", localPath(location));
    said.put("options", json(options));
    said.put("columns", found.v1Table().schema().json());
    return said.toString();
  }

  /** Opens the table. option, value: of a version; null for the newest. */
  SourceTable open(String option, String value) {
    Map<String, String> options = options();
    if (option != null && (options.containsKey("versionasof") || options.containsKey("timestampasof"))) {
      throw Errors.of("InvalidOptionError", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", called("spark_catalog", ident)
          + " stands for a table at one version, and the statement names another. Name the table by its path.");
    }
    String text = isTold() ? json(options) : null;
    if (option != null) options.put(option.toLowerCase(), value);
    return Source.open(called("spark_catalog", ident), options, found, text);
  }

  /** Opens the changes of rows. range: options of reads, by lower-case names. */
  SourceTable changes(Map<String, String> range) {
    Map<String, String> options = options();
    options.putAll(range);
    return Source.open(called("spark_catalog", ident), options, null, null);
  }

  private static boolean isTold() {
    return "true".equals(Source.rule().told(TOLD));
  }

  /** The options of reads, by lower-case names, with the path. */
  private Map<String, String> options() {
    var options = new HashMap<String, String>();
    found.properties().forEach((property, value) -> {
      String name = property.toLowerCase();
      if (name.startsWith(OPTION)) options.put(name.substring(OPTION.length()), value);
    });
    Options.refusePrivate(options);
    options.put("path", localPath(found.properties().get("location")));
    return options;
  }

  static String json(Map<String, String> options) {
    ObjectNode text = JsonNodeFactory.instance.objectNode();
    options.forEach(text::put);
    return text.toString();
  }

  /** As local_path of options/read_options.py: Spark writes `file:/a b%c` without percent-encoding, which a URL would have. */
  static String localPath(String location) {
    Matcher file = FILE.matcher(location);
    return file.matches() ? file.group(1) : location;
  }
}
