"""table_changes and table_changes_by_path: change feeds in SQL, by names and paths, in queries and views; and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.types.names import quoted
from spark_plugin import register
from spark_plugin.exceptions import (
    ChangeDataFeedError,
    ExpressionError,
    InvalidOptionError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from spark_plugin.pruning import status
from tests.support.spark.needs_spark import needs_spark

pytestmark = pytest.mark.usefixtures("plain_plans")

FEED = {"delta.enableChangeDataFeed": "true"}
ALL = [(1, "insert", 0), (2, "insert", 0), (3, "insert", 1), (2, "delete", 2)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Version 0: 1 and 2. Version 1: 3. Version 2: without 2. The directory's name is data."""
    return three_versions(str(tmp_path / "a b%20'\"\\`ü;\n--"))


def three_versions(place: str) -> str:
    write_delta(place, pa.table({"id": pa.array([1, 2], pa.int64())}), configuration=FEED)
    write_delta(place, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    PlainTable(place).delete("id = 2")
    return place


@pytest.fixture
def name(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    place = three_versions(str(tmp_path / "sales"))
    spark.sql("create database fed")
    spark.sql(f"create table fed.sales using pydelta location '{place}'")
    yield "fed.sales"
    spark.sql("drop database fed cascade")


def text(value: str) -> str:
    """As a literal of SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def changes(spark: SparkSession, relation: str) -> list[tuple[object, ...]]:
    rows = spark.sql(f"select id, _change_type, _commit_version from {relation}").collect()
    return sorted((tuple(row) for row in rows), key=lambda row: (row[2], row[0]))


@pytest.mark.parametrize("catalog", ["pydelta", "delta"])
def test_changes_by_path_whose_text_is_data(spark: SparkSession, path: str, catalog: str) -> None:
    named = text(f"{catalog}.`{path.replace('`', '``')}`")
    assert changes(spark, f"table_changes({named}, 0)") == ALL
    assert changes(spark, f"table_changes_by_path({text(path)}, 1)") == ALL[2:]
    assert changes(spark, f"table_changes_by_path({text(path)}, 1, 1L)") == ALL[2:3]
    assert changes(spark, f"table_changes_by_path({text(path)}, '2000-01-01')") == ALL
    by_parameters = spark.sql("select * from table_changes_by_path(:path, :first)", {"path": path, "first": 2})
    assert by_parameters.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert by_parameters.count() == 1


def test_changes_by_name_within_queries(spark: SparkSession, name: str) -> None:
    assert changes(spark, f"table_changes('spark_catalog.{name}', 0)") == ALL
    spark.sql("use fed")
    try:
        assert changes(spark, "table_changes('sales', 2)") == ALL[3:]
        spark.sql("create or replace temporary view passing as select * from table_changes('sales', 1)")
    finally:
        spark.sql("use default")
    assert changes(spark, "passing") == ALL[2:]
    joined = f"select t.id from {name} t join table_changes('{name}', 0) c on t.id = c.id where c._commit_version = 0"
    assert spark.sql(f"with c as ({joined}) select sum(id) from c").first() == (1,)
    assert spark.sql(f"select id from {name} where id in (select max(id) from table_changes('{name}', 0))").first() == (3,)


@needs_spark("4.2", "views over table_changes")
def test_view_of_changes_has_those_of_later_commits(spark: SparkSession, name: str) -> None:
    spark.sql("use fed")
    try:
        spark.sql("create view fed.kept as select * from table_changes('sales', 1)")
    finally:
        spark.sql("use default")
    assert changes(spark, "fed.kept") == ALL[2:]
    spark.sql(f"insert into {name} values (9)")
    assert changes(spark, "fed.kept") == [*ALL[2:], (9, "insert", 3)]


def test_table_changes_refuses_temporary_views_and_other_formats(spark: SparkSession, name: str) -> None:
    spark.sql("create table fed.other (id int) using parquet")
    with pytest.raises(InvalidOptionError, match="DELTA_TABLE_ONLY_OPERATION"):
        spark.sql("select * from table_changes('fed.other', 0)")
    spark.range(1).createOrReplaceTempView("sales")
    spark.sql("use fed")
    try:
        with pytest.raises(InvalidOptionError, match="DELTA_TABLE_ONLY_OPERATION"):
            spark.sql("select * from table_changes('sales', 0)")
    finally:
        spark.sql("use default")
        spark.catalog.dropTempView("sales")


def test_sessions_have_the_functions_after_their_own_register(spark: SparkSession, path: str) -> None:
    other = spark.newSession()
    register(other)
    register(other)
    assert changes(other, f"table_changes_by_path({text(path)}, 0)") == ALL


@pytest.mark.parametrize(
    ("arguments", "error", "condition"),
    [
        ("'fed.sales', 9", ChangeDataFeedError, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ("'fed.sales', 1, 0", ChangeDataFeedError, "DELTA_INVALID_CDC_RANGE"),
        ("'fed.sales', NULL", ChangeDataFeedError, "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"),
        ("'fed.sales', 'soon'", InvalidOptionError, "DELTA_TIMESTAMP_INVALID"),
        ("'fed.sales', true", ExpressionError, "DELTA_UNSUPPORTED_EXPRESSION"),
        ("'fed.sales', (select 1)", ExpressionError, "DELTA_CDC_NON_CONSTANT_ARGUMENT"),
        ("concat('fed', '.sales'), 1", ExpressionError, "DELTA_UNSUPPORTED_EXPRESSION"),
        ("'fed.sales'", InvalidOptionError, "WRONG_NUM_ARGS"),
        ("'fed.none', 1", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        ("'fed sales', 1", AnalysisException, "PARSE_SYNTAX_ERROR"),
        ("'pydelta.`/no/such/table`', 1", TableNotFoundError, "DELTA_PATH_DOES_NOT_EXIST"),
    ],
)
def test_changes_that_cannot_be_named_are_refused(
    spark: SparkSession, name: str, arguments: str, error: type[Exception], condition: str
) -> None:
    with pytest.raises(error, match=condition):
        spark.sql(f"select * from table_changes({arguments})")


def test_a_table_without_a_feed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"id": [1]}))
    with pytest.raises(ChangeDataFeedError, match="DELTA_MISSING_CHANGE_DATA"):
        spark.sql(f"select * from table_changes_by_path('{tmp_path / 't'}', 0)").collect()


# ---------------------------------------------------------------- CHANGES of Spark's grammar


CHANGES_FROM = needs_spark("4.2", "CHANGES FROM and DataFrameReader.changes")


@CHANGES_FROM
def test_changes_clause_by_path_and_by_name(spark: SparkSession, path: str, name: str) -> None:
    place = f"pydelta.`{path.replace('`', '``')}`"
    for table in (place, name):
        assert changes(spark, f"{table} changes from version 0") == ALL
        assert changes(spark, f"{table} changes from version 0 exclusive to version 2 exclusive") == ALL[2:3]
        assert changes(spark, f"{table} changes from version 1 to version 1") == ALL[2:3]
        assert changes(spark, f"{table} changes from timestamp '2000-01-01' with (computeUpdates = 'true')") == ALL
    spark.sql("create or replace temporary view fed_since as select * from fed.sales changes from version 1")
    assert changes(spark, "fed_since") == ALL[2:]
    spark.sql("insert into fed.sales values (9)")
    assert changes(spark, "fed_since") == [*ALL[2:], (9, "insert", 3)]
    assert sorted(row.id for row in spark.read.option("startingVersion", 1).changes(name).collect()) == [2, 3, 9]


@CHANGES_FROM
def test_changes_clause_with_times_that_are_excluded(spark: SparkSession, path: str) -> None:
    place = f"pydelta.`{path.replace('`', '``')}`"
    history = PlainTable(path).history().sort_by("version")
    first, second, third = (time.isoformat(sep=" ", timespec="milliseconds")[:23] for time in history["timestamp"].to_pylist())
    assert changes(spark, f"{place} changes from timestamp '{first}' exclusive to timestamp '{third}' exclusive") == ALL[2:3]
    assert changes(spark, f"{place} changes from timestamp '{second}' to timestamp '{third}'") == ALL[2:]


@CHANGES_FROM
def test_changes_clause_skips_files(spark: SparkSession, path: str) -> None:
    place = f"pydelta.`{path.replace('`', '``')}`"
    assert changes(spark, f"{place} changes from version 0 where id = 3") == ALL[2:3]
    report = status(spark).last_scan
    assert report is not None and (report.files_kept, report.files_total) == (2, 3), "the deleted row's file has no statistics"
    assert status(spark).last_error is None


@CHANGES_FROM
def test_changes_clause_as_a_stream(spark: SparkSession, name: str) -> None:
    feed = spark.readStream.option("startingVersion", 1).changes(name)
    query = feed.writeStream.format("memory").queryName("fed_stream").trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert changes(spark, "fed_stream") == ALL[2:]


@CHANGES_FROM
def test_changes_clause_that_is_refused(spark: SparkSession, name: str, path: str) -> None:
    def refusal(relation: str) -> str:
        with pytest.raises(AnalysisException) as caught:
            spark.sql(f"select * from {relation}")
        return caught.value.getCondition() or ""

    for table in (name, f"pydelta.`{path.replace('`', '``')}`"):
        with pytest.raises(UnsupportedOperationError, match=r"DELTA_OPERATION_NOT_SUPPORTED.*no ids of rows"):
            spark.sql(f"select * from {table} changes from version 1 with (deduplicationMode = 'netChanges')")
    with pytest.raises(ChangeDataFeedError, match="DELTA_CDC_START_VERSION_AFTER_LATEST"):
        spark.sql(f"select * from {name} changes from version 7")
    with pytest.raises(ChangeDataFeedError, match="DELTA_NO_START_FOR_CDC_READ"):
        spark.readStream.changes(name)
    spark.sql("create table fed.other (id int) using parquet")
    assert refusal("fed.other changes from version 0") == "UNSUPPORTED_FEATURE.CHANGE_DATA_CAPTURE"


def test_readers_options_ask_for_the_changes_of_a_name(spark: SparkSession, name: str, path: str) -> None:
    for table, own_name in ((name, "sales"), (f"delta.{quoted(path)}", quoted(path))):
        reader = spark.read.option("readChangeFeed", "true").option("startingVersion", 1)
        feed = reader.table(table).select(f"{own_name}.id", "_change_type", "_commit_version")
        assert sorted(tuple(row) for row in feed.collect()) == [(2, "delete", 2), (3, "insert", 1)]
        assert spark.read.option("readChangeFeed", "false").table(table).count() == 2
    spark.sql("create temporary view fed_view as select 1 as id")
    assert spark.read.option("readChangeFeed", "true").table("fed_view").columns == ["id"], "of Spark"
    spark.sql("drop view fed_view")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.read.option("readChangeFeed", "true").table("fed.nowhere")
