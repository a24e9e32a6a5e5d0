package pydelta.driver;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
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
import pydelta.rule.Lists;
import pydelta.rule.RuleStatus;
import pydelta.scan.PrunedScan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rows of a plan over one scan, collected without a job where the driver's own Python reads them; else those of its child. */
public class ReadByDriver extends SparkPlan {
  private static final long serialVersionUID = 1L;
  /** Of what is computed of the rows that were read, which Python bounds. What loads Java's classes of texts has time for it. */
  private static final long MOST_NANOS = 500000000L;
  private static final long MOST_BYTES = 4L << 20;

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
    InternalRow[] rows = rows(Integer.MAX_VALUE);
    return rows == null ? child.executeCollect() : rows;
  }

  /** As a subquery's value is taken. */
  public InternalRow[] executeTake(int most) {
    InternalRow[] rows = rows(most);
    return rows == null ? child.executeTake(most) : rows;
  }

  public scala.collection.immutable.Map metrics() {
    return scala.collection.immutable.Map$.MODULE$.empty().updated("numOutputRows", rowsRead);
  }

  /** The same query without this node is the same one. */
  public SparkPlan doCanonicalize() {
    return child.canonicalized();
  }

  public RDD doExecute() {
    return child.execute();
  }

  /** The first rows; null where tasks are to read them, which do so too, and raise it, where anything fails here. */
  private InternalRow[] rows(int most) {
    try {
      byte[] stream = ((PrunedScan) relation.scan()).source().readByDriver();
      if (stream == null) return null;
      List read = LogAnswer.rows(stream, CollectionConverters.asJava(relation.output()));
      InternalRow[] rows = computed(read, most);
      if (rows == null) return null;
      status.readByDriver();
      count(rows.length);
      return rows;
    } catch (StackOverflowError error) {
      status.notReadByDriver(error);
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notReadByDriver(error);
    }
    return null;
  }

  /** Null where they take long, or much: a job does them beside each other, and can be cancelled. */
  private InternalRow[] computed(List read, int most) {
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(answer.schema());
    final long until = System.nanoTime() + MOST_NANOS;
    final Iterator given = read.iterator();
    Iterator rows = RowsAbove.of(answer, relation, new Iterator() {
      public boolean hasNext() {
        return System.nanoTime() < until && given.hasNext();
      }

      public Object next() {
        return given.next();
      }
    });
    long bytes = mostBytes();
    List copies = new ArrayList();
    while (copies.size() < most && rows.hasNext()) {
      UnsafeRow row = projection.apply((InternalRow) rows.next()).copy();
      bytes -= row.getSizeInBytes();
      if (bytes < 0) return null;
      copies.add(row);
    }
    return System.nanoTime() < until ? (InternalRow[]) copies.toArray(new InternalRow[0]) : null;
  }

  private long mostBytes() {
    long ofResults = sparkContext().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g");
    return ofResults == 0 ? MOST_BYTES : Math.min(MOST_BYTES, ofResults);
  }

  private void count(int rows) {
    rowsRead.add(rows);
    String execution = sparkContext().getLocalProperty(SQLExecution$.MODULE$.EXECUTION_ID_KEY());
    SQLMetrics$.MODULE$.postDriverMetricUpdates(sparkContext(), execution, metrics().values().toSeq());
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
