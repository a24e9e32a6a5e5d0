"""MERGE with ambiguous, odd or unknown names, invalid clauses, null keys, and all kinds of sources, by pydelta and by
delta-spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.peers.merge_peers import COLUMNS, FEED, SOURCE, TWICE, VECTORS, Case, check, upsert

ODD = (
    "CREATE TABLE {table} (k BIGINT, `a.b` STRING, `c d,;` INT, st STRUCT<`x.y`: INT, `ü`: INT>) USING delta "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "INSERT INTO {table} VALUES (1, 'a', 10, struct(1, 2)), (2, 'b', 20, struct(3, 4)), (3, 'c', 30, NULL)",
)
ODD_SOURCE = "SELECT id AS k, 'new' AS `a.b`, 5 AS `c d,;`, named_struct('x.y', 7, 'ü', 8) AS st FROM range(2, 5)"
# delta-spark reads the target although no row of it can match; our MERGE is a blind append.
READ_ANYWAY = {"blind": (True, False)}
# delta-spark counts the only row of the source twice if there is no key to join by.
COUNTED_TWICE = {"numSourceRows": ("1", "2")}
SENSITIVE = {"spark.sql.caseSensitive": "true"}


def twice_named(spark: SparkSession, path: str) -> DataFrame:
    return spark.range(2, 4).select(F.col("id").alias("k"), F.lit("x").alias("v"), F.lit("y").alias("v"), F.lit(1).alias("n"))


def itself(spark: SparkSession, path: str) -> DataFrame:
    """The table, read by delta-spark for both sides."""
    return spark.read.format("delta").load(path).where("k > 1 OR k IS NULL").selectExpr("k", "concat(v, v) AS v", "n + 1 AS n")


def shuffled(spark: SparkSession, path: str) -> DataFrame:
    """Rows without an order, some of which a limit takes: by a deterministic key, so that both get the same."""
    return spark.range(0, 20, 1, 4).orderBy(F.hash("id")).limit(6).selectExpr("id AS k", "string(id) AS v", "int(id) AS n")


def conditional(*conditions: str | None) -> Any:
    def build(builder: Any) -> Any:
        for condition in conditions:
            builder = builder.whenMatchedUpdate(condition, {"v": "'x'"})
        return builder

    return build


CASES: dict[str, Case] = {
    # names
    "source columns of one name": Case(upsert, twice_named),
    "source columns of one name that are not used": Case(lambda m: m.whenMatchedUpdate(set={"n": "s.n"}), twice_named),
    "source columns of one name but for case": Case(upsert, "SELECT 2L AS k, 'x' AS v, 'y' AS V, 1 AS n"),
    "a value that both have": Case(lambda m: m.whenMatchedUpdate(set={"v": "upper(v)"})),
    "a condition that both have": Case(lambda m: m.whenMatchedDelete("n > 1")),
    "columns that only one has": Case(
        lambda m: m.whenMatchedUpdate("b > 2", {"v": "a"}), "SELECT 2L AS c, 'x' AS a, 3 AS b", "k = c"
    ),
    "odd names by all columns": Case(upsert, ODD_SOURCE, table=ODD),
    "odd names one by one": Case(
        lambda m: m.whenMatchedUpdate(
            "t.`c d,;` > 10", {"`a.b`": "concat(t.`a.b`, s.`a.b`)", "st.`x.y`": "s.st.`ü`"}
        ).whenNotMatchedInsert(values={"k": "s.k", "`c d,;`": "s.`c d,;`"}),
        ODD_SOURCE,
        table=ODD,
    ),
    "odd names without quotes": Case(lambda m: m.whenMatchedUpdate(set={"a.b": "'x'"}), ODD_SOURCE, table=ODD),
    "names in other case": Case(upsert, ([(2, "B", 5), (9, "I", 9)], "K bigint, V string, N int"), "T.k = S.K"),
    "names in other case that counts": Case(upsert, ([(2, "B", 5)], "k bigint, V string, n int"), settings=SENSITIVE),
    "names of the target in other case that counts": Case(lambda m: m.whenMatchedUpdate(set={"V": "s.v"}), settings=SENSITIVE),
    "target column in an insert": Case(lambda m: m.whenNotMatchedInsert(values={"k": "s.k", "v": "t.v"})),
    "target column in the condition of an insert": Case(lambda m: m.whenNotMatchedInsertAll("t.k IS NULL")),
    "source column by source": Case(lambda m: m.whenNotMatchedBySourceUpdate(set={"v": "s.v"})),
    "source column in a condition by source": Case(lambda m: m.whenNotMatchedBySourceDelete("s.n = 1")),
    "unknown column in a value": Case(lambda m: m.whenMatchedUpdate(set={"v": "s.zz"})),
    "unknown column in the condition": Case(upsert, condition="t.k = s.zz"),
    "unknown alias": Case(upsert, condition="x.k = s.k"),
    "unknown field": Case(lambda m: m.whenMatchedUpdate(set={"st.zz": "1"}), ODD_SOURCE, table=ODD),
    # clauses
    "two updates without condition": Case(conditional(None, None)),
    "an update without condition before another": Case(conditional("s.n > 1", None, "s.n > 2")),
    "an update without condition at the end": Case(conditional("s.n > 200", None)),
    "a delete without condition before an update": Case(lambda m: m.whenMatchedDelete().whenMatchedUpdateAll("s.n > 1")),
    "inserts without condition": Case(lambda m: m.whenNotMatchedInsertAll().whenNotMatchedInsertAll("s.n > 1")),
    "inserts by conditions": Case(
        lambda m: m.whenNotMatchedInsert("s.n > 300", {"k": "s.k", "v": "'large'"}).whenNotMatchedInsertAll("s.n < 5"),
        properties=FEED,
    ),
    "by source without condition": Case(
        lambda m: m.whenNotMatchedBySourceDelete().whenNotMatchedBySourceUpdate("t.n > 1", {"v": "'x'"})
    ),
    "a condition that is no condition": Case(upsert, condition="t.k + s.k"),
    "a clause's condition that is no condition": Case(
        lambda m: m.whenMatchedDelete("s.n + 1"),
        differs={"error": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "CANNOT_UP_CAST_DATATYPE")},
    ),
    "a subquery": Case(
        lambda m: m.whenMatchedDelete("s.n IN (SELECT id FROM range(300))"),
        differs={"error": ("DELTA_UNSUPPORTED_SUBQUERY", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")},
    ),
    "a subquery in the condition": Case(
        upsert,
        condition="t.k = s.k AND s.k IN (SELECT id FROM range(3))",
        differs={"error": ("DELTA_UNSUPPORTED_SUBQUERY", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")},
    ),
    "a window": Case(lambda m: m.whenMatchedUpdate(set={"n": "row_number() OVER (ORDER BY s.n)"})),
    "a generator": Case(lambda m: m.whenMatchedUpdate(set={"n": "explode(array(1, 2))"})),
    "an aggregate as value": Case(lambda m: m.whenMatchedUpdate(set={"n": "max(s.n)"})),
    "chance in the condition": Case(upsert, condition="t.k = s.k AND rand() < 2"),
    "chance in an insert's condition": Case(lambda m: m.whenNotMatchedInsertAll("rand() < 2")),
    "chance as value": Case(lambda m: m.whenMatchedUpdate(set={"n": "int(rand())"})),
    "nothing assigned": Case(lambda m: m.whenMatchedUpdate(set={})),
    "nothing assigned by a condition": Case(lambda m: m.whenMatchedUpdate("s.n > 200", {}), properties=FEED),
    "nothing assigned at the end": Case(
        lambda m: m.whenMatchedDelete("s.n > 200").whenMatchedUpdate(set={}).whenNotMatchedBySourceUpdate(set={})
    ),
    "nothing assigned by source, beside inserts": Case(
        lambda m: m.whenNotMatchedInsertAll().whenNotMatchedBySourceUpdate(set={}).whenMatchedUpdate(set={}), TWICE
    ),
    "nothing assigned before others": Case(  # delta-spark omits the first clause, and deletes rows that it should keep
        lambda m: m.whenMatchedUpdate(set={}).whenMatchedDelete("s.n > 200"),
        differs={"error": ("DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", None)},
    ),
    "nothing inserted": Case(lambda m: m.whenNotMatchedInsert(values={})),
    "a column and its field": Case(lambda m: m.whenMatchedUpdate(set={"st": "s.st", "st.`ü`": "1"}), ODD_SOURCE, table=ODD),
    "column inserted twice": Case(  # delta-spark only notices it if the case of letters is the same
        lambda m: m.whenNotMatchedInsert(values={"k": "s.k", "K": "s.k"}),
        differs={"error": ("DELTA_DUPLICATE_COLUMNS_ON_INSERT", None)},
    ),
    # keys
    "null keys that are equal": Case(upsert, condition="t.k <=> s.k", properties=FEED),
    "a condition that is never true": Case(upsert, condition="false", differs=READ_ANYWAY),
    "a condition that is null": Case(upsert, condition="CAST(NULL AS BOOLEAN)", differs=READ_ANYWAY),
    "a condition that is always true": Case(
        upsert, ([(7, "all", 7)], COLUMNS), condition="true", properties=FEED, differs=COUNTED_TWICE
    ),
    "a condition without the source": Case(upsert, ([(7, "all", 7)], COLUMNS), condition="t.k = 2", differs=COUNTED_TWICE),
    "a condition without equal keys": Case(upsert, ([(2, "small", 7)], COLUMNS), condition="t.k < s.k", differs=COUNTED_TWICE),
    "keys of other types": Case(upsert, ([("2", "B", 5), ("9", "I", 9)], "k string, v string, n int")),
    "keys by an expression": Case(lambda m: m.whenMatchedUpdate(set={"v": "s.v"}), condition="t.k * 2 = s.k"),
    # sources
    "several matches, updated and deleted": Case(
        lambda m: m.whenMatchedUpdate("s.n = 200", {"v": "s.v"}).whenMatchedDelete("s.n = 300"), TWICE
    ),
    "several matches, of which one clause takes each": Case(lambda m: m.whenMatchedDelete("s.n = 300"), TWICE),
    "several matches of a delete with a condition": Case(lambda m: m.whenMatchedDelete("s.n > 0"), TWICE),
    "several matches by vectors": Case(upsert, TWICE, properties=VECTORS),
    "several matches with evolution": Case(lambda m: upsert(m.withSchemaEvolution()), TWICE),
    "several rows that no one matches": Case(upsert, ([(7, "x", 1), (7, "y", 2), (None, "z", 3)], COLUMNS), properties=FEED),
    "several matches that go, by vectors, and by source": Case(
        lambda m: m.whenMatchedDelete().whenNotMatchedBySourceUpdate(set={"n": "0"}), TWICE, properties={**VECTORS, **FEED}
    ),
    "no rows, inserts alone": Case(lambda m: m.whenNotMatchedInsertAll(), ([], COLUMNS)),
    "no rows, by source": Case(lambda m: m.whenNotMatchedBySourceDelete(), ([], COLUMNS), properties=VECTORS),
    "by source alone": Case(
        lambda m: m.whenNotMatchedBySourceUpdate("t.n > 5", {"v": "'alone'"}), properties={**VECTORS, **FEED}
    ),
    "the table itself": Case(upsert, itself, properties=FEED),
    "the table itself, without its rows": Case(lambda m: m.whenMatchedDelete(), itself),
    "a source with a limit": Case(upsert, shuffled),
    "a source of a window": Case(
        upsert,
        "SELECT k, v, n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM VALUES (2L, 'x', 1), (2L, 'y', 2)"
        " AS s(k, v, n)) WHERE r = 1",
    ),
    "all at once": Case(
        lambda m: (
            m.whenMatchedUpdate("s.k = 2", {"v": "s.v"})
            .whenMatchedDelete()
            .whenNotMatchedInsert("s.k IS NULL", {"v": "s.v"})
            .whenNotMatchedInsertAll()
            .whenNotMatchedBySourceUpdate("t.k = 1", {"n": "-1"})
            .whenNotMatchedBySourceDelete()
        ),
        SOURCE,
        properties={**VECTORS, **FEED},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_merge_is_understood_as_delta_spark_understands_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check(spark, tmp_path, CASES[name], pytest.importorskip("delta.tables").DeltaTable)
