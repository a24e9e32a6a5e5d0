package pydelta.aggregates;

import com.fasterxml.jackson.databind.node.TextNode;
import java.math.BigDecimal;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;

/**
 * The summand of a sum: a column of integers or decimals, or products, sums and differences of these, as
 * delta_py/scan/summands.py knows them. Only exact expressions count: there is no summand if Spark would round.
 *
 * json: for Python. columns: their names. type: of the expression in Spark. digits, scale: what the type would have if all digits
 * had room.
 */
record Summand(String json, Set<String> columns, DataType type, int digits, int scale) {
  /** Decimals with more digits are Java's big numbers in memory. */
  private static final int MOST_DIGITS = 18;
  /** The most digits that a value may have, whatever its columns hold: Arrow multiplies these exactly. */
  private static final int MOST_EXACT_DIGITS = 60;

  /** Null if the expression is not a summand. */
  static Summand of(Expression expression, LogQuestion question) {
    Attribute column = question.scannedColumn(expression);
    if (column != null && column.dataType() instanceof IntegralType) return ofColumn(column, 0, 0);
    return ofDecimal(expression, question);
  }

  private static Summand ofDecimal(Expression expression, LogQuestion question) {
    if (!(expression.dataType() instanceof DecimalType type)) return null;
    Attribute column = question.scannedColumn(expression);
    if (column != null) {
      boolean plain = type.precision() <= MOST_DIGITS && type.scale() >= 0;
      return plain ? ofColumn(column, type.precision(), type.scale()) : null;
    }
    if (expression instanceof Literal literal) return ofNumber(literal.value(), type);
    boolean product = expression instanceof Multiply;
    if (!product && !(expression instanceof Add) && !(expression instanceof Subtract)) return null;
    BinaryArithmetic operation = (BinaryArithmetic) expression;
    if (operation.evalMode().equals(EvalMode$.MODULE$.TRY())) return null;
    Summand left = ofDecimal(operation.children().apply(0), question);
    Summand right = ofDecimal(operation.children().apply(1), question);
    if (left == null || right == null || !left.hasRoom() || !right.hasRoom()) return null;
    int scale = product ? left.scale + right.scale : Math.max(left.scale, right.scale);
    int whole = Math.max(left.digits - left.scale, right.digits - right.scale);
    int digits = (product ? left.digits + right.digits : whole + scale) + 1;
    boolean raises = operation.evalMode().equals(EvalMode$.MODULE$.ANSI()) && digits <= MOST_EXACT_DIGITS;
    if (scale != type.scale() || digits > type.precision() && !raises) return null;
    String sign = product ? "*" : expression instanceof Add ? "+" : "-";
    var columns = new LinkedHashSet<String>(left.columns);
    columns.addAll(right.columns);
    return new Summand("[\"" + sign + "\", " + left.json + ", " + right.json + "]", columns, type, digits, scale);
  }

  /** Whether each value fits its type: Spark checks each step, Python only the last one. */
  private boolean hasRoom() {
    return digits <= ((DecimalType) type).precision();
  }

  private static Summand ofColumn(Attribute column, int digits, int scale) {
    return new Summand(TextNode.valueOf(column.name()).toString(), Set.of(column.name()), column.dataType(), digits, scale);
  }

  private static Summand ofNumber(Object value, DecimalType type) {
    if (!(value instanceof Decimal decimal) || type.precision() > MOST_DIGITS || type.scale() < 0) return null;
    BigDecimal number = decimal.toJavaBigDecimal().setScale(type.scale());
    String json = "{\"digits\": " + number.unscaledValue() + ", \"scale\": " + type.scale() + "}";
    return new Summand(json, Set.of(), type, type.precision(), type.scale());
  }
}
