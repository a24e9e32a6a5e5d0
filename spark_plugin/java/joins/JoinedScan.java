package pydelta.joins;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.SQLExecution;
import pydelta.aggregates.PartialScan;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.messages.PredicateJson;
import pydelta.scan.PrunedScan;
import pydelta.scan.PrunedSource;
import pydelta.scan.ScanReaders;
import pydelta.scan.ScanRequest;

/**
 * A pruned scan that helps Spark with joins. It reports its size. While the query runs, it leaves out files by the values that
 * the other side of a join, or a subquery, has returned.
 *
 * Spark asks for both before anything runs, so the scan is planned then, and the query runs with that plan.
 */
public class JoinedScan extends PrunedScan implements SupportsReportStatistics, SupportsRuntimeV2Filtering {
  public static final String OPTION = "joinPlanning";

  private final ScanRequest request;
  private final RuleStatus status;
  private final ScanReaders readers;

  /**
   * The scan without some files (Narrowed), only for the next toBatch of this thread and query. Spark calls toBatch immediately
   * after filter. The scan itself must not change: other places of a plan may hold the same object and read all of it, and so may
   * other queries if this one fails between the two calls.
   */
  private final ThreadLocal<Narrowed> filtered = new ThreadLocal<>();

  public JoinedScan(ScanRequest request, RuleStatus status, ScanReaders readers) {
    this(request, new PrunedSource(request, status, readers), status, readers);
  }

  private JoinedScan(ScanRequest request, PrunedSource source, RuleStatus status, ScanReaders readers) {
    super(request, source, readers);
    this.request = request;
    this.status = status;
    this.readers = readers;
  }

  public PrunedScan inRows() {
    return new JoinedScan(request, source(), status, ScanReaders.ROWS);
  }

  protected PrunedScan partialScan(PrunedSource partial, ScanReaders readers) {
    return new PartialScan(partial, readers, this);
  }

  public static boolean wanted(ScanRequest request) {
    return !request.disables(Switch.JOINS) && Switch.isOn(Switch.JOINS);
  }

  /** Must not fail: the query itself meets the same error and raises it. */
  public Statistics estimateStatistics() {
    try {
      return ScanStatistics.of(request, source().kept(), source().facts());
    } catch (Exception error) {
      status.withoutJoins(error);
      return ScanStatistics.unknown();
    }
  }

  /** Must not fail, as estimateStatistics. */
  public NamedReference[] filterAttributes() {
    try {
      ScanFacts facts = request.limit() == null && !request.readsNoColumns() ? source().facts() : null;
      return facts == null ? new NamedReference[0] : facts.partitionColumns();
    } catch (Exception error) {
      status.withoutJoins(error);
      return new NamedReference[0];
    }
  }

  /**
   * Spark keeps these filters in its plan. So a filter that cannot be passed to Python costs only time. The same holds in a query
   * without an id, such as one that runs as an RDD.
   */
  public void filter(Predicate[] predicates) {
    filtered.remove();
    String query = currentQuery();
    List<PredicateJson> further = Arrays.stream(predicates)
        .map(predicate -> PredicateJson.of(predicate, request.schema())).filter(Objects::nonNull).toList();
    if (further.isEmpty() || query == null) return;
    status.used(Switch.JOINS);
    filtered.set(new Narrowed(query, new PrunedScan(request.again(further), status, readers)));
  }

  public Batch toBatch() {
    Narrowed narrowed = filtered.get();
    filtered.remove();
    return narrowed != null && narrowed.query.equals(currentQuery()) ? narrowed.scan.toBatch() : super.toBatch();
  }

  /** The id of the execution that this thread works for; null if there is none. */
  private static String currentQuery() {
    return SparkContext$.MODULE$.getActive().get().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
  }

  private record Narrowed(String query, PrunedScan scan) {}
}
