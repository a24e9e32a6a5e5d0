"""The columnar and the native reader under settings of a whole application: they return the rows of Spark's own reader, and
release their memory.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.runs.sampling import sampled
from tests.support.spark.needs_spark import has_spark, skip_before_spark
from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

ROWS = 30_000

SETTINGS: dict[str, dict[str, str]] = {
    "pipelined": {"spark.python.udf.pipelined.enabled": "true"},
    "arrow_cache": {"spark.sql.cache.serializer": "org.apache.spark.sql.execution.columnar.ArrowCachedBatchSerializer"},
    "unix_sockets": {"spark.python.unix.domain.socket.enabled": "true"},
    "new_workers": {"spark.python.worker.reuse": "false"},
    "kryo": {"spark.serializer": "org.apache.spark.serializer.KryoSerializer", "spark.rdd.compress": "true"},
}
SINCE_SPARK_4_3 = {"pipelined", "arrow_cache"}

APPLICATION = """
import json, os, sys, time
from pyspark.sql import SparkSession, functions as F
from spark_plugin import pruning, register

builder = SparkSession.builder.master("local[2]")
for name, value in json.loads(sys.argv[2]).items():
    builder = builder.config(name, value)
spark = (
    builder.config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", str(not pyspark_4_2).lower())
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)
from tests.applications.columnar_udfs import next_one, shout

@F.udf("string", useArrow=False)
def pickled_shout(text):
    return None if text is None else text.upper()

@F.udf("string", useArrow=True)
def pipelined(number):
    return os.environ.get("SPARK_PIPELINED_UDF", "0")

def unchanged(batches):
    yield from batches

def cached(df):
    kept = df.filter("id % 3 = 0").cache()
    try:
        return [kept.agg(F.sum("id"), F.count("text")).collect(), kept.select(shout("text")).distinct().collect(), kept.collect()]
    finally:
        kept.unpersist(True)

QUERIES = {
    "plain": lambda df: df.collect(),
    "udf": lambda df: df.select(shout("text"), "id").collect(),
    "pickled_udf": lambda df: df.select(pickled_shout("text"), "id").collect(),
    "pandas_udf": lambda df: df.filter("text is not null").select(next_one("id"), "amount").collect(),
    "map_in_arrow": lambda df: df.mapInArrow(unchanged, df.schema).collect(),
    "map_in_pandas": lambda df: df.select("id").mapInPandas(unchanged, "id long").collect(),
    "udf_above_aggregate": lambda df: df.groupBy("text").agg(F.sum("id").alias("n")).select(shout("text"), "n").collect(),
    "join": lambda df: df.select("id", "text").join(df.select("id", "amount").filter("amount is null"), "id").collect(),
    "limit": lambda df: [len(df.filter("id > 5").limit(7).collect())],
    "limit_above_udf": lambda df: [len(df.select(shout("text")).limit(7).collect())],
    "cached": cached,
}

def answers(columnar, native):
    spark.conf.set("spark.pydelta.columnarReader.enabled", str(columnar).lower())
    spark.conf.set("spark.pydelta.nativeReader.enabled", str(native).lower())
    found = {}
    for name, query in QUERIES.items():
        answer = query(spark.read.format("pydelta").load(sys.argv[1]))
        found[name] = sorted(map(repr, answer)) if name != "cached" else [sorted(map(repr, part)) for part in answer]
    return found

by_rows = answers(False, False)
before = pruning.status(spark)["columns"].used
by_columns = answers(True, False)
after = pruning.status(spark)
by_spark = answers(True, True)
root = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
deadline = time.monotonic() + 10
while root.getAllocatedMemory() > 0 and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps({
    "different": [name for name in QUERIES if not by_rows[name] == by_columns[name] == by_spark[name]],
    "rows": len(by_columns["plain"]),
    "scans": [before, after["columns"].used],
    "error": after["columns"].last_error,
    "native": [after["parquet"].used, pruning.status(spark)["parquet"].used],
    "native_error": pruning.status(spark)["parquet"].last_error,
    "pipelined": sorted({row[0] for row in spark.range(2).select(pipelined("id")).collect()}),
    "arrow_bytes": root.getAllocatedMemory(),
}))
spark.stop()
"""


@pytest.mark.parametrize("name", sampled(SETTINGS, 5))
def test_application_settings_do_not_change_the_columnar_rows(name: str, tmp_path: Path) -> None:
    old = not has_spark("4.3")
    if name in SINCE_SPARK_4_3:
        skip_before_spark("4.3", f"the setting {name}")
    texts = [None, "", "é", "long " * 20]
    files = [
        pa.table(
            {
                "id": pa.array(range(start, start + ROWS), pa.int64()),
                "text": pa.array([texts[i % 4] for i in range(ROWS)], pa.string()),
                "amount": pa.array([None if i % 5 == 0 else i for i in range(ROWS)], pa.int64()),
            }
        )
        for start in (0, ROWS)
    ]
    script = f"pyspark_4_2 = {old}\n{APPLICATION}"
    result = run_script(script, make_table(tmp_path / "t", files), json.dumps(SETTINGS[name]))
    assert result["different"] == []
    assert result["rows"] == 2 * ROWS
    before, after = result["scans"]
    assert (before, result["error"], result["arrow_bytes"]) == (0, None, 0)
    assert after >= 11
    before, after = result["native"]
    assert (before, result["native_error"]) == (0, None) and after >= 7
    assert result["pipelined"] == ["1" if name == "pipelined" else "0"]
