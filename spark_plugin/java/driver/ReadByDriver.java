package pydelta.driver;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import pydelta.aggregates.LogAnswer;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.scan.PrunedScan;
import pydelta.scan.PrunedSource;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of a plan over one scan. If the driver's own Python reads them, no job is run; else the child's rows are collected.
 */
public class ReadByDriver extends SparkPlan {
  private static final long serialVersionUID = 1L;
  private static final long NANOS_OF_MS = 1000000L;

  private final SparkPlan child;
  private final transient LogicalPlan answer;
  private final transient DataSourceV2ScanRelation relation;
  private final transient RuleStatus status;
  private final transient SQLMetric rowsRead;

  /** child: Spark's own plan. answer: the logical plan, over rows of the relation. */
  public ReadByDriver(SparkPlan child, LogicalPlan answer, DataSourceV2ScanRelation relation, RuleStatus status) {
    this.child = child;
    this.answer = answer;
    this.relation = relation;
    this.status = status;
    this.rowsRead = SQLMetrics$.MODULE$.createMetric(sparkContext(), "number of output rows");
  }

  public InternalRow[] executeCollect() {
    InternalRow[] rows = rows(Integer.MAX_VALUE);
    return rows == null ? child.executeCollect() : rows;
  }

  /** For the value of a subquery. */
  public InternalRow[] executeTake(int most) {
    InternalRow[] rows = rows(most);
    return rows == null ? child.executeTake(most) : rows;
  }

  public Map<String, SQLMetric> metrics() {
    return new Map.Map1<>("numOutputRows", rowsRead);
  }

  /** The query with this node equals the query without it. */
  public SparkPlan doCanonicalize() {
    return child.canonicalized();
  }

  public RDD<InternalRow> doExecute() {
    return child.execute();
  }

  /**
   * The first rows. Returns null if tasks have to read them. If anything fails here, tasks read them too, and raise the error.
   */
  private InternalRow[] rows(int most) {
    try {
      PrunedSource source = ((PrunedScan) relation.scan()).source();
      byte[] stream = source.readByDriver();
      if (stream == null) return skipped("the rows turned out to be many, or the driver's Python is busy");
      List<?> read = LogAnswer.rows(stream, CollectionConverters.asJava(relation.output()));
      InternalRow[] rows = computed(read, most, source.plan().part("driver"));
      if (rows == null) return skipped("what is computed of the rows takes long, or much");
      source.noteReadByDriver();
      count(rows.length);
      return rows;
    } catch (StackOverflowError error) {
      status.failed(Switch.DRIVER, error, null);
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.failed(Switch.DRIVER, error, null);
    }
    return null;
  }

  private InternalRow[] skipped(String why) {
    status.skipped(Switch.DRIVER, why);
    return null;
  }

  /** Returns null if the rows exceed the plan's limits of time or size: a job computes them in parallel, and can be cancelled. */
  private InternalRow[] computed(List<?> read, int most, JsonNode limits) {
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(answer.schema());
    long until = System.nanoTime() + limits.get("most_ms").longValue() * NANOS_OF_MS;
    Stream<InternalRow> inTime = read.stream().takeWhile(row -> System.nanoTime() < until).map(InternalRow.class::cast);
    var rows = RowsAbove.of(answer, relation, inTime).iterator();
    long bytes = mostBytes(limits.get("most_bytes").longValue());
    var copies = new ArrayList<InternalRow>();
    while (copies.size() < most && rows.hasNext()) {
      UnsafeRow row = projection.apply(rows.next()).copy();
      bytes -= row.getSizeInBytes();
      if (bytes < 0) return null;
      copies.add(row);
    }
    return System.nanoTime() < until ? copies.toArray(new InternalRow[0]) : null;
  }

  private long mostBytes(long mostBytes) {
    long ofResults = sparkContext().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g");
    return ofResults == 0 ? mostBytes : Math.min(mostBytes, ofResults);
  }

  private void count(int rows) {
    rowsRead.add(rows);
    String execution = sparkContext().getLocalProperty(SQLExecution$.MODULE$.EXECUTION_ID_KEY());
    SQLMetrics$.MODULE$.postDriverMetricUpdates(sparkContext(), execution, metrics().values().toSeq());
  }

  public Seq<Attribute> output() {
    return child.output();
  }

  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new ReadByDriver(children.head(), answer, relation, status);
  }

  /** The arguments that Spark gives the constructor of a copy, after the product's fields. */
  public Seq<Object> otherCopyArgs() {
    return CollectionConverters.asScala(List.<Object>of(answer, relation, status)).toSeq();
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int place) {
    return child;
  }

  public boolean canEqual(Object other) {
    return other instanceof ReadByDriver;
  }
}
