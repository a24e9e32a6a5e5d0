package pydelta.catalog;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.PruneScans;

/** The Python source `pydelta` of the active session, as the catalogs ask it. */
public class Source {
  static final String FORMAT = "pydelta";

  private static final String[] STORES = {
      "spark.pydelta.", "spark.hadoop.", "spark.delta.logStore.", "spark.io.delta.storage.", "io.delta.storage."};

  private Source() {}

  /** The active session. */
  static SparkSession session() {
    return SparkSession$.MODULE$.active();
  }

  static PruneScans rule() {
    PruneScans rule = PruneScans.of(session());
    if (rule == null) throw new IllegalStateException("pydelta is not registered in this session: call register(spark)");
    return rule;
  }

  /**
   * The table at options' path, pinned to the version that they name: one call of Python, as `load` makes.
   *
   * entry: what the session catalog has of it; null for a table that was named by its path. entryText: the entry's options as JSON,
   * if the columns are to tell them; else null.
   */
  static SourceTable open(String name, Map options, Table entry, String entryText) {
    Map all = new HashMap(options);
    all.put("pydelta.facts", "true");
    all.putAll(privateOptions((String) options.get("path")));
    CaseInsensitiveStringMap told = new CaseInsensitiveStringMap(all);
    PythonDataSourceV2 source = rule().open(told);
    StructType schema = source.inferSchema(told);
    StructType columns = TableFacts.without(schema);
    if (entryText != null) columns = Columns.ofEntry(columns, ((V1Table) entry).v1Table().schema(), entryText);
    Map properties = entry == null ? Collections.EMPTY_MAP : entry.properties();
    return new SourceTable(source, name, columns, TableFacts.of(schema, (String) options.get("path")), all, properties);
  }

  /** A command of source/commands.py: a write without rows, as over Spark Connect. */
  static void command(String path, String name, ObjectNode arguments) {
    ObjectNode command = JsonNodeFactory.instance.objectNode();
    command.put("name", name);
    command.set("arguments", arguments);
    Map options = privateOptions(path);
    options.put("path", path);
    options.put("pydelta.command", command.toString());
    session().range(0).toDF().write().format(FORMAT).mode("append").options(options).save();
  }

  static PythonDataSourceV2 source() {
    PythonDataSourceV2 source = new PythonDataSourceV2();
    source.setShortName(FORMAT);
    return source;
  }

  /** The session's settings and the nonce, beside which the source takes private options. */
  public static Map privateOptions(String path) {
    PruneScans rule = rule();
    Map options = new HashMap();
    options.put("pydelta.told", settings(rule, path));
    options.put("pydelta.nonce", rule.told("nonce"));
    return options;
  }

  /** As options/catalog_session_settings.py reads them. Settings that may be of object stores are told for their paths alone. */
  private static String settings(PruneScans rule, String path) {
    SparkSession session = session();
    ObjectNode confs = JsonNodeFactory.instance.objectNode();
    String[] names = rule.told("settings").split("\n");
    for (int i = 0; i < names.length; i++) {
      if (names[i].endsWith(".")) {
        addAll(confs, session.conf().getAll(), new String[] {names[i]});
        continue;
      }
      String value = session.conf().get(names[i], null);
      if (value != null && !value.equals("<undefined>")) confs.put(names[i], value);
    }
    ObjectNode hadoop = JsonNodeFactory.instance.objectNode();
    if (hasScheme(path)) {
      addAll(confs, session.conf().getAll(), STORES);
      addAll(hadoop, session.sessionState().newHadoopConf().getPropsWithPrefix(""), new String[] {"fs."});
    }
    ObjectNode all = JsonNodeFactory.instance.objectNode();
    all.set("confs", confs);
    all.set("hadoop", hadoop);
    all.put("parallelism", session.sparkContext().defaultParallelism());
    return all.toString();
  }

  private static void addAll(ObjectNode into, scala.collection.immutable.Map settings, String[] prefixes) {
    scala.collection.Iterator all = settings.iterator();
    while (all.hasNext()) {
      scala.Tuple2 setting = (scala.Tuple2) all.next();
      if (startsWith((String) setting._1(), prefixes)) into.put((String) setting._1(), (String) setting._2());
    }
  }

  private static void addAll(ObjectNode into, Map settings, String[] prefixes) {
    for (Iterator all = settings.entrySet().iterator(); all.hasNext();) {
      Map.Entry setting = (Map.Entry) all.next();
      if (startsWith((String) setting.getKey(), prefixes)) into.put((String) setting.getKey(), (String) setting.getValue());
    }
  }

  private static boolean startsWith(String name, String[] prefixes) {
    for (int i = 0; i < prefixes.length; i++) {
      if (name.startsWith(prefixes[i])) return true;
    }
    return false;
  }

  static boolean hasScheme(String path) {
    return path.matches("(?s)[A-Za-z][A-Za-z0-9+.-]*://.*");
  }
}
