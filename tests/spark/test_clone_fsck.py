"""Deep clones, FSCK and the dry run of RESTORE from Spark: arguments, frames, jobs. The rest needs no session:
tests/unit/commands/test_deep_clone.py and test_fsck.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.exceptions import DataFileError, TableAlreadyExistsError
from spark_plugin.maintenance.fsck import FAULTS

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Three rows in two files."""
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "tue"]}), partition_by=["day"])
    return path


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    spark.sql(f"create database attic location '{tmp_path / 'attic'}'")
    yield
    spark.sql("drop database attic cascade")


def test_deep_clones_have_files_of_their_own(spark: SparkSession, path: str, database: None, tmp_path: Path) -> None:
    table, target = DeltaTable.forPath(spark, path), str(tmp_path / "deep")
    clone = table.clone(target, properties={"team": "b"})
    assert (clone.toDF().count(), clone.detail().first()["properties"]["team"]) == (3, "b")
    write_delta(path, pa.table({"id": [4, 5], "day": ["wed", "wed"]}), mode="append")
    again = table.clone(target, replace=True)
    assert again.toDF().count() == 5
    metrics = again.history(1).first()["operationMetrics"]
    assert int(metrics["numCopiedFiles"]) < int(metrics["sourceNumOfFiles"])
    assert table.cloneAtVersion(0, "attic.deep").toDF().count() == spark.table("attic.deep").count() == 3
    with pytest.raises(TableAlreadyExistsError):
        table.clone(target)
    shutil.copytree(path, tmp_path / "broken")
    next((tmp_path / "broken").glob("day=mon/*.parquet")).unlink()
    with pytest.raises(DataFileError, match="is missing, and cannot be cloned"):
        DeltaTable.forPath(spark, str(tmp_path / "broken")).clone(str(tmp_path / "none"))
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "none"))


def test_fsck_and_the_dry_run_of_restore(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert table.fsck().collect() == [] and table.fsck().schema == FAULTS
    table.delete("true")
    gone = PlainTable(path, version=0).files()["path"].to_pylist()[0]
    (Path(path) / gone).unlink()
    for past in (table.restoreToVersion(0, dryRun=True), table.restoreToTimestamp("2999-01-01", dryRun=True)):
        assert past.schema == FAULTS
    assert [row["path"] for row in table.restoreToVersion(0, dryRun=True).collect()] == [gone]
    table.fsck(dryRun=False)
    assert PlainTable(path).version == 1
    with pytest.raises(ValueError, match="allowDataLoss needs to be a boolean"):
        table.fsck(allowDataLoss="yes")  # type: ignore[arg-type]


def test_fsck_takes_missing_files_out_when_rows_may_be_lost(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    files = PlainTable(path).files().to_pylist()
    (Path(path) / files[0]["path"]).unlink()
    with pytest.raises(DataFileError, match="DELTA_FILE_NOT_FOUND_DETAILED"):
        table.fsck(dryRun=False)
    (row,) = table.fsck(dryRun=False, allowDataLoss=True).collect()
    assert (row["kind"], row["path"], row["can_repair"]) == ("dataFile", files[0]["path"], True)
    assert table.toDF().count() == 3 - row["rows_lost"]
    assert table.history(1).first()["operation"] == "FSCK"
