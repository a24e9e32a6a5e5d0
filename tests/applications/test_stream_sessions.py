"""Streams in other sessions than a registered classic one: over Spark Connect, and in a session where no code called register."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable
from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

HEAD = """
import json, sys
from pyspark.sql import SparkSession, functions as F

path, new, home = sys.argv[1:]
found = {}

def run(frame, target, start=None, mode="append", **options):
    writer = frame.writeStream.format("pydelta").trigger(availableNow=True).outputMode(mode).options(**options)
    query = (start or (lambda w: w.start(target)))(writer.option("checkpointLocation", target + "-checkpoint"))
    query.awaitTermination()
    return query

def message(action):
    try:
        action()
    except Exception as error:
        return str(error)
"""

CONNECT = """
from spark_plugin import register
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", home).getOrCreate()
)
register(spark)
frame = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1).load(path)
query = run(frame, new, lambda w: w.partitionBy("name").start(new))
found["id"] = str(query.id)
run(frame.groupBy("name").count(), new + "-complete", mode="complete")
run(frame, "by name", lambda w: w.toTable("named", checkpointLocation=new + "-named-checkpoint"))
found["named"] = spark.table("named").count()
found["again"] = spark.readStream.table("named").isStreaming
found["update"] = message(lambda: run(frame, new + "-update", mode="update"))
found["option"] = message(lambda: run(frame, new, mergeShema=True))
live = frame.writeStream.format("pydelta").option("checkpointLocation", new + "-live-checkpoint").start(new + "-live")
live.processAllAvailable()
found["live"] = [live.isActive, len(spark.streams.active)]
live.stop()
found["stopped"] = [live.isActive, len(spark.streams.active)]
spark.createDataFrame([(4, "late")], "id bigint, name string").write.format("pydelta").mode("append").save(path)
run(frame, new + "-live")
"""

UNREGISTERED = """
spark = (
    SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
query = run(spark.readStream.format("pydelta").option("startingVersion", 1).load(path), new)
found["id"] = str(query.id)
run(spark.readStream.format("pydelta").load(path).groupBy("name").count(), new + "-complete", mode="complete")
"""
REGISTERED = """
from spark_plugin import register
spark = (
    SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
register(spark)

def save(batch, number):
    batch.write.format("pydelta").mode("append").save(new)
    found["format"] = batch.sparkSession.sql(f"SELECT count(*) FROM pydelta.`{new}`").first()[0]

stream = spark.readStream.format("pydelta").load(path)
run(stream, new, lambda writer: writer.foreachBatch(save).start())
"""
TAIL = """
spark.stop()
print(json.dumps(found))
"""


def table(root: Path) -> str:
    commits = [pa.table({"id": pa.array([n, n + 1], pa.int64()), "name": [f"n{n}", "x"]}) for n in (0, 2)]
    return make_table(root / "t", commits)


def rows(path: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in DeltaTable(path).to_arrow().to_pylist())


def transactions(path: str) -> set[str]:
    return {str(row["operationParameters"]) for row in DeltaTable(path).history().to_pylist()}


def test_connect_session_streams_as_a_classic_one(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    result = run_script(HEAD + CONNECT + TAIL, table(tmp_path), new, str(tmp_path / "warehouse"))
    assert rows(new) == [(0, "n0"), (1, "x"), (2, "n2"), (3, "x")]
    assert DeltaTable(new).metadata.partition_columns == ("name",)
    assert all(result["id"] in parameters for parameters in transactions(new))
    assert rows(new + "-complete") == [("n0", 1), ("n2", 1), ("x", 2)]
    assert (result["named"], result["again"]) == (4, True)
    assert (result["live"], result["stopped"]) == ([True, 1], [False, 0])
    assert rows(new + "-live") == [(0, "n0"), (1, "x"), (2, "n2"), (3, "x"), (4, "late")]
    assert "DELTA_UNSUPPORTED_OUTPUT_MODE" in result["update"] and "mergeSchema" in result["option"]


def test_streams_of_a_classic_session_log_no_warning_of_sources(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    result = run_script(HEAD + REGISTERED + TAIL, table(tmp_path), new, str(tmp_path / "warehouse"))
    assert len(rows(new)) == result["format"] == 4
    assert "WARN" in result["stderr"], "warnings are logged"
    assert "DataSourceManager" not in result["stderr"]


def test_unregistered_session_streams_with_checkpoint_location(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    result = run_script(HEAD + UNREGISTERED + TAIL, table(tmp_path), new, str(tmp_path / "warehouse"))
    assert rows(new) == [(2, "n2"), (3, "x")]
    assert all(result["id"] in parameters for parameters in transactions(new))
    assert rows(new + "-complete") == [("n0", 1), ("n2", 1), ("x", 2)]
