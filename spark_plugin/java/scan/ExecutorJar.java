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
 * The readers that run on executors, and the jar of their classes, which is this one. Executors get it when a scan first wants a
 * reader, once a SparkContext. In a session of Spark Connect it is an artifact of the session, and they have it already.
 */
class ExecutorJar {
  /** Why a scan is read without the readers, where `isOutOfReach`. */
  static final String OUT_OF_REACH = "executors do not get pydelta's jar in this session, which isolates its artifacts";

  /** SparkContext -> by the name of a reader's class its one object, or the Throwable that was met: it is not tried again. */
  private static final Map<SparkContext, Map<String, Object>> READERS = new WeakHashMap<>();

  private ExecutorJar() {}

  /**
   * What makes a reader in the active SparkContext. Raises, the same each time, if executors cannot have it. T: a type of kind.
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
      @SuppressWarnings("unchecked")  // what the map has for a class is an object of it
      T made = (T) reader;
      return made;
    }
  }

  /**
   * Whether the session keeps its artifacts to itself (spark.sql.artifact.isolation.enabled, and every session of Spark Connect),
   * and this jar is none of them: executors give the session a class loader that does not have it.
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

  /** By the name of the file, as a clone of a session has copies of its artifacts. */
  private static boolean isArtifactOf(ArtifactManager artifacts) {
    String name = nameIn(location());
    return artifacts.getAddedJars().exists(jar -> nameIn(jar).equals(name));
  }

  private static String nameIn(URL url) {
    return url.getPath().substring(url.getPath().lastIndexOf('/') + 1);
  }

  /** Once a SparkContext. */
  private static void add(SparkContext context) throws Exception {
    requireOneVersion();
    Path jar = Path.of(location().toURI());
    if (serves(context, jar)) return;
    context.addJar(jar.toString());
    if (!serves(context, jar)) {  // addJar only logs what it fails at
      throw new IllegalStateException("Spark does not give " + jar + " to its executors; its log says why");
    }
  }

  private static boolean serves(SparkContext context, Path jar) {
    return context.listJars().exists(each -> each.endsWith("/" + jar.getFileName()));
  }

  /** A JVM whose Spark finds classes of another pydelta by these names has executors that may find those too. */
  private static void requireOneVersion() {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      if (Class.forName(ExecutorJar.class.getName(), false, loader) == ExecutorJar.class) return;
    } catch (ClassNotFoundException error) {
      return;  // these classes have a loader of their own
    }
    throw new IllegalStateException("this JVM has the classes of another version of pydelta. Start the Spark application again");
  }

  private static URL location() {
    return ExecutorJar.class.getProtectionDomain().getCodeSource().getLocation();
  }
}
