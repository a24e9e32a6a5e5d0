package pydelta.catalog;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
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
import pydelta.tables.Errors;
import pydelta.tables.Source;
import pydelta.tables.SourceTable;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * The table functions table_changes('name', start [, end]) and table_changes_by_path('path', start [, end]): the changes of a
 * table's rows as a relation. Numbers are versions; texts and timestamps are times.
 *
 * For tables that are not ours, the function that the session had under the name before (delta-spark's) is called.
 */
class TableChanges extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  private static final String BY_NAME = "table_changes";
  private static final String BY_PATH = "table_changes_by_path";

  private final String function;
  private final Function1<Seq<Expression>, LogicalPlan> before;

  /** before: null for none. */
  private TableChanges(String function, Function1<Seq<Expression>, LogicalPlan> before) {
    this.function = function;
    this.before = before;
  }

  /** Adds the functions to a session. Its clones have them too. */
  static void enterIn(SparkSession session) {
    enter(session, BY_NAME);
    enter(session, BY_PATH);
  }

  private static void enter(SparkSession session, String function) {
    TableFunctionRegistry registry = session.sessionState().tableFunctionRegistry();
    FunctionIdentifier ident = besideSparks(registry, function);
    Option<Function1<Seq<Expression>, LogicalPlan>> builder = registry.lookupFunctionBuilder(ident);
    Function1<Seq<Expression>, LogicalPlan> before = builder.isDefined() ? builder.get() : null;
    if (before != null && before.getClass().getName().equals(TableChanges.class.getName())) return;
    var info = new ExpressionInfo(TableChanges.class.getName(), null, function);
    registry.registerFunction(ident, info, new TableChanges(function, before));
  }

  /** A name among Spark's own functions, which permanent views may call. They may not call temporary functions. */
  private static FunctionIdentifier besideSparks(TableFunctionRegistry registry, String function) {
    for (FunctionIdentifier one : CollectionConverters.asJava(registry.listFunction())) {
      if (one.funcName().equals("range")) return one.copy(function, one.database(), one.catalog());
    }
    throw new IllegalStateException("this Spark has no table function range");
  }

  /** The relation. arguments: resolved. */
  public LogicalPlan apply(Seq<Expression> arguments) {
    List<Expression> argumentList = CollectionConverters.asJava(arguments);
    if (argumentList.size() < 2 || argumentList.size() > 3) {
      throw Errors.of("InvalidOptionError", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION", function + " takes 2 or 3 arguments, the table, "
          + "where its changes begin, and where they end, and got " + argumentList.size() + ".");
    }
    String text = tableText(argumentList.get(0));
    if (function.equals(BY_PATH)) {
      if (before != null) return before.apply(arguments);
      return relation(byPath(function + "(" + text + ")", Entry.localPath(text), range(argumentList)));
    }
    try {
      Place place = Place.named(text);
      if (place.isOurs()) return relation(place.changes(range(argumentList)));
      if (before == null) {
        throw Errors.of("InvalidOptionError", "DELTA_TABLE_ONLY_OPERATION", text + " is no table of " + Source.FORMAT + ", and "
            + "has no change feed. Name a table.");
      }
    } catch (NoSuchTableException error) {
      if (before == null) throw Errors.unchecked(error);
    } catch (ParseException error) {
      throw Errors.unchecked(error);
    }
    return before.apply(arguments);
  }

  private static LogicalPlan relation(Table table) {
    return DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty());
  }

  static SourceTable byPath(String label, String path, Map<String, String> range) {
    var options = new HashMap<>(range);
    options.put("path", path);
    return Source.open(label, options, null, null);
  }

  // ---------------------------------------------------------------- arguments

  private static String tableText(Expression argument) {
    if (argument instanceof Literal literal && literal.value() != null && literal.dataType().equals(DataTypes.StringType)) {
      return literal.value().toString();
    }
    throw Errors.of("ExpressionError", "DELTA_UNSUPPORTED_EXPRESSION", "The table of a change feed is named by a text, and not "
        + "by " + argument.sql() + ". Write its name or path in quotes.");
  }

  /** Options of reads. */
  private Map<String, String> range(List<Expression> argumentList) {
    var options = new HashMap<String, String>();
    options.put("readchangefeed", "true");
    putBound(options, "starting", argumentList.get(1), 2);
    if (argumentList.size() == 3) putBound(options, "ending", argumentList.get(2), 3);
    return options;
  }

  private void putBound(Map<String, String> options, String side, Expression argument, int place) {
    if (!argument.foldable()) {
      throw Errors.of("ExpressionError", "DELTA_CDC_NON_CONSTANT_ARGUMENT", "Argument " + place + " of " + function + " is no "
          + "constant: " + argument.sql() + ". Give a version or a time.");
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
      options.put(side + "timestamp", Travel.text((Long) value));
    } else {
      throw Errors.of("ExpressionError", "DELTA_UNSUPPORTED_EXPRESSION", "Argument " + place + " of " + function + " is of the "
          + "type " + argument.dataType().sql() + ". Give a version (INT, BIGINT) or a time (STRING, TIMESTAMP).");
    }
  }

  // ---------------------------------------------------------------- names

  /** What a name stands for. In a view, the catalog and database count that were current when the view was made. */
  private record Place(CatalogPlugin catalog, Identifier ident, Table entered) {
    static Place named(String text) throws NoSuchTableException, ParseException {
      SparkSession session = Source.session();
      Seq<String> name = session.sessionState().sqlParser().parseMultipartIdentifier(text);
      List<String> parts = CollectionConverters.asJava(name);
      List<String> inView = CollectionConverters.asJava(AnalysisContext$.MODULE$.get().catalogAndNamespace());
      if (inView.isEmpty() && session.sessionState().catalog().isTempView(name)) return new Place(null, null, null);
      CatalogManager manager = session.sessionState().catalogManager();
      if (parts.size() > 1 && manager.isCatalogRegistered(parts.get(0))) {
        return of(manager.catalog(parts.get(0)), parts.subList(1, parts.size()));
      }
      CatalogPlugin current = inView.isEmpty() ? manager.currentCatalog() : manager.catalog(inView.get(0));
      if (parts.size() > 1) return of(current, parts);
      var whole = new ArrayList<>(inView.isEmpty() ? List.of(manager.currentNamespace()) : inView.subList(1, inView.size()));
      whole.addAll(parts);
      return of(current, whole);
    }

    private static Place of(CatalogPlugin catalog, List<String> parts) throws NoSuchTableException {
      Seq<String> name = CollectionConverters.asScala(parts).toSeq();
      Identifier ident = CatalogV2Implicits$.MODULE$.MultipartIdentifierHelper(name).asIdentifier();
      Table entered = null;
      if (catalog instanceof SessionTables tables) entered = tables.asEntered(ident);
      else if (catalog instanceof TableCatalog tables && !(catalog instanceof PathCatalog)) entered = tables.loadTable(ident);
      return new Place(catalog, ident, entered);
    }

    boolean isOurs() {
      return catalog instanceof PathCatalog || (entered instanceof V1Table && Entry.isOurs(entered));
    }

    SourceTable changes(Map<String, String> range) throws NoSuchTableException {
      if (catalog instanceof PathCatalog paths) {
        return byPath(paths.called(ident), paths.path(ident), range);
      }
      return new Entry(ident, entered).changes(range);
    }
  }
}
