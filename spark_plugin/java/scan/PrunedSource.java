package pydelta.scan;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import pydelta.aggregates.LogQuestion;
import pydelta.driver.DriverChoice;
import pydelta.joins.ScanFacts;
import pydelta.messages.KeptFiles;
import pydelta.messages.PlannedScan;
import pydelta.messages.ReadPlan;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;

/**
 * Spark's view of the Python source for one scan only. All queries over a DataFrame share Spark's own object, and so would share
 * the read function that it caches.
 */
public class PrunedSource extends PythonDataSourceV2 {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private final ScanRequest request;
  private final RuleStatus status;
  private final ScanReaders readers;
  private PlannedScan planned = null;
  private boolean noted = false;
  private ReadPlan plan = ReadPlan.UNKNOWN;

  /** readers: for the tasks. */
  public PrunedSource(ScanRequest request, RuleStatus status, ScanReaders readers) {
    this.request = request;
    this.status = status;
    this.readers = readers;
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

  /** How many files the scan reads; null if the source does not say. Plans the scan if it is not planned yet. */
  public synchronized KeptFiles kept() {
    return KeptFiles.of(planForMessages());
  }

  /** What the source reports for joins; null if nothing. Plans the scan if it is not planned yet. */
  public synchronized ScanFacts facts() {
    return ScanFacts.of(planForMessages());
  }

  public synchronized PythonDataSourceReadInfo readInfo() {
    if (planned == null) use(request.plan(readers, status));
    return planned.readInfo();
  }

  /** The source's plan of the scan, with an additional column if it reads none. Plans the scan if it is not planned yet. */
  public synchronized ReadPlan planForMessages() {
    if (!request.readsNoColumns() || request.hasNoColumns()) {
      readInfo();
    } else if (!noted) {
      takeMessages(request.planForMessages(status));
    }
    return plan;
  }

  /** The log's answer; null if the log does not have it. The same call has then planned the scan, unless it has no columns. */
  synchronized byte[] ask(LogQuestion question, List<Attribute> by) throws Exception {
    if (planned != null || request.hasNoColumns()) return null;
    boolean only = request.readsNoColumns();
    PlannedScan asked = request.ask(question.json(by, only), readers, status);
    ReadPlan told = asked.readPlan();
    byte[] answer = told.answer();
    if (answer == null) status.skipped(Switch.LOG, told.whyNot(Switch.LOG));
    else status.took(asked.scanId(), request.path(), told, null);
    if (answer == null && !only) use(asked);
    return answer;
  }

  /** The source of partial rows, planned; null if there is none. */
  public PrunedSource partially(String question, StructType schema, ScanReaders readers) {
    PrunedSource partial = new PrunedSource(request.partially(question, schema), status, readers);
    ReadPlan told = partial.plan();
    if (Switch.PARTIAL.equals(told.road())) return partial;
    status.skipped(Switch.PARTIAL, told.whyNot(Switch.PARTIAL));
    return null;
  }

  /** Plans the scan if it is not planned yet. */
  public synchronized ReadPlan plan() {
    readInfo();
    return planned.readPlan();
  }

  /** The rows, as an Arrow stream; null if tasks have to read them. Raises the error of the driver's own Python. */
  public byte[] readByDriver() throws Exception {
    String scanId;
    synchronized (this) {
      readInfo();
      scanId = planned.scanId();
    }
    return DriverChoice.read(request.shortName(), scanId);
  }

  /** The driver's own Python has read the rows, and no task will. */
  public synchronized void noteReadByDriver() {
    ReadPlan byDriver = planned.readPlan().by(Switch.DRIVER, "the rows are few, and the query takes no job");
    status.used(Switch.DRIVER);
    status.took(planned.scanId(), request.path(), byDriver, null);
  }

  public ScanRequest request() {
    return request;
  }

  /** The tasks of the planned scan. The parameters are those of ScanTasks.of. */
  synchronized ScanTasks tasks(ScanReaders readers, InputPartition[] partitions, PartitionReaderFactory python) {
    return ScanTasks.of(readers, request, planned, partitions, python, status);
  }

  /** Spark has taken the partitions of the tasks. */
  synchronized void noteUse(ScanTasks tasks, ScanReaders readers) {
    ReadPlan carriedOut = request.readsNoColumns() && noted ? planFor(readers) : tasks.plan();
    tasks.noteUse(status);
    status.took(planned.scanId(), request.path(), carriedOut, KeptFiles.of(plan));
  }

  /** The plan as the readers carry it out. Plans the scan if that has not been done. */
  ReadPlan planFor(ScanReaders readers) {
    if (!request.readsNoColumns()) return readers.carriedOut(plan());
    ReadPlan ofSomeColumn = planForMessages();
    return ofSomeColumn.road() == null ? ofSomeColumn : ofSomeColumn.by(readers.roadInPython(), "the query reads no column");
  }

  private void use(PlannedScan planned) {
    if (!request.readsNoColumns()) takeMessages(planned);
    this.planned = planned;
  }

  private void takeMessages(PlannedScan planned) {
    noted = true;
    plan = planned.readPlan();
    KeptFiles kept = KeptFiles.of(plan);
    if (kept == null) return;
    status.planned(kept, plan);
    status.compared(request.path(), request.compared());
    LOG.info("Scan of " + request.path() + " keeps " + kept + "; road " + plan.road() + ": " + plan.why());
  }
}
