"""MERGE into tables with rules on rows and computed columns, and into partitions, by pydelta and by delta-spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.peers.merge_peers import COLUMNS, SOURCE, Case, check, upsert

ROWS = "INSERT INTO {table} (k, v, n) VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)"
CHECKED = (
    "CREATE TABLE {table} (k BIGINT, v STRING, n INT) USING delta",
    ROWS,
    "ALTER TABLE {table} ADD CONSTRAINT few CHECK (n < 350)",
)
NOT_NULL = (
    "CREATE TABLE {table} (k BIGINT, v STRING NOT NULL, n INT, st STRUCT<a: INT NOT NULL>) USING delta",
    "INSERT INTO {table} VALUES (1, 'a', 10, struct(1)), (2, 'b', 20, struct(2)), (3, 'c', 30, struct(3))",
)
LENGTHS = ("CREATE TABLE {table} (k BIGINT, v CHAR(3), n INT, w VARCHAR(2)) USING delta", ROWS)
COMPUTED = (
    "CREATE TABLE {table} (k BIGINT, v STRING, n INT, twice INT GENERATED ALWAYS AS (n * 2)) USING delta",
    ROWS,
)
NUMBERED = (
    "CREATE TABLE {table} (id BIGINT GENERATED ALWAYS AS IDENTITY, k BIGINT, v STRING, n INT) USING delta",
    ROWS,
)
DEFAULTS = (
    "CREATE TABLE {table} (k BIGINT, v STRING DEFAULT 'none', n INT DEFAULT 6 * 7) USING delta "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    ROWS,
)
PARTS = (
    "CREATE TABLE {table} (k BIGINT, v STRING, n INT, p STRING) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO {table} VALUES (1, 'a', 10, 'x y'), (2, 'b', 20, 'a/b=%20'), (3, 'c', 30, NULL), (4, 'd', 40, 'x y')",
)
FAILING = ([(2, "B", 400)], COLUMNS)

CASES: dict[str, Case] = {
    "an update against a rule": Case(upsert, FAILING, table=CHECKED),
    "an insert against a rule": Case(upsert, ([(7, "B", 400)], COLUMNS), table=CHECKED),
    "rows that keep a rule": Case(upsert, ([(2, "B", None), (7, "B", 349)], COLUMNS), table=CHECKED),
    "an update by source against a rule": Case(lambda m: m.whenNotMatchedBySourceUpdate(set={"n": "t.n * 100"}), table=CHECKED),
    "null where it may not be, updated": Case(lambda m: m.whenMatchedUpdate(set={"v": "NULL"}), table=NOT_NULL),
    "null where it may not be, inserted": Case(lambda m: m.whenNotMatchedInsert(values={"k": "s.k"}), table=NOT_NULL),
    "null in a struct where it may not be": Case(  # delta-spark refuses the type; we refuse rows, if there are any
        lambda m: m.whenMatchedUpdate(set={"st": "named_struct('a', CAST(NULL AS INT))"}),
        table=NOT_NULL,
        differs={"error": ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION")},
    ),
    "a null struct whose field may not be null": Case(lambda m: m.whenMatchedUpdate(set={"st": "NULL"}), table=NOT_NULL),
    "texts that are padded": Case(
        lambda m: m.whenMatchedUpdate(set={"v": "'z'", "w": "'y'"}).whenNotMatchedInsert(values={"k": "s.k", "v": "s.v"}),
        table=LENGTHS,
    ),
    "a text that is too long": Case(lambda m: m.whenMatchedUpdate(set={"v": "'four'"}), table=LENGTHS),
    "an inserted text that is too long": Case(
        lambda m: m.whenNotMatchedInsert(values={"k": "s.k", "w": "'four'"}), table=LENGTHS
    ),
    "a text that is too long by blanks alone": Case(lambda m: m.whenMatchedUpdate(set={"w": "'a    '"}), table=LENGTHS),
    "computed columns follow": Case(
        lambda m: m.whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsert(values={"k": "s.k", "n": "s.n"}), table=COMPUTED
    ),
    "computed columns by all columns of the source": Case(upsert, table=COMPUTED),
    "computed column that is given a right value": Case(
        lambda m: m.whenMatchedUpdate(set={"n": "7", "twice": "14"}), table=COMPUTED
    ),
    "computed column that is given a wrong value": Case(
        lambda m: m.whenMatchedUpdate(set={"n": "7", "twice": "15"}), table=COMPUTED
    ),
    "computed column that is inserted wrong": Case(
        lambda m: m.whenNotMatchedInsert(values={"k": "s.k", "n": "s.n", "twice": "1"}), table=COMPUTED
    ),
    "identity column that is updated": Case(lambda m: m.whenMatchedUpdate(set={"id": "9"}), table=NUMBERED),
    "identity column that is inserted": Case(lambda m: m.whenNotMatchedInsert(values={"id": "9", "k": "s.k"}), table=NUMBERED),
    "identity columns count on": Case(
        lambda m: m.whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsert("s.k = 4", {"k": "s.k", "n": "s.n"}), table=NUMBERED
    ),
    "defaults where an insert names no value": Case(lambda m: m.whenNotMatchedInsert(values={"k": "s.k"}), table=DEFAULTS),
    "rows that go to other partitions": Case(
        lambda m: m.whenMatchedUpdate(set={"p": "concat(coalesce(t.p, ''), '+')"}).whenNotMatchedInsert(
            values={"k": "s.k", "p": "'x y'"}
        ),
        SOURCE,
        table=PARTS,
    ),
    "partitions without a source": Case(  # we do not rewrite the three files in which no row changes
        lambda m: m.whenNotMatchedBySourceDelete("t.p = 'x y'").whenNotMatchedBySourceUpdate(set={"p": "'rest'"}),
        table=PARTS,
        differs={"numTargetFilesRemoved": ("1", "4"), "numTargetRowsCopied": ("0", "3"), "numOutputRows": ("0", "3")},
    ),
    "partitions that the condition names": Case(
        upsert, "SELECT 1L AS k, 'q' AS v, 3 AS n, 'x y' AS p", "t.k = s.k AND t.p = 'x y'", table=PARTS
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_merge_keeps_rules_as_delta_spark_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check(spark, tmp_path, CASES[name], pytest.importorskip("delta.tables").DeltaTable)
