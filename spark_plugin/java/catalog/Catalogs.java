package pydelta.catalog;

import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.driver.DriverChannel;
import pydelta.statements.DriverPython;
import pydelta.statements.PythonRequest;
import pydelta.statements.StatementRouter;

/** The methods of this package that Python calls. */
public class Catalogs {
  private Catalogs() {}

  /** Prepares a session, once. Returns what failed; null if nothing did. */
  public static String prepare(SparkSession session) {
    try {
      DirectQueries.waitIn(session);
      EnteredTables.enterIn(session);
      return null;
    } catch (Exception | LinkageError error) {
      return String.valueOf(error);
    }
  }

  /** Gives a session the table functions that read change feeds. */
  public static void enterFunctions(SparkSession session) {
    TableChanges.enterIn(session);
  }

  /** As DriverPython.offer. */
  public static void offerPython(DriverChannel channel) {
    DriverPython.offer(channel);
  }

  /** As DriverPython.request. */
  public static PythonRequest pythonRequest(long number) {
    return DriverPython.request(number);
  }

  /** As StatementRouter.putInto. */
  public static void routeStatements(SparkSession session, String routes) throws Exception {
    StatementRouter.putInto(session, routes);
  }

  /** As StatementRouter.leaveToSpark. */
  public static void leaveToSpark(String text) {
    StatementRouter.leaveToSpark(text);
  }

  /** As StatementRouter.below. */
  public static ParserInterface parserBelow(SparkSession session) {
    return StatementRouter.below(session);
  }

  /** The result of a statement that is not routed. */
  public static Dataset<Row> sqlBelow(SparkSession session, String text) throws Exception {
    return StatementRouter.sql(session, text);
  }

  /** As Entry.described. */
  public static String entry(SparkSession session, String database, String table) throws AnalysisException {
    return Entry.described(session, database, table);
  }

  /** As HeldTables.of. */
  public static String heldTables(SparkSession session) throws ReflectiveOperationException {
    return HeldTables.of(session);
  }

  /** As Entering.isFree. */
  public static boolean isFree(SparkSession session, String path) {
    return Entering.isFree(session, path);
  }

  /** Enters an existing table into the session catalog of the active session. DROP TABLE deletes its files. */
  public static void enterManaged(String database, String table, String path, String provider) {
    new Entering(database, table, path, true, Map.of("provider", provider)).run();
  }
}
