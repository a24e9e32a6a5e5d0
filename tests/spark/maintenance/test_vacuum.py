"""VACUUM from Spark: arguments, settings and frames. The rest needs no session: tests/unit/vacuum/test_vacuum.py."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.protocol.paths import LEASE_DIRECTORY
from spark_plugin import DeltaTable
from spark_plugin.maintenance.vacuum_job import FOUND, KEEP_CLONES, LITE, LOGGING, RESTORED, RETENTION_CHECK
from spark_plugin.options.catalog_session_settings import READ_LEASE
from tests.support.spark.settings import restore

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of one file, another file that was removed, and a stray one that is a year old."""
    path = str(tmp_path / "table")
    write_delta(path, pa.table({"id": [1]}))
    write_delta(path, pa.table({"id": [2]}), mode="overwrite")
    stray = Path(path) / "stray file"
    stray.write_bytes(b"123")
    year_ago = time.time() - 365 * 86_400
    os.utime(stray, (year_ago, year_ago))
    return path


@pytest.fixture
def unchecked(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in (RETENTION_CHECK, LOGGING, LITE, READ_LEASE, KEEP_CLONES)}
    spark.conf.set(RETENTION_CHECK, "false")
    yield
    restore(spark, before)


def files(path: str) -> set[str]:
    return {file.name for file in Path(path).iterdir() if file.is_file()}


def test_dry_run_says_what_would_go_and_why(spark: SparkSession, path: str) -> None:
    frame = DeltaTable.forPath(spark, path).vacuum(dryRun=True)
    assert frame.schema == FOUND
    (row,) = frame.collect()
    assert (row["path"], row["size"]) == (f"file:{path}/stray file", 3)
    assert "no version" in row["reason"] and row["modification_time"].year >= 2024
    assert (len(files(path)), PlainTable(path).version) == (3, 1)


def test_vacuum_deletes_and_gives_an_empty_frame(spark: SparkSession, path: str) -> None:
    frame = DeltaTable.forPath(spark, path).vacuum()
    assert (frame.columns, frame.collect()) == ([], [])
    assert "stray file" not in files(path) and len(files(path)) == 2
    assert [row["operation"] for row in DeltaTable.forPath(spark, path).history(2).collect()] == ["VACUUM END", "VACUUM START"]
    assert spark.read.format("pydelta").option("versionAsOf", 0).load(path).count() == 1


@pytest.mark.usefixtures("unchecked")
def test_vacuum_keeps_clone_files_unless_call_or_session_forbids(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    copy = table.cloneAtVersion(0, f"{path}.copy", isShallow=True)
    assert [row["size"] for row in table.vacuum(0, dryRun=True).collect()] == [3]
    (row,) = table.vacuum(0, dryRun=True, keepClones=False).filter("size <> 3").collect()
    assert f"the shallow clone at '{path}.copy' reads it" in row["reason"]
    table.vacuum(0)
    assert copy.toDF().count() == 1
    spark.conf.set(KEEP_CLONES, "false")
    assert table.vacuum(0, dryRun=True, keepClones=True).count() == 0
    assert table.vacuum(0, dryRun=True).count() == 1
    with pytest.raises(ValueError, match="keepClones"):
        table.vacuum(keepClones="no")


def test_quarantined_files_come_back(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.vacuum(quarantine=True, quarantineHours=1)
    assert "stray file" not in files(path)
    dry = table.restoreQuarantined(dryRun=True)
    assert dry.schema == RESTORED
    (row,) = table.restoreQuarantined().collect()
    assert (row["path"], row["size"], row["restored"]) == (f"file:{path}/stray file", 3, True)
    assert dry.first()["quarantined"] == row["quarantined"] and row["quarantined"].year >= 2024
    assert "stray file" in files(path)
    with pytest.raises(ValueError, match="quarantine"):
        table.vacuum(quarantine="yes")  # type: ignore[arg-type]


def test_short_retention_needs_the_check_off(spark: SparkSession, path: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        DeltaTable.forPath(spark, path).vacuum(1)
    assert raised.value.getCondition() == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    assert (len(files(path)), PlainTable(path).version) == (3, 1)


def test_no_retention_with_the_check_off(spark: SparkSession, path: str, unchecked: None) -> None:
    spark.conf.set(LOGGING, "false")
    time.sleep(0.01)
    DeltaTable.forPath(spark, path).vacuum(0)
    assert files(path) == set(PlainTable(path).files()["path"].to_pylist())
    assert PlainTable(path).version == 1


def test_kept_version_stays_readable(spark: SparkSession, path: str, unchecked: None) -> None:
    time.sleep(0.01)
    DeltaTable.forPath(spark, path).vacuum(0, keepVersions=[0])
    assert spark.read.format("pydelta").option("versionAsOf", 0).load(path).collect()[0]["id"] == 1


def test_lite_by_argument_and_by_setting(spark: SparkSession, path: str, unchecked: None) -> None:
    table = DeltaTable.forPath(spark, path)
    time.sleep(0.01)
    assert [row["reason"] for row in table.vacuum(0, dryRun=True, lite=True).collect()] == ["it was removed"]
    spark.conf.set(LITE, "true")
    table.vacuum(0)
    assert files(path) == {*PlainTable(path).files()["path"].to_pylist(), "stray file"}
    table.vacuum(0, lite=False)
    assert files(path) == set(PlainTable(path).files()["path"].to_pylist())


def test_frame_of_files_in_place_of_a_listing(spark: SparkSession, path: str, unchecked: None) -> None:
    names = ["path", "length", "isDir", "modificationTime"]
    listed = spark.createDataFrame([(f"file:{path}/stray file", 3, False, 5), (f"file:{path}", 0, True, 5)], names)
    table = DeltaTable.forPath(spark, path)
    assert [row["path"] for row in table.vacuum(dryRun=True, inventory=listed).collect()] == [f"file:{path}/stray file"]
    table.vacuum(inventory=listed)
    assert "stray file" not in files(path) and len(files(path)) == 2
    with pytest.raises(AnalysisException) as raised:
        table.vacuum(inventory=listed.drop("isDir"))
    assert raised.value.getCondition() == "DELTA_INVALID_INVENTORY_SCHEMA"


def test_read_with_a_lease_goes_on_when_its_files_would_go(spark: SparkSession, path: str, unchecked: None) -> None:
    frame = spark.read.format("pydelta").option("versionAsOf", 0).option("readLease", "10 minutes").load(path)
    assert frame.collect()[0]["id"] == 1
    assert len(os.listdir(f"{path}/{LEASE_DIRECTORY}")) == 1
    DeltaTable.forPath(spark, path).vacuum(0)
    assert frame.collect()[0]["id"] == 1
    assert "stray file" not in files(path)


def test_session_may_ask_for_leases(spark: SparkSession, path: str, unchecked: None) -> None:
    spark.conf.set(READ_LEASE, "true")
    assert spark.read.format("pydelta").load(path).filter("id > 0").collect()[0]["id"] == 2
    assert len(os.listdir(f"{path}/{LEASE_DIRECTORY}")) >= 1
