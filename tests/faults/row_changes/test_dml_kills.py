"""DELETE, UPDATE, MERGE and append of a Spark driver, while its Python workers or the whole driver are killed. Afterwards the
table reads as before or as after, and the next operation works.

PYDELTA_FAULTS_KILLS is the number of kills of a driver, 4 by default, in each of the operations in turn. PYDELTA_SEED chooses
their moments.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from delta_py import DeltaTable, write_delta
from spark_plugin.tables import DeltaTable as SparkTable
from tests.support.faults.dml_kills import OPERATIONS, run_with_kills
from tests.support.runs.seeds import seed_of

KILLS = int(os.environ.get("PYDELTA_FAULTS_KILLS") or 4)
ROWS = 4000
CONFIGURATIONS = {"vectors": {"delta.enableDeletionVectors": "true"}, "rewriting": {"delta.enableDeletionVectors": "false"}}


# ---------------------------------------------------------------- workers


@F.udf(LongType())
def kills_the_workers_beside_it(id, old, last):  # no hints: Spark would assume another kind of function
    """At the last row of a task that gets most rows, kills all other Python workers of the same daemon, so also the one that
    writes the rows. (The daemon starts new ones on demand.)"""
    import os
    import signal

    if id == last:
        daemon = os.getppid()
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        parent = int(file.read().rpartition(")")[2].split()[1])
                except FileNotFoundError:  # it has ended already
                    continue
                if parent == daemon:
                    os.kill(int(name), signal.SIGKILL)
    return old + 1


def change(spark: SparkSession, path: str, operation: str, value: Column) -> None:
    """value: of the column x in the changed rows, which have an odd id."""
    table = SparkTable.forPath(spark, path)
    match operation:
        case "DELETE":
            table.delete((F.col("id") % 2 == 1) & (value > 0))
        case "UPDATE":
            table.update(F.col("id") % 2 == 1, {"x": value})
        case "MERGE":
            source = spark.range(0, 2 * ROWS, 1, 2).where("id % 2 = 1")
            merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
            merge.whenMatchedUpdate(set={"x": value}).whenNotMatchedInsert(values={"id": "s.id", "x": F.lit(1)}).execute()
        case "append":
            added(spark).withColumn("x", value).write.format("pydelta").mode("append").save(path)


def added(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS, 2 * ROWS, 1, 2).select("id", F.lit(0).alias("x"))


def expected(operation: str) -> list[tuple[int, int]]:
    rows = {id: 0 for id in range(ROWS)}
    match operation:
        case "DELETE":
            return [(id, 0) for id in rows if id % 2 == 0]
        case "UPDATE":
            return [(id, id % 2) for id in rows]
        case "MERGE":
            return sorted(({id: id % 2 for id in rows} | {id: 1 for id in range(ROWS + 1, 2 * ROWS, 2)}).items())
    return [*rows.items(), *((id, 1) for id in range(ROWS, 2 * ROWS))]


def state(path: Path) -> list[tuple[int, int]]:
    table = DeltaTable(str(path)).to_arrow()
    return sorted(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*") if f.is_file() and "_delta_log" not in f.parts}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_worker_keeps_table_unchanged_and_rerun_succeeds(
    spark: SparkSession, tmp_path: Path, operation: str, configuration: str
) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "x": pa.array([0] * ROWS, pa.int64())})
    write_delta(str(path), rows, configuration=CONFIGURATIONS[configuration], max_records_per_file=ROWS // 2)
    before, files_before = state(path), data_files(path)
    last = 2 * ROWS - 1 if operation == "append" else ROWS - 1
    id = F.col("t.id") if operation == "MERGE" else F.col("id")
    old = F.col("t.x") if operation == "MERGE" else F.col("x")
    with pytest.raises((PySparkException, Py4JJavaError)):  # Spark decides which of them
        change(spark, str(path), operation, kills_the_workers_beside_it(id, old, F.lit(last)))
    assert DeltaTable(str(path)).version == 0 and state(path) == before
    left_files_go(path, files_before)
    change(spark, str(path), operation, old + 1)
    assert DeltaTable(str(path)).version == 1 and state(path) == expected(operation)


def left_files_go(path: Path, files: set[str]) -> None:
    """Wait until the files of a killed worker are gone; cancelled tasks may still write for a moment."""
    deadline = time.monotonic() + 30
    while data_files(path) != files and time.monotonic() < deadline:
        time.sleep(0.1)
    assert data_files(path) == files


# ---------------------------------------------------------------- the driver


@pytest.mark.timeout(600 + 90 * KILLS)
def test_changes_of_a_killed_driver_are_done_once_or_not_at_all(tmp_path: Path) -> None:
    seed = seed_of("changes of a killed driver")
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_KILLS={KILLS}")
    print(run_with_kills(tmp_path, KILLS, random.Random(seed)))
