"""Rules that our evaluation does not support: a save lets Spark compute them, and Spark only sees text that we checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from delta_py import DeltaTable
from delta_py.errors import (
    DeltaError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.expressions.sql_text.spark_rules import FUNCTIONS
from delta_py.types.schema import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DataType,
    StructField,
    StructType,
    schema_to_json,
    to_arrow_schema,
)
from spark_plugin import register
from tests.support.spark.needs_spark import has_spark
from tests.support.tables.small_table import make_table

_CHECK = "delta.constraints.rule"


def table_of(root: Path, fields: Mapping[str, DataType], *, generated: Mapping[str, str] | None = None, **kwargs: Any) -> str:
    """An empty table, as another writer makes it."""
    marks = {name: {"delta.generationExpression": sql} for name, sql in (generated or {}).items()}
    schema = StructType(tuple(StructField(name, kind, True, marks.get(name, {})) for name, kind in fields.items()))
    empty = to_arrow_schema(schema).empty_table()
    return make_table(root, [empty], schema_json=schema_to_json(schema), **kwargs)


def append(spark: SparkSession, query: str, path: str, **options: str) -> None:
    spark.sql(query).coalesce(1).write.format("pydelta").mode("append").options(**options).save(path)


def rows(path: str) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).to_arrow().to_pylist(), key=str)


def test_check_with_hash_is_kept_by_spark_in_the_tables_types(spark: SparkSession, tmp_path: Path) -> None:
    kept_sql, broken = (spark.sql(f"SELECT hash({n}) > 0 FROM range(1)").first()[0] for n in (0, 1))  # type: ignore[index]
    assert (kept_sql, broken) == (True, False)
    path = table_of(tmp_path / "t", {"id": INTEGER, "t": STRING}, properties={_CHECK: "hash(id) > 0 AND (t IS NULL OR t <> 'x')"})
    append(spark, "SELECT 'a' AS T, 0L AS ID", path)
    append(spark, "SELECT 0 AS id", path)  # a missing column is null
    assert rows(path) == [{"id": 0, "t": "a"}, {"id": 0, "t": None}]
    assert DeltaTable(path).to_arrow().column_names == ["id", "t"]
    with pytest.raises(InvariantViolationError) as caught:
        append(spark, "SELECT id, 'a' AS t FROM range(2)", path)
    assert "CHECK constraint rule (hash(id) > 0 AND (t IS NULL OR t <> 'x')) violated by row" in str(caught.value)
    assert "- id : 1\n - t : a\n" in str(caught.value)
    with pytest.raises(SchemaMismatchError, match="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"):
        append(spark, "SELECT 5000000000L AS id", path)
    with pytest.raises(SchemaMismatchError, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        append(spark, "SELECT '0' AS id", path)
    assert len(rows(path)) == 2


def test_generated_columns_are_computed_by_spark_or_compared(spark: SparkSession, tmp_path: Path) -> None:
    path = table_of(
        tmp_path / "t",
        {"d": DATE, "t": STRING, "digest": STRING, "next": DATE, "day": INTEGER},
        generated={"digest": "sha2(t, 256)", "next": "d + INTERVAL 1 DAY", "day": "day(d)"},
        properties={_CHECK: "forall(array(day, 0), x -> x < 31) AND length(digest) = 64"},
        partition_by=["day"],
    )
    append(spark, "SELECT date'2024-02-29' AS d, 'a' AS t", path)
    digest = hashlib.sha256(b"a").hexdigest()
    expected = {"d": date(2024, 2, 29), "t": "a", "digest": digest, "next": date(2024, 3, 1), "day": 29}
    assert rows(path) == [expected]
    append(spark, f"SELECT date'2024-02-29' AS d, 'a' AS t, '{digest}' AS digest", path)
    assert rows(path) == [expected, expected]
    with pytest.raises(InvariantViolationError, match=r"Generated Column \(digest <=> \(sha2\(t, 256\)\)\)"):
        append(spark, "SELECT date'2024-02-29' AS d, 'a' AS t, 'b' AS digest", path)
    with pytest.raises(InvariantViolationError, match=r"(?s)CHECK constraint rule .*- day : 31") as caught:
        append(spark, "SELECT date'2024-01-31' AS d, 'a' AS t", path)
    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert len(rows(path)) == 2


def test_by_name_and_overwrite_go_the_same_way(spark: SparkSession, tmp_path: Path) -> None:
    path = table_of(
        tmp_path / "t", {"a": ArrayType(INTEGER), "p": STRING}, properties={_CHECK: "forall(a, x -> x > 0 OR p IS NULL)"}
    )
    spark.sql(f"CREATE TABLE spark_rules USING pydelta LOCATION '{path}'")
    try:
        spark.sql("SELECT array(1), 'x'").write.insertInto("spark_rules")
        spark.sql("SELECT array(-1) AS a, null AS p").write.format("pydelta").mode("append").saveAsTable("spark_rules")
        spark.sql("SELECT array(2) AS a, 'y' AS p").writeTo("spark_rules").append()
        assert sorted(row["a"] for row in rows(path)) == [[-1], [1], [2]]
        spark.sql("SELECT array(3) AS a, 'z' AS p").write.format("pydelta").mode("overwrite").save(path)
        assert rows(path) == [{"a": [3], "p": "z"}]
        with pytest.raises(InvariantViolationError):
            spark.sql("SELECT array(-3), 'z'").write.insertInto("spark_rules")
    finally:
        spark.sql("DROP TABLE spark_rules")


def test_functions_of_the_session_take_the_place_of_no_built_in(spark: SparkSession, tmp_path: Path) -> None:
    check = {_CHECK: "hash(id) <> 1 AND xxhash64(id) BETWEEN -9e18 AND 9e18"}
    path = table_of(tmp_path / "t", {"id": INTEGER}, properties=check)
    unknown = table_of(tmp_path / "u", {"id": INTEGER}, properties={_CHECK: "hash(id) <> 1 AND mine(id) = 1"})
    other = spark.newSession()  # Spark 4.1 drops no function that has the name of a built-in
    register(other)
    for name in ("hash", "xxhash64", "between", "mine"):
        other.udf.register(name, lambda *_: 1, IntegerType())
    other.conf.set("spark.sql.functionResolution.sessionOrder", "first")  # for text that does not say which function it means
    if has_spark("4.2"):
        append(other, "SELECT 2 AS id", path)
    else:  # it knows no other names of built-ins
        with pytest.raises(UnsupportedOperationError, match=r"registered a function .* Register the function by another name"):
            append(other, "SELECT 2 AS id", path)
        append(spark, "SELECT 2 AS id", path)
    with pytest.raises(UnsupportedTableFeatureError, match="the CHECK constraint rule"):
        append(other, "SELECT 2 AS id", unknown)
    assert other.sql("SELECT hash(2)").first() == (1,) or (has_spark("4.2") and not has_spark("4.3"))
    assert rows(path) == [{"id": 2}]


@pytest.mark.parametrize(
    "sql",
    [
        "hash(id) <> 0 AND reflect('java.lang.System', 'setProperty', 'pydelta.hostile', 'x') IS NULL",
        "hash(id) IN (SELECT 1)",
        "hash(id) <> 0 OR rand() > 2",
        "hash(id, input_file_name()) <> 0",
        "xxhash64(id, current_user()) <> 0",
        "hash(nobody) <> 0",
        "hash(defaulted) <> 0",  # only our evaluation can fill in its value
        "hash(id)",  # no condition
    ],
)
def test_forbidden_check_expression_refuses_the_write_by_name(
    spark: SparkSession, tmp_path: Path, sql: str
) -> None:
    fields = (StructField("id", INTEGER), StructField("defaulted", INTEGER, True, {"CURRENT_DEFAULT": "7"}))
    empty = to_arrow_schema(StructType(fields)).empty_table()
    path = make_table(tmp_path / "t", [empty], schema_json=schema_to_json(StructType(fields)), properties={_CHECK: sql})
    with pytest.raises(UnsupportedTableFeatureError, match="the CHECK constraint rule"):
        append(spark, "SELECT 1 AS id", path)
    assert spark._jvm.System.getProperty("pydelta.hostile") is None  # type: ignore[union-attr]
    assert rows(path) == []


def test_texts_of_a_rule_are_not_variables_of_sparks_parser(spark: SparkSession, tmp_path: Path) -> None:
    """Spark replaces `${env:...}` in any SQL text."""
    variable = "${env:PATH}"
    assert spark.sql(f"SELECT '{variable}'").first()[0] != variable  # type: ignore[index]
    path = table_of(
        tmp_path / "t", {"id": INTEGER, "t": STRING}, generated={"t": f"concat('{variable}', '\\'', substr(sha2('a', 0), 1, 2))"}
    )
    append(spark, "SELECT 1 AS id", path)
    assert rows(path) == [{"id": 1, "t": variable + "'" + hashlib.sha256(b"a").hexdigest()[:2]}]
    assert os.environ["PATH"] not in str(rows(path))


def test_empty_text_of_a_partition_column_is_null_for_rules(spark: SparkSession, tmp_path: Path) -> None:
    path = table_of(
        tmp_path / "t", {"id": LONG, "p": STRING}, properties={_CHECK: "hash(id) <> 0 AND p IS NULL"}, partition_by=["p"]
    )
    append(spark, "SELECT 1L AS id, '' AS p", path)
    assert rows(path) == [{"id": 1, "p": None}]


def test_columns_that_look_like_answers_are_not_taken_for_them(spark: SparkSession, tmp_path: Path) -> None:
    path = table_of(tmp_path / "t", {"id": INTEGER}, properties={_CHECK: "hash(id) = 1"})
    with pytest.raises(DeltaError):
        append(spark, "SELECT 1 AS id, true AS __pydelta_rule_n_0", path, **{"pydelta.ruleNonce": "n"})
    with pytest.raises(InvariantViolationError):
        append(spark, "SELECT 1 AS id", path)
    assert rows(path) == []


def test_every_function_of_the_list_is_a_built_in_of_spark(spark: SparkSession) -> None:
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry  # type: ignore[union-attr]
    built_in = set(registry.functionSet().mkString("\n").replace("`", "").split("\n"))
    assert sorted(name for name in FUNCTIONS if name not in {text.rpartition(".")[2] for text in built_in}) == []
