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
 * ident: the table's name, for messages. entered: the table as the session catalog returns it.
 */
record Entry(Identifier ident, Table entered) {
  /**
   * The key of a setting of the rule: a client of Spark Connect reads a table's entry only from the metadata of the table's
   * columns.
   */
  static final String ENTRIES_IN_COLUMNS = "entriesInColumns";

  private static final String OPTION = "option.";
  private static final Pattern FILE = Pattern.compile("file:(?://(?=/))?(/(?!/).*)", Pattern.DOTALL);

  /** Whether the table is one of pydelta. Tables that delta-spark has entered are ours if delta-spark is absent. */
  static boolean isOurs(Table entered) {
    return isOurs(entered.properties().get("provider"));
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
    ObjectNode description = JsonNodeFactory.instance.objectNode();
    if (database == null && catalog.isTempView(name)) return description.put("type", "VIEW").toString();
    boolean hasDatabase = catalog.databaseExists(database == null ? catalog.getCurrentDatabase() : database);
    if (!hasDatabase || !catalog.tableExists(name)) return null;
    var entered = new V1Table(catalog.getTableMetadata(name));
    String provider = entered.properties().get("provider");
    String location = entered.properties().get("location");
    description.put("type", entered.v1Table().tableType().name());
    description.put("provider", provider);
    description.put("tracksPartitions", entered.v1Table().tracksPartitionsInCatalog());
    if (location == null) return description.toString();
    Map<String, String> options = Source.FORMAT.equalsIgnoreCase(provider) ? new Entry(null, entered).options() : new HashMap<>();
    options.put("path", localPath(location));
    description.put("options", json(options));
    description.put("columns", entered.v1Table().schema().json());
    return description.toString();
  }

  /** Opens the table. option, value: of a version; null for the newest. */
  SourceTable open(String option, String value) {
    Map<String, String> options = options();
    if (option != null && (options.containsKey("versionasof") || options.containsKey("timestampasof"))) {
      throw Errors.of("InvalidOptionError", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", called("spark_catalog", ident)
          + " stands for a table at one version, and the statement names another. Name the table by its path.");
    }
    String text = hasEntriesInColumns() ? json(options) : null;
    if (option != null) options.put(option.toLowerCase(), value);
    return Source.open(called("spark_catalog", ident), options, entered, text);
  }

  /** Opens the changes of rows. range: options of reads, by lower-case names. */
  SourceTable changes(Map<String, String> range) {
    Map<String, String> options = options();
    options.putAll(range);
    return Source.open(called("spark_catalog", ident), options, null, null);
  }

  private static boolean hasEntriesInColumns() {
    return "true".equals(Source.rule().told(ENTRIES_IN_COLUMNS));
  }

  /** The options of reads, by lower-case names, with the path. */
  private Map<String, String> options() {
    var options = new HashMap<String, String>();
    entered.properties().forEach((property, value) -> {
      String name = property.toLowerCase();
      if (name.startsWith(OPTION)) options.put(name.substring(OPTION.length()), value);
    });
    Options.refusePrivate(options);
    options.put("path", localPath(entered.properties().get("location")));
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
