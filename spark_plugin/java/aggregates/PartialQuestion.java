package pydelta.aggregates;

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
import org.apache.spark.sql.catalyst.expressions.ExprId;
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
import pydelta.rule.Trees;
import scala.Option;

/**
 * What an aggregate asks of the tasks that read rows: the same as of the log, and sums and averages. The result must not depend
 * on which task adds up which rows, and in which order. So there are no floating-point numbers, and strings only as groups, if
 * equal strings have equal bytes.
 */
class PartialQuestion extends LogQuestion {
  private static final int MOST_DIGITS = 38;
  /** A sum has room for the digits of 10^10 rows. */
  private static final int MORE_DIGITS = 10;
  private static final DecimalType LONG_DIGITS = new DecimalType(20, 0);

  /** The answer's columns of sums, by the summand as JSON, and the names of the scan's columns in the summands. */
  private final Map<String, Attribute> sums = new LinkedHashMap<>();
  private final Set<String> summed = new LinkedHashSet<>();

  PartialQuestion(LogicalPlan below) {
    super(below);
  }

  Expression added(AggregateExpression aggregate) {
    AggregateFunction function = aggregate.aggregateFunction();
    if (function instanceof Sum sum) return sum(aggregate, sum);
    return function instanceof Average average ? average(aggregate, average) : null;
  }

  private Expression sum(AggregateExpression aggregate, Sum sum) {
    Attribute addends = answerSum(sum.children().head());
    if (addends == null) return null;
    AggregateFunction over = (AggregateFunction) sum.withNewChildren(Lists.toScala(List.of(addends)));
    Expression added = new AggregateExpression(over, aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
    if (added.dataType().equals(sum.dataType())) return added;
    return new CheckOverflow(added, (DecimalType) sum.dataType(), !SQLConf.get().ansiEnabled());
  }

  /**
   * The final step of Spark's average, over our sum and count. Spark adds up integers as floating-point numbers, which is exact
   * up to 53 bits, and depends on the order of rows beyond that. We add up decimals, because the sum may exceed a BIGINT.
   */
  private Expression average(AggregateExpression aggregate, Average average) {
    Expression child = average.children().head();
    Attribute column = scannedColumn(child instanceof UnscaledValue ? child.children().head() : child);
    if (column == null || column.dataType().equals(DataTypes.LongType)) return null;
    if (average.evalMode().equals(EvalMode$.MODULE$.TRY())) return null;
    Attribute addends = answerSum(child);
    if (addends == null) return null;
    Attribute sumBuffer = average.aggBufferAttributes().apply(0);
    Attribute countBuffer = average.aggBufferAttributes().apply(1);
    Expression addend = addends.dataType().equals(DataTypes.LongType) ? cast(addends, LONG_DIGITS) : addends;
    var total = new AggregateExpression(
        new Sum(addend), aggregate.mode(), false, aggregate.filter(), NamedExpression$.MODULE$.newExprId());
    List<Expression> parts = List.of(cast(total, sumBuffer.dataType()), cast(Literal$.MODULE$.apply(0L), sumBuffer.dataType()));
    Map<ExprId, Expression> ours = Map.of(
        sumBuffer.exprId(), new Coalesce(Lists.toScala(parts)), countBuffer.exprId(), total(aggregate, valued(column)));
    return average.evaluateExpression().transformUp(Trees.change(
        node -> node instanceof Attribute buffer ? ours.getOrDefault(buffer.exprId(), node) : node));
  }

  private static Expression cast(Expression expression, DataType type) {
    return new Cast(expression, type, Option.apply(null), EvalMode$.MODULE$.fromSQLConf(SQLConf.get()));
  }

  /** The answer's column with the sum of the expression; null if there is none. */
  private Attribute answerSum(Expression child) {
    boolean unscaled = child instanceof UnscaledValue;
    Summand summand = Summand.of(unscaled ? child.children().head() : child, this);
    if (summand == null) return null;
    boolean isLong = unscaled || summand.type() instanceof IntegralType;
    DataType sumType = isLong ? DataTypes.LongType : sumType((DecimalType) summand.type());
    summed.addAll(summand.columns());
    Attribute known = answerColumn(sums, summand.json(), sumType);
    return known.dataType().equals(sumType) ? known : null;
  }

  private static DataType sumType(DecimalType type) {
    return new DecimalType(Math.min(type.precision() + MORE_DIGITS, MOST_DIGITS), type.scale());
  }

  boolean hasEnds(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type instanceof DecimalType || type instanceof IntegralType || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  /** Whether rows may be grouped by a column. The source knows whether a column of integers has few values. */
  static boolean isGroup(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type.equals(DataTypes.StringType) || type instanceof IntegralType;
  }

  private static boolean isExact(DataType type) {
    return type instanceof BooleanType || type instanceof DateType;
  }

  List<Attribute> answerColumns() {
    List<Attribute> columns = super.answerColumns();
    columns.addAll(sums.values());
    return columns;
  }

  Set<String> namedColumns() {
    Set<String> names = super.namedColumns();
    names.addAll(summed);
    return names;
  }

  /** read: the columns that the scan reads, as the query knows them. */
  String json(List<Attribute> by, StructType read) {
    return "{" + columnsJson(by) + ", \"sums\": " + sums.keySet() + ", \"read\": " + read.json() + "}";
  }
}
