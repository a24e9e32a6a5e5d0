package pydelta.scan;

import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.aggregates.LogQuestion;
import pydelta.messages.KeptFiles;
import pydelta.messages.PredicateJson;
import pydelta.messages.ReadPlan;
import pydelta.rule.Lists;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's scan of a Python source, over the columns that the query needs. It runs as Spark's own tasks. */
public class PrunedScan extends PythonScan {
  private final ScanRequest request;
  private final PrunedSource source;
  private final ScanReaders readers;
  private Batch batch = null;
  private Boolean planned = null;

  public PrunedScan(ScanRequest request, RuleStatus status, ScanReaders readers) {
    this(request, new PrunedSource(request, status, readers), readers);
  }

  public PrunedScan(ScanRequest request, PrunedSource source, ScanReaders readers) {
    super(source, request.shortName(), request.schema(), request.options(), new Filter[0]);
    this.request = request;
    this.source = source;
    this.readers = readers;
  }

  public PrunedSource source() {
    return source;
  }

  public List<PredicateJson> predicates() {
    return request.predicates();
  }

  /** All columns that the source offers; predicates may be about each of them. */
  public StructType fullSchema() {
    return request.fullSchema();
  }

  public boolean hasLimit() {
    return request.limit() != null;
  }

  /** A read option; null if it is not set. */
  public String option(String name) {
    return request.options().get(name);
  }

  public synchronized Batch toBatch() {
    if (batch == null) batch = new PrunedBatch(super.toBatch(), request, source, readers);
    return batch;
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    if (readers.columnar() != null) return Scan.ColumnarSupportMode.SUPPORTED;
    return mayBeColumnar() && isPlanned() ? Scan.ColumnarSupportMode.PARTITION_DEFINED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  /**
   * Plans the scan, once. The answer does not change afterwards, because Spark has planned a query with it. If planning fails,
   * explaining the plan must not fail: the query itself meets the error again and raises it.
   */
  private boolean isPlanned() {
    if (planned == null) planned = canPlan();
    return planned;
  }

  private boolean canPlan() {
    try {
      source.readInfo();
      return true;
    } catch (Exception error) {
      return false;
    }
  }

  public boolean mayBeColumnar() {
    return !readers.areOfRows();
  }

  /** A scan of the same rows by Spark's own reader. */
  public PrunedScan inRows() {
    return new PrunedScan(request, source, ScanReaders.ROWS);
  }

  /** A scan of partial rows that replaces this one; null if the source does not return them. question: of PartialQuestion. */
  public PrunedScan partially(String question, StructType schema, ScanReaders readers) {
    PrunedSource partial = source.partially(question, schema, readers);
    return partial == null ? null : partialScan(partial, readers);
  }

  protected PrunedScan partialScan(PrunedSource partial, ScanReaders readers) {
    return new PrunedScan(partial.request(), partial, readers);
  }

  /** Identifies the table of a catalog that the scan reads: metadata of its first column, where the source looks for it. */
  public Metadata tableMetadata() {
    StructField[] fields = request.fullSchema().fields();
    return fields.length == 0 ? Metadata.empty() : fields[0].metadata();
  }

  /** Whether the log may answer instead of a read: never for rows that a limit chooses, nor if other rows replace them. */
  public boolean mayAsk(String road) {
    return !hasLimit() && mayTake(road);
  }

  /** Whether an option of the read allows the road: never if other rows replace the scan's own. */
  private boolean mayTake(String road) {
    return !request.isPartial() && !request.disables(road);
  }

  /** Whether its rows may be few, and the driver's own Python may read them. */
  public boolean mayBeReadByDriver(RuleStatus status) {
    if (!mayTake(Switch.DRIVER) || request.readsNoColumns() || !request.isPlannedByDriver() || !isPlanned()) return false;
    boolean mayBeFew = source.plan().has("driver");
    if (!mayBeFew) status.skipped(Switch.DRIVER, source.plan().whyNot(Switch.DRIVER));
    return mayBeFew;
  }

  /** The log's answer, for each combination of values of the attributes `by`; null if the log does not have it. */
  public byte[] ask(LogQuestion question, List<Attribute> by) throws Exception {
    return source.ask(question, by);
  }

  /** For explain(): plans the scan, once; the query then runs with that plan. */
  public String description() {
    return request.path() + " PushedFilters: " + request.predicates() + limitText() + ", " + keptText() + roadText()
        + (request.isPartial() ? ", PartialRows: " : ", ReadSchema: ") + request.schema().simpleString();
  }

  /** For explain("formatted"). */
  public scala.collection.immutable.Map<String, String> getMetaData() {
    var shown = new HashMap<String, String>(CollectionConverters.asJava(super.getMetaData()));
    shown.put("Location", request.path());
    shown.put("PushedFilters", request.predicates().toString());
    if (request.limit() != null) shown.put("PushedLimit", request.limit().toString());
    String road = roadText();
    if (!road.isEmpty()) shown.put("Road", road.substring(", Road: ".length()));
    shown.put("Kept", keptText());
    return Lists.toScala(shown);
  }

  /** How the scan is read, and why. Empty if the source does not say, or fails: then keptText reports that. */
  private String roadText() {
    try {
      ReadPlan plan = source.planFor(readers);
      return plan.road() == null ? "" : ", Road: " + plan.road() + " (" + plan.why() + ")";
    } catch (Exception error) {
      return "";
    }
  }

  private String limitText() {
    return request.limit() == null ? "" : ", PushedLimit: " + request.limit();
  }

  /** A description must not fail: the query itself meets the same error and raises it. Without columns there is no filter. */
  private String keptText() {
    if (request.readsNoColumns()) return "all files";
    try {
      KeptFiles kept = source.kept();
      return kept == null ? "files not counted" : kept.toString();
    } catch (Exception error) {
      return "not planned: " + error.getMessage();
    }
  }
}
