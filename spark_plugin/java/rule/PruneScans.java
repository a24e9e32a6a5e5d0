package pydelta.rule;

import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.aggregates.LogAnswers;
import pydelta.aggregates.PartialAggregates;
import pydelta.driver.DriverChoice;
import pydelta.driver.DriverPlanner;
import pydelta.driver.DriverReads;
import pydelta.driver.DriverSource;
import pydelta.driver.SessionSources;
import pydelta.joins.JoinRules;
import pydelta.scan.ColumnarChoice;
import pydelta.scan.MetadataScanBuilder;
import pydelta.scan.MetadataTable;
import pydelta.scan.ScanReaders;
import pydelta.messages.PredicateJson;
import pydelta.streams.StreamScans;
import pydelta.streams.StreamedTable;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The optimizer rule. It reopens the scans of our Python source that Spark has planned over all columns, lets Spark's own
 * push-down run again with a builder that can prune, and checks the result.
 *
 * It does not decide what a query needs. If anything fails or looks unfamiliar, the plan stays as it was.
 */
public class PruneScans extends Rule<LogicalPlan> {
  public static final String NAME = "pydelta.rule.PruneScans";

  private static volatile PruneScans latest = null;

  private final Set<String> formats = ConcurrentHashMap.newKeySet();
  private final RuleStatus status = new RuleStatus();
  private final ColumnarChoice batches = new ColumnarChoice(status);
  private final Map<String, String> told = new ConcurrentHashMap<>();
  private volatile StructField metadataColumn = null;
  private volatile int mostLimitedRows = 0;
  private volatile int mostGroupColumns = 0;

  public String ruleName() {
    return NAME;
  }

  /** Adds the short name of a Python source whose reader understands the marker. */
  public void addFormat(String shortName) {
    formats.add(shortName.toLowerCase(Locale.ROOT));
  }

  /**
   * Limits that the rule checks before it asks the source: for_the_rule of read_limits.py. Without them limits stay in Spark's
   * plan.
   */
  public void setLimits(int mostLimitedRows, int mostGroupColumns) {
    this.mostLimitedRows = mostLimitedRows;
    this.mostGroupColumns = mostGroupColumns;
  }

  /** Calls DriverChoice.offer, for all sessions. */
  public void offerDriver(DriverPlanner planner) {
    DriverChoice.offer(planner);
  }

  /** The session's source, for which the driver's own Python plans and commits writes. */
  public UserDefinedPythonDataSource askingDriver(UserDefinedPythonDataSource source) {
    return new DriverSource(source);
  }

  /** Calls DriverChoice.open. */
  public PythonDataSourceV2 open(CaseInsensitiveStringMap options) {
    return DriverChoice.open(options, status);
  }

  /** The metadata column of our sources, as the JSON of a schema that has only this column. */
  public void offerMetadata(String schemaJson) {
    metadataColumn = ((StructType) DataType.fromJson(schemaJson)).fields()[0];
  }

  /** The result of `load` with the source's metadata column; the same frame if that fails. */
  public Dataset<Row> withMetadata(Dataset<Row> frame) {
    try {
      return MetadataTable.in(frame, metadataColumn, status);
    } catch (RuntimeException | LinkageError error) {
      status.withoutMetadata(error);
    }
    return frame;
  }

  /** The result of `readStream.load` in a form whose batches the rule may read in columns; the same frame if that fails. */
  public Dataset<Row> streamed(Dataset<Row> frame) {
    try {
      return StreamedTable.in(frame, status);
    } catch (RuntimeException | LinkageError error) {
      status.notColumnar(error);
    }
    return frame;
  }

  /** Calls withMetadata of the rule of the frame's session. A session without the rule has no such column. */
  public static Dataset<Row> withMetadataOfSession(Dataset<Row> frame) {
    PruneScans rule = ownOf(frame.sparkSession());
    return rule == null ? frame : rule.withMetadata(frame);
  }

  /** Notes why a worker did a load that the driver's Python could not do. */
  public void notLoadedByDriver(String why) {
    status.notByDriver(new IllegalStateException(why));
  }

  /** The columns that a table of a catalog offers besides its own. options: of its read. */
  public MetadataColumn[] metadataColumns(StructType schema, CaseInsensitiveStringMap options) {
    boolean offers = MetadataTable.canOffer(metadataColumn, schema, options);
    return offers ? MetadataTable.hidden(metadataColumn) : new MetadataColumn[0];
  }

  /** A scan builder of such a table. whole: Spark's own, over all columns. */
  public ScanBuilder withMetadata(ScanBuilder whole) {
    return new MetadataScanBuilder(whole, metadataColumn, status);
  }

  /** A predicate as Python understands it; null if it would not. schema: of the columns in the predicate. */
  public static String json(Predicate predicate, StructType schema) {
    PredicateJson json = PredicateJson.of(predicate, schema);
    return json == null ? null : json.json();
  }

  /** Notes a value that the session's catalogs may read. */
  public void tell(String name, String value) {
    told.put(name, value);
    latest = this;
  }

  /** The value with this name; null if there is none. */
  public String told(String name) {
    return told.get(name);
  }

  /**
   * The status of the rule of the active session. If there is no session, as when Spark stops, a new status that nobody reads.
   */
  public static RuleStatus statusOfSession() {
    var session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) session = SparkSession$.MODULE$.getDefaultSession();
    PruneScans rule = session.isEmpty() ? null : of(session.get());
    return rule == null ? new RuleStatus() : rule.status;
  }

  /** The rule of a session. If somebody has removed it, the rule that got the last value; null if there is none. */
  public static PruneScans of(SparkSession session) {
    PruneScans own = ownOf(session);
    return own == null ? latest : own;
  }

  /** The session's own rule. It is added after the other rules if the session has none yet. */
  public static PruneScans addedTo(SparkSession session) {
    PruneScans own = ownOf(session);
    if (own != null) return own;
    PruneScans rule = new PruneScans();
    rule.addTo(session);
    return rule;
  }

  /** Adds it after the session's other rules, and after its other planning strategies. Clones of the session have it too. */
  public void addTo(SparkSession session) {
    List<Rule<LogicalPlan>> rules = Lists.toJava(session.experimental().extraOptimizations());
    rules.add(this);
    session.experimental().extraOptimizations_$eq(Lists.toScala(rules));
    List<SparkStrategy> strategies = Lists.toJava(session.experimental().extraStrategies());
    strategies.add(new DriverReads(status));
    session.experimental().extraStrategies_$eq(Lists.toScala(strategies));
    SessionSources.putInto(session);
  }

  private static PruneScans ownOf(SparkSession session) {
    for (Rule<LogicalPlan> rule : Lists.toJava(session.experimental().extraOptimizations())) {
      if (rule instanceof PruneScans own) return own;
    }
    return null;
  }

  /** What the rule has done, as JSON. */
  public String status() {
    return status.toJson();
  }

  /** The columns that scans were filtered by, as RuleStatus.comparedJson. */
  public String compared() {
    return status.comparedJson();
  }

  /** Calls WantedRows.of. */
  public String wantedRows(LogicalPlan optimized, String option, String value) {
    return WantedRows.of(optimized, option, value);
  }

  public LogicalPlan apply(LogicalPlan plan) {
    if (readsSources(plan)) {
      Switch.check();
      DriverPlanner.answerSeconds();
    }
    if (plan instanceof DeleteFromTable) return plan;  // Spark asks the table of the scan, which refuses
    LogicalPlan optimized = Switch.isOn(Switch.PRUNING) ? optimized(plan) : plan;
    if (ColumnarChoice.repeatsRows() && ReopenScans.hasSparkScan(optimized, formats)) ColumnarChoice.refuseRepeatedRows();
    return optimized;
  }

  /** The plan as it was if anything fails. */
  private LogicalPlan optimized(LogicalPlan plan) {
    try {
      boolean inRows = ColumnsUnderUdfs.hang(plan);
      if (inRows) plan = ColumnsUnderUdfs.inRows(plan);
      plan = StreamScans.in(plan, inRows ? null : batches);
      return prune(plan, inRows ? batches.inRows(ScanReaders.UDFS_NEED_ROWS) : batches);
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.backedOff(error);
      return plan;
    }
  }

  /** Other plans, such as SET and RESET, pass even if a setting has an unknown name, so that SQL can correct it. */
  private static boolean readsSources(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.collectLeaves()).stream()
        .anyMatch(leaf -> leaf instanceof DataSourceV2ScanRelation || leaf instanceof StreamingDataSourceV2ScanRelation);
  }

  private LogicalPlan prune(LogicalPlan plan, ColumnarChoice reads) {
    ReopenScans reopen = new ReopenScans(formats, status, reads, mostLimitedRows);
    LogicalPlan reopened = reopen.in(plan);
    if (reopen.count() == 0) return plan;

    // Subqueries that became joins bring scans with them that were pruned when Spark optimized the subqueries alone.
    ScanCensus before = ScanCensus.of(plan);
    LogicalPlan pruned = V2ScanRelationPushDown$.MODULE$.apply(reopened);
    ScanCensus after = ScanCensus.of(pruned);

    if (after.unplanned() > 0) {
      throw new IllegalStateException("Spark left " + after.unplanned() + " scans unplanned");
    }
    if (after.pruned() != before.pruned() + reopen.count() || after.others() != before.others() - reopen.count()) {
      throw new IllegalStateException("scans went from " + before + " to " + after + " with " + reopen.count() + " reopened");
    }
    if (!sameOutput(plan.output(), pruned.output())) {
      throw new IllegalStateException("the plan's output changed from " + plan.output() + " to " + pruned.output());
    }
    status.used(Switch.PRUNING, reopen.count());
    LogicalPlan answered = LogAnswers.in(pruned, status);
    if (!sameOutput(pruned.output(), answered.output())) answered = pruned;
    LogicalPlan joined = JoinRules.in(answered, status);
    if (!sameOutput(answered.output(), joined.output())) joined = answered;
    // After the joins: a scan whose files a join chooses later stays as it is.
    LogicalPlan partial = PartialAggregates.in(joined, status, reads, mostGroupColumns);
    if (!sameOutput(joined.output(), partial.output())) partial = joined;
    LogicalPlan together = OneTask.in(partial, status);
    return sameOutput(partial.output(), together.output()) ? together : partial;
  }

  static boolean sameOutput(Seq<? extends Attribute> one, Seq<? extends Attribute> other) {
    if (one.length() != other.length()) return false;
    Iterator<? extends Attribute> others = Lists.toJava(other).iterator();
    for (Attribute a : Lists.toJava(one)) {
      Attribute b = others.next();
      if (!a.exprId().equals(b.exprId()) || !a.dataType().equals(b.dataType())) return false;
    }
    return true;
  }
}
