package pydelta.scan;

import java.net.URL;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.artifact.ArtifactManager;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import scala.Option;

/**
 * The readers that run on executors, and the jar of their classes, which is this jar. Executors get it when a scan first needs a
 * reader, once for each SparkContext. In a session of Spark Connect the jar is an artifact of the session, and executors already
 * have it.
 */
class ExecutorJar {
  /** The reason why a scan is read without the readers if `isOutOfReach`. */
  static final String OUT_OF_REACH = "executors do not get pydelta's jar in this session, which isolates its artifacts";

  /**
   * SparkContext -> the name of a reader's class -> its only object, or the Throwable of the first try: there is no second try.
   */
  private static final Map<SparkContext, Map<String, Object>> READERS = new WeakHashMap<>();

  private ExecutorJar() {}

  /**
   * The object that makes a reader in the active SparkContext. Raises the same error each time if executors cannot have it. T: a
   * type of kind.
   */
  static <T> T reader(Class<? extends T> kind) throws Throwable {
    SparkContext context = SparkContext$.MODULE$.getActive().get();
    synchronized (READERS) {
      Map<String, Object> known = READERS.computeIfAbsent(context, each -> new HashMap<>());
      Object reader = known.get(kind.getName());
      if (reader == null) {
        try {
          if (!isArtifact()) add(context);
          reader = kind.getConstructor().newInstance();
        } catch (VirtualMachineError error) {
          throw error;
        } catch (Throwable error) {
          reader = error;
        }
        known.put(kind.getName(), reader);
      }
      if (reader instanceof Throwable error) throw error;
      @SuppressWarnings("unchecked")  // the map's value for a class is an object of this class
      T made = (T) reader;
      return made;
    }
  }

  /**
   * Whether the session isolates its artifacts (spark.sql.artifact.isolation.enabled, and every session of Spark Connect), and
   * this jar is not one of them: executors then give the session a class loader without this jar.
   */
  static boolean isOutOfReach() {
    Option<SparkSession> session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) return JobArtifactSet$.MODULE$.getCurrentJobArtifactState().isDefined();
    return session.get().artifactManager().state() != null && !isArtifactOf(session.get().artifactManager());
  }

  private static boolean isArtifact() {
    Option<SparkSession> session = SparkSession$.MODULE$.getActiveSession();
    return session.isDefined() && isArtifactOf(session.get().artifactManager());
  }

  /** Compares the names of the files, because a clone of a session has copies of its artifacts. */
  private static boolean isArtifactOf(ArtifactManager artifacts) {
    String name = nameIn(location());
    return artifacts.getAddedJars().exists(jar -> nameIn(jar).equals(name));
  }

  private static String nameIn(URL url) {
    return url.getPath().substring(url.getPath().lastIndexOf('/') + 1);
  }

  /** Runs once for each SparkContext. */
  private static void add(SparkContext context) throws Exception {
    requireOneVersion();
    Path jar = Path.of(location().toURI());
    if (serves(context, jar)) return;
    context.addJar(jar.toString());
    if (!serves(context, jar)) {  // addJar only logs its failures
      throw new IllegalStateException("Spark does not give " + jar + " to its executors; its log says why");
    }
  }

  private static boolean serves(SparkContext context, Path jar) {
    return context.listJars().exists(each -> each.endsWith("/" + jar.getFileName()));
  }

  /** If the JVM's Spark has classes of another pydelta under these names, its executors may have them too. */
  private static void requireOneVersion() {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      if (Class.forName(ExecutorJar.class.getName(), false, loader) == ExecutorJar.class) return;
    } catch (ClassNotFoundException error) {
      return;  // these classes have a class loader of their own
    }
    throw new IllegalStateException("this JVM has the classes of another version of pydelta. Start the Spark application again");
  }

  private static URL location() {
    return ExecutorJar.class.getProtectionDomain().getCodeSource().getLocation();
  }
}
