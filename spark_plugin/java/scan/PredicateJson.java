package pydelta.scan;

import com.fasterxml.jackson.databind.node.TextNode;
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
 * A predicate as JSON text for Python. Constants are Spark's internal values, so no time zone or format comes into it:
 * days, microseconds, decimal digits, base64 for binary; floats as text (NaN, Infinity).
 *
 * Only what means the same on the other side is written: comparisons, IN, and null tests of columns and constants of plain
 * types, string tests with a constant, and AND, OR, NOT over them. Strings of another collation than bytes are left out.
 */
public class PredicateJson {
  /** Beyond these a predicate costs more to carry than it can save. */
  private static final int MAX_NODES = 100000;
  private static final int MAX_DEPTH = 100;

  private static final Set PAIRS = new HashSet(Arrays.asList(
      new String[] {"=", "<>", "<=>", "<", "<=", ">", ">="}));
  private static final Set MATCHES = new HashSet(Arrays.asList(new String[] {"STARTS_WITH", "ENDS_WITH", "CONTAINS"}));
  private static final Set NULL_TESTS = new HashSet(Arrays.asList(new String[] {"IS_NULL", "IS_NOT_NULL"}));
  private static final Set TYPES = new HashSet(Arrays.asList(new DataType[] {
      DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
      DataTypes.FloatType, DataTypes.DoubleType, DataTypes.StringType, DataTypes.BinaryType, DataTypes.DateType,
      DataTypes.TimestampType, DataTypes.TimestampNTZType}));

  private final StructType schema;
  private final StringBuilder out = new StringBuilder();
  private final Predicate predicate;
  private final Set compared = new HashSet();
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

  Predicate predicate() {
    return predicate;
  }

  /** The columns in it that are compared, each as JSON; tests for null do not count, for a join asks them of its keys. */
  Set compared() {
    return compared;
  }

  /** As explain() shows it. */
  public String toString() {
    return predicate.toString();
  }

  private boolean condition(Expression expression, int depth) {
    if (!(expression instanceof Predicate) || depth > MAX_DEPTH) return false;
    String name = ((Predicate) expression).name();
    Expression[] children = expression.children();
    if (name.equals("AND") || name.equals("OR")) return connective(name, expression, depth);
    if (name.equals("ALWAYS_TRUE")) return write("AND", new Expression[0]);
    if (name.equals("ALWAYS_FALSE")) return write("OR", new Expression[0]);
    if (name.equals("NOT")) {
      open(name);
      return condition(children[0], depth + 1) && close();
    }
    boolean known = (PAIRS.contains(name) && children.length == 2)
        || (MATCHES.contains(name) && children.length == 2 && isText(children[1]))
        || (NULL_TESTS.contains(name) && children.length == 1)
        || (name.equals("IN") && onlyConstantsAfterFirst(children));
    return known && write(name, children);
  }

  /** Nested ANDs, or ORs, become one, so that a long chain of them is not deep. */
  private boolean connective(String name, Expression expression, int depth) {
    List operands = new ArrayList();
    List open = new ArrayList();
    open.add(expression);
    while (!open.isEmpty()) {
      Expression next = (Expression) open.remove(open.size() - 1);
      if (next instanceof Predicate && ((Predicate) next).name().equals(name)) {
        for (int i = next.children().length - 1; i >= 0; i--) open.add(next.children()[i]);
      } else {
        operands.add(next);
      }
    }
    open(name);
    for (int i = 0; i < operands.size(); i++) {
      if (i > 0) out.append(", ");
      if (!condition((Expression) operands.get(i), depth + 1)) return false;
    }
    return close();
  }

  private boolean write(String name, Expression[] operands) {
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
    return expression instanceof Literal && ((Literal) expression).value() instanceof UTF8String;
  }

  private static boolean onlyConstantsAfterFirst(Expression[] children) {
    for (int i = 1; i < children.length; i++) {
      if (!(children[i] instanceof Literal)) return false;
    }
    return children.length > 0;
  }

  private boolean operand(Expression expression) {
    if (expression instanceof NamedReference) return column(((NamedReference) expression).fieldNames());
    return expression instanceof Literal && constant((Literal) expression);
  }

  private boolean column(String[] path) {
    DataType type = schema;
    out.append("{\"column\": [");
    for (int i = 0; i < path.length; i++) {
      type = type instanceof StructType ? fieldType((StructType) type, path[i]) : null;
      if (type == null) return false;
      if (i > 0) out.append(", ");
      out.append(quoted(path[i]));
    }
    out.append("]}");
    return plain(type);
  }

  private static DataType fieldType(StructType struct, String name) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equals(name)) return fields[i].dataType();
    }
    return null;
  }

  /** No null of BINARY: Spark 4.2 writes what was handed over as text, and has none for it. */
  private boolean constant(Literal literal) {
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
    if (value instanceof Float || value instanceof Double) {
      return quoted(Double.toString(((Number) value).doubleValue()));
    }
    if (value instanceof Number || value instanceof Boolean) return value.toString();
    if (value instanceof Decimal) return quoted(((Decimal) value).toJavaBigDecimal().toPlainString());
    if (value instanceof byte[]) return quoted(Base64.getEncoder().encodeToString((byte[]) value));
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
