"""Tables in SQL by path and by name: versions, views, pruning, other sources' tables, and refusals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, WriterCommitMessage

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import StructField
from spark_plugin import pruning, register
from spark_plugin.exceptions import (
    InvalidOptionError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from spark_plugin.session_source import nonce_of
from tests.support.runs.sampling import sampled

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture(scope="module", autouse=True)
def statements_reach_spark(spark: SparkSession) -> Iterator[None]:
    """Like statements from the JVM. Python's `sql` would run those that change our tables itself."""
    spark.conf.set("spark.pydelta.sql.enabled", "false")
    yield
    spark.conf.set("spark.pydelta.sql.enabled", "true")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Version 0: 1 and 2 mon. Version 1: 3 tue. The directory's name is data, whatever it contains."""
    return two_versions(str(tmp_path / "a b%20'\"\\ü;--"))


def two_versions(place: str) -> str:
    write_delta(place, pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["mon", "mon"]}), partition_by=["day"])
    write_delta(place, pa.table({"id": pa.array([3], pa.int64()), "day": ["tue"]}), mode="append")
    return place


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"create database named location '{tmp_path / 'named'}'")
    yield "named"
    spark.sql("drop database named cascade")


@pytest.fixture
def name(spark: SparkSession, database: str, tmp_path: Path) -> str:
    """A name of a table of two versions, as in `path`."""
    place = str(tmp_path / "named" / "sales")
    write_delta(place, pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["mon", "mon"]}), partition_by=["day"])
    write_delta(place, pa.table({"id": pa.array([3], pa.int64()), "day": ["tue"]}), mode="append")
    spark.sql(f"create table named.sales using pydelta location '{place}'")
    return "named.sales"


def by_path(path: str, catalog: str = "pydelta") -> str:
    return f"{catalog}.`{path.replace('`', '``')}`"


def columns_of(place: str) -> tuple[StructField, ...]:
    return Snapshot.load(LocalStore(place)).schema.fields


def ids(spark: SparkSession, source: str, where: str = "true") -> list[int]:
    return sorted(row["id"] for row in spark.sql(f"select id from {source} where {where}").collect())


def stored(path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in PlainTable(path).to_arrow().to_pylist())


# ---------------------------------------------------------------- reading by path


@pytest.mark.parametrize("catalog", ["pydelta", "delta"])
def test_select_by_path_at_any_version(spark: SparkSession, path: str, catalog: str) -> None:
    table, first = by_path(path, catalog), by_path(f"{path}@v0", catalog)
    assert ids(spark, table) == [1, 2, 3]
    assert ids(spark, f"{table} version as of 0") == ids(spark, first) == [1, 2]
    assert ids(spark, f"(select n.id from {table} n left anti join {table} version as of 0 o on n.id = o.id)") == [3]
    assert ids(spark, f"(with o as (select * from {first}) select * from o where id in (select id - 1 from {table}))") == [1, 2]
    assert spark.table(table).columns == ["id", "day"]


def test_breaks_of_lines_and_backticks_in_a_path_are_data(spark: SparkSession, tmp_path: Path) -> None:
    table = by_path(two_versions(str(tmp_path / "a\n`b`; select 1")))
    spark.sql(f"insert into {table} values (4, 'x')")
    assert ids(spark, table) == [1, 2, 3, 4]


def test_select_by_path_at_a_time_that_is_text_or_an_expression(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_delta(place, pa.table({"id": pa.array([1], pa.int64())}))
    time.sleep(0.05)
    between = spark.sql("select current_timestamp() as t").first()["t"]  # type: ignore[index]
    time.sleep(0.05)
    write_delta(place, pa.table({"id": pa.array([2], pa.int64())}), mode="append")
    table, text = by_path(place), f"'{between:%Y-%m-%d %H:%M:%S.%f}'"
    for moment in (text, f"cast({text} as timestamp)", f"timestamp {text} + interval 0 seconds"):
        assert ids(spark, f"{table} timestamp as of {moment}") == [1], moment
    with pytest.raises(TimestampOutOfRangeError):
        spark.sql(f"select * from {table} timestamp as of current_timestamp() + interval 1 day")


def test_scan_by_path_is_pruned_and_answered_by_the_log(spark: SparkSession, path: str) -> None:
    table, before = by_path(path), pruning.status(spark)
    assert ids(spark, table, "day = 'tue' and id > 2") == [3]
    after = pruning.status(spark)
    assert [after[road].used - before[road].used for road in ("pruning", "parquet")] == [1, 1]
    assert after["pruning"].skipped == before["pruning"].skipped
    assert after.last_scan is not None and (after.last_scan.files_kept, after.last_scan.files_total) == (1, 2)
    assert spark.sql(f"select count(*) as n from {table}").first() == (3,)
    assert pruning.status(spark)["log"].used == after["log"].used + 1
    shown = spark.sql(f"select _metadata.file_path as p from {table} where id = 3").first()
    assert shown is not None and "day=tue" in shown["p"]


def test_views_over_paths(spark: SparkSession, path: str, database: str, tmp_path: Path) -> None:
    place = str(tmp_path / "v")
    write_delta(place, pa.table({"id": pa.array([1], pa.int64())}))
    spark.sql(f"create temporary view now_of as select * from {by_path(path)} where id > 1")
    spark.sql(f"create view named.first as select id from {by_path(place)} version as of 0")
    write_delta(place, pa.table({"id": pa.array([2], pa.int64())}), mode="append")
    write_delta(path, pa.table({"id": pa.array([4], pa.int64()), "day": ["tue"]}), mode="append")
    assert (ids(spark, "now_of"), ids(spark, "named.first")) == ([2, 3, 4], [1])
    spark.catalog.dropTempView("now_of")


def test_query_options_apply_to_the_table_or_are_refused(spark: SparkSession, path: str) -> None:
    table = by_path(path)
    assert ids(spark, f"{table} with (filter = 'id > 1')") == [2, 3]
    assert ids(spark, f"{table} with (versionAsOf = '0')") == [1, 2]
    assert spark.read.option("versionAsOf", 0).table(table).count() == 2
    for option in ("`pydelta.view` = 'history'", "PYDELTA.FILES = '/x'", "path = '/other'"):
        with pytest.raises(InvalidOptionError):
            spark.sql(f"select * from {table} with ({option})").collect()
    with pytest.raises(InvalidOptionError, match="unknown"):
        spark.sql(f"select * from {table} with (nothing_like_it = '1')").collect()


def test_nonce_is_shown_by_no_plan_and_stands_in_no_setting(spark: SparkSession, path: str, name: str) -> None:
    texts = [str(row) for row in spark.sql("set").collect()]
    for source in (by_path(path), name):
        for query in (
            f"select id from {source} where id > 1",
            f"insert into {source} values (1, 'x')",
            f"describe extended {source}",
        ):
            texts += [str(row) for row in spark.sql(f"explain extended {query}").collect()]
        texts += [str(row) for row in spark.sql(f"describe extended {source}").collect()]
    assert not any(nonce_of(spark) in text for text in texts)


def test_what_is_not_there_is_said_by_its_path(spark: SparkSession, path: str, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="nowhere"):
        spark.sql(f"select * from {by_path(str(tmp_path / 'nowhere'))}")
    with pytest.raises(VersionNotFoundError):
        spark.sql(f"select * from {by_path(path)} version as of 7")
    with pytest.raises(AnalysisException):
        spark.sql("select * from pydelta.nothing")


def test_a_table_by_path_describes_itself(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    rows = pa.table({"id": pa.array([1], pa.int64()), "a`b": ["x"]})
    write_delta(place, rows, partition_by=["a`b"], configuration={"delta.columnMapping.mode": "name"})
    table = by_path(place)
    facts = {row["col_name"]: row["data_type"] for row in spark.sql(f"describe table extended {table}").collect()}
    assert (facts["id"], facts["Location"], facts["Provider"]) == ("bigint", place, "pydelta")
    properties = {row["key"]: row["value"] for row in spark.sql(f"show tblproperties {table}").collect()}
    assert properties["delta.columnMapping.mode"] == "name"
    assert [row[0] for row in spark.sql(f"show columns in {table}").collect()] == ["id", "a`b"]
    assert "PARTITIONED BY (`a``b`)" in spark.sql(f"show create table {table}").first()[0]  # type: ignore[index]
    with pytest.raises(AnalysisException, match="partition management"):
        spark.sql(f"show partitions {table}")


def test_path_is_not_dropped_by_sql(spark: SparkSession, path: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="nothing was"):
        spark.sql(f"drop table {by_path(path)}")
    assert (PlainTable(path).version, len(stored(path))) == (1, 3)


# ---------------------------------------------------------------- reading by name


def test_select_by_name_at_any_version(spark: SparkSession, name: str) -> None:
    assert ids(spark, name) == [1, 2, 3]
    assert ids(spark, f"spark_catalog.{name} version as of 0") == [1, 2]
    assert ids(spark, f"(select n.id from {name} n left anti join {name} version as of 0 o on n.id = o.id)") == [3]
    with pytest.raises(TimestampOutOfRangeError):
        spark.sql(f"select * from {name} timestamp as of current_timestamp() + interval 1 day")
    spark.sql(f"create view named.old as select id from {name} version as of 0")
    assert ids(spark, "named.old") == [1, 2]
    before = pruning.status(spark)["pruning"].used
    assert ids(spark, name, "day = 'tue'") == [3]
    assert pruning.status(spark)["pruning"].used > before


def test_entry_with_options_keeps_them_and_one_version(spark: SparkSession, name: str, tmp_path: Path) -> None:
    place = tmp_path / "named" / "sales"
    spark.sql(f"create table named.old using pydelta options (path '{place}', versionAsOf '0')")
    assert ids(spark, "named.old") == [1, 2]
    with pytest.raises(InvalidOptionError, match="one version"):
        spark.sql("select * from named.old version as of 1")
    with pytest.raises(AnalysisException, match="append"):
        spark.sql("insert into named.old values (9, 'x')")


def test_renamed_name_leads_to_its_table(spark: SparkSession, name: str) -> None:
    spark.sql(f"alter table {name} rename to named.other")
    assert ids(spark, "named.other") == [1, 2, 3]


def test_entry_of_delta_spark_is_opened_where_it_is_absent(spark: SparkSession, name: str, tmp_path: Path) -> None:
    assert ids(spark, by_path(str(tmp_path / "named" / "sales"), "delta")) == [1, 2, 3]


# ---------------------------------------------------------------- ALTER, as the JVM and scripts send it

ALTERATIONS = (
    "set tblproperties ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', 'team' = 'b')",
    "unset tblproperties ('team')",
    "add columns (`a.b` int comment 'inside' first, st struct<u: int> after id, short varchar(3))",
    "add columns (st.v smallint first)",
    "rename column `a.b` to `c.d`",
    "rename column st.u to w",
    "alter column `c.d` type bigint",
    "alter column `c.d` comment 'other'",
    "alter column `c.d` after id",
    "drop column st.w",
    "cluster by (id)",
)


@pytest.mark.parametrize("by", ["path", "name"])
def test_each_alteration_is_one_commit(spark: SparkSession, by: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    place, table = str(tmp_path / "plain"), by_path(str(tmp_path / "plain"))
    write_delta(place, pa.table({"id": pa.array([1], pa.int64()), "day": ["mon"]}))
    if by == "name":
        request.getfixturevalue("database")
        table = "named.plain"
        spark.sql(f"create table {table} using pydelta location '{place}'")
    for number, change in enumerate(ALTERATIONS, start=1):
        spark.sql(f"begin alter table {table} {change}; end")
        assert PlainTable(place).version == number, change
    schema = spark.sql(f"select * from {table}").schema
    assert schema.simpleString() == "struct<id:bigint,c.d:bigint,st:struct<v:smallint>,day:string,short:string>"
    (field,) = [field for field in columns_of(place) if field.name == "short"]
    assert field.metadata["__CHAR_VARCHAR_TYPE_STRING"] == "varchar(3)"
    spark.sql(f"alter table {table} replace columns (id bigint, day string)")
    assert spark.sql(f"select * from {table}").columns == ["id", "day"]
    for change, expected_text in (
        ("set tblproperties ('delta.nothing' = '1')", "delta.nothing"),
        ("alter column id type string", "id"),
    ):
        with pytest.raises(AnalysisException, match=expected_text):
            spark.sql(f"alter table {table} {change}")
    assert PlainTable(place).version == len(ALTERATIONS) + 1


def test_entry_of_one_version_is_not_altered(spark: SparkSession, name: str, tmp_path: Path) -> None:
    spark.sql(f"create table named.old using pydelta options (path '{tmp_path / 'named' / 'sales'}', versionAsOf '0')")
    with pytest.raises(UnsupportedOperationError, match="nothing was"):
        spark.sql("alter table named.old add columns (x int)")
    assert PlainTable(str(tmp_path / "named" / "sales")).version == 1


# ---------------------------------------------------------------- tables of others


def other_source() -> type[DataSource]:
    """Workers get it pickled by value."""

    class Reader(DataSourceReader):
        def read(self, partition: Any) -> Iterator[tuple[int]]:
            yield (1,)

    class Writer(DataSourceWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            assert len(list(iterator)) == 1
            return WriterCommitMessage()

    class Other(DataSource):
        @classmethod
        def name(cls) -> str:
            return "othersource"

        def schema(self) -> str:
            return "a int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

        def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
            return Writer()

    return Other


def test_tables_of_other_sources_stay_as_they_were(spark: SparkSession, database: str) -> None:
    for number, source in enumerate(("parquet", "orc", "csv", "json")):
        table = f"named.t{number}"
        spark.sql(f"create table {table} (x int, p int) using {source} partitioned by (p)")
        spark.sql(f"insert into {table} partition (p = 1) values (2)")
        spark.sql(f"alter table {table} add columns (y int)")
        assert [tuple(row) for row in spark.sql(f"select x, y, p from {table}").collect()] == [(2, None, 1)]
        assert spark.sql(f"show partitions {table}").first() == ("p=1",)
        spark.sql(f"truncate table {table}")
        assert spark.table(table).count() == 0
        with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
            spark.sql(f"select * from {table} version as of 0")
        spark.sql(f"drop table {table}")
    spark.dataSource.register(other_source())
    spark.sql("create table named.theirs using othersource")
    spark.sql("insert into named.theirs values (7)")
    spark.sql("create table named.made using othersource as select 8 as a")
    assert [tuple(row) for row in spark.sql("select * from named.theirs").collect()] == [(1,)]
    with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
        spark.sql("select * from named.theirs version as of 0")
    with pytest.raises(AnalysisException) as caught:
        spark.sql("create or replace table named.theirs (a bigint, b bigint generated always as (a + 1)) using othersource")
    assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    assert spark.catalog.tableExists("named.theirs"), "what is refused drops nothing"


def test_generated_columns_of_other_formats_fail_as_in_spark(spark: SparkSession, database: str) -> None:
    for kind in ("as (id + 1)", "always as identity"):
        column = f"b bigint generated {kind if kind.startswith('always') else 'always ' + kind}"
        for create in ("create table", "create or replace table"):
            with pytest.raises(AnalysisException) as caught:
                spark.sql(f"{create} named.theirs (id bigint, {column}) using parquet")
            assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    assert not spark.catalog.tableExists("named.theirs")


def test_table_of_a_database_stays_as_it_was(spark: SparkSession, database: str) -> None:
    options = "url 'jdbc:derby:memory:pydelta;create=true', driver 'org.apache.derby.iapi.jdbc.AutoloadedDriver'"
    spark.sql(f"create table named.jdbc using jdbc options ({options}, dbtable 'SYS.SYSSCHEMAS')")
    assert spark.sql("select count(*) from named.jdbc where SCHEMANAME = 'SYS'").first() == (1,)


@pytest.mark.parametrize("name", ["delta", "pydelta"])
def test_database_that_a_catalog_hides_is_told(spark: SparkSession, name: str) -> None:
    if spark.conf.get(f"spark.sql.catalog.{name}", None) is None:
        pytest.skip(f"{name} is no catalog here")
    spark.sql(f"create database spark_catalog.{name}")
    try:
        spark.sql(f"create table spark_catalog.{name}.x using parquet as select 1 as id")
        definition_sql = "create table {}.z (id int) using pydelta"
        for statement in (
            "select * from {}.x",
            "delete from {}.x",
            "show tables in {}",
            "drop table if exists {}.x",
            definition_sql,
        ):
            with pytest.raises(UnsupportedOperationError, match=f"hides the database {name}"):
                spark.sql(statement.format(name))
        assert spark.sql(f"select * from spark_catalog.{name}.x").collect() == [(1,)]
    finally:
        spark.sql(f"drop database spark_catalog.{name} cascade")


def test_tables_of_another_catalog_are_its_own(spark: SparkSession, database: str, conf: Callable[..., None]) -> None:
    """With its name in front, and as the current catalog, although USING is omitted."""
    catalog = "spark.sql.catalog.otherdb"
    conf({catalog: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog", "spark.sql.sources.default": "pydelta"})
    conf({f"{catalog}.url": "jdbc:derby:memory:other;create=true"})
    conf({f"{catalog}.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"})
    spark.sql("create table otherdb.APP.first (id int)")
    spark.sql("create table otherdb.second (id int)")
    try:
        spark.sql("use otherdb")
        spark.sql("create table APP.third (id int)")
        spark.sql("create table spark_catalog.named.ours (id int)")
        assert {row.tableName for row in spark.sql("show tables in otherdb.APP").collect()} == {"first", "second", "third"}
        assert spark.sql("select * from spark_catalog.named.ours").collect() == []
    finally:
        spark.sql("use spark_catalog")
        spark.sql("use default")


# ---------------------------------------------------------------- writing


def test_insert_in_every_form(spark: SparkSession, path: str, conf: Callable[..., None]) -> None:
    table = by_path(path)
    spark.sql(f"insert into {table} values (4, 'wed')")
    spark.sql(f"insert into {table} (day, id) values ('wed', 5)")
    spark.sql(f"insert into {table} by name select 'wed' as day, 6L as id")
    spark.sql(f"insert into {table} partition (day = 'thu') select 7L")
    assert ids(spark, table, "id > 3") == [4, 5, 6, 7]
    spark.sql(f"insert overwrite {table} partition (day = 'wed') select 8L")
    assert stored(path) == [(1, "mon"), (2, "mon"), (3, "tue"), (7, "thu"), (8, "wed")]
    conf({"spark.sql.sources.partitionOverwriteMode": "dynamic"})
    spark.sql(f"insert overwrite {table} values (9, 'wed'), (10, 'mon')")
    assert stored(path) == [(3, "tue"), (7, "thu"), (9, "wed"), (10, "mon")]
    conf({"spark.sql.sources.partitionOverwriteMode": "static"})
    spark.sql(f"insert overwrite {table} select id + 1, day from {table} where id < 8")
    assert stored(path) == [(4, "tue"), (8, "thu")]
    with pytest.raises(AnalysisException, match="TOO_MANY_DATA_COLUMNS"):
        spark.sql(f"insert into {table} values (1, 'x', 2)")
    with pytest.raises(AnalysisException, match="append"):
        spark.sql(f"insert into {by_path(path + '@v0')} values (1, 'x')")


REPLACED = {
    "text with quotes": ("t", "string", "'a\\'b\"`;--'", "'c'"),
    "date": ("t", "date", "date'2024-02-29'", "date'1582-10-01'"),
    "timestamp": ("t", "timestamp", "timestamp'2024-05-01 12:00:00.123456'", "timestamp'1900-01-01 00:00:00'"),
    "decimal": ("t", "decimal(20, 3)", "12345678901234567.891", "0.001"),
    "double": ("t", "double", "1.5D", "double('nan')"),
    "binary": ("t", "binary", "X'00FF27'", "X''"),
    "boolean": ("t", "boolean", "true", "false"),
    "odd name": ("a`b c.d", "bigint", "7L", "8L"),
}


@pytest.mark.parametrize("case", sampled(REPLACED, 3))
def test_replace_where_takes_constants_of_any_type_as_data(spark: SparkSession, tmp_path: Path, case: str) -> None:
    column, kind, replaced, kept_ids = REPLACED[case]
    place, quoted = str(tmp_path / "t"), f"`{column.replace('`', '``')}`"
    rows = spark.sql(f"select 1 as id, cast({replaced} as {kind}) as {quoted} union all select 2, cast({kept_ids} as {kind})")
    rows.write.format("pydelta").option("delta.columnMapping.mode", "name").save(place)
    table = by_path(place)
    spark.sql(f"insert into {table} replace where {quoted} = {replaced} select 3, {replaced}")
    assert ids(spark, table) == [2, 3]
    assert PlainTable(place).version == 1


def test_writes_through_names_views_and_scripts(spark: SparkSession, name: str, tmp_path: Path) -> None:
    place = str(tmp_path / "named" / "sales")
    spark.sql(f"insert into {name} values (4, 'wed')")
    spark.sql(f"execute immediate \"insert into {name} values (5, 'wed')\"")
    spark.sql(f"begin insert into {name} values (6, 'wed'); end")
    spark.range(1).selectExpr("7L as id", "'wed' as day").writeTo(by_path(place)).append()
    spark.range(1).selectExpr("8L as id", "'wed' as day").write.insertInto(by_path(place))
    assert stored(place)[3:] == [(4, "wed"), (5, "wed"), (6, "wed"), (7, "wed"), (8, "wed")]


def test_settings_of_the_session_hold_for_inserts(spark: SparkSession, path: str, conf: Callable[..., None]) -> None:
    conf(
        {
            "spark.databricks.delta.commitInfo.userMetadata": "mine",
            "spark.databricks.delta.write.txnAppId": "app",
            "spark.databricks.delta.write.txnVersion": "7",
            "spark.databricks.delta.optimizeWrite.enabled": "true",
        }
    )
    for _ in range(2):
        spark.sql(f"insert into {by_path(path)} values (4, 'mon')")
    table = PlainTable(path)
    assert (table.version, table.history(1).to_pylist()[0]["userMetadata"]) == (2, "mine")


def test_insert_that_this_road_cannot_do_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from spark_plugin.tables import DeltaTable, IdentityGenerator

    place = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(place).addColumn("n", "bigint", generatedAlwaysAs=IdentityGenerator())
    builder.addColumn("v", "int").execute()
    with pytest.raises(UnsupportedOperationError, match="identity"):
        spark.sql(f"insert into {by_path(place)} (v) values (1)")
    assert PlainTable(place).version == 0


# ---------------------------------------------------------------- making tables


def test_create_and_replace_by_path_are_one_commit_each(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "made")
    table = by_path(place)
    rows = "select id, id % 2 as part from range(4)"
    spark.sql(f"create table {table} partitioned by (part) comment 'mine' tblproperties ('delta.appendOnly' = 'false') as {rows}")
    created = PlainTable(place)
    assert (created.version, created.metadata.partition_columns, created.metadata.description) == (0, ("part",), "mine")
    assert (created.metadata.configuration, len(stored(place))) == ({"delta.appendOnly": "false"}, 4)
    spark.sql(f"create table if not exists {table} as select 1 as x")
    with pytest.raises(AnalysisException):
        spark.sql(f"create table {table} as select 1 as x")
    spark.sql(f"create or replace table {table} using pydelta as select part, id from {table} where id > 2")
    assert (PlainTable(place).version, stored(place), PlainTable(place).metadata.partition_columns) == (1, [(1, 3)], ())
    spark.sql(f"replace table {table} (id bigint not null comment 'key', day date) partitioned by (day)")
    assert (PlainTable(place).version, spark.table(table).columns) == (2, ["id", "day"])
    assert not spark.table(table).schema["id"].nullable
    with pytest.raises(AnalysisException):
        spark.sql(f"replace table {by_path(str(tmp_path / 'none'))} as select 1 as x")
    with pytest.raises(InvalidOptionError, match="team"):
        spark.sql(f"create table {by_path(str(tmp_path / 'none'))} (id int) tblproperties ('team' = 'x')")
    with pytest.raises(UnsupportedOperationError, match="partitioned by columns"):
        spark.sql(f"create table {by_path(str(tmp_path / 'none'))} partitioned by (bucket(4, id)) as {rows}")
    assert not (tmp_path / "none").exists()


def test_columns_of_all_kinds_are_created(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql(
        "create table named.kinds (id bigint generated by default as identity (start with 5 increment by 5), at timestamp, "
        "day date generated always as (cast(at as date)), name char(4) not null default 'none' comment 'c') using pydelta "
        "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    fields = {field.name: field for field in columns_of(str(tmp_path / "named" / "kinds"))}
    identity = {"start": 5, "step": 5, "allowExplicitInsert": True}
    assert fields["id"].metadata == {f"delta.identity.{key}": value for key, value in identity.items()}
    assert fields["day"].metadata == {"delta.generationExpression": "cast(at as date)"}
    assert not fields["name"].nullable
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)", "comment": "c", "CURRENT_DEFAULT": "'none'"}
    assert fields["name"].metadata == declared
    with pytest.raises(UnsupportedOperationError, match="identity"):
        spark.sql("insert into named.kinds (at) values (current_timestamp())")


def test_a_failed_create_leaves_nothing_behind(spark: SparkSession, database: str, tmp_path: Path) -> None:
    for table in ("named.failed", by_path(str(tmp_path / "failed"))):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            spark.sql(f"create table {table} using pydelta as select 1 div (id - id) as x from range(3)")
    assert not spark.catalog.tableExists("named.failed")
    assert not (tmp_path / "failed" / "_delta_log").exists()


def test_names_made_by_sql_are_dropped_with_their_files(spark: SparkSession, database: str, tmp_path: Path) -> None:
    place, other = tmp_path / "named" / "made", tmp_path / "other"
    spark.sql("create table named.Made (id bigint, day string) using pydelta partitioned by (day) comment 'ours'")
    spark.sql("insert into named.made values (1, 'mon')")
    spark.range(1).selectExpr("2L as id", "'tue' as day").write.insertInto("named.made")
    assert stored(str(place)) == [(1, "mon"), (2, "tue")]
    spark.sql("create or replace table named.made using pydelta as select 'x' as name")
    assert (PlainTable(str(place)).version, spark.table("named.made").columns) == (3, ["name"])
    spark.sql("drop table named.made")
    assert not place.exists()
    spark.sql("create table named.made using pydelta as select 1 as one")
    assert [tuple(row) for row in spark.sql("select * from named.made").collect()] == [(1,)]
    spark.sql(f"create table named.far (id bigint) using pydelta location '{other}' tblproperties ('team' = 'b')")
    spark.sql("insert into named.far values (7)")
    spark.sql("drop table named.far")
    assert stored(str(other)) == [(7,)]
    spark.sql(f"create table named.far (id bigint) using pydelta location '{other}'")
    assert ids(spark, "named.far") == [7]
    with pytest.raises(AnalysisException):
        spark.sql("create table named.far (id bigint) using pydelta")
    with pytest.raises(UnsupportedOperationError, match="nothing was replaced"):
        spark.sql("create table named.theirs using parquet as select 1 as x")
        spark.sql("create or replace table named.theirs using pydelta as select 1 as x")


def test_tables_lie_in_the_database_directory_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "my files%20#"
    spark.sql(f"create database odd_place location '{place}'")
    try:
        spark.sql("create table odd_place.theirs using parquet as select 1 as id")
        spark.sql("create table odd_place.by_catalog using pydelta as select 1L as id")
        spark.range(1, 2).write.format("pydelta").saveAsTable("odd_place.by_save")
        assert sorted(file.name for file in place.iterdir()) == ["by_catalog", "by_save", "theirs"]
        assert ids(spark, "odd_place.by_catalog") == ids(spark, "odd_place.by_save") == [1]
        spark.sql("drop table odd_place.by_save")
        assert not (place / "by_save").exists()
    finally:
        spark.sql("drop database odd_place cascade")


def test_case_sensitive_session_keeps_tables_by_case_apart(
    spark: SparkSession, database: str, tmp_path: Path, conf: Callable[..., None]
) -> None:
    conf({"spark.sql.caseSensitive": "true"})
    spark.sql("create table named.Made using pydelta as select 1L as id")
    spark.sql("create or replace table named.made using pydelta as select 2L as id")
    for number, name in enumerate(("named.Saved", "named.saved")):
        spark.range(number, number + 1).write.format("pydelta").mode("overwrite").saveAsTable(name)
    id_lists = [ids(spark, f"named.{name}") for name in ("Made", "made", "Saved", "saved")]
    assert id_lists == [[1], [2], [0], [1]]
    assert sorted(place.name for place in (tmp_path / "named").iterdir()) == ["Made", "Saved", "made", "saved"]


# ---------------------------------------------------------------- sessions


def test_clones_threads_and_new_sessions(spark: SparkSession, path: str, name: str) -> None:
    query = f"select count(*) from {by_path(path)} version as of 0"
    counts: list[Any] = []
    thread = threading.Thread(target=lambda: counts.append(spark.sql(query).first()))
    thread.start()
    thread.join()
    assert counts == [(2,)]
    other = spark.newSession()
    register(other)
    assert other.sql(query).first() == other.sql(f"select count(*) from {name} version as of 0").first() == (2,)
    seen: list[Any] = []
    streamed = (
        spark.readStream.format("pydelta")
        .load(path)
        .writeStream.foreachBatch(lambda frame, _: seen.append(frame.sparkSession.sql(query).first()))
    )
    streamed.trigger(availableNow=True).start().awaitTermination()
    assert seen == [(2,)]


def test_streams_of_names_and_paths(spark: SparkSession, path: str, name: str) -> None:
    for table in (name, by_path(path)):
        query = (
            spark.readStream.table(table).writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
        )
        query.awaitTermination()
        assert ids(spark, "streamed") == [1, 2, 3]
