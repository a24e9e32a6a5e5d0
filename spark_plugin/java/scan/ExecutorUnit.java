package pydelta.scan;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.codehaus.commons.compiler.util.resource.MapResourceCreator;
import org.codehaus.commons.compiler.util.resource.MapResourceFinder;
import org.codehaus.commons.compiler.util.resource.Resource;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;

/**
 * A compile unit that runs on the executors too (spark_plugin/columnar, spark_plugin/native_reader): compiled, put into a jar and
 * sent to them when a SparkContext wants it first. Known here only by its door, of the JDK's interfaces, so that the rule works
 * where the unit does not.
 */
class ExecutorUnit {
  static final String COLUMNAR = "pydelta.readers.ColumnarReads";
  static final String NATIVE_READER = "pydelta.parquet.NativeReads";

  /** SparkContext -> by the name of a unit's door the door, or the Throwable that was met: it is not tried again. */
  private static final Map UNITS = new WeakHashMap();

  private ExecutorUnit() {}

  /**
   * The door of a unit in the active SparkContext. name: of its class. archive: a zip of the unit's sources, or of its class files.
   * Raises, the same each time, if the unit cannot be had.
   */
  static Object door(String name, byte[] archive) throws Throwable {
    SparkContext context = (SparkContext) SparkContext$.MODULE$.getActive().get();
    synchronized (UNITS) {
      Map doors = (Map) UNITS.get(context);
      if (doors == null) {
        doors = new HashMap();
        UNITS.put(context, doors);
      }
      Object known = doors.get(name);
      if (known == null) {
        try {
          known = load(context, name, archive);
        } catch (VirtualMachineError error) {
          throw error;
        } catch (Throwable error) {
          known = error;
        }
        doors.put(name, known);
      }
      if (known instanceof Throwable) throw (Throwable) known;
      return known;
    }
  }

  /**
   * Whether the session keeps its artifacts to itself (spark.sql.artifact.isolation.enabled, and every session of Spark Connect):
   * executors give it a class loader that has not our jars.
   */
  static boolean isOutOfReach() {
    scala.Option session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) return JobArtifactSet$.MODULE$.getCurrentJobArtifactState().isDefined();
    return ((SparkSession) session.get()).artifactManager().state() != null;
  }

  private static Object load(SparkContext context, String name, byte[] archive) throws Exception {
    ClassLoader spark = ExecutorUnit.class.getClassLoader().getParent();
    Map files = filesOf(archive);
    String folder = name.substring("pydelta.".length(), name.lastIndexOf('.'));
    File jar = jarOf(folder, areSources(files) ? compiled(files, spark) : files);
    context.addJar(jar.getPath());
    if (!serves(context, jar)) {
      throw new IllegalStateException("Spark does not give " + jar + " to its executors; its log says why");
    }
    ClassLoader loader = new URLClassLoader(new URL[] {jar.toURI().toURL()}, spark);
    return loader.loadClass(name).getConstructor(new Class[0]).newInstance(new Object[0]);
  }

  /** addJar only logs what it fails at. */
  private static boolean serves(SparkContext context, File jar) {
    scala.collection.Iterator jars = context.listJars().iterator();
    while (jars.hasNext()) {
      if (((String) jars.next()).endsWith(jar.getName())) return true;
    }
    return false;
  }

  /** Path of a file -> its bytes. */
  private static Map filesOf(byte[] archive) throws Exception {
    Map files = new HashMap();
    ZipInputStream zip = new ZipInputStream(new ByteArrayInputStream(archive));
    for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
      files.put(entry.getName(), zip.readAllBytes());
    }
    return files;
  }

  private static boolean areSources(Map files) {
    return ((String) files.keySet().iterator().next()).endsWith(".java");
  }

  /** Path of a class file -> its bytes. */
  private static Map compiled(Map sources, ClassLoader spark) throws Exception {
    MapResourceFinder finder = new MapResourceFinder(sources);
    Resource[] files = new Resource[sources.size()];
    Iterator names = sources.keySet().iterator();
    for (int i = 0; i < files.length; i++) files[i] = finder.findResource((String) names.next());
    Map classes = new HashMap();
    Compiler compiler = new Compiler();
    compiler.setSourceFinder(finder);
    compiler.setIClassLoader(new ClassLoaderIClassLoader(spark));
    compiler.setClassFileCreator(new MapResourceCreator(classes));
    compiler.setEncoding(StandardCharsets.UTF_8);
    compiler.compile(files);
    return classes;
  }

  /**
   * In a directory that Spark keeps as long as the application: executors that start late fetch the jar before their first task,
   * whatever the task is. A name of its own each time: Spark's file server knows jars by their names alone.
   */
  private static File jarOf(String unit, Map classes) throws Exception {
    File directory = new File(SparkFiles.getRootDirectory(), "pydelta");
    directory.mkdirs();
    File jar = File.createTempFile("pydelta-" + unit + "-", ".jar", directory);
    ZipOutputStream zip = new ZipOutputStream(new FileOutputStream(jar));
    try {
      Iterator entries = classes.entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry entry = (Map.Entry) entries.next();
        zip.putNextEntry(new ZipEntry((String) entry.getKey()));
        zip.write((byte[]) entry.getValue());
      }
    } finally {
      zip.close();
    }
    return jar;
  }
}
