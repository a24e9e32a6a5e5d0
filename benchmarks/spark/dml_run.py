"""One kind of DML, OPTIMIZE or Z-order by one writer in its own Spark session; prints the seconds of each run and the peak memory
as JSON.

    python benchmarks/spark/dml_run.py "update 1 %" --writer pydelta --tables DIRECTORY --rows 8000000 --rounds 3

DIRECTORY is made by make_query_tables.py. Each run changes a copy of a table whose data files are links to the table's. The
writer `delta` is delta-spark; its jars are in the directory PYDELTA_PEER_JARS. The first run warms up and does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.session import session, timed

SOURCE_ROWS = 200_000


@dataclass(frozen=True)
class Operation:
    """table: which of make_query_tables' tables. vectors: whether the copy has deletion vectors switched on."""

    table: str
    vectors: bool
    run: Callable[[Any, SparkSession, int], None]


def delete(table: Any, spark: SparkSession, rows: int) -> None:
    table.delete("a < 10")


def update(table: Any, spark: SparkSession, rows: int) -> None:
    table.update("a < 10", {"x": "x + 1"})


def merge(table: Any, spark: SparkSession, rows: int) -> None:
    _merge(table, merge_source(spark, rows), "t.id = s.id")


def merge_one_partition(table: Any, spark: SparkSession, rows: int) -> None:
    source = merge_source(spark, rows).filter("part = 7")
    _merge(table, source, "t.part = s.part AND t.id = s.id")


def _merge(table: Any, source: DataFrame, condition: str) -> None:
    builder = table.alias("t").merge(source.alias("s"), condition)
    builder.whenMatchedUpdate(set={"x": "s.x"}).whenNotMatchedInsertAll().execute()


def merge_by_conditions(table: Any, spark: SparkSession, rows: int) -> None:
    """A tenth of the matching rows is deleted, about half is updated, and a third of the other rows is inserted."""
    builder = table.alias("t").merge(merge_source(spark, rows).alias("s"), "t.id = s.id")
    builder = builder.whenMatchedDelete("s.b % 10 = 0").whenMatchedUpdate("t.a % 2 = 0", {"x": "s.x"})
    builder.whenNotMatchedInsertAll("s.b % 3 = 0").execute()


def optimize(table: Any, spark: SparkSession, rows: int) -> None:
    assert table.optimize().executeCompaction().first()["metrics"]["numFilesAdded"] == 1


def z_order(*columns: str) -> Callable[[Any, SparkSession, int], None]:
    """The files have about 16 MB, so that queries can skip some."""

    def run(table: Any, spark: SparkSession, rows: int) -> None:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(16 << 20))
        assert table.optimize().executeZOrderBy(*columns).first()["metrics"]["numFilesAdded"] > 0

    return run


def merge_source(spark: SparkSession, rows: int) -> DataFrame:
    """SOURCE_ROWS rows (fewer for small tables). Every second row has an id of the table; these ids are spread evenly over it."""
    count = min(SOURCE_ROWS, rows // 4)
    half = count // 2
    return (
        spark.range(count)
        .selectExpr(
            f"CASE WHEN id < {half} THEN id * {rows // half} + 7 ELSE {rows} + id END AS id",
            "CAST(0 AS INT) AS a",
            "id AS b",
            "CAST(id AS DOUBLE) AS x",
            "0D AS y",
            "'kind-7' AS kind",
            "'new' AS name",
            "DATE '2024-01-01' AS day",
            "TIMESTAMP '2024-01-01 00:00:00' AS at",
            "CAST(1 AS DECIMAL(12,2)) AS price",
        )
        .selectExpr("*", "CAST(id % 100 AS INT) AS part")
    )


OPERATIONS = {
    "delete 1 %, deletion vectors": Operation("plain", True, delete),
    "delete 1 %, rewriting": Operation("plain", False, delete),
    "update 1 %": Operation("plain", True, update),
    "merge 200,000 rows, half match": Operation("plain", True, merge),
    "merge 200,000 rows, clauses with conditions": Operation("plain", True, merge_by_conditions),
    "merge into 1 of 100 partitions": Operation("hundred", True, merge_one_partition),
    "optimize 200 small files": Operation("small", True, optimize),
    "z-order by 2 columns": Operation("small", True, z_order("a", "x")),
    "z-order by 4 columns": Operation("small", True, z_order("a", "x", "name", "at")),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("operation", choices=list(OPERATIONS))
    parser.add_argument("--writer", choices=["pydelta", "delta"], required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    operation = OPERATIONS[arguments.operation]
    spark = session([arguments.writer])
    delta_table = table_class(arguments.writer)
    seconds: list[float] = []
    with MemoryWatch() as watch:
        for round_number in range(arguments.rounds + 1):
            copy = Path(tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.tables)) / "table"
            try:
                copy_table(arguments.tables / operation.table, copy, vectors=operation.vectors)
                table = delta_table.forPath(spark, str(copy))
                run_seconds = timed(lambda table=table: operation.run(table, spark, arguments.rows))
                row_checksum = checksum(spark, arguments.writer, copy)
            finally:
                shutil.rmtree(copy.parent)
            print(f"round {round_number}, {arguments.operation}, {arguments.writer}: {run_seconds:.2f} s", file=sys.stderr)
            if round_number:
                seconds.append(run_seconds)
    print(json.dumps({"seconds": seconds, "peak_mb": watch.peak_mb, "left": row_checksum, "spark": spark.version}))
    spark.stop()


def table_class(writer: str) -> Any:
    if writer == "delta":
        from delta.tables import DeltaTable
    else:
        from spark_plugin import DeltaTable  # type: ignore[assignment]
    return DeltaTable


def copy_table(source: Path, target: Path, *, vectors: bool) -> None:
    """A table that may be changed: its log is copied, and its data files are links."""
    shutil.copytree(source, target, copy_function=_link_or_copy)
    first = target / "_delta_log" / f"{0:020d}.json"
    new_value = str(vectors).lower()
    text = first.read_text()
    for old_value in ("true", "false"):
        text = text.replace(f'"delta.enableDeletionVectors":"{old_value}"', f'"delta.enableDeletionVectors":"{new_value}"')
    assert f'"delta.enableDeletionVectors":"{new_value}"' in text
    first.write_text(text)
    for checksum_file in (target / "_delta_log").glob("*.crc"):  # they have the properties from before
        checksum_file.unlink()


def _link_or_copy(source: str, target: str) -> None:
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
    else:
        shutil.copy(source, target)


def checksum(spark: SparkSession, writer: str, table: Path) -> list[str]:
    """Numbers that show whether both writers leave the same rows. x is summed as a decimal, exactly."""
    frame = spark.read.format(writer).load(str(table))
    row = frame.selectExpr("count(name)", "sum(id)", "sum(CAST(x AS DECIMAL(28,12)))", "sum(a)").first()
    return [str(value) for value in row]


# ---------------------------------------------------------------- memory


class MemoryWatch:
    """The peak memory of this process and all processes that it started, sampled ten times a second.

    peak_mb: Pss, which counts shared memory once. The JVM's heap counts as far as the JVM has used it.
    """

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.peak_mb = max(self.peak_mb, sum(_pss_kb(pid) for pid in _family(os.getpid())) / 1024)


def _family(root: int) -> set[int]:
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):  # the process has ended
                continue
    family, generation = set[int](), {root}
    while generation:
        family |= generation
        generation = {pid for pid, parent in parents.items() if parent in generation} - family
    return family


def _pss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
