"""df.write.format("pydelta"): every order in which users call it, and calls that it does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable, register
from spark_plugin.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.support.tables.small_table import make_table

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "x", "mon"), (2, "y", "tue"), (3, None, "tue")], "id bigint, name string, day string")


@pytest.fixture
def default_format(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.sources.default", "pydelta")
    yield
    spark.conf.unset("spark.sql.sources.default")


def stored(path: str) -> list[dict[str, Any]]:
    """The rows of the newest version, read without Spark."""
    rows: list[dict[str, Any]] = PlainTable(path).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["id"] is None, row["id"]))


def partition_columns(path: str) -> tuple[str, ...]:
    return PlainTable(path).metadata.partition_columns


# ---------------------------------------------------------------- modes


def test_save_in_the_default_mode_creates_a_table_once(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").save(path)
    assert stored(path) == [
        {"id": 1, "name": "x", "day": "mon"},
        {"id": 2, "name": "y", "day": "tue"},
        {"id": 3, "name": None, "day": "tue"},
    ]
    with pytest.raises(TableAlreadyExistsError, match="append") as caught:
        frame.write.format("pydelta").save(path)
    assert caught.value.error_class == "DELTA_PATH_EXISTS"
    assert PlainTable(path).version == 0


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ErrorIfExists"])
def test_save_mode_error_refuses_an_existing_table(frame: DataFrame, path: str, mode: str) -> None:
    frame.write.format("pydelta").mode(mode).save(path)
    with pytest.raises(TableAlreadyExistsError):
        frame.write.mode(mode).format("pydelta").save(path)


def test_save_mode_ignore_creates_a_table_and_then_does_nothing(frame: DataFrame, path: str) -> None:
    frame.limit(1).write.mode("ignore").format("pydelta").save(path)
    frame.write.format("pydelta").mode("ignore").save(path)
    assert (len(stored(path)), PlainTable(path).version) == (1, 0)
    assert len(list(Path(path).glob("*.parquet"))) == 1


def test_save_in_mode_append_adds_rows(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").mode("append").save(path)
    frame.select("day", "name", "ID").write.format("pydelta").mode("append").save(path)
    assert (len(stored(path)), PlainTable(path).version) == (6, 1)


def test_mode_that_spark_does_not_know_is_refused_by_spark(frame: DataFrame, path: str) -> None:
    with pytest.raises(PySparkException):
        frame.write.format("pydelta").mode("upsert").save(path)


# ---------------------------------------------------------------- any order, any way

Way = Callable[[DataFrame, str], None]

PARTITIONED: dict[str, Way] = {
    "format_first": lambda df, path: df.write.format("pydelta").partitionBy("day").mode("error").save(path),
    "format_last": lambda df, path: df.write.partitionBy("day").mode("ignore").format("pydelta").save(path),
    "names_in_a_list": lambda df, path: df.write.format("pydelta").partitionBy(["day"]).save(path),
    "name_in_another_case": lambda df, path: df.write.format("pydelta").partitionBy("DAY").save(path),
    "arguments_of_save": lambda df, path: df.write.save(path, format="pydelta", mode="append", partitionBy="day"),
    "list_as_argument_of_save": lambda df, path: df.write.save(path, "pydelta", "ignore", ["day"]),
    "path_as_an_option": lambda df, path: df.write.format("pydelta").partitionBy("day").option("path", path).save(),
    "format_in_another_case": lambda df, path: df.write.format("PyDelta").partitionBy("day").save(path),
    "another_format_before": lambda df, path: df.write.format("parquet").partitionBy("day").format("pydelta").save(path),
    "partitioned_twice": lambda df, path: df.write.partitionBy("name").format("pydelta").partitionBy("day").save(path),
}


@pytest.mark.parametrize("way", PARTITIONED)
def test_save_partitioned_works_however_it_is_called(frame: DataFrame, path: str, way: str) -> None:
    PARTITIONED[way](frame, path)
    assert partition_columns(path) == ("day",)
    assert len(stored(path)) == 3
    assert sorted(folder.name for folder in Path(path).glob("day=*")) == ["day=mon", "day=tue"]


def test_save_with_the_session_default_format_is_ours(frame: DataFrame, path: str, default_format: None) -> None:
    frame.write.partitionBy("day").save(path)
    frame.write.mode("append").save(path)
    assert (partition_columns(path), len(stored(path))) == (("day",), 6)
    assert frame.sparkSession.read.load(path, versionAsOf=0).count() == 3


def test_writer_used_twice_writes_twice(frame: DataFrame, path: str, tmp_path: Path) -> None:
    writer = frame.write.format("pydelta").partitionBy("day")
    writer.save(path)
    writer.save(str(tmp_path / "other"))
    writer.mode("append").save(path)
    assert (len(stored(path)), len(stored(str(tmp_path / "other")))) == (6, 3)


def test_options_given_in_any_way_arrive(frame: DataFrame, path: str) -> None:
    frame.write.option("userMetadata", "one").format("pydelta").save(path)
    frame.write.format("pydelta").mode("append").options(USERMETADATA="two", mergeSchema=False).save(path)
    frame.write.save(path, format="pydelta", mode="append", userMetadata="three")
    history = DeltaTable.forPath(frame.sparkSession, path).history().select("userMetadata", "operation").collect()
    assert [tuple(row) for row in history] == [("three", "WRITE"), ("two", "WRITE"), ("one", "WRITE")]


def test_table_properties_are_set_when_the_table_is_created(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(path)
    assert PlainTable(path).metadata.configuration == {"delta.enableChangeDataFeed": "true"}
    with pytest.raises(InvalidOptionError, match=r"delta\.appendOnly"):
        frame.write.format("pydelta").option("delta.appendOnlyy", "true").save(path + "2")


def test_option_that_is_unknown_is_refused(frame: DataFrame, path: str) -> None:
    with pytest.raises(InvalidOptionError, match="Did you mean mergeSchema"):
        frame.write.format("pydelta").option("mergeSchemas", "true").save(path)
    assert not Path(path).exists()


# ---------------------------------------------------------------- what a table refuses


def test_append_with_another_partitioning_is_refused(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").partitionBy("day").save(path)
    frame.write.format("pydelta").mode("append").partitionBy("Day").save(path)
    with pytest.raises(SchemaMismatchError, match="partitioned by"):
        frame.write.format("pydelta").mode("append").partitionBy("name").save(path)
    assert PlainTable(path).version == 1


def test_append_of_an_unknown_column_is_refused_before_any_task(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").save(path)
    with pytest.raises(SchemaMismatchError, match="extra"):
        frame.selectExpr("*", "1 as extra").write.format("pydelta").mode("append").save(path)
    assert len(list(Path(path).glob("*.parquet"))) == PlainTable(path).snapshot.num_files


def test_null_in_required_column_is_refused_and_leaves_no_file(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    strict = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}'
    path = make_table(tmp_path / "t", [pa.table({"id": pa.array([7], pa.int64())})], schema_json=strict)
    with pytest.raises(InvariantViolationError):
        spark.createDataFrame([(1,), (None,)], "id bigint").write.format("pydelta").mode("append").save(path)
    assert len(list(Path(path).glob("*.parquet"))) == 1
    frame.select("id").write.format("pydelta").mode("append").save(path)
    assert [row["id"] for row in stored(path)] == [1, 2, 3, 7]


def test_partitioning_that_no_table_can_have_is_refused(frame: DataFrame, path: str) -> None:
    with pytest.raises(SchemaMismatchError):
        frame.write.format("pydelta").partitionBy("nope").save(path)
    with pytest.raises(SchemaMismatchError):
        frame.write.format("pydelta").partitionBy("id", "name", "day").save(path)
    assert not Path(path).exists()


def test_buckets_are_refused(frame: DataFrame, path: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="buckets"):
        frame.write.format("pydelta").bucketBy(2, "id").save(path)
    with pytest.raises(UnsupportedOperationError, match="buckets"):
        frame.write.format("pydelta").bucketBy(2, "id").saveAsTable("nowhere")
    assert not frame.sparkSession.catalog.tableExists("nowhere")


def test_clustering_columns_reach_the_table(frame: DataFrame, path: str) -> None:
    frame.write.clusterBy("name", "id").format("pydelta").save(path)
    detail = DeltaTable.forPath(frame.sparkSession, path).detail().select("clusteringColumns").first()
    assert detail is not None and detail[0] == ["name", "id"]


def test_rows_of_a_catalog_table_go_where_the_write_says(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    """Two tables with the same columns: a row of one must never go to the other, nor back to its own table."""
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    for name, path in (("entered_one", one), ("entered_other", other)):
        frame.write.format("pydelta").save(path)
        spark.sql(f"create table {name} using pydelta options (path '{path}')")
    try:
        for insert in ("select * from entered_one", "values (4, 'z', 'wed')"):
            spark.sql(f"insert into entered_other {insert}")
        rows = spark.table("entered_one")
        with pytest.raises(InvalidOptionError, match=r"save\(path\)"):
            rows.write.format("pydelta").mode("append").save()
        assert (PlainTable(one).version, PlainTable(other).version, len(stored(other))) == (0, 2, 7)
        rows.write.insertInto("entered_other")
        rows.write.format("pydelta").mode("append").save(other)
        assert (PlainTable(one).version, PlainTable(other).version, len(stored(other))) == (0, 4, 13)
        rows.write.format("pydelta").save(one + "-copy")
        assert "pydelta.table" not in PlainTable(one + "-copy").metadata.schema_string
    finally:
        spark.sql("drop table entered_one")
        spark.sql("drop table entered_other")


# ---------------------------------------------------------------- everything else is as before


def test_other_formats_see_no_difference(frame: DataFrame, tmp_path: Path) -> None:
    spark, path = frame.sparkSession, str(tmp_path / "parquet")
    frame.write.mode("overwrite").partitionBy("day").parquet(path)
    frame.write.format("parquet").mode("append").save(path, partitionBy="day")
    assert spark.read.format("parquet").load(path).count() == 6
    frame.write.save(path, mode="ignore")
    with pytest.raises(PySparkException) as caught:
        frame.write.format("json").save(path)
    assert caught.value.getCondition() == "PATH_ALREADY_EXISTS"
    frame.write.mode("overwrite").saveAsTable("plain")
    try:
        assert spark.table("plain").count() == 3
    finally:
        spark.sql("drop table plain")


def test_methods_are_wrapped_once_and_keep_their_documentation(spark: SparkSession) -> None:
    before = DataFrameWriter.save
    register(spark)
    assert DataFrameWriter.save is before
    assert DataFrameWriter.save.__name__ == "save" and "contents of the" in (DataFrameWriter.save.__doc__ or "")


def test_other_libraries_may_wrap_what_is_wrapped(spark: SparkSession, frame: DataFrame, path: str, monkeypatch: Any) -> None:
    calls, ours = [], DataFrameWriter.save

    @wraps(ours)
    def save(self: DataFrameWriter, *args: Any, **kwargs: Any) -> None:
        calls.append(args)
        ours(self, *args, **kwargs)

    monkeypatch.setattr(DataFrameWriter, "save", save)
    register(spark)
    assert DataFrameWriter.save is save
    frame.write.format("pydelta").save(path)
    frame.write.format("parquet").save(f"{path}-parquet")
    assert calls == [(path,), (f"{path}-parquet",)] and len(stored(path)) == 3


def test_thread_of_the_user_s_own_can_read_and_write(spark: SparkSession, frame: DataFrame, path: str) -> None:
    def work() -> int:
        frame.write.format("pydelta").save(path)
        return spark.read.format("pydelta").load(path).count()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 3


# ---------------------------------------------------------------- values


def test_written_values_of_every_kind_come_back(spark: SparkSession, path: str) -> None:
    kinds = spark.sql(
        """select 1Y as b, 2S as s, 3 as i, 4L as l, 1.5F as f, double('NaN') as d, 12.34bd as dec, true as flag, 'tëxt' as t,
        binary('ab') as bin, date'1500-02-28' as day, timestamp'2024-03-31 02:30:00.123456' as ts,
        timestamp_ntz'2024-03-31 02:30:00' as ntz, array(1, null) as a, map('k', named_struct('x', 1)) as m,
        named_struct('u', cast(null as string), 'v', array(named_struct('w', 1L))) as st"""
    )
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        kinds.write.format("pydelta").save(path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    reloaded = spark.read.format("pydelta").load(path)
    assert reloaded.schema.simpleString() == kinds.schema.simpleString()
    assert reloaded.drop("d").collect() == kinds.drop("d").collect()
    assert reloaded.selectExpr("isnan(d)").first() == (True,)
