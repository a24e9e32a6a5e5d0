"""Bicycles for rent: rules that rows must keep.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-constraints
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("bicycles")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()


def show(frame):
    frame.orderBy(*frame.columns).show(truncate=False)


def attempt(title, work, *words):
    """Do what must be refused, and say whether the error has these words."""
    try:
        work()
    except Exception as error:
        print(f"{title}: refused,", [word in str(error) for word in words])
    else:
        print(f"{title}: done")


# ---------------------------------------------------------------- NOT NULL

spark.sql("CREATE TABLE default.bikes (id INT NOT NULL, model STRING NOT NULL, size INT, bought DATE) USING DELTA")
spark.sql("INSERT INTO default.bikes VALUES (2, 'city', 54, DATE'2020-04-01'), (3, 'cargo', null, DATE'2022-02-02')")
attempt("no id", lambda: spark.sql("INSERT INTO default.bikes VALUES (null, 'city', 50, null)"), "NOT NULL", "id")
attempt("no model", lambda: spark.sql("INSERT INTO default.bikes VALUES (4, null, 50, null)"), "NOT NULL", "model")
spark.sql("ALTER TABLE default.bikes CHANGE COLUMN model DROP NOT NULL")
spark.sql("INSERT INTO default.bikes VALUES (4, null, 50, DATE'2021-05-05')")
show(spark.table("default.bikes"))

# ---------------------------------------------------------------- CHECK

spark.sql("ALTER TABLE default.bikes ADD CONSTRAINT recent CHECK (bought > '2010-01-01')")
spark.sql("ALTER TABLE default.bikes ADD CONSTRAINT valid_ids CHECK (id > 1 and id < 1000)")
attempt("an old one", lambda: spark.sql("INSERT INTO default.bikes VALUES (5, 'race', 56, DATE'1999-01-01')"), "recent")
attempt("id 1", lambda: spark.sql("INSERT INTO default.bikes VALUES (1, 'race', 56, DATE'2023-01-01')"), "valid_ids", "id")
attempt("an update", lambda: spark.sql("UPDATE default.bikes SET id = id + 998"), "valid_ids")
rows = spark.createDataFrame([(6, "race", 58), (4000, "race", 60)], "id int, model string, size int")
rows = rows.selectExpr("*", "current_date() AS bought")
attempt("an append", lambda: rows.write.format("delta").mode("append").saveAsTable("default.bikes"), "valid_ids", "4000")
merge = DeltaTable.forName(spark, "default.bikes").alias("b").merge(rows.alias("r"), "b.id = r.id")
values = {"id": "r.id", "model": "r.model", "bought": "r.bought"}
attempt("a merge", merge.whenNotMatchedInsert(values=values).execute, "valid_ids", "4000")
broken = "ALTER TABLE default.bikes ADD CONSTRAINT big CHECK (size > 52)"
attempt("a rule that rows break", lambda: spark.sql(broken), "size > 52")
taken = "ALTER TABLE default.bikes ADD CONSTRAINT recent CHECK (size > 1)"
attempt("a name that is taken", lambda: spark.sql(taken), "recent")
spark.sql("ALTER TABLE default.bikes DROP CONSTRAINT recent")
spark.sql("INSERT INTO default.bikes VALUES (5, 'race', 56, DATE'1999-01-01')")
show(spark.table("default.bikes"))
spark.sql("DESCRIBE DETAIL default.bikes").select("format", "partitionColumns", "properties").show(truncate=False)
show(spark.sql("SHOW TBLPROPERTIES default.bikes").where("key LIKE 'delta.constraints.%'"))

# ---------------------------------------------------------------- rules of tables by path

path = f"{home}/rides"
spark.range(1, 4).selectExpr("id", "id * 10 AS minutes").write.format("delta").save(path)
spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (minutes <= 60)")
spark.range(8, 9).selectExpr("id", "60 AS minutes").selectExpr("id", "bigint(minutes) AS minutes").write.format("delta").mode(
    "append"
).save(path)
long_ride = spark.range(9, 10).selectExpr("id", "id * 10 AS minutes")
attempt("a long ride", lambda: long_ride.write.format("delta").mode("append").save(path), "short", "90")
show(spark.read.format("delta").load(path))
spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT short")
attempt("no such rule", lambda: spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT short"), "short")
DeltaTable.forPath(spark, path).history().select("version", "operation").orderBy("version").show()
spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT IF EXISTS short")
