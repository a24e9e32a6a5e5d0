"""delta_py, pydelta in Spark, delta-spark and deltalake write to one local table at the same time, each in a separate process."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.log.history import history
from delta_py.storage.local import LocalStore
from tests.support.oracles.rows import difference
from tests.support.peers.delta_spark import make_linking_log_store
from tests.support.peers.engine_writers import ENGINES, SCHEMA, commit_count, first_rows, last_rows, run_writers

KINDS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
}
# A checkpoint's Parquet writer shows which engine wrote it.
MAKERS = {"parquet-cpp-arrow": "delta_py", "parquet-mr": "delta-spark", "parquet-rs": "deltalake"}


@pytest.mark.parametrize("kind", KINDS)
def test_writers_of_all_engines_at_once_lose_and_double_no_row(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_delta(str(table), first_rows(), configuration={"delta.checkpointInterval": "3", **KINDS[kind]})
    conflicts = run_writers(tmp_path / "writers", str(table), make_linking_log_store(tmp_path))
    newest = len(ENGINES) * commit_count()
    assert history(LocalStore(str(table)))["version"].to_pylist() == list(range(newest, -1, -1)), conflicts
    check_rows(spark, table, f"conflicts: {conflicts}")
    if "feed" in kind:
        check_feed(spark, table, newest)
    checkpoints = newest_checkpoint_of_each(table)
    # It is chance whose commit needs a checkpoint. That two of three engines write none has a probability below 10^-5.
    assert len(checkpoints) >= 2, checkpoints
    for maker, version in checkpoints.items():
        check_rows(spark, with_one_checkpoint(table, tmp_path / maker, version), f"checkpoint of {maker}, {version}")


def check_rows(spark: SparkSession, table: Path, what: str) -> None:
    """All engines read what all writers wrote."""
    DeltaTable(str(table)).snapshot.check_integrity()
    for reader, read in READERS.items():
        assert difference(last_rows(), read(spark, str(table))) is None, f"{reader}, {what}"


def read_by_deltalake(spark: SparkSession, path: str) -> pa.Table:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select id, engine, n from t")
    return pa.table(query.read_all()).cast(SCHEMA)


READERS: Mapping[str, Callable[[SparkSession, str], pa.Table]] = {
    "delta_py": lambda spark, path: DeltaTable(path).to_arrow(),
    "pydelta": lambda spark, path: spark.read.format("pydelta").load(path).toArrow(),
    "delta-spark": lambda spark, path: spark.read.format("delta").load(path).toArrow(),
    "deltalake": read_by_deltalake,
}


def check_feed(spark: SparkSession, table: Path, newest: int) -> None:
    """All readers read the same changes of all writers, and these changes lead to the current rows."""
    options: dict[str, Any] = {"readChangeFeed": "true", "startingVersion": 0, "endingVersion": newest}
    names = [*SCHEMA.names, "_change_type", "_commit_version"]
    theirs = spark.read.format("delta").options(**options).load(str(table)).toArrow().select(names)
    through_spark = spark.read.format("pydelta").options(**options).load(str(table)).toArrow().select(names)
    plain = DeltaTable(str(table)).changes(starting_version=0, ending_version=newest).read_all().select(names)
    assert difference(theirs, through_spark) is None
    assert difference(theirs, plain) is None
    counts: Counter[tuple[object, ...]] = Counter()
    for change in plain.to_pylist():
        row = tuple(change[name] for name in SCHEMA.names)
        counts[row] += 1 if change["_change_type"] in ("insert", "update_postimage") else -1
    expected = Counter(tuple(row.values()) for row in last_rows().to_pylist())
    assert {row: count for row, count in counts.items() if count} == expected


def newest_checkpoint_of_each(table: Path) -> dict[str, int]:
    version_by_maker = {}
    for file in sorted((table / "_delta_log").glob("*.checkpoint.parquet")):
        writer = pq.read_metadata(file).created_by.split(" ")[0]
        version_by_maker[MAKERS[writer]] = int(file.name[:20])
    return version_by_maker


def with_one_checkpoint(table: Path, copy: Path, version: int) -> Path:
    """A copy that can only be read through this checkpoint."""
    shutil.copytree(table, copy)
    log = copy / "_delta_log"
    (log / "_last_checkpoint").unlink()
    for file in log.glob("[0-9]*"):
        number = int(file.name[:20])
        if number < version or ("checkpoint" in file.name and number != version):
            file.unlink()
    return copy
