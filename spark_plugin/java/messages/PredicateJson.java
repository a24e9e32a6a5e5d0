package pydelta.messages;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A predicate as JSON text for Python. Constants are Spark's internal values, so they depend on no time zone or format: days,
 * microseconds, decimal digits, base64 for binary; floats as text (NaN, Infinity).
 *
 * Only predicates that mean the same in Python are written: comparisons, IN, null tests of columns and constants of plain types,
 * string tests with a constant, and AND, OR, NOT of these. Strings with a collation other than binary are left out.
 */
public class PredicateJson {
  /** Larger predicates cost more to send than they can save. */
  private static final int MAX_NODES = 100000;
  private static final int MAX_DEPTH = 100;

  private static final Set<String> NULL_TESTS = Set.of("IS_NULL", "IS_NOT_NULL");
  private static final Set<DataType> TYPES = Set.of(
      DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
      DataTypes.FloatType, DataTypes.DoubleType, DataTypes.StringType, DataTypes.BinaryType, DataTypes.DateType,
      DataTypes.TimestampType, DataTypes.TimestampNTZType);

  private final StructType schema;
  private final StringBuilder out = new StringBuilder();
  private final Predicate predicate;
  private final Set<String> compared = new HashSet<>();
  private int nodes = 0;

  private PredicateJson(StructType schema, Predicate predicate) {
    this.schema = schema;
    this.predicate = predicate;
  }

  /** Null if some part of the predicate is not understood. */
  public static PredicateJson of(Predicate predicate, StructType schema) {
    PredicateJson json = new PredicateJson(schema, predicate);
    return json.condition(predicate, 0) ? json : null;
  }

  public String json() {
    return out.toString();
  }

  public Predicate predicate() {
    return predicate;
  }

  /**
   * The columns that the predicate compares, each as JSON. Tests for null do not count, because a join adds them for its keys.
   */
  public Set<String> compared() {
    return compared;
  }

  /** The text that explain() shows. */
  public String toString() {
    return predicate.toString();
  }

  private boolean condition(Expression expression, int depth) {
    if (!(expression instanceof Predicate condition) || depth > MAX_DEPTH) return false;
    String name = condition.name();
    Expression[] children = condition.children();
    return switch (name) {
      case "AND", "OR" -> connective(name, condition, depth);
      case "ALWAYS_TRUE" -> write("AND");
      case "ALWAYS_FALSE" -> write("OR");
      case "NOT" -> {
        open(name);
        yield condition(children[0], depth + 1) && close();
      }
      case "=", "<>", "<=>", "<", "<=", ">", ">=" -> children.length == 2 && write(name, children);
      case "STARTS_WITH", "ENDS_WITH", "CONTAINS" -> children.length == 2 && isText(children[1]) && write(name, children);
      case "IS_NULL", "IS_NOT_NULL" -> children.length == 1 && write(name, children);
      case "IN" -> onlyConstantsAfterFirst(children) && write(name, children);
      default -> false;
    };
  }

  /** Nested ANDs, or ORs, become one, so that a long chain is not deeply nested. */
  private boolean connective(String name, Expression expression, int depth) {
    var operands = new ArrayList<Expression>();
    var open = new ArrayDeque<Expression>(List.of(expression));
    while (!open.isEmpty()) {
      Expression next = open.pop();
      if (next instanceof Predicate inner && inner.name().equals(name)) {
        for (int i = next.children().length - 1; i >= 0; i--) open.push(next.children()[i]);
      } else {
        operands.add(next);
      }
    }
    open(name);
    for (int i = 0; i < operands.size(); i++) {
      if (i > 0) out.append(", ");
      if (!condition(operands.get(i), depth + 1)) return false;
    }
    return close();
  }

  private boolean write(String name, Expression... operands) {
    open(name);
    for (int i = 0; i < operands.length; i++) {
      if (i > 0) out.append(", ");
      int start = out.length();
      if (++nodes > MAX_NODES || !operand(operands[i])) return false;
      if (operands[i] instanceof NamedReference && !NULL_TESTS.contains(name)) compared.add(out.substring(start));
    }
    return close();
  }

  private void open(String name) {
    out.append("{\"name\": \"").append(name).append("\", \"children\": [");
  }

  private boolean close() {
    out.append("]}");
    return ++nodes <= MAX_NODES;
  }

  private static boolean isText(Expression expression) {
    return expression instanceof Literal<?> literal && literal.value() instanceof UTF8String;
  }

  private static boolean onlyConstantsAfterFirst(Expression[] children) {
    return children.length > 0 && Arrays.stream(children).skip(1).allMatch(Literal.class::isInstance);
  }

  private boolean operand(Expression expression) {
    if (expression instanceof NamedReference reference) return column(reference.fieldNames());
    return expression instanceof Literal<?> literal && constant(literal);
  }

  private boolean column(String[] path) {
    DataType type = schema;
    out.append("{\"column\": [");
    for (int i = 0; i < path.length; i++) {
      type = type instanceof StructType struct ? fieldType(struct, path[i]) : null;
      if (type == null) return false;
      if (i > 0) out.append(", ");
      out.append(quoted(path[i]));
    }
    out.append("]}");
    return plain(type);
  }

  private static DataType fieldType(StructType struct, String name) {
    for (StructField field : struct.fields()) {
      if (field.name().equals(name)) return field.dataType();
    }
    return null;
  }

  /** A null of type BINARY is left out: Spark 4.2 writes pushed predicates as text, and has no text for it. */
  private boolean constant(Literal<?> literal) {
    DataType type = literal.dataType();
    if (!plain(type) || literal.value() == null && type.equals(DataTypes.BinaryType)) return false;
    String value = literal.value() == null ? "null" : valueJson(literal.value());
    if (value == null) return false;
    out.append("{\"type\": ").append(type.json()).append(", \"value\": ").append(value).append("}");
    return true;
  }

  private static boolean plain(DataType type) {
    return TYPES.contains(type) || type instanceof DecimalType;
  }

  private static String valueJson(Object value) {
    if (value instanceof Float || value instanceof Double) return quoted(Double.toString(((Number) value).doubleValue()));
    if (value instanceof Number || value instanceof Boolean) return value.toString();
    if (value instanceof Decimal decimal) return quoted(decimal.toJavaBigDecimal().toPlainString());
    if (value instanceof byte[] bytes) return quoted(Base64.getEncoder().encodeToString(bytes));
    if (value instanceof UTF8String) {
      String text = value.toString();
      return UTF8String.fromString(text).equals(value) ? quoted(text) : null;
    }
    return null;
  }

  private static String quoted(String text) {
    return TextNode.valueOf(text).toString();
  }
}
