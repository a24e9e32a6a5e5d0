package pydelta.pruning;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rows of a plan over one scan, collected without a job where the driver's own Python reads them; else those of its child. */
public class ReadByDriver extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final SparkPlan child;
  private final transient LogicalPlan answer;
  private final transient DataSourceV2ScanRelation relation;
  private final transient RuleStatus status;
  private final transient SQLMetric rowsRead;

  /** child: Spark's own plan of the answer, which is one of the rows of the relation. */
  public ReadByDriver(SparkPlan child, LogicalPlan answer, DataSourceV2ScanRelation relation, RuleStatus status) {
    this.child = child;
    this.answer = answer;
    this.relation = relation;
    this.status = status;
    this.rowsRead = SQLMetrics$.MODULE$.createMetric(sparkContext(), "number of output rows");
  }

  public InternalRow[] executeCollect() {
    InternalRow[] rows = rows();
    return rows == null ? child.executeCollect() : rows;
  }

  /** As a subquery's value is taken. */
  public InternalRow[] executeTake(int most) {
    InternalRow[] rows = rows();
    return rows == null ? child.executeTake(most) : (InternalRow[]) Arrays.copyOf(rows, Math.min(most, rows.length));
  }

  public scala.collection.immutable.Map metrics() {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty().updated("numOutputRows", rowsRead);
  }

  /** The same query without this node is the same one. */
  public SparkPlan doCanonicalize() {
    return (SparkPlan) child.canonicalized();
  }

  public RDD doExecute() {
    return child.execute();
  }

  /** Null where tasks are to read them. */
  private InternalRow[] rows() {
    try {
      byte[] stream = ((PrunedScan) relation.scan()).readByDriver();
      if (stream == null) return null;
      List read = LogAnswer.rows(stream, CollectionConverters.asJava(relation.output()));
      InternalRow[] rows = unsafe(new RowsAbove(relation, read).of(answer), answer.schema());
      status.readByDriver();
      count(rows.length);
      return rows;
    } catch (Exception error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notReadByDriver(error);
    } catch (LinkageError error) {
      status.notReadByDriver(error);
    }
    return null;
  }

  private void count(int rows) {
    rowsRead.add(rows);
    String execution = sparkContext().getLocalProperty(SQLExecution$.MODULE$.EXECUTION_ID_KEY());
    SQLMetrics$.MODULE$.postDriverMetricUpdates(sparkContext(), execution, metrics().values().toSeq());
  }

  private static InternalRow[] unsafe(List rows, StructType schema) {
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(schema);
    InternalRow[] copies = new InternalRow[rows.size()];
    for (int i = 0; i < copies.length; i++) copies[i] = projection.apply((InternalRow) rows.get(i)).copy();
    return copies;
  }

  public Seq output() {
    return child.output();
  }

  public Seq children() {
    return Lists.toScala(Collections.singletonList(child));
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq children) {
    return new ReadByDriver((SparkPlan) children.head(), answer, relation, status);
  }

  /** What Spark gives the constructor of a copy, behind the product's fields. */
  public Seq otherCopyArgs() {
    return Lists.toScala(Arrays.asList(new Object[] {answer, relation, status}));
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
