package pydelta.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.Conditions;
import pydelta.rule.Lists;
import pydelta.rule.NodeCopy;
import pydelta.scan.ColumnarChoice;
import pydelta.scan.PredicateJson;
import pydelta.scan.ScanRequest;
import scala.collection.immutable.Seq;

/**
 * Has the streams of a micro-batch read the columns that the batch needs, and in columns where that can be, and leave out rows that
 * a filter above them would.
 *
 * Spark hands a streaming source nothing of these: it leaves streams out of its push-down. A stream that a plan has more than once
 * is read whole each time, as Spark counts the rows of equal scans together.
 */
public class StreamScans extends scala.runtime.AbstractPartialFunction {
  private final ColumnarChoice choice;
  private final Map uses = new HashMap();

  private StreamScans(ColumnarChoice choice) {
    this.choice = choice;
  }

  /** choice: null for rows. */
  public static LogicalPlan in(LogicalPlan plan, ColumnarChoice choice) {
    StreamScans scans = new StreamScans(choice);
    scans.find(plan);
    return scans.uses.isEmpty() ? plan : plan.transformDown(scans);
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
    if (!(plan instanceof StreamingDataSourceV2ScanRelation relation)) return false;
    if (!(relation.stream() instanceof PythonSourceStream stream) || !stream.isPruned()) return false;
    return relation.startOffset().isDefined() && relation.endOffset().isDefined();
  }

  public boolean isDefinedAt(Object node) {
    return isOurs(node) || isOurs(filtered(node)) || isOurs(projected(node)) || isOurs(filtered(projected(node)));
  }

  /** A stream, under a filter or not, and that under a projection or not. */
  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    LogicalPlan plan = (LogicalPlan) node;
    LogicalPlan below = projected(plan) == null ? plan : projected(plan);
    Filter filter = filtered(below) == null ? null : (Filter) below;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) (filter == null ? below : filter.child());
    Seq columns = relation.output();
    if (below != plan) {
      AttributeSet wanted = plan.references();
      columns = columnsOf(relation, filter == null ? wanted : wanted.$plus$plus(filter.references()));
    }
    LogicalPlan read = viewed(relation, columns, filter);
    if (filter != null) read = onto(filter, read);
    return below == plan ? read : onto(plan, read);
  }

  private static LogicalPlan onto(LogicalPlan node, LogicalPlan child) {
    return node.withNewChildren((Seq) ((Seq) scala.collection.immutable.List$.MODULE$.empty()).appended(child));
  }

  private static LogicalPlan projected(Object node) {
    return node instanceof Project ? ((Project) node).child() : null;
  }

  private static LogicalPlan filtered(Object node) {
    return node instanceof Filter ? ((Filter) node).child() : null;
  }

  /** What the source may leave rows out by. All stays in Spark's plan. */
  private static List predicates(Filter filter, Seq output, StructType schema) {
    List found = new ArrayList();
    if (filter == null) return found;
    List conditions = Conditions.conjuncts(filter.condition());
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = (Expression) conditions.get(i);
      PredicateJson json = condition.deterministic() ? Conditions.handedOver(condition, output, schema) : null;
      if (json != null) found.add(json);
    }
    return found;
  }

  /** The attributes that are wanted, in their order; one, where rows are only counted. */
  private Seq columnsOf(StreamingDataSourceV2ScanRelation relation, AttributeSet wanted) {
    Seq output = relation.output();
    if (isRepeated(relation)) return output;
    List kept = new ArrayList();
    for (Iterator each = Lists.toJava(output).iterator(); each.hasNext();) {
      Object column = each.next();
      if (wanted.contains((Attribute) column)) kept.add(column);
    }
    if (kept.isEmpty()) kept.add(smallest(output));
    return Lists.toScala(kept);
  }

  private boolean isRepeated(StreamingDataSourceV2ScanRelation relation) {
    return ((Integer) uses.get(relation.stream())).intValue() > 1;
  }

  private static Object smallest(Seq output) {
    for (Iterator each = Lists.toJava(output).iterator(); each.hasNext();) {
      Object column = each.next();
      if (((Attribute) column).dataType() instanceof NumericType) return column;
    }
    return output.apply(0);
  }

  /** filter: above the relation; null for none. */
  private LogicalPlan viewed(StreamingDataSourceV2ScanRelation relation, Seq columns, Filter filter) {
    PythonSourceStream stream = (PythonSourceStream) relation.stream();
    StructType schema = schemaOf(stream.schema(), relation.output(), columns);
    List predicates = predicates(isRepeated(relation) ? null : filter, relation.output(), stream.schema());
    List batch = Arrays.asList(new Object[] {relation.startOffset(), relation.endOffset()});
    StreamView view = stream.view(batch, stream.request(schema, predicates), choice);
    return NodeCopy.with(
        relation, new Object[] {stream, relation.scan(), relation.output()},
        new Object[] {view, view.scan(), columns});
  }

  /** The fields of a stream that attributes of its relation stand for. */
  private static StructType schemaOf(StructType whole, Seq output, Seq columns) {
    if (output.length() != whole.length()) {
      throw new IllegalStateException("the stream has " + whole.length() + " columns and its relation " + output.length());
    }
    Set kept = new HashSet(Lists.toJava(columns));
    List fields = new ArrayList();
    Iterator each = Lists.toJava(output).iterator();
    for (int i = 0; each.hasNext(); i++) {
      if (kept.contains(each.next())) fields.add(whole.fields()[i]);
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }
}
