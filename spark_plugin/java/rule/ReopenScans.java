package pydelta.rule;

import java.lang.reflect.Field;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.scan.ColumnarChoice;
import pydelta.scan.MetadataScan;
import pydelta.scan.MetadataTable;
import pydelta.scan.PrunableTable;
import pydelta.scan.ScanRequest;
import pydelta.streams.StreamScans;
import scala.collection.immutable.Seq;

/**
 * Turns planned scans of our formats back into relations over a PrunableTable, with the same attributes.
 *
 * A scan whose read option `pruning` is false stays as it is. A scan of ours in an unexpected state raises: the caller
 * then leaves the whole plan alone.
 */
public class ReopenScans {
  public static final String OPTION = "pruning";
  private static final String CHANGELOG = "org.apache.spark.sql.execution.datasources.v2.ChangelogTable";  // since Spark 4.2

  private final Set<String> formats;
  private final RuleStatus status;
  private final ColumnarChoice batches;
  private final int mostLimitedRows;
  private TaskDependentRows taskDependent = null;
  private int count = 0;

  ReopenScans(Set<String> formats, RuleStatus status, ColumnarChoice batches, int mostLimitedRows) {
    this.formats = formats;
    this.status = status;
    this.batches = batches;
    this.mostLimitedRows = mostLimitedRows;
  }

  int count() {
    return count;
  }

  /** A copy of the plan in which the scans of our formats are relations again, so that Spark's push-down plans them. */
  LogicalPlan in(LogicalPlan plan) {
    return plan.transformDown(Trees.change(
        node -> node instanceof DataSourceV2ScanRelation planned && isOurs(planned.scan()) ? reopened(planned, plan) : node));
  }

  private boolean isOurs(Scan scan) {
    if (!isSparkScan(scan, formats)) return false;
    CaseInsensitiveStringMap options = (CaseInsensitiveStringMap) read(scan, "options");
    return options.getBoolean(OPTION, true);
  }

  /** Whether the plan has a scan or a stream of our formats that Spark itself reads, as rows. */
  static boolean hasSparkScan(LogicalPlan plan, Set<String> formats) {
    return Lists.toJava(plan.collectLeaves()).stream().anyMatch(leaf ->
        leaf instanceof DataSourceV2ScanRelation batch && isSparkScan(batch.scan(), formats) || StreamScans.isUnprunedBatch(leaf));
  }

  private static boolean isSparkScan(Scan scan, Set<String> formats) {
    Class<?> kind = scan.getClass();
    if (kind != PythonScan.class && kind != MetadataScan.class) return false;
    String shortName = (String) read(scan, "shortName");
    return formats.contains(shortName.toLowerCase(Locale.ROOT));
  }

  private LogicalPlan reopened(DataSourceV2ScanRelation planned, LogicalPlan plan) {
    DataSourceV2Relation relation = planned.relation();
    PythonScan scan = (PythonScan) planned.scan();
    Filter[] handedOver = (Filter[]) read(scan, "supportedFilters");
    if (!isKnown(relation.table())) {
      throw new IllegalStateException("the table is a " + relation.table().getClass().getName());
    }
    Seq<AttributeReference> output = expectedOutput(planned);
    if (!PruneScans.sameOutput(planned.output(), output)) {
      throw new IllegalStateException("the scan gives " + planned.output() + " and not " + output);
    }
    if (planned.keyGroupedPartitioning().isDefined() || planned.ordering().isDefined()) {
      throw new IllegalStateException("the scan has a partitioning or an order");
    }
    if (handedOver.length > 0) {
      throw new IllegalStateException("Spark's own push-down has already handed over filters");
    }
    count++;
    if (taskDependent == null) taskDependent = TaskDependentRows.of(plan);  // plans without our scans need none
    ColumnarChoice reads = taskDependent.reads(planned, batches);
    PrunableTable table = new PrunableTable(relation.table(), everything(scan), status, reads, mostLimitedRows);
    return withTable(relation, table, output);
  }

  /** Whether the table has exactly the columns of its scan. */
  private static boolean isKnown(Table table) {
    return table instanceof PythonTable || table instanceof MetadataTable || table.getClass().getName().equals(CHANGELOG);
  }

  /** All attributes of the relation, without a metadata column that the analyzer added and that the query no longer reads. */
  private static Seq<AttributeReference> expectedOutput(DataSourceV2ScanRelation planned) {
    DataSourceV2Relation relation = planned.relation();
    boolean without = relation.table() instanceof SupportsMetadataColumns && !(planned.scan() instanceof MetadataScan);
    if (!without) return relation.output();
    return Lists.toScala(Lists.toJava(relation.output()).subList(0, relation.table().columns().length));
  }

  /** The request of Spark's scan over all columns. */
  public static ScanRequest everything(PythonScan scan) {
    if (scan instanceof MetadataScan ours) return ours.request();
    return new ScanRequest(
        (PythonDataSourceV2) read(scan, "ds"),
        (String) read(scan, "shortName"),
        (CaseInsensitiveStringMap) read(scan, "options"),
        (StructType) read(scan, "outputSchema"));
  }

  /** A copy with another table. */
  public static LogicalPlan withTable(DataSourceV2Relation relation, Table table, Seq<?> output) {
    return NodeCopy.with(
        relation, new NodeCopy.Change(relation.table(), table), new NodeCopy.Change(relation.output(), output));
  }

  private static Object read(Scan scan, String name) {
    try {
      Field field = PythonScan.class.getDeclaredField(name);
      field.setAccessible(true);
      return field.get(scan);
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new IllegalStateException("PythonScan has no readable field " + name, error);
    }
  }
}
