"""MERGE: values of other types, structs by name, nested fields, computed columns, and schema evolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable

pytestmark = pytest.mark.usefixtures("plain_plans")

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
NESTED = pa.schema(
    [
        ("k", pa.int64()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.int32()), ("e", pa.int32())]))])),
        ("arr", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.int32())]))),
    ]
)


@pytest.fixture
def nested(tmp_path: Path) -> str:
    """1 and 2 with structs, 3 without."""
    path = str(tmp_path / "nested")
    rows = [
        {"k": 1, "st": {"a": 1, "b": "one", "c": {"d": 10, "e": 11}}, "arr": [{"x": 1, "y": 2}]},
        {"k": 2, "st": {"a": 2, "b": "two", "c": {"d": 20, "e": 21}}, "arr": None},
        {"k": 3, "st": None, "arr": []},
    ]
    write_delta(path, pa.Table.from_pylist(rows, NESTED))
    return path


@pytest.fixture
def flat(tmp_path: Path) -> str:
    path = str(tmp_path / "flat")
    rows = {"k": pa.array([1, 2], pa.int64()), "v": ["a", "b"], "n": pa.array([10, 20], pa.int32())}
    write_delta(path, pa.table(rows))
    return path


def merging(spark: SparkSession, path: str, source: DataFrame) -> Any:
    return DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.k = s.k")


def stored(path: str) -> dict[int, dict[str, Any]]:
    """The rows by their key, without it."""
    rows = PlainTable(path).to_arrow().to_pylist()
    return {row.pop("k"): row for row in rows}


# ---------------------------------------------------------------- without evolution


def test_merge_structs_are_matched_by_the_names_of_their_fields(spark: SparkSession, nested: str) -> None:
    rows = [(2, ("TWO", 22, (200, 210)), [(9, 8)]), (3, ("THREE", 33, None), []), (4, None, None)]
    types = "k bigint, st struct<b:string,A:bigint,c:struct<e:int,d:int>>, arr array<struct<y:int,x:int>>"
    merging(spark, nested, spark.createDataFrame(rows, types)).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    stored_rows = stored(nested)
    assert stored_rows[1]["st"] == {"a": 1, "b": "one", "c": {"d": 10, "e": 11}}
    assert stored_rows[2] == {"st": {"a": 22, "b": "TWO", "c": {"d": 210, "e": 200}}, "arr": [{"x": 8, "y": 9}]}
    assert stored_rows[3] == {"st": {"a": 33, "b": "THREE", "c": None}, "arr": []}
    assert stored_rows[4] == {"st": None, "arr": None}


def test_merge_fields_of_structs_are_assigned_alone(spark: SparkSession, nested: str) -> None:
    source = spark.createDataFrame([(2, 7), (3, 8)], "k bigint, n int")
    merging(spark, nested, source).whenMatchedUpdate(set={"st.c.d": "s.n + t.k", "`st`.`b`": "'set'"}).execute()
    stored_rows = stored(nested)
    assert stored_rows[2]["st"] == {"a": 2, "b": "set", "c": {"d": 9, "e": 21}}
    assert stored_rows[3]["st"] == {"a": None, "b": "set", "c": {"d": 11, "e": None}}
    assert stored_rows[1]["st"]["b"] == "one"


def test_merge_values_are_cast_or_fail(spark: SparkSession, flat: str) -> None:
    merging(spark, flat, spark.createDataFrame([(2, 5, "12")], "k bigint, v int, n string")).whenMatchedUpdateAll().execute()
    assert stored(flat)[2] == {"v": "5", "n": 12}
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for kind, value, condition in (
            ("bigint", 2**40, "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
            ("string", "abc", "CAST_INVALID_INPUT"),
        ):
            source = spark.createDataFrame([(2, "x", value)], f"k bigint, v string, n {kind}")
            with pytest.raises(PySparkException) as raised:
                merging(spark, flat, source).whenMatchedUpdateAll().execute()
            assert raised.value.getCondition() == condition
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert (PlainTable(flat).version, stored(flat)[2]["n"]) == (1, 12)


def test_merge_columns_that_compute_themselves(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("k", "bigint").addColumn("n", "int")
    builder.addColumn("g", "int", generatedAlwaysAs="n * 2").execute()
    spark.createDataFrame([(1, 10), (2, 20)], "k bigint, n int").write.format("pydelta").mode("append").save(path)
    source = spark.createDataFrame([(2, 5), (3, 7)], "k bigint, n int")
    plain = merging(spark, path, source).whenMatchedUpdate(set={"n": "s.n"})
    plain.whenNotMatchedInsert(values={"k": "s.k", "n": "s.n"}).execute()
    assert stored(path) == {1: {"n": 10, "g": 20}, 2: {"n": 5, "g": 10}, 3: {"n": 7, "g": 14}}
    mixed = merging(spark, path, spark.createDataFrame([(2, 6), (3, 8), (4, 9)], "k bigint, n int"))
    mixed = mixed.whenMatchedUpdate("s.k = 2", {"n": "s.n", "g": "s.n * 2"}).whenMatchedUpdate(set={"n": "s.n"})
    mixed.whenNotMatchedInsert(values={"k": "s.k", "n": "s.n"}).execute()
    assert stored(path) == {1: {"n": 10, "g": 20}, 2: {"n": 6, "g": 12}, 3: {"n": 8, "g": 16}, 4: {"n": 9, "g": 18}}
    wrong = merging(spark, path, source).whenMatchedUpdate(set={"g": "1"})
    with pytest.raises(PySparkException) as raised:
        wrong.execute()
    assert raised.value.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert PlainTable(path).version == 3


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_merge_computes_unassigned_generated_partition_columns(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("k", "bigint").addColumn("o", "string")
    builder.addColumn("g-g", "bigint", generatedAlwaysAs="CAST(k % 3 AS BIGINT)").partitionedBy("g-g")
    builder.property("delta.enableDeletionVectors", vectors).execute()
    rows = [(key, "old") for key in range(6)]
    spark.createDataFrame(rows, "k bigint, o string").write.format("pydelta").mode("append").save(path)
    source = spark.createDataFrame([(4, "a"), (5, "b"), (7, "c")], "k bigint, o string")
    both = merging(spark, path, source).whenMatchedUpdate("s.k = 4", {"o": "s.o"}).whenMatchedUpdate(set={"k": "s.k + 10"})
    both.whenNotMatchedInsert(values={"k": "s.k", "o": "s.o"}).whenNotMatchedBySourceDelete("t.k = 0").execute()
    values = {1: "old", 2: "old", 3: "old", 4: "a", 7: "c", 15: "old"}
    assert stored(path) == {key: {"o": value, "g-g": key % 3} for key, value in values.items()}
    keyed = spark.createDataFrame([(1, 1, "d"), (2, 2, "e"), (3, 1, "f")], "k bigint, g bigint, o string")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(keyed.alias("s"), "t.k = s.k AND t.`g-g` = s.g")
    builder.whenMatchedUpdate(set={"k": "s.k + 20", "o": "s.o"}).execute()
    values = {21: "d", 22: "e", **{key: value for key, value in values.items() if key > 2}}
    assert stored(path) == {key: {"o": value, "g-g": key % 3} for key, value in values.items()}


# ---------------------------------------------------------------- with evolution


@pytest.fixture(params=["builder", "setting"])
def evolving(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Callable[[Any], Any]]:
    """Switches schema evolution on, in each of its ways."""
    if request.param == "builder":
        yield lambda builder: builder.withSchemaEvolution()
        return
    spark.conf.set(AUTO_MERGE, "true")
    yield lambda builder: builder
    spark.conf.unset(AUTO_MERGE)


def test_merge_with_evolution_adds_the_columns_of_the_source(
    spark: SparkSession, flat: str, evolving: Callable[[Any], Any]
) -> None:
    source = spark.createDataFrame([(2, "B", "e2", 1.5), (4, "D", "e4", 2.5)], "K bigint, V string, extra string, more double")
    builder = evolving(merging(spark, flat, source)).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    builder.whenNotMatchedBySourceUpdate(set={"n": "0"}).execute()
    assert PlainTable(flat).schema().names == ["k", "v", "n", "extra", "more"]
    assert stored(flat) == {
        1: {"v": "a", "n": 0, "extra": None, "more": None},
        2: {"v": "B", "n": 20, "extra": "e2", "more": 1.5},
        4: {"v": "D", "n": None, "extra": "e4", "more": 2.5},
    }


def test_merge_schema_evolution_adds_only_assigned_columns(spark: SparkSession, flat: str) -> None:
    source = spark.createDataFrame([(2, "B", "e2", 1.5), (4, "D", "e4", 2.5)], "k bigint, v string, extra string, more double")
    builder = merging(spark, flat, source).withSchemaEvolution().whenMatchedUpdate(set={"extra": "concat(s.extra, '!')"})
    builder.whenNotMatchedInsert(values={"k": "s.k"}).execute()
    assert PlainTable(flat).schema().names == ["k", "v", "n", "extra"]
    assert stored(flat) == {
        1: {"v": "a", "n": 10, "extra": None},
        2: {"v": "b", "n": 20, "extra": "e2!"},
        4: {"v": None, "n": None, "extra": None},
    }


def test_merge_schema_evolution_keeps_fields_of_target_structs(spark: SparkSession, nested: str) -> None:
    rows = [(1, None), (2, ("TWO", 7, (210, "f"))), (3, None), (9, ("N", 1, None))]
    source = spark.createDataFrame(rows, "k bigint, st struct<b:string,z:int,c:struct<e:int,f:string>>")
    builder = merging(spark, nested, source).withSchemaEvolution()
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    stored_rows = stored(nested)
    assert stored_rows[2]["st"] == {"a": 2, "b": "TWO", "c": {"d": 20, "e": 210, "f": "f"}, "z": 7}
    assert stored_rows[1]["st"] == {"a": 1, "b": None, "c": {"d": 10, "e": None, "f": None}, "z": None}
    assert stored_rows[3]["st"] is None
    assert stored_rows[9]["st"] == {"a": None, "b": "N", "c": None, "z": 1}
    assert stored_rows[1]["arr"] == [{"x": 1, "y": 2}]


def test_merge_with_evolution_of_a_field_and_of_arrays(spark: SparkSession, nested: str) -> None:
    source = spark.createDataFrame([(2, [(1, 5)], 77)], "k bigint, arr array<struct<x:int,z:int>>, n int")
    builder = merging(spark, nested, source.selectExpr("k", "arr", "named_struct('new', n) AS st")).withSchemaEvolution()
    builder.whenMatchedUpdate(set={"arr": "s.arr", "st.new": "s.st.new"}).execute()
    stored_rows = stored(nested)
    assert stored_rows[2]["arr"] == [{"x": 1, "y": None, "z": 5}]
    assert stored_rows[2]["st"] == {"a": 2, "b": "two", "c": {"d": 20, "e": 21}, "new": 77}
    assert stored_rows[1]["arr"] == [{"x": 1, "y": 2, "z": None}]


def test_merge_with_evolution_widens_types_where_the_table_may(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"k": pa.array([1, 2], pa.int64()), "n": pa.array([10, 20], pa.int32())})
    write_delta(path, data, configuration={"delta.enableTypeWidening": "true"})
    source = spark.createDataFrame([(2, 2**40)], "k bigint, n bigint")
    merging(spark, path, source).withSchemaEvolution().whenMatchedUpdateAll().execute()
    assert stored(path) == {1: {"n": 10}, 2: {"n": 2**40}}


def test_merge_schema_evolution_casts_texts_to_existing_columns(spark: SparkSession, flat: str) -> None:
    source = spark.sql("SELECT '2' AS k, 1.5D AS v, '21' AS n, 'e' AS extra UNION ALL SELECT '4', 0.25D, NULL, NULL")
    builder = merging(spark, flat, source).withSchemaEvolution()
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert stored(flat) == {
        1: {"v": "a", "n": 10, "extra": None},
        2: {"v": "1.5", "n": 21, "extra": "e"},
        4: {"v": "0.25", "n": None, "extra": None},
    }
    with pytest.raises(PySparkException) as raised:
        merging(spark, flat, spark.sql("SELECT 2L AS k, 'many' AS n")).withSchemaEvolution().whenMatchedUpdateAll().execute()
    assert raised.value.getCondition() == "CAST_INVALID_INPUT"
    assert PlainTable(flat).version == 1


@pytest.mark.parametrize(
    ("column", "error_class"),
    [("array(1) AS n", "DELTA_FAILED_TO_MERGE_FIELDS"), ("NULL AS nothing", "DELTA_MERGE_ADD_VOID_COLUMN")],
)
def test_merge_schema_evolution_refuses_incompatible_types(
    spark: SparkSession, flat: str, column: str, error_class: str
) -> None:
    source = spark.sql(f"SELECT 2L AS k, 'x' AS v, {column}")
    with pytest.raises(PySparkException) as raised:
        merging(spark, flat, source).withSchemaEvolution().whenMatchedUpdateAll().execute()
    assert raised.value.getCondition() == error_class
    assert PlainTable(flat).version == 0
