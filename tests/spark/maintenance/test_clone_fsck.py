"""Deep clones, clones of Parquet files, FSCK and the dry run of RESTORE from Spark: arguments, frames, jobs. The rest needs no
session: tests/unit/copies/test_deep_clone.py, test_clone_parquet.py and test_fsck.py.
"""

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
from spark_plugin.exceptions import (
    DataFileError,
    InvalidOptionError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from spark_plugin.maintenance.fsck_job import FAULTS
from tests.support.tables.flipped_bits import chunk_places, flipped

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
    second_clone = table.clone(target, replace=True)
    assert second_clone.toDF().count() == 5
    metrics = second_clone.history(1).first()["operationMetrics"]
    assert int(metrics["numCopiedFiles"]) < int(metrics["sourceNumOfFiles"])
    assert table.cloneAtVersion(0, "attic.deep").toDF().count() == spark.table("attic.deep").count() == 3
    with pytest.raises(TableAlreadyExistsError):
        table.clone(target)
    shutil.copytree(path, tmp_path / "broken")
    next((tmp_path / "broken").glob("day=mon/*.parquet")).unlink()
    with pytest.raises(DataFileError, match="is missing, and cannot be cloned"):
        DeltaTable.forPath(spark, str(tmp_path / "broken")).clone(str(tmp_path / "none"))
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "none"))


def test_parquet_files_are_cloned_by_path_and_by_name(spark: SparkSession, database: None, tmp_path: Path) -> None:
    """Only the parts of tasks, of the catalog and of the forms of the statement."""
    files, clone = str(tmp_path / "files"), f"pydelta.`{tmp_path / 'clone'}`"
    spark.range(0, 4, 1, 2).selectExpr("id", "id % 2 as p").write.partitionBy("p").parquet(files)
    before = sorted(str(path) for path in Path(files).rglob("*"))
    source = f"parquet.`{files}` PARTITIONED BY (p INT)"
    (metrics,) = spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {source} TBLPROPERTIES (team = 'b')").collect()
    assert (metrics["source_num_of_files"], metrics["num_copied_files"], metrics["num_removed_files"]) == (4, 0, 0)
    assert sorted(map(tuple, spark.sql(f"SELECT * FROM {clone}").collect())) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert spark.sql(f"CREATE TABLE IF NOT EXISTS {clone} SHALLOW CLONE {source}").collect() == []
    spark.sql(f"DELETE FROM {clone} WHERE id < 3")
    with pytest.raises(TableAlreadyExistsError):
        spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {source}")
    (metrics,) = spark.sql(
        f"CALL pydelta.system.clone('parquet.`{files}`', '{clone}', true, partitioned_by => 'p INT', replace => true)"
    ).collect()
    assert (metrics["num_removed_files"], spark.sql(f"SELECT * FROM {clone}").count()) == (0, 4)

    spark.sql(f"CREATE TABLE attic.given USING parquet PARTITIONED BY (p) TBLPROPERTIES ('team' = 'a') AS SELECT * FROM {clone}")
    spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
    try:
        spark.sql("CREATE TABLE attic.copy SHALLOW CLONE attic.given")
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.appendOnly")
    assert spark.table("attic.copy").count() == 4 and spark.catalog.getTable("attic.given").tableType == "MANAGED"
    (entry,) = DeltaTable.forName(spark, "attic.copy").history().collect()
    assert entry["operationParameters"] == {"source": "spark_catalog.attic.given", "sourceVersion": "-1"}
    detail = DeltaTable.forName(spark, "attic.copy").detail().first()
    assert (detail["properties"], detail["partitionColumns"]) == ({"team": "a"}, ["p"])
    assert sorted(str(path) for path in Path(files).rglob("*")) == before


def test_sources_of_clones_that_cannot_be(spark: SparkSession, path: str, database: None, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "files"))
    spark.sql("CREATE TABLE attic.texts (a STRING) USING csv")
    spark.sql("CREATE VIEW attic.seen AS SELECT 1 AS a")
    unsupported, parquet = "DELTA_CLONE_UNSUPPORTED_SOURCE", f"parquet.`{tmp_path / 'files'}`"
    refused = {
        "SHALLOW CLONE attic.texts": (unsupported, "format is csv"),
        "SHALLOW CLONE attic.seen": (unsupported, "format is View"),
        "SHALLOW CLONE iceberg.`/data/t`": (unsupported, "format is iceberg"),
        f"SHALLOW CLONE parquet.`{path}`": (unsupported, "format is Delta"),
        "SHALLOW CLONE attic.nothing": ("TABLE_OR_VIEW_NOT_FOUND", "attic"),
        "SHALLOW CLONE parquet.`/no/such/path`": ("DELTA_EMPTY_DIRECTORY", "/no/such/path"),
        f"SHALLOW CLONE {parquet} VERSION AS OF 0": ("UNSUPPORTED_FEATURE.TIME_TRAVEL", "no versions"),
        f"SHALLOW CLONE {parquet} TIMESTAMP AS OF '2024-01-01'": ("UNSUPPORTED_FEATURE.TIME_TRAVEL", "no versions"),
        f"CLONE {parquet}": ("DELTA_UNSUPPORTED_DEEP_CLONE", "SHALLOW CLONE"),
        f"SHALLOW CLONE pydelta.`{path}` PARTITIONED BY (day STRING)": ("DELTA_ILLEGAL_OPTION", "Leave PARTITIONED BY out"),
    }
    for source, (condition, part) in refused.items():
        with pytest.raises((UnsupportedOperationError, InvalidOptionError, TableNotFoundError), match=part) as caught:
            spark.sql(f"CREATE TABLE pydelta.`{tmp_path / 'clone'}` {source}")
        assert (source, caught.value.error_class) == (source, condition)
    assert not (tmp_path / "clone").exists()


def test_fsck_and_the_dry_run_of_restore(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert table.fsck().collect() == [] and table.fsck().schema == FAULTS
    table.delete("true")
    missing_path = PlainTable(path, version=0).files()["path"].to_pylist()[0]
    (Path(path) / missing_path).unlink()
    for past in (table.restoreToVersion(0, dryRun=True), table.restoreToTimestamp("2999-01-01", dryRun=True)):
        assert past.schema == FAULTS
    assert [row["path"] for row in table.restoreToVersion(0, dryRun=True).collect()] == [missing_path]
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


def test_fsck_of_data_names_damaged_files_and_leaves_them(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    name = PlainTable(path).files()["path"].to_pylist()[0]
    file = Path(path) / name
    with flipped(file, chunk_places(file)[-3]):
        assert table.fsck().collect() == []
        (row,) = table.fsck(checkData=True).collect()
        assert (row["kind"], row["path"], row["can_repair"]) == ("dataFile", name, False)
        assert table.fsck(dryRun=False, allowDataLoss=True, checkData=True).collect() == [row]
        assert spark.sql(f"CALL pydelta.system.fsck('{path}', dry_run => true, check_data => true)").collect() == [row]
    assert name in PlainTable(path).files()["path"].to_pylist()
    with pytest.raises(ValueError, match="checkData needs to be a boolean"):
        table.fsck(checkData="yes")  # type: ignore[arg-type]
