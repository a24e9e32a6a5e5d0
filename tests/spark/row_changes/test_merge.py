"""MERGE compared with a plain Python oracle of rows: random clauses on tables of several kinds; matches, and commits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.exceptions import UnsupportedOperationError
from spark_plugin.merge.merge_source import _RowWidth
from tests.support.runs.sampling import sampled

pytestmark = pytest.mark.usefixtures("plain_plans")

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int32()), ("p", pa.string())])
COLUMNS = "k bigint, v string, n int, p string"
PLACES = ["new york", "a=b", "50%", "x/y", None]

Row = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """One clause in SQL and in Python. values: the new row for a target row t and a source row s; None for a delete."""

    kind: str
    condition: str | None
    holds: Callable[[Row, Row], bool]
    assigned: Mapping[str, str] | None = None
    values: Callable[[Row, Row], Row] | None = None

    def add_to(self, builder: Any) -> Any:
        if self.kind == "matched":
            if self.values is None:
                return builder.whenMatchedDelete(self.condition)
            if self.assigned is None:
                return builder.whenMatchedUpdateAll(self.condition)
            return builder.whenMatchedUpdate(self.condition, dict(self.assigned))
        if self.kind == "not matched":
            if self.assigned is None:
                return builder.whenNotMatchedInsertAll(self.condition)
            return builder.whenNotMatchedInsert(self.condition, dict(self.assigned))
        if self.values is None:
            return builder.whenNotMatchedBySourceDelete(self.condition)
        return builder.whenNotMatchedBySourceUpdate(self.condition, dict(self.assigned or {}))


def always(t: Row, s: Row) -> bool:
    return True


MATCHED = [
    Told("matched", "s.n % 3 = 0", lambda t, s: s["n"] is not None and s["n"] % 3 == 0),
    Told(
        "matched",
        "t.n < s.n",
        lambda t, s: None not in (t["n"], s["n"]) and t["n"] < s["n"],
        {"n": "s.n + t.n", "p": "s.p"},
        lambda t, s: {**t, "n": s["n"] + t["n"], "p": s["p"]},
    ),
]
LAST_MATCHED = [
    Told("matched", None, always, None, lambda t, s: dict(s)),
    Told("matched", None, always, {"t.v": "upper(s.v)"}, lambda t, s: {**t, "v": None if s["v"] is None else s["v"].upper()}),
    Told("matched", None, always),
]
NOT_MATCHED = [
    Told(
        "not matched",
        "n > 50",
        lambda t, s: s["n"] is not None and s["n"] > 50,
        {"k": "k", "v": "'new'"},
        lambda t, s: {"k": s["k"], "v": "new", "n": None, "p": None},
    ),
    Told("not matched", None, always, None, lambda t, s: dict(s)),
]
BY_SOURCE = [
    Told(
        "not matched by source",
        "t.n > 60",
        lambda t, s: t["n"] is not None and t["n"] > 60,
        {"n": "t.n - 50", "v": "concat(t.v, '!')"},
        lambda t, s: {**t, "n": t["n"] - 50, "v": None if t["v"] is None else t["v"] + "!"},
    ),
    Told("not matched by source", "t.p = 'new york'", lambda t, s: t["p"] == "new york"),
]


def merged(rows: Sequence[Row], source: Sequence[Row], clauses: Sequence[Told]) -> tuple[list[Row], dict[str, int]]:
    """The table's rows after the MERGE on equal keys, and the numbers of updated, deleted and inserted rows."""
    counts = {"updated": 0, "deleted": 0, "inserted": 0}
    after: list[Row] = []
    for row in rows:
        match = next((s for s in source if s["k"] is not None and s["k"] == row["k"]), None)
        kind = "not matched by source" if match is None else "matched"
        clause = _first(clauses, kind, row, match or {})
        if clause is None:
            after.append(row)
        elif clause.values is None:
            counts["deleted"] += 1
        else:
            counts["updated"] += 1
            after.append(clause.values(row, match or {}))
    target_keys = {row["k"] for row in rows}
    for s in source:
        if s["k"] is None or s["k"] not in target_keys:
            clause = _first(clauses, "not matched", {}, s)
            if clause is not None and clause.values is not None:
                counts["inserted"] += 1
                after.append(clause.values({}, s))
    return after, counts


def _first(clauses: Sequence[Told], kind: str, t: Row, s: Row) -> Told | None:
    return next((clause for clause in clauses if clause.kind == kind and clause.holds(t, s)), None)


@dataclass
class Choice:
    """Random rows and clauses."""

    chance: random.Random
    next_key: int = field(default=0)

    def row(self, key: int | None) -> Row:
        return {
            "k": key,
            "v": self.chance.choice(["a", "B c", "", None]),
            "n": self.chance.choice([None, *range(0, 100, 7)]),
            "p": self.chance.choice(PLACES),
        }

    def rows(self, count: int) -> list[Row]:
        self.next_key += count
        return [self.row(key) for key in range(self.next_key - count, self.next_key)] + [self.row(None)]

    def source(self, rows: Sequence[Row]) -> list[Row]:
        keys = [row["k"] for row in rows if row["k"] is not None]
        old = self.chance.sample(keys, min(len(keys), 6))
        return [*(self.row(key) for key in old), *self.rows(4), self.row(None)]

    def clauses(self) -> list[Told]:
        chosen = [clause for clause in MATCHED + NOT_MATCHED + BY_SOURCE if self.chance.random() < 0.6]
        if self.chance.random() < 0.6:
            chosen.append(self.chance.choice(LAST_MATCHED))
        self.chance.shuffle(chosen)
        unconditional = [clause for clause in chosen if clause.condition is None]
        return [clause for clause in chosen if clause.condition is not None] + unconditional or [NOT_MATCHED[1]]


def frame(spark: SparkSession, rows: Sequence[Row], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], columns)


def stored(path: str) -> list[tuple[Any, ...]]:
    """The rows of the newest version, read without Spark."""
    return in_order(PlainTable(path).to_arrow().to_pylist())


def in_order(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=lambda row: [(value is not None, str(value)) for value in row])


def last_commit(path: str) -> dict[str, Any]:
    return dict(PlainTable(path).history(limit=1).to_pylist()[0])


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets session settings for one test."""
    names: set[str] = set()

    def put(name: str, value: str) -> None:
        names.add(name)
        spark.conf.set(name, value)

    yield put
    for name in names:
        spark.conf.unset(name)


KINDS = {
    "rewriting": {},
    "deletion vectors and change data": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "change data": {"delta.enableChangeDataFeed": "true"},
    "row tracking": {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
}


@pytest.mark.parametrize(("kind", "partitioned"), sampled([(kind, number % 2 == 1) for number, kind in enumerate(KINDS)], 2))
def test_merge_random_clauses_gives_what_the_oracle_gives(
    spark: SparkSession, tmp_path: Path, conf: Callable[[str, str], None], kind: str, partitioned: bool
) -> None:
    choice = Choice(random.Random(kind))
    rows = choice.rows(20)
    path = str(tmp_path / "t")
    partition_by = ["p"] if partitioned else None
    write_delta(
        path, pa.Table.from_pylist(rows, SCHEMA), configuration=KINDS[kind], partition_by=partition_by, max_records_per_file=6
    )
    before = rows
    for turn in range(3):
        # Small sources are broadcast to all executors, others are not.
        conf("spark.sql.autoBroadcastJoinThreshold", "-1" if turn == 1 else "10485760")
        source, clauses = choice.source(before), choice.clauses()
        builder = DeltaTable.forPath(spark, path).alias("t").merge(frame(spark, source).repartition(2).alias("s"), "t.k = s.k")
        for clause in clauses:
            builder = clause.add_to(builder)
        result = builder.execute().first()
        after, counts = merged(before, source, clauses)
        context = (kind, turn, [(clause.kind, clause.condition, clause.values is None) for clause in clauses], source)
        assert stored(path) == in_order(after), context
        assert result is not None
        assert result.asDict() == {
            "num_affected_rows": sum(counts.values()),
            **{f"num_{name}_rows": counts[name] for name in ("updated", "deleted", "inserted")},
        }, context
        before = after
    PlainTable(path).snapshot.check_integrity()
    if "delta.enableChangeDataFeed" in KINDS[kind]:
        assert _replayed(path, rows) == in_order(before)


def _replayed(path: str, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The rows of version 0 after all later changes of the feed."""
    remaining = in_order(rows)
    for change in PlainTable(path).changes(starting_version=1).read_all().sort_by("_commit_version").to_pylist():
        row = tuple(change[name] for name in SCHEMA.names)
        if change["_change_type"] in ("delete", "update_preimage"):
            remaining.remove(row)
        else:
            remaining.append(row)
    return in_order([dict(enumerate(row)) for row in remaining])


# ---------------------------------------------------------------- several matches


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version 0: keys 1, 2, 3 and null."""
    path = str(tmp_path / "t")
    rows = {"k": pa.array([1, 2, 3, None], pa.int64()), "v": ["a", "b", "c", "z"], "n": pa.array([10, 20, 30, 0], pa.int32())}
    write_delta(path, pa.table(rows), configuration={"delta.enableChangeDataFeed": "true"})
    return path


def twice(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(2, "B", 200), (2, "C", 300), (4, "D", 400)], "k bigint, v string, n int").alias("s")


CLASHES: dict[str, Callable[[Any], Any]] = {
    "update": lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll(),
    "an update whose condition holds once": lambda m: m.whenMatchedUpdate("s.n = 200", {"v": "s.v"}),
    "a conditional delete": lambda m: m.whenMatchedDelete("s.n > 0"),
    "no clause for matches": lambda m: m.whenNotMatchedBySourceDelete().whenNotMatchedInsertAll(),
}


@pytest.mark.parametrize("clauses", CLASHES.values(), ids=CLASHES)
def test_merge_several_source_rows_match_one_row_commits_nothing(
    spark: SparkSession, table: str, clauses: Callable[[Any], Any]
) -> None:
    before = sorted(file.name for file in Path(table).rglob("*.parquet"))
    with pytest.raises(UnsupportedOperationError) as raised:
        clauses(DeltaTable.forPath(spark, table).alias("t").merge(twice(spark), "t.k = s.k")).execute()
    assert raised.value.error_class == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert PlainTable(table).version == 0
    assert sorted(file.name for file in Path(table).rglob("*.parquet")) == before


def test_merge_unconditional_delete_counts_several_matches_once(spark: SparkSession, table: str) -> None:
    builder = DeltaTable.forPath(spark, table).alias("t").merge(twice(spark), "t.k = s.k")
    result = builder.whenMatchedDelete().whenNotMatchedInsertAll().execute().first()
    assert result is not None and tuple(result) == (2, 0, 1, 1)
    assert [row[0] for row in stored(table)] == [None, 1, 3, 4]
    changes = PlainTable(table).changes(starting_version=1).read_all()
    assert sorted(zip(changes["_change_type"].to_pylist(), changes["k"].to_pylist(), strict=True)) == [
        ("delete", 2),
        ("insert", 4),
    ]


def test_merge_insert_only_takes_duplicates_and_keeps_all_files(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(7, "x", 1), (7, "y", 2), (1, "q", 3), (None, "r", 4)], "k bigint, v string, n int").alias(
        "s"
    )
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k")
    result = builder.whenNotMatchedInsertAll("s.n < 4").execute().first()
    assert result is not None and tuple(result) == (2, 0, 0, 2)
    commit = last_commit(table)
    metrics = dict(commit["operationMetrics"])
    assert (metrics["numTargetFilesRemoved"], metrics["numTargetRowsInserted"], metrics["numSourceRows"]) == ("0", "2", "4")
    assert commit["isBlindAppend"] is False
    assert PlainTable(table).changes(starting_version=1).read_all().num_rows == 2


def test_merge_that_changes_nothing_makes_no_version(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(9, "x", 1)], "k bigint, v string, n int").alias("s")
    result = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k").whenMatchedUpdateAll().execute().first()
    assert result is not None and tuple(result) == (0, 0, 0, 0)
    assert PlainTable(table).version == 0


# ---------------------------------------------------------------- sources


def test_merge_of_a_table_into_itself(spark: SparkSession, table: str) -> None:
    target = DeltaTable.forPath(spark, table)
    own_source = target.toDF().selectExpr("k + 1 AS k", "upper(v) AS v", "n").alias("s")
    target.alias("t").merge(own_source, "t.k = s.k").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert stored(table) == [(None, "Z", 0), (None, "z", 0), (1, "a", 10), (2, "A", 10), (3, "B", 20), (4, "C", 30)]


def test_merge_source_that_is_not_deterministic_is_made_once(spark: SparkSession, table: str) -> None:
    random_source = (
        spark.range(1, 40, numPartitions=2).selectExpr("id AS k", "uuid() AS v", "cast(rand() * 1000 AS int) AS n").alias("s")
    )
    persisted_count = spark.sparkContext._jsc.getPersistentRDDs().size()
    builder = DeltaTable.forPath(spark, table).alias("t").merge(random_source.where("n % 2 = 0"), "t.k = s.k")
    builder.whenMatchedUpdate(set={"v": "s.v", "n": "s.n"}).whenNotMatchedInsertAll().execute()
    rows = stored(table)
    assert all(row[2] % 2 == 0 for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == persisted_count


@contextmanager
def log_of(spark: SparkSession) -> Iterator[Any]:
    """Spark's log output at its default level during the test, as a java.io.StringWriter."""
    jvm: Any = spark._jvm
    root = jvm.org.apache.logging.log4j.LogManager.getContext(False).getRootLogger()
    text = jvm.java.io.StringWriter()
    appender = jvm.org.apache.logging.log4j.core.appender.WriterAppender.createAppender(None, None, text, "test", False, False)
    appender.start()
    root.addAppender(appender)
    spark.sparkContext.setLogLevel("WARN")
    try:
        yield text
    finally:
        spark.sparkContext.setLogLevel("OFF")
        root.removeAppender(appender)


def test_merge_logs_nothing_that_its_caller_could_not_act_on(spark: SparkSession, table: str) -> None:
    with log_of(spark) as log:
        source = frame(spark, [{"k": 3, "v": "x", "n": 1, "p": "x/y"}, {"k": 900, "v": "x", "n": 1, "p": "x/y"}])
        builder = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), "t.k = s.k")
        builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert log.toString() == ""


def test_merge_of_keys_beyond_all_files_inserts_them(spark: SparkSession, table: str) -> None:
    """No row of the target is read, and the update takes values from one."""
    source = spark.createDataFrame([(1000, "new", 1)], "k bigint, v string, n int").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k")
    builder.whenMatchedUpdate(set={"v": "concat(t.v, s.v)"}).whenNotMatchedInsertAll().execute()
    assert (1000, "new", 1) in stored(table) and len(stored(table)) == 5


def test_merge_measures_sources_of_thousands_of_texts(spark: SparkSession) -> None:
    few, many = _RowWidth(), _RowWidth()
    for width, count in ((few, 5), (many, 4_000)):
        for _ in range(count):
            width.add_text(F.lit("abc"))
    assert spark.range(1).select(few.column()).head() == (32 + 5 * (8 + 3),)
    assert len(spark.range(1).select(many.column()).schema.fields) == 1  # its analysis overflowed the stack


def test_merge_condition_without_equal_keys(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(15, 25, "in"), (100, 200, "out")], "low int, high int, v string").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, F.expr("t.n BETWEEN s.low AND s.high"))
    builder.whenMatchedUpdate(set={"v": F.col("s.v")}).whenNotMatchedInsert(values={"k": "-1L", "v": "s.v"}).execute()
    assert stored(table) == [(None, "z", 0), (-1, "out", None), (1, "a", 10), (2, "in", 20), (3, "c", 30)]


@pytest.mark.parametrize("condition", ["10 / (t.n - 30 + s.n - 300) > 0", "10 / (t.n - 30) > 0"], ids=["of both", "of the table"])
def test_merge_evaluates_clause_conditions_only_on_matches(spark: SparkSession, table: str, condition: str) -> None:
    """For the other rows it fails, and Spark would evaluate it earlier if it could."""
    source = spark.createDataFrame([(2, "B", 400), (3, "C", 300)], "k bigint, v string, n int").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k AND t.n + s.n <> 330")
    builder.whenMatchedUpdate(condition + " OR t.k = 2", {"v": "s.v"}).execute()
    values = PlainTable(table).to_arrow().sort_by("k").select(["k", "v"]).to_pylist()
    assert [row["v"] for row in values] == ["a", "B", "c", "z"]


def test_merge_of_an_empty_source_and_into_an_empty_table(spark: SparkSession, table: str) -> None:
    nothing = spark.createDataFrame([], "k bigint, v string, n int").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(nothing, "t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete().execute()
    assert stored(table) == []
    builder = DeltaTable.forPath(spark, table).alias("t").merge(twice(spark), "t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [row[0] for row in stored(table)] == [2, 2, 4]


def test_merge_history_has_parameters_and_metrics_of_delta_spark(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(2, "B", 200), (3, "C", 300), (4, "D", 400), (None, "N", 1)], "k bigint, v string, n int")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), "t.k = s.k")
    builder = (
        builder.whenMatchedDelete("s.n = 300").whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert("s.k = 4", {"k": "s.k"})
    )
    builder.whenNotMatchedBySourceUpdate("t.k = 1", {"n": "t.n * 2"}).whenNotMatchedBySourceDelete().execute()
    commit = last_commit(table)
    assert commit["operation"] == "MERGE"
    assert dict(commit["operationParameters"]) == {
        "predicate": '["(t.k = s.k)"]',
        "matchedPredicates": '[{"predicate":"(s.n = 300)","actionType":"delete"},{"actionType":"update"}]',
        "notMatchedPredicates": '[{"predicate":"(s.k = CAST(4 AS BIGINT))","actionType":"insert"}]',
        "notMatchedBySourcePredicates": '[{"predicate":"(t.k = CAST(1 AS BIGINT))","actionType":"update"},'
        '{"actionType":"delete"}]',
    }
    metrics = dict(commit["operationMetrics"])
    counts = {
        name: int(value) for name, value in metrics.items() if not name.endswith("Ms") and "Bytes" not in name and value != "0"
    }
    assert counts == {
        "numSourceRows": 4,
        "numOutputRows": 3,
        "numTargetRowsInserted": 1,
        "numTargetRowsUpdated": 2,
        "numTargetRowsMatchedUpdated": 1,
        "numTargetRowsNotMatchedBySourceUpdated": 1,
        "numTargetRowsDeleted": 2,
        "numTargetRowsMatchedDeleted": 1,
        "numTargetRowsNotMatchedBySourceDeleted": 1,
        "numTargetFilesAdded": counts["numTargetFilesAdded"],
        "numTargetFilesRemoved": 1,
        "numTargetChangeFilesAdded": counts["numTargetChangeFilesAdded"],
    }
    assert {name for name in metrics if name.endswith("Ms")} == {
        "executionTimeMs",
        "scanTimeMs",
        "rewriteTimeMs",
        "materializeSourceTimeMs",
    }
