"""A bakery's orders: tables are created, written, overwritten in part, read as they were, and their schemas change.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-batch
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("bakery")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

path = f"{home}/by_path"


def show(title, frame):
    print(title)
    frame.orderBy(*frame.columns).show(truncate=False)


def orders(*rows):
    return spark.createDataFrame(rows, "id int, bread string, day string").withColumn("day", col("day").cast("date"))


# ---------------------------------------------------------------- create

columns = "(id INT, bread STRING, day DATE)"
spark.sql(f"CREATE TABLE IF NOT EXISTS default.orders {columns} USING DELTA")
spark.sql(f"CREATE OR REPLACE TABLE default.orders {columns} USING DELTA PARTITIONED BY (bread)")
spark.sql(f"CREATE OR REPLACE TABLE delta.`{home}/in_sql` {columns} USING DELTA")
(
    DeltaTable.createIfNotExists(spark)
    .tableName("default.built")
    .addColumn("id", "INT")
    .addColumn("bread", "STRING", comment="its sort")
    .addColumn("day", "DATE")
    .partitionedBy("bread")
    .execute()
)
(
    DeltaTable.createOrReplace(spark)
    .addColumn("id", "INT")
    .addColumn("bread", "STRING", comment="its sort")
    .addColumn("day", "DATE")
    .property("description", "orders of a bakery")
    .location(path)
    .execute()
)
spark.sql(f"CREATE TABLE default.outside USING DELTA LOCATION '{path}'")
show("built", spark.sql("DESCRIBE default.built"))
show("by path", spark.sql("SHOW TBLPROPERTIES default.outside ('description')"))

# ---------------------------------------------------------------- append, overwrite, read

first = orders((1, "rye", "2024-01-01"), (2, "spelt", "2024-01-01"), (3, "rye", "2024-01-02"))
first.write.format("delta").mode("append").save(path)
first.write.format("delta").mode("append").saveAsTable("default.orders")
first.createOrReplaceTempView("more_orders")
spark.sql("INSERT INTO default.built SELECT * FROM more_orders")
show("by name", spark.table("default.orders"))
show("by path", spark.sql(f"SELECT * FROM delta.`{path}`"))
print(spark.sql("SELECT count(*) > 0 AS `there is rye` FROM default.orders WHERE bread = 'rye'").first())
first.limit(0).write.format("delta").mode("overwrite").save(path)
first.write.format("delta").mode("overwrite").option("userMetadata", "a better day").save(path)
spark.sql("SET spark.databricks.delta.commitInfo.userMetadata=corrected")
spark.sql("INSERT OVERWRITE TABLE default.built SELECT id + 100, bread, day FROM more_orders")
spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
for source in (f"delta.`{path}`", "default.built"):
    spark.sql(f"DESCRIBE HISTORY {source} LIMIT 1").select("version", "operation", "userMetadata").show()

# ---------------------------------------------------------------- overwrite in part

january = orders((7, "rye", "2024-01-02"))
january.write.format("delta").mode("overwrite").option("replaceWhere", "day >= '2024-01-02' AND day <= '2024-01-31'").save(path)
show("replaced by days", spark.read.format("delta").load(path))
january.createOrReplaceTempView("january")
spark.sql("INSERT INTO TABLE default.orders REPLACE WHERE bread = 'rye' SELECT * FROM january")
show("replaced by sort", spark.table("default.orders"))
try:
    later = orders((8, "rye", "2024-02-02")).write.format("delta").mode("overwrite")
    later.option("replaceWhere", "day < '2024-02-01'").save(path)
except Exception as error:
    print("refused:", "DELTA_REPLACE_WHERE_MISMATCH" in str(error))
spark.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", False)
later.option("replaceWhere", "day = '2024-01-02'").save(path)
spark.conf.unset("spark.databricks.delta.replaceWhere.constraintCheck.enabled")
show("replaced without a check", spark.read.format("delta").load(path))
first.write.format("delta").partitionBy("bread").save(f"{home}/parts")
spelt = orders((9, "spelt", "2024-03-01")).write.format("delta").mode("overwrite")
spelt.option("partitionOverwriteMode", "dynamic").save(f"{home}/parts")
spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
spark.sql("INSERT OVERWRITE TABLE default.built SELECT * FROM january")
spark.sql("SET spark.sql.sources.partitionOverwriteMode=static")
show("partitions replaced", spark.read.format("delta").load(f"{home}/parts"))
show("partitions replaced in SQL", spark.table("default.built"))
orders((10, "oat", "2024-03-01"), (11, "oat", "2024-03-02")).write.format("delta").mode("overwrite").option(
    "replaceUsing", "day"
).save(path)
show("matching rows replaced", spark.read.format("delta").load(path))

# ---------------------------------------------------------------- files, and writes that happen once

loaves = spark.range(10).coalesce(1)
loaves.write.format("delta").option("maxRecordsPerFile", "4").save(f"{home}/loaves")
print(spark.read.format("delta").load(f"{home}/loaves").select("_metadata.file_path").distinct().count(), "files")
for _ in range(2):
    loaves.write.format("delta").mode("append").option("txnVersion", 1).option("txnAppId", "oven").save(f"{home}/loaves")
spark.conf.set("spark.databricks.delta.write.txnAppId", "oven")
spark.conf.set("spark.databricks.delta.write.txnVersion", "2")
for _ in range(2):
    loaves.write.format("delta").mode("append").save(f"{home}/loaves")
spark.conf.unset("spark.databricks.delta.write.txnAppId")
spark.conf.unset("spark.databricks.delta.write.txnVersion")
print(spark.read.format("delta").load(f"{home}/loaves").count(), "loaves")

# ---------------------------------------------------------------- older versions

history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`")
newest = history.selectExpr("max(version)").collect()[0][0]
show("the newest version", spark.read.format("delta").option("versionAsOf", newest).load(path))
show("version 1", spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 1"))
moment = history.where("version = 1").selectExpr("string(timestamp)").first()[0]
show("at its time", spark.read.format("delta").option("timestampAsOf", moment).load(path))
show("at its time, in SQL", spark.sql(f"SELECT * FROM delta.`{path}` TIMESTAMP AS OF '{moment}'"))
print(spark.read.format("delta").load(f"{path}@v1").count(), "orders in version 1")

# ---------------------------------------------------------------- schemas that change

spark.sql("CREATE TABLE boxes (a STRING, b STRUCT<x: INT, y: STRING>) USING DELTA")
spark.sql("INSERT INTO boxes VALUES ('one', named_struct('x', 1, 'y', 'p'))")
spark.sql("ALTER TABLE boxes ADD COLUMNS (c INT COMMENT 'pieces' FIRST, d DATE AFTER a)")
spark.sql("ALTER TABLE boxes ADD COLUMNS (b.z DOUBLE AFTER x)")
spark.sql("ALTER TABLE boxes ALTER COLUMN a COMMENT 'a name'")
spark.sql("ALTER TABLE boxes ALTER COLUMN d FIRST")
spark.sql("ALTER TABLE boxes ALTER COLUMN b.y FIRST")
print(spark.table("boxes").schema.simpleString())
spark.sql("ALTER TABLE boxes SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
spark.sql("ALTER TABLE boxes RENAME COLUMN a TO name")
spark.sql("ALTER TABLE boxes RENAME COLUMN b.x TO width")
spark.sql("ALTER TABLE boxes DROP COLUMN d")
spark.sql("ALTER TABLE boxes DROP COLUMNS (c)")
show("boxes", spark.table("boxes"))
spark.sql("INSERT INTO boxes SELECT 'two', named_struct('y', 'q', 'width', 2, 'z', 0.5D)")
show("boxes", spark.table("boxes"))
spark.read.table("default.outside").withColumn("day", col("day").cast("string")).write.format("delta").mode("overwrite").option(
    "overwriteSchema", "true"
).saveAsTable("default.outside")
spark.read.table("default.outside").withColumnRenamed("day", "ordered").write.format("delta").mode("overwrite").option(
    "overwriteSchema", "true"
).saveAsTable("default.outside")
print(spark.table("default.outside").schema.simpleString())
spark.sql("CREATE TABLE source_table AS SELECT 20 AS id, 'oat' AS bread, DATE'2024-04-01' AS day, 'till' AS paid_at")
spark.sql("CREATE TABLE target_table USING DELTA AS SELECT * FROM default.built")
spark.read.table("source_table").write.option("mergeSchema", "true").mode("append").format("delta").saveAsTable("target_table")
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", True)
spark.sql("SELECT 21 AS id, true AS sliced").write.mode("append").format("delta").saveAsTable("target_table")
spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
show("columns added", spark.table("target_table"))

# ---------------------------------------------------------------- properties and views

spark.sql("ALTER TABLE default.orders SET TBLPROPERTIES ('department' = 'bakery', 'delta.appendOnly' = 'true')")
show("properties", spark.sql("SHOW TBLPROPERTIES default.orders").where("key IN ('department', 'delta.appendOnly')"))
show("one property", spark.sql("SHOW TBLPROPERTIES default.orders ('department')"))
try:
    spark.sql("DELETE FROM default.orders")
except Exception as error:
    print("refused:", "append" in str(error).lower())
spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
loaves.write.format("delta").save(f"{home}/kept")
spark.conf.unset("spark.databricks.delta.properties.defaults.appendOnly")
print(DeltaTable.forPath(spark, f"{home}/kept").detail().first().properties["delta.appendOnly"])
spark.sql("CREATE TEMPORARY VIEW rye AS SELECT id, day FROM default.orders WHERE bread = 'rye'")
show("a view", spark.table("rye"))
