package pydelta.catalog;

import java.util.Iterator;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.SqlScriptingContextManager$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/**
 * A statement or procedure that Python carries out, with the Java objects that it needs and makes. Python fetches it by its number,
 * through its own connection to this JVM, and calls its methods there.
 */
public class PythonRequest {
  private final SparkSession session;
  private final Object parameters;
  private final Properties properties;
  private final Option script = SqlScriptingContextManager$.MODULE$.get();
  private final scala.collection.mutable.Map tags;
  private Properties propertiesBefore = null;
  private Option scriptBefore = null;
  private scala.collection.mutable.Map tagsBefore = null;
  private Dataset frame = null;
  private Throwable error = null;

  PythonRequest(SparkSession session, Object parameters) {
    this.session = session;
    this.parameters = parameters;
    this.properties = copy(session.sparkContext().getLocalProperties());
    this.tags = (scala.collection.mutable.Map) session.managedJobTags().get();
  }

  public SparkSession session() {
    return session;
  }

  /** Spark's ParameterContext, or null. */
  public Object parameters() {
    return parameters;
  }

  /**
   * Gives this thread what Spark keeps with the thread that waits: job group, pool and other local properties, the tags of addTag, and
   * the variables of the script that it runs.
   */
  public void enter() {
    scriptBefore = SqlScriptingContextManager$.MODULE$.get();
    setScript(script);
    SparkContext context = session.sparkContext();
    propertiesBefore = copy(context.getLocalProperties());
    context.setLocalProperties(copy(properties));
    tagsBefore = (scala.collection.mutable.Map) session.managedJobTags().get();
    session.managedJobTags().set(tags);
  }

  /** Undoes enter. */
  public void leave() {
    setScript(scriptBefore);
    session.managedJobTags().set(tagsBefore);
    if (!session.sparkContext().isStopped()) session.sparkContext().setLocalProperties(propertiesBefore);
  }

  public synchronized void finished(Dataset frame) {
    this.frame = frame;
  }

  /** error: what Python got from this JVM. */
  public synchronized void raised(Throwable error) {
    this.error = error;
  }

  /** failure: as Failure.of reads it. */
  public synchronized void failed(String failure) {
    this.error = Failure.of(failure);
  }

  synchronized Dataset result() {
    if (error != null) throw Errors.unchecked(error);
    return frame;
  }

  /** Spark sets it for a function's time only; here two calls of Python's stand for that. */
  private static void setScript(Option script) {
    SqlScriptingContextManager$.MODULE$.org$apache$spark$util$LexicalThreadLocal$$set(script);
  }

  private static Properties copy(Properties properties) {
    Properties copy = new Properties();
    for (Iterator names = properties.stringPropertyNames().iterator(); names.hasNext();) {
      String name = (String) names.next();
      copy.setProperty(name, properties.getProperty(name));
    }
    return copy;
  }
}
