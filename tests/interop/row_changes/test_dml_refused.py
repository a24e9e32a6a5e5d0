"""DELETE and UPDATE that are refused, or that convert values, by pydelta and by delta-spark on copies of one table: the
conditions of errors or the rows are the same. A table here lists where we do more than delta-spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable
from tests.support.peers.merge_peers import assert_same_tables, condition_of, files_of

TABLE = (
    "CREATE TABLE {table} (number BIGINT GENERATED ALWAYS AS IDENTITY, k BIGINT, v STRING NOT NULL, n INT, twice INT GENERATED "
    "ALWAYS AS (n * 2), c CHAR(3), w VARCHAR(2), day DATE, amount DECIMAL(5, 2), st STRUCT<a: INT, b: STRUCT<c: STRING, d: INT>>"
    ", arr ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>, `a.b` INT, p STRING) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE {table} ADD CONSTRAINT few CHECK (n < 100)",
    "INSERT INTO {table} (k, v, n, c, w, day, amount, st, arr, m, `a.b`, p) SELECT id, string(id), int(id), 'c', 'w', "
    "date'2024-01-01', id / 4, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', int(id))), array(named_struct('x', 1)), "
    "map('k', 1), int(id), concat('p ', id % 2) FROM range(6)",
)
# delta-spark refuses a DELETE of a table with CHAR columns: it finds no table below the padding.
WITHOUT_CHAR = (TABLE[0].replace("c CHAR(3)", "c VARCHAR(3)"), *TABLE[1:])
CASES: dict[str, Callable[[Any], object]] = {
    "delete by an unknown column": lambda t: t.delete("zz = 1"),
    "delete by an unknown alias": lambda t: t.alias("t").delete("u.k = 1"),
    "delete by an unknown field": lambda t: t.delete("st.zz = 1"),
    "delete by a number": lambda t: t.delete("k + 1"),
    "delete by a text": lambda t: t.delete("v"),
    "delete by no expression": lambda t: t.delete("k >"),
    "delete by chance": lambda t: t.delete("rand() < 0.5"),
    "delete by an aggregate": lambda t: t.delete("max(k) = 1"),
    "delete by a window": lambda t: t.delete("row_number() OVER (ORDER BY k) = 1"),
    "delete by a generator": lambda t: t.delete("explode(array(true))"),
    "delete by a text that is no number": lambda t: t.delete("CAST(concat('x', v) AS INT) = 1"),
    "delete by a name with a dot": lambda t: t.delete("`a.b` = 3"),
    "delete by null": lambda t: t.delete(F.lit(None).cast("boolean")),
    "delete by an untyped null": lambda t: t.delete("NULL"),
    "delete by an alias": lambda t: t.alias("T").delete("t.K = 3"),
    "update of an unknown column": lambda t: t.update("k = 1", {"zz": "1"}),
    "update of an unknown field": lambda t: t.update("k = 1", {"st.zz": "1"}),
    "update by an unknown column": lambda t: t.update("zz = 1", {"n": "1"}),
    "update to an unknown column": lambda t: t.update("k = 1", {"n": "zz"}),
    "update by a number": lambda t: t.update("k + 1", {"n": "1"}),
    "update by chance": lambda t: t.update("rand() < 0.5", {"n": "1"}),
    "update to an aggregate": lambda t: t.update("k = 1", {"n": "max(n)"}),
    "update to a window": lambda t: t.update("k = 1", {"n": "row_number() OVER (ORDER BY k)"}),
    "update to a generator": lambda t: t.update("k = 1", {"n": "explode(array(1))"}),
    "update of a column twice": lambda t: t.update("k = 1", {"v": "'x'", "V": "'y'"}),
    "update of a struct and its field": lambda t: t.update("k = 1", {"st": "st", "st.a": "1"}),
    "update of a field and a field in it": lambda t: t.update("k = 1", {"st.b": "st.b", "st.b.d": "1"}),
    "update of fields beside each other": lambda t: t.update("k = 1", {"st.a": "st.b.d", "st.b.d": "st.a"}),
    "update of an array's field": lambda t: t.update("k = 1", {"arr.x": "array(1)"}),
    "update of an array's element": lambda t: t.update("k = 1", {"arr[0]": "NULL"}),
    "update of a map's entry": lambda t: t.update("k = 1", {"m.k": "1"}),
    "update of an expression": lambda t: t.update("k = 1", {"n + 1": "1"}),
    "update of an identity column": lambda t: t.update("k = 1", {"number": "7"}),
    "update of a computed column, rightly": lambda t: t.update("k = 1", {"n": "5", "twice": "10"}),
    "update of a computed column, wrongly": lambda t: t.update("k = 1", {"twice": "7"}),
    "update of what a column is computed of": lambda t: t.update("k = 1", {"n": "n + 40"}),
    "update of a partition column": lambda t: t.update("k = 1", {"p": "'p 0'"}),
    "update of a partition column to null": lambda t: t.update("p = 'p 1'", {"p": "NULL"}),
    "update to null where it may not be": lambda t: t.update("k = 1", {"v": "NULL"}),
    "update against a rule": lambda t: t.update("k = 1", {"n": "100"}),
    "update to a text that is too long": lambda t: t.update("k = 1", {"c": "'four'"}),
    "update to a text that is long by blanks": lambda t: t.update("k = 1", {"w": "'a   '", "c": "'a     '"}),
    "update to a text that is padded": lambda t: t.update("k = 1", {"c": "'z'"}),
    "update to a text that is no number": lambda t: t.update("k = 1", {"n": "'x'"}),
    "update to a text that is a number": lambda t: t.update("k = 1", {"n": "' 12 '"}),
    "update to a number that is too large": lambda t: t.update("k = 1", {"n": "5000000000"}),
    "update to a decimal that is too large": lambda t: t.update("k = 1", {"amount": "12345"}),
    "update to a decimal that is rounded": lambda t: t.update("k = 1", {"amount": "1.2355"}),
    "update to a number for a text": lambda t: t.update("k = 1", {"v": "n"}),
    "update to a number for a date": lambda t: t.update("k = 1", {"day": "5"}),
    "update to a text for a date": lambda t: t.update("k = 1", {"day": "'2024-02-03'"}),
    "update to a timestamp for a date": lambda t: t.update("k = 1", {"day": "timestamp'2024-02-03 23:00:00'"}),
    "update to an array for a number": lambda t: t.update("k = 1", {"n": "array(1)"}),
    "update to a struct with other fields": lambda t: t.update("k = 1", {"st": "named_struct('z', 1)"}),
    "update to a struct with fewer fields": lambda t: t.update("k = 1", {"st": "named_struct('a', 1)"}),
    "update to a struct with more fields": lambda t: t.update("k = 1", {"st.b": "named_struct('c', 'x', 'd', 1, 'e', 1)"}),
    "update to a struct in another order": lambda t: t.update("k = 1", {"st.b": "named_struct('d', 1, 'c', 'x')"}),
    "update to a struct of texts": lambda t: t.update("k = 1", {"st.b": "named_struct('c', 1, 'd', '2')"}),
    "update to a struct of nulls": lambda t: t.update("k = 1", {"st": "NULL", "arr": "NULL", "m": "NULL"}),
    "update to an array of structs with fewer fields": lambda t: t.update("k = 1", {"arr": "array(named_struct('y', 1))"}),
    "update of a name with a dot": lambda t: t.update("k = 1", {"`a.b`": "`a.b` + 1"}),
    "update of a name with a dot, without quotes": lambda t: t.update("k = 1", {"a.b": "1"}),
    "update of nothing": lambda t: t.update("k = 1", {}),
    "update of no rows": lambda t: t.update("k = 100", {"n": "1"}),
    "update to the same": lambda t: t.update("k = 1", {"n": "n"}),
    "update to a default": lambda t: t.update("k = 1", {"n": "DEFAULT"}),
}
# Our result of a case, and delta-spark's.
DIFFERENT: dict[str, tuple[Any, Any]] = {
    # Our error has Delta's condition, as in a MERGE; delta-spark leaves the check to Spark.
    "delete by chance": ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
    "update by chance": ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
    # Our errors are Spark's for filters, which name the clause; delta-spark's command treats the conditions as mere expressions.
    "delete by an aggregate": ("INVALID_WHERE_CONDITION", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "delete by a window": ("WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    # delta-spark finds the cast unresolved only after Spark's own check, whose error we raise.
    "update to a number for a date": ("DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", "DELTA_CANNOT_RESOLVE_EXPRESSION"),
    "update to an array for a number": ("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "DELTA_CANNOT_RESOLVE_EXPRESSION"),
    "update of nothing": (0, 1),  # versions: delta-spark rewrites the files although no value is assigned
}
# delta-spark refuses these; we do them.
MORE = {
    "delete by a subquery": ("plain", lambda t: t.delete("k IN (SELECT id FROM range(2))")),
    "delete with a char column": ("char", lambda t: t.delete("k < 2")),
    "update by a subquery": ("plain", lambda t: t.update("k IN (SELECT id FROM range(2))", {"n": "1"})),
}


@pytest.fixture(scope="module")
def first(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two tables; one has a CHAR column."""
    folder = tmp_path_factory.mktemp("first")
    definitions = {"char": TABLE, "plain": WITHOUT_CHAR}
    for name, statements in definitions.items():
        for statement in statements:
            spark.sql(statement.format(table=f"delta.`{folder / name}`"))
    return {name: folder / name for name in definitions}


def outcome(of: Any, spark: SparkSession, path: str, call: Callable[[Any], object]) -> str | int | None:
    """The condition of the error, or the number of new versions."""
    before, files = PlainTable(path).version, files_of(path)
    try:
        call(of.forPath(spark, path))
    except (PySparkException, Py4JJavaError) as error:
        if of is DeltaTable:
            assert (PlainTable(path).version, files_of(path)) == (before, files)
        return condition_of(error)
    return PlainTable(path).version - before


@pytest.mark.parametrize("name", CASES)
def test_delete_and_update_are_refused_as_by_delta_spark(
    spark: SparkSession, tmp_path: Path, first: dict[str, Path], name: str
) -> None:
    theirs = pytest.importorskip("delta.tables").DeltaTable
    outcomes = {}
    for side, of in (("theirs", theirs), ("ours", DeltaTable)):
        shutil.copytree(first["plain" if name.startswith("delete") else "char"], tmp_path / side)
        outcomes[side] = outcome(of, spark, str(tmp_path / side), CASES[name])
    assert None not in outcomes.values()
    expected = DIFFERENT.get(name, (outcomes["theirs"], outcomes["theirs"]))
    assert (outcomes["ours"], outcomes["theirs"]) == expected
    assert_same_tables(*(PlainTable(str(tmp_path / side)) for side in ("ours", "theirs")), since=3)


@pytest.mark.parametrize("name", MORE)
def test_what_delta_spark_refuses_is_done(spark: SparkSession, tmp_path: Path, first: dict[str, Path], name: str) -> None:
    theirs, (table, call) = pytest.importorskip("delta.tables").DeltaTable, MORE[name]
    path = str(shutil.copytree(first[table], tmp_path / "t"))
    assert isinstance(outcome(theirs, spark, path, call), str)
    assert outcome(DeltaTable, spark, path, call) == 1
    rows = {row["k"]: row["n"] for row in spark.read.format("delta").load(path).collect()}
    assert rows == ({k: k for k in range(2, 6)} if "delete" in name else {**{k: k for k in range(6)}, 0: 1, 1: 1})
