package pydelta.rule;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import pydelta.scan.ColumnarChoice;
import pydelta.scan.KeptFiles;
import pydelta.scan.NativeChoice;

/** What the rule has done in a session. The first time that it leaves a plan alone it says so in the log. */
public class RuleStatus {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private static final int MOST_REMEMBERED = 1000;

  private long applied = 0;
  private long backedOff = 0;
  private String lastError = null;
  private KeptFiles lastScan = null;
  private long columnar = 0;
  private String columnarError = null;
  private long natively = 0;
  private String nativeError = null;
  private long byDriver = 0;
  private String driverError = null;
  private long answered = 0;
  private String answerError = null;
  private long filtered = 0;
  private String joinError = null;
  private String metadataError = null;
  private long partial = 0;
  private String partialError = null;
  private String oneTaskError = null;
  private long driverReads = 0;
  private String driverReadError = null;
  private long driverWrites = 0;
  private final Map comparedColumns = new LinkedHashMap();

  synchronized void applied(int scans) {
    applied += scans;
  }

  synchronized void backedOff(Throwable error) {
    backedOff++;
    lastError = error.toString();
    if (backedOff == 1) {
      LOG.warn("A query is read without column pruning: " + lastError + ". Its rows are right, but all columns and files of "
          + "the tables are read; the read options `columns` and `filter` prune by hand. Later queries are only counted: see "
          + "spark_plugin.pruning.status(spark).");
    }
    LOG.debug("A query is read without column pruning", error);
  }

  public synchronized void columnar() {
    columnar++;
  }

  public synchronized void notColumnar(Throwable error) {
    if (columnarError == null) {
      LOG.warn("The columnar reader cannot be used here: " + error + ". Spark's own reader is used, and gives the same rows. Set "
          + ColumnarChoice.ENABLED_CONF + " to false to be rid of this.");
      LOG.debug("Why it cannot be used", error);
    }
    columnarError = error.toString();
  }

  public synchronized void nativelyRead() {
    natively++;
  }

  public synchronized void notNative(Throwable error) {
    if (nativeError == null) {
      LOG.warn("The native reader cannot be used here: " + error + ". Files are read in Python, which gives the same rows. Set "
          + NativeChoice.ENABLED_CONF + " to false to be rid of this.");
      LOG.debug("Why it cannot be used", error);
    }
    nativeError = error.toString();
  }

  public synchronized void plannedByDriver() {
    byDriver++;
  }

  public synchronized void notByDriver(Throwable why) {
    driverError = why.toString();
    LOG.debug("A worker has done what the driver's Python did not", why);
  }

  public synchronized void answered() {
    answered++;
  }

  public synchronized void unanswered(Throwable error) {
    answerError = error.toString();
    LOG.debug("The log was not asked, or its answer was not understood", error);
  }

  public synchronized void filtered() {
    filtered++;
  }

  public synchronized void withoutJoins(Throwable error) {
    joinError = error.toString();
    LOG.debug("The planning of a join goes without what the log knows of a table", error);
  }

  synchronized void withoutMetadata(Throwable error) {
    metadataError = error.toString();
    LOG.debug("A table is read without its metadata column", error);
  }

  public synchronized void partially() {
    partial++;
  }

  public synchronized void notPartially(Throwable error) {
    partialError = error.toString();
    LOG.debug("An aggregate reads rows where partial ones would do", error);
  }

  synchronized void notInOneTask(Throwable error) {
    oneTaskError = error.toString();
    LOG.debug("A small query is shuffled where one task would do", error);
  }

  public synchronized void readByDriver() {
    driverReads++;
  }

  public synchronized void notReadByDriver(Throwable error) {
    driverReadError = error.toString();
    LOG.debug("A small query takes a job where the driver could read its rows", error);
  }

  public synchronized void writtenByDriver() {
    driverWrites++;
  }

  public synchronized void planned(KeptFiles kept) {
    lastScan = kept;
  }

  /** A scan of the table at a path compares columns, each as JSON of PredicateJson. The last tables are remembered. */
  public synchronized void compared(String path, Set columns) {
    Map counts = (Map) comparedColumns.remove(path);
    if (counts == null) counts = new LinkedHashMap();
    comparedColumns.put(path, counts);
    if (comparedColumns.size() > MOST_REMEMBERED) comparedColumns.remove(comparedColumns.keySet().iterator().next());
    for (Iterator column = columns.iterator(); column.hasNext();) {
      Object name = column.next();
      Long count = (Long) counts.get(name);
      if (count == null && counts.size() >= MOST_REMEMBERED) continue;
      counts.put(name, Long.valueOf(count == null ? 1L : count.longValue() + 1L));
    }
  }

  /** Tables by the paths that users gave: {"/data/t": [[{"column": ["a"]}, 3]]}. */
  synchronized String comparedJson() {
    StringBuilder text = new StringBuilder("{");
    for (Iterator table = comparedColumns.entrySet().iterator(); table.hasNext();) {
      Map.Entry counts = (Map.Entry) table.next();
      if (text.length() > 1) text.append(", ");
      text.append(quoted((String) counts.getKey())).append(": [");
      String comma = "";
      for (Iterator column = ((Map) counts.getValue()).entrySet().iterator(); column.hasNext();) {
        Map.Entry count = (Map.Entry) column.next();
        text.append(comma).append("[").append(count.getKey()).append(", ").append(count.getValue()).append("]");
        comma = ", ";
      }
      text.append("]");
    }
    return text.append("}").toString();
  }

  synchronized String toJson() {
    return "{\"applied\": " + applied
        + ", \"backed_off\": " + backedOff
        + ", \"last_error\": " + quoted(lastError)
        + ", \"columnar\": " + columnar
        + ", \"columnar_error\": " + quoted(columnarError)
        + ", \"native\": " + natively
        + ", \"native_error\": " + quoted(nativeError)
        + ", \"driver\": " + byDriver
        + ", \"driver_error\": " + quoted(driverError)
        + ", \"answered\": " + answered
        + ", \"answer_error\": " + quoted(answerError)
        + ", \"filtered\": " + filtered
        + ", \"join_error\": " + quoted(joinError)
        + ", \"metadata_error\": " + quoted(metadataError)
        + ", \"partial\": " + partial
        + ", \"partial_error\": " + quoted(partialError)
        + ", \"one_task_error\": " + quoted(oneTaskError)
        + ", \"driver_reads\": " + driverReads
        + ", \"driver_read_error\": " + quoted(driverReadError)
        + ", \"driver_writes\": " + driverWrites
        + ", \"last_scan\": " + (lastScan == null ? "null" : lastScan.toJson()) + "}";
  }

  private static String quoted(String text) {
    return text == null ? "null" : TextNode.valueOf(text).toString();
  }
}
