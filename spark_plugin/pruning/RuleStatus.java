package pydelta.pruning;

import com.fasterxml.jackson.databind.node.TextNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the rule has done in a session. The first time that it leaves a plan alone it says so in the log. */
class RuleStatus {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private long applied = 0;
  private long backedOff = 0;
  private String lastError = null;
  private KeptFiles lastScan = null;
  private long columnar = 0;
  private String columnarError = null;
  private long answered = 0;
  private String answerError = null;
  private long filtered = 0;
  private String joinError = null;
  private String metadataError = null;

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

  synchronized void columnar() {
    columnar++;
  }

  synchronized void notColumnar(Throwable error) {
    if (columnarError == null) {
      LOG.warn("The columnar reader cannot be used here: " + error + ". Spark's own reader is used, and gives the same rows. Set "
          + ColumnarChoice.ENABLED_CONF + " to false to be rid of this.", error);
    }
    columnarError = error.toString();
  }

  synchronized void answered() {
    answered++;
  }

  synchronized void unanswered(Throwable error) {
    answerError = error.toString();
    LOG.debug("The log was not asked, or its answer was not understood", error);
  }

  synchronized void filtered() {
    filtered++;
  }

  synchronized void withoutJoins(Throwable error) {
    joinError = error.toString();
    LOG.debug("The planning of a join goes without what the log knows of a table", error);
  }

  synchronized void withoutMetadata(Throwable error) {
    metadataError = error.toString();
    LOG.debug("A table is read without its metadata column", error);
  }

  synchronized void planned(KeptFiles kept) {
    lastScan = kept;
  }

  synchronized String toJson() {
    return "{\"applied\": " + applied
        + ", \"backed_off\": " + backedOff
        + ", \"last_error\": " + quoted(lastError)
        + ", \"columnar\": " + columnar
        + ", \"columnar_error\": " + quoted(columnarError)
        + ", \"answered\": " + answered
        + ", \"answer_error\": " + quoted(answerError)
        + ", \"filtered\": " + filtered
        + ", \"join_error\": " + quoted(joinError)
        + ", \"metadata_error\": " + quoted(metadataError)
        + ", \"last_scan\": " + (lastScan == null ? "null" : lastScan.toJson()) + "}";
  }

  private static String quoted(String text) {
    return text == null ? "null" : TextNode.valueOf(text).toString();
  }
}
