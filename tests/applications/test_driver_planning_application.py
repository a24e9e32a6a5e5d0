"""The driver's own Python as the planner of an application: its first query, a channel that closes, and several sessions in
sequence.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

APPLICATION = """
import json, os, subprocess, sys, time
os.environ["PYSPARK_PIN_THREAD"] = sys.argv[2]
os.environ["PYTHONPATH"] += os.pathsep + sys.argv[3]
from pyspark.sql import SparkSession
from spark_plugin import pruning, register
from spark_plugin.driver_channel.channel import channel_of
from spark_plugin.driver_planning import offer

def started(enabled):
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.pydelta.driverPlanning.enabled", enabled)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    return spark

def query(spark, day):
    frame = spark.read.format("pydelta").load(sys.argv[1]).filter(f"day = '{day}'")
    return sorted(row.id for row in frame.collect())

def workers(spark, module):
    "Daemons of such workers that the JVM has started."
    lines = subprocess.run(["ps", "-ewwo", "ppid,args"], capture_output=True, text=True).stdout.splitlines()
    jvm = str(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    return sum(line.split()[0] == jvm and line.rstrip().endswith(module) for line in lines)

def is_refused(spark):
    try:
        spark.sql(f"CALL pydelta.system.history('{sys.argv[1]}')")
        return False
    except Exception as error:
        return "Nothing was done" in str(error)

def statements(spark):
    deleted = spark.sql(f"EXECUTE IMMEDIATE 'DELETE FROM pydelta.`{sys.argv[1]}` WHERE id = 77'").first()[0]
    return [deleted, spark.sql(f"CALL pydelta.system.history('{sys.argv[1]}')").count()]

WORKERS = [
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
]
out = {}
spark = started("true")
out["sql"] = spark.sql(f"SELECT max(id) AS id FROM pydelta.`{sys.argv[1]}` WHERE day = 'c'").first().id
out["sql_planned"] = pruning.status(spark)["driver-planning"].used
out["first"] = query(spark, "a")
out["workers"] = sum(workers(spark, name) for name in WORKERS)
out["planned"] = pruning.status(spark)["driver-planning"].used
out["found_by_spark"] = [row.id for row in spark.read.format("other").load().collect()]
out["workers_then"] = workers(spark, WORKERS[0])

out["statements"] = statements(spark)
out["planned_before"] = pruning.status(spark)["driver-planning"].used
server = channel_of(spark)._server
out["path"] = server.path
server.close()
out["refused"] = is_refused(spark)
begun = time.monotonic()
out["closed"] = [query(spark, day) for day in "bcab"]
out["seconds"] = time.monotonic() - begun
out["planned_then"] = pruning.status(spark)["driver-planning"].used
out["error"] = pruning.status(spark)["driver-planning"].last_error
offer(spark)
out["anew"] = [query(spark, "a"), pruning.status(spark)["driver-planning"].used]
register(spark)
out["statements_anew"] = statements(spark)
out["port"] = spark.sparkContext._gateway.__dict__.get("_callback_server")

spark.stop()
deadline = time.monotonic() + 10
while os.path.exists(os.path.dirname(server.path)) and time.monotonic() < deadline:
    time.sleep(0.1)
out["left"] = os.path.exists(os.path.dirname(server.path))
spark = started("true")
out["second"] = [query(spark, "c"), pruning.status(spark)["driver-planning"].used]
spark.stop()
spark = started("false")
out["third"] = [query(spark, "b"), pruning.status(spark)["driver-planning"].used]
spark.stop()
print(json.dumps(out))
"""

OTHER_SOURCE = """
from pyspark.sql.datasource import DataSource, DataSourceReader

class DefaultSource(DataSource, DataSourceReader):
    @classmethod
    def name(cls):
        return "other"
    def schema(self):
        return "id INT"
    def reader(self, schema):
        return self
    def read(self, partition):
        yield (7,)
"""


@pytest.mark.parametrize("pinned_threads", ["true", "false"])
def test_driver_plans_an_application_that_continues_without_it(tmp_path: Path, pinned_threads: str) -> None:
    commits = [pa.table({"id": pa.array([n, n + 10], pa.int64()), "day": [day] * 2}) for n, day in enumerate("abc")]
    path = make_table(tmp_path / "t", commits, partition_by=["day"])
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "pyspark_other.py").write_text(OTHER_SOURCE)
    result = run_script(APPLICATION, path, pinned_threads, str(tmp_path / "sources"))
    assert (result["sql"], result["sql_planned"]) == (12, 1)
    assert (result["first"], result["workers"], result["planned"]) == ([0, 10], 0, 2)
    assert (result["found_by_spark"], result["workers_then"]) == ([7], 1)
    assert result["closed"] == [[1, 11], [2, 12], [0, 10], [1, 11]]
    assert result["planned_then"] == result["planned_before"]
    assert result["seconds"] < 60, "a channel that is closed is known at once"
    assert result["error"]
    assert result["refused"], "a procedure does not wait for a channel that is closed"
    assert result["statements"] == result["statements_anew"] == [0, 3]
    assert (result["port"], result["left"]) == (None, False)
    assert result["anew"] == [[0, 10], result["planned_before"] + 1]
    assert result["second"] == [[2, 12], 1]
    assert result["third"] == [[1, 11], 0]
