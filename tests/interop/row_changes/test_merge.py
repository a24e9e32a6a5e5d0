"""The same MERGE by pydelta and by delta-spark, each on a copy of one table: rows, results, change feed, counts in the history,
and conditions of errors are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.peers.merge_peers import COLUMNS, FEED, FLAT, TWICE, VECTORS, Case, check, upsert

NESTED = pa.Table.from_pylist(
    [
        {"k": 1, "st": {"a": 1, "b": "one", "c": {"d": 10, "e": 11}}, "arr": [{"x": 1, "y": 2}]},
        {"k": 2, "st": {"a": 2, "b": "two", "c": {"d": 20, "e": 21}}, "arr": None},
        {"k": 3, "st": None, "arr": []},
    ],
    pa.schema(
        [
            ("k", pa.int64()),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.int32()), ("e", pa.int32())]))])),
            ("arr", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.int32())]))),
        ]
    ),
)
WIDER = ([(2, "B", 200, "e2"), (4, "D", 400, "e4")], COLUMNS + ", extra string")


def everything(builder: Any) -> Any:
    builder = builder.whenMatchedDelete("s.n = 300").whenMatchedUpdate(set={"v": "s.v"})
    builder = builder.whenNotMatchedInsert("s.k = 4", {"k": "s.k", "v": "'i'"})
    return builder.whenNotMatchedBySourceUpdate("t.k = 1", {"n": "t.n * 2"}).whenNotMatchedBySourceDelete()


NESTED_SOURCE = (
    [(1, None), (2, ("TWO", 7, (210, "f"))), (3, None), (9, ("N", 1, None))],
    "k bigint, st struct<b:string,z:int,c:struct<e:int,f:string>>",
)
CASES: dict[str, Case] = {
    "upsert": Case(upsert),
    "upsert by vectors": Case(upsert, properties=VECTORS),
    "everything": Case(everything, properties=FEED),
    "everything by vectors": Case(everything, properties={**VECTORS, **FEED}),
    "inserts alone": Case(lambda m: m.whenNotMatchedInsertAll(), properties=FEED),
    "a delete of all rows": Case(lambda m: m.whenMatchedDelete(), ([(1,), (2,), (3,)], "k bigint"), table=FLAT.slice(0, 3)),
    "nothing": Case(lambda m: m.whenMatchedUpdateAll("s.n > 1000")),
    "an empty source": Case(lambda m: upsert(m).whenNotMatchedBySourceDelete("t.k > 1"), ([], COLUMNS)),
    "several matches": Case(upsert, TWICE),
    "several matches, one wanted": Case(lambda m: m.whenMatchedUpdate("s.n = 200", {"v": "s.v"}), TWICE),
    "several matches, by source alone": Case(lambda m: m.whenNotMatchedBySourceDelete(), TWICE),
    "several matches that go": Case(lambda m: m.whenMatchedDelete().whenNotMatchedInsertAll(), TWICE, properties=FEED),
    "structs by name": Case(
        upsert,
        (
            [(2, ("TWO", 22, (200, 210)), [(9, 8)]), (4, None, None)],
            "k bigint, st struct<b:string,a:int,c:struct<e:int,d:int>>, arr array<struct<y:int,x:int>>",
        ),
        table=NESTED,
    ),
    "a field alone": Case(
        lambda m: m.whenMatchedUpdate(set={"st.c.d": "s.n"}), ([(2, 7), (3, 8)], "k bigint, n int"), table=NESTED
    ),
    "evolution": Case(lambda m: upsert(m.withSchemaEvolution()), WIDER),
    "evolution of what is assigned": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"extra": "s.extra"}).whenNotMatchedInsert(values={"k": "s.k"}),
        WIDER,
    ),
    "evolution without a change of rows": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdateAll(), ([(99, "x", 7, "e")], COLUMNS + ", extra string")
    ),
    "evolution of structs": Case(lambda m: upsert(m.withSchemaEvolution()), NESTED_SOURCE, table=NESTED),
    "evolution of a struct that is assigned": Case(
        lambda m: m.withSchemaEvolution().whenMatchedUpdate(set={"st": "s.st"}), NESTED_SOURCE, table=NESTED
    ),
    "other types": Case(upsert, ([(2, 5, "12")], "k int, v int, n string")),
    "rows that only grow": Case(upsert, properties={"delta.appendOnly": "true"}),
    "rows that only grow, nothing matches": Case(upsert, ([(9, "x", 1)], COLUMNS), properties={"delta.appendOnly": "true"}),
    "no clause": Case(lambda m: m),
    "ambiguous column": Case(upsert, condition="k = s.k"),
    "chance": Case(lambda m: m.whenMatchedDelete("rand() > 0.5")),
    "aggregate": Case(lambda m: m.whenMatchedDelete("max(s.n) > 1")),
    "unknown target": Case(lambda m: m.whenMatchedUpdate(set={"zz": "s.v"})),
    "source column as target": Case(lambda m: m.whenMatchedUpdate(set={"s.v": "s.v"})),
    "column twice": Case(lambda m: m.whenMatchedUpdate(set={"v": "s.v", "V": "s.v"})),
    "inserted field": Case(lambda m: m.whenNotMatchedInsert(values={"st.a": "1"}), table=NESTED),
    "unknown field": Case(lambda m: m.whenMatchedUpdate(set={"st.zz": "1"}), table=NESTED),
    "struct with more fields": Case(
        lambda m: m.whenMatchedUpdate(set={"st.c": "named_struct('d', 1, 'e', 2, 'f', 3)"}), table=NESTED
    ),
    "source that lacks a column": Case(upsert, ([(2, "x")], "k bigint, v string")),
    "array for a number": Case(lambda m: m.whenMatchedUpdate(set={"n": "array(1)"})),
    "types that do not merge": Case(lambda m: upsert(m.withSchemaEvolution()), ([(2, [1])], "k bigint, n array<int>")),
}


@pytest.mark.parametrize("name", CASES)
def test_merge_is_what_delta_spark_makes_of_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check(spark, tmp_path, CASES[name], pytest.importorskip("delta.tables").DeltaTable)
