"""INSERT, CREATE and REPLACE TABLE by `spark.sql`, in a classic session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from spark_plugin import DeltaTable
from spark_plugin.exceptions import (
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from tests.support.spark.needs_spark import has_spark, needs_spark

NAME = "sql_tables_t"
INSERT_CLAUSES = needs_spark("4.2", "REPLACE USING, REPLACE ON and WITH SCHEMA EVOLUTION of INSERT")


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")
    yield NAME
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def by_path(path: Path) -> str:
    return f"pydelta.`{path}`"


def rows(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.read.format("pydelta").load(str(path)).collect()), key=str)


def last_commit(spark: SparkSession, path: Path) -> tuple[str, dict[str, str]]:
    row = DeltaTable.forPath(spark, str(path)).history(1).first()
    return row["operation"], row["operationParameters"]


# ---------------------------------------------------------------- CREATE and REPLACE


def test_create_with_all_that_columns_may_have(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / "it's here"
    location = str(path).replace("'", "\\'")
    created = spark.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), "
        "code CHAR(2) NOT NULL COMMENT 'c', at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), n INT DEFAULT 7, "
        "CONSTRAINT small CHECK (n < 100))"
        f" USING pydelta PARTITIONED BY (day) LOCATION '{location}' COMMENT 'all' TBLPROPERTIES"
        " ('delta.feature.allowColumnDefaults' = 'supported', 'team' = 'me')"
    )
    assert created.columns == [] and created.collect() == []
    snapshot = Snapshot.load(LocalStore(str(path)))
    fields = {f.name: f for f in snapshot.schema.fields}
    assert (fields["id"].metadata["delta.identity.start"], fields["id"].metadata["delta.identity.step"]) == (5, 2)
    assert not fields["code"].nullable and fields["code"].metadata["comment"] == "c"
    assert fields["day"].metadata["delta.generationExpression"] == "CAST(at AS DATE)"
    assert fields["n"].metadata["CURRENT_DEFAULT"] == "7"
    assert snapshot.metadata.partition_columns == ("day",) and snapshot.metadata.description == "all"
    assert snapshot.metadata.configuration["team"] == "me"
    assert snapshot.metadata.configuration["delta.constraints.small"] == "n < 100"
    spark.sql(f"INSERT INTO {name} (code, at) VALUES ('ab', TIMESTAMP '2024-05-01 10:00:00'), ('cd', NULL)")
    spark.sql(f"INSERT INTO {name} (at, n, code) SELECT NULL, DEFAULT, 'ef'")
    spark.sql(f"INSERT INTO {name} (code, n) VALUES ('gh', 1), ('ij', DEFAULT)")
    rows_by_code = {row["code"]: (row["id"], str(row["day"]), row["n"]) for row in spark.table(name).collect()}
    assert (
        rows_by_code["ab"] == (5, "2024-05-01", 7)
        and rows_by_code["ef"][2] == 7
        and rows_by_code["gh"][2] == 1
        and rows_by_code["ij"][2] == 7
    )
    assert len({number for number, _, _ in rows_by_code.values()}) == 5
    with pytest.raises(DeltaError, match="small"):
        spark.sql(f"INSERT INTO {name} (code, n) VALUES ('kl', 100)")
    with pytest.raises(TableAlreadyExistsError):
        spark.sql(f"CREATE TABLE {name} (a INT) USING pydelta")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (a INT) USING pydelta")
    assert len(spark.table(name).columns) == 5


def test_tables_of_queries(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE {by_path(path)} USING pydelta PARTITIONED BY (p) COMMENT 'x' AS SELECT id, id % 2 AS p FROM range(4)"
    )
    assert last_commit(spark, path)[0] == "CREATE TABLE AS SELECT" and len(rows(spark, path)) == 4
    with pytest.raises(TableAlreadyExistsError):
        spark.sql(f"CREATE TABLE delta.`{path}` AS SELECT 1 AS a")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {by_path(path)} AS SELECT 1 AS a")
    spark.sql(
        f"CREATE OR REPLACE TABLE {by_path(path)} CLUSTER BY (a) TBLPROPERTIES ('k' = 'v') AS SELECT 1 AS a, id FROM {{old}}",
        old=spark.read.format("pydelta").load(str(path)),
    )
    assert rows(spark, path) == [(1, 0), (1, 1), (1, 2), (1, 3)]
    operation, parameters = last_commit(spark, path)
    assert operation == "CREATE OR REPLACE TABLE AS SELECT" and parameters["clusterBy"] == '["a"]'
    assert Snapshot.load(LocalStore(str(path))).version == 1
    with pytest.raises(TableNotFoundError):
        spark.sql(f"REPLACE TABLE {name} USING pydelta AS SELECT 1 AS a")
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta LOCATION '{tmp_path / 'named'}' AS SELECT 1 AS a")
    spark.sql(f"REPLACE TABLE {name} USING pydelta AS SELECT 'x' AS b, {{n}} AS c", n=3)
    assert spark.table(name).collect() == [("x", 3)]
    spark.sql(f"CREATE OR REPLACE TABLE {name} (z INT) USING delta")
    assert spark.table(name).columns == ["z"] and spark.table(name).count() == 0


def test_a_table_without_location_goes_with_its_name(spark: SparkSession, name: str) -> None:
    for definition in ("(a INT, n INT GENERATED ALWAYS AS (a + 1)) USING pydelta", "USING delta AS SELECT 1 AS a, 2 AS n"):
        spark.sql(f"CREATE TABLE {name} {definition}")
        spark.sql(f"INSERT INTO {name} (a, n) VALUES (2, 3)")
        path = Path(DeltaTable.forName(spark, name).detail().first()["location"].removeprefix("file:"))
        assert (path / "_delta_log").is_dir() and spark.sql(f"SELECT n FROM {name} WHERE a = 2").collect() == [(3,)]
        spark.sql(f"DROP TABLE {name}")
        assert not path.exists()


@pytest.mark.parametrize("form", ["pydelta", "delta"])
def test_a_table_without_columns_gets_them_later(spark: SparkSession, tmp_path: Path, name: str, form: str) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("", f"LOCATION '{tmp_path / 'none'}'", f"LOCATION '{tmp_path / 'empty'}'"):
        properties_sql = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') COMMENT 'soon'"
        spark.sql(f"CREATE TABLE {name} USING {form} {place} {properties_sql}")
        detail = DeltaTable.forName(spark, name).detail().first()
        assert detail["description"] == "soon" and detail["properties"]["delta.enableChangeDataFeed"] == "true"
        assert spark.table(name).columns == []
        assert spark.sql(f"DESCRIBE {name}").collect() == []
        with pytest.raises(AnalysisException):
            spark.sql(f"CREATE TABLE {name} USING {form} {place}")
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING {form} {place}")
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS (a INT, b STRING)")
        assert [tuple(row)[:2] for row in spark.sql(f"DESCRIBE {name}").collect()] == [("a", "int"), ("b", "string")]
        spark.sql(f"INSERT INTO {name} VALUES (1, 'x')")
        assert spark.table(name).collect() == [(1, "x")]
        spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} USING {form} LOCATION '{tmp_path / 'none'}'")  # it exists by now
    assert spark.table(name).collect() == [(1, "x")]
    assert last_commit(spark, tmp_path / "none")[0] == "WRITE"


def test_a_path_without_columns_gets_them_later(spark: SparkSession, tmp_path: Path) -> None:
    table, place = by_path(tmp_path / "t"), str(tmp_path / "t")
    spark.sql(f"CREATE TABLE {table} USING pydelta TBLPROPERTIES ('team' = 'b')")
    assert Snapshot.load(LocalStore(place)).metadata.configuration == {"team": "b"}
    with pytest.raises(DeltaError) as raised:
        spark.sql(f"CREATE OR REPLACE TABLE {table} USING pydelta")
    assert raised.value.error_class == "DELTA_SCHEMA_NOT_PROVIDED"
    assert spark.sql(f"DELETE FROM {table}").first() == (0,)
    if has_spark("4.2"):
        spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 1 AS a")
    else:
        spark.sql("SELECT 1 AS a").write.format("pydelta").mode("append").option("mergeSchema", "true").save(place)
    assert rows(spark, tmp_path / "t") == [(1,)]
    spark.sql(f"EXECUTE IMMEDIATE 'CREATE TABLE {by_path(tmp_path / 'u')} USING pydelta'")
    spark.sql(f"EXECUTE IMMEDIATE 'ALTER TABLE {by_path(tmp_path / 'u')} ADD COLUMNS (a INT)'")
    assert spark.read.format("pydelta").load(str(tmp_path / "u")).columns == ["a"]


def test_new_tables_have_the_properties_that_the_session_says(spark: SparkSession, tmp_path: Path, name: str) -> None:
    prefix = "spark.databricks.delta.properties.defaults."
    properties = {
        "appendOnly": "true",
        "feature.domainMetadata": "supported",
        "checkpointInterval": "20",
        "ofAnotherProduct": "1",
    }
    settings = {prefix + key: value for key, value in properties.items()}
    paths = {way: tmp_path / way for way in ("frame", "builder", "sql", "select", "parquet", "named")}
    spark.range(3).write.parquet(str(paths["parquet"]))
    for setting, value in settings.items():
        spark.conf.set(setting, value)
    try:
        writer = spark.range(3).write.format("pydelta").option("delta.checkpointInterval", "5")
        writer.save(str(paths["frame"]))
        DeltaTable.create(spark).location(str(paths["builder"])).addColumn("id", "LONG").execute()
        spark.sql(f"CREATE TABLE {by_path(paths['sql'])} (id LONG) TBLPROPERTIES (delta.checkpointInterval = 5)")
        spark.sql(f"CREATE TABLE {by_path(paths['select'])} AS SELECT 1L id")
        spark.sql(f"CREATE TABLE {name} (id LONG) USING pydelta LOCATION '{paths['named']}'")
        DeltaTable.convertToDelta(spark, f"parquet.`{paths['parquet']}`")
        with pytest.raises(InvalidOptionError, match=r"delta\.appendOnly"):
            spark.conf.set(f"{prefix}appendOnly", "maybe")
            spark.range(3).write.format("pydelta").save(str(tmp_path / "refused"))
    finally:
        for setting in settings:
            spark.conf.unset(setting)
    for way, path in paths.items():
        config = Snapshot.load(LocalStore(str(path))).config
        expected = {"delta.appendOnly": "true", "delta.checkpointInterval": "5" if way in ("frame", "sql") else "20"}
        assert (way, dict(config.metadata.configuration)) == (way, expected)
        assert config.feature("domainMetadata")


def test_definitions_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    table = by_path(tmp_path / "t")
    with pytest.raises(UnsupportedOperationError, match="partitioned by columns"):
        spark.sql(f"CREATE TABLE {table} (a TIMESTAMP) PARTITIONED BY (days(a))")
    with pytest.raises(InvalidOptionError, match="keeps no options"):
        spark.sql(f"CREATE TABLE {table} (a INT) OPTIONS ('k' = 'v')")
    with pytest.raises(InvalidOptionError, match="allowColumnDefaults"):
        spark.sql(f"CREATE TABLE {table} (a INT DEFAULT 3)")
    assert not (tmp_path / "t").exists()


# ---------------------------------------------------------------- INSERT


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    path = tmp_path / "t"
    data = spark.createDataFrame([(1, "a", "x"), (2, "b", "y")], "n INT, s STRING, p STRING").coalesce(1)
    data.write.format("pydelta").partitionBy("p").save(str(path))
    return path


def test_insert_by_position_by_list_and_by_name(spark: SparkSession, table: Path) -> None:
    result = spark.sql(f"INSERT INTO {by_path(table)} VALUES (3L, 5, 'x'), (4L, NULL, 'z')")
    assert result.columns == []
    spark.sql(f"INSERT INTO {by_path(table)} (p, n) SELECT 'x', :n", {"n": 5})
    spark.sql(f"INSERT INTO {by_path(table)} BY NAME SELECT 'q' AS p, 6 AS n")
    spark.sql(f"WITH w AS (SELECT 7 AS a, 's' AS b, 'x' AS c) INSERT INTO {by_path(table)} SELECT * FROM w")
    spark.sql(f"INSERT INTO {by_path(table)} PARTITION (p = 'static') SELECT 8, 't'")
    spark.sql(f"INSERT INTO {by_path(table)} PARTITION (p) (n, p) VALUES (9, NULL)")
    assert rows(spark, table) == sorted(
        [(1, "a", "x"), (2, "b", "y"), (3, "5", "x"), (4, None, "z"), (5, None, "x"), (6, None, "q"), (7, "s", "x"),
         (8, "t", "static"), (9, None, None)], key=str,
    )  # fmt: skip


def test_overwrites(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'x') SELECT 3, 'c'")
    assert rows(spark, table) == [(2, "b", "y"), (3, "c", "x")]
    spark.sql(f"INSERT INTO {name} REPLACE WHERE p = 'y' AND n > 1 SELECT 4, 'd', 'y'")
    assert rows(spark, table) == [(3, "c", "x"), (4, "d", "y")]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(f"INSERT OVERWRITE {name} VALUES (5, 'e', 'y')")
        assert rows(spark, table) == [(3, "c", "x"), (5, "e", "y")]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    spark.sql(f"INSERT OVERWRITE TABLE {name} SELECT 6, 'f', 'z'")
    assert rows(spark, table) == [(6, "f", "z")]
    assert (
        spark.sql(
            f"INSERT OVERWRITE {name} SELECT n + 1, s, p FROM {{old}}", old=spark.read.format("pydelta").load(str(table))
        ).columns
        == []
    )
    assert rows(spark, table) == [(7, "f", "z")]


def test_values_of_partitions_are_cast_in_ansi_mode(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE {by_path(path)} (n INT, p INT) USING pydelta PARTITIONED BY (p)")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for text in ("'x'", "'99999999999'"):
            with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                spark.sql(f"INSERT INTO {by_path(path)} PARTITION (p = {text}) SELECT 1")
        spark.sql(f"INSERT INTO {by_path(path)} PARTITION (p = ' 2 ') SELECT 1")
        spark.sql(f"INSERT INTO {by_path(path)} PARTITION (p = NULL) SELECT 2")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert rows(spark, path) == [(1, 2), (2, None)]


def test_tables_are_made_under_names_of_temporary_views(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """And the tables are found despite the views."""
    qualified_name, other = f"spark_catalog.default.{name}", tmp_path / "other"
    spark.range(6).write.format("pydelta").save(str(other))
    spark.range(2).createOrReplaceTempView(name)
    try:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING pydelta AS SELECT * FROM {name}")
        assert spark.table(qualified_name).count() == 2
        with pytest.raises(TableAlreadyExistsError):
            spark.sql(f"CREATE TABLE {name} (id BIGINT) USING pydelta")
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT) USING pydelta")
        spark.range(3).write.format("pydelta").mode("append").saveAsTable(name)
        spark.range(3).write.format("pydelta").mode("ignore").saveAsTable(name)
        assert (spark.table(qualified_name).count(), spark.table(name).count()) == (5, 2)
        spark.sql(f"CREATE OR REPLACE TABLE {name} USING pydelta AS SELECT id + 7 AS more FROM {name}")
        assert spark.table(qualified_name).columns == ["more"]
        spark.sql(f"CREATE OR REPLACE TABLE {name} (one INT) USING pydelta")
        spark.range(4).writeTo(name).using("pydelta").createOrReplace()
        assert spark.table(qualified_name).count() == 4
        spark.sql(f"CREATE OR REPLACE TABLE {name} SHALLOW CLONE {by_path(other)}")
        assert (spark.table(qualified_name).count(), spark.table(name).count()) == (6, 2)
    finally:
        spark.catalog.dropTempView(name)
    spark.sql(f"DROP TABLE {name}")
    spark.range(2).createOrReplaceTempView(name)
    try:
        spark.sql(f"CREATE TABLE {name} (id BIGINT) USING pydelta")
        spark.sql(f"DROP TABLE {qualified_name}")
        spark.range(3).write.format("pydelta").mode("ignore").saveAsTable(name)
        assert spark.table(qualified_name).count() == 3
    finally:
        spark.catalog.dropTempView(name)


def test_if_not_exists_leaves_a_table_of_any_format_as_it_is(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (a INT) USING parquet")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (b INT) USING pydelta")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} LIKE {name} USING pydelta")
    assert spark.table(name).columns == ["a"]


@INSERT_CLAUSES
def test_insert_in_the_place_of_rows_that_match(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    spark.sql(f"INSERT INTO {name} REPLACE USING (n) VALUES (2, 'new', 'z'), (2, 'newer', 'z'), (9, 'i', 'x')")
    assert rows(spark, table) == [(1, "a", "x"), (2, "new", "z"), (2, "newer", "z"), (9, "i", "x")]
    assert last_commit(spark, table) == ("WRITE", {"mode": "Overwrite", "partitionBy": "[]", "replaceUsingCols": "(n)"})
    spark.sql(f"INSERT INTO {name} BY NAME REPLACE USING (p, s) SELECT 'x' AS p, 'a' AS s, 5L AS n")
    assert rows(spark, table) == [(2, "new", "z"), (2, "newer", "z"), (5, "a", "x"), (9, "i", "x")]


@INSERT_CLAUSES
def test_insert_in_the_place_of_rows_that_a_condition_names(spark: SparkSession, table: Path) -> None:
    """The query's columns have their own names in the condition, and go by position or by name."""
    name = by_path(table)
    spark.sql(f"INSERT INTO {name} AS t REPLACE ON t.n = q.k + 1 (SELECT 1L AS k, 'new' AS v, 'z' AS w) AS q")
    assert rows(spark, table) == [(1, "a", "x"), (1, "new", "z")]
    parameters = {"mode": "Overwrite", "partitionBy": "[]", "replaceOnCond": "(t.n = (q.k + 1))"}
    assert last_commit(spark, table) == ("WRITE", parameters)
    spark.sql(
        f"INSERT INTO {name} t BY NAME REPLACE ON t.n <=> q.n AND t.p > q.p "
        "SELECT * FROM (SELECT 'y' AS p, 1 AS n, 'by name' AS s) AS q"
    )
    assert rows(spark, table) == [(1, "a", "x"), (1, "by name", "y")]
    spark.sql(f"INSERT INTO {name} REPLACE ON s = 'a' VALUES (7, 'only', 'z')")
    assert rows(spark, table) == [(1, "by name", "y"), (7, "only", "z")]
    spark.sql(f"INSERT INTO {name} AS t REPLACE ON t.n = :n SELECT 8, :text, 'z'", {"n": 7, "text": "it's"})
    assert rows(spark, table) == [(1, "by name", "y"), (8, "it's", "z")]
    spark.sql("CREATE TABLE replaced_on (n INT, s STRING) USING pydelta")
    try:
        spark.sql("INSERT INTO replaced_on VALUES (1, 'a'), (2, 'b')")
        spark.sql("INSERT INTO replaced_on REPLACE ON replaced_on.n = 2 SELECT 3, 'c'")
        spark.sql("INSERT INTO default.replaced_on REPLACE ON default.replaced_on.n = 1 SELECT 4, 'd'")
        assert sorted(map(tuple, spark.table("replaced_on").collect())) == [(3, "c"), (4, "d")]
    finally:
        spark.sql("DROP TABLE replaced_on")


@INSERT_CLAUSES
def test_insert_that_evolves(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 3, 'c', 'x', 1.5D AS extra")
    spark.sql(f"INSERT INTO {name} WITH ('mergeSchema' = 'true') BY NAME SELECT 4 AS n, 'x' AS p, true AS more")
    assert spark.read.format("pydelta").load(str(table)).columns == ["n", "s", "p", "extra", "more"]
    assert (4, None, "x", None, True) in rows(spark, table)


@INSERT_CLAUSES
def test_insert_that_evolves_widens_types(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE {by_path(path)} (id INT, n SMALLINT, s STRUCT<x: FLOAT>, kept BIGINT) USING pydelta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO {by_path(path)} VALUES (1, 2, named_struct('x', 0.5), 3)")
    wider = "SELECT CAST(5 AS DECIMAL(12,2)), 70000, named_struct('y', CAST(0.1 AS DOUBLE)), 4"
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO {by_path(path)} {wider}")
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {by_path(path)} {wider}")
    assert spark.table(by_path(path)).schema.simpleString() == "struct<id:decimal(12,2),n:int,s:struct<x:double>,kept:bigint>"
    assert rows(spark, path) == [(Decimal("1.00"), 2, (0.5,), 3), (Decimal("5.00"), 70000, (0.1,), 4)]


@INSERT_CLAUSES
def test_insert_that_evolves_leaves_types_that_rules_give(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE {by_path(path)} (n SMALLINT DEFAULT 5, g BIGINT GENERATED ALWAYS AS (CAST(n AS BIGINT) * 2), "
        "id BIGINT GENERATED BY DEFAULT AS IDENTITY) USING pydelta TBLPROPERTIES "
        "('delta.enableTypeWidening' = 'true', 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    values = "(DEFAULT, CAST(10 AS DECIMAL(22,2)), CAST(7 AS DECIMAL(20,0)))"
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {by_path(path)} VALUES {values}")
    assert spark.table(by_path(path)).schema.simpleString() == "struct<n:smallint,g:bigint,id:bigint>"
    assert rows(spark, path) == [(5, 10, 7)]


@INSERT_CLAUSES
def test_insert_that_evolves_adds_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    name = by_path(tmp_path / "t")
    spark.sql(f"CREATE TABLE {name} (id INT, st STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>)")
    spark.sql(f"INSERT INTO {name} VALUES (1, named_struct('a', 1, 'b', 'x'), array(named_struct('x', 1)))")
    more = "named_struct('c', 2.5D, 'b', 'y', 'a', '2') AS st"
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT 2 AS id, {more}")
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 3, NULL, array(named_struct('p', '3', 'q', true))")
    evolved = spark.read.format("pydelta").load(str(tmp_path / "t")).selectExpr("id", "st.*", "l[0].x AS x", "l[0].q AS q")
    assert evolved.schema.simpleString() == "struct<id:int,a:int,b:string,c:double,x:int,q:boolean>"
    assert sorted(map(tuple, evolved.collect())) == [
        (1, 1, "x", None, 1, None),
        (2, 2, "y", 2.5, None, None),
        (3, None, None, None, 3, True),
    ]
    with pytest.raises(SchemaMismatchError):
        spark.sql(f"INSERT INTO {name} BY NAME SELECT 4 AS id, named_struct('a', 1, 'b', 'x', 'c', 1D, 'd', 1) AS st")


def test_values_of_any_type_become_texts(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    spark.sql(f"UPDATE {name} SET s = 1.5D / 2 WHERE n = 1")
    spark.sql(f"UPDATE {name} SET s = INTERVAL '3' DAY WHERE n = 2")
    assert {row[1] for row in rows(spark, table)} == {"0.75", "INTERVAL '3' DAY"}


def test_inserts_that_cannot_be(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    refused: list[tuple[str, type[Exception], str]] = [
        (f"INSERT INTO {name} VALUES (1, 'a')", SchemaMismatchError, "3 columns are to be filled"),
        (f"INSERT INTO {name} VALUES (1, 'a', 'x', 2)", SchemaMismatchError, "3 columns are to be filled"),
        (f"INSERT INTO {name} (n, nobody) VALUES (1, 2)", SchemaMismatchError, "nobody"),
        (f"INSERT INTO {name} (n, n, p) VALUES (1, 2, 'x')", SchemaMismatchError, "two values"),
        (f"INSERT INTO {name} PARTITION (p = 'x') (n, p) VALUES (1, 'x')", SchemaMismatchError, "two values"),
        (f"INSERT INTO {name} PARTITION (n = 1) SELECT 'a', 'x'", InvalidOptionError, "no partition column"),
        (f"INSERT OVERWRITE {name} PARTITION (p = 'x') IF NOT EXISTS SELECT 1, 'a'", UnsupportedOperationError, "IF NOT EXISTS"),
        (f"INSERT INTO {name} BY NAME SELECT 1 AS nobody", SchemaMismatchError, "nobody"),
        (f"INSERT INTO {name} VALUES (3000000000, 'a', 'x')", SchemaMismatchError, "too large"),
        (f"INSERT INTO {by_path(table / 'none')} VALUES (1)", TableNotFoundError, "none"),
    ]
    for statement, kind, text in refused:
        with pytest.raises(kind, match=text):
            spark.sql(statement)
    assert Snapshot.load(LocalStore(str(table))).version == 0


@INSERT_CLAUSES
def test_inserts_in_the_place_of_rows_that_cannot_be(spark: SparkSession, table: Path) -> None:
    name = by_path(table)
    refused: list[tuple[str, type[Exception], str]] = [
        (f"INSERT INTO {name} AS t REPLACE ON t.nobody = 1 SELECT 1, 'a', 'x'", SchemaMismatchError, "nobody"),
        (f"INSERT INTO {name} AS t REPLACE ON n = 1 SELECT 1 AS n, 'a' AS s, 'x' AS p", SchemaMismatchError, "both the table"),
        (f"INSERT INTO {name} AS t REPLACE ON t.n = 1 SELECT 1, 'a'", SchemaMismatchError, "3 columns are to be filled"),
        (f"INSERT INTO {name} REPLACE USING (nobody) SELECT 1, 'a', 'x'", SchemaMismatchError, "nobody"),
        (f"INSERT INTO {name} REPLACE USING (p) SELECT 1, 'a' AS p, 'x' AS s", SchemaMismatchError, "elsewhere"),
    ]
    for statement, kind, text in refused:
        with pytest.raises(kind, match=text):
            spark.sql(statement)
    assert Snapshot.load(LocalStore(str(table))).version == 0


@pytest.mark.parametrize("key", ["PRIMARY KEY", "UNIQUE", "REFERENCES other (id)"])
def test_keys_are_refused_and_left_to_spark_for_other_formats(spark: SparkSession, name: str, key: str) -> None:
    for source, kind in (("parquet", AnalysisException), ("pydelta", UnsupportedOperationError)):
        with pytest.raises(kind) as raised:
            spark.sql(f"CREATE TABLE {name} (id INT {key}) USING {source}")
        assert raised.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"


# ---------------------------------------------------------------- CREATE TABLE LIKE


def test_create_like_takes_all_but_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    source, path = tmp_path / "source", tmp_path / "it's like"
    spark.sql(
        f"CREATE TABLE {by_path(source)} (id BIGINT GENERATED ALWAYS AS IDENTITY, code VARCHAR(2) NOT NULL COMMENT 'c', "
        "n INT DEFAULT 7, day INT GENERATED ALWAYS AS (n + 1), CONSTRAINT small CHECK (n < 100)) "
        "USING pydelta PARTITIONED BY (day) COMMENT 'all' TBLPROPERTIES "
        "('delta.feature.allowColumnDefaults' = 'supported', 'team' = 'me', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true')"
    )
    spark.sql(f"INSERT INTO {by_path(source)} (code, n) VALUES ('ab', 1), ('cd', 2)")
    first = Snapshot.load(LocalStore(str(source)))
    location = str(path).replace("'", "\\'")
    properties = "TBLPROPERTIES ('TEAM' = 'you', 'x' = 'y')"
    result = spark.sql(f"CREATE TABLE {name} LIKE {by_path(source)} LOCATION '{location}' {properties}")
    assert result.columns == []
    snapshot = Snapshot.load(LocalStore(str(path)))
    assert snapshot.version == 0 and rows(spark, path) == []
    assert last_commit(spark, path)[0] == "CREATE TABLE"
    assert snapshot.metadata.partition_columns == ("day",) and snapshot.metadata.description == "all"
    changed = {"delta.columnMapping.maxColumnId"} | {key for key in first.metadata.configuration if "materialized" in key}
    kept_properties = {key: value for key, value in first.metadata.configuration.items() if key not in {*changed, "team"}}
    clone_properties = dict(snapshot.metadata.configuration)
    assert all(clone_properties[key] != first.metadata.configuration[key] for key in changed if "materialized" in key)
    assert {key: value for key, value in clone_properties.items() if key not in changed} == {
        **kept_properties,
        "TEAM": "you",
        "x": "y",
    }
    assert snapshot.protocol == first.protocol
    pairs = list(zip(snapshot.schema.fields, first.schema.fields, strict=True))
    assert [(f.name, f.data_type, f.nullable) for f, _ in pairs] == [(f.name, f.data_type, f.nullable) for _, f in pairs]
    own_prefixes = ("delta.columnMapping.",)
    for new, old in pairs:
        assert {k: v for k, v in new.metadata.items() if not k.startswith(own_prefixes)} == {
            k: v for k, v in old.metadata.items() if not k.startswith(own_prefixes)
        }
    spark.sql(f"INSERT INTO {name} (code) VALUES ('xy')")
    assert rows(spark, path) == [(3, "xy", 7, 8)], "numbers go on behind those of the source, as in delta-spark"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} LIKE {by_path(source)}")
    with pytest.raises(TableAlreadyExistsError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE {name} LIKE {by_path(source)}")
    assert rows(spark, path) == [(3, "xy", 7, 8)], "numbers go on behind those of the source, as in delta-spark"


def test_create_like_tables_and_views_of_others(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.range(3).selectExpr("id AS a", "'x' AS `b.c`").createOrReplaceTempView("like_view")
    spark.sql(f"CREATE TABLE {by_path(tmp_path / 'viewed')} LIKE like_view")
    assert spark.read.format("pydelta").load(str(tmp_path / "viewed")).dtypes == [("a", "bigint"), ("b.c", "string")]
    spark.sql(f"CREATE TABLE {name} (a INT COMMENT 'x', p DATE) USING parquet PARTITIONED BY (p)")
    try:
        spark.sql(f"CREATE TABLE {by_path(tmp_path / 'copied')} LIKE {name}")
        spark.sql(f"CREATE TABLE {name}2 LIKE {name}")  # not a table of ours
        assert "parquet" in spark.sql(f"SHOW CREATE TABLE {name}2").first()[0]  # type: ignore[index]
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}2")
    metadata = Snapshot.load(LocalStore(str(tmp_path / "copied"))).metadata
    assert metadata.partition_columns == ("p",) and '"comment":"x"' in metadata.schema_string
    with pytest.raises(DeltaError, match="DELTA_PATH_DOES_NOT_EXIST"):
        spark.sql(f"CREATE TABLE {by_path(tmp_path / 'none')} LIKE {by_path(tmp_path / 'nowhere')}")
    with pytest.raises(UnsupportedOperationError, match="do not say how they are partitioned"):
        spark.sql(f"CREATE TABLE {by_path(tmp_path / 'none')} LIKE parquet.`{tmp_path}`")
    assert not (tmp_path / "none").exists()


# ---------------------------------------------------------------- SHOW PARTITIONS


def test_show_partitions(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (n INT, `a.b` STRING, day DATE) USING pydelta PARTITIONED BY (`a.b`, day)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x/=%', DATE'2024-01-01'), (2, 'x/=%', DATE'2024-01-02'), (3, NULL, NULL)")
    spark.sql(f"INSERT INTO {name} VALUES (4, 'x/=%', DATE'2024-01-01')")

    def shown(specification: str = "") -> list[tuple[str, ...]]:
        return sorted(tuple(map(str, row)) for row in spark.sql(f"show partitions {name} {specification}").collect())

    assert spark.sql(f"SHOW PARTITIONS {name}").columns == ["a.b", "day"]
    assert shown() == [("None", "None"), ("x/=%", "2024-01-01"), ("x/=%", "2024-01-02")]
    assert shown("PARTITION (day = '2024-01-02')") == shown("PARTITION (`a.b` = 'x/=%', day = DATE'2024-01-02')") == shown()[2:]
    assert shown("PARTITION (`a.b` = NULL)") == shown()[:1]
    assert shown("PARTITION (`a.b` = 'nobody')") == []
    with pytest.raises(InvalidOptionError, match="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"):
        shown("PARTITION (n = 1)")
    spark.sql(f"CREATE TABLE {by_path(tmp_path / 'flat')} (n INT)")
    with pytest.raises(InvalidOptionError, match="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"):
        spark.sql(f"SHOW PARTITIONS {by_path(tmp_path / 'flat')}")


# ---------------------------------------------------------------- ALTER


def test_alter(spark: SparkSession, table: Path) -> None:
    name = f"pydelta.`{table}`"
    result = spark.sql(f"ALTER TABLE {name} ADD COLUMNS (`a.b` STRING COMMENT 'x' FIRST, st STRUCT<u: INT> AFTER n)")
    assert result.columns == []
    spark.sql(f"ALTER TABLE {name} ADD COLUMN st.v BIGINT FIRST")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN s COMMENT 'texts', st.u COMMENT 'inside', p FIRST")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN st.u TO `w.x`")
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (`a.b`)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (n > 0)")
    spark.sql(f"COMMENT ON TABLE {name} IS 'a table'")
    schema = spark.read.format("pydelta").load(str(table)).schema
    assert schema.simpleString() == "struct<p:string,n:bigint,st:struct<v:bigint,w.x:int>,s:string>"
    assert schema["s"].metadata["comment"] == "texts"
    metadata = Snapshot.load(LocalStore(str(table))).metadata
    assert metadata.description == "a table" and "comment" not in metadata.configuration
    spark.sql(f"INSERT INTO {name} (n, p) VALUES (3000000000, 'x')")
    with pytest.raises(DeltaError, match="positive"):
        spark.sql(f"INSERT INTO {name} (n, p) VALUES (0, 'x')")
    spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT positive")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.enableTypeWidening', 'nobody')")
    spark.sql(f"TRUNCATE TABLE {name}")
    assert rows(spark, table) == []


def test_alter_of_a_name_shows_in_the_catalog(spark: SparkSession, table: Path, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING pydelta LOCATION '{table}'")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (more INT)")
    assert spark.table(name).columns == ["n", "s", "p", "more"]
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c', 'x', 4)")
    assert spark.sql(f"SELECT more FROM {name} WHERE n = 3").collect() == [(4,)]
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 0").collect() == [(2,)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("RENAME COLUMN n TO m", "DELTA_UNSUPPORTED_RENAME_COLUMN"),
        ("DROP COLUMN n", "DELTA_UNSUPPORTED_DROP_COLUMN"),
        ("ALTER COLUMN n TYPE BIGINT", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("ADD CONSTRAINT small CHECK (n < 2)", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
    ],
)
def test_alter_that_cannot_be(spark: SparkSession, table: Path, statement: str, condition: str) -> None:
    with pytest.raises(DeltaError) as raised:
        spark.sql(f"ALTER TABLE {by_path(table)} {statement}")
    assert raised.value.error_class == condition
    assert Snapshot.load(LocalStore(str(table))).version == 0


# ---------------------------------------------------------------- tables that Spark holds in memory


def test_cached_table_has_the_rows_of_each_change(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id INT) USING pydelta")
    spark.sql(f"CACHE TABLE {name}")
    cached_frame = spark.table(name).where("id > 1").cache()
    four, matches = spark.range(4, 5).selectExpr("cast(id as int) as id"), f"MERGE INTO {name} t USING {name} s ON t.id = s.id"
    changes: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: spark.sql(f"INSERT INTO {name} VALUES (1), (2), (3)"), [1, 2, 3]),
        (lambda: spark.sql(f"DELETE FROM {name} WHERE id = 1"), [2, 3]),
        (lambda: spark.sql(f"UPDATE {name} SET id = 5 WHERE id = 2"), [3, 5]),
        (lambda: spark.sql(f"{matches} WHEN MATCHED AND t.id = 3 THEN DELETE"), [5]),
        (lambda: four.write.format("pydelta").mode("append").saveAsTable(name), [4, 5]),
        (lambda: four.write.insertInto(name), [4, 4, 5]),
        (lambda: DeltaTable.forName(spark, name).delete("id = 5"), [4, 4]),
        (lambda: DeltaTable.forName(spark, name).restoreToVersion(3), [3, 5]),
        (lambda: spark.sql(f"TRUNCATE TABLE {name}"), []),
    ]
    try:
        for change, ids in changes:
            change()
            assert sorted(row["id"] for row in spark.table(name).collect()) == ids
            assert spark.table(name).where("id > 1").count() == sum(number > 1 for number in ids)
        assert spark.catalog.isCached(name)
    finally:
        cached_frame.unpersist()
        spark.catalog.uncacheTable(name)


def test_cached_table_follows_changes_through_its_other_names(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    path, other = tmp_path / "held here", tmp_path / "other"
    by_name = by_path(path)
    spark.sql(f"CREATE TABLE {by_name} (id INT)")
    spark.sql(f"CREATE TABLE {name} USING pydelta LOCATION '{path}'")
    names = [name, by_name, by_name.replace("pydelta", "delta", 1)]
    four = spark.range(4, 5).selectExpr("cast(id as int) as id")
    four.write.format("pydelta").save(str(other))
    changes: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: spark.sql(f"INSERT INTO {by_name} VALUES (1), (2)"), [1, 2]),
        (lambda: spark.sql(f"DELETE FROM {by_name} WHERE id = 1"), [2]),
        (lambda: four.write.format("pydelta").mode("append").save(f"file:{path}/"), [2, 4]),
        (lambda: DeltaTable.forPath(spark, str(path)).restoreToVersion(1), [1, 2]),
        (lambda: spark.sql(f"CREATE OR REPLACE TABLE {by_name} DEEP CLONE {by_path(other)}"), [4]),
        (lambda: spark.sql(f"INSERT INTO {name} VALUES (5)"), [4, 5]),
        (lambda: spark.sql(f"CREATE OR REPLACE TABLE {by_name} (id INT)"), []),
    ]
    for cached_name in names:
        spark.sql(f"CACHE TABLE {cached_name}")
    try:
        for change, ids in changes:
            change()
            for cached_name in names:
                assert sorted(row["id"] for row in spark.table(cached_name).collect()) == ids
        assert all(spark.catalog.isCached(cached_name) for cached_name in names)
    finally:
        for cached_name in names:
            spark.catalog.uncacheTable(cached_name)


def test_set_location_takes_a_table_of_the_same_columns(spark: SparkSession, tmp_path: Path, name: str) -> None:
    first, same, other = (tmp_path / kind for kind in ("first", "same", "other"))
    spark.sql(f"CREATE TABLE {name} (id INT) USING pydelta LOCATION '{first}'")
    spark.range(7, 8).selectExpr("cast(id as int) as id").write.format("pydelta").save(str(same))
    spark.range(8, 9).write.format("pydelta").save(str(other))
    for location, error in ((other, SchemaMismatchError), (tmp_path / "nowhere", TableNotFoundError)):
        with pytest.raises(error):
            spark.sql(f"ALTER TABLE {name} SET LOCATION '{location}'")
    with pytest.raises(UnsupportedOperationError, match="named by its path"):
        spark.sql(f"ALTER TABLE {by_path(same)} SET LOCATION '{first}'")
    assert spark.table(name).collect() == []
    spark.sql(f"ALTER TABLE {name} SET LOCATION '{same}'")
    assert [row["id"] for row in spark.table(name).collect()] == [7]
    spark.conf.set("spark.databricks.delta.alterLocation.bypassSchemaCheck", "true")
    try:
        spark.sql(f"ALTER TABLE {name} SET LOCATION '{other}'")
    finally:
        spark.conf.unset("spark.databricks.delta.alterLocation.bypassSchemaCheck")
    assert [row["id"] for row in spark.table(name).collect()] == [8]


# ---------------------------------------------------------------- names where case matters


def test_columns_spelled_otherwise_are_none_where_case_matters(
    spark: SparkSession, conf: Callable[[dict[str, str]], None], tmp_path: Path
) -> None:
    table = by_path(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE {table} (Id BIGINT, Name STRING, s STRUCT<Aa: INT>, p INT) USING pydelta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    conf({"spark.sql.caseSensitive": "true"})
    unresolved = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    for statement, condition in {
        f"INSERT INTO {table} (id, p) VALUES (1, 1)": unresolved,
        f"INSERT INTO {table} PARTITION (P = 1) (Id) VALUES (1)": "NON_PARTITION_COLUMN",
        f"INSERT OVERWRITE {table} PARTITION (P = 1) (Id) VALUES (1)": "NON_PARTITION_COLUMN",
        f"ALTER TABLE {table} DROP COLUMN ID": unresolved,
        f"ALTER TABLE {table} DROP COLUMN s.aa": unresolved,
        f"ALTER TABLE {table} RENAME COLUMN name TO label": unresolved,
        f"ALTER TABLE {table} ALTER COLUMN ID COMMENT 'c'": unresolved,
    }.items():
        with pytest.raises(SchemaMismatchError if condition == unresolved else InvalidOptionError) as caught:
            spark.sql(statement)
        assert caught.value.getCondition() == condition, statement
    assert DeltaTable.forPath(spark, str(tmp_path / "t")).history().count() == 1
    spark.sql(f"INSERT INTO {table} PARTITION (p = 1) (Id) VALUES (1)")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT 2L AS ID, 2 AS P")  # as delta-spark takes it
    spark.sql(f"ALTER TABLE {table} DROP COLUMN Name")
    assert rows(spark, tmp_path / "t") == [(1, None, 1), (2, None, 2)]
