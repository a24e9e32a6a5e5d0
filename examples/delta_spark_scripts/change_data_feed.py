"""Guests of a hotel: the feed of a table's changes.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-change-data-feed
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("guests")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

path = f"{home}/hotel_guests"


def show(title, frame):
    print(title)
    names = [name for name in frame.columns if name != "_commit_timestamp"]
    frame.select(names).orderBy("_commit_version", "id", "_change_type").show()


def feed(**options):
    return spark.read.format("delta").option("readChangeFeed", "true").options(**options)


# ---------------------------------------------------------------- changes of every kind

spark.sql(
    f"""
    CREATE TABLE guests (id INT, name STRING, floor INT) USING DELTA PARTITIONED BY (floor)
    TBLPROPERTIES (delta.enableChangeDataFeed = true) LOCATION '{path}'
    """
)
rooms = spark.range(1, 9).selectExpr("CAST(id AS INT) AS id", "concat('guest ', id) AS name", "CAST(id % 3 AS INT) AS floor")
rooms.write.format("delta").mode("append").save(path)
table = DeltaTable.forPath(spark, path)
table.update(condition=expr("id = 2"), set={"name": expr("'Ms. Two'")})
table.delete(condition=expr("id >= 7"))
table.delete(condition=expr("floor = 0"))
spark.sql(f"CREATE TABLE arrivals (id INT, name STRING, floor INT) USING DELTA LOCATION '{home}/new_guests'")
spark.sql("INSERT INTO arrivals VALUES (1, 'guest 1', 1), (10, 'guest 10', 2)")
(
    table.alias("guests")
    .merge(spark.table("arrivals").alias("arrivals"), "guests.id = arrivals.id")
    .whenMatchedUpdate(set={"floor": "arrivals.floor + 4"})
    .whenNotMatchedInsertAll()
    .execute()
)
show("all changes, by name", feed(startingVersion=0).table("guests"))
show("versions 2 to 3", feed(startingVersion="2", endingVersion="3").load(path))

# ---------------------------------------------------------------- by time, and in SQL

table.history().createOrReplaceTempView("history")
moments = [row.moment for row in spark.sql("SELECT string(timestamp) AS moment FROM history ORDER BY version").collect()]
show("from the delete on", feed(startingTimestamp=moments[3]).load(path))
show("from the update to the delete", feed(startingTimestamp=moments[2], endingTimestamp=moments[3]).table("guests"))
show("in SQL, by versions", spark.sql("SELECT * FROM table_changes('guests', 4, 5)"))
show("in SQL, by name with backquotes", spark.sql("SELECT * FROM table_changes('default.`guests`', 5)"))
show("in SQL, by times", spark.sql(f"SELECT * FROM table_changes('guests', '{moments[2]}', '{moments[3]}')"))
show("in SQL, by path", spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 5)"))

# ---------------------------------------------------------------- streams of changes


def streamed(name, reader):
    writer = reader.writeStream.format("delta").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{home}/{name}_checkpoint").start(f"{home}/{name}").awaitTermination()
    return spark.read.format("delta").load(f"{home}/{name}")


changes = spark.readStream.format("delta").option("readChangeFeed", "true")
show("a stream from version 4", streamed("versions", changes.option("startingVersion", 4).table("guests")))
changes = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingTimestamp", moments[5])
show("a stream from a time", streamed("times", changes.load(path)))
changes = spark.readStream.format("delta").option("readChangeFeed", "true")
show("a stream that begins with the rows of the table", streamed("rows", changes.table("guests")))

# ---------------------------------------------------------------- the feed of other tables

spark.sql("CREATE TABLE keys (id INT) USING DELTA")
spark.sql("INSERT INTO keys VALUES (1), (2)")
spark.sql("ALTER TABLE keys SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
spark.sql("DELETE FROM keys WHERE id = 1")
show("after it was enabled", feed(startingVersion=2).table("keys"))
try:
    feed(startingVersion=0).table("keys").show()
except Exception as error:
    print("refused:", "change data" in str(error).lower())
spark.sql("SET spark.databricks.delta.properties.defaults.enableChangeDataFeed = true")
spark.sql("CREATE TABLE bells (id INT) USING DELTA")
spark.sql("INSERT INTO bells VALUES (7)")
show("enabled for new tables", feed(startingVersion=0).table("bells"))
spark.conf.set("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
print(feed(startingTimestamp="2100-01-01").table("bells").count(), "changes after 2100")
