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
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.Conditions;
import pydelta.rule.Lists;
import pydelta.rule.NodeCopy;
import pydelta.scan.ColumnarChoice;
import pydelta.messages.PredicateJson;
import pydelta.scan.ScanRequest;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Pushes columns and filters of a micro-batch down to its streams, and lets them be read in columns if possible.
 *
 * Spark's own push-down leaves streams out. A stream that a plan has more than once is read whole each time, since Spark counts
 * the rows of equal scans together.
 */
public class StreamScans extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
  private final ColumnarChoice choice;
  /** How often the plan has each stream. */
  private final Map<SparkDataStream, Integer> uses = new HashMap<>();

  private StreamScans(ColumnarChoice choice) {
    this.choice = choice;
  }

  /** choice: null for rows. */
  public static LogicalPlan in(LogicalPlan plan, ColumnarChoice choice) {
    var scans = new StreamScans(choice);
    scans.count(plan);
    return scans.uses.isEmpty() ? plan : plan.transformDown(scans);
  }

  private void count(LogicalPlan plan) {
    if (isOurs(plan)) uses.merge(((StreamingDataSourceV2ScanRelation) plan).stream(), 1, Integer::sum);
    Lists.toJava(plan.children()).forEach(this::count);
  }

  /** Whether the plan is a batch of one of our streams to which `in` has not pushed columns or filters. */
  public static boolean isUnprunedBatch(LogicalPlan plan) {
    if (!(plan instanceof StreamingDataSourceV2ScanRelation relation)) return false;
    if (!(relation.stream() instanceof PythonSourceStream)) return false;
    return relation.startOffset().isDefined() && relation.endOffset().isDefined();
  }

  private static boolean isOurs(LogicalPlan plan) {
    return isUnprunedBatch(plan) && ((PythonSourceStream) ((StreamingDataSourceV2ScanRelation) plan).stream()).isPruned();
  }

  public boolean isDefinedAt(LogicalPlan node) {
    return isOurs(node) || isOurs(filtered(node)) || isOurs(projected(node)) || isOurs(filtered(projected(node)));
  }

  /** node: a stream, under a filter or not, and that under a projection or not. */
  public LogicalPlan apply(LogicalPlan node) {
    LogicalPlan below = projected(node) == null ? node : projected(node);
    Filter filter = below instanceof Filter condition ? condition : null;
    var relation = (StreamingDataSourceV2ScanRelation) (filter == null ? below : filter.child());
    Seq<Attribute> columns = outputOf(relation);
    if (below != node) {
      AttributeSet needed = node.references();
      columns = columnsOf(relation, filter == null ? needed : needed.$plus$plus(filter.references()));
    }
    LogicalPlan read = viewed(relation, columns, filter);
    if (filter != null) read = onto(filter, read);
    return below == node ? read : onto(node, read);
  }

  private static LogicalPlan onto(LogicalPlan node, LogicalPlan child) {
    return node.withNewChildren(Lists.toScala(List.of(child)));
  }

  private static LogicalPlan projected(LogicalPlan node) {
    return node instanceof Project project ? project.child() : null;
  }

  private static LogicalPlan filtered(LogicalPlan node) {
    return node instanceof Filter filter ? filter.child() : null;
  }

  /** The output as a Seq of Attribute. To Java the output of the relation itself, a Seq of AttributeReference, is none. */
  private static Seq<Attribute> outputOf(LogicalPlan relation) {
    return relation.output();
  }

  /** The predicates by which the source may leave rows out. The filter stays in Spark's plan. filter: null for none. */
  private static List<PredicateJson> predicates(Filter filter, Seq<Attribute> output, StructType schema) {
    var predicates = new ArrayList<PredicateJson>();
    if (filter == null) return predicates;
    for (Object each : Conditions.conjuncts(filter.condition())) {
      var condition = (Expression) each;
      PredicateJson json = condition.deterministic() ? Conditions.handedOver(condition, output, schema) : null;
      if (json != null) predicates.add(json);
    }
    return predicates;
  }

  /** The attributes of the output that are wanted, in its order; one attribute if rows are only counted. */
  private Seq<Attribute> columnsOf(StreamingDataSourceV2ScanRelation relation, AttributeSet needed) {
    if (isRepeated(relation)) return outputOf(relation);
    List<Attribute> output = Lists.toJava(outputOf(relation));
    List<Attribute> columns = output.stream().filter(needed::contains).toList();
    return Lists.toScala(columns.isEmpty() ? List.of(smallest(output)) : columns);
  }

  private boolean isRepeated(StreamingDataSourceV2ScanRelation relation) {
    return uses.get(relation.stream()) > 1;
  }

  private static Attribute smallest(List<Attribute> output) {
    return output.stream().filter(column -> column.dataType() instanceof NumericType).findFirst().orElse(output.get(0));
  }

  /** filter: above the relation; null for none. */
  private LogicalPlan viewed(StreamingDataSourceV2ScanRelation relation, Seq<Attribute> columns, Filter filter) {
    var stream = (PythonSourceStream) relation.stream();
    Seq<Attribute> output = outputOf(relation);
    StructType schema = schemaOf(stream.schema(), output, columns);
    ScanRequest request = stream.request(schema, predicates(isRepeated(relation) ? null : filter, output, stream.schema()));
    StreamView view = stream.view(relation.startOffset().get(), relation.endOffset().get(), request, choice);
    return NodeCopy.with(relation, new NodeCopy.Change(stream, view), new NodeCopy.Change(relation.scan(), view.scan()),
        new NodeCopy.Change(output, columns));
  }

  /** The fields of a stream that attributes of its relation stand for. */
  private static StructType schemaOf(StructType whole, Seq<Attribute> output, Seq<Attribute> columns) {
    if (output.length() != whole.length()) {
      throw new IllegalStateException("the stream has " + whole.length() + " columns and its relation " + output.length());
    }
    Set<Attribute> read = new HashSet<>(Lists.toJava(columns));
    Iterator<Attribute> attributes = Lists.toJava(output).iterator();
    var fields = new ArrayList<StructField>();
    for (StructField field : whole.fields()) {
      if (read.contains(attributes.next())) fields.add(field);
    }
    return new StructType(fields.toArray(new StructField[0]));
  }
}
