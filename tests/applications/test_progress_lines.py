"""Spark commands on a terminal: one line each from begin to end, and nothing of Spark's own bars in between."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import write_delta
from tests.support.documents.terminals import counts_in, screen_of, shown_lines, written_to_terminal
from tests.support.spark.connect_port import connect_port

ROOT = Path(__file__).parents[2]
PARTITIONS = 12
COMMANDS = """
import sys
from pyspark.sql import SparkSession
from delta_py import progress
from spark_plugin import DeltaTable, register

progress._SHOWN_AFTER_SECONDS = 0.2  # the table is small
builder = SparkSession.builder.{master}.config("spark.sql.shuffle.partitions", "4")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
register(spark)
{quiet}
spark.range(10).count()
for command in (
    lambda table: table.optimize().executeCompaction(),
    lambda table: table.optimize().executeZOrderBy("id"),
    lambda table: table.alias("t").merge(spark.range(50).repartition(8).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={{"name": "'x'"}}).whenNotMatchedInsert(values={{"id": "s.id"}}).execute(),
):
    print("BEGIN", file=sys.stderr)
    command(DeltaTable.forPath(spark, {path!r}))
spark.stop()
"""
CLASSIC = {
    "master": 'master("local[2]").config("spark.ui.showConsoleProgress", "true")',
    "quiet": 'spark.sparkContext.setLogLevel("OFF")',
}
# A server on this machine writes to the terminal itself.
REMOTE = 'remote("local[2]").config("spark.connect.progress.reportInterval", "100ms").config("spark.log.level", "ERROR")'
CONNECT = {"master": REMOTE + '.config("spark.ui.showConsoleProgress", "false")', "quiet": ""}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two files in each of many partitions."""
    path = str(tmp_path / "table")
    for first in (0, 1_000):
        ids = pa.array(range(first, first + 600), pa.int64())
        parts = pa.array([number % PARTITIONS for number in range(600)])
        write_delta(path, pa.table({"id": ids, "name": ["n"] * 600, "part": parts}), mode="append", partition_by=["part"])
    return path


@pytest.mark.parametrize(("session", "columns"), [(CLASSIC, 80), (CONNECT, 200)], ids=["classic", "connect"])
def test_commands_of_spark_show_one_line_each(table: str, session: dict[str, str], columns: int) -> None:
    code = COMMANDS.format(path=table, **session)
    with connect_port() if session is CONNECT else nullcontext():
        text = written_to_terminal(code, columns, cwd=ROOT, timeout=300, PYTHONPATH=str(ROOT))
    _, *of_commands = text.split("BEGIN\r\n")
    assert len(of_commands) == 3
    for written, name, unit in zip(of_commands, ("OPTIMIZE", "OPTIMIZE", "MERGE"), ("KiB", "KiB", "tasks"), strict=True):
        lines = [line for line in screen_of(written) if line.strip() and not line.startswith(("WARN", "Using"))]
        assert len(lines) == 1 and lines[0].startswith(f"{name} ━"), written
        counts = counts_in(written, unit)
        done = [done for done, _ in counts]
        assert done == sorted(done) and counts[-1][0] == counts[-1][1] > 0
        assert len(set(done)) > 2, "it shows nothing between the begin and the end"
        assert max(map(len, shown_lines(written))) < columns
        assert "[Stage" not in written
