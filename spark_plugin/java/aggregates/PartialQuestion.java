package pydelta.aggregates;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CheckOverflow;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import pydelta.rule.Lists;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * What an aggregate asks of the tasks that read: as of the log, and sums and averages. Only what is the same whoever adds it up, and
 * in which order: no floating numbers, no strings but as groups, of which bytes tell whether two are equal.
 */
class PartialQuestion extends LogQuestion {
  private static final int MOST_DIGITS = 38;
  /** A sum has room for the digits of 10^10 rows. */
  private static final int MORE_DIGITS = 10;
  private static final DecimalType LONG_DIGITS = new DecimalType(20, 0);

  /** The columns told, by what they add up as JSON, and the names of the scan's columns in that. */
  private final Map sums = new LinkedHashMap();
  private final Set summed = new LinkedHashSet();

  PartialQuestion(LogicalPlan below) {
    super(below);
  }

  Expression added(AggregateExpression aggregate) {
    AggregateFunction function = aggregate.aggregateFunction();
    if (function instanceof Sum) return sum(aggregate, (Sum) function);
    return function instanceof Average ? average(aggregate, (Average) function) : null;
  }

  private Expression sum(AggregateExpression aggregate, Sum sum) {
    Attribute told = toldSum(sum.children().head());
    if (told == null) return null;
    List children = new ArrayList();
    children.add(told);
    AggregateFunction over = (AggregateFunction) sum.withNewChildren(Lists.toScala(children));
    Expression added = new AggregateExpression(over, aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
    if (added.dataType().equals(sum.dataType())) return added;
    return new CheckOverflow(added, (DecimalType) sum.dataType(), !SQLConf.get().ansiEnabled());
  }

  /**
   * What Spark makes of a sum and a count at the end, over ours. Spark adds integers up as floating numbers, which is as exact until
   * they leave 53 bits, and depends on the order of rows then. Ours are added up as decimals, as there may be more than a BIGINT holds.
   */
  private Expression average(AggregateExpression aggregate, Average average) {
    Expression child = average.children().head();
    Attribute column = scannedColumn(child instanceof UnscaledValue ? child.children().head() : child);
    if (column == null || column.dataType().equals(DataTypes.LongType)) return null;
    if (average.evalMode().equals(EvalMode$.MODULE$.TRY())) return null;
    Attribute told = toldSum(child);
    if (told == null) return null;
    Seq buffers = average.aggBufferAttributes().toSeq();
    Map ours = new HashMap();
    Expression addend = told.dataType().equals(DataTypes.LongType) ? cast(told, LONG_DIGITS) : told;
    AggregateExpression total = new AggregateExpression(
        new Sum(addend), aggregate.mode(), false, aggregate.filter(), NamedExpression$.MODULE$.newExprId());
    List parts = new ArrayList();
    parts.add(cast(total, ((Attribute) buffers.apply(0)).dataType()));
    parts.add(cast(Literal$.MODULE$.apply(Long.valueOf(0)), ((Attribute) buffers.apply(0)).dataType()));
    ours.put(((Attribute) buffers.apply(0)).exprId(), new Coalesce(Lists.toScala(parts)));
    ours.put(((Attribute) buffers.apply(1)).exprId(), total(aggregate, valued(column)));
    return average.evaluateExpression().transformUp(new Replacement(ours));
  }

  private static Expression cast(Expression expression, DataType type) {
    return new Cast(expression, type, Option.apply(null), EvalMode$.MODULE$.fromSQLConf(SQLConf.get()));
  }

  /** The column told whose values a sum over the expression adds up; null if there is none. */
  private Attribute toldSum(Expression child) {
    boolean unscaled = child instanceof UnscaledValue;
    Summand summand = Summand.of(unscaled ? child.children().head() : child, this);
    if (summand == null) return null;
    DataType told = unscaled || summand.type instanceof IntegralType ? DataTypes.LongType : sumType((DecimalType) summand.type);
    summed.addAll(summand.columns);
    Attribute known = told(sums, summand.json, told);
    return known.dataType().equals(told) ? known : null;
  }

  private static DataType sumType(DecimalType type) {
    return new DecimalType(Math.min(type.precision() + MORE_DIGITS, MOST_DIGITS), type.scale());
  }

  boolean hasEnds(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type instanceof DecimalType || type instanceof IntegralType || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  /** Whether rows may be put together by a column. The source knows whether integers have few values. */
  static boolean isGroup(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type.equals(DataTypes.StringType) || type instanceof IntegralType;
  }

  private static boolean isExact(DataType type) {
    return type instanceof BooleanType || type instanceof DateType;
  }

  List told() {
    List list = super.told();
    list.addAll(sums.values());
    return list;
  }

  Set asked() {
    Set names = super.asked();
    names.addAll(summed);
    return names;
  }

  /** read: the columns that it names, as the query knows them. */
  String json(List by, StructType read) {
    return "{" + columnsJson(by) + ", \"sums\": " + sums.keySet() + ", \"read\": " + read.json() + "}";
  }
}
