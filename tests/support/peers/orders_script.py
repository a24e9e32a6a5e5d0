"""A script as users of delta-spark write them: its quick start, and what tables of orders need after it.

It checks itself. Tests run it as it is on delta-spark, and with one line more on pydelta. Its argument is an empty directory.
"""

import json
import sys

from delta import DeltaTable, configure_spark_with_delta_pip
from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaMergeBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

home = sys.argv[1]
builder = (
    SparkSession.builder.appName("orders")
    .master("local[2]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", f"{home}/warehouse")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


# ---------------------------------------------------------------- quick start: write, read, overwrite, older versions

numbers = f"{home}/numbers"
spark.range(0, 5).write.format("delta").save(numbers)
spark.range(5, 10).write.format("delta").mode("overwrite").save(numbers)
assert rows(spark.read.format("delta").load(numbers)) == [(5,), (6,), (7,), (8,), (9,)]
assert spark.read.format("delta").option("versionAsOf", 0).load(numbers).count() == 5
assert spark.sql(f"SELECT count(*) FROM delta.`{numbers}` VERSION AS OF 0").first()[0] == 5
assert DeltaTable.isDeltaTable(spark, numbers)

# ---------------------------------------------------------------- rows that change

table = DeltaTable.forPath(spark, numbers)
table.update(condition=F.expr("id % 2 = 0"), set={"id": F.expr("id + 100")})
table.delete("id % 2 = 0")
newer = spark.createDataFrame([(5, True), (7, False), (11, False)], "id bigint, gone boolean")
merge = table.alias("old").merge(newer.alias("new"), "old.id = new.id")
assert isinstance(merge, DeltaMergeBuilder)
(
    merge.whenMatchedDelete(condition="new.gone")
    .whenMatchedUpdate(set={"id": "new.id * 10"})
    .whenNotMatchedInsert(values={"id": "new.id"})
    .execute()
)
assert rows(table.toDF()) == [(9,), (11,), (70,)]
assert [row.operation for row in table.history(3).collect()] == ["MERGE", "DELETE", "UPDATE"]

# ---------------------------------------------------------------- tables of the catalog, and their rules

spark.sql("CREATE DATABASE shop")
(
    DeltaTable.createIfNotExists(spark)
    .tableName("shop.orders")
    .addColumn("id", "BIGINT", nullable=False)
    .addColumn("at", "TIMESTAMP")
    .addColumn("price", "DECIMAL(8, 2)", comment="in euros")
    .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
    .partitionedBy("day")
    .property("delta.enableChangeDataFeed", "true")
    .execute()
)
spark.sql("ALTER TABLE shop.orders ADD CONSTRAINT positive CHECK (price > 0)")
spark.sql("INSERT INTO shop.orders (id, at, price) VALUES (1, TIMESTAMP'2024-05-01 10:00:00', 3.5)")
orders = spark.createDataFrame(
    [(2, "2024-05-01 11:00:00", "7.25"), (3, "2024-05-02 09:30:00", "1")], "id bigint, at string, price string"
)
orders = orders.select("id", F.col("at").cast("timestamp"), F.col("price").cast("decimal(8, 2)"))
orders.write.format("delta").mode("append").saveAsTable("shop.orders")
assert [str(row.day) for row in spark.table("shop.orders").orderBy("id").collect()] == ["2024-05-01", "2024-05-01", "2024-05-02"]
for rule, wrong in (("positive", "4, TIMESTAMP'2024-05-02 12:00:00', -1"), ("id", "NULL, TIMESTAMP'2024-05-02 12:00:00', 1")):
    try:
        spark.sql(f"INSERT INTO shop.orders (id, at, price) VALUES ({wrong})")
    except Exception as error:
        assert rule in str(error)
    else:
        raise AssertionError(f"{wrong} was taken")
assert spark.table("shop.orders").count() == 3

spark.sql("CREATE TABLE shop.prices (id BIGINT, price DECIMAL(8, 2)) USING delta")
spark.sql("INSERT INTO shop.prices SELECT id, price FROM shop.orders")
spark.sql("UPDATE shop.prices SET price = price * 2 WHERE id = 1")
spark.sql(
    "MERGE INTO shop.prices p USING shop.orders o ON p.id = o.id AND o.id < 3 "
    "WHEN MATCHED AND p.price <> o.price THEN UPDATE SET price = o.price WHEN NOT MATCHED BY SOURCE THEN DELETE"
)
assert [(row.id, float(row.price)) for row in spark.table("shop.prices").orderBy("id").collect()] == [(1, 3.5), (2, 7.25)]
spark.createDataFrame([(9, "x")], "id bigint, note string").write.format("delta").mode("append").option(
    "mergeSchema", "true"
).saveAsTable("shop.prices")
assert spark.table("shop.prices").columns == ["id", "price", "note"]

# ---------------------------------------------------------------- streams, and the change data feed

copies = f"{home}/copies"
stream = spark.readStream.format("delta").option("ignoreChanges", "true").table("shop.orders").select("id", "price")
query = (
    stream.writeStream.format("delta").option("checkpointLocation", f"{home}/checkpoint").trigger(availableNow=True).start(copies)
)
query.awaitTermination()
assert spark.read.format("delta").load(copies).count() == 3


def upsert(batch: DataFrame, number: int) -> None:
    copy = DeltaTable.forPath(batch.sparkSession, copies)
    merge = copy.alias("c").merge(batch.alias("b"), "c.id = b.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


changed = spark.createDataFrame([(1, "5.00"), (8, "6.00")], "id bigint, price string").selectExpr(
    "id", "CAST(price AS DECIMAL(8, 2)) AS price"
)
changed.write.format("delta").save(f"{home}/changed")
query = spark.readStream.format("delta").load(f"{home}/changed").writeStream.foreachBatch(upsert).trigger(availableNow=True)
query.option("checkpointLocation", f"{home}/upserts").start().awaitTermination()
assert [(row.id, float(row.price)) for row in spark.read.format("delta").load(copies).orderBy("id").collect()] == [
    (1, 5.0),
    (2, 7.25),
    (3, 1.0),
    (8, 6.0),
]

spark.sql("DELETE FROM shop.orders WHERE id = 2")
spark.sql("UPDATE shop.orders SET price = 9 WHERE id = 3")
feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4).table("shop.orders")
kinds = [("delete", 2), ("update_postimage", 3), ("update_preimage", 3)]
assert rows(feed.select("_change_type", "id")) == kinds
assert rows(spark.sql("SELECT _change_type, id FROM table_changes('shop.orders', 4)")) == kinds

# ---------------------------------------------------------------- maintenance

prices = DeltaTable.forName(spark, "shop.prices")
try:
    prices.optimize().executeCompaction()
    prices.restoreToVersion(1)
except DeltaConcurrentModificationException:
    print("somebody else writes: try again later")
assert spark.table("shop.prices").count() == 3
prices.vacuum(168)
spark.sql("VACUUM shop.prices RETAIN 168 HOURS DRY RUN")
detail = spark.sql("DESCRIBE DETAIL shop.orders").first()
assert (detail["format"], detail["partitionColumns"]) == ("delta", ["day"])
assert {row.tableName for row in spark.sql("SHOW TABLES IN shop").collect()} == {"orders", "prices"}
spark.range(3).write.parquet(f"{home}/parquet")
assert DeltaTable.convertToDelta(spark, f"parquet.`{home}/parquet`").toDF().count() == 3
engine = table.history(1).select("engineInfo").first()[0]
providers = [
    {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED shop.{name}").collect()}["Provider"]
    for name in ("orders", "prices")
]
print(json.dumps({"engine": engine.split("/")[0], "providers": providers}))
