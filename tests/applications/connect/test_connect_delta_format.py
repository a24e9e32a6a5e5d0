"""The name `delta` over Spark Connect, with the classes that the client sends to the server and without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark.needs_spark import needs_spark
from tests.support.spark.spark_script import run_script

SCRIPT = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as F
from spark_plugin import DeltaTable, register

home, disabled = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", home + "/warehouse").getOrCreate()
)
found = {}
try:
    spark.read.format("delta").load(home).schema
except PySparkException as error:
    found["before"] = error.getCondition()
if disabled:
    spark.conf.set("spark.pydelta.disable", disabled)
register(spark)
register(spark)
path = home + "/t"
spark.range(4).write.format("delta").save(path)
found["rows"] = spark.read.format("delta").load(path).filter("id > 1").count()
found["engine"] = DeltaTable.forPath(spark, path).history().first()["engineInfo"].split("/")[0]
spark.range(2).write.format("delta").saveAsTable("saved")
spark.range(2, 3).write.insertInto("saved")
spark.range(3, 4).writeTo("saved").append()
spark.range(4, 5).write.mode("append").saveAsTable("saved")
spark.sql("DELETE FROM saved WHERE id = 0")
found["saved"] = sorted(row.id for row in spark.table("saved").collect())
if not spark.version.startswith("4.1"):
    stream = spark.readStream.format("delta").load(path).writeStream.format("delta").trigger(availableNow=True)
    stream.option("checkpointLocation", home + "/checkpoint").toTable("streamed").awaitTermination()
    found["streamed"] = spark.table("streamed").count()
spark.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE id = 3")
spark.range(20, 21).writeTo(f"delta.`{path}`").append()
found["by_path"] = sorted(row.id for row in spark.read.format("delta").load(path).collect())
spark.conf.set("spark.sql.sources.default", "delta")
spark.range(3).write.save(home + "/by_default")
found["default"] = spark.read.load(home + "/by_default").count()
print(json.dumps(found))
"""


@pytest.mark.parametrize("disabled", ["", "connect"])
def test_format_delta_over_connect_is_pydelta(disabled: str, tmp_path: Path) -> None:
    found = run_script(SCRIPT, str(tmp_path), disabled)
    assert found["before"] == "DATA_SOURCE_NOT_FOUND"
    assert (found["rows"], found["engine"], found["default"]) == (2, "pydelta", 3)
    assert found["saved"] == [1, 2, 3, 4]
    assert found.get("streamed", 4) == 4, "Spark 4.1 refuses streaming reads over Spark Connect"
    assert found["by_path"] == [0, 1, 2, 13, 20]


REGISTERED = """
import json, sys
from pyspark.sql import SparkSession
from spark_plugin import register

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1).collect()
print("BEGIN", file=sys.stderr, flush=True)
register(spark)
print("END", file=sys.stderr, flush=True)
spark.range(4).write.format("delta").save(sys.argv[1] + "/t")
print(json.dumps({"rows": spark.read.format("delta").load(sys.argv[1] + "/t").count()}))
"""


def test_register_over_connect_writes_nothing_to_the_server_log(tmp_path: Path) -> None:
    found = run_script(REGISTERED, str(tmp_path))
    assert found["rows"] == 4
    log = found["stderr"].partition("BEGIN\n")[2].partition("END\n")
    assert log[1] and log[0].strip() == ""


UPSERTS = """
import json, sys
import spark_plugin.as_delta
import delta
from delta.tables import DeltaTable
from pyspark.sql import SparkSession, functions as F

home = sys.argv[1]
path = home + "/t"
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")
spark.range(3).withColumn("name", F.lit("old")).write.format("delta").save(path)
spark.range(2, 5).withColumn("name", F.lit("new")).write.format("delta").save(home + "/source")


def merged(table, batch):
    merge = table.alias("t").merge(batch.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()["num_affected_rows"]


def class_of_the_script(batch, number):
    assert merged(DeltaTable.forPath(batch.sparkSession, path), batch) == 3


def module_of_the_script(batch, number):
    assert merged(delta.tables.DeltaTable.forPath(batch.sparkSession, path), batch) == 3


def import_in_the_function(batch, number):
    from delta.exceptions import ConcurrentAppendException
    from delta.tables import DeltaTable as Imported

    assert merged(Imported.forPath(batch.sparkSession, path), batch) == 3


functions = [class_of_the_script, module_of_the_script, import_in_the_function]
for function in functions:
    writer = spark.readStream.format("delta").load(home + "/source").writeStream.foreachBatch(function)
    writer.option("checkpointLocation", f"{home}/{function.__name__}").trigger(availableNow=True).start().awaitTermination()
rows = [list(row) for row in spark.read.format("delta").load(path).orderBy("id").collect()]
history = [row.operation for row in DeltaTable.forPath(spark, path).history().collect()]
print(json.dumps({"rows": rows, "history": history}))
"""


@needs_spark("4.2", "streaming reads over Spark Connect")
def test_foreach_batch_for_delta_spark_merges_over_connect(tmp_path: Path) -> None:
    result = run_script(UPSERTS, str(tmp_path))
    assert result["rows"] == [[0, "old"], [1, "old"], [2, "new"], [3, "new"], [4, "new"]]
    assert result["history"] == ["MERGE", "MERGE", "MERGE", "WRITE"]
