package pydelta.statements;

import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.SqlScriptingContextManager$;
import org.apache.spark.sql.catalyst.catalog.SqlScriptingContextManager;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.tables.Errors;
import pydelta.tables.Failure;
import scala.Option;
import scala.collection.mutable.Map;

/**
 * A statement or procedure that Python runs, with the Java objects that it needs and makes. Python gets it by its number, through
 * its own connection to this JVM, and calls its methods there.
 */
public class PythonRequest {
  private final SparkSession session;
  private final ParameterContext parameters;
  private final Properties properties;
  private final Option<SqlScriptingContextManager> script = SqlScriptingContextManager$.MODULE$.get();
  private final Map<String, String> tags;
  private Properties propertiesBefore = null;
  private Option<SqlScriptingContextManager> scriptBefore = null;
  private Map<String, String> tagsBefore = null;
  private Dataset<Row> frame = null;
  private Throwable error = null;

  /** parameters: null for none. */
  public PythonRequest(SparkSession session, ParameterContext parameters) {
    this.session = session;
    this.parameters = parameters;
    this.properties = copy(session.sparkContext().getLocalProperties());
    this.tags = session.managedJobTags().get();
  }

  public SparkSession session() {
    return session;
  }

  public ParameterContext parameters() {
    return parameters;
  }

  /**
   * Gives this thread what Spark keeps in the waiting thread: job group, pool and other local properties, the tags of addTag, and
   * the variables of the script that it runs.
   */
  public void enter() {
    scriptBefore = SqlScriptingContextManager$.MODULE$.get();
    setScript(script);
    SparkContext context = session.sparkContext();
    propertiesBefore = copy(context.getLocalProperties());
    context.setLocalProperties(copy(properties));
    tagsBefore = session.managedJobTags().get();
    session.managedJobTags().set(tags);
  }

  /** Undoes enter. */
  public void leave() {
    setScript(scriptBefore);
    session.managedJobTags().set(tagsBefore);
    if (!session.sparkContext().isStopped()) session.sparkContext().setLocalProperties(propertiesBefore);
  }

  public synchronized void finished(Dataset<Row> frame) {
    this.frame = frame;
  }

  /** error: an error that Python got from this JVM. */
  public synchronized void raised(Throwable error) {
    this.error = error;
  }

  /** failure: as Failure.of reads it. */
  public synchronized void failed(String failure) {
    this.error = Failure.of(failure);
  }

  synchronized Dataset<Row> result() {
    if (error != null) throw Errors.unchecked(error);
    return frame;
  }

  /** Spark itself sets it only while a function runs. Here two calls of Python take the place of that. */
  private static void setScript(Option<SqlScriptingContextManager> script) {
    SqlScriptingContextManager$.MODULE$.org$apache$spark$util$LexicalThreadLocal$$set(script);
  }

  private static Properties copy(Properties properties) {
    var copy = new Properties();
    for (String name : properties.stringPropertyNames()) copy.setProperty(name, properties.getProperty(name));
    return copy;
  }
}
