package pydelta.tables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.PruneScans;
import scala.jdk.javaapi.CollectionConverters;

/** The requests of the catalogs to the Python source `pydelta` of the active session. */
public class Source {
  public static final String FORMAT = "pydelta";

  private static final String[] STORES = {
      "spark.pydelta.", "spark.hadoop.", "spark.delta.logStore.", "spark.io.delta.storage.", "io.delta.storage."};
  private static final String CATALOGS = "spark.sql.catalog.";

  private Source() {}

  /** The active session. */
  public static SparkSession session() {
    return SparkSession$.MODULE$.active();
  }

  public static PruneScans rule() {
    PruneScans rule = PruneScans.of(session());
    if (rule == null) throw new IllegalStateException("pydelta is not registered in this session: call register(spark)");
    return rule;
  }

  /**
   * Opens the table at the path of the options, pinned to the version that they name. It takes one call of Python, as `load`
   * does.
   *
   * entry: of the session catalog; null for a table that was named by its path. entryText: the entry's options as JSON, for the
   * metadata of the columns; null to leave them out.
   */
  public static SourceTable open(String name, Map<String, String> options, Table entry, String entryText) {
    var all = new HashMap<>(options);
    all.put("pydelta.facts", "true");
    all.putAll(privateOptions(options.get("path")));
    var sourceOptions = new CaseInsensitiveStringMap(all);
    PythonDataSourceV2 source = rule().open(sourceOptions);
    StructType schema = source.inferSchema(sourceOptions);
    StructType columns = TableFacts.without(schema);
    if (entryText != null) columns = Columns.ofEntry(columns, ((V1Table) entry).v1Table().schema(), entryText);
    Map<String, String> properties = entry == null ? Map.of() : entry.properties();
    return new SourceTable(source, name, columns, TableFacts.of(schema, options.get("path")), all, properties);
  }

  /** Names in a catalog, as a list of texts; no table is opened. view: of source/catalog_views.py. */
  public static JsonNode catalogNames(String url, String view) {
    Map<String, String> options = privateOptions(url);
    options.put("path", url);
    options.put("pydelta.catalogview", view);
    StructType schema = rule().open(new CaseInsensitiveStringMap(options)).inferSchema(new CaseInsensitiveStringMap(options));
    String text = schema.fields()[0].metadata().getString("pydelta.names");
    return Errors.undeclared(() -> new ObjectMapper().readTree(text));
  }

  /** Runs a command of source/commands.py: a write without rows, as over Spark Connect. */
  public static void command(String path, String name, ObjectNode arguments) {
    command(path, name, arguments, Map.of());
  }

  /** storageOptions: of the table, besides those of the session. */
  static void command(String path, String name, ObjectNode arguments, Map<String, String> storageOptions) {
    ObjectNode command = JsonNodeFactory.instance.objectNode();
    command.put("name", name);
    command.set("arguments", arguments);
    Map<String, String> options = privateOptions(path);
    options.put("path", path);
    options.put("pydelta.command", command.toString());
    options.putAll(storageOptions);
    session().range(0).toDF().write().format(FORMAT).mode("append").options(options).save();
  }

  public static PythonDataSourceV2 source() {
    var source = new PythonDataSourceV2();
    source.setShortName(FORMAT);
    return source;
  }

  /** The session's settings, and the nonce that lets the source accept private options. */
  public static Map<String, String> privateOptions(String path) {
    PruneScans rule = rule();
    var options = new HashMap<String, String>();
    options.put("pydelta.told", settings(rule, path));
    options.put("pydelta.nonce", rule.told("nonce"));
    return options;
  }

  /**
   * As options/catalog_session_settings.py reads them. Settings of object stores and of catalogs are included only for URLs.
   */
  private static String settings(PruneScans rule, String path) {
    SparkSession session = session();
    ObjectNode confs = JsonNodeFactory.instance.objectNode();
    Map<String, String> all = CollectionConverters.asJava(session.conf().getAll());
    for (String name : rule.told("settings").split("\n")) {
      if (name.endsWith(".")) {
        putAll(confs, all, name);
        continue;
      }
      String value = session.conf().get(name, null);
      if (value != null && !value.equals("<undefined>")) confs.put(name, value);
    }
    ObjectNode hadoop = JsonNodeFactory.instance.objectNode();
    if (hasScheme(path)) {
      putAll(confs, all, STORES);
      if (isInCatalog(path)) putAll(confs, all, CATALOGS);
      putAll(hadoop, session.sessionState().newHadoopConf().getPropsWithPrefix(""), "fs.");
    }
    ObjectNode settings = JsonNodeFactory.instance.objectNode();
    settings.set("confs", confs);
    settings.set("hadoop", hadoop);
    settings.put("parallelism", session.sparkContext().defaultParallelism());
    return settings.toString();
  }

  private static void putAll(ObjectNode target, Map<String, String> settings, String... prefixes) {
    settings.forEach((name, value) -> {
      if (Arrays.stream(prefixes).anyMatch(name::startsWith)) target.put(name, value);
    });
  }

  /** As is_name_in_catalog of delta_py/storage/addresses.py. */
  static boolean isInCatalog(String path) {
    return path.matches("(?is)(?:unity|uc)://.*");
  }

  static boolean hasScheme(String path) {
    return path.matches("(?s)[A-Za-z][A-Za-z0-9+.-]*://.*");
  }
}
