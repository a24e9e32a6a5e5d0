package pydelta.aggregates;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import pydelta.rule.Lists;
import pydelta.rule.Trees;
import scala.collection.immutable.Seq;

/**
 * What an aggregate over a scan asks of the log. It is collected while its functions are rewritten to use the log's answer.
 *
 * The answer's columns are: rows, the number of rows; for each counted column the number of its values; minima; maxima. count(*)
 * becomes the sum of rows, and min(a) the minimum of the minima. DISTINCT functions stay as they are: their result does not
 * change if many equal rows become one. The source refuses if a remaining column is not constant in each file.
 */
public class LogQuestion {
  private final Map<ExprId, Attribute> scanned = new HashMap<>();
  private final Seq<Attribute> output;
  private final Attribute rows = column("rows", DataTypes.LongType, false);
  private final Map<String, Attribute> valued = new LinkedHashMap<>();
  private final Map<String, Attribute> minima = new LinkedHashMap<>();
  private final Map<String, Attribute> maxima = new LinkedHashMap<>();
  private boolean understood = true;
  private boolean plain = true;

  /** below: filters and projections over one scan. */
  LogQuestion(LogicalPlan below) {
    this.output = name(below);
  }

  /** Notes the ids that the scan's attributes have above the node, and returns the attributes. */
  private Seq<Attribute> name(LogicalPlan node) {
    if (!node.children().isEmpty()) {
      Seq<Attribute> attributes = name(node.children().head());
      if (node instanceof Project project) addAliases(project.projectList());
      return attributes;
    }
    for (Attribute attribute : Lists.toJava(node.output())) scanned.put(attribute.exprId(), attribute);
    return node.output();
  }

  private void addAliases(Seq<NamedExpression> projected) {
    for (NamedExpression named : Lists.toJava(projected)) {
      Attribute column = named instanceof Alias alias ? scannedColumn(alias.child()) : null;
      if (column != null) scanned.put(named.exprId(), column);
    }
  }

  static Attribute column(String name, DataType type, boolean nullable) {
    return new AttributeReference(
        name, type, nullable, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), Lists.toScala(List.of()));
  }

  // ---------------------------------------------------------------- rewriting

  /** The result expressions over the answer's columns; null if one of them needs the rows themselves. */
  List<NamedExpression> rewritten(Seq<NamedExpression> results) {
    var rewritten = new ArrayList<NamedExpression>();
    for (NamedExpression result : Lists.toJava(results)) {
      rewritten.add((NamedExpression) ((Expression) result).transformUp(Trees.change(this::rewritten)));
    }
    return understood ? rewritten : null;
  }

  /** Whether no function has a FILTER or DISTINCT. */
  boolean isPlain() {
    return plain;
  }

  private Expression rewritten(Expression expression) {
    if (!(expression instanceof AggregateExpression aggregate)) return expression;
    AggregateFunction function = aggregate.aggregateFunction();
    if (aggregate.filter().isDefined()) plain = false;
    if (function instanceof Min || function instanceof Max) {
      Attribute column = scannedColumn(function.children().head());
      if (column != null && hasEnds(column)) return extreme(aggregate, column, function instanceof Min);
    }
    if (aggregate.isDistinct()) {
      plain = false;
      return aggregate;
    }
    Attribute counted = function instanceof Count ? counted(function.children()) : null;
    if (counted != null) return total(aggregate, counted);
    Expression added = added(aggregate);
    if (added != null) return added;
    understood = false;
    return aggregate;
  }

  /** A sum or an average over the answer's columns; null if the answer cannot have them. */
  Expression added(AggregateExpression aggregate) {
    return null;
  }

  /** Whether the answer can have the smallest and the largest value of a column. */
  boolean hasEnds(Attribute column) {
    return true;
  }

  Attribute scannedColumn(Expression expression) {
    return expression instanceof Attribute attribute ? scanned.get(attribute.exprId()) : null;
  }

  private Expression extreme(AggregateExpression aggregate, Attribute column, boolean smallest) {
    Attribute bound = answerColumn(smallest ? minima : maxima, column.name(), column.dataType());
    AggregateFunction function = smallest ? new Min(bound) : new Max(bound);
    return new AggregateExpression(function, aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
  }

  /** The answer's column that count adds up; null if there is none. */
  private Attribute counted(Seq<Expression> children) {
    if (children.forall(child -> child instanceof Literal literal && literal.value() != null)) return rows;
    Attribute column = children.length() == 1 ? scannedColumn(children.head()) : null;
    return column == null ? null : valued(column);
  }

  Attribute valued(Attribute column) {
    return answerColumn(valued, column.name(), DataTypes.LongType);
  }

  static Expression total(AggregateExpression aggregate, Attribute counts) {
    var sum = new AggregateExpression(new Sum(counts), aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
    return new Coalesce(Lists.toScala(List.of(sum, Literal$.MODULE$.apply(0L))));
  }

  static Attribute answerColumn(Map<String, Attribute> columns, String name, DataType type) {
    return columns.computeIfAbsent(name, each -> column(name, type, true));
  }

  // ---------------------------------------------------------------- attributes

  static void addReferences(Expression expression, Set<ExprId> ids) {
    for (Attribute reference : Lists.toJava(expression.references())) ids.add(reference.exprId());
  }

  /** The ids of the attributes that the aggregate takes from the plan below, without the answer's columns. */
  Set<ExprId> needed(List<NamedExpression> results, Seq<Expression> grouping) {
    var ids = new HashSet<ExprId>();
    for (NamedExpression result : results) addReferences((Expression) result, ids);
    for (Expression group : Lists.toJava(grouping)) addReferences(group, ids);
    for (Attribute column : answerColumns()) ids.remove(column.exprId());
    return ids;
  }

  /** The answer's columns, in order. */
  List<Attribute> answerColumns() {
    var columns = new ArrayList<Attribute>();
    columns.add(rows);
    columns.addAll(valued.values());
    columns.addAll(minima.values());
    columns.addAll(maxima.values());
    return columns;
  }

  /** The names of the scan's columns that the question is about. */
  Set<String> namedColumns() {
    var names = new LinkedHashSet<String>(valued.keySet());
    names.addAll(minima.keySet());
    names.addAll(maxima.keySet());
    return names;
  }

  /** The scan's attributes among the needed ones. Raises if there are others. */
  List<Attribute> by(Set<ExprId> needed) {
    List<Attribute> by = Lists.toJava(output);
    by.removeIf(attribute -> !needed.contains(attribute.exprId()));
    if (by.size() != needed.size()) throw new IllegalStateException("the aggregate needs more than " + output);
    return by;
  }

  // ---------------------------------------------------------------- text

  /** The question for Python. only: the scan will not be read. */
  public String json(List<Attribute> by, boolean only) {
    return "{" + columnsJson(by) + ", \"only\": " + only + "}";
  }

  /** The parts of `json`, without the braces. */
  String columnsJson(List<Attribute> by) {
    return "\"by\": " + texts(by.stream().map(Attribute::name).toList()) + ", \"valued\": " + texts(valued.keySet())
        + ", \"minima\": " + texts(minima.keySet()) + ", \"maxima\": " + texts(maxima.keySet());
  }

  private static String texts(Collection<String> names) {
    return names.stream().map(TextNode::valueOf).toList().toString();
  }
}
