"""A session in which no code called register: Spark finds pyspark_pydelta by itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable
from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession

path, new, home = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.warehouse.dir", home).config("spark.sql.python.filterPushdown.enabled", "true").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
frame = spark.read.format("pydelta").load(path)
found = {"all": frame.count(), "one": frame.filter("id = 1").count(), "other": frame.filter("id = 3").count()}
found["again"] = frame.count()
found["version"] = spark.read.format("pydelta").option("versionAsOf", 0).load(path).count()
frame.filter("id > 1").write.format("pydelta").mode("append").save(path)
frame.write.format("pydelta").mode("append").save(new)
found["appended"] = spark.read.format("pydelta").load(path).count()
frame.filter("id > 1").write.format("pydelta").mode("overwrite").option("replaceWhere", "id > 1").save(new)
frame.filter("id = 0").write.format("pydelta").mode("overwrite").save(new + "-2")
frame.filter("id = 1").write.format("pydelta").mode("overwrite").save(new + "-2")
try:
    spark.read.format("pydelta").load(path + "/nothing")
except Exception as error:
    found["error"] = str(error)
try:
    spark.read.format("pydelta").option("pydelta.view", "history").load(path).collect()
except Exception as error:
    found["private"] = str(error)
found["imported"] = "spark_plugin" in sys.modules
spark.stop()
print(json.dumps(found))
"""


def test_session_without_register_reads_appends_and_overwrites(tmp_path: Path) -> None:
    ids = [pa.table({"id": pa.array([n, n + 1], pa.int64())}) for n in (0, 2)]
    path = make_table(tmp_path / "t", ids)
    new = str(tmp_path / "new")
    result = run_script(SCRIPT, path, new, str(tmp_path / "warehouse"))
    assert (result["all"], result["one"], result["other"], result["again"]) == (4, 1, 1, 4)
    assert (result["version"], result["appended"]) == (2, 6)
    assert DeltaTable(new + "-2").to_arrow()["id"].to_pylist() == [1] and DeltaTable(new + "-2").version == 1
    assert DeltaTable(new).version == 1
    assert sorted(DeltaTable(new).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert "[DELTA_PATH_DOES_NOT_EXIST]" in result["error"]
    assert "gives the options pydelta.view" in result["private"]
    assert not result["imported"], "the session's own process needs nothing of ours"
