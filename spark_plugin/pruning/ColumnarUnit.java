package pydelta.pruning;

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
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkFiles;
import org.codehaus.commons.compiler.util.resource.MapResourceCreator;
import org.codehaus.commons.compiler.util.resource.MapResourceFinder;
import org.codehaus.commons.compiler.util.resource.Resource;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;

/**
 * The compile unit of the columnar reader (spark_plugin/columnar): compiled, put into a jar and sent to the executors when a
 * SparkContext wants it first. Known here only by the JDK's interfaces, so that the rule works where this does not.
 */
class ColumnarUnit {
  private static final String DOOR = "pydelta.columnar.ColumnarReads";

  /** SparkContext -> ColumnarUnit, or the Throwable that was met: it is not tried again. */
  private static final Map UNITS = new WeakHashMap();

  private final Object door;

  private ColumnarUnit(Object door) {
    this.door = door;
  }

  /** archive: a zip of the unit's sources, or of its class files. Raises, the same each time, if the unit cannot be had. */
  static ColumnarUnit of(SparkContext context, byte[] archive) throws Throwable {
    synchronized (UNITS) {
      Object known = UNITS.get(context);
      if (known == null) {
        try {
          known = new ColumnarUnit(load(context, archive));
        } catch (VirtualMachineError error) {
          throw error;
        } catch (Throwable error) {
          known = error;
        }
        UNITS.put(context, known);
      }
      if (known instanceof Throwable) throw (Throwable) known;
      return (ColumnarUnit) known;
    }
  }

  /** Whether a scan of such rows (a StructType) can be read in columns. */
  Predicate fits() {
    return (Predicate) door;
  }

  /** Spark's reader factory of a Python source -> the columnar one. */
  Function columnar() {
    return (Function) door;
  }

  private static Object load(SparkContext context, byte[] archive) throws Exception {
    ClassLoader spark = ColumnarUnit.class.getClassLoader().getParent();
    Map files = filesOf(archive);
    File jar = jarOf(areSources(files) ? compiled(files, spark) : files);
    context.addJar(jar.getPath());
    if (!serves(context, jar)) {
      throw new IllegalStateException("Spark does not give " + jar + " to its executors; its log says why");
    }
    ClassLoader loader = new URLClassLoader(new URL[] {jar.toURI().toURL()}, spark);
    return loader.loadClass(DOOR).getConstructor(new Class[0]).newInstance(new Object[0]);
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
  private static File jarOf(Map classes) throws Exception {
    File directory = new File(SparkFiles.getRootDirectory(), "pydelta");
    directory.mkdirs();
    File jar = File.createTempFile("pydelta-columnar-", ".jar", directory);
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
