"""CONVERT TO DELTA from Spark: identifiers, partition schemas, names of the catalog, tasks. The rest needs no session:
tests/unit/copies/test_convert.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StructType

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable
from spark_plugin.exceptions import InvalidOptionError, TableNotFoundError, UnsupportedOperationError
from spark_plugin.maintenance import convert_job as spark_convert
from tests.support.spark.settings import restore

pytestmark = pytest.mark.usefixtures("plain_plans")

ROWS = [("a", 1), ("b", 2), ("c", 3)]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    spark.createDataFrame(ROWS, "key string, value int").coalesce(1).write.parquet(str(tmp_path / "plain"))
    return str(tmp_path / "plain")


@pytest.fixture
def partitioned(spark: SparkSession, tmp_path: Path) -> str:
    rows = spark.createDataFrame(ROWS, "key string, value int").coalesce(1)
    rows.write.partitionBy("value").parquet(str(tmp_path / "parts"))
    return str(tmp_path / "parts")


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"create database attic location '{tmp_path / 'attic'}'")
    yield "attic"
    spark.sql("drop database attic cascade")


def rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.toDF().collect())


def test_directories_are_converted_as_the_reference_s_tests_do(spark: SparkSession, path: str, partitioned: str) -> None:
    table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert type(table) is DeltaTable
    assert rows(table) == ROWS
    assert rows(DeltaTable.convertToDelta(spark, f"parquet.`{path}`")) == ROWS
    assert rows(DeltaTable.convertToDelta(spark, f"delta.`{path}`")) == ROWS
    schema = StructType().add("value", IntegerType(), True)
    assert rows(DeltaTable.convertToDelta(spark, f"parquet.`{partitioned}`", schema)) == ROWS
    assert PlainTable(partitioned).metadata.partition_columns == ("value",)
    assert PlainTable(path).version == 0


def test_partition_schema_may_be_ddl(spark: SparkSession, partitioned: str) -> None:
    with pytest.raises(AnalysisException) as refused:
        DeltaTable.convertToDelta(spark, f"parquet.`{partitioned}`")
    assert refused.value.getCondition() == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert rows(DeltaTable.convertToDelta(spark, f"PARQUET.`{partitioned}`", "value int")) == ROWS


def test_footers_of_many_files_are_read_in_tasks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_convert, "_FILES_PER_TASK", 2)
    spark.range(6).repartition(5, "id").write.parquet(str(tmp_path / "t"))
    table = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 't'}`")
    assert rows(table) == [(number,) for number in range(6)]
    assert all('"nullCount":{"id":0}' in text for text in PlainTable(str(tmp_path / "t")).files()["stats"].to_pylist())


def test_statistics_are_left_out_where_the_session_wants_none(spark: SparkSession, path: str) -> None:
    before = {"spark.databricks.delta.stats.collect": spark.conf.get("spark.databricks.delta.stats.collect", None)}
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    finally:
        restore(spark, before)
    assert PlainTable(path).files()["stats"].null_count == 1


def test_statistics_are_left_out_where_the_statement_wants_none(spark: SparkSession, path: str) -> None:
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS")
    assert PlainTable(path).files()["stats"].null_count == 1


@pytest.mark.parametrize(
    ("identifier", "kind", "condition"),
    [
        ("/data/t", InvalidOptionError, "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
        ("csv.`/data/t`", UnsupportedOperationError, "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ("no_such_table", TableNotFoundError, "TABLE_OR_VIEW_NOT_FOUND"),
        ("parquet.`/no/such/path`", TableNotFoundError, "DELTA_EMPTY_DIRECTORY"),
    ],
)
def test_what_is_no_parquet_table_is_refused(spark: SparkSession, identifier: str, kind: type[Exception], condition: str) -> None:
    with pytest.raises(kind) as refused:
        DeltaTable.convertToDelta(spark, identifier)
    assert refused.value.error_class == condition  # type: ignore[attr-defined]


def test_wrong_arguments_are_type_errors(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="identifier needs to be a string"):
        DeltaTable.convertToDelta(spark, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="partitionSchema must be StructType"):
        DeltaTable.convertToDelta(spark, "parquet.`/x`", 1)  # type: ignore[arg-type]


def test_name_of_an_external_table_stands_for_ours_afterwards(spark: SparkSession, partitioned: str, database: str) -> None:
    name = f"{database}.events"
    spark.sql(
        f"create table {name} (key string, value int) using parquet partitioned by (value) location '{partitioned}' "
        "tblproperties ('team' = 'a')"
    )
    spark.sql(f"msck repair table {name}")
    with pytest.raises(InvalidOptionError) as other:
        DeltaTable.convertToDelta(spark, name, "value string")
    assert other.value.error_class == "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
    spark.sql(f"alter table {name} drop partition (value = 2)")
    with pytest.raises(UnsupportedOperationError, match="value=2") as fewer:
        DeltaTable.convertToDelta(spark, name)
    assert fewer.value.error_class == "DELTA_CONVERSION_NO_PARTITION_FOUND"
    spark.sql(f"msck repair table {name}")
    assert rows(DeltaTable.convertToDelta(spark, name)) == ROWS
    assert rows(DeltaTable.convertToDelta(spark, name)) == ROWS
    assert sorted(map(tuple, spark.table(name).collect())) == ROWS
    assert rows(DeltaTable.forName(spark, name)) == ROWS
    table = PlainTable(partitioned)
    assert dict(table.metadata.configuration) == {"team": "a"}
    (entry,) = table.history().to_pylist()
    assert dict(entry["operationParameters"])["catalogTable"] == "spark_catalog.attic.events"


def test_managed_tables_and_views_are_refused_and_stay(spark: SparkSession, database: str) -> None:
    spark.range(3).write.format("parquet").saveAsTable(f"{database}.managed")
    with pytest.raises(UnsupportedOperationError, match="managed table"):
        DeltaTable.convertToDelta(spark, f"{database}.managed")
    assert spark.table(f"{database}.managed").count() == 3
    spark.sql(f"create view {database}.seen as select * from {database}.managed")
    with pytest.raises(UnsupportedOperationError, match="is a view"):
        DeltaTable.convertToDelta(spark, f"{database}.seen")
