"""Lamps of a street: a first table, in Python and in SQL.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/quick-start
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("lamps")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

lamps = f"{home}/lamps"


def show(title, frame):
    print(title)
    frame.orderBy(*frame.columns).show()


# ---------------------------------------------------------------- write and read

spark.range(100, 106).withColumnRenamed("id", "lamp").write.format("delta").save(lamps)
show("as written", spark.read.format("delta").load(lamps))
spark.range(200, 206).withColumnRenamed("id", "lamp").write.format("delta").mode("overwrite").save(lamps)
show("overwritten", spark.read.format("delta").load(lamps))

# ---------------------------------------------------------------- update, delete, merge

table = DeltaTable.forPath(spark, lamps)
table.update(condition=expr("lamp % 3 = 0"), set={"lamp": expr("lamp + 1000")})
table.delete(condition=expr("lamp % 2 = 1"))
newer = spark.range(198, 204).withColumnRenamed("id", "lamp")
(
    table.alias("street")
    .merge(newer.alias("newer"), "street.lamp = newer.lamp")
    .whenMatchedUpdate(set={"lamp": col("newer.lamp")})
    .whenNotMatchedInsert(values={"lamp": col("newer.lamp")})
    .execute()
)
show("changed", table.toDF())
show("version 0", spark.read.format("delta").option("versionAsOf", 0).load(lamps))

# ---------------------------------------------------------------- the same in SQL

street = f"delta.`{home}/street`"
spark.sql(f"CREATE TABLE {street} USING DELTA AS SELECT col1 AS lamp FROM VALUES 1, 2, 3, 4, 5, 6")
show("as written", spark.sql(f"SELECT * FROM {street}"))
spark.sql(f"INSERT OVERWRITE {street} SELECT col1 AS lamp FROM VALUES 11, 12, 13, 14")
spark.sql(f"UPDATE {street} SET lamp = lamp * 10 WHERE lamp % 2 == 0")
spark.sql(f"DELETE FROM {street} WHERE lamp < 13")
spark.sql("CREATE TEMP VIEW repaired AS SELECT col1 AS lamp FROM VALUES 12, 13, 120, 130")
spark.sql(
    f"""
    MERGE INTO {street} AS street USING repaired ON street.lamp = repaired.lamp
    WHEN MATCHED THEN UPDATE SET lamp = repaired.lamp + 1
    WHEN NOT MATCHED THEN INSERT (lamp) VALUES (repaired.lamp)
    """
)
show("changed", spark.sql(f"SELECT * FROM {street}"))
show("version 0", spark.sql(f"SELECT * FROM {street} VERSION AS OF 0"))

# ---------------------------------------------------------------- tables of the catalog

spark.sql("CREATE TABLE towns (town LONG) USING delta")
spark.sql("INSERT INTO towns VALUES 5, 6, 7")
spark.sql("CREATE TABLE new_towns (town LONG) USING parquet")
spark.sql("INSERT INTO new_towns VALUES 7, 8")
spark.sql(
    """
    MERGE INTO towns USING new_towns ON towns.town = new_towns.town
    WHEN MATCHED THEN UPDATE SET towns.town = new_towns.town WHEN NOT MATCHED THEN INSERT *
    """
)
show("towns", spark.table("towns"))
show("towns, version 1", spark.read.format("delta").option("versionAsOf", 1).table("towns"))
print(DeltaTable.isDeltaTable(spark, lamps), DeltaTable.isDeltaTable(spark, f"{home}/new_towns"))

# ---------------------------------------------------------------- streams

numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 1).load()
query = numbers.selectExpr("value + 300 AS lamp").writeStream.format("delta").option("checkpointLocation", f"{home}/checkpoint")
query = query.start(lamps)
while not query.recentProgress:
    query.awaitTermination(1)
query.stop()
show("streamed", spark.read.format("delta").load(lamps).where("lamp BETWEEN 300 AND 303"))
counts = spark.readStream.format("delta").load(lamps).where("lamp < 300").groupBy().count()
counts.writeStream.format("console").outputMode("complete").trigger(availableNow=True).start().awaitTermination()
