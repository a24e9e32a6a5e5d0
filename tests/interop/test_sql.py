"""SQL statements by pydelta and by delta-spark, each on a copy of one table: the same results, rows, histories, names of errors.

A statement is a line of sql_statements.sql; {t} is the table, {c} the same as part of a column's name. Another one costs a line.
All statements of a section go to the same two tables, one after the other.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.protocol import column_mapping
from tests.support.merge_peers import assert_same_tables, condition_of
from tests.support.settings import restore

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"

TABLE = (
    "CREATE TABLE {t} (id BIGINT, p INT, v STRING, n INT, st STRUCT<a: INT, b: STRING>, arr ARRAY<INT>, m MAP<STRING, INT>, "
    "ts TIMESTAMP, d DECIMAL(9, 2), `odd.name` INT) USING delta PARTITIONED BY (p) TBLPROPERTIES "
    "('delta.enableChangeDataFeed' = 'true', 'delta.feature.allowColumnDefaults' = 'supported', "
    "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = '{vectors}')",
    "ALTER TABLE {t} ALTER COLUMN n SET DEFAULT 7",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, int(id % 3), concat('v', id), int(id * 10), "
    "named_struct('a', int(id), 'b', 'x'), array(int(id), 1), map('k', int(id)), "
    "timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, int(id)), id / 4, int(id) "
    "FROM range(60)",
)  # {vectors} is true or false
SOURCE = (
    "CREATE OR REPLACE TEMPORARY VIEW sql_source AS SELECT id, int(id % 3) AS p, concat('s', id) AS v, int(id) AS n, "
    "named_struct('a', 0, 'b', 's') AS st, array(2) AS arr, map('s', 1) AS m, timestamp'2025-01-01 00:00:00' AS ts, "
    "CAST(1 AS DECIMAL(9, 2)) AS d, 5 AS `odd.name` FROM range(50, 70)"
)

SHAPES = frozenset({"DESCRIBE", "DESC", "OPTIMIZE", "REORG", "VACUUM", "RESTORE"})
"""Of these the columns are compared; what stands in them is sizes, times, paths."""

DIFFERS: Mapping[str, tuple[str | None, str | None]] = {
    "DELETE FROM {t} WHERE rand() < 0.5": (
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    ),
    "DELETE FROM {t} WHERE max(id) = 1": ("INVALID_WHERE_CONDITION", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    # A time after the last commit is that commit.
    "RESTORE TABLE {t} TO TIMESTAMP AS OF '2999-01-01'": (None, "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
}
"""Statements that both do not refuse alike, for a reason: the condition's name of ours and of delta-spark's; None for none."""


def statements(section: str) -> list[str]:
    """Of sql_statements.sql: a line each."""
    text = Path(__file__).with_name("sql_statements.sql").read_text()
    found = re.search(rf"^-- {section}\n(.*?)(?=^-- |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [line for line in found[1].splitlines() if line]


@pytest.fixture(params=["false", "true"], ids=["files", "vectors"])
def vectors(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path, vectors: str) -> dict[str, str]:
    first = tmp_path / "theirs"
    for statement in TABLE:
        spark.sql(statement.replace("{t}", f"delta.`{first}`").replace("{vectors}", vectors))
    spark.sql(SOURCE)
    shutil.copytree(first, tmp_path / "ours")
    return {"ours": str(tmp_path / "ours"), "theirs": str(first)}


def outcome(spark: SparkSession, side: str, path: str, text: str) -> dict[str, Any]:
    name = f"{'pydelta' if side == 'ours' else 'delta'}.`{path}`"
    before = PlainTable(path).version
    try:
        frame = spark.sql(text.replace("{t}", name).replace("{c}", name))
        rows = frame.collect()
    except (PySparkException, Py4JJavaError) as error:
        assert PlainTable(path).version == before
        return {"error": condition_of(error)}
    found: dict[str, Any] = {"schema": frame.schema.simpleString()}
    if text.split()[0].upper() not in SHAPES:
        found["rows"] = [tuple(row) for row in rows]
    after = PlainTable(path).version
    found["commits"] = after - before
    if after > before:
        commits = PlainTable(path).history(limit=after - before).to_pylist()
        found["history"] = [(one["operation"], _parameters(dict(one["operationParameters"]))) for one in commits]
    return found


def _parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Without times and without predicates, whose text differs: ours is SQL."""
    texts = {name: re.sub(r"#[0-9]+L?", "", str(value)) for name, value in parameters.items()}
    return {name: text for name, text in texts.items() if name != "specifiedRetentionMillis" and "redicate" not in name}


def check(spark: SparkSession, tables: Mapping[str, str], section: str) -> None:
    """Fails with all that differs."""
    faults = []
    for statement in statements(section):
        found = {side: outcome(spark, side, path, statement) for side, path in tables.items()}
        errors = (found["ours"].get("error"), found["theirs"].get("error"))
        same = found["ours"] == found["theirs"] or (statement in DIFFERS and errors == DIFFERS[statement])
        if not same:
            faults.append(f"{statement}\n   ours:   {found['ours']}\n   theirs: {found['theirs']}")
    assert not faults, "\n".join(["", *faults])


def test_changes_of_rows_are_delta_spark_s(spark: SparkSession, tables: dict[str, str]) -> None:
    check(spark, tables, "changes")
    assert_same_tables(PlainTable(tables["ours"]), PlainTable(tables["theirs"]), since=3)


@pytest.mark.parametrize("vectors", ["false"], indirect=True)
def test_statements_that_cannot_be_are_refused_by_the_same_names(spark: SparkSession, tables: dict[str, str]) -> None:
    check(spark, tables, "refused")


def test_partitions_are_delta_spark_s(spark: SparkSession, tables: dict[str, str]) -> None:
    check(spark, tables, "partitions")


def test_change_feeds_are_delta_spark_s(spark: SparkSession, tables: dict[str, str]) -> None:
    check(spark, tables, "table changes")


@pytest.mark.parametrize("vectors", ["true"], indirect=True)
def test_utilities_are_delta_spark_s(spark: SparkSession, tables: dict[str, str]) -> None:
    before = spark.conf.get(LISTING_TASKS)
    spark.conf.set(LISTING_TASKS, "2")  # of VACUUM: delta-spark makes thousands
    try:
        check(spark, tables, "utilities")
    finally:
        restore(spark, {LISTING_TASKS: before})
    assert_same_tables(PlainTable(tables["ours"]), PlainTable(tables["theirs"]), since=10_000)


@pytest.mark.parametrize("vectors", ["false"], indirect=True)
def test_tables_of_delta_spark_stay_its_own(spark: SparkSession, tables: dict[str, str]) -> None:
    """Its statements on its tables are not ours where it is loaded."""
    theirs = tables["theirs"]
    assert spark.sql(f"DELETE FROM delta.`{theirs}` WHERE id = 1").first() == (1,)
    assert "Apache-Spark" in PlainTable(theirs).history(limit=1).to_pylist()[0]["engineInfo"]
    assert spark.sql(f"DESCRIBE HISTORY delta.`{theirs}`").count() == 4
    assert spark.sql(f"VACUUM '{theirs}' DRY RUN").columns == ["path"]
    assert spark.sql(f"DELETE FROM pydelta.`{theirs}` WHERE id = 2").first() == (1,)
    assert "pydelta" in PlainTable(theirs).history(limit=1).to_pylist()[0]["engineInfo"]


@pytest.mark.parametrize("vectors", ["true"], indirect=True)
def test_tables_like_others_are_delta_spark_s(spark: SparkSession, tables: dict[str, str], tmp_path: Path) -> None:
    """The source has a default, a comment, properties, column mapping, partitions."""
    source, found = tables["theirs"], []
    spark.sql(f"ALTER TABLE delta.`{source}` ALTER COLUMN v COMMENT 'a text'")
    for form in ("delta", "pydelta"):
        path = tmp_path / f"like_{form}"
        spark.sql(f"CREATE TABLE {form}.`{path}` LIKE {form}.`{source}` TBLPROPERTIES ('x' = 'y')")
        table = PlainTable(str(path))
        properties = dict(table.metadata.configuration)
        del properties["delta.columnMapping.maxColumnId"]
        commits = [one["operation"] for one in table.history().to_pylist()]
        schema = column_mapping.strip(table.struct_type)
        found.append((schema, properties, table.metadata.partition_columns, table.protocol, commits, table.to_arrow().num_rows))
    assert found[0] == found[1]
