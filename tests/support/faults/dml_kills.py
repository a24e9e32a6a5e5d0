"""A Spark driver that changes one table by DELETE, UPDATE, MERGE and append in turn. It is killed during each of them.

The driver records each step when it begins and when it is done. After a kill the table must be as after the last completed step,
or as after the one that was begun; the next driver continues from there.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from tests.support.faults.stream_kills import ROOT, Driver

OPERATIONS = ("DELETE", "UPDATE", "MERGE", "append")
_FIRST_ROWS = 200
_STEP_ROWS = 20
_SECONDS = 240

# A step depends only on its number, so a repetition does the same: see rows_after.
_DRIVER = """
import sys
from pyspark.sql import SparkSession, functions as F
from spark_plugin import register
from spark_plugin.tables import DeltaTable

path, step, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = (
    SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)
# A function of Python makes the jobs a little longer, and has a worker of its own. Spark asks it for rows of no match too.
one_more = F.udf("long")(lambda x: None if x is None else x + 1)
while True:
    table, chosen = DeltaTable.forPath(spark, path), step % 7
    first = 200 + step * rows
    print("begin", step, flush=True)
    if step % 4 == 0:
        table.delete((F.col("id") % 7 == chosen) & (one_more("x") > 0) & (F.col("id") % 3 == 0))
    elif step % 4 == 1:
        table.update(F.col("id") % 7 == chosen, {"x": one_more("x")})
    elif step % 4 == 2:
        source = spark.range(0, first + rows, 1, 2).where(f"id % 7 = {chosen} or id >= {first}")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": one_more("t.x")})
        merge.whenNotMatchedInsert("s.id >= " + str(first), values={"id": "s.id", "x": F.lit(0)}).execute()
    else:
        frame = spark.range(first, first + rows, 1, 2).select("id", (one_more(F.lit(-1))).alias("x"))
        frame.write.format("pydelta").mode("append").save(path)
    print("done", step, flush=True)
    step += 1
"""


class _ChangingDriver(Driver):
    """A driver in a separate session of processes, from one step on."""

    def __init__(self, root: Path, step: int) -> None:
        self._output = root / f"driver-{time.time_ns()}.log"
        command = [sys.executable, "-c", _DRIVER, str(root / "t"), str(step), str(_STEP_ROWS)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )


def rows_after(step: int, rows: dict[int, int]) -> dict[int, int]:
    """The table (x by id) after a step."""
    chosen, first = step % 7, _FIRST_ROWS + step * _STEP_ROWS
    match OPERATIONS[step % 4]:
        case "DELETE":
            return {id: x for id, x in rows.items() if id % 7 != chosen or id % 3}
        case "UPDATE":
            return {id: x + (id % 7 == chosen) for id, x in rows.items()}
        case "MERGE":
            changed = {id: x + (id % 7 == chosen) for id, x in rows.items()}
            return changed | {id: 0 for id in range(first, first + _STEP_ROWS)}
    return rows | {id: 0 for id in range(first, first + _STEP_ROWS)}


def run_with_kills(root: Path, kills: int, chosen: random.Random) -> str:
    """A summary in one line. Raises AssertionError if the table is neither as before the begun step nor as after it."""
    rows = {id: 0 for id in range(_FIRST_ROWS)}
    table = pa.table({"id": pa.array(rows, pa.int64()), "x": pa.array(rows.values(), pa.int64())})
    write_delta(str(root / "t"), table, configuration={"delta.enableDeletionVectors": "true"}, max_records_per_file=50)
    step, seen = 0, Counter[str]()
    for number in range(kills):
        operation = OPERATIONS[number % len(OPERATIONS)]
        begun = _killed_in(root, step, operation, chosen)
        while step < begun:
            rows, step = rows_after(step, rows), step + 1
        current_rows = _rows(root)
        is_committed = current_rows != rows
        assert current_rows == (rows_after(step, rows) if is_committed else rows), (
            f"{operation}, step {step}: {_differences(current_rows, rows)}"
        )
        assert DeltaTable(str(root / "t")).version == step + is_committed
        seen[f"{operation} {'done' if is_committed else 'not done'}"] += 1
        if is_committed:
            rows, step = current_rows, step + 1
    return json.dumps({"steps": step, **seen})


def _killed_in(root: Path, step: int, operation: str, chosen: random.Random) -> int:
    """The step in which a driver was killed that began with `step`: the first round of operations only warms it up."""
    driver = _ChangingDriver(root, step)
    try:
        target_step = next(n for n in range(step + 4, step + 8) if OPERATIONS[n % 4] == operation)
        driver.wait_for(f"begin {target_step}")
        time.sleep(chosen.uniform(0, 1))
        assert driver.process.poll() is None, driver.output[-5000:]
        (driver.kill if chosen.random() < 0.5 else driver.kill_alone)()
        _wait_for_its_end(driver)
    finally:
        driver.kill()
    lines = driver.output.splitlines()
    return max(int(line.split()[1]) + (line.startswith("done")) for line in lines if line.startswith(("begin ", "done ")))


def _wait_for_its_end(driver: Driver) -> None:
    """Workers that outlive their driver may complete their work."""
    deadline = time.monotonic() + _SECONDS
    while driver.processes() and time.monotonic() < deadline:
        time.sleep(0.1)


def _rows(root: Path) -> dict[int, int]:
    table = DeltaTable(str(root / "t")).to_arrow()
    ids = table["id"].to_pylist()
    assert len(ids) == len(set(ids)), "a row is there twice"
    return dict(zip(ids, table["x"].to_pylist(), strict=True))


def _differences(current_rows: dict[int, int], rows: dict[int, int]) -> str:
    return f"found and before differ in {sorted(set(current_rows.items()) ^ set(rows.items()))[:20]}"
