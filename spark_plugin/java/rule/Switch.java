package pydelta.rule;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a session switches off with the setting `spark.pydelta.disable`: names separated by commas, as `explain` and
 * `status(spark)` show them. roads.py has the same names; messages.json lists them.
 *
 * The older settings, one for each name, still work in this release, and warn once.
 */
public class Switch {
  public static final String DISABLE_CONF = "spark.pydelta.disable";
  /** Roads that are taken wherever they are possible, regardless of the sizes of a scan. */
  public static final String PREFER_CONF = "spark.pydelta.prefer";

  public static final String PRUNING = "pruning";
  public static final String LOG = "log";
  public static final String DRIVER = "driver";
  public static final String PARTIAL = "partial";
  public static final String PARQUET = "parquet";
  public static final String COLUMNS = "columns";
  /** Spark's own way, which cannot be switched off. */
  public static final String ROWS = "rows";
  public static final String ONE_TASK = "one-task";
  public static final String JOINS = "joins";
  public static final String DRIVER_PLANNING = "driver-planning";

  private static final Logger LOG_FILE = LoggerFactory.getLogger("pydelta.pruning");
  private static final String PREFIX = "spark.pydelta.";
  private static final List<Named> NAMES = List.of(
      new Named(PRUNING, "pruning"), new Named(LOG, "logAnswers"), new Named(DRIVER, "driverReads"),
      new Named(PARTIAL, "partialAggregates"), new Named(PARQUET, "nativeReader"), new Named(COLUMNS, "columnarReader"),
      new Named(ONE_TASK, "oneTask"), new Named(JOINS, "joinPlanning"), new Named(DRIVER_PLANNING, "driverPlanning"),
      new Named("connect", "connectClasses"), new Named("sql", "sql"));
  private static final List<String> PREFERABLE = List.of(PARTIAL, PARQUET);
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

  /** olderSetting: the middle of the older setting for the name. */
  private record Named(String name, String olderSetting) {}

  private Switch() {}

  /** Raises if a setting has an unknown name. */
  public static void check() {
    refuseUnknown(DISABLE_CONF, NAMES.stream().map(Named::name).toList());
    refuseUnknown(PREFER_CONF, PREFERABLE);
  }

  public static boolean isOn(String name) {
    if (listed(DISABLE_CONF).contains(name)) return false;
    String text = older(name);
    if (text == null) return true;
    boolean mustSayTrue = name.equals(PARQUET) || name.equals(DRIVER_PLANNING);
    return mustSayTrue ? text.equals("true") || text.equals("auto") : !text.equals("false");
  }

  public static boolean isPreferred(String name) {
    return listed(PREFER_CONF).contains(name) || "true".equals(older(name));
  }

  /** The value of the older setting of a name; null if it is not set. */
  private static String older(String name) {
    String setting = olderSetting(name);
    String text = SQLConf.get().getConfString(setting, null);
    if (text == null) return null;
    if (WARNED.add(setting)) {
      LOG_FILE.warn("The setting " + setting + " is deprecated, and the next release ignores it. Set " + DISABLE_CONF + " to "
          + name + " in the place of false"
          + (PREFERABLE.contains(name) ? ", and " + PREFER_CONF + " to " + name + " in the place of true" : "")
          + "; else leave it out.");
    }
    return text.trim().toLowerCase(Locale.ROOT);
  }

  /** The older setting for a name, which still works in this release. */
  public static String olderSetting(String name) {
    for (Named each : NAMES) {
      if (each.name.equals(name)) return PREFIX + each.olderSetting + ".enabled";
    }
    throw new IllegalStateException(name);
  }

  private static List<String> listed(String setting) {
    String text = SQLConf.get().getConfString(setting, "").trim().toLowerCase(Locale.ROOT);
    return text.isEmpty() ? List.of() : List.of(text.split("\\s*,\\s*", -1));
  }

  private static void refuseUnknown(String setting, List<String> known) {
    for (String name : listed(setting)) {
      if (known.contains(name)) continue;
      throw new IllegalArgumentException(
          setting + " has the unknown name '" + name + "'. It can list: " + String.join(", ", known) + ".");
    }
  }
}
