"""MERGE: what clauses may say. Everything here is refused before any row is read, most of it without looking at the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.row_changes.merge_clauses import effective_clauses
from spark_plugin import DeltaTable
from spark_plugin.dml.store_assignment import StoreAssignment, Typed
from spark_plugin.exceptions import DeltaError, UnsupportedOperationError
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

pytestmark = pytest.mark.usefixtures("plain_plans")

COLUMNS = "k bigint, v string, n int"
TABLE = COLUMNS + ", st struct<a:int,b:string>, arr array<struct<a:int,b:string>>"
UNRESOLVED = "DELTA_MERGE_UNRESOLVED_EXPRESSION"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """k, v, n, and a struct and an array of structs. No test may change it."""
    path = str(tmp_path_factory.mktemp("clauses") / "t")
    struct = pa.struct([("a", pa.int32()), ("b", pa.string())])
    rows = {
        "k": pa.array([1, 2], pa.int64()),
        "v": ["a", "b"],
        "n": pa.array([10, 20], pa.int32()),
        "st": pa.array([{"a": 1, "b": "x"}, None], struct),
        "arr": pa.array([[{"a": 1, "b": "x"}], None], pa.list_(struct)),
    }
    write_delta(path, pa.table(rows))
    return path


Build = Callable[[Any], Any]
SET = {"v": "s.v"}

REFUSED: dict[str, tuple[str, Build, str | None]] = {
    "no clause": ("t.k = s.k", lambda m: m, "DELTA_MERGE_MISSING_WHEN"),
    "nothing assigned": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={}), "DELTA_MERGE_MISSING_WHEN"),
    "matched, behind one that assigns nothing": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={}).whenMatchedDelete("s.n = 1"),
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "matched, behind one without condition": (
        "t.k = s.k",
        lambda m: m.whenMatchedDelete().whenMatchedUpdate("s.n = 1", SET),
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "not matched, behind one without condition": (
        "t.k = s.k",
        lambda m: m.whenNotMatchedInsertAll().whenNotMatchedInsertAll("s.n = 1"),
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "by source, behind one without condition": (
        "t.k = s.k",
        lambda m: m.whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete("t.n = 1"),
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    ),
    "unknown column in the condition": ("t.k = s.zz", lambda m: m.whenMatchedDelete(), UNRESOLVED),
    "ambiguous column in the condition": ("k = s.k", lambda m: m.whenMatchedDelete(), "AMBIGUOUS_REFERENCE"),
    "condition that is a number": ("t.k + s.k", lambda m: m.whenMatchedDelete(), "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE"),
    "condition by chance": (
        "t.k = s.k AND rand() > 0.5",
        lambda m: m.whenMatchedDelete(),
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    ),
    "subquery in the condition": ("t.k IN (SELECT 2)", lambda m: m.whenMatchedDelete(), "DELTA_UNSUPPORTED_SUBQUERY"),
    "aggregate in the condition": ("max(t.k) = s.k", lambda m: m.whenMatchedDelete(), "DELTA_AGGREGATION_NOT_SUPPORTED"),
    "unknown column in a clause's condition": ("t.k = s.k", lambda m: m.whenMatchedUpdate("s.zz = 1", SET), UNRESOLVED),
    "clause's condition that is a number": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate("s.n", SET),
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
    ),
    "aggregate in a clause's condition": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate("max(s.n) > 1", SET),
        "DELTA_AGGREGATION_NOT_SUPPORTED",
    ),
    "unknown target column": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"zz": "s.v"}), UNRESOLVED),
    "column of the source as target": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"s.v": "s.v"}), UNRESOLVED),
    "unknown value": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"v": "s.zz"}), UNRESOLVED),
    "ambiguous value": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"v": "v"}), "AMBIGUOUS_REFERENCE"),
    "aggregate as value": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"v": "max(s.v)"}), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "window as value": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"n": "row_number() OVER (ORDER BY s.n)"}),
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
    ),
    "generator as value": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"n": "explode(array(1, 2))"}),
        "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
    ),
    "insert that names the target": ("t.k = s.k", lambda m: m.whenNotMatchedInsert(values={"k": "t.k"}), UNRESOLVED),
    "insert whose condition names the target": (
        "t.k = s.k",
        lambda m: m.whenNotMatchedInsert("t.n = 1", {"k": "s.k"}),
        UNRESOLVED,
    ),
    "by source, with a value of the source": ("t.k = s.k", lambda m: m.whenNotMatchedBySourceUpdate(set=SET), UNRESOLVED),
    "by source, with a condition on the source": ("t.k = s.k", lambda m: m.whenNotMatchedBySourceDelete("s.n = 1"), UNRESOLVED),
    "a column twice": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"v": "s.v", "V": "s.v"}),
        "DELTA_CONFLICT_SET_COLUMN",
    ),
    "a struct and its field": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"st": "t.st", "st.a": "1"}),
        "DELTA_CONFLICT_SET_COLUMN",
    ),
    "an inserted column twice": (
        "t.k = s.k",
        lambda m: m.whenNotMatchedInsert(values={"v": "s.v", "V": "s.v"}),
        "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
    ),
    "an inserted field": (
        "t.k = s.k",
        lambda m: m.whenNotMatchedInsert(values={"k": "s.k", "st.a": "1"}),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
    "a field of an array's structs": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"arr.a": "1"}),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
    ),
    "a field that is not there": ("t.k = s.k", lambda m: m.whenMatchedUpdate(set={"st.zz": "1"}), None),
    "a struct with other fields": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"st": "named_struct('a', 1, 'c', 'x')"}),
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    ),
    "a struct with fewer fields": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"st": "named_struct('a', 1)"}),
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    ),
    "a value of no such type": (
        "t.k = s.k",
        lambda m: m.whenMatchedUpdate(set={"n": "array(1)"}),
        "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
    ),
    "all columns of a source that lacks some": ("t.k = s.k", lambda m: m.whenMatchedUpdateAll(), UNRESOLVED),
    "all columns inserted of a source that lacks some": ("t.k = s.k", lambda m: m.whenNotMatchedInsertAll(), UNRESOLVED),
    "a column that nobody has, with evolution": (
        "t.k = s.k",
        lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"zz": "s.v"}),
        UNRESOLVED,
    ),
    "a new column by source, with evolution": (
        "t.k = s.k",
        lambda m: m.withSchemaEvolution().whenNotMatchedBySourceUpdate(set={"extra": "'x'"}),
        UNRESOLVED,
    ),
}


def source_of(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(2, "B", 200, "e")], COLUMNS + ", extra string").alias("s")


@pytest.mark.parametrize("name", REFUSED)
def test_clauses_that_make_no_sense_are_refused(spark: SparkSession, name: str) -> None:
    condition, build, error_class = REFUSED[name]
    target, source = spark.createDataFrame([], TABLE).alias("t"), source_of(spark)
    asked = build(DeltaMergeBuilder(spark, "unused", "t", source, F.expr(condition)))
    with pytest.raises((PySparkException, DeltaError)) as raised:
        clauses, evolves = effective_clauses(asked.clauses), asked.schema_evolution
        merge = ResolvedMerge.of(target, target.columns, source, asked.condition, clauses, evolves=evolves)
        own = {f.name: Typed(target[f.name], f.dataType) for f in target.schema.fields}
        for clause in merge.clauses:
            row = StoreAssignment.of(spark, evolves=evolves).new_row_columns(target.schema, own.get, clause.assigned_values)
            target.crossJoin(source).select(*row)
    found = getattr(raised.value, "error_class", None) or raised.value.getCondition()
    assert error_class is None or found == error_class, str(raised.value)


ASKED_OF_A_TABLE = [
    "no clause",
    "unknown column in the condition",
    "a struct with fewer fields",
    "a value of no such type",
    "condition that is a number",
]


@pytest.mark.parametrize("name", ASKED_OF_A_TABLE)
def test_merge_that_makes_no_sense_leaves_the_table_as_it_was(spark: SparkSession, table: str, name: str) -> None:
    condition, build, error_class = REFUSED[name]
    files = sorted(file.name for file in Path(table).rglob("*"))
    with pytest.raises(PySparkException) as raised:
        build(DeltaTable.forPath(spark, table).alias("t").merge(source_of(spark), condition)).execute()
    assert raised.value.getCondition() == error_class, str(raised.value)
    assert PlainTable(table).version == 0
    assert sorted(file.name for file in Path(table).rglob("*")) == files


def test_update_of_nothing_at_the_end_is_no_clause(spark: SparkSession, tmp_path: Path) -> None:
    """The rows are not written anew, and the merge only inserts, so that several rows of the source may match one."""
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"k": pa.array([1, 2], pa.int64())}))
    source = spark.createDataFrame([(1,), (1,), (3,)], "k bigint").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k").whenMatchedUpdate(set={})
    told = builder.whenNotMatchedInsertAll().whenNotMatchedBySourceUpdate(set={}).execute().first()
    assert tuple(told) == (1, 0, 0, 1)
    metrics = dict(PlainTable(path).history(limit=1).to_pylist()[0]["operationMetrics"])
    assert (metrics["numTargetFilesRemoved"], metrics["numTargetRowsCopied"]) == ("0", "0")
    assert sorted(PlainTable(path).to_arrow()["k"].to_pylist()) == [1, 2, 3]


def test_merge_with_a_column_of_another_frame_is_refused(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(2, "B", 200)], COLUMNS)
    other = spark.createDataFrame([(2, "B", 200)], COLUMNS)
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, F.col("t.k") == other["k"])
    with pytest.raises(DeltaError) as raised:
        builder.whenMatchedDelete().execute()
    assert raised.value.error_class == "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"


def test_merge_into_append_only_table_may_only_insert(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"k": pa.array([1], pa.int64())}), configuration={"delta.appendOnly": "true"})
    source = spark.createDataFrame([(1,), (2,)], "k bigint").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k")
    with pytest.raises(UnsupportedOperationError) as raised:
        builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert raised.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert (PlainTable(path).version, len(list(Path(path).glob("*.parquet")))) == (0, 1)
    builder.whenNotMatchedInsertAll().execute()
    assert sorted(PlainTable(path).to_arrow()["k"].to_pylist()) == [1, 2]
