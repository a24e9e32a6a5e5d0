package pydelta.scan;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import pydelta.aggregates.LogAnswer;
import pydelta.aggregates.LogQuestion;
import pydelta.driver.DriverChoice;
import pydelta.joins.ScanFacts;
import pydelta.rule.RuleStatus;

/**
 * Spark's view of the Python source for one scan only. Spark's own object is shared by all queries over a DataFrame, and so
 * would be the read function that is kept in it.
 */
public class PrunedSource extends PythonDataSourceV2 {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private final ScanRequest request;
  private final RuleStatus status;
  private PlannedScan planned = null;
  private boolean noted = false;
  private KeptFiles kept = null;
  private ScanFacts facts = null;

  public PrunedSource(ScanRequest request, RuleStatus status) {
    this.request = request;
    this.status = status;
    setShortName(request.shortName());
  }

  public UserDefinedPythonDataSource source() {
    return request.source().source();
  }

  public PythonDataSourceReadInfo getOrCreateReadInfo(
      String shortName, CaseInsensitiveStringMap options, StructType schema, boolean isStreaming) {
    if (isStreaming || !schema.equals(request.schema())) {
      throw new IllegalStateException("a pruned scan of " + request.schema().catalogString() + " was asked for "
          + (isStreaming ? "a stream of " : "") + schema.catalogString());
    }
    return readInfo();
  }

  /** How many files the scan reads, null if the source does not say. Plans the scan if that has not been done. */
  public synchronized KeptFiles kept() {
    planForNotes();
    return kept;
  }

  /** What the source tells of the scan for joins, null if nothing. Plans the scan if that has not been done. */
  public synchronized ScanFacts facts() {
    planForNotes();
    return facts;
  }

  public synchronized PythonDataSourceReadInfo readInfo() {
    if (planned == null) use(request.plan(status));
    return planned.readInfo();
  }

  private void planForNotes() {
    if (!request.readsNoColumns() || request.hasNoColumns()) {
      readInfo();
    } else if (!noted) {
      takeNotes(request.planForNotes(status));
    }
  }

  /** The log's answer; null if it does not say. Then the scan has been planned by the same call, unless it has no columns. */
  synchronized byte[] ask(LogQuestion question, List by) {
    if (planned != null || request.hasNoColumns()) return null;
    boolean only = request.readsNoColumns();
    PlannedScan asked = request.ask(question.json(by, only), status);
    byte[] answer = LogAnswer.of(asked);
    if (answer == null && !only) use(asked);
    return answer;
  }

  /** The source of partial rows, planned; null if there is none. */
  PrunedSource partially(String question, StructType schema) {
    PrunedSource partial = new PrunedSource(request.partially(question, schema), status);
    partial.readInfo();
    return partial.planned.note("partial", "given") == null ? null : partial;
  }

  /** Whether the source says that the rows may be few. Plans the scan if that has not been done. */
  synchronized boolean isFew() {
    readInfo();
    return planned.note("few", "rows") != null;
  }

  /** The rows, as an Arrow stream; null where tasks are to read them. Raises why the driver's own Python could not. */
  public byte[] readByDriver() throws Exception {
    String nonce;
    synchronized (this) {
      readInfo();
      nonce = planned.nonce();
    }
    return DriverChoice.read(request.shortName(), nonce);
  }

  public ScanRequest request() {
    return request;
  }

  /** The tasks of the planned scan. As of ScanTasks.of. */
  synchronized ScanTasks tasks(ScanReaders readers, InputPartition[] partitions, PartitionReaderFactory python) {
    return ScanTasks.of(readers, request, planned, partitions, python, status);
  }

  private void use(PlannedScan planned) {
    if (!request.readsNoColumns()) takeNotes(planned);
    this.planned = planned;
  }

  private void takeNotes(PlannedScan planned) {
    noted = true;
    kept = KeptFiles.of(planned);
    facts = ScanFacts.of(planned);
    if (kept == null) return;
    status.planned(kept);
    status.compared(request.path(), request.compared());
    LOG.info("Scan of " + request.path() + " keeps " + kept);
  }
}
