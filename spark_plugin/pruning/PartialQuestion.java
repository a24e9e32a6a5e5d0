package pydelta.pruning;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CheckOverflow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
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

/**
 * What an aggregate asks of the tasks that read: as of the log, and sums. Only what is the same whoever adds it up, and in which
 * order: no floating numbers, no strings but as groups, of which bytes tell whether two are equal.
 */
class PartialQuestion extends LogQuestion {
  /** Wider ones lie in memory as Java's big numbers; a sum of these has room for the digits of 10^10 rows. */
  private static final int MOST_DIGITS = 18;
  private static final int MORE_DIGITS = 10;

  private final Map sums = new LinkedHashMap();

  PartialQuestion(LogicalPlan below) {
    super(below);
  }

  Expression sum(AggregateExpression aggregate, Sum sum) {
    Expression child = (Expression) sum.children().head();
    boolean unscaled = child instanceof UnscaledValue;
    Attribute column = scannedColumn(unscaled ? (Expression) child.children().head() : child);
    DataType told = column == null ? null : unscaled ? DataTypes.LongType : sumType(column.dataType());
    if (told == null) return null;
    Attribute known = (Attribute) sums.get(column.name());
    if (known != null && !known.dataType().equals(told)) return null;
    List children = new ArrayList();
    children.add(told(sums, column, told));
    AggregateFunction over = (AggregateFunction) sum.withNewChildren(Lists.toScala(children));
    Expression added = new AggregateExpression(over, aggregate.mode(), false, aggregate.filter(), aggregate.resultId());
    if (added.dataType().equals(sum.dataType())) return added;
    return new CheckOverflow(added, (DecimalType) sum.dataType(), !SQLConf.get().ansiEnabled());
  }

  /** Null where the order of adding, or how it ends, may tell. */
  private static DataType sumType(DataType type) {
    if (type instanceof IntegralType) return DataTypes.LongType;
    if (!(type instanceof DecimalType)) return null;
    DecimalType decimal = (DecimalType) type;
    boolean plain = decimal.precision() <= MOST_DIGITS && decimal.scale() >= 0;
    return plain ? new DecimalType(decimal.precision() + MORE_DIGITS, decimal.scale()) : null;
  }

  boolean hasEnds(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type instanceof DecimalType || type instanceof IntegralType || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  /** Whether rows are put together by a column: of types that mostly have few values. */
  static boolean isGroup(Attribute column) {
    DataType type = column.dataType();
    return isExact(type) || type.equals(DataTypes.StringType) || type.equals(DataTypes.ByteType) || type.equals(DataTypes.ShortType);
  }

  private static boolean isExact(DataType type) {
    return type instanceof BooleanType || type instanceof DateType;
  }

  List told() {
    List list = super.told();
    list.addAll(sums.values());
    return list;
  }

  /** read: the columns that it names, as the query knows them. */
  String json(List by, StructType read) {
    return "{" + columnsJson(by) + ", \"sums\": " + texts(sums.keySet()) + ", \"read\": " + read.json() + "}";
  }
}
