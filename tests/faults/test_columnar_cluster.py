"""The columnar reader on executors of their own: they get its jar, and a task that fails or loses its executor is run again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.support.small_table import make_table
from tests.support.spark_script import run_script

ROWS = 10_000
TEXTS = [None, "", "é", "long " * 50]

CLUSTER = """
import json, os, signal, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as F
from spark_plugin import pruning, register

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.task.maxFailures", "4")
    .config("spark.pydelta.columnarReader.enabled", "true")
    .config("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)

@F.udf("long")
def fails_first(number):
    if TaskContext.get().attemptNumber() == 0 and number == 4000:
        raise ValueError("the first attempt fails")
    return number

@F.udf("long")
def kills_its_executor_first(number):
    if TaskContext.get().attemptNumber() == 0 and number == 14000:
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat") as stat:
            executor = int(stat.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{executor}/cmdline") as command:
            assert "CoarseGrainedExecutorBackend" in command.read()
        os.kill(executor, signal.SIGKILL)
    return number

def totals(df):
    return df.agg(F.sum("id"), F.count("text"), F.count("*")).first()[:]

df = spark.read.format("pydelta").load(sys.argv[1])
plan = df.select("id")._jdf.queryExecution().executedPlan().toString()
print(json.dumps({
    "columns": "ColumnarToRow" in plan,
    "totals": totals(df),
    "texts": df.groupBy("text").count().count(),
    "joined": df.select("id").join(df.select("id", "text"), "id").count(),
    "failed": totals(df.select(fails_first("id").alias("id"), "text")),
    "killed": totals(df.select(kills_its_executor_first("id").alias("id"), "text")),
    "afterwards": totals(df),
    "error": pruning.status(spark).columnar_error,
}))
spark.stop()
"""


def test_executors_of_their_own_read_columns_and_read_them_again_after_a_failure(tmp_path: Path) -> None:
    files = [
        pa.table(
            {
                "id": pa.array(range(start, start + ROWS), pa.int64()),
                "text": pa.array([TEXTS[i % len(TEXTS)] for i in range(ROWS)], pa.string()),
            }
        )
        for start in (0, ROWS)
    ]
    found = run_script(CLUSTER, make_table(tmp_path / "t", files))
    del found["stderr"]
    count = 2 * ROWS
    totals = [count * (count - 1) // 2, count * 3 // 4, count]
    assert found == {
        "columns": True,
        "totals": totals,
        "texts": len(TEXTS),
        "joined": count,
        "failed": totals,
        "killed": totals,
        "afterwards": totals,
        "error": None,
    }
