"""Songs of a radio station: compaction, clustering, other types, names and vectors of columns and rows.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/optimizations-oss, /delta-clustering, /delta-type-widening,
/delta-column-mapping, /delta-row-tracking, /delta-deletion-vectors, /delta-drop-feature
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("songs")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

path = f"{home}/songs"


def show(title, frame):
    print(title)
    frame.orderBy(*frame.columns).show(truncate=False)


def files(source):
    return source.select("_metadata.file_path").distinct().count()


# ---------------------------------------------------------------- compaction, and a Z-order

songs = spark.range(8).selectExpr("id", "concat('song ', id) AS title", "string(id % 2) AS day")
for _ in range(3):
    songs.coalesce(1).write.format("delta").partitionBy("day").mode("append").save(path)
spark.sql(f"CREATE TABLE songs USING DELTA LOCATION '{path}'")
table = DeltaTable.forPath(spark, path)
table.optimize().where("day = '0'").executeCompaction()
print(files(table.toDF().where("day = '0'")), "file of one day,", files(table.toDF().where("day = '1'")), "of the other")
for statement in (
    "OPTIMIZE songs WHERE day >= '1'",
    f"OPTIMIZE '{path}'",
    f"OPTIMIZE delta.`{path}`",
    "OPTIMIZE songs ZORDER BY (id)",
):
    spark.sql(statement)
print(files(table.toDF()), "files,", table.toDF().count(), "rows")
table.optimize().executeZOrderBy("title")
table.optimize().where("day = '1'").executeZOrderBy("title", "id")
print(files(table.toDF()), "files,", table.toDF().count(), "rows")

# ---------------------------------------------------------------- clustering

spark.sql("CREATE TABLE charts (place INT, title STRING) USING DELTA CLUSTER BY (place)")
place = f"LOCATION '{home}/more_charts'"
spark.sql(f"CREATE EXTERNAL TABLE more_charts USING DELTA CLUSTER BY (place) {place} AS SELECT * FROM charts")
DeltaTable.create(spark).tableName("built").addColumn("place", "INT").addColumn("title", "STRING").clusterBy("place").execute()
spark.sql("INSERT INTO charts VALUES (1, 'Blue'), (2, 'Low'), (3, 'Far')")
spark.sql("ALTER TABLE charts CLUSTER BY (title)")
spark.sql("OPTIMIZE charts")
spark.sql("OPTIMIZE charts FULL")
for name in ("charts", "more_charts", "built"):
    print(name, spark.sql(f"DESCRIBE DETAIL {name}").first().clusteringColumns)
spark.sql("ALTER TABLE charts CLUSTER BY NONE")
print("charts", spark.sql("DESCRIBE DETAIL charts").first().clusteringColumns)
show("charts", spark.sql("SELECT * FROM charts WHERE title > 'C'"))

# ---------------------------------------------------------------- wider types

spark.sql("CREATE TABLE plays (id INT, times SMALLINT) USING DELTA TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
spark.sql("INSERT INTO plays VALUES (1, 30000)")
spark.sql("ALTER TABLE plays ALTER COLUMN times TYPE INT")
spark.sql("INSERT INTO plays VALUES (2, 40000)")
wide = spark.sql("SELECT 3 AS id, bigint(5000000000) AS times")
wide.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("plays")
print(spark.table("plays").schema.simpleString())
show("plays", spark.table("plays"))
spark.sql("ALTER TABLE plays SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")

# ---------------------------------------------------------------- names of columns

spark.sql("CREATE TABLE rankings (id INT, times INT) USING DELTA")
spark.sql("INSERT INTO rankings VALUES (1, 7), (2, 8)")
spark.sql(
    "ALTER TABLE rankings SET TBLPROPERTIES ('delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5', "
    "'delta.columnMapping.mode' = 'name')"
)
spark.sql("ALTER TABLE rankings RENAME COLUMN times TO `how often`")
spark.sql("ALTER TABLE rankings DROP COLUMN id")
show("rankings", spark.table("rankings"))

# ---------------------------------------------------------------- rows with numbers

spark.sql("CREATE TABLE hosts (id INT, name STRING) USING DELTA TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
spark.sql("INSERT INTO hosts VALUES (1, 'Uma')")
spark.sql("INSERT INTO hosts VALUES (2, 'Vic')")
spark.sql("UPDATE hosts SET name = 'Vicky' WHERE id = 2")
show("hosts", spark.sql("SELECT _metadata.row_id, _metadata.row_commit_version, * FROM hosts"))
numbered = spark.read.table("hosts").select("_metadata.row_id", "_metadata.row_commit_version", "*")
show("hosts", numbered.where("id = 2"))
spark.sql("CREATE TABLE guests LIKE hosts USING DELTA")
print(spark.table("guests").columns)
spark.sql("ALTER TABLE hosts SET TBLPROPERTIES (delta.enableRowTracking = false)")

# ---------------------------------------------------------------- deletion vectors, and features that are dropped

spark.sql("CREATE TABLE events (id INT, day DATE) USING DELTA PARTITIONED BY (day)")
spark.sql("ALTER TABLE events SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
spark.sql("INSERT INTO events SELECT int(id), DATE'2024-01-01' FROM range(10)")
spark.sql("INSERT INTO events SELECT int(id), DATE'2021-01-01' FROM range(10)")
spark.sql("DELETE FROM events WHERE id = 3")
spark.sql("REORG TABLE events WHERE day >= '2022-01-01' APPLY (PURGE)")
spark.sql("REORG TABLE events APPLY (PURGE)")
print(spark.table("events").count(), files(spark.table("events")))
spark.sql("ALTER TABLE events SET TBLPROPERTIES ('delta.enableDeletionVectors' = false)")
spark.sql("ALTER TABLE events DROP FEATURE deletionVectors")
print("deletionVectors" in spark.sql("DESCRIBE DETAIL events").first().tableFeatures)
