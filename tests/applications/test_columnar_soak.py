"""Many queries through the columnar and the native reader, for PYDELTA_SOAK_MINUTES (half a minute by default). Each returns the
row reader's rows. At the end no reader holds Arrow memory, and the JVM's memory has not grown. Failed tasks run again, as on a
cluster.

The test reports what Spark's writers to Python hold, but does not fail because of it: if a task is cancelled, fails or loses its
worker at the wrong moment, these writers leak, with the row reader too (49,664 bytes for the first tasks that were cancelled, by
rows and by columns).
"""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

MINUTES = float(os.environ.get("PYDELTA_SOAK_MINUTES", "0.5"))
ROWS = 10_000

SCRIPT = """
import gc, json, random, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession, functions as F
from spark_plugin import pruning, register

path, minutes, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
spark = (
    SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "1g")
    .config("spark.pydelta.columnarReader.enabled", "true")
    .config("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)
from tests.applications.columnar_udfs import next_one, shout

@F.udf("long")
def slowly(number):
    time.sleep(0.01)
    return number

def failing(df):  # not in Python: a task whose Arrow UDF raises keeps Arrow memory, with the row reader too
    try:
        df.selectExpr("text", "IF(id = 25000, raise_error('as it should'), id) AS n").collect()
    except Exception as error:
        return ["as it should" in str(error)]

def cached(df):
    kept = df.filter("id % 3 = 0").cache()
    try:
        return [kept.agg(F.sum("id"), F.count("text")).collect(), kept.filter("flag").count()]
    finally:
        kept.unpersist(True)

def stopped(df):
    tag = f"stop {threading.get_ident()} {random.random()}"
    def run():
        spark.sparkContext.addJobTag(tag)
        try:
            return df.select(slowly("id"), "text").collect()
        except Exception as error:
            return "cancel" in str(error)
        finally:
            spark.sparkContext.removeJobTag(tag)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        time.sleep(random.uniform(0.1, 1.5))
        while not running.done():
            spark.sparkContext.cancelJobsWithTag(tag)
            time.sleep(0.1)
        return [running.result()]

QUERIES = {
    "rows": lambda df: df.filter("id % 100 = 7").collect(),
    "sums": lambda df: df.agg(F.sum("id"), F.sum("amount"), F.max("day"), F.max("at"), F.count("text"), F.max("raw")).collect(),
    "groups": lambda df: df.groupBy("text").agg(F.count("*"), F.sum("amount")).collect(),
    "join": lambda df: df.join(df.filter("flag").selectExpr("id", "text AS t"), "id").agg(F.count("*"), F.max("t")).collect(),
    "sort": lambda df: df.orderBy(F.desc("amount"), "id").limit(50).collect(),
    "limit": lambda df: [len(df.limit(7).collect())],
    "arrow_udf": lambda df: df.select(shout("text").alias("s")).groupBy("s").count().collect(),
    "pandas_udf": lambda df: df.select(next_one("id").alias("n")).agg(F.sum("n")).collect(),
    "window": lambda df: df.selectExpr("id", "sum(id) OVER (PARTITION BY text ORDER BY id) AS s").agg(F.max("s")).collect(),
    "arrow": lambda df: [df.select("id", "text").toArrow().num_rows],
    "failing": failing,
    "cached": cached,
    "stopped": stopped,
}

def answer(name, columnar):
    spark.conf.set("spark.pydelta.columnarReader.enabled", str(columnar).lower())
    return sorted(map(repr, QUERIES[name](spark.read.format("pydelta").load(path))))

spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
expected = {name: answer(name, False) for name in QUERIES}
[answer(name, True) for name in QUERIES]
jvm = spark._jvm
root = jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
pools = jvm.java.lang.management.ManagementFactory.getPlatformMXBeans(
    jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean"))
memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()

def arrow_memory(writers):
    found = [a for a in root.getChildAllocators().toArray() if a.getName().startswith("stdout writer") == writers]
    return sum(a.getAllocatedMemory() for a in found)

def held():
    deadline = time.monotonic() + 20
    while arrow_memory(writers=False) > 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    gc.collect()  # what Python still holds of the JVM
    jvm.System.gc()
    direct = [pool.getMemoryUsed() for pool in pools if pool.getName() == "direct"][0]
    arrow = {"arrow": arrow_memory(writers=False), "arrow_of_writers": arrow_memory(writers=True)}
    assert sum(arrow.values()) == root.getAllocatedMemory()
    return {**arrow, "direct": direct, "heap": memory.getHeapMemoryUsage().getUsed()}

before, runs, different, failed = held(), 0, [], []
spark.conf.set("spark.pydelta.columnarReader.enabled", "true")
at_start = pruning.status(spark)
end = time.monotonic() + minutes * 60
chosen = random.Random(seed)
lock = threading.Lock()

def work(_):
    global runs
    while time.monotonic() < end:
        with lock:
            name = chosen.choice(list(QUERIES))
            spark.conf.set("spark.pydelta.nativeReader.enabled", chosen.choice(["true", "false"]))
        try:
            found = sorted(map(repr, QUERIES[name](spark.read.format("pydelta").load(path))))
        except Exception as error:
            failed.append(f"{time.strftime('%T')} {name}: {str(error)[:3000]}")
            continue
        with lock:
            runs += 1
            if found != expected[name]:
                different.append(name)

with ThreadPoolExecutor(3) as pool:
    list(pool.map(work, range(3)))
status = pruning.status(spark)
print(json.dumps({"runs": runs, "different": different, "failed": failed, "before": before, "after": held(),
    "scans": status["columns"].used - at_start["columns"].used, "error": status["columns"].last_error,
    "backed_off": status["pruning"].skipped - at_start["pruning"].skipped}))
spark.stop()
"""


@pytest.mark.timeout(int(MINUTES * 60) + 1000)
def test_memory_does_not_grow_with_the_number_of_queries(tmp_path: Path) -> None:
    texts = [None, "", "é", "long " * 50]
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    files = [
        pa.table(
            {
                "id": pa.array(range(first, first + ROWS), pa.int64()),
                "text": pa.array([texts[i % 4] for i in range(ROWS)], pa.string()),
                "amount": pa.array([None if i % 5 == 0 else Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(20, 2)),
                "flag": pa.array([i % 50 == 0 for i in range(ROWS)], pa.bool_()),
                "day": pa.array([start.date() + dt.timedelta(days=i % 1000) for i in range(ROWS)], pa.date32()),
                "at": pa.array([start + dt.timedelta(seconds=i) for i in range(ROWS)], pa.timestamp("us", "UTC")),
                "raw": pa.array([None if i % 7 == 0 else b"\0\1" * (i % 40) for i in range(ROWS)], pa.binary()),
            }
        )
        for first in (0, ROWS, 2 * ROWS)
    ]
    table = make_table(tmp_path / "t", files)
    result = run_script(SCRIPT, table, str(MINUTES), "7", timeout_seconds=int(MINUTES * 60) + 900)
    print(json.dumps({name: value for name, value in result.items() if name != "stderr"}))
    assert (result["different"], result["failed"], result["error"], result["backed_off"]) == ([], [], None, 0)
    assert result["runs"] > 5 * MINUTES and result["scans"] > result["runs"] // 3, "half of the runs have the native reader on"
    before, after = result["before"], result["after"]
    assert (before["arrow"], after["arrow"]) == (0, 0)
    assert after["direct"] < before["direct"] + 32 * 2**20, (before, after)
    assert after["heap"] < before["heap"] + 200 * 2**20, (before, after)
