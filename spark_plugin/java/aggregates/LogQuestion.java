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
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
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
import scala.collection.immutable.Seq;

/**
 * What an aggregate over a scan asks of the log, collected while its functions are rewritten to take it from there.
 *
 * The columns told: rows, the number of rows; per counted column how many rows have a value; minima; maxima. count(*) becomes
 * the sum of rows, min(a) the minimum of the minima. DISTINCT functions stay as they are: they do not mind that many rows
 * became one. The source says no if a column that is left is not constant in each file.
 */
public class LogQuestion extends scala.runtime.AbstractPartialFunction {
  private final Map scanned = new HashMap();
  private final Seq output;
  private final Attribute rows = column("rows", DataTypes.LongType, false);
  private final Map valued = new LinkedHashMap();
  private final Map minima = new LinkedHashMap();
  private final Map maxima = new LinkedHashMap();
  private boolean understood = true;
  private boolean plain = true;

  /** below: filters and projections over one scan. */
  LogQuestion(LogicalPlan below) {
    this.output = name(below);
  }

  /** Notes by which ids the scan's attributes go above the node; returns the attributes. */
  private Seq name(LogicalPlan node) {
    if (!node.children().isEmpty()) {
      Seq attributes = name(node.children().head());
      if (node instanceof Project) addAliases(((Project) node).projectList());
      return attributes;
    }
    List output = Lists.toJava(node.output());
    for (int i = 0; i < output.size(); i++) {
      Attribute attribute = (Attribute) output.get(i);
      scanned.put(attribute.exprId(), attribute);
    }
    return node.output();
  }

  private void addAliases(Seq projected) {
    List list = Lists.toJava(projected);
    for (int i = 0; i < list.size(); i++) {
      if (!(list.get(i) instanceof Alias)) continue;
      Alias alias = (Alias) list.get(i);
      Attribute column = scannedColumn(alias.child());
      if (column != null) scanned.put(alias.exprId(), column);
    }
  }

  static Attribute column(String name, DataType type, boolean nullable) {
    return new AttributeReference(
        name, type, nullable, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), Lists.toScala(new ArrayList()));
  }

  // ---------------------------------------------------------------- rewriting

  /** The result expressions over the columns told; null if one of them needs the rows themselves. */
  List rewritten(Seq results) {
    List list = new ArrayList();
    for (java.util.Iterator each = Lists.toJava(results).iterator(); each.hasNext();) {
      list.add(((Expression) each.next()).transformUp(this));
    }
    return understood ? list : null;
  }

  /** Whether no function has a FILTER or DISTINCT. */
  boolean isPlain() {
    return plain;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AggregateExpression;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    AggregateExpression aggregate = (AggregateExpression) node;
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

  /** A sum or an average over columns told; null where it is not told. */
  Expression added(AggregateExpression aggregate) {
    return null;
  }

  /** Whether the smallest and the largest value of a column can be told. */
  boolean hasEnds(Attribute column) {
    return true;
  }

  Attribute scannedColumn(Expression expression) {
    return expression instanceof Attribute ? (Attribute) scanned.get(((Attribute) expression).exprId()) : null;
  }

  private Object extreme(AggregateExpression aggregate, Attribute column, boolean smallest) {
    Attribute told = told(smallest ? minima : maxima, column.name(), column.dataType());
    AggregateFunction function = smallest ? (AggregateFunction) new Min(told) : (AggregateFunction) new Max(told);
    return new AggregateExpression(function, aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
  }

  /** The column told that count adds up; null if there is none. */
  private Attribute counted(Seq children) {
    boolean constant = true;
    for (int i = 0; i < children.length(); i++) {
      constant = constant && children.apply(i) instanceof Literal && ((Literal) children.apply(i)).value() != null;
    }
    if (constant) return rows;
    Attribute column = children.length() == 1 ? scannedColumn((Expression) children.head()) : null;
    return column == null ? null : valued(column);
  }

  Attribute valued(Attribute column) {
    return told(valued, column.name(), DataTypes.LongType);
  }

  static Expression total(AggregateExpression aggregate, Attribute told) {
    List parts = new ArrayList();
    parts.add(new AggregateExpression(new Sum(told), aggregate.mode(), false, aggregate.filter(), aggregate.resultId()));
    parts.add(Literal$.MODULE$.apply(Long.valueOf(0)));
    return new Coalesce(Lists.toScala(parts));
  }

  static Attribute told(Map columns, String name, DataType type) {
    Attribute known = (Attribute) columns.get(name);
    if (known == null) columns.put(name, known = column(name, type, true));
    return known;
  }

  // ---------------------------------------------------------------- attributes

  static Set none() {
    return new HashSet();
  }

  static void addReferences(Expression expression, Set ids) {
    List references = Lists.toJava(expression.references().toSeq());
    for (int i = 0; i < references.size(); i++) ids.add(((Attribute) references.get(i)).exprId());
  }

  /** The ids of what the aggregate takes from the plan below, without the columns told. */
  Set needed(List results, Seq grouping) {
    Set ids = none();
    for (int i = 0; i < results.size(); i++) addReferences((Expression) results.get(i), ids);
    for (java.util.Iterator each = Lists.toJava(grouping).iterator(); each.hasNext();) {
      addReferences((Expression) each.next(), ids);
    }
    List told = told();
    for (int i = 0; i < told.size(); i++) ids.remove(((Attribute) told.get(i)).exprId());
    return ids;
  }

  /** The columns told, in the order of the answer. */
  List told() {
    List list = new ArrayList();
    list.add(rows);
    list.addAll(valued.values());
    list.addAll(minima.values());
    list.addAll(maxima.values());
    return list;
  }

  /** The names of the scan's columns of which it asks something. */
  Set asked() {
    Set names = new LinkedHashSet(valued.keySet());
    names.addAll(minima.keySet());
    names.addAll(maxima.keySet());
    return names;
  }

  /** The scan's attributes among the needed ones. Raises if there are others. */
  List by(Set needed) {
    List list = new ArrayList();
    List attributes = Lists.toJava(output);
    for (int i = 0; i < attributes.size(); i++) {
      if (needed.contains(((Attribute) attributes.get(i)).exprId())) list.add(attributes.get(i));
    }
    if (list.size() != needed.size()) throw new IllegalStateException("the aggregate needs more than " + output);
    return list;
  }

  // ---------------------------------------------------------------- text

  /** For Python. only: the scan will not be read. */
  public String json(List by, boolean only) {
    return "{" + columnsJson(by) + ", \"only\": " + only + "}";
  }

  /** The parts of `json`, without the braces. */
  String columnsJson(List by) {
    List names = new ArrayList();
    for (int i = 0; i < by.size(); i++) names.add(((Attribute) by.get(i)).name());
    return "\"by\": " + texts(names) + ", \"valued\": " + texts(valued.keySet()) + ", \"minima\": " + texts(minima.keySet())
        + ", \"maxima\": " + texts(maxima.keySet());
  }

  static String texts(Collection names) {
    List quoted = new ArrayList();
    for (java.util.Iterator each = names.iterator(); each.hasNext();) {
      quoted.add(TextNode.valueOf((String) each.next()).toString());
    }
    return quoted.toString();
  }
}
