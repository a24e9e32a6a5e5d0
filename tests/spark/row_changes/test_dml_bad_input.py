"""Bad input of DELETE, UPDATE and MERGE: the reference's condition of the error, no commit, and no leftover file.

tests/interop compares the same calls with delta-spark; here each must also hold without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable
from spark_plugin.tables import IdentityGenerator

pytestmark = pytest.mark.usefixtures("plain_plans")

SOURCE = "id bigint, part string, n int, extra int"


@pytest.fixture(scope="module", params=["rewriting", "vectors"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """No test changes it."""
    path = str(tmp_path_factory.mktemp("bad") / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("id", "bigint", nullable=False).addColumn("part", "string")
    builder = builder.addColumn("number", "bigint", generatedAlwaysAs=IdentityGenerator()).addColumn("n", "int")
    builder = builder.addColumn("twice", "int", generatedAlwaysAs="n * 2").addColumn("st", "struct<a: int>")
    builder = builder.property("delta.constraints.small", "n < 100").property("delta.enableChangeDataFeed", "true")
    vectors = str(request.param == "vectors").lower()
    table = builder.property("delta.enableDeletionVectors", vectors).partitionedBy("part").execute()
    rows = spark.range(8).selectExpr("id", "string(id % 2) AS part", "int(id) AS n", "named_struct('a', 1) AS st")
    rows.coalesce(1).write.format("pydelta").mode("append").save(path)
    return table


def merging(table: DeltaTable, rows: list[tuple[Any, ...]] | None = None, condition: str = "t.id = s.id") -> Any:
    spark = table.toDF().sparkSession
    source_rows = [(1, "1", 5, 0), (50, "1", 5, 0)] if rows is None else rows
    return table.alias("t").merge(spark.createDataFrame(source_rows, SOURCE).alias("s"), condition)


UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
IN_MERGE = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
BROKEN = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
BAD: dict[str, tuple[str, Callable[[DeltaTable], object]]] = {
    "delete, unknown column": (UNRESOLVED, lambda t: t.delete("zz = 1")),
    "delete, not boolean": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", lambda t: t.delete("id + 1")),
    "delete, by chance": ("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", lambda t: t.delete("rand() > 0.5")),
    "update, unknown column": (UNRESOLVED, lambda t: t.update("id = 1", {"zz": "1"})),
    "update, unknown field": ("FIELD_NOT_FOUND", lambda t: t.update("id = 1", {"st.zz": "1"})),
    "update, not boolean": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", lambda t: t.update("n", {"n": "1"})),
    "update, a column twice": ("DELTA_CONFLICT_SET_COLUMN", lambda t: t.update("id = 1", {"n": "1", "N": "2"})),
    "update, identity column": (
        "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        lambda t: t.update("id = 1", {"number": "1"}),
    ),
    "update, generated column": (BROKEN, lambda t: t.update("id = 1", {"twice": "5"})),
    "update, a rule": (BROKEN, lambda t: t.update("id = 1", {"n": "100"})),
    "update, null": ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", lambda t: t.update("id = 1", {"id": "NULL"})),
    "update, rows of other partitions against a rule": (
        BROKEN,
        lambda t: t.update("id > 0", {"part": "'new'", "n": "IF(id = 7, 100, n)"}),
    ),
    "merge, unknown column": (IN_MERGE, lambda t: merging(t).whenMatchedUpdate(set={"n": "s.zz"}).execute()),
    "merge, unknown target": (IN_MERGE, lambda t: merging(t).whenMatchedUpdate(set={"zz": "s.n"}).execute()),
    "merge, ambiguous condition": (
        "AMBIGUOUS_REFERENCE",
        lambda t: merging(t, condition="id = s.id").whenMatchedDelete().execute(),
    ),
    "merge, ambiguous value": ("AMBIGUOUS_REFERENCE", lambda t: merging(t).whenMatchedUpdate(set={"n": "n"}).execute()),
    "merge, not boolean": (
        "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
        lambda t: merging(t, condition="t.id + s.id").whenMatchedDelete().execute(),
    ),
    "merge, clause not boolean": (
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
        lambda t: merging(t).whenMatchedDelete("s.n").execute(),
    ),
    "merge, no clause": ("DELTA_MERGE_MISSING_WHEN", lambda t: merging(t).execute()),
    "merge, clauses in a wrong order": (
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        lambda t: merging(t).whenMatchedDelete().whenMatchedUpdate("s.n = 1", {"n": "1"}).execute(),
    ),
    "merge, inserts in a wrong order": (
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
        lambda t: merging(t).whenNotMatchedInsert(values={"id": "1"}).whenNotMatchedInsert("s.n = 1", {"id": "1"}).execute(),
    ),
    "merge, clauses by source in a wrong order": (
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        lambda t: merging(t).whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete("t.n = 1").execute(),
    ),
    "merge, generated column": (BROKEN, lambda t: merging(t).whenMatchedUpdate(set={"twice": "5"}).execute()),
    "merge, inserted rows against a rule": (
        BROKEN,
        lambda t: merging(t).whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id", "n": "100"}).execute(),
    ),
    "merge, inserted null": (
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        lambda t: merging(t).whenMatchedDelete().whenNotMatchedInsert(values={"n": "s.n"}).execute(),
    ),
    "merge, duplicate keys": (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        lambda t: merging(t, [(1, "1", 5, 0), (1, "1", 6, 0)]).whenMatchedUpdate(set={"n": "s.n"}).execute(),
    ),
    "merge, duplicate keys, other partitions": (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        lambda t: (
            merging(t, [(1, "9", 5, 0), (1, "9", 6, 0), (70, "9", 1, 1)])
            .whenMatchedUpdate("s.n > 0", {"part": "s.part"})
            .whenNotMatchedInsert(values={"id": "s.id", "part": "s.part"})
            .execute()
        ),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_has_the_error_of_delta_spark_and_no_effect(table: DeltaTable, name: str) -> None:
    error, call = BAD[name]
    root = Path(str(table._table.url))
    before = sorted(str(file) for file in root.rglob("*") if file.is_file())
    with pytest.raises(PySparkException) as raised:
        call(table)
    assert raised.value.getCondition() == error, str(raised.value)
    assert sorted(str(file) for file in root.rglob("*") if file.is_file()) == before
    assert PlainTable(str(root)).version == 1
