"""Inserts by position: fields of structs go by position at any depth, in pydelta and in delta-spark.

delta-spark 4.4 matches them by name if table and query have the same fields in another order, with the same types. This
contradicts Spark's rule, which pydelta follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from tests.support.peers.merge_peers import condition_of

DEEP = "STRUCT<x: STRING, y: ARRAY<STRUCT<p: INT, q: BIGINT>>>"
CASES: dict[str, tuple[str, str]] = {
    "other names": ("s STRUCT<x: INT, y: INT>", "named_struct('p', 1, 'q', 2)"),
    "other types": ("s STRUCT<x: INT, y: STRING>", "named_struct('y', 1L, 'x', 2)"),
    "in an array": ("s ARRAY<STRUCT<x: INT, y: INT>>", "array(named_struct('p', 1, 'q', 2))"),
    "in a map": (f"s MAP<STRING, {DEEP}>", "map('k', named_struct('y', 1, 'x', array(named_struct('q', 1, 'p', 2))))"),
    "fewer fields": ("s STRUCT<x: INT, y: INT>", "named_struct('x', 1)"),
    "more fields": ("s STRUCT<x: INT, y: INT>", "named_struct('p', 1, 'q', 2, 'z', 3)"),
    "overflow": ("s STRUCT<x: TINYINT, y: INT>", "named_struct('y', 1000L, 'x', 2)"),
    "a null struct": ("s STRUCT<x: INT, y: INT>", "CAST(NULL AS STRUCT<p: INT, q: INT>)"),
    "no type": ("s STRUCT<x: INT, y: INT>", "named_struct('p', NULL, 'q', 2)"),
    "no struct": ("s STRUCT<x: INT, y: INT>", "1"),
}


def insert_into(spark: SparkSession, name: str, query: str) -> None:
    spark.sql(query).write.insertInto(name)


def insert_overwrite(spark: SparkSession, name: str, query: str) -> None:
    spark.sql(query).write.insertInto(name, overwrite=True)


def statement(spark: SparkSession, name: str, query: str) -> None:
    spark.sql(f"INSERT INTO {name} {query}")


@pytest.mark.parametrize("insert", [insert_into, insert_overwrite, statement], ids=lambda insert: insert.__name__)
@pytest.mark.parametrize("case", CASES)
def test_struct_fields_go_by_position_as_in_delta_spark(
    spark: SparkSession, tmp_path: Path, case: str, insert: Callable[[SparkSession, str, str], None]
) -> None:
    columns, value = CASES[case]
    outcomes = [_outcome(spark, form, tmp_path / form, columns, value, insert) for form in ("pydelta", "delta")]
    assert outcomes[0] == outcomes[1]


def test_struct_fields_of_the_same_names_go_by_position(spark: SparkSession, tmp_path: Path) -> None:
    value = "named_struct('y', 1, 'x', 2)"
    for insert in (insert_into, insert_overwrite, statement):
        path = tmp_path / insert.__name__
        outcome = _outcome(spark, "pydelta", path, "s STRUCT<x: INT, y: INT>", value, insert)
        assert json.loads(outcome) == [{"a": 1, "s": {"x": 1, "y": 2}}]


def _outcome(spark: SparkSession, form: str, path: Path, columns: str, value: str, insert: Callable[..., Any]) -> str:
    spark.sql(f"CREATE TABLE delta.`{path}` (a INT, {columns}) USING delta")
    try:
        insert(spark, f"{form}.`{path}`", f"SELECT 1 AS a, {value} AS s")
    except PySparkException as error:
        return str(condition_of(error))
    return json.dumps(PlainTable(str(path)).to_arrow().to_pylist())
