"""A list of members: rows are deleted and updated.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-update
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("members")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

path = f"{home}/by_path"
members = spark.createDataFrame(
    [
        (1, "Ines", "a", "1948-03-01", 3),
        (2, "Jon", "b", "1957-09-12", 0),
        (3, "Kim", "a", "1962-01-30", 7),
        (4, "Lea", None, "1990-06-06", 2),
        (5, "Max", "b", "2001-12-24", 0),
        (6, "Nia", "c", None, 1),
    ],
    "id int, name string, team string, born string, visits int",
).withColumn("born", col("born").cast("date"))
members.write.format("delta").save(path)
members.write.format("delta").partitionBy("team").saveAsTable("members")


def show(title, frame):
    print(title)
    frame.orderBy("id").show()


# ---------------------------------------------------------------- delete

table = DeltaTable.forPath(spark, path)
table.delete("born < '1950-01-01'")
show("deleted by text", table.toDF())
table.delete(col("born") < "1960-01-01")
show("deleted by a column", table.toDF())
spark.sql(f"DELETE FROM delta.`{path}` WHERE born IS NULL")
spark.sql("DELETE FROM members WHERE team = 'c' OR born < '1955-01-01'").show()
show("deleted in SQL, by path", table.toDF())
show("deleted in SQL, by name", spark.table("members"))

# ---------------------------------------------------------------- update

table.update(condition="team = 'a'", set={"team": "'red'"})
table.update(condition=col("team") == "b", set={"team": lit("blue"), "visits": col("visits") + 10})
show("updated by text and by columns", table.toDF())
spark.sql(f"UPDATE delta.`{path}` SET team = 'white' WHERE team IS NULL")
spark.sql("UPDATE members SET team = 'red', visits = visits * 2 WHERE team = 'a'").show()
spark.sql("UPDATE members SET team = 'blue' WHERE team = 'b'")
show("updated in SQL, by path", table.toDF())
show("updated in SQL, by name", spark.table("members"))
table.update(set={"visits": lit(0)})
table.delete()
print(table.toDF().count(), "members;", spark.read.format("delta").option("versionAsOf", 0).load(path).count(), "in version 0")
table.history().select("version", "operation").orderBy("version").show()
