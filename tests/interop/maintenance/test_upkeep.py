"""REORG, FSCK and deep clones, compared with delta-spark: it reads the same afterwards, and its own REORG reports and does the
same. Logs whose older part was deleted are read by both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable
from tests.support.oracles.rows import difference

MAPPED = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def append(spark: SparkSession, path: str, start: int, end: int, *columns: str, **options: str) -> None:
    frame = spark.range(start, end).selectExpr(*(columns or ("id", "id % 2 AS part", "'x' AS name"))).coalesce(1)
    frame.write.format("delta").partitionBy("part").mode("append").options(**options).save(path)


def make(spark: SparkSession, path: str) -> None:
    """Three files in each of two partitions, by delta-spark; a column is dropped, and vectors delete rows of one file."""
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
    """The history's entry for the last commit: operation, parameters, names of metrics."""
    entry = DeltaSparkTable.forPath(spark, path).history(1).first()
    return entry["operation"], dict(entry["operationParameters"]), set(entry["operationMetrics"])


def test_purge_does_and_says_what_delta_sparks_does(spark: SparkSession, tmp_path: Path) -> None:
    reports, results = [], []
    for kind in ("theirs", "ours"):
        path = str(tmp_path / kind)
        make(spark, path)
        before = rows(spark, "delta", path)
        if kind == "theirs":
            spark.sql(f"REORG TABLE delta.`{path}` WHERE part = 1 APPLY (PURGE)")
            reports.append(reorganised(spark, path))
            row = spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)").first()
        else:
            DeltaTable.forPath(spark, path).reorg().where("part = 1").executePurge()
            reports.append(reorganised(spark, path))
            row = DeltaTable.forPath(spark, path).reorg().executePurge().first()
        results.append((row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]))
        reports.append(reorganised(spark, path))
        assert difference(before, rows(spark, "delta", path)) is None
        assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None
        live = PlainTable(path).files().to_pylist()
        assert [file["deletion_vector"] for file in live] == [None] * len(live)
        assert sum(pq.read_metadata(Path(path) / file["path"]).num_rows for file in live) == before.num_rows
    theirs, ours = reports[:2], reports[2:]
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
    repairs = table.fsck(dryRun=False, allowDataLoss=True).collect()
    assert {row["kind"] for row in repairs} >= {"dataFile", "checkpoint"}
    assert table.fsck().collect() == []
    assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None
    append(spark, path, 2000, 2001)
    assert difference(plain(spark, "delta", path), plain(spark, "pydelta", path)) is None


# ---------------------------------------------------------------- logs that begin after a checkpoint


def cleaned(spark: SparkSession, path: str, properties: str) -> dict[int, datetime]:
    """Versions 0 to 5 by delta-spark, with a checkpoint of version 3, and only the commits 4 and 5. Returns their times."""
    spark.sql(f"CREATE TABLE delta.`{path}` (i LONG) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '3', {properties})")
    for number in range(1, 6):
        spark.range(number, number + 1).selectExpr("id AS i").write.format("delta").mode("append").save(path)
        time.sleep(0.01)
    for version in range(4):
        for file in (Path(path) / "_delta_log").glob(f"*{version:020d}.*"):
            if ".checkpoint" not in file.name:
                file.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    return {row["version"]: row["timestamp"] for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()}


def outcome(read: Callable[[], list[Any]]) -> Any:
    """The result, or the condition of its error. Spark has the condition of a stream in the text."""
    try:
        return sorted(read())
    except Exception as error:
        (condition, *_) = re.findall(r"\[(DELTA_\w+)\]", str(error)) or ["no condition"]
        return condition


@pytest.mark.parametrize("stamps", ["false", "true"], ids=["file times", "in-commit timestamps"])
def test_log_lacking_checkpoint_commit_reads_as_in_delta_spark(spark: SparkSession, tmp_path: Path, stamps: str) -> None:
    path = str(tmp_path / "t")
    times = cleaned(spark, path, f"'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = '{stamps}'")
    assert [*times] == [5, 4]
    history = spark.sql(f"DESCRIBE HISTORY pydelta.`{path}`").collect()
    assert {row["version"]: row["timestamp"] for row in history} == times

    def read(source: str, **options: Any) -> list[Any]:
        return [tuple(row) for row in spark.read.format(source).options(**options).load(path).collect()]

    def streamed(source: str, **options: Any) -> list[Any]:
        frame, name = spark.readStream.format(source).options(**options).load(path), f"streamed_{source}"
        query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        query.awaitTermination()
        return [tuple(row) for row in spark.table(name).collect()]

    tick = timedelta(milliseconds=1)
    around = [times[4] - timedelta(days=1), times[4] - tick, times[4], times[4] + tick, times[5], times[5] + timedelta(days=1)]
    for at in around:
        text = at.strftime("%Y-%m-%d %H:%M:%S.%f")
        for ask in (
            partial(read, timestampAsOf=text),
            partial(read, readChangeFeed="true", startingTimestamp=text),
            partial(streamed, startingTimestamp=text),
        ):
            assert outcome(partial(ask, "pydelta")) == outcome(partial(ask, "delta")), (ask, at)
    for version in (2, 4, 5):
        expected = "DELTA_VERSION_NOT_FOUND" if version == 2 else [(number,) for number in range(1, version + 1)]
        assert [outcome(partial(read, source, versionAsOf=version)) for source in ("pydelta", "delta")] == [expected] * 2
    assert outcome(partial(read, "pydelta", versionAsOf=3)) == "DELTA_VERSION_NOT_FOUND"
    assert outcome(partial(read, "delta", versionAsOf=3)) == "no condition", "it offers the version, and has no commit of it"
