package pydelta.catalog;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * The table functions table_changes('name', start [, end]) and table_changes_by_path('path', start [, end]): the changes of a table's
 * rows as a relation. Numbers are versions; texts and timestamps are times.
 *
 * What a session had under these names (delta-spark's functions) is still asked for tables that are not ours.
 */
class TableChanges extends AbstractFunction1 {
  private static final String BY_NAME = "table_changes";
  private static final String BY_PATH = "table_changes_by_path";

  private final String function;
  private final Function1 before;

  /** before: null for none. */
  private TableChanges(String function, Function1 before) {
    this.function = function;
    this.before = before;
  }

  /** Into a session's functions, which its clones have too. */
  static void enterIn(SparkSession session) {
    enter(session, BY_NAME);
    enter(session, BY_PATH);
  }

  private static void enter(SparkSession session, String function) {
    TableFunctionRegistry registry = session.sessionState().tableFunctionRegistry();
    FunctionIdentifier ident = besideSparks(registry, function);
    Option found = registry.lookupFunctionBuilder(ident);
    Function1 before = found.isDefined() ? (Function1) found.get() : null;
    if (before != null && before.getClass().getName().equals(TableChanges.class.getName())) return;
    ExpressionInfo info = new ExpressionInfo(TableChanges.class.getName(), null, function);
    registry.registerFunction(ident, info, new TableChanges(function, before));
  }

  /** Among Spark's own functions, which views that are kept may call; temporary ones they may not. */
  private static FunctionIdentifier besideSparks(TableFunctionRegistry registry, String function) {
    Seq known = registry.listFunction();
    for (int i = 0; i < known.length(); i++) {
      FunctionIdentifier one = (FunctionIdentifier) known.apply(i);
      if (one.funcName().equals("range")) return one.copy(function, one.database(), one.catalog());
    }
    throw new IllegalStateException("this Spark has no table function range");
  }

  /** arguments: expressions, resolved. Gives the relation. */
  public Object apply(Object arguments) {
    Seq given = (Seq) arguments;
    if (given.length() < 2 || given.length() > 3) {
      throw Errors.of("InvalidOptionError", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION", function + " takes 2 or 3 arguments, the table, where "
          + "its changes begin, and where they end, and got " + given.length() + ".");
    }
    String text = tableText((Expression) given.head());
    if (function.equals(BY_PATH)) {
      return before == null ? relation(byPath(function + "(" + text + ")", Entry.localPath(text), range(given))) : before.apply(arguments);
    }
    try {
      Place place = Place.named(text);
      if (place.isOurs()) return relation(place.changes(range(given)));
      if (before == null) {
        throw Errors.of("InvalidOptionError", "DELTA_TABLE_ONLY_OPERATION", text + " is no table of " + Source.FORMAT + ", and has no "
            + "change feed. Name a table.");
      }
    } catch (NoSuchTableException error) {
      if (before == null) throw Errors.unchecked(error);
    } catch (ParseException error) {
      throw Errors.unchecked(error);
    }
    return before.apply(arguments);
  }

  private static Object relation(Table table) {
    return DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty());
  }

  static SourceTable byPath(String label, String path, Map range) {
    Map options = new HashMap(range);
    options.put("path", path);
    return Source.open(label, options, null, null);
  }

  // ---------------------------------------------------------------- arguments

  private static String tableText(Expression argument) {
    boolean isText = argument instanceof Literal && ((Literal) argument).value() != null
        && argument.dataType().equals(DataTypes.StringType);
    if (!isText) {
      throw Errors.of("ExpressionError", "DELTA_UNSUPPORTED_EXPRESSION", "The table of a change feed is named by a text, and not by "
          + argument.sql() + ". Write its name or path in quotes.");
    }
    return ((Literal) argument).value().toString();
  }

  /** Options of reads. */
  private Map range(Seq given) {
    Map options = new HashMap();
    options.put("readchangefeed", "true");
    putBound(options, "starting", (Expression) given.apply(1), 2);
    if (given.length() == 3) putBound(options, "ending", (Expression) given.apply(2), 3);
    return options;
  }

  private void putBound(Map options, String side, Expression argument, int place) {
    if (!argument.foldable()) {
      throw Errors.of("ExpressionError", "DELTA_CDC_NON_CONSTANT_ARGUMENT", "Argument " + place + " of " + function + " is no constant: "
          + argument.sql() + ". Give a version or a time.");
    }
    Object value = Constants.value(argument);
    if (value == null) {
      throw Errors.of("ChangeDataFeedError", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY", "Argument " + place + " of " + function
          + " is null. Give a version or a time.");
    }
    if (argument.dataType().equals(DataTypes.IntegerType) || argument.dataType().equals(DataTypes.LongType)) {
      options.put(side + "version", value.toString());
    } else if (argument.dataType().equals(DataTypes.StringType)) {
      options.put(side + "timestamp", value.toString());
    } else if (argument.dataType().equals(DataTypes.TimestampType)) {
      options.put(side + "timestamp", Travel.text(((Long) value).longValue()));
    } else {
      throw Errors.of("ExpressionError", "DELTA_UNSUPPORTED_EXPRESSION", "Argument " + place + " of " + function + " is of the type "
          + argument.dataType().sql() + ". Give a version (INT, BIGINT) or a time (STRING, TIMESTAMP).");
    }
  }

  // ---------------------------------------------------------------- names

  /** What a name stands for, in a view by the catalog and database that were the current ones when it was made. */
  private static class Place {
    private final CatalogPlugin catalog;
    private final Identifier ident;
    private final Table entered;

    private Place(CatalogPlugin catalog, Identifier ident, Table entered) {
      this.catalog = catalog;
      this.ident = ident;
      this.entered = entered;
    }

    static Place named(String text) throws NoSuchTableException, ParseException {
      SparkSession session = Source.session();
      Seq parts = session.sessionState().sqlParser().parseMultipartIdentifier(text);
      Seq inView = AnalysisContext$.MODULE$.get().catalogAndNamespace();
      if (inView.isEmpty() && session.sessionState().catalog().isTempView(parts)) return new Place(null, null, null);
      CatalogManager manager = session.sessionState().catalogManager();
      if (parts.length() > 1 && manager.isCatalogRegistered((String) parts.head())) {
        return found(manager.catalog((String) parts.head()), (Seq) parts.tail());
      }
      CatalogPlugin current = inView.isEmpty() ? manager.currentCatalog() : manager.catalog((String) inView.head());
      if (parts.length() > 1) return found(current, parts);
      Seq namespace = inView.isEmpty() ? seq(manager.currentNamespace()) : (Seq) inView.tail();
      return found(current, (Seq) namespace.appended(parts.head()));
    }

    private static Place found(CatalogPlugin catalog, Seq parts) throws NoSuchTableException {
      Identifier ident = CatalogV2Implicits$.MODULE$.MultipartIdentifierHelper(parts).asIdentifier();
      Table entered = null;
      if (catalog instanceof SessionTables) entered = ((SessionTables) catalog).asEntered(ident);
      else if (catalog instanceof TableCatalog && !(catalog instanceof PathCatalog)) entered = ((TableCatalog) catalog).loadTable(ident);
      return new Place(catalog, ident, entered);
    }

    boolean isOurs() {
      return catalog instanceof PathCatalog || (entered instanceof V1Table && Entry.isOurs(entered));
    }

    SourceTable changes(Map range) throws NoSuchTableException {
      if (catalog instanceof PathCatalog paths) {
        return byPath(paths.called(ident), paths.path(ident), range);
      }
      return Entry.of(ident, entered).changes(range);
    }

    private static Seq seq(String[] parts) {
      return CollectionConverters.asScala(Arrays.asList(parts)).toSeq();
    }
  }
}
