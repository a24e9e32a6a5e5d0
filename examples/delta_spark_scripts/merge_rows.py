"""Boats of a harbour: upserts, new columns, history of berths, a log without duplicates, ordered changes, a stream.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-update
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("harbour")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()


def show(title, frame):
    print(title)
    frame.orderBy(*[name for name, kind in frame.dtypes if not kind.startswith(("map", "variant"))]).show(truncate=False)


# ---------------------------------------------------------------- upsert: all columns named, and all columns at once

boats = spark.createDataFrame(
    [(1, "Alma", 7.5, "2024-04-01"), (2, "Brise", 9.0, "2024-04-02"), (3, "Circe", 12.25, "2024-04-02")],
    "id int, name string, metres double, seen string",
).withColumn("seen", F.to_date("seen"))
boats.write.format("delta").saveAsTable("boats")
boats.write.format("delta").save(f"{home}/seen_boats")
arrivals = spark.createDataFrame(
    [(2, "Brise II", 9.0, "2024-05-01"), (4, "Dora", 6.0, "2024-05-02")], "id int, name string, metres double, seen string"
).withColumn("seen", F.to_date("seen"))
arrivals.write.format("delta").save(f"{home}/arrivals")
spark.sql(f"CREATE TABLE arrivals USING DELTA LOCATION '{home}/arrivals'")
spark.sql(
    """
    MERGE INTO boats USING arrivals ON boats.id = arrivals.id
    WHEN MATCHED THEN UPDATE SET id = arrivals.id, name = arrivals.name, metres = arrivals.metres, seen = arrivals.seen
    WHEN NOT MATCHED THEN INSERT (id, name, metres, seen) VALUES (arrivals.id, arrivals.name, arrivals.metres, arrivals.seen)
    """
).show()
show("boats after the upsert in SQL", spark.table("boats"))

table = DeltaTable.forPath(spark, f"{home}/seen_boats")
updates = DeltaTable.forPath(spark, f"{home}/arrivals").toDF()
columns = {name: f"updates.{name}" for name in ("id", "name", "metres", "seen")}
(
    table.alias("boats")
    .merge(updates.alias("updates"), "boats.id = updates.id")
    .whenMatchedUpdate(set=columns)
    .whenNotMatchedInsert(values=columns)
    .execute()
)
show("boats after the upsert in Python", table.toDF())

# ---------------------------------------------------------------- rows that the source does not have

spark.sql(
    """
    MERGE INTO boats AS target USING arrivals AS source ON source.id = target.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE
    """
)
show("only what arrived", spark.table("boats"))
(
    table.alias("target")
    .merge(updates.where("id = 4").alias("source"), "source.id = target.id")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .whenNotMatchedBySourceUpdate(condition="target.seen >= DATE'2024-04-02'", set={"target.name": "upper(target.name)"})
    .whenNotMatchedBySourceDelete()
    .execute()
)
show("the others in capitals, or deleted", table.toDF())

# ---------------------------------------------------------------- schema evolution: columns that only the source has

engines = spark.createDataFrame([(2, 40, "diesel"), (9, 12, "petrol")], "id int, power int, fuel string")
(
    table.alias("t")
    .merge(engines.alias("s"), "s.id = t.id")
    .withSchemaEvolution()
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)
table = DeltaTable.forPath(spark, f"{home}/seen_boats")  # the object from before has the columns from before
show("two columns of the source", table.toDF())
engines.selectExpr("id", "struct(power, fuel) AS engine").createOrReplaceTempView("engines")
spark.sql(
    """
    MERGE WITH SCHEMA EVOLUTION INTO boats AS t USING engines AS s ON s.id = t.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    """
)
show("a struct of the source", spark.table("boats"))
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
table.alias("t").merge(engines.selectExpr("id", "true AS tested").alias("s"), "s.id = t.id").whenMatchedUpdateAll().execute()
spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
show("a column of the source, by the setting", DeltaTable.forPath(spark, f"{home}/seen_boats").toDF())

# ---------------------------------------------------------------- a log without duplicates

log = spark.createDataFrame([("k1", "in", "2024-05-01"), ("k2", "out", "2024-05-03")], "key string, event string, day string")
log.write.format("delta").partitionBy("day").saveAsTable("log")
newer = spark.createDataFrame(
    [("k2", "out", "2024-05-03"), ("k3", "in", "2024-05-04"), ("k0", "in", "2023-01-01")], "key string, event string, day string"
)
newer.createOrReplaceTempView("newer_log")
DeltaTable.forName(spark, "log").alias("log").merge(
    newer.alias("newer"), "log.key = newer.key AND log.day > '2024-05-01'"
).whenNotMatchedInsertAll("newer.day > '2024-05-01'").execute()
spark.sql(
    """
    MERGE INTO log USING newer_log ON log.key = newer_log.key AND log.day > '2024-05-02'
    WHEN NOT MATCHED AND newer_log.day > '2024-05-02' THEN INSERT *
    """
)
show("each event once", spark.table("log"))

# ---------------------------------------------------------------- berths of boats with their history (SCD type 2)

berths = DeltaTable.create(spark).tableName("berths").addColumn("boatId", "INT").addColumn("berth", "STRING")
berths = berths.addColumn("current", "BOOLEAN").addColumn("since", "DATE").addColumn("until", "DATE").execute()
spark.sql("INSERT INTO berths VALUES (1, 'A1', true, DATE'2023-01-01', null), (2, 'B7', true, DATE'2023-06-01', null)")
spark.sql("INSERT INTO berths VALUES (1, 'A9', false, DATE'2020-01-01', DATE'2023-01-01')")
moves = spark.sql(
    """
    SELECT * FROM VALUES (1, 'C3', DATE'2024-02-01'), (2, 'B7', DATE'2024-02-01'), (3, 'A1', DATE'2024-03-01')
    moves(boatId, berth, since)
    """
)
moved = (
    moves.alias("moves")
    .join(berths.toDF().alias("berths"), "boatid")
    .where("berths.current = true AND moves.berth <> berths.berth")
)
staged = moved.selectExpr("NULL AS mergeKey", "moves.*").union(moves.selectExpr("boatId AS mergeKey", "*"))
(
    berths.alias("berths")
    .merge(staged.alias("staged"), "berths.boatId = mergeKey")
    .whenMatchedUpdate(
        condition="berths.current = true AND berths.berth <> staged.berth", set={"current": "false", "until": "staged.since"}
    )
    .whenNotMatchedInsert(
        values={
            "boatid": "staged.boatId",
            "berth": "staged.berth",
            "current": "true",
            "since": "staged.since",
            "until": "null",
        }
    )
    .execute()
)
show("berths and their history", berths.toDF())

# ---------------------------------------------------------------- the newest of several changes of a key

tanks = spark.createDataFrame([("Alma", 40), ("Brise", 10), ("Circe", 25)], "key string, litres int")
tanks.write.format("delta").save(f"{home}/tanks")
changes = spark.createDataFrame(
    [
        ("Alma", 1, 35, False),
        ("Alma", 3, 20, False),
        ("Brise", 2, 5, False),
        ("Brise", 4, None, True),
        ("Dora", 2, 9, False),
        ("Emil", 1, None, True),
    ],
    "key string, time int, litres int, gone boolean",
)
latest = changes.selectExpr("key", "struct(time, litres, gone) AS rest").groupBy("key").agg(F.max("rest").alias("latest"))
latest = latest.select("key", "latest.*")
tank_table = DeltaTable.forPath(spark, f"{home}/tanks")
(
    tank_table.alias("t")
    .merge(latest.alias("s"), "s.key = t.key")
    .whenMatchedDelete(condition="s.gone = true")
    .whenMatchedUpdate(set={"key": "s.key", "litres": "s.litres"})
    .whenNotMatchedInsert(condition="s.gone = false", values={"key": "s.key", "litres": "s.litres"})
    .execute()
)
show("tanks", tank_table.toDF())

# ---------------------------------------------------------------- upserts of a stream's aggregates

sold = f"{home}/sold"
spark.createDataFrame([("diesel", 20), ("petrol", 5)], "key string, litres bigint").write.format("delta").save(sold)
spark.createDataFrame([("diesel", 0)], "key string, litres bigint").write.format("delta").save(f"{home}/totals")
totals = DeltaTable.forPath(spark, f"{home}/totals")


def upsert(batch, batch_id):
    totals.alias("t").merge(batch.alias("s"), "s.key = t.key").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def run():
    sales = spark.readStream.format("delta").load(sold).groupBy("key").agg(F.sum("litres").alias("litres"))
    writer = sales.writeStream.format("delta").foreachBatch(upsert).outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{home}/checkpoint").start().awaitTermination()


run()
show("totals", totals.toDF())
more = spark.createDataFrame([("petrol", 7), ("gas", 1)], "key string, litres bigint")
more.write.format("delta").mode("append").save(sold)
run()
show("totals after more sales", totals.toDF())
totals.history().select("version", "operation").orderBy("version").show()
