"""MERGE with schema evolution, and of types and structs that differ, by pydelta and by delta-spark on copies of one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.peers.merge_peers import COLUMNS, FEED, VECTORS, Case, check, evolving, upsert

ARRAYS = (
    "CREATE TABLE {table} (k BIGINT, arr ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, STRUCT<a: INT>>, deep "
    "STRUCT<list: ARRAY<STRUCT<p: STRUCT<q: INT>>>>) USING delta",
    "INSERT INTO {table} VALUES (1, array(struct(1, 2)), map('a', struct(1)), struct(array(struct(struct(5))))), "
    "(2, array(struct(3, 4), NULL), map('b', struct(2)), NULL), (3, NULL, NULL, struct(NULL))",
)
STRUCTS = (
    "CREATE TABLE {table} (k BIGINT, st STRUCT<a: INT, b: STRUCT<c: INT, d: STRING>>, n INT) USING delta",
    "INSERT INTO {table} VALUES (1, struct(1, struct(10, 'x')), 100), (2, struct(2, NULL), 200), (3, NULL, 300)",
)
NUMBERS = (
    "CREATE TABLE {table} (k BIGINT, i INT, s SMALLINT, f FLOAT, d DECIMAL(6, 2), day DATE, txt STRING) USING delta",
    "INSERT INTO {table} VALUES (1, 1, 1, 1.5, 1.25, date'2024-01-01', 'one'), (2, 2, 2, 2.5, 2.25, date'2024-01-02', 'two')",
)
AUTO = {"spark.databricks.delta.schema.autoMerge.enabled": "true"}
# delta-spark finds it in the middle of a job, and its error names the job.
TOO_LARGE = {"error": ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "TASK_WRITE_FAILED")}
UNLIKE = {"error": ("CAST_INVALID_INPUT", "TASK_WRITE_FAILED")}
WIDER = ([(2, "B", 200, "e2"), (4, "D", 400, "e4")], COLUMNS + ", extra string")

CASES: dict[str, Case] = {
    "fields of structs in arrays": Case(
        evolving, "SELECT 2L AS k, array(named_struct('z', 'new', 'x', 9)) AS arr UNION ALL SELECT 7L, NULL", table=ARRAYS
    ),
    "fields of structs in arrays, without evolution": Case(
        upsert,
        "SELECT 2L AS k, array(named_struct('x', 9, 'y', 8, 'z', 'new')) AS arr, map('b', named_struct('a', 5)) AS m, "
        "CAST(NULL AS STRUCT<list: ARRAY<STRUCT<p: STRUCT<q: INT>>>>) AS deep",
        table=ARRAYS,
    ),
    "fields of structs in maps": Case(
        evolving, "SELECT 2L AS k, map('b', named_struct('a', 9, 'new', 1)) AS m UNION ALL SELECT 8L, map()", table=ARRAYS
    ),
    "fields of structs in arrays in structs": Case(
        evolving,
        "SELECT 1L AS k, named_struct('list', array(named_struct('p', named_struct('q', 1, 'r', 'new')))) AS deep",
        table=ARRAYS,
    ),
    "arrays whose structs lack a field": Case(
        evolving,
        "SELECT 1L AS k, array(named_struct('y', 7)) AS arr UNION ALL SELECT 9L, array(named_struct('y', 8))",
        table=ARRAYS,
    ),
    "arrays whose structs lack a field, without evolution": Case(
        lambda m: m.whenMatchedUpdate(set={"arr": "s.arr"}), "SELECT 1L AS k, array(named_struct('y', 7)) AS arr", table=ARRAYS
    ),
    "fields in another order": Case(
        upsert, "SELECT 1L AS k, named_struct('b', named_struct('d', 'y', 'c', 11), 'a', 2) AS st, 7 AS n", table=STRUCTS
    ),
    "fields that only the source has, in a column that is assigned": Case(
        lambda m: (
            m.withSchemaEvolution().whenMatchedUpdate(set={"st": "s.st"}).whenNotMatchedInsert(values={"k": "s.k", "st": "s.st"})
        ),
        "SELECT id AS k, named_struct('a', 5, 'b', named_struct('c', 6, 'e', true), 'z', 1.5D) AS st FROM range(3, 5)",
        table=STRUCTS,
    ),
    "a field that is new is assigned": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"st.b.e": "s.st.b.e"}),
        "SELECT 1L AS k, named_struct('b', named_struct('e', 'new')) AS st",
        table=STRUCTS,
    ),
    "a column that is new is inserted": Case(
        lambda m: m.withSchemaEvolution().whenNotMatchedInsert(values={"k": "s.k", "extra": "upper(s.extra)"}), WIDER
    ),
    "a column that is new is assigned from others": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"extra": "concat(s.v, t.v)"}), WIDER
    ),
    "a column that no one has": Case(lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"zz": "s.extra"}), WIDER),
    "a column of the source in a condition alone": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdate("s.extra = 'e2'", {"v": "s.v"}), WIDER
    ),
    "new columns in other case": Case(
        evolving, ([(2, "B", 5, "x"), (5, "E", 6, "y")], "K bigint, V string, N int, Extra string"), properties=FEED
    ),
    "new columns by the session's setting": Case(upsert, WIDER, settings=AUTO),
    "new columns by vectors": Case(evolving, WIDER, properties={**VECTORS, **FEED}),
    "new columns with deletes by source": Case(
        lambda m: evolving(m).whenNotMatchedBySourceDelete("t.k = 1").whenNotMatchedBySourceUpdate(set={"v": "'left'"}), WIDER
    ),
    "new columns of an update, an insert names the others": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsert(values={"k": "s.k"}), WIDER
    ),
    "a new column of a source without rows": Case(  # for which we read nothing of the table
        evolving, ([], COLUMNS + ", extra double"), differs={"blind": (True, False)}
    ),
    "a column of nothing but null": Case(  # delta-spark makes it a column of type void
        evolving, "SELECT 2L AS k, 'B' AS v, 5 AS n, NULL AS nothing", differs={"error": ("DELTA_MERGE_ADD_VOID_COLUMN", None)}
    ),
    "a source that lacks columns": Case(evolving, ([(2, 7), (5, 8)], "k bigint, n int"), properties=FEED),
    "a source that lacks columns, inserted without evolution": Case(
        lambda m: m.whenNotMatchedInsertAll(), ([(5, 8)], "k bigint, n int")
    ),
    "structs beside null": Case(
        evolving,
        "SELECT id AS k, IF(id = 1, NULL, named_struct('a', 1, 'new', 2)) AS st, 1 AS n FROM range(1, 6)",
        table=STRUCTS,
    ),
    "structs that lack fields, without evolution": Case(
        upsert, "SELECT id AS k, named_struct('a', 1) AS st, 1 AS n FROM range(1, 6)", table=STRUCTS
    ),
    "a struct for a number": Case(evolving, "SELECT 1L AS k, named_struct('a', 1) AS n", table=STRUCTS),
    "a number for a struct": Case(evolving, "SELECT 1L AS k, 1 AS st", table=STRUCTS),
    "numbers that are cast": Case(
        upsert,
        "SELECT 1L AS k, 5L AS i, 6 AS s, 2.5D AS f, CAST(3.456 AS DECIMAL(10, 3)) AS d, timestamp'2024-02-03 04:05:06' AS day, "
        "77 AS txt",
        table=NUMBERS,
    ),
    "a number that is too large": Case(
        lambda m: m.whenMatchedUpdate(set={"i": "s.i"}), "SELECT 1L AS k, 5000000000L AS i", table=NUMBERS, differs=TOO_LARGE
    ),
    "a decimal that is too large": Case(
        lambda m: m.whenMatchedUpdate(set={"d": "s.d"}),
        "SELECT 1L AS k, CAST(123456789 AS DECIMAL(12, 2)) AS d",
        table=NUMBERS,
        differs=TOO_LARGE,
    ),
    "a text that is no number": Case(
        lambda m: m.whenMatchedUpdate(set={"i": "s.i"}), "SELECT 1L AS k, 'x' AS i", table=NUMBERS, differs=UNLIKE
    ),
    "a text that is no date": Case(
        lambda m: m.whenMatchedUpdate(set={"day": "s.d"}), "SELECT 1L AS k, 'x' AS d", table=NUMBERS, differs=UNLIKE
    ),
    "a number for a date": Case(lambda m: m.whenMatchedUpdate(set={"day": "s.d"}), "SELECT 1L AS k, 5 AS d", table=NUMBERS),
    "wider types where the table may widen": Case(
        evolving,
        "SELECT 1L AS k, 5000000000L AS i, 70000 AS s, 2.5D AS f",
        table=(*NUMBERS, "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"),
    ),
    "wider types where the table may not": Case(evolving, "SELECT 1L AS k, 70000 AS s", table=NUMBERS, differs=TOO_LARGE),
}


@pytest.mark.parametrize("name", CASES)
def test_merge_evolves_as_delta_spark_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check(spark, tmp_path, CASES[name], pytest.importorskip("delta.tables").DeltaTable)
