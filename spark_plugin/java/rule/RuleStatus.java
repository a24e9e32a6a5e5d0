package pydelta.rule;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import pydelta.messages.KeptFiles;
import pydelta.messages.ReadPlan;

/** What the rule has done in a session, by road. The first time that it leaves a plan as it was, it logs that. */
public class RuleStatus {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private static final int MOST_REMEMBERED = 1000;

  private static final int MOST_SCANS = 20;

  /** The use of each road. */
  private final Map<String, Use> uses = new LinkedHashMap<>();
  /** The last scans that were read, as JSON, by the ids of their plans. */
  private final Map<String, String> scans = new LinkedHashMap<>();
  private KeptFiles lastScan = null;
  /** For the path of each table, the number of scans that compared each column, which is JSON of PredicateJson. */
  private final Map<String, Map<String, Long>> comparedColumns = new LinkedHashMap<>();

  /** The use of one road. reason: why it was skipped the last time. error: the reason, if that was an error. */
  private static class Use {
    long used = 0;
    long skipped = 0;
    String reason = null;
    String error = null;
  }

  private Use use(String road) {
    return uses.computeIfAbsent(road, each -> new Use());
  }

  public synchronized void used(String road, int count) {
    use(road).used += count;
  }

  public synchronized void used(String road) {
    used(road, 1);
  }

  /** A scan might have taken the road. why: null if it is not known. */
  public synchronized void skipped(String road, String why) {
    Use use = use(road);
    use.skipped++;
    if (why != null) use.reason = why;
  }

  /** The road was not taken because something failed. The first time `warning` is logged, unless it is null. */
  public synchronized void failed(String road, Throwable error, String warning) {
    Use use = use(road);
    if (warning != null && use.error == null) LOG.warn(warning);
    LOG.debug("The road " + road + " was not taken", error);
    use.skipped++;
    use.error = error.toString();
    use.reason = use.error;
  }

  public void backedOff(Throwable error) {
    failed(Switch.PRUNING, error, "A query is read without column pruning: " + error + ". Its rows are right, but all columns "
        + "and files of the tables are read; the read options `columns` and `filter` prune by hand. Later queries are only "
        + "counted: see spark_plugin.pruning.status(spark).");
  }

  public void notColumnar(Throwable error) {
    failed(Switch.COLUMNS, error, "The columnar reader cannot be used here: " + error + ". Spark's own reader is used, and gives "
        + "the same rows. Add columns to " + Switch.DISABLE_CONF + " to be rid of this.");
  }

  public void notNative(Throwable error) {
    failed(Switch.PARQUET, error, "The native reader cannot be used here: " + error + ". Files are read in Python, which gives "
        + "the same rows. Add parquet to " + Switch.DISABLE_CONF + " to be rid of this.");
  }

  public void notByDriver(Throwable error) {
    failed(Switch.DRIVER_PLANNING, error, null);
  }

  public void withoutJoins(Throwable error) {
    failed(Switch.JOINS, error, null);
  }

  public void withoutMetadata(Throwable error) {
    failed("metadata-column", error, null);
  }

  /** A scan was planned. Another may take its place before anything is read. */
  public synchronized void planned(KeptFiles kept, ReadPlan plan) {
    lastScan = kept;
    skippedBy(plan, Switch.PARQUET);
    skippedBy(plan, Switch.COLUMNS);
  }

  private void skippedBy(ReadPlan plan, String road) {
    if (plan.whyNot(road) != null) skipped(road, plan.whyNot(road));
  }

  /**
   * One line of `status(spark).scans`; none for a source that names no road. The last road of a scan counts: the driver may read
   * rows after Spark asked for the tasks. kept: null if no files are read.
   */
  public synchronized void took(String scanId, String path, ReadPlan plan, KeptFiles kept) {
    if (plan.road() == null) return;
    scans.remove(scanId);
    scans.put(scanId, "{\"path\": " + quoted(path) + ", \"road\": " + quoted(plan.road()) + ", \"why\": " + quoted(plan.why())
        + ", \"files\": " + (kept == null ? "null" : quoted(kept.toString())) + "}");
    if (scans.size() > MOST_SCANS) scans.remove(scans.keySet().iterator().next());
  }

  /** A scan of the table at a path compares columns, each as JSON of PredicateJson. Only the last tables are remembered. */
  public synchronized void compared(String path, Set<String> columns) {
    Map<String, Long> known = comparedColumns.remove(path);
    Map<String, Long> counts = known == null ? new LinkedHashMap<>() : known;
    comparedColumns.put(path, counts);
    if (comparedColumns.size() > MOST_REMEMBERED) comparedColumns.remove(comparedColumns.keySet().iterator().next());
    for (String column : columns) {
      if (counts.containsKey(column) || counts.size() < MOST_REMEMBERED) counts.merge(column, 1L, Long::sum);
    }
  }

  /** Tables by the paths that users gave: {"/data/t": [[{"column": ["a"]}, 3]]}. */
  synchronized String comparedJson() {
    var tables = new StringJoiner(", ", "{", "}");
    comparedColumns.forEach((path, counts) -> {
      var columns = new StringJoiner(", ", "[", "]");
      counts.forEach((column, count) -> columns.add("[" + column + ", " + count + "]"));
      tables.add(quoted(path) + ": " + columns);
    });
    return tables.toString();
  }

  synchronized String toJson() {
    var roads = new StringJoiner(", ", "[", "]");
    uses.forEach((road, use) -> roads.add("{\"road\": " + quoted(road)
        + ", \"used\": " + use.used + ", \"skipped\": " + use.skipped
        + ", \"last_reason\": " + quoted(use.reason) + ", \"last_error\": " + quoted(use.error) + "}"));
    return "{\"roads\": " + roads + ", \"scans\": " + scans.values()
        + ", \"last_scan\": " + (lastScan == null ? "null" : lastScan.toJson()) + "}";
  }

  private static String quoted(String text) {
    return text == null ? "null" : TextNode.valueOf(text).toString();
  }
}
