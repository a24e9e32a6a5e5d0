"""The hidden column `_metadata` of spark.read.format("pydelta"): the values of the option metadataColumn, without the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py.row_changes.write import write_delta
from spark_plugin import DeltaTable
from spark_plugin.pruning import status
from tests.support.oracles.frames import executed_plan
from tests.support.tables.small_table import make_table

TRACKED = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
FIELDS = ("file_path", "file_name", "file_size", "file_modification_time", "row_index", "row_id", "row_commit_version")


def rows(start: int, stop: int, day: str) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "day": [day] * (stop - start)})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Row tracking, partitions of which one needs escapes, and deletion vectors: ids 0-2 and 13-19 are deleted."""
    path = str(tmp_path_factory.mktemp("metadata") / "a table")
    for version, (start, day) in enumerate([(0, "mon"), (10, "a b%"), (20, "wed")]):
        write_delta(
            path,
            rows(start, start + 10, day),
            mode="error" if version == 0 else "append",
            partition_by=["day"] if version == 0 else None,
            configuration=TRACKED if version == 0 else None,
        )
    for deleted in ("id < 3", "id > 12 and id < 20"):
        write_delta(path, rows(0, 0, "mon"), mode="overwrite", replace_where=deleted)
    return path


def load(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def by_id(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: row["id"])


def test_metadata_column_is_hidden_and_equals_that_of_the_option(spark: SparkSession, table: str) -> None:
    frame, option = load(spark, table), load(spark, table, metadataColumn="true")
    assert (frame.columns, frame.select("*").columns) == (["id", "day"], ["id", "day"])
    frame_with_column = frame.select("*", "_metadata")
    assert frame_with_column.schema["_metadata"].dataType == option.schema["_metadata"].dataType
    assert frame_with_column.schema["_metadata"].dataType.fieldNames() == list(FIELDS)  # type: ignore[attr-defined]
    rows_with_column = by_id(frame_with_column)
    assert rows_with_column == by_id(option)
    assert [row["id"] for row in rows_with_column] == [*range(3, 13), *range(20, 30)]
    assert all(row["_metadata"]["row_index"] == row["id"] % 10 for row in rows_with_column)
    assert all(row["_metadata"]["row_id"] is not None for row in rows_with_column)


def test_metadata_column_names_files_as_spark_does(spark: SparkSession, table: str) -> None:
    named = ("_metadata.file_path", "_metadata.file_name", "_metadata.file_size")
    (directory,) = Path(table).glob("day=a*")
    assert "%25" in directory.name
    ours = load(spark, table).where("id = 11").select(*named)
    assert ours.collect() == spark.read.parquet(str(directory)).where("id = 11").select(*named).collect()


def test_metadata_column_in_filters_aggregates_and_joins(spark: SparkSession, table: str) -> None:
    frame, before = load(spark, table), status(spark)
    (name,) = (row[0] for row in frame.where("id = 12").select("_metadata.file_name").collect())
    assert [row["id"] for row in by_id(frame.where(F.col("_metadata.file_name") == name))] == [10, 11, 12]
    assert [row["id"] for row in by_id(frame.where("_metadata.row_index = 3"))] == [3, 23]
    assert frame.where("_metadata.row_index = 3").count() == 2
    counts = frame.groupBy("_metadata.file_name").count().collect()
    assert sorted(row["count"] for row in counts) == [3, 7, 10]
    left = frame.select("id", "_metadata.row_id").alias("l")
    right = frame.where("_metadata.row_index < 2").select("_metadata.row_id", F.col("id").alias("other")).alias("r")
    assert sorted(left.join(right, "row_id").select("id", "other").collect()) == [(10, 10), (11, 11), (20, 20), (21, 21)]
    alike = frame.alias("a").join(frame.alias("b"), F.expr("a._metadata.row_id = b._metadata.row_id")).select("a.id", "b.id")
    assert all(a == b for a, b in alike.collect()) and alike.count() == 20
    after = status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped
    assert (after["metadata-column"].last_error, after["log"].last_error) == (None, before["log"].last_error)
    plan = executed_plan(frame.select("id", "_metadata.row_index"))
    assert "ReadSchema: struct<id:bigint,_metadata:struct<row_index:bigint>>" in plan


def test_metadata_column_that_a_query_names_in_vain_is_not_read(spark: SparkSession, table: str) -> None:
    frame, before = load(spark, table), status(spark)
    unused = frame.select("*", "_metadata").drop("_metadata")
    assert unused.join(frame.select("id", "_metadata").drop("_metadata"), "id").count() == 20
    assert unused.columns == ["id", "day"] and "_metadata" not in executed_plan(unused)
    after = status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped and after["pruning"].used > before["pruning"].used


@pytest.mark.parametrize("options", [{}, {"pruning": "false"}], ids=["rule-off", "option"])
def test_metadata_column_without_pruning_works_in_later_queries(
    spark: SparkSession, table: str, conf: Any, options: dict[str, str]
) -> None:
    """Spark reuses the read function of a DataFrame's first query for later queries, and it does not have this column."""
    if not options:
        conf({"spark.pydelta.pruning.enabled": "false"})
    frame, option = load(spark, table, **options), load(spark, table, metadataColumn="true", **options)
    assert frame.count() == 20
    assert by_id(frame.select("*", "_metadata")) == by_id(option)
    assert by_id(frame.where("_metadata.row_index = 2").select("id")) == [(12,), (22,)]
    assert by_id(frame.select("id"))[0] == (3,)


def test_metadata_column_of_a_cached_frame_and_of_an_old_version(spark: SparkSession, table: str) -> None:
    frame, old = load(spark, table).cache(), load(spark, table, versionAsOf="0", columns="id")
    assert frame.count() == 20
    assert "InMemoryTableScan" in executed_plan(frame.where("id > 3"))
    assert frame.where("id = 12").select("_metadata.row_index").collect() == [(2,)]
    frame.unpersist()
    assert old.select("*", "_metadata.row_index").where("row_index < 2").collect() == [(0, 0), (1, 1)]


def test_metadata_column_of_the_frame_of_a_delta_table(spark: SparkSession, table: str) -> None:
    frame = DeltaTable.forPath(spark, table).toDF()
    assert frame.where("id = 12").select("_metadata.row_index").collect() == [(2,)]


def test_table_column_named_metadata_hides_the_metadata_column(spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1], "_Metadata": [{"file_name": "mine"}]})])
    assert load(spark, path).select("_metadata.*").collect() == [("mine",)]
    with pytest.raises(AnalysisException, match="_metadata"):
        load(spark, path, columns="id").select("_metadata.file_path").collect()


def test_change_feed_has_no_metadata_column(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows(0, 2, "mon"), configuration={"delta.enableChangeDataFeed": "true"})
    changes = load(spark, path, readChangeFeed=True, startingVersion=0)
    assert changes.count() == 2
    with pytest.raises(AnalysisException, match="_metadata"):
        changes.select("_metadata.file_path")


@pytest.fixture(params=["true", "false"], ids=["vectors", "files"])
def changed(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Ids 0-2, 3-5 and 6-8, each group in one file."""
    path = str(tmp_path / "changed")
    for start in (0, 3, 6):
        write_delta(
            path,
            rows(start, start + 3, "mon"),
            mode="append" if start else "error",
            configuration=None if start else {"delta.enableDeletionVectors": request.param},
        )
    return path


def file_of(spark: SparkSession, path: str, number: int) -> str:
    return str(load(spark, path).where(f"id = {number}").select("_metadata.file_name").first()[0])  # type: ignore[index]


def test_delete_and_update_know_the_metadata_column(spark: SparkSession, changed: str) -> None:
    name, second = f"pydelta.`{changed}`", file_of(spark, changed, 3)
    assert spark.sql(f"DELETE FROM {name} WHERE _metadata.file_name = 'none'").first() == (0,)
    assert DeltaTable.forPath(spark, changed).history(1).first()["version"] == 2
    assert spark.sql(f"DELETE FROM {name} AS t WHERE t._metadata.file_name = :file AND id > 3", {"file": second}).first() == (2,)
    table = DeltaTable.forPath(spark, changed)
    table.update(F.col("_metadata.row_index") == 1, {"day": F.concat(F.lit("row "), F.col("_metadata.row_index"))})
    assert [tuple(row) for row in by_id(table.toDF())] == [
        *((0, "mon"), (1, "row 1"), (2, "mon"), (3, "mon"), (6, "mon"), (7, "row 1"), (8, "mon")),
    ]
    parts = "_metadata.file_size > 0 AND _metadata.file_path LIKE 'file:/%'"
    assert spark.sql(f"UPDATE {name} SET day = 'large' WHERE {parts} AND id = 8").first() == (1,)
    assert spark.sql(f"DELETE FROM {name} WHERE _metadata IS NOT NULL AND id < 3").first() == (3,)
    assert [row["id"] for row in by_id(table.toDF())] == [3, 6, 7, 8]
    last = file_of(spark, changed, 8)
    assert f"'{last}'" in spark.sql(f"EXPLAIN DELETE FROM {name} WHERE _metadata.file_name = '{last}'").first()[0]  # type: ignore[index]
    with pytest.raises(AnalysisException):
        spark.sql(f"DELETE FROM {name} WHERE _metadata.nope = 1")


def test_merge_says_that_it_has_no_metadata_column(spark: SparkSession, changed: str) -> None:
    into = f"MERGE INTO pydelta.`{changed}` t USING pydelta.`{changed}` s ON t.id = s.id"
    for merge in (
        f"{into} AND t._metadata.file_name = 'x' WHEN MATCHED THEN DELETE",
        f"{into} AND s._metadata.file_name = 'x' WHEN MATCHED THEN DELETE",
        f"{into} WHEN MATCHED AND t._metadata.row_index = 1 THEN DELETE",
        f"{into} WHEN MATCHED THEN UPDATE SET day = s._metadata.file_name",
        f"{into} WHEN NOT MATCHED BY SOURCE AND t._metadata.row_index = 1 THEN DELETE",
    ):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(merge)
        assert raised.value.getCondition() == "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
    source = f"(SELECT *, _metadata.row_index AS place FROM pydelta.`{changed}`)"
    merge = into.replace(f"USING pydelta.`{changed}`", f"USING {source}")
    assert spark.sql(f"{merge} AND s.place = 2 WHEN MATCHED THEN DELETE").first()["num_deleted_rows"] == 3  # type: ignore[index]


def test_a_column_of_the_table_goes_before_the_metadata_column(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "own")
    write_delta(path, pa.table({"id": [1, 2], "_metadata": ["a", "b"]}))
    assert spark.sql(f"DELETE FROM pydelta.`{path}` WHERE _metadata = 'a'").first() == (1,)
    spark.sql(f"UPDATE pydelta.`{path}` SET _metadata = concat(_metadata, 'x')")
    assert load(spark, path).collect() == [(2, "bx")]
