package pydelta.rule;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a session has switched off, by the setting `spark.pydelta.disable`: names with commas between them, as `explain` and
 * `status(spark)` show them. roads.py has the same names; messages.json lists them.
 *
 * The older settings, one for each name, still work in this release, and warn once.
 */
public class Switch {
  public static final String DISABLE_CONF = "spark.pydelta.disable";
  /** Roads that are taken wherever they are possible, whatever the sizes of a scan are. */
  public static final String PREFER_CONF = "spark.pydelta.prefer";

  public static final String PRUNING = "pruning";
  public static final String LOG = "log";
  public static final String DRIVER = "driver";
  public static final String PARTIAL = "partial";
  public static final String PARQUET = "parquet";
  public static final String COLUMNS = "columns";
  public static final String ONE_TASK = "one-task";
  public static final String JOINS = "joins";
  public static final String DRIVER_PLANNING = "driver-planning";

  private static final Logger LOG_FILE = LoggerFactory.getLogger("pydelta.pruning");
  private static final String PREFIX = "spark.pydelta.";
  /** Each name, and the middle of the older setting for it. */
  private static final String[][] NAMES = {
    {PRUNING, "pruning"}, {LOG, "logAnswers"}, {DRIVER, "driverReads"}, {PARTIAL, "partialAggregates"}, {PARQUET, "nativeReader"},
    {COLUMNS, "columnarReader"}, {ONE_TASK, "oneTask"}, {JOINS, "joinPlanning"}, {DRIVER_PLANNING, "driverPlanning"},
    {"connect", "connectClasses"}, {"sql", "sql"}
  };
  private static final List PREFERABLE = Arrays.asList(new Object[] {PARTIAL, PARQUET});
  private static final Set WARNED = Collections.synchronizedSet(new HashSet());

  private Switch() {}

  /** Raises for a setting that has an unknown name. */
  public static void check() {
    List names = listed(DISABLE_CONF);
    for (int i = 0; i < names.size(); i++) refuseUnknown(DISABLE_CONF, (String) names.get(i), known());
    List preferred = listed(PREFER_CONF);
    for (int i = 0; i < preferred.size(); i++) refuseUnknown(PREFER_CONF, (String) preferred.get(i), PREFERABLE);
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

  /** What the older setting of a name says; null if nothing. */
  private static String older(String name) {
    String setting = olderSetting(name);
    String text = SQLConf.get().getConfString(setting, null);
    if (text == null) return null;
    if (WARNED.add(setting)) {
      LOG_FILE.warn("The setting " + setting + " is deprecated, and the next release ignores it. Set " + DISABLE_CONF + " to "
          + name + " in the place of false" + (PREFERABLE.contains(name) ? ", and " + PREFER_CONF + " in the place of true" : "")
          + "; else leave it out.");
    }
    return text.trim().toLowerCase(Locale.ROOT);
  }

  private static String olderSetting(String name) {
    for (int i = 0; i < NAMES.length; i++) {
      if (NAMES[i][0].equals(name)) return PREFIX + NAMES[i][1] + ".enabled";
    }
    throw new IllegalStateException(name);
  }

  private static List known() {
    Object[] names = new Object[NAMES.length];
    for (int i = 0; i < names.length; i++) names[i] = NAMES[i][0];
    return Arrays.asList(names);
  }

  private static List listed(String setting) {
    String text = SQLConf.get().getConfString(setting, "").trim().toLowerCase(Locale.ROOT);
    return text.isEmpty() ? Collections.EMPTY_LIST : Arrays.asList((Object[]) text.split("\\s*,\\s*", -1));
  }

  private static void refuseUnknown(String setting, String name, List known) {
    if (known.contains(name)) return;
    StringBuilder names = new StringBuilder();
    for (int i = 0; i < known.size(); i++) names.append(i == 0 ? "" : ", ").append(known.get(i));
    throw new IllegalArgumentException(setting + " has the unknown name '" + name + "'. It can list: " + names + ".");
  }
}
