package pydelta.catalog;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.types.StructType;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Enters a table that is there into the session catalog, with its present columns. Spark's own way refuses a place that has files
 * already for a table that it is to drop with its files.
 */
class Entering implements Runnable {
  private final TableIdentifier name;
  private final String path;
  private final boolean isManaged;
  private final Map properties;

  /** properties: of CREATE TABLE. isManaged: DROP TABLE deletes the files. */
  Entering(String database, String table, String path, boolean isManaged, Map properties) {
    this.name = new TableIdentifier(table, new Some(database));
    this.path = path;
    this.isManaged = isManaged;
    this.properties = properties;
  }

  /** Whether nothing lies at a path: else DROP TABLE could delete what is not the table's alone. Not if that cannot be known. */
  static boolean isFree(SparkSession session, String path) {
    try {
      Path place = new Path(path);
      FileSystem files = place.getFileSystem(session.sessionState().newHadoopConf());
      return !files.exists(place) || files.listStatus(place).length == 0;
    } catch (IOException error) {
      return false;
    }
  }

  public void run() {
    Map options = new HashMap();
    options.put("path", path);
    StructType columns = Source.open(path, options, null, null).schema();
    StructType entered = Columns.ofEntry(columns, columns, Entry.json(options));
    CatalogTable$ made = CatalogTable$.MODULE$;
    CatalogStorageFormat storage = DataSource$.MODULE$.buildStorageFormatFromOptions(scalaMap(options));
    CatalogTable table = new CatalogTable(
        name, isManaged ? CatalogTableType$.MODULE$.MANAGED() : CatalogTableType$.MODULE$.EXTERNAL(),
        storage, entered, new Some(Source.FORMAT), made.apply$default$6(), made.apply$default$7(), made.apply$default$8(),
        made.apply$default$9(), made.apply$default$10(), made.apply$default$11(), scalaMap(NewTable.others(properties)),
        made.apply$default$13(), made.apply$default$14(), scala.Option.apply((String) properties.get("comment")), made.apply$default$16(),
        made.apply$default$17(), made.apply$default$18(), made.apply$default$19(), made.apply$default$20(), made.apply$default$21(),
        made.apply$default$22());
    Source.session().sessionState().catalog().createTable(table, false, false);
  }

  private static scala.collection.immutable.Map scalaMap(Map map) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(map));
  }
}
