"""Names of Spark's catalog: saveAsTable, insertInto, writeTo, and reads by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import pruning
from spark_plugin.dataframe_api import catalog
from spark_plugin.exceptions import (
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.usefixtures("plain_plans")

COLUMNS = "id bigint, day string"


@pytest.fixture
def name(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table's name in a separate database, whose directory is tmp_path."""
    spark.sql(f"create database shop location '{tmp_path / 'shop'}'")
    yield "shop.Sales"
    spark.sql("drop database shop cascade")


@pytest.fixture
def path(tmp_path: Path, name: str) -> str:
    """The path of the table."""
    return str(tmp_path / "shop" / "sales")


@pytest.fixture
def entered(spark: SparkSession, name: str, path: str) -> str:
    """The name of an existing table: partitioned by day, 1 and 2 mon, 3 tue."""
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "tue"]})
    write_delta(path, rows, partition_by=["day"])
    spark.sql(f"create table {name} using pydelta location '{path}'")
    return name


def frame(spark: SparkSession, *rows: tuple[Any, ...], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(list(rows), columns).coalesce(1)


def stored(path: str) -> list[tuple[Any, ...]]:
    """The rows of the newest version, read without Spark."""
    return sorted(tuple(row.values()) for row in PlainTable(path).to_arrow().to_pylist())


# ---------------------------------------------------------------- reading


def test_read_by_name_is_pruned_and_takes_paths_literally(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "a b%20c'd")
    write_delta(path, pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["mon", "tue"]}), partition_by=["day"])
    text = path.replace("'", "\\'")
    spark.sql(f"create table {name} using pydelta options (path '{text}') comment 'ours' tblproperties ('team' = 'b')")
    before = pruning.status(spark)["pruning"].used
    assert [tuple(row) for row in spark.sql(f"select id from {name} where day = 'tue'").collect()] == [(2,)]
    status = pruning.status(spark)
    assert status["pruning"].used > before
    assert status.last_scan is not None and (status.last_scan.files_kept, status.last_scan.files_total) == (1, 2)
    frame(spark, (3, "wed")).write.insertInto(name)
    assert stored(path) == [(1, "mon"), (2, "tue"), (3, "wed")]


def test_columns_of_a_name_say_nothing_but_what_the_table_s_do(spark: SparkSession, name: str) -> None:
    rows = frame(spark, (1, "mon"))
    rows.write.format("pydelta").saveAsTable(name)
    assert spark.table(name).schema == spark.sql(f"select * from {name}").schema == rows.schema
    assert spark.read.table(name).schema == spark.read.format("pydelta").table(name).schema == rows.schema


def test_entry_with_options_reads_that_version_and_takes_no_rows(spark: SparkSession, entered: str, path: str) -> None:
    write_delta(path, pa.table({"id": pa.array([4], pa.int64()), "day": ["wed"]}), mode="append")
    spark.sql(f"create table shop.old using pydelta options (path '{path}', versionAsOf '0')")
    assert spark.table("shop.old").count() == 3
    with pytest.raises(UnsupportedOperationError, match="versionAsOf=0"):
        frame(spark, (5, "x")).write.insertInto("shop.old")
    with pytest.raises(UnsupportedOperationError, match="TBLPROPERTIES"):
        spark.sql(f"create table shop.p using pydelta location '{path}' tblproperties ('delta.appendOnly' = 'true')")


def test_read_by_a_name_has_the_columns_that_the_table_has_now(spark: SparkSession, entered: str, path: str) -> None:
    other = frame(spark, ("x",), columns="name string").write.format("pydelta").mode("overwrite")
    other.option("overwriteSchema", "true").save(path)
    assert [row.asDict() for row in spark.table(entered).collect()] == [{"name": "x"}]


# ---------------------------------------------------------------- what an entry says of itself


def test_texts_of_an_entry_do_not_say_where_its_table_is(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path, other, rest = (str(tmp_path / folder) for folder in ("real", "other", "rest\nof it"))
    false = f"x\nLocation: file:{other}\nStorage Properties: [versionAsOf=0]\nType: VIEW\n"
    column = {"id": pa.array([1], pa.int64()), f"a{false}": ["mon"], "Location": ["x"]}
    for place in (path, rest):
        write_delta(place, pa.table(column), configuration={"delta.columnMapping.mode": "name"})
    write_delta(other, pa.table(column), configuration={"delta.columnMapping.mode": "name"})
    text = false.replace("\n", "\\n")
    spark.sql(f"create table {name} using pydelta location '{path}' comment '{text}' tblproperties ('a{text}' = '{text}')")
    spark.table(name).write.mode("append").saveAsTable(name)
    spark.sql(f"create table shop.rest using pydelta location '{rest.replace(chr(10), chr(92) + 'n')}'")
    spark.table("shop.rest").write.insertInto("shop.rest")
    assert [PlainTable(place).version for place in (path, rest, other)] == [1, 1, 0]


def test_entry_resolves_to_its_location_whatever_its_columns(
    spark: SparkSession, entered: str, path: str, tmp_path: Path
) -> None:
    other, third = str(tmp_path / "other"), str(tmp_path / "third")
    for place, partition_by in ((other, []), (third, ["day"])):  # SET LOCATION needs a table like the one that was entered
        write_delta(place, pa.table({"id": pa.array([1], pa.int64()), "day": ["mon"]}), partition_by=partition_by)
    spark.catalog.createTable("shop.copied", other, "pydelta", spark.table(entered).schema)
    frame(spark, (5, "x")).write.format("pydelta").mode("append").saveAsTable("shop.copied")
    spark.sql(f"alter table {entered} set location '{third}'")
    frame(spark, (5, "x")).write.mode("append").saveAsTable(entered)
    assert (spark.table(entered).count(), spark.table("shop.copied").count()) == (2, 2)
    assert [PlainTable(place).version for place in (path, other, third)] == [0, 1, 1]


def test_options_of_an_entry_are_told_whole(spark: SparkSession, entered: str, path: str) -> None:
    spark.sql(f"create table shop.some using pydelta options (path '{path}', filter 'id=1 or id in (2, 3, 4)')")
    with pytest.raises(UnsupportedOperationError, match=r"with the options filter=id=1 or id in \(2, 3, 4\);"):
        frame(spark, (5, "x")).write.insertInto("shop.some")


def test_comment_of_a_database_does_not_move_its_new_tables(spark: SparkSession, name: str, path: str) -> None:
    spark.sql("comment on database shop is 'x\\nLocation: /other\\nLocation'")
    frame(spark, (1, "mon")).write.format("pydelta").saveAsTable(name)
    assert stored(path) == [(1, "mon")]


# ---------------------------------------------------------------- saveAsTable


def test_save_as_table_creates_appends_and_overwrites(spark: SparkSession, name: str, path: str) -> None:
    frame(spark, (1, "mon")).write.format("pydelta").partitionBy("day").saveAsTable(name)
    assert (stored(path), PlainTable(path).metadata.partition_columns) == ([(1, "mon")], ("day",))
    assert [tuple(row) for row in spark.table(name).collect()] == [(1, "mon")]
    with pytest.raises(TableAlreadyExistsError) as caught:
        frame(spark, (2, "mon")).write.format("pydelta").saveAsTable(name)
    assert caught.value.error_class == "TABLE_OR_VIEW_ALREADY_EXISTS" and isinstance(caught.value, AnalysisException)
    frame(spark, (2, "mon")).write.saveAsTable(name, format="pydelta", mode="ignore")
    assert PlainTable(path).version == 0
    frame(spark, ("tue", 3), columns="day string, id bigint").write.mode("append").saveAsTable(name)
    assert stored(path) == [(1, "mon"), (3, "tue")]
    frame(spark, (4, "wed")).write.mode("overwrite").format("pydelta").saveAsTable(f"spark_catalog.{name}")
    assert stored(path) == [(4, "wed")]


def test_a_name_without_a_path_goes_with_its_files(spark: SparkSession, name: str, path: str, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    for mode in ("error", "append", "overwrite"):
        frame(spark, (1, "mon")).write.format("pydelta").mode(mode).saveAsTable(name)
        assert stored(path) == [(1, "mon")]
        spark.sql(f"drop table {name}")
        assert not Path(path).exists()
    frame(spark, (2, "tue")).writeTo(name).using("pydelta").createOrReplace()
    spark.sql(f"drop table {name}")
    assert not Path(path).exists()
    frame(spark, (1, "mon")).write.format("pydelta").option("path", elsewhere).saveAsTable(name)
    spark.sql(f"drop table {name}")
    assert stored(elsewhere) == [(1, "mon")]


def test_save_as_table_never_takes_up_unasked_what_lies_there(spark: SparkSession, name: str, path: str) -> None:
    rows = frame(spark, (1, "mon"))
    rows.write.format("pydelta").save(path)
    for mode in ("error", "append", "ignore"):
        with pytest.raises(TableAlreadyExistsError, match="CREATE TABLE"):
            rows.write.format("pydelta").mode(mode).saveAsTable(name)
    assert (PlainTable(path).version, spark.catalog.tableExists(name)) == (0, False)
    rows.write.format("pydelta").mode("overwrite").saveAsTable(name)
    assert (PlainTable(path).version, spark.table(name).count()) == (1, 1)
    spark.sql(f"drop table {name}")  # another table may have the name now
    assert stored(path) == [(1, "mon")]


def test_a_name_does_not_take_with_it_what_lay_there_before(spark: SparkSession, name: str, path: str) -> None:
    def made(how: Callable[[], object]) -> None:
        how()
        assert spark.table(name).count() == 1
        spark.sql(f"drop table {name}")
        assert theirs.read_text() == "1,2"
        shutil.rmtree(Path(path, "_delta_log"))

    theirs = Path(path, "rows.csv")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("1,2")
    made(lambda: frame(spark, (1, "mon")).write.format("pydelta").saveAsTable(name))
    made(lambda: spark.sql(f"create or replace table {name} using pydelta as select 1 as x"))
    for sql in (spark.sql, spark._jsparkSession.sql):
        with pytest.raises(Exception, match="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"):
            sql(f"create table {name} using pydelta as select 1 as x")
        assert theirs.read_text() == "1,2"
        assert not spark.catalog.tableExists(name)


@pytest.mark.parametrize("odd", ["`my-view`", "shop.`x-y`", "`a b`"])
def test_names_that_no_table_can_have_are_spark_s(spark: SparkSession, odd: str) -> None:
    assert not catalog.is_ours(spark, odd)


def test_save_as_table_with_a_path_writes_there_and_adds_a_name(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere")
    write_delta(path, pa.table({"id": pa.array([1], pa.int64()), "day": ["mon"]}))
    rows = frame(spark, (2, "tue"))
    with pytest.raises(TableAlreadyExistsError):
        rows.write.format("pydelta").option("path", path).saveAsTable(name)
    rows.write.format("pydelta").mode("append").option("path", path).saveAsTable(name)
    assert (stored(path), spark.table(name).count()) == ([(1, "mon"), (2, "tue")], 2)
    with pytest.raises(InvalidOptionError, match="elsewhere"):
        rows.write.format("pydelta").mode("append").option("path", str(tmp_path / "third")).saveAsTable(name)


def test_save_as_table_that_changes_columns_enters_them(spark: SparkSession, entered: str) -> None:
    more = frame(spark, (4, "wed", "x"), columns=COLUMNS + ", note string")
    more.write.format("pydelta").mode("append").option("mergeSchema", "true").saveAsTable(entered)
    assert spark.table(entered).columns == ["id", "day", "note"]
    other = frame(spark, (1.5,), columns="amount double")
    other.write.format("pydelta").mode("overwrite").options(overwriteSchema=True).partitionBy().saveAsTable(entered)
    assert [tuple(row) for row in spark.table(entered).collect()] == [(1.5,)]


def test_save_as_table_over_what_is_not_ours_is_refused(spark: SparkSession, entered: str, path: str) -> None:
    spark.sql(f"create table shop.copy using parquet as select * from {entered}")
    spark.sql(f"create view shop.sales_view as select * from {entered}")
    rows = frame(spark, (4, "wed"))
    with pytest.raises(UnsupportedOperationError, match="parquet"):
        rows.write.format("pydelta").mode("append").saveAsTable("shop.copy")
    with pytest.raises(UnsupportedOperationError, match="view"):
        rows.write.format("pydelta").mode("append").saveAsTable("shop.sales_view")
    rows.write.insertInto("shop.copy")
    rows.write.mode("append").saveAsTable("shop.copy")
    assert (spark.table("shop.copy").count(), PlainTable(path).version) == (5, 0)
    with pytest.raises(UnsupportedOperationError, match="spark_catalog"):
        rows.write.format("pydelta").saveAsTable("other.shop.sales")
    with pytest.raises(InvalidOptionError, match="letters"):
        rows.write.format("pydelta").saveAsTable("shop.`a-b`")


# ---------------------------------------------------------------- insertInto


def test_insert_into_goes_by_position(spark: SparkSession, entered: str, path: str) -> None:
    frame(spark, (4, "wed"), columns="day bigint, id string").write.insertInto(entered)
    assert stored(path)[-1] == (4, "wed")
    with pytest.raises(SchemaMismatchError, match="by position"):
        spark.range(1).write.insertInto(entered)
    with pytest.raises(InvalidOptionError, match="partitionBy"):
        frame(spark, (5, "x")).write.partitionBy("day").insertInto(entered)
    assert PlainTable(path).version == 1


def test_insert_into_overwrites_all_or_only_its_partitions(spark: SparkSession, entered: str, path: str) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        frame(spark, (4, "tue")).write.insertInto(entered, overwrite=True)
        assert stored(path) == [(1, "mon"), (2, "mon"), (4, "tue")]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    frame(spark, (5, "tue")).write.mode("overwrite").insertInto(entered)
    assert stored(path) == [(5, "tue")]


def structs(names: str) -> str:
    """A query with 1 in the first field of each struct and 2 in the second. names: of these fields, such as yx."""
    pair = f"named_struct('{names[0]}', 1, '{names[1]}', 2L)"
    deep = f"named_struct('{names[0]}', 1, '{names[1]}', array({pair}))"
    return f"select 1 as b, {pair} as s2, array({pair}) as l2, map({pair}, map('k', {deep})) as m2"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("names", ["xy", "yx", "pq"])
def test_insert_into_matches_struct_fields_by_position(
    spark: SparkSession, name: str, path: str, names: str, overwrite: bool
) -> None:
    pair = "struct<x:int,y:int>"
    deep = f"struct<x:string,y:array<{pair}>>"
    spark.sql(f"create table {name} (a int, s {pair}, l array<{pair}>, m map<{pair},map<string,{deep}>>) using pydelta")
    spark.sql(structs(names)).write.insertInto(name, overwrite=overwrite)
    one = {"x": 1, "y": 2}
    assert stored(path) == [(1, one, [one], [(one, [("k", {"x": "1", "y": [one]})])])]


def test_saves_and_appends_by_name_match_struct_fields_by_name(spark: SparkSession, name: str, path: str) -> None:
    spark.sql(f"create table {name} (a int, s struct<x:int,y:int>) using pydelta")
    rows = spark.sql("select named_struct('y', 1, 'x', 2) as s, 1 as a")
    rows.write.format("pydelta").mode("append").saveAsTable(name)
    rows.writeTo(name).append()
    spark.sql("select 2 as a, named_struct('y', 1, 'x', 2) as s").write.insertInto(name)
    assert stored(path) == [(1, {"x": 2, "y": 1})] * 2 + [(2, {"x": 1, "y": 2})]


def test_insert_into_refuses_too_few_or_too_many_fields(spark: SparkSession, name: str, path: str) -> None:
    spark.sql(f"create table {name} (a int, s struct<x:int,y:int>) using pydelta")
    for fields, condition in (
        ("'x', 1", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("'y', 1, 'x', 2, 'z', 3", "DELTA_METADATA_MISMATCH"),
    ):
        with pytest.raises(SchemaMismatchError, match=r"column s of the table has 2 fields \(x, y\)") as caught:
            spark.sql(f"select 1 as a, named_struct({fields}) as s").write.insertInto(name)
        assert caught.value.error_class == condition
    with pytest.raises(SchemaMismatchError, match="too large") as caught:
        spark.sql("select 1 as a, named_struct('y', 3000000000L, 'x', 2) as s").write.insertInto(name)
    assert caught.value.error_class == "CAST_OVERFLOW_IN_TABLE_INSERT"
    more = spark.sql("select 1 as a, named_struct('y', 1, 'x', 2, 'z', 3) as s, 'b' as b")
    more.write.option("mergeSchema", "true").insertInto(name)
    assert stored(path) == [(1, {"x": 1, "y": 2, "z": 3}, "b")]


def test_insert_into_gives_void_columns_a_type_with_merge_schema(spark: SparkSession, name: str, path: str) -> None:
    spark.sql("select 1 as a, null as v, named_struct('x', null, 'y', 1) as s").write.format("pydelta").saveAsTable(name)
    rows = spark.sql("select 2 as a, 'text' as v, named_struct('p', 5, 'q', 6) as s")
    for insert in (rows.write.insertInto, lambda table: spark.sql(f"insert into {table} values (2, 'text', null)")):
        with pytest.raises(SchemaMismatchError, match=r"olumn v.*void"):
            insert(name)
    rows.write.option("mergeSchema", "true").insertInto(name)
    assert stored(path) == [(1, None, {"x": None, "y": 1}), (2, "text", {"x": 5, "y": 6})]


# ---------------------------------------------------------------- writeTo


def test_write_to_creates_and_replaces(spark: SparkSession, name: str, path: str) -> None:
    rows = frame(spark, (1, "mon"))
    with pytest.raises(TableNotFoundError):
        rows.writeTo(name).using("pydelta").replace()
    writer = rows.writeTo(name).using("pydelta").partitionedBy(F.col("day")).tableProperty("delta.enableChangeDataFeed", "true")
    writer.create()
    assert (stored(path), PlainTable(path).metadata.partition_columns) == ([(1, "mon")], ("day",))
    assert PlainTable(path).metadata.configuration == {"delta.enableChangeDataFeed": "true"}
    with pytest.raises(TableAlreadyExistsError):
        rows.writeTo(name).using("pydelta").create()
    other = frame(spark, ("x", 2.5), columns="name string, amount double")
    other.writeTo(name).using("pydelta").createOrReplace()
    assert [tuple(row) for row in spark.table(name).collect()] == [("x", 2.5)]
    assert PlainTable(path).metadata.partition_columns == ()
    other.writeTo("shop.second").using("pydelta").createOrReplace()
    assert spark.table("shop.second").count() == 1


VERBS: dict[str, tuple[Callable[[Any], None], list[tuple[int, str]]]] = {
    "append": (lambda to: to.append(), [(1, "mon"), (2, "mon"), (3, "tue"), (9, "tue")]),
    "overwrite": (lambda to: to.overwrite(F.col("day") == "tue"), [(1, "mon"), (2, "mon"), (9, "tue")]),
    "overwrite_sql": (lambda to: to.overwrite(F.expr("id >= 2 and day <> 'x'")), [(1, "mon"), (9, "tue")]),
    "overwrite_all": (lambda to: to.overwrite(F.lit(True)), [(9, "tue")]),
    "partitions": (lambda to: to.overwritePartitions(), [(1, "mon"), (2, "mon"), (9, "tue")]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_write_to_an_entered_table(spark: SparkSession, entered: str, path: str, verb: str) -> None:
    act, expected = VERBS[verb]
    act(frame(spark, (9, "tue")).writeTo(entered))
    assert stored(path) == expected


def test_write_to_refuses_what_a_table_cannot_have(spark: SparkSession, entered: str, path: str) -> None:
    rows = frame(spark, (9, "tue"))
    with pytest.raises(InvalidOptionError, match="replaceWhere"):
        rows.writeTo(entered).overwrite(F.udf(lambda n: n > 1, "boolean")("id"))
    with pytest.raises(AnalysisException, match="nothing_like_it"):
        rows.writeTo(entered).overwrite(F.col("nothing_like_it") == 1)
    with pytest.raises(UnsupportedOperationError, match="partitionedBy"):
        rows.writeTo("shop.new").using("pydelta").partitionedBy(F.years("day")).create()
    with pytest.raises(InvalidOptionError, match="'team'"):
        rows.writeTo("shop.new").using("pydelta").tableProperty("team", "b").create()
    assert PlainTable(path).version == 0 and not spark.catalog.tableExists("shop.new")


def test_write_to_other_formats_is_spark_s_own(spark: SparkSession, name: str) -> None:
    frame(spark, (1, "mon")).writeTo(name).using("parquet").create()
    with pytest.raises(AnalysisException, match="v1 table"):
        frame(spark, (2, "mon")).writeTo(name).append()
    assert spark.table(name).count() == 1
