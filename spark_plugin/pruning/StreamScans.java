package pydelta.pruning;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Has the streams of a micro-batch read the columns that the batch needs, and in columns where that can be.
 *
 * Spark hands a streaming source neither: it leaves streams out of its push-down. A stream that a plan has more than once is read
 * whole each time, as Spark counts the rows of equal scans together.
 */
class StreamScans extends scala.runtime.AbstractPartialFunction {
  private final ColumnarChoice choice;
  private final RuleStatus status;
  private final Map uses = new HashMap();

  private StreamScans(ColumnarChoice choice, RuleStatus status) {
    this.choice = choice;
    this.status = status;
  }

  /** choice: null for rows. */
  static LogicalPlan in(LogicalPlan plan, ColumnarChoice choice, RuleStatus status) {
    StreamScans scans = new StreamScans(choice, status);
    scans.find(plan);
    return scans.uses.isEmpty() ? plan : (LogicalPlan) plan.transformDown(scans);
  }

  private void find(LogicalPlan plan) {
    if (isOurs(plan)) {
      Object stream = ((StreamingDataSourceV2ScanRelation) plan).stream();
      Integer before = (Integer) uses.get(stream);
      uses.put(stream, Integer.valueOf(before == null ? 1 : before.intValue() + 1));
    }
    Seq children = plan.children();
    for (int i = 0; i < children.length(); i++) find((LogicalPlan) children.apply(i));
  }

  private static boolean isOurs(Object plan) {
    if (!(plan instanceof StreamingDataSourceV2ScanRelation)) return false;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) plan;
    return relation.stream() instanceof PythonSourceStream && relation.startOffset().isDefined() && relation.endOffset().isDefined();
  }

  public boolean isDefinedAt(Object node) {
    return isOurs(node) || isOurs(under(node));
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (isOurs(node)) {
      StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) node;
      return viewed(relation, relation.output());
    }
    if (!isOurs(under(node))) return otherwise.apply(node);
    Project project = (Project) node;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) under(node);
    AttributeSet wanted = project.references();
    if (project.child() instanceof Filter) wanted = wanted.$plus$plus(project.child().references());
    LogicalPlan view = viewed(relation, columnsOf(relation, wanted));
    return onto(project, project.child() instanceof Filter ? onto(project.child(), view) : view);
  }

  private static LogicalPlan onto(LogicalPlan node, LogicalPlan child) {
    return (LogicalPlan) node.withNewChildren((Seq) ((Seq) scala.collection.immutable.List$.MODULE$.empty()).appended(child));
  }

  /** What a projection has below it, under a filter if there is one. */
  private static Object under(Object node) {
    if (!(node instanceof Project)) return null;
    LogicalPlan child = ((Project) node).child();
    return child instanceof Filter ? ((Filter) child).child() : child;
  }

  /** The attributes that are wanted, in their order; one, where rows are only counted. */
  private Seq columnsOf(StreamingDataSourceV2ScanRelation relation, AttributeSet wanted) {
    Seq output = relation.output();
    if (((Integer) uses.get(relation.stream())).intValue() > 1) return output;
    Seq kept = (Seq) scala.collection.immutable.List$.MODULE$.empty();
    for (int i = 0; i < output.length(); i++) {
      if (wanted.contains((Attribute) output.apply(i))) kept = (Seq) kept.appended(output.apply(i));
    }
    return kept.isEmpty() ? (Seq) kept.appended(smallest(output)) : kept;
  }

  private static Object smallest(Seq output) {
    for (int i = 0; i < output.length(); i++) {
      if (((Attribute) output.apply(i)).dataType() instanceof NumericType) return output.apply(i);
    }
    return output.apply(0);
  }

  private LogicalPlan viewed(StreamingDataSourceV2ScanRelation relation, Seq columns) {
    PythonSourceStream stream = (PythonSourceStream) relation.stream();
    StructType schema = schemaOf(stream.schema(), relation.output(), columns);
    ScanReaders readers = choice == null ? ScanReaders.ROWS : choice.readersFor(schema);
    ScanRequest request = stream.request(schema);
    return NodeCopy.with(
        relation, new Object[] {stream, relation.scan(), relation.output()},
        new Object[] {new StreamView(stream, request, readers, status), new ViewedScan(request, readers), columns});
  }

  /** The fields of a stream that attributes of its relation stand for. */
  private static StructType schemaOf(StructType whole, Seq output, Seq columns) {
    if (output.length() != whole.length()) {
      throw new IllegalStateException("the stream has " + whole.length() + " columns and its relation " + output.length());
    }
    StructType schema = new StructType();
    for (int i = 0; i < output.length(); i++) {
      StructField field = whole.fields()[i];
      if (columns.contains(output.apply(i))) schema = schema.add(field);
    }
    return schema;
  }
}
