package pydelta.catalog;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.types.StructType;
import pydelta.tables.Columns;
import pydelta.tables.NewTable;
import pydelta.tables.Source;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Enters an existing table into the session catalog, with its current columns. Spark's own method refuses a directory with files
 * if DROP TABLE has to delete them.
 */
class Entering implements Runnable {
  private static final String DEFAULT = "apply$default$";

  private final TableIdentifier name;
  private final String path;
  private final boolean isManaged;
  private final Map<String, String> properties;
  private final String provider;

  /** properties: of CREATE TABLE, with the provider. isManaged: DROP TABLE deletes the files. */
  Entering(String database, String table, String path, boolean isManaged, Map<String, String> properties) {
    this.name = new TableIdentifier(table, new Some<>(database));
    this.path = path;
    this.isManaged = isManaged;
    this.properties = properties;
    this.provider = SessionTables.provider(properties).toLowerCase(Locale.ROOT);
  }

  /** Whether nothing is at a path: else DROP TABLE could delete other files than the table's. False if this is not known. */
  static boolean isFree(SparkSession session, String path) {
    try {
      var place = new Path(path);
      FileSystem files = place.getFileSystem(session.sessionState().newHadoopConf());
      return !files.exists(place) || files.listStatus(place).length == 0;
    } catch (IOException error) {
      return false;
    }
  }

  public void run() {
    var options = Map.of("path", path);
    StructType columns = Source.open(path, options, null, null).schema();
    StructType entered = Columns.ofEntry(columns, columns, Entry.json(options));
    Constructor<?> constructor = CatalogTable.class.getConstructors()[0];
    Object[] parts = defaults(constructor.getParameterCount());
    parts[0] = name;
    parts[1] = isManaged ? CatalogTableType$.MODULE$.MANAGED() : CatalogTableType$.MODULE$.EXTERNAL();
    parts[2] = DataSource$.MODULE$.buildStorageFormatFromOptions(scalaMap(options));
    parts[3] = entered;
    parts[4] = new Some<>(provider);
    parts[11] = scalaMap(NewTable.others(properties));
    parts[14] = Option.apply(properties.get("comment"));
    try {
      var table = (CatalogTable) constructor.newInstance(parts);
      Source.session().sessionState().catalog().createTable(table, false, false);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this Spark makes entries of its catalog in another way", error);
    }
  }

  /**
   * Spark's default of each parameter of CatalogTable, null for none. Spark 4.2 has one parameter more than 4.1, the last one.
   */
  private static Object[] defaults(int count) {
    Object[] parts = new Object[count];
    for (Method method : CatalogTable$.class.getMethods()) {
      if (!method.getName().startsWith(DEFAULT)) continue;
      try {
        parts[Integer.parseInt(method.getName().substring(DEFAULT.length())) - 1] = method.invoke(CatalogTable$.MODULE$);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException("this Spark makes entries of its catalog in another way", error);
      }
    }
    return parts;
  }

  private static scala.collection.immutable.Map<String, String> scalaMap(Map<String, String> map) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(map));
  }
}
