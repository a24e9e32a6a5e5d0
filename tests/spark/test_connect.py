"""The same over Spark Connect: the client registers, the server's workers do the work."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable
from tests.support.small_table import make_table
from tests.support.spark_script import run_script

SCRIPT = """
import json, logging, sys, warnings
logging.basicConfig(format="LOG %(name)s %(message)s")
from pyspark.sql import SparkSession
from spark_plugin import DeltaTable, register
from spark_plugin.exceptions import InvalidOptionError, TableAlreadyExistsError, VersionNotFoundError

path, new, home = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", home).getOrCreate()
)
register(spark)
register(spark)
found = {"module": type(spark).__module__}
frame = spark.read.format("pydelta").load(path)
found["rows"] = [list(row) for row in frame.orderBy("id").collect()]
found["filters"] = [frame.filter("id = 1").count(), frame.filter("id = 3").count(), frame.count()]
found["by_hand"] = [list(row) for row in spark.read.load(path, format="pydelta", columns="name", filter="id = 3").collect()]
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
found["tokyo"] = spark.read.format("pydelta").option("timestampAsOf", "2024-03-10 19:30:00").load(path).count()
spark.conf.set("spark.sql.session.timeZone", "UTC")
frame.write.partitionBy("name").format("pydelta").save(new)
frame.write.save(new, format="pydelta", mode="ignore")
frame.write.format("pydelta").mode("append").save(new)
frame.write.mode("overwrite").parquet(new + "-parquet")
found["parquet"] = spark.read.parquet(new + "-parquet").count()

def caught(kind, action):
    try:
        action()
    except kind as error:
        return [error.error_class, error.getCondition(), str(error)]
    return None

found["exists"] = caught(TableAlreadyExistsError, lambda: frame.write.format("pydelta").save(new))
found["version"] = caught(VersionNotFoundError, lambda: spark.read.format("pydelta").option("versionAsOf", 9).load(path).count())
found["option"] = caught(InvalidOptionError, lambda: spark.read.format("pydelta").option("versionAs", 9).load(path).count())
table = DeltaTable.forPath(spark, new)
found["history"] = [row["operation"] for row in table.history().collect()]
found["detail"] = table.detail().select("partitionColumns", "numFiles").collect()[0].asDict()
found["is"] = [DeltaTable.isDeltaTable(spark, new), DeltaTable.isDeltaTable(spark, new + "-parquet")]
spark.stop()
print(json.dumps(found))
"""


def test_connect_session_reads_writes_and_raises_our_errors(tmp_path: Path) -> None:
    commits = [pa.table({"id": pa.array([n, n + 1], pa.int64()), "name": [f"n{n}", None]}) for n in (0, 2)]
    path = make_table(tmp_path / "t", commits, times_ms=[1_710_064_800_000, 1_710_068_400_000])
    new = str(tmp_path / "new")
    found = run_script(SCRIPT, path, new, str(tmp_path / "warehouse"))
    assert found["module"].startswith("pyspark.sql.connect.")
    assert found["rows"] == [[0, "n0"], [1, None], [2, "n2"], [3, None]]
    assert found["filters"] == [1, 1, 4]
    assert (found["by_hand"], found["tokyo"]) == ([[None]], 2)
    assert found["exists"][:2] == ["DELTA_PATH_EXISTS"] * 2
    assert found["version"][:2] == ["DELTA_VERSION_NOT_FOUND"] * 2 and "Traceback" not in found["version"][2]
    assert found["option"][0] == "DELTA_UNKNOWN_OPTION" and "'versionAsOf'" in found["option"][2]
    assert (found["parquet"], found["history"], found["is"]) == (4, ["WRITE", "WRITE"], [True, False])
    assert found["detail"]["partitionColumns"] == ["name"]
    written = DeltaTable(new)
    assert (written.version, written.to_arrow().num_rows) == (1, 8)
    assert found["stderr"].count("without column pruning") == 1, "said once, however often register is called"
