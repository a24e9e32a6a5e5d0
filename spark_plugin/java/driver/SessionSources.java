package pydelta.driver;

import java.lang.reflect.Field;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.DataSourceRegistration;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSourceManager;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.internal.SessionState;
import pydelta.tables.Errors;

/**
 * The Python sources of a session. A session that Spark clones from it, as streams do, takes them over as they are.
 *
 * Spark's own manager registers each of them again in the clone: it first starts a process that searches Python's path for
 * sources, and then warns that `pydelta` replaces the one that was found there.
 */
public class SessionSources extends DataSourceManager {
  private static final String FIELD = "dataSourceManager";
  private static final String REGISTRATION = "dataSourceRegistration";
  private static final String REGISTERED = "runtimeDataSourceBuilders";
  private static final Set<String> OURS = Set.of("pydelta", "delta");

  private final DataSourceManager below;

  /**
   * The inherited field gets the map of the manager below: a clone over Spark Connect has a class loader of its own, whose class
   * SessionSources is another one, and finds the sources in this field only.
   */
  private SessionSources(DataSourceManager below) throws NoSuchFieldException, IllegalAccessException {
    this.below = below;
    registeredField().set(this, registeredIn(below));
  }

  /** Once a session. Does nothing in a build of Spark that stores sources elsewhere: its clones warn. */
  public static void putInto(SparkSession session) {
    SessionState state = session.sessionState();
    DataSourceManager manager = state.dataSourceManager();
    if (manager instanceof SessionSources) return;
    try {
      registeredIn(manager);
      SessionSources sources = new SessionSources(manager);
      put(state, REGISTRATION, new DataSourceRegistration(sources)); // through which a server of Spark Connect registers sources
      put(state, FIELD, sources);
    } catch (NoSuchFieldException | IllegalAccessException error) {
      return;
    }
  }

  private static void put(SessionState state, String name, Object value) throws NoSuchFieldException, IllegalAccessException {
    Field field = SessionState.class.getDeclaredField(name);
    field.setAccessible(true);
    field.set(state, value);
  }

  /** The sources that were registered with the session, by names in lower case. Changes are changes of the session. */
  public Map<String, UserDefinedPythonDataSource> registered() throws ReflectiveOperationException {
    return registeredIn(this);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, UserDefinedPythonDataSource> registeredIn(DataSourceManager manager)
      throws NoSuchFieldException, IllegalAccessException {
    return (Map<String, UserDefinedPythonDataSource>) registeredField().get(manager);
  }

  private static Field registeredField() throws NoSuchFieldException {
    Field field = DataSourceManager.class.getDeclaredField(REGISTERED);
    field.setAccessible(true);
    return field;
  }

  /** A source of pydelta replaces the one on Python's path: nothing is searched for, and there is nothing to warn of. */
  public void registerDataSource(String name, UserDefinedPythonDataSource source) {
    String key = name.toLowerCase(Locale.ROOT);
    if (!OURS.contains(key)) {
      below.registerDataSource(name, source);
      return;
    }
    try {
      registered().put(key, source);
    } catch (ReflectiveOperationException error) {
      throw Errors.unchecked(error);
    }
  }

  public UserDefinedPythonDataSource lookupDataSource(String name) {
    return below.lookupDataSource(name);
  }

  public boolean dataSourceExists(String name) {
    return below.dataSourceExists(name);
  }

  public DataSourceManager clone() {
    DataSourceManager copy = new DataSourceManager();
    try {
      registeredIn(copy).putAll(registered());
      return new SessionSources(copy);
    } catch (ReflectiveOperationException error) {
      throw Errors.unchecked(error);
    }
  }
}
