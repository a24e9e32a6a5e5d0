"""OPTIMIZE as Spark jobs: the reference's frame, settings, several bins in parallel, and failures. The rest needs no session:
tests/unit/optimize/test_optimize.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.maintenance.optimize_job import BATCH_SIZE, MAX_DELETED_RATIO, MAX_FILE_SIZE, MIN_FILE_SIZE, RESULT
from spark_plugin.options.common import AUTO_COMPACT_MIN_FILES
from tests.support.spark.settings import restore

pytestmark = pytest.mark.usefixtures("plain_plans")

AUTO_COMPACT = "spark.databricks.delta.autoCompact.enabled"
SETTINGS = (MAX_FILE_SIZE, MIN_FILE_SIZE, MAX_DELETED_RATIO, BATCH_SIZE, AUTO_COMPACT, AUTO_COMPACT_MIN_FILES)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Twelve files of two rows in three partitions, one of which is null."""
    path = str(tmp_path / "table")
    for number in range(4):
        rows = {"id": range(6 * number, 6 * number + 6), "day": ["a b", None, "c"] * 2}
        write_delta(path, pa.table(rows), mode="append", partition_by=["day"])
    return path


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    yield
    restore(spark, before)


def contents(path: str) -> list[tuple[int, str | None]]:
    return sorted((row["id"], row["day"]) for row in PlainTable(path).to_arrow().to_pylist())


def test_reorg_purges_the_files_that_have_deletion_vectors(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.setProperties({"delta.enableDeletionVectors": "true"})
    table.delete("id IN (0, 2, 9)")
    before = contents(path)
    vectors = sum(file["deletion_vector"] is not None for file in PlainTable(path).files().to_pylist())
    assert table.reorg().where("day = 'c'").executePurge().first()["metrics"]["numFilesRemoved"] < vectors
    frame = table.reorg().executePurge()
    assert frame.schema == RESULT and frame.first() is not None
    assert all(file["deletion_vector"] is None for file in PlainTable(path).files().to_pylist())
    assert contents(path) == before
    assert table.history(1).first()["operation"] == "REORG"
    with pytest.raises(TypeError, match="Partition filter must be str"):
        table.reorg().where(1)  # type: ignore[arg-type]


def test_files_of_each_partition_become_one(spark: SparkSession, path: str) -> None:
    before = contents(path)
    frame = DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert frame.schema == RESULT
    (row,) = frame.collect()
    assert row["path"] == f"file:{path}"
    assert (row["metrics"]["numFilesAdded"], row["metrics"]["numFilesRemoved"], row["metrics"]["numBins"]) == (3, 12, 3)
    assert (PlainTable(path).version, PlainTable(path).files().num_rows) == (4, 3)
    assert contents(path) == before
    assert spark.read.format("pydelta").load(path).where("day is null").count() == 8
    assert spark.read.format("pydelta").option("versionAsOf", 3).load(path).count() == 24
    second_metrics = DeltaTable.forPath(spark, path).optimize().executeCompaction().first()
    assert second_metrics is not None and second_metrics["metrics"]["numBins"] == 0
    assert PlainTable(path).version == 4


def test_predicate_chooses_partitions(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).optimize().where("day = 'c' or day is null").executeCompaction()
    assert PlainTable(path).files().num_rows == 6
    assert DeltaTable.forPath(spark, path).history(1).first()["operationParameters"]["predicate"] == (
        "[\"(day = 'c' or day is null)\"]"
    )


def test_settings_of_the_reference(spark: SparkSession, path: str, settings: None) -> None:
    table = DeltaTable.forPath(spark, path)
    spark.conf.set(MIN_FILE_SIZE, "1")
    assert table.optimize().executeCompaction().first()["metrics"]["numBins"] == 0
    spark.conf.unset(MIN_FILE_SIZE)
    size = PlainTable(path).files()["size"][0].as_py()
    spark.conf.set(MAX_FILE_SIZE, str(2 * size + 10))
    spark.conf.set(BATCH_SIZE, "1")
    metrics = table.optimize().executeCompaction().first()["metrics"]
    assert (metrics["numBins"], metrics["numBatches"], PlainTable(path).version) == (6, 6, 9)


@pytest.mark.parametrize(("name", "value"), [(MAX_FILE_SIZE, "many"), (MAX_FILE_SIZE, "0"), (MAX_DELETED_RATIO, "half")])
def test_setting_that_is_none(spark: SparkSession, path: str, settings: None, name: str, value: str) -> None:
    spark.conf.set(name, value)
    with pytest.raises(PySparkException, match=name if value != "0" else "target_file_bytes"):
        DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert PlainTable(path).version == 3


def test_predicate_of_rows_is_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        DeltaTable.forPath(spark, path).optimize().where("id > 3").executeCompaction()
    assert raised.value.getCondition() == "DELTA_NON_PARTITION_COLUMN_REFERENCE"


def test_task_that_fails_leaves_nothing(spark: SparkSession, path: str) -> None:
    damaged = Path(path) / PlainTable(path).files()["path"][5].as_py()
    damaged.write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    before = {file for file in Path(path).rglob("*.parquet")}
    with pytest.raises(PySparkException, match=damaged.name):
        DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert {file for file in Path(path).rglob("*.parquet")} == before
    assert PlainTable(path).version == 3


def test_batch_that_fails_takes_nothing_of_those_before(spark: SparkSession, path: str, settings: None) -> None:
    """There are three partitions, one commit for each. The last one cannot be read."""
    names = PlainTable(path).files().sort_by("path")["path"].to_pylist()
    (damaged,) = {name for name in names if name.startswith("day=c/")} & {names[-1]}
    content = (Path(path) / damaged).read_bytes()
    (Path(path) / damaged).write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    spark.conf.set(BATCH_SIZE, "1")
    with pytest.raises(PySparkException, match=Path(damaged).name):
        DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert PlainTable(path).version > 3, "a batch was committed before"
    (Path(path) / damaged).write_bytes(content)
    assert len(contents(path)) == 24


# ---------------------------------------------------------------- rows in order


def test_z_order_writes_all_files_of_each_partition_in_order(spark: SparkSession, path: str, settings: None) -> None:
    before, size = contents(path), PlainTable(path).files()["size"][0].as_py()
    spark.conf.set(MAX_FILE_SIZE, str(2 * size))
    frame = DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id")
    assert frame.schema == RESULT
    metrics = frame.first()["metrics"]
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["numBins"]) == (6, 12, 3)
    assert metrics["zOrderStats"]["mergedFiles"]["num"] == 12
    assert contents(path) == before
    assert spark.read.format("pydelta").load(path).where("id = 3").count() == 1
    assert PlainTable(path).scan(filter="id = 3 and day = 'a b'").files.num_rows == 1
    assert DeltaTable.forPath(spark, path).optimize().executeZOrderBy(["id"]).first()["metrics"]["numBins"] == 0
    with pytest.raises(AnalysisException) as raised:
        DeltaTable.forPath(spark, path).optimize().executeZOrderBy("day")
    assert raised.value.getCondition() == "DELTA_ZORDERING_ON_PARTITION_COLUMN"


def test_task_that_fails_to_put_rows_in_order_leaves_nothing(spark: SparkSession, path: str) -> None:
    damaged = Path(path) / PlainTable(path).files()["path"][5].as_py()
    damaged.write_bytes(damaged.read_bytes()[:-200] + bytes(200))
    before = {file for file in Path(path).rglob("*.parquet")}
    with pytest.raises(PySparkException, match=damaged.name):
        DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id")
    assert {file for file in Path(path).rglob("*.parquet")} == before
    assert PlainTable(path).version == 3


def test_clustered_table_is_clustered(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "clustered")
    for start in (0, 50):
        spark.range(start, start + 50, 1, 1).write.format("pydelta").clusterBy("id").mode("append").save(path)
    metrics = DeltaTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]
    assert (metrics["numFilesAdded"], metrics["clusteringStats"]["inputOtherFiles"]["numFiles"]) == (1, 2)
    assert sorted(PlainTable(path).to_arrow()["id"].to_pylist()) == list(range(100))
    second_metrics = DeltaTable.forPath(spark, path).optimize().executeCompaction(full=True).first()["metrics"]
    assert (second_metrics["numFilesAdded"], second_metrics["clusteringStats"]["inputNumZCubes"]) == (0, 1)


def test_clustering_columns_change_and_layout_counts_queries(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_delta(path, pa.table({"id": range(20), "s": [{"a": number} for number in range(20)], "b": [b"x"] * 20}))
    table = DeltaTable.forPath(spark, path)
    table.clusterBy("id", "s.a")
    table.clusterBy(["s.a"])
    last = table.history(1).first()
    assert last["operation"] == "CLUSTER BY"
    assert last["operationParameters"] == {"oldClusteringColumns": "id,s.a", "newClusteringColumns": "s.a"}
    assert table.detail().first()["clusteringColumns"] == ["s.a"]
    table.clusterBy()
    assert table.detail().first()["clusteringColumns"] == []
    with pytest.raises(AnalysisException) as raised:
        table.clusterBy("b")
    assert raised.value.getCondition() == "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"
    for place in (path, f"file:{path}/"):
        assert spark.read.format("pydelta").load(place).filter("s.a = 3 AND id IS NOT NULL").count() == 1
    table.toDF().filter("id < 5 OR s.a IN (1, 7)").collect()
    assert {row["column"]: row["queries"] for row in table.layout().collect()} == {"id": 1, "s.a": 3}


# ---------------------------------------------------------------- auto compaction


def test_writes_and_streams_compact_what_they_leave(spark: SparkSession, tmp_path: Path, settings: None) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "table")
    for number in range(4):
        write_delta(source, pa.table({"id": [number]}), mode="append")
    spark.conf.set(AUTO_COMPACT_MIN_FILES, "4")
    for number in range(7):
        writer = spark.range(10 + number, 11 + number, 1, 1).write.format("pydelta").mode("append")
        writer.option("autoCompact", "false" if number < 6 else "true").save(path)
    assert (PlainTable(path).files().num_rows, PlainTable(path).version) == (7, 6)
    spark.conf.set(AUTO_COMPACT, "true")
    stream = spark.readStream.format("pydelta").option("maxFilesPerTrigger", "1").load(source)
    query = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.start(path).awaitTermination()
    assert PlainTable(path).files().num_rows == 1, "version 10 is the first that looks"
    assert sorted(PlainTable(path).to_arrow()["id"].to_pylist()) == [*range(4), *range(10, 17)]
    assert DeltaTable.forPath(spark, path).history(1).first()["operationParameters"]["auto"] == "true"

