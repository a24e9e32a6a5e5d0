package pydelta.statements;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParameterHandler;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.CompoundBody;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SingleStatement;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkSqlParser;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import pydelta.tables.Errors;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The parser of a session, with the router of Python's spark.sql (sql_router.py). A statement that begins like one of the routes
 * becomes a RoutedStatement, in scripts too. The parser that the session had before, Spark's or that of another library, parses
 * all other statements, and those that Python does not know.
 *
 * It extends Spark's parser, since the interface has other methods in each version of Spark.
 */
public class StatementRouter extends SparkSqlParser {
  private static final String ENABLED = "spark.pydelta.sql.jvm.enabled";
  private static final Set<String> CHANGES = Set.of(
      "InsertIntoStatement", "OverwriteByExpression", "DeleteFromTable", "UpdateTable", "MergeIntoTable");
  private static final String FIELD = "sqlParser";
  private static final ThreadLocal<String> NOT_OURS = new ThreadLocal<>();

  private final SparkSession session;
  private final ParserInterface below;
  private final Map<String, JsonNode> routes = new HashMap<>();

  private StatementRouter(SparkSession session, ParserInterface below, JsonNode routes) {
    this.session = session;
    this.below = below;
    for (var route : routes.properties()) this.routes.put(route.getKey(), route.getValue());
  }

  /**
   * Once a session. routes: JSON, for each first word a list of words, one of which has to occur too; an empty list if none has.
   */
  public static void putInto(SparkSession session, String routes) throws Exception {
    SessionState state = session.sessionState();
    if (state.sqlParser() instanceof StatementRouter) return;
    Field field = SessionState.class.getDeclaredField(FIELD);
    field.setAccessible(true);
    RoutedStatement.Asking.addTo(session);
    field.set(state, new StatementRouter(session, state.sqlParser(), new ObjectMapper().readTree(routes)));
  }

  /** The parser that a session had before. */
  public static ParserInterface below(SparkSession session) {
    ParserInterface parser = session.sessionState().sqlParser();
    return parser instanceof StatementRouter router ? router.below : parser;
  }

  /** Python has seen the statement that this thread parses next, and leaves it to Spark. text: null takes this back. */
  public static void leaveToSpark(String text) {
    NOT_OURS.set(text);
  }

  /** As session.sql, for a statement that is not routed. */
  public static Dataset<Row> sql(SparkSession session, String text) throws ParseException {
    return Dataset$.MODULE$.ofRows(session, below(session).parsePlan(text));
  }

  public LogicalPlan parsePlan(String text) {
    return routed(text, null);
  }

  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) {
    return routed(text, parameters);
  }

  /** The plan of Spark's parser. parameters: null for none. */
  LogicalPlan parsed(String text, ParameterContext parameters) {
    return Errors.undeclared(() -> parameters == null ? below.parsePlan(text) : below.parsePlanWithParameters(text, parameters));
  }

  private LogicalPlan routed(String text, ParameterContext parameters) {
    String known = NOT_OURS.get();
    NOT_OURS.remove();
    String word = firstWord(text);
    boolean isScript = word.equals("BEGIN");  // Python has not seen its statements
    if (!isScript && text.equals(known)) return parsed(text, parameters);
    if (!(isScript || isRoute(word, text)) || !isOn()) return parsed(text, parameters);
    if (isScript) return script(text, parameters);
    LogicalPlan sparks = null;
    if (word.equals("WITH") || word.equals("FROM")) {  // most of these are queries
      sparks = parsed(text, parameters);
      LogicalPlan last = sparks instanceof UnresolvedWith with ? with.child() : sparks;
      if (!CHANGES.contains(last.getClass().getSimpleName())) return sparks;
    }
    return new RoutedStatement(this, text, parameters, sparks);
  }

  /**
   * Spark notes the positions of a script's statements in the text with values of parameters and settings, and cuts them out of
   * the text without values. So parameters are replaced before. A script with ${settings}, or with a value that looks so, is not
   * changed.
   */
  private LogicalPlan script(String text, ParameterContext parameters) {
    String whole = text;
    if (parameters != null) whole = ParameterHandler.substituteParameters(text, parameters)._1();
    if (whole.contains("${")) return parsed(text, parameters);
    LogicalPlan script = parsed(whole, null);
    if (script instanceof CompoundBody) routeWithin(script);
    return script;
  }

  private boolean isOn() {
    return "true".equalsIgnoreCase(session.conf().get(ENABLED, "true").trim());
  }

  /** Replaces statements within a script, where no rule of the analyzer changes them. */
  private void routeWithin(Object part) {
    if (part instanceof SingleStatement statement) {
      String text = statement.getText();
      if (isRoute(firstWord(text), text)) replace(statement, new RoutedStatement(this, text, null, statement.parsedPlan()));
    } else if (part instanceof Iterable<?> parts) {
      CollectionConverters.asJava(parts).forEach(this::routeWithin);
    } else if (part instanceof Product parts) {
      CollectionConverters.asJava(parts.productIterator()).forEachRemaining(this::routeWithin);
    }
  }

  private static void replace(SingleStatement statement, LogicalPlan plan) {
    try {
      Field field = SingleStatement.class.getDeclaredField("parsedPlan");
      field.setAccessible(true);
      field.set(statement, plan);
    } catch (ReflectiveOperationException error) {
      throw Errors.unchecked(error);
    }
  }

  // ---------------------------------------------------------------- what is no statement

  public Expression parseExpression(String text) {
    return Errors.undeclared(() -> below.parseExpression(text));
  }

  public TableIdentifier parseTableIdentifier(String text) {
    return Errors.undeclared(() -> below.parseTableIdentifier(text));
  }

  public FunctionIdentifier parseFunctionIdentifier(String text) {
    return Errors.undeclared(() -> below.parseFunctionIdentifier(text));
  }

  public Seq<String> parseMultipartIdentifier(String text) {
    return Errors.undeclared(() -> below.parseMultipartIdentifier(text));
  }

  public LogicalPlan parseQuery(String text) {
    return Errors.undeclared(() -> below.parseQuery(text));
  }

  public StructType parseRoutineParam(String text) {
    return Errors.undeclared(() -> below.parseRoutineParam(text));
  }

  public StructType parseTableSchema(String text) {
    return Errors.undeclared(() -> below.parseTableSchema(text));
  }

  public DataType parseDataType(String text) {
    return Errors.undeclared(() -> below.parseDataType(text));
  }

  // ---------------------------------------------------------------- as sql_router.py

  private boolean isRoute(String word, String text) {
    JsonNode having = routes.get(word);
    if (having == null) return false;
    if (having.isEmpty()) return true;
    String capitals = text.toUpperCase(Locale.ROOT);
    for (JsonNode each : having) {
      String one = each.asText();
      if (capitals.contains(one) && Pattern.compile("\\b" + one + "\\b").matcher(capitals).find()) return true;
    }
    return false;
  }

  /** The first word in capitals, after blanks and comments; empty if there is none. */
  static String firstWord(String text) {
    int start = behindComments(text);
    int end = start;
    while (end < text.length() && isLetter(text.charAt(end))) end++;
    return text.substring(start, end).toUpperCase(Locale.ROOT);
  }

  private static boolean isLetter(char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
  }

  private static int behindComments(String text) {
    int place = 0;
    while (place < text.length()) {
      if (Character.isWhitespace(text.charAt(place))) place++;
      else if (text.startsWith("--", place)) place = behindLine(text, place);
      else if (startsBracket(text, place)) place = behindBracket(text, place);
      else break;
    }
    return place;
  }

  private static boolean startsBracket(String text, int place) {
    return text.startsWith("/*", place) && !text.startsWith("/*+", place);
  }

  /** A backslash at the end of a line continues the comment in the next line. */
  private static int behindLine(String text, int place) {
    while (place < text.length() && text.charAt(place) != '\r') {
      if (text.charAt(place) == '\n' && text.charAt(place - 1) != '\\') break;
      place++;
    }
    return place;
  }

  private static int behindBracket(String text, int place) {
    int depth = 0;
    while (place < text.length()) {
      if (startsBracket(text, place)) {
        depth++;
        place += 2;
      } else if (text.startsWith("*/", place)) {
        depth--;
        place += 2;
        if (depth == 0) return place;
      } else {
        place++;
      }
    }
    return place;
  }
}
