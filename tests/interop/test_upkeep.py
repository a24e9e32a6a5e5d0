"""REORG, FSCK and deep clones beside delta-spark: it reads the same afterwards, and its own REORG says and does the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable
from tests.support.rows import difference

MAPPED = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def append(spark: SparkSession, path: str, start: int, end: int, *columns: str, **options: str) -> None:
    frame = spark.range(start, end).selectExpr(*(columns or ("id", "id % 2 AS part", "'x' AS name"))).coalesce(1)
    frame.write.format("delta").partitionBy("part").mode("append").options(**options).save(path)


def make(spark: SparkSession, path: str) -> None:
    """Three files in each of two partitions, by delta-spark; a column is dropped, and rows are deleted by vectors of one file."""
    for start in range(0, 60, 20):
        columns = ("id", "nullif(id % 2, 0) AS part", "concat('n', id) AS name", "id AS gone")
        append(spark, path, start, start + 20, *columns, **(MAPPED if start == 0 else {}))
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN gone")
    append(spark, path, 60, 80)
    DeltaSparkTable.forPath(spark, path).delete("id % 7 = 3")


def rows(spark: SparkSession, source: str, path: str) -> Any:
    frame = spark.read.format(source).load(path)
    return frame.selectExpr("id", "part", "name", "_metadata.row_id", "_metadata.row_commit_version").toArrow()


def plain(spark: SparkSession, source: str, path: str) -> Any:
    return spark.read.format(source).load(path).toArrow()


def reorganised(spark: SparkSession, path: str) -> tuple[str, dict[str, str], set[str]]:
    """What the history says of the last commit: operation, parameters, names of metrics."""
    entry = DeltaSparkTable.forPath(spark, path).history(1).first()
    return entry["operation"], dict(entry["operationParameters"]), set(entry["operationMetrics"])


def test_purge_does_and_says_what_delta_sparks_does(spark: SparkSession, tmp_path: Path) -> None:
    said, results = [], []
    for kind in ("theirs", "ours"):
        path = str(tmp_path / kind)
        make(spark, path)
        before = rows(spark, "delta", path)
        if kind == "theirs":
            spark.sql(f"REORG TABLE delta.`{path}` WHERE part = 1 APPLY (PURGE)")
            said.append(reorganised(spark, path))
            row = spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)").first()
        else:
            DeltaTable.forPath(spark, path).reorg().where("part = 1").executePurge()
            said.append(reorganised(spark, path))
            row = DeltaTable.forPath(spark, path).reorg().executePurge().first()
        results.append((row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]))
        said.append(reorganised(spark, path))
        assert difference(before, rows(spark, "delta", path)) is None
        assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None
        live = PlainTable(path).files().to_pylist()
        assert [file["deletion_vector"] for file in live] == [None] * len(live)
        assert sum(pq.read_metadata(Path(path) / file["path"]).num_rows for file in live) == before.num_rows
    theirs, ours = said[:2], said[2:]
    assert [(operation, set(parameters)) for operation, parameters, _ in ours] == [("REORG", {"predicate", "applyPurge"})] * 2
    assert [entry[0] for entry in theirs] == ["REORG", "REORG"]
    assert [set(entry[1]) for entry in theirs] == [set(entry[1]) for entry in ours]
    assert [entry[1]["applyPurge"] for entry in theirs] == [entry[1]["applyPurge"] for entry in ours]
    assert [entry[1]["predicate"] for entry in theirs][1] == [entry[1]["predicate"] for entry in ours][1]
    assert [entry[2] for entry in theirs] == [entry[2] for entry in ours]
    assert results[0] == results[1]
    path = str(tmp_path / "ours")
    assert spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)").first()["metrics"]["numFilesRemoved"] == 0


def test_delta_spark_reads_and_writes_a_deep_clone(spark: SparkSession, tmp_path: Path) -> None:
    path, target = str(tmp_path / "t"), str(tmp_path / "clone")
    make(spark, path)
    table = DeltaTable.forPath(spark, path)
    table.clone(target)
    assert difference(rows(spark, "delta", path), rows(spark, "delta", target)) is None
    DeltaSparkTable.forPath(spark, target).delete("id < 10")
    DeltaSparkTable.forPath(spark, target).optimize().executeCompaction()
    DeltaSparkTable.forPath(spark, path).update("id = 20", {"name": "'changed'"})
    table.clone(target, replace=True)
    assert difference(rows(spark, "delta", path), rows(spark, "delta", target)) is None
    assert difference(rows(spark, "pydelta", path), rows(spark, "pydelta", target)) is None
    table.cloneAtVersion(1, target, replace=True)
    assert spark.read.format("delta").load(target).count() == 40
    shallow = str(tmp_path / "shallow")
    spark.sql(f"CREATE TABLE delta.`{shallow}` SHALLOW CLONE delta.`{path}`")
    DeltaTable.forPath(spark, shallow).clone(target, replace=True)
    assert difference(plain(spark, "delta", path), plain(spark, "delta", target)) is None
    assert difference(plain(spark, "delta", target), plain(spark, "pydelta", target)) is None


def test_delta_spark_reads_a_table_that_fsck_repaired(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(spark, path)
    for number in range(6):
        append(spark, path, 1000 + number, 1001 + number)
    table = DeltaTable.forPath(spark, path)
    assert table.fsck().collect() == [], "of a table that delta-spark wrote"
    checkpoint = Path(path) / "_delta_log" / f"{10:020d}.checkpoint.parquet"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-40])
    (Path(path) / PlainTable(path).files()["path"].to_pylist()[0]).unlink()
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND_DETAILED"):
        table.fsck(dryRun=False)
    found = table.fsck(dryRun=False, allowDataLoss=True).collect()
    assert {row["kind"] for row in found} >= {"dataFile", "checkpoint"}
    assert table.fsck().collect() == []
    assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None
    append(spark, path, 2000, 2001)
    assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None
