package pydelta.sql_catalog;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import pydelta.pruning.PruneScans;

/** What the session catalog holds of a table of ours: where it is, and the options that CREATE TABLE gave. */
class Entry {
  private static final String OPTION = "option.";
  private static final Pattern FILE = Pattern.compile("file:(?://(?=/))?(/(?!/).*)", Pattern.DOTALL);

  private final Identifier ident;
  private final Table found;

  private Entry(Identifier ident, Table found) {
    this.ident = ident;
    this.found = found;
  }

  static Entry of(Identifier ident, Table found) {
    return new Entry(ident, found);
  }

  /** found: as the session catalog gives it. Tables that delta-spark has entered are ours where it is absent. */
  static boolean isOurs(Table found) {
    return isOurs((String) found.properties().get("provider"));
  }

  static boolean isOurs(String provider) {
    if (Source.FORMAT.equalsIgnoreCase(provider)) return true;
    if (!"delta".equalsIgnoreCase(provider)) return false;
    PruneScans rule = PruneScans.of(Source.session());
    return rule != null && "true".equals(rule.told("deltaNames"));
  }

  /** Where the table is that may be replaced. Raises where the name stands for a part of it, or an older version. */
  String writablePath() {
    Map options = options();
    if (options.size() > 1) {
      throw Errors.unsupported(called("spark_catalog", ident) + " stands for a table read with options; nothing was replaced. Replace it "
          + "by its path " + options.get("path") + ".");
    }
    return (String) options.get("path");
  }

  static String called(String catalog, Identifier ident) {
    StringBuilder name = new StringBuilder(catalog);
    for (int i = 0; i < ident.namespace().length; i++) name.append(".").append(ident.namespace()[i]);
    return name.append(".").append(ident.name()).toString();
  }

  /** option, value: of a version, null for the newest. */
  SourceTable open(String option, String value) {
    Map options = options();
    if (option != null && (options.containsKey("versionasof") || options.containsKey("timestampasof"))) {
      throw Errors.of("InvalidOptionError", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", called("spark_catalog", ident)
          + " stands for a table at one version, and the statement names another. Name the table by its path.");
    }
    String text = json(options);
    if (option != null) options.put(option.toLowerCase(), value);
    return Source.open(called("spark_catalog", ident), options, found, text);
  }

  /** range: options that ask for the changes of rows, by lower-case names. */
  SourceTable changes(Map range) {
    Map options = options();
    options.putAll(range);
    return Source.open(called("spark_catalog", ident), options, null, null);
  }

  /** By lower-case names, with the path. */
  private Map options() {
    Map options = new HashMap();
    Map properties = found.properties();
    for (Iterator all = properties.entrySet().iterator(); all.hasNext();) {
      Map.Entry property = (Map.Entry) all.next();
      String name = ((String) property.getKey()).toLowerCase();
      if (name.startsWith(OPTION)) options.put(name.substring(OPTION.length()), property.getValue());
    }
    Options.refusePrivate(options);
    options.put("path", localPath((String) properties.get("location")));
    return options;
  }

  static String json(Map options) {
    ObjectNode text = JsonNodeFactory.instance.objectNode();
    for (Iterator all = options.entrySet().iterator(); all.hasNext();) {
      Map.Entry option = (Map.Entry) all.next();
      text.put((String) option.getKey(), (String) option.getValue());
    }
    return text.toString();
  }

  /** As local_path of options/read_options.py: Spark writes `file:/a b%c` without percent-encoding, which a URL would have. */
  static String localPath(String location) {
    Matcher file = FILE.matcher(location);
    return file.matches() ? file.group(1) : location;
  }
}
