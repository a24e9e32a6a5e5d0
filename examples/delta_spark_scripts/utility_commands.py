"""A shop's receipts: vacuum, history, detail, conversion, restore, clones and manifests.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-utility
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

import os
import time

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("receipts")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

receipts = f"{home}/receipts"


def show(title, frame):
    print(title)
    frame.orderBy(*[name for name, kind in frame.dtypes if not kind.startswith("map")]).show(truncate=False)


def history(frame):
    return frame.select("version", "operation")


# ---------------------------------------------------------------- history and detail

frame = spark.range(1, 7).selectExpr("id", "id * 1.5 AS euros", "concat('2024-01-0', id % 2 + 1) AS day")
frame.write.format("delta").partitionBy("day").save(receipts)
spark.sql(f"CREATE TABLE receipts USING DELTA LOCATION '{receipts}'")
table = DeltaTable.forPath(spark, receipts)
table.delete("id = 6")
table.update("id = 1", {"euros": "99"})
for source in (f"'{receipts}/'", f"delta.`{receipts}/`", "receipts"):
    show(f"history of {source}".replace(home, ""), history(spark.sql(f"DESCRIBE HISTORY {source}")))
show("the last operation", history(spark.sql(f"DESCRIBE HISTORY '{receipts}' LIMIT 1")))
show("the last operation", history(DeltaTable.forName(spark, "receipts").history(1)))
show("metrics", table.history().select("version", "operationMetrics.numDeletedRows", "operationMetrics.numUpdatedRows"))
for detail in (table.detail(), spark.sql(f"DESCRIBE DETAIL '{receipts}'"), spark.sql("DESCRIBE DETAIL receipts")):
    detail.selectExpr("format", "partitionColumns", f"location LIKE '%{receipts}' AS here", "sizeInBytes > 0 AS full").show()
for partitions in ("receipts", "receipts PARTITION (day = '2024-01-01')", f"delta.`{receipts}/`"):
    show("partitions", spark.sql(f"SHOW PARTITIONS {partitions}"))

# ---------------------------------------------------------------- restore

table.restoreToVersion(0)
show("version 0 again", table.toDF())
moment = table.history().where("version = 1").selectExpr("string(timestamp)").first()[0]
time.sleep(1)
spark.sql("RESTORE TABLE receipts TO VERSION AS OF 2").selectExpr("num_restored_files > 0 AS restored").show()
show("version 2 again", spark.table("receipts"))
spark.sql(f"RESTORE TABLE delta.`{receipts}` TO TIMESTAMP AS OF '{moment}'")
show("as it was then", table.toDF())
table.restoreToTimestamp(moment)
show("history", history(table.history()))

# ---------------------------------------------------------------- vacuum

table.vacuum()
table.vacuum(200)
for statement in (
    "VACUUM receipts",
    "VACUUM receipts LITE",
    f"VACUUM '{receipts}'",
    f"VACUUM delta.`{receipts}/`",
    f"VACUUM delta.`{receipts}/` RETAIN 200 HOURS",
    "VACUUM receipts DRY RUN",
):
    spark.sql(statement).collect()
try:
    table.vacuum(0)
except Exception as error:
    print("refused:", "retentionDurationCheck" in str(error))
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
inventory = spark.sql(
    f"SELECT '{receipts}/day=2024-01-01' AS path, bigint(0) AS length, true AS isDir, bigint(0) AS modificationTime"
)
inventory.write.format("delta").saveAsTable("inventory")
print("inventory", spark.sql("VACUUM receipts USING INVENTORY inventory RETAIN 0 HOURS").count())
print("inventory", spark.sql("VACUUM receipts USING INVENTORY (SELECT * FROM inventory) RETAIN 0 HOURS DRY RUN").count())
table.vacuum(0)
names = {row.name for row in table.toDF().select(col("_metadata.file_name").alias("name")).collect()}
names_here = {
    file for folder, _, files in os.walk(receipts) for file in files if file.endswith(".parquet") and "_log" not in folder
}
print("only files of the newest version:", names == names_here)
spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")

# ---------------------------------------------------------------- conversion of Parquet files

frame.drop("day").coalesce(1).write.parquet(f"{home}/plain")
frame.selectExpr("id", "int(id % 2) AS part", "int(id % 3) AS part2").write.partitionBy("part", "part2").parquet(f"{home}/parts")
frame.selectExpr("id", "int(id % 2) AS part").write.partitionBy("part").parquet(f"{home}/other_parts")
frame.drop("day").write.parquet(f"{home}/statless")
show("converted", DeltaTable.convertToDelta(spark, f"parquet.`{home}/plain`").toDF())
show("converted", DeltaTable.convertToDelta(spark, f"parquet.`{home}/other_parts`", "part int").toDF())
spark.sql(f"CONVERT TO DELTA parquet.`{home}/parts` PARTITIONED BY (part int, part2 int)")
spark.sql(f"CONVERT TO DELTA parquet.`{home}/statless` NO STATISTICS")
show("converted in SQL", spark.read.format("delta").load(f"{home}/parts"))
print(DeltaTable.isDeltaTable(spark, f"{home}/statless"), spark.sql(f"SELECT max(id) FROM delta.`{home}/statless`").first()[0])

# ---------------------------------------------------------------- clones

spark.sql(f"CREATE TABLE delta.`{home}/clone` SHALLOW CLONE delta.`{receipts}`")
spark.sql("CREATE TABLE clone_by_name SHALLOW CLONE receipts")
spark.sql("CREATE TABLE IF NOT EXISTS clone_by_name SHALLOW CLONE receipts")
spark.sql("DELETE FROM clone_by_name")
spark.sql("CREATE OR REPLACE TABLE clone_by_name SHALLOW CLONE receipts")
version = table.history(1).first().version
spark.sql(f"CREATE TABLE old SHALLOW CLONE delta.`{receipts}` VERSION AS OF {version}")
time.sleep(1)
spark.sql("UPDATE clone_by_name SET euros = -1 WHERE id > 4")
spark.sql("MERGE INTO receipts USING clone_by_name c ON c.id = receipts.id WHEN MATCHED AND c.euros < 0 THEN UPDATE SET *")
show("what was merged", spark.table("receipts"))
show("the clone of before", spark.table("old"))
spark.sql("DROP TABLE clone_by_name")
spark.sql(
    f"""
    CREATE OR REPLACE TABLE archived SHALLOW CLONE receipts
    TBLPROPERTIES (delta.logRetentionDuration = '3650 days', delta.deletedFileRetentionDuration = '3650 days')
    LOCATION '{home}/archive'
    """
)
show("properties", spark.sql("SHOW TBLPROPERTIES archived").where("key LIKE 'delta.%Duration'"))
frame.write.parquet(f"{home}/more_parquet")
spark.sql(f"CREATE OR REPLACE TABLE of_parquet SHALLOW CLONE parquet.`{home}/more_parquet`")
show("a clone of Parquet files", spark.table("of_parquet"))

# ---------------------------------------------------------------- manifests for other engines

DeltaTable.forPath(spark, f"{home}/plain").generate("symlink_format_manifest")
spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{home}/parts`")
manifests = [os.path.relpath(folder, home) for folder, _, files in os.walk(home) if "manifest" in files]
print(*sorted(manifests), sep="\n")
