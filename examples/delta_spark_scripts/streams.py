"""Parcels on their way: tables as sources and sinks of streams.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-streaming
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("parcels")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

parcels = f"{home}/parcels"


def show(title, frame):
    print(title)
    frame.orderBy(*frame.columns).show()


def add(*rows):
    frame = spark.createDataFrame(rows, "id int, town string, at string").selectExpr("id", "town", "timestamp(at) AS at")
    frame.write.format("delta").mode("append").save(parcels)


def copied(name, stream):
    """What the stream writes until it has no more to read."""
    writer = stream.writeStream.format("delta").outputMode("append").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{home}/{name}/_checkpoints").start(f"{home}/{name}").awaitTermination()
    return spark.read.format("delta").load(f"{home}/{name}")


# ---------------------------------------------------------------- a table as a source and a sink

add((1, "Bern", "2024-05-01 08:00:00"), (2, "Jena", "2024-05-01 09:00:00"))
add((3, "Bern", "2024-05-01 10:00:00"))
show("all parcels", copied("all", spark.readStream.format("delta").load(parcels)))
add((4, "Oslo", "2024-05-02 08:00:00"))
show("and the next one", copied("all", spark.readStream.format("delta").load(parcels)))
slow = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(parcels)
show("file by file", copied("slow", slow))
print("batches:", DeltaTable.forPath(spark, f"{home}/slow").history().count())
slow = spark.readStream.format("delta").option("maxBytesPerTrigger", "1k").load(parcels)
show("by bytes", copied("bytes", slow))

# ---------------------------------------------------------------- a position to begin at

show("since version 1", copied("since", spark.readStream.format("delta").option("startingVersion", "1").load(parcels)))
show("since a day", copied("day", spark.readStream.format("delta").option("startingTimestamp", "2020-02-29").load(parcels)))

# ---------------------------------------------------------------- updates and deletes in the source

table = DeltaTable.forPath(spark, parcels)
table.update("id = 2", {"town": "'Gera'"})
table.delete("id = 3")
add((5, "Rome", "2024-05-03 08:00:00"))
try:
    copied("all", spark.readStream.format("delta").load(parcels))
except Exception as error:
    print("refused:", "DELTA_SOURCE_TABLE_IGNORE_CHANGES" in str(error), "skipChangeCommits" in str(error))
show("changes passed over", copied("all", spark.readStream.format("delta").option("skipChangeCommits", "true").load(parcels)))
days = f"{home}/days"
spark.sql("SELECT * FROM VALUES (1, 'mon'), (2, 'tue') d(id, day)").write.format("delta").partitionBy("day").save(days)
show("days", copied("day_copies", spark.readStream.format("delta").load(days)))
spark.sql(f"DELETE FROM delta.`{days}` WHERE day = 'mon'")
spark.sql(f"INSERT INTO delta.`{days}` VALUES (3, 'wed')")
show("days", copied("day_copies", spark.readStream.format("delta").option("ignoreDeletes", "true").load(days)))

# ---------------------------------------------------------------- names, complete results, batches that are written twice

spark.sql(f"CREATE TABLE parcels USING DELTA LOCATION '{parcels}'")
writer = spark.readStream.table("parcels").writeStream.option("checkpointLocation", f"{home}/named_checkpoint")
writer.format("delta").outputMode("append").trigger(availableNow=True).toTable("named").awaitTermination()
show("by name", spark.table("named"))
counts = spark.readStream.format("delta").load(parcels).groupBy("town").count()
writer = counts.writeStream.format("delta").outputMode("complete").option("checkpointLocation", f"{home}/counts/_checkpoints")
writer.trigger(availableNow=True).start(f"{home}/counts").awaitTermination()
show("parcels of a town", spark.read.format("delta").load(f"{home}/counts"))


def write_twice(batch, batch_id):
    for folder in ("left", "left", "right"):
        writer = batch.write.format("delta").mode("append").option("txnVersion", batch_id).option("txnAppId", "parcels")
        writer.save(f"{home}/{folder}")


writer = spark.readStream.format("delta").load(parcels).writeStream.foreachBatch(write_twice).trigger(availableNow=True)
writer.option("checkpointLocation", f"{home}/twice_checkpoint").start().awaitTermination()
show("once in each place", spark.read.format("delta").load(f"{home}/left"))
print(spark.read.format("delta").load(f"{home}/right").count())

# ---------------------------------------------------------------- files that are rewritten without a change of rows

frame = spark.read.format("delta").load(parcels).repartition(3)
frame.write.format("delta").mode("overwrite").option("dataChange", "false").save(parcels)
add((6, "Bonn", "2024-05-04 08:00:00"))
show("no parcel twice", copied("all", spark.readStream.format("delta").option("skipChangeCommits", "true").load(parcels)))

# ---------------------------------------------------------------- a column gets another name

spark.sql("CREATE TABLE scans (id INT, place STRING) USING DELTA TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
spark.sql("INSERT INTO scans VALUES (1, 'gate')")


def track():
    checkpoint = f"{home}/tracked_checkpoint"
    stream = spark.readStream.option("schemaTrackingLocation", f"{checkpoint}/schemas").table("scans")
    writer = stream.writeStream.option("checkpointLocation", checkpoint).option("mergeSchema", "true").trigger(availableNow=True)
    writer.toTable("tracked").awaitTermination()


track()
spark.sql("ALTER TABLE scans RENAME COLUMN place TO site")
spark.sql("INSERT INTO scans VALUES (2, 'dock')")
for _ in range(6):
    try:
        track()
        break
    except Exception as error:
        if "allowSourceColumnRename" in str(error):
            spark.conf.set("spark.databricks.delta.streaming.allowSourceColumnRename", "always")
show("the new name", spark.table("tracked"))
