"""Overwrites and the options of writes through Spark: their effect on the table. delta_py's tests have the details."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.exceptions import (
    ConcurrentAppendException,
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
)

COLUMNS = "id bigint, day string"
OPTIMIZE_PROPERTY = "delta.autoOptimize.optimizeWrite"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version 0, partitioned by day: 1 and 2 mon, 3 tue."""
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "tue"]}), partition_by=["day"])
    return path


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Any]:
    """Sets session settings for one test."""
    names: list[str] = []

    def put(name: str, value: str) -> None:
        names.append(name)
        spark.conf.set(name, value)

    yield put
    for name in names:
        spark.conf.unset(name)


def frame(spark: SparkSession, *rows: tuple[Any, ...], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(list(rows), columns).coalesce(1)


def stored(path: str) -> list[tuple[Any, ...]]:
    """The rows of the newest version, read without Spark."""
    return sorted(tuple(row.values()) for row in PlainTable(path).to_arrow().to_pylist())


def last_commit(path: str) -> dict[str, Any]:
    return dict(PlainTable(path).history(limit=1).to_pylist()[0])


# ---------------------------------------------------------------- overwrite


def test_overwrite_replaces_all_rows_and_keeps_the_partitioning(spark: SparkSession, table: str) -> None:
    frame(spark, (9, "wed")).write.format("pydelta").mode("overwrite").save(table)
    assert (stored(table), PlainTable(table).version) == ([(9, "wed")], 1)
    assert PlainTable(table).metadata.partition_columns == ("day",)
    assert len(PlainTable(table, version=0).to_arrow()) == 3
    assert last_commit(table)["operationParameters"] is not None
    frame(spark, (1, "thu")).write.save(table, format="pydelta", mode="overwrite", partitionBy="DAY")
    assert stored(table) == [(1, "thu")]


def test_overwrite_creates_a_table_where_there_is_none(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    frame(spark, (1, "mon")).write.partitionBy("day").mode("overwrite").format("pydelta").save(path)
    assert (stored(path), PlainTable(path).metadata.partition_columns) == ([(1, "mon")], ("day",))


def test_overwrite_of_a_table_with_rows_read_from_it_keeps_them(spark: SparkSession, table: str) -> None:
    rows = spark.read.format("pydelta").load(table).filter("id > 1")
    rows.write.format("pydelta").mode("overwrite").save(table)
    assert stored(table) == [(2, "mon"), (3, "tue")]


def test_replace_where_overwrites_exactly_the_matching_rows(spark: SparkSession, table: str) -> None:
    writer = frame(spark, (0, "mon")).write.format("pydelta").mode("overwrite")
    writer.option("replaceWhere", "day = 'mon' and id < 2").save(table)
    assert stored(table) == [(0, "mon"), (2, "mon"), (3, "tue")]


def test_overwrite_with_rows_outside_of_replace_where_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvariantViolationError, match="replaceWhere") as caught:
        frame(spark, (7, "tue")).write.save(table, format="pydelta", mode="overwrite", replaceWhere="day = 'mon'")
    assert caught.value.error_class == "DELTA_REPLACE_WHERE_MISMATCH"
    assert (PlainTable(table).version, len(list(Path(table).rglob("*.parquet")))) == (0, 2)


def test_replace_where_writes_other_rows_if_the_check_is_off(spark: SparkSession, table: str, conf: Any) -> None:
    conf("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
    frame(spark, (7, "tue")).write.save(table, format="pydelta", mode="overwrite", replaceWhere="day = 'mon'")
    spark.sql(f"INSERT INTO pydelta.`{table}` REPLACE WHERE id = 7 SELECT 8L, 'wed'")
    assert stored(table) == [(3, "tue"), (8, "wed")]


def test_save_with_options_that_contradict_the_mode_is_refused(spark: SparkSession, table: str) -> None:
    writer = frame(spark, (7, "tue")).write.format("pydelta").mode("append").option("replaceWhere", "day = 'mon'")
    with pytest.raises(InvalidOptionError, match="the mode is append") as caught:
        writer.save(table)
    assert caught.value.error_class == "DELTA_ILLEGAL_OPTION"
    assert PlainTable(table).version == 0


def test_dynamic_overwrite_replaces_only_partitions_of_the_rows(spark: SparkSession, table: str, conf: Any) -> None:
    rows = frame(spark, (9, "mon"), (8, "wed"))
    rows.write.format("pydelta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(table)
    assert stored(table) == [(3, "tue"), (8, "wed"), (9, "mon")]
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    frame(spark, (5, "tue")).write.format("pydelta").mode("overwrite").save(table)
    assert stored(table) == [(5, "tue"), (8, "wed"), (9, "mon")]
    frame(spark, (4, "tue")).write.format("pydelta").mode("overwrite").option("partitionOverwriteMode", "static").save(table)
    assert stored(table) == [(4, "tue")]


def test_overwrite_schema_changes_columns_and_partitioning(spark: SparkSession, table: str) -> None:
    other = frame(spark, ("x", 1.5), columns="name string, amount double")
    with pytest.raises(SchemaMismatchError):
        other.write.format("pydelta").mode("overwrite").save(table)
    other.write.format("pydelta").mode("overwrite").option("overwriteSchema", "true").partitionBy("name").save(table)
    assert stored(table) == [("x", 1.5)]
    assert PlainTable(table).metadata.partition_columns == ("name",)


# ---------------------------------------------------------------- other options


def test_append_with_merge_schema_adds_columns(spark: SparkSession, table: str, conf: Any) -> None:
    more = frame(spark, (4, "tue", "x"), columns=COLUMNS + ", note string")
    more.write.format("pydelta").mode("append").option("mergeSchema", "true").save(table)
    assert (4, "tue", "x") in stored(table) and (1, "mon", None) in stored(table)
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    frame(spark, (5, "tue", 1), columns=COLUMNS + ", count int").write.format("pydelta").mode("append").save(table)
    assert PlainTable(table).to_arrow().column_names == ["id", "day", "note", "count"]
    with pytest.raises(SchemaMismatchError):
        frame(spark, (6, 2), columns="id bigint, z int").write.save(table, format="pydelta", mode="append", mergeSchema=False)


def test_append_with_a_recorded_transaction_does_nothing(spark: SparkSession, table: str, conf: Any) -> None:
    def append(version: int) -> None:
        rows = frame(spark, (version, "wed")).write.format("pydelta").mode("append")
        rows.options(txnAppId="loader", txnVersion=version).save(table)

    append(10)
    append(10)
    append(9)
    assert (PlainTable(table).version, [row for row in stored(table) if row[1] == "wed"]) == (1, [(10, "wed")])
    append(11)
    assert PlainTable(table).version == 2
    conf("spark.databricks.delta.write.txnAppId", "loader")
    conf("spark.databricks.delta.write.txnVersion", "11")
    conf("spark.databricks.delta.write.txnVersion.autoReset.enabled", "true")
    frame(spark, (0, "wed")).write.format("pydelta").mode("append").save(table)
    assert PlainTable(table).version == 2
    assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None


def test_write_options_of_files_and_commits_are_kept(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    path = str(tmp_path / "t")
    conf("spark.databricks.delta.commitInfo.userMetadata", "nightly")
    rows = spark.range(0, 10, 1, 1)
    rows.write.format("pydelta").options(maxRecordsPerFile=4, compression="gzip", isolationLevel="serializable").save(path)
    files = list(Path(path).glob("*.parquet"))
    assert sorted(pq.read_metadata(file).num_rows for file in files) == [2, 4, 4]
    assert {pq.read_metadata(file).row_group(0).column(0).compression for file in files} == {"GZIP"}
    assert last_commit(path)["userMetadata"] == "nightly"
    rows.write.format("pydelta").mode("overwrite").option("dataChange", "false").option("userMetadata", "own").save(path)
    assert last_commit(path)["userMetadata"] == "own"
    log = (Path(path) / "_delta_log" / f"{1:020d}.json").read_text()
    assert '"dataChange":false' in log and '"dataChange":true' not in log


def test_columns_of_rows_without_nulls_may_hold_nulls_later(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1).write.format("pydelta").save(path)
    spark.sql("select cast(null as bigint) as id").write.format("pydelta").mode("append").save(path)
    assert {row["id"] for row in PlainTable(path).to_arrow().to_pylist()} == {0, None}


# ---------------------------------------------------------------- other writers


def overwrite_while_another_appends(spark: SparkSession, table: str, signals: Path, level: str) -> None:
    """Replaces the rows of mon; between its planning and its commit another writer appends one."""
    started, go = str(signals / f"started {level}"), str(signals / f"go {level}")

    def wait(number: int) -> int:
        Path(started).touch()
        until = time.monotonic() + 60
        while not Path(go).exists() and time.monotonic() < until:
            time.sleep(0.01)
        return number

    rows = frame(spark, (9, "mon")).withColumn("id", F.udf(lambda number: wait(number), "bigint")("id"))
    options = {"replaceWhere": "day = 'mon'", "isolationLevel": level}
    with ThreadPoolExecutor(1) as pool:
        write = pool.submit(rows.write.format("pydelta").mode("overwrite").options(**options).save, table)
        while not Path(started).exists() and not write.done():
            time.sleep(0.01)
        write_delta(table, pa.table({"id": pa.array([5], pa.int64()), "day": ["mon"]}), mode="append")
        Path(go).touch()
        write.result(timeout=60)


def test_overwrite_conflicts_with_append_only_if_serializable(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    with pytest.raises(ConcurrentAppendException, match="WRITE") as caught:
        overwrite_while_another_appends(spark, table, tmp_path, "Serializable")
    assert isinstance(caught.value, PySparkException)
    assert stored(table) == [(1, "mon"), (2, "mon"), (3, "tue"), (5, "mon")]
    assert len(list(Path(table).rglob("*.parquet"))) == 3, "the files of the write that lost are gone"
    overwrite_while_another_appends(spark, table, tmp_path, "SnapshotIsolation")
    assert stored(table) == [(3, "tue"), (5, "mon"), (9, "mon")]


# ---------------------------------------------------------------- optimizeWrite


def files_after(rows: DataFrame, path: str, **options: str) -> int:
    """The number of files of the newest version after an overwrite."""
    rows.write.format("pydelta").mode("overwrite").options(**options).save(path)
    return int(PlainTable(path).snapshot.num_files)


def test_optimize_write_writes_fewer_files_and_the_same_rows(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "concat('d', id % 2) as day")
    rows.write.format("pydelta").partitionBy("day").save(path)
    assert PlainTable(path).snapshot.num_files == 8
    expected = stored(path)
    assert files_after(rows, path, optimizeWrite="true") == 2
    assert stored(path) == expected
    conf("spark.databricks.delta.optimizeWrite.enabled", "true")
    assert files_after(rows, path) == 2
    assert files_after(rows, path, optimizeWrite="false") == 8


def test_optimize_write_by_table_property_counts(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 40, 1, 4)
    rows.write.format("pydelta").option(OPTIMIZE_PROPERTY, "true").save(path)
    assert PlainTable(path).snapshot.num_files == 1
    assert files_after(rows, path) == 1
    assert stored(path) == [(n,) for n in range(40)]
    with pytest.raises(InvalidOptionError, match="optimizeWrite"):
        files_after(rows, path, optimizeWrite="on")


# ---------------------------------------------------------------- what cannot be written


def test_frame_needs_columns_but_no_rows_to_create_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(SchemaMismatchError) as caught:
        spark.range(3).select().write.format("pydelta").save(path)
    assert caught.value.error_class == "DELTA_EMPTY_DATA"
    with pytest.raises(SchemaMismatchError) as caught:
        spark.range(3).selectExpr("id", "id as ID").write.format("pydelta").save(path)
    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
    spark.createDataFrame([], COLUMNS).write.format("pydelta").save(path)
    assert (PlainTable(path).version, stored(path)) == (0, [])
    assert not list(Path(path).glob("*.parquet"))


# ---------------------------------------------------------------- values of odd types


def test_null_variants_are_appended_updated_and_copied(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    null = "cast(null as variant)"
    spark.sql(
        f"select 1 id, parse_json('1') v, array({null}) l union all select 2, {null}, null union all select 3, {null}, array()"
    ).coalesce(1).write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 2", {"v": "parse_json('{\"a\": 2}')"})
    table.update("id = 1", {"v": null})
    table.delete("id = 3")
    variants = spark.read.format("pydelta").load(path).selectExpr("id", "to_json(v)", "l[0] is null", "size(l)").orderBy("id")
    assert [tuple(row) for row in variants.collect()] == [(1, None, True, 1), (2, '{"a":2}', True, None)]


# ---------------------------------------------------------------- void

VOID_STRUCT = "named_struct('x', null, 'y', id, 't', named_struct('u', null, 'w', 'a'))"
VOID_ROWS = f"select id, null as v, if(id = 2, null, {VOID_STRUCT}) as s"


def void_row(number: int, y: int | None, x: int | None = None) -> dict[str, Any]:
    return {"id": number, "v": None, "s": None if y is None else {"x": x, "y": y, "t": {"u": None, "w": "a"}}}


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_void_columns_and_fields_of_structs_are_written_and_read(
    spark: SparkSession, tmp_path: Path, conf: Any, columnar: str
) -> None:
    conf("spark.pydelta.columnarReader.enabled", columnar)
    path = str(tmp_path / "t")

    def read(condition: str = "true") -> list[dict[str, Any]]:
        matching = spark.read.format("pydelta").load(path).filter(condition).sort("id")
        return [row.asDict(recursive=True) for row in matching.collect()]

    spark.sql(f"{VOID_ROWS} from range(1, 4)").coalesce(1).write.format("pydelta").save(path)
    spark.sql(f"{VOID_ROWS} from range(4, 5)").write.format("pydelta").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("s.x is null and id = 3")
    table.update("id = 1 and s.x is null", {"s.y": "10L", "s.x": "null"})
    source = spark.sql("select 4L as id union all select 5L")
    matched = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"s.y": "40L"})
    matched.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    table.optimize().executeCompaction()
    assert read() == [void_row(1, 10), void_row(2, None), void_row(4, 40), void_row(5, None)]
    assert read("s.x is not null or v is not null") == []
    assert spark.read.format("pydelta").load(path).select("s.x", "v").distinct().collect() == [(None, None)]
    typed = spark.sql("select 6L as id, named_struct('x', 60, 'y', 6L, 't', named_struct('u', null, 'w', 'a')) as s")
    typed.write.format("pydelta").mode("append").option("mergeSchema", "true").save(path)
    assert read("s.x = 60 or id = 1") == [void_row(1, 10), void_row(6, 6, 60)]


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        ("array() as c", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        ("named_struct('m', map('k', null)) as c", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        ("named_struct('x', null) as c", "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS"),
    ],
)
def test_void_that_files_cannot_leave_out_is_refused(spark: SparkSession, tmp_path: Path, column: str, condition: str) -> None:
    with pytest.raises(SchemaMismatchError, match="Column c") as caught:
        spark.sql(f"select 1 as i, {column}").write.format("pydelta").save(str(tmp_path / "t"))
    assert caught.value.error_class == condition
