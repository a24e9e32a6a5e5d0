"""Rules on rows and changes of schema, compared with delta-spark: one table each, the same writes, the same outcome."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
from delta_py.protocol import column_mapping
from delta_py.types.schema import StructType, parse_schema, schema_to_json
from tests.support.oracles.rows import difference
from tests.support.peers.merge_peers import condition_of

RULED = """
    CREATE TABLE delta.`{path}` (
        id INT NOT NULL, amount DECIMAL(10, 2), at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
        kind VARCHAR(3), code CHAR(4), n INT DEFAULT 7, s STRUCT<x: INT NOT NULL, t: ARRAY<VARCHAR(2)>>
    ) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
"""
ALL = {
    "id": "1",
    "amount": "cast(5 AS decimal(10, 2))",
    "at": "timestamp'2024-01-02 23:30:00'",
    "kind": "'abc'",
    "code": "'ab'",
    "n": "3",
    "s": "named_struct('x', 1, 't', array('ab', null))",
}
# The differences from a valid row; None omits the column. A null struct is left out: delta-spark refuses it if a field in it is
# NOT NULL, and pydelta accepts it, as the type says.
WRITES: dict[str, dict[str, str | None]] = {
    "lawful": {},
    "computed": {"day": "date'2024-01-02'"},
    "other day": {"day": "date'2024-01-03'"},
    "null day": {"day": "cast(null AS date)"},
    "both null": {"at": "cast(null AS timestamp)", "day": "cast(null AS date)"},
    "default": {"n": None},
    "null for a default": {"n": "cast(null AS int)"},
    "too much": {"amount": "cast(500 AS decimal(10, 2))"},
    "much, and allowed": {"amount": "cast(500 AS decimal(10, 2))", "kind": "'big'"},
    "check is null": {"amount": "cast(null AS decimal(10, 2))"},
    "check is null, and lacking": {"amount": None},
    "null id": {"id": "cast(null AS int)"},
    "no id": {"id": None},
    "null in a struct": {"s": "named_struct('x', cast(null AS int), 't', array('a'))"},
    "long varchar": {"kind": "'abcd'"},
    "varchar with blanks": {"kind": "'ab    '"},
    "long char": {"code": "'abcde'"},
    "padded char": {"code": "'ab  '"},
    "long text in a struct": {"s": "named_struct('x', 1, 't', array('abc'))"},
    "extra column": {"extra": "1"},
    "extra field": {"s": "named_struct('x', 1, 't', array('a'), 'y', 2)"},
    "text for a number": {"id": "'1'"},
    "names in other case": {"id": None, "ID": "4"},
    "smaller integer": {"id": "2Y"},
}


def frame(spark: SparkSession, changes: dict[str, str | None]) -> DataFrame:
    columns = {name: sql for name, sql in {**ALL, **changes}.items() if sql is not None}
    return spark.sql("SELECT " + ", ".join(f"{sql} AS `{name}`" for name, sql in columns.items()))


def by_delta_spark(data: DataFrame, path: str, **options: str) -> str:
    """`ok`, or the condition of the error."""
    mode = "overwrite" if "overwriteSchema" in options else "append"
    try:
        data.write.format("delta").mode(mode).options(**options).save(path)
    except Exception as error:
        match = re.search(r"\[(DELTA_[A-Z_]+)", str(error))
        assert match is not None, error
        return match[1]
    return "ok"


def by_pydelta(data: DataFrame, path: str, **options: Any) -> str:
    try:
        write_delta(path, data.toArrow(), mode="overwrite" if "overwrite_schema" in options else "append", **options)
    except DeltaError as error:
        return error.error_class
    return "ok"


def test_rows_are_taken_and_refused_as_by_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    for path in (theirs, ours):
        spark.sql(RULED.format(path=path))
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (amount < 100 OR kind = 'big')")
    expected = {name: by_delta_spark(frame(spark, changes), theirs) for name, changes in WRITES.items()}
    assert {name: by_pydelta(frame(spark, changes), ours) for name, changes in WRITES.items()} == expected
    assert "ok" in expected.values() and len(set(expected.values())) > 5
    read = spark.read.format("delta")
    assert difference(read.load(theirs).toArrow(), read.load(ours).toArrow()) is None


def test_expressions_of_rules_see_the_same_rows_in_both(spark: SparkSession, tmp_path: Path) -> None:
    checks = ("length(t) > 1", "t LIKE 'a%'", "coalesce(n, 0) % 2 = 0", "d BETWEEN date'2024-01-01' AND date'2024-12-31'")
    data = spark.sql("SELECT 'ab' t, 2 n, date'2024-02-03' d")
    broken = spark.sql("SELECT 'b' t, 3 n, cast(null AS date) d")
    for number, check in enumerate(checks):
        theirs, ours = str(tmp_path / f"theirs{number}"), str(tmp_path / f"ours{number}")
        for path in (theirs, ours):
            data.limit(0).write.format("delta").save(path)
            spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK ({check})")
        assert by_pydelta(data, ours) == by_delta_spark(data, theirs) == "ok"
        assert by_pydelta(broken, ours) == by_delta_spark(broken, theirs) == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


WIDENS = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
MERGES = [
    ("a INT NOT NULL COMMENT 'c', s STRUCT<x: INT>", "",
     ["SELECT 1 A, named_struct('Y', 1, 'x', 2) S, 'new' Z", "SELECT 1 a, 'more' z"]),
    ("a ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>", "",
     ["SELECT array(named_struct('x', 1, 'y', 2)) a, map('k', named_struct('z', 1)) m"]),
    ("a VOID, b INT", "", ["SELECT array(1) a, 2 b", "SELECT array('x') a"]),
    ("a INT, b FLOAT, c DECIMAL(5, 2), e ARRAY<SMALLINT>, m MAP<INT, STRUCT<x: TINYINT>>, g INT", WIDENS,
     ["SELECT 1L a, 2.0D b, cast(3 AS decimal(8, 3)) c, array(1) e, map(1L, named_struct('x', 1S, 'New', 5)) m, 1.5D g",
      "SELECT array(1L) e", "SELECT 1 k"]),
    ("a INT", "", ["SELECT array(1) a", "SELECT named_struct('x', 1) a", "SELECT 'x' a", "SELECT date'2024-01-01' a"]),
    ("a TINYINT, b SMALLINT, l ARRAY<TINYINT>", "", ["SELECT 1 a, 2 b, array(3S) l", "SELECT 4Y a, 5S b", "SELECT 1L a"]),
    ("t TIMESTAMP, d DATE, v STRING, m DECIMAL(5, 2), f FLOAT, l ARRAY<INT>", "",
     ["SELECT date'2024-01-01' t", "SELECT timestamp'2024-01-01 01:00:00' d", "SELECT 1 v", "SELECT 1.5D m", "SELECT 1.5D f",
      "SELECT cast(1 AS decimal(7, 2)) m", "SELECT array(1L) l"]),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "properties", "writes"), MERGES)
def test_merge_schema_gives_the_schema_of_delta_spark(
    columns: str, properties: str, writes: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    for path in (theirs, ours):
        spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {properties}")
    for write in writes:
        expected = by_delta_spark(spark.sql(write), theirs, mergeSchema="true")
        assert by_pydelta(spark.sql(write), ours, merge_schema=True) == expected
        assert schema_of(ours) == schema_of(theirs)
    read = spark.read.format("delta")
    assert difference(read.load(theirs).toArrow(), read.load(ours).toArrow()) is None


SAVES: dict[str, dict[str, str]] = {
    "append": {},
    "mergeSchema": {"mergeSchema": "true"},
    "overwrite": {"mode": "overwrite"},
    "replaceWhere": {"mode": "overwrite", "replaceWhere": "k = 1"},
    "dynamic": {"mode": "overwrite", "partitionOverwriteMode": "dynamic"},
    "overwriteSchema": {"mode": "overwrite", "overwriteSchema": "true"},
}
PARTITIONS = ("p INT", "p INT NOT NULL", "p INT GENERATED ALWAYS AS (CAST(k AS INT))", "p INT DEFAULT 5")


@pytest.mark.parametrize("partition", PARTITIONS)
def test_rows_lacking_partition_column_behave_as_in_delta_spark(
    spark: SparkSession, tmp_path: Path, partition: str
) -> None:
    def outcomes(source: str) -> dict[str, str | None]:
        conditions: dict[str, str | None] = {}

        def attempt(name: str, act: Callable[[str], object]) -> None:
            path = str(tmp_path / f"{source}-{name}")
            properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')" if "DEFAULT" in partition else ""
            spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT, {partition}) USING delta PARTITIONED BY (p) {properties}")
            try:
                act(path)
            except (DeltaError, PySparkException, Py4JError) as error:
                conditions[name] = error.error_class if isinstance(error, DeltaError) else condition_of(error)
                return
            conditions[name] = str([tuple(row) for row in spark.read.format("delta").load(path).collect()])

        for name, options in SAVES.items():
            writer = spark.sql("SELECT 1L AS k").write.format(source)
            attempt(name, partial(writer.save, **{"mode": "append", **options}))
        attempt("INSERT", lambda path: spark.sql(f"INSERT INTO {source}.`{path}` (k) VALUES (1)"))
        attempt("BY NAME", lambda path: spark.sql(f"INSERT INTO {source}.`{path}` BY NAME SELECT 1L AS k"))
        return conditions

    theirs, ours = outcomes("delta"), outcomes("pydelta")
    assert ours == theirs


def test_overwrite_schema_keeps_column_ids_as_in_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    for path in (theirs, ours):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (a INT COMMENT 'c' NOT NULL, b STRUCT<x: INT, y: INT>, c STRING) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
    for write in (
        "SELECT 1L A, named_struct('y', 1, 'z', 2) b, 5 d",
        "SELECT 1L a, named_struct('y', 1, 'z', 2) b, 5 d, 'x' c",
        "SELECT 'x' c",
    ):
        before = {path: ids(schema_of(path)) for path in (theirs, ours)}
        assert by_delta_spark(spark.sql(write), theirs, overwriteSchema="true") == "ok"
        assert by_pydelta(spark.sql(write), ours, overwrite_schema=True) == "ok"
        column_ids = {
            path: {name for name, number in ids(schema_of(path)).items() if before[path].get(name) == number} for path in before
        }
        assert column_ids[ours] == column_ids[theirs]
        assert column_mapping.without_column_mapping(schema_of(ours)) == column_mapping.without_column_mapping(schema_of(theirs))
        assert difference(spark.sql(write).toArrow(), spark.read.format("delta").load(ours).toArrow()) is None


def schema_of(path: str) -> StructType:
    return parse_schema(schema_to_json(DeltaTable(path).snapshot.schema))


def ids(schema: StructType, path: str = "") -> dict[str, int]:
    ids_by_name: dict[str, int] = {}
    for f in schema.fields:
        name = f"{path}{f.name.lower()}"
        ids_by_name[name] = f.metadata[column_mapping.ID]
        if isinstance(f.data_type, StructType):
            ids_by_name |= ids(f.data_type, f"{name}.")
    return ids_by_name


def test_variants_of_pydelta_are_read_by_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    values = ("1", '{"a": [1, null, "x"], "b": {"c": 2.5}}', "null")
    data = spark.sql(" UNION ALL ".join(f"SELECT {n} id, parse_json('{text}') v" for n, text in enumerate(values))).coalesce(1)
    data.write.format("delta").save(path)
    write_delta(path, DeltaTable(path).to_arrow(), mode="append")
    texts = [
        row.text for row in spark.read.format("delta").load(path).selectExpr("id", "to_json(v) text").orderBy("id").collect()
    ]
    assert [orjson.loads(text) for text in texts] == [orjson.loads(text) for text in values for _ in range(2)]
