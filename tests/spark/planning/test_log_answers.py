"""Counts, minima and maxima from the log: they equal those of a read and those of Spark's own Parquet reader, and need no scan if
the log has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py.protocol.deletion_vectors import from_row_indexes, inline_descriptor
from spark_plugin import pruning
from tests.support.oracles.frames import executed_plan, rows
from tests.support.tables.table_builder import Json

ENABLED = "spark.pydelta.logAnswers.enabled"
ROW_COUNT = 2_000

ANSWERED = [
    "select count(*) from {t}",
    "select count(*), count(1), count('x') + 1 c from {t}",
    "select count(n), count(p), count(s), min(id), max(id), min(d), max(d), min(price), min(p), max(p) from {t}",
    "select count(*) from {t} where p = 3",
    "select count(*), max(id) from {t} where p in (1, 2) or p is null",
    "select count(*), min(n), count(n) from {t} where p > 100",
    "select count(*) from {t} where abs(p) + 1 > 3",
    "select count(*) from {t} where p = (select max(p) from {t})",
    "select count(*) filter (where p > 2), max(id) filter (where p < 2), count(*) from {t} where p < 4",
    "select p, count(*), count(n), max(id) from {t} group by p",
    "select p % 2 q, count(*) from {t} where p is not null group by p % 2 having count(*) > 1",
    "select distinct p from {t}",
    "select count(distinct p), min(distinct id), sum(distinct p) from {t}",
    "select c from (select p x, count(*) c from {t} group by p) where x > 1",
    "select min(x) from (select id x, p from {t}) where p > 1",
    "select a.c, b.m from (select count(*) c from {t}) a join (select max(p) m from {t}) b on a.c > b.m",
    "select count(*) from {t} union all select max(id) from {t}",
    "select count(*) + (select max(p) from {t}) c, max(id) from {t}",
    "select p, count(*) + (select count(*) from {t} where p = 1) c from {t} group by p",
    "select count(*) n, rand() < 2 r from {t}",
]
READ = [
    "select count(*) from {t} where id > 10",
    "select count(*) from {t} where p = 1 and id > 10",
    "select max(s), count(*) from {t}",
    "select min(f) from {t}",
    "select max(flag) from {t}",
    "select p, count(*) from {t} group by rollup(p)",
    "select min(ts) from {t}",
    "select sum(p), count(*) from {t}",
    "select count(distinct id) from {t}",
    "select s, count(*) from {t} group by s",
    "select max(id + 1) from {t}",
    "select count(*) from (select * from {t} limit 7)",
    "select count(p, n) from {t}",
    "select count(*) from {t} where rand() * 2 > -1",
]


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROW_COUNT, 1, 3).selectExpr(
        "id",
        "case when id % 6 = 5 then null else cast(id % 6 as int) end p",
        "case when id % 10 = 0 then null else id * 2 end n",
        "concat('text_', repeat(cast(id % 50 as string), 30)) s",
        "date_add(date'2020-01-01', cast(id % 400 as int)) d",
        "cast(id / 100 as decimal(10, 2)) price",
        "id % 3 = 0 flag",
        "cast(id as double) f",
        "timestamp_seconds(id + 0.000123) ts",
    )


@pytest.fixture(scope="module")
def table(spark: SparkSession, source: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("answers") / "table")
    source.write.format("pydelta").partitionBy("p").option("delta.columnMapping.mode", "name").save(path)
    return path


@pytest.fixture(scope="module")
def views(spark: SparkSession, source: DataFrame, table: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """ours, read (the same without answers) and parquet (the same rows as Spark reads them)."""
    parquet = str(tmp_path_factory.mktemp("answers") / "parquet")
    source.write.parquet(parquet)
    spark.read.format("pydelta").load(table).createOrReplaceTempView("ours")
    spark.read.format("pydelta").option("logAnswers", "false").load(table).createOrReplaceTempView("read")
    spark.read.parquet(parquet).createOrReplaceTempView("parquet_rows")
    yield
    for name in ("ours", "read", "parquet_rows"):
        spark.catalog.dropTempView(name)


@pytest.fixture
def answered(spark: SparkSession) -> Iterator[Any]:
    """The number of aggregates that the log has answered since the test began. None may have failed, and no plan may be
    unpruned."""
    before = pruning.status(spark)
    yield lambda: pruning.status(spark)["log"].used - before["log"].used
    after = pruning.status(spark)
    assert (after["pruning"].skipped, after["log"].last_error) == (before["pruning"].skipped, before["log"].last_error), (
        after.last_error,
        after["log"].last_error,
    )


@pytest.mark.parametrize("query", ANSWERED)
def test_log_answers_query_with_equal_rows_and_reads_no_file(
    query: str, views: None, spark: SparkSession, answered: Any
) -> None:
    expected = rows(spark.sql(query.format(t="parquet_rows")))
    assert rows(spark.sql(query.format(t="read"))) == expected
    assert answered() == 0
    df = spark.sql(query.format(t="ours"))
    assert rows(df) == expected
    assert answered() > 0
    assert "BatchScan" not in executed_plan(df)
    assert "LocalTableScan" in executed_plan(df)


@pytest.mark.parametrize("query", READ)
def test_query_that_the_log_cannot_answer_is_read(query: str, views: None, spark: SparkSession, answered: Any) -> None:
    df = spark.sql(query.format(t="ours"))
    assert rows(df) == rows(spark.sql(query.format(t="parquet_rows")))
    assert "BatchScan" in executed_plan(df)
    assert answered() == 0


def test_count_without_groups_runs_no_job(spark: SparkSession, table: str, answered: Any) -> None:
    spark.sparkContext.setJobGroup("answers", "counts")
    df = spark.read.format("pydelta").load(table)
    assert df.count() == ROW_COUNT
    assert df.filter("p = 1").agg(F.max("id"), F.count("n")).first() == (1999, 334)
    assert answered() == 2
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("answers")) == []
    df.select("id").agg(F.sum("id")).collect()
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("answers")) > 0
    spark.sparkContext.setJobGroup("tests", "others")


@pytest.mark.parametrize("switch", ["option", "conf", "pruning"])
def test_switched_off_answers_are_read(switch: str, spark: SparkSession, table: str, answered: Any) -> None:
    option = {"option": "logAnswers", "pruning": "pruning"}.get(switch)
    reader = spark.read.format("pydelta")
    df = (reader if option is None else reader.option(option, "false")).load(table)
    spark.conf.set(ENABLED, str(switch != "conf").lower())
    try:
        assert df.count() == ROW_COUNT
        assert df.agg(F.max("id")).first()[0] == ROW_COUNT - 1
        assert answered() == 0
    finally:
        spark.conf.unset(ENABLED)


def test_answer_is_of_the_version_that_the_frame_reads(spark: SparkSession, tmp_path: Path, answered: Any) -> None:
    path = str(tmp_path / "t")
    for start in (0, 10, 30):
        spark.range(start, start + 10).coalesce(1).write.format("pydelta").mode("append").save(path)
    reader = spark.read.format("pydelta")
    pinned, following = reader.load(path), reader.option("followLatest", "true").load(path)
    older = spark.read.format("pydelta").option("versionAsOf", 1).load(path)
    assert [df.agg(F.count("*"), F.max("id")).first() for df in (pinned, following, older)] == [(30, 39), (30, 39), (20, 19)]
    spark.range(90, 95).coalesce(1).write.format("pydelta").mode("append").save(path)
    assert [df.agg(F.count("*"), F.max("id")).first() for df in (pinned, following, older)] == [(30, 39), (35, 94), (20, 19)]
    assert answered() == 6


def commit(path: str, *actions: Json) -> None:
    log = Path(path, "_delta_log")
    version = len(list(log.glob("*.json")))
    (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_deleted_rows_are_not_counted_and_loose_bounds_not_used(
    spark: SparkSession, tmp_path: Path, answered: Any
) -> None:
    path = str(tmp_path / "t")
    spark.range(0, 100, 1, 2).write.format("pydelta").option("delta.enableDeletionVectors", "true").save(path)
    added = [
        json.loads(line)["add"] for line in Path(path, "_delta_log", f"{0:020d}.json").read_text().splitlines() if '"add"' in line
    ]
    last = next(add for add in added if '"id":99' in add["stats"].replace(" ", ""))
    vector = inline_descriptor(from_row_indexes([49, 48, 3])).to_json()
    wide = {**json.loads(last["stats"]), "tightBounds": False}
    commit(
        path,
        {"remove": {"path": last["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**last, "deletionVector": vector, "stats": json.dumps(wide)}},
    )
    df = spark.read.format("pydelta").load(path)
    assert df.count() == 97 == len(df.collect())
    assert df.agg(F.count("id")).first()[0] == 97
    assert answered() == 2
    assert df.agg(F.max("id")).first()[0] == 97
    assert answered() == 2


def test_files_without_statistics_are_counted_by_reading(spark: SparkSession, tmp_path: Path, answered: Any) -> None:
    path = str(tmp_path / "t")
    spark.range(0, 100, 1, 2).write.format("pydelta").save(path)
    spark.range(100, 150, 1, 1).write.format("pydelta").mode("append").save(path)
    newest = Path(path, "_delta_log", f"{1:020d}.json")
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    newest.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for crc in Path(path, "_delta_log").glob("*.crc"):
        crc.unlink()
    df = spark.read.format("pydelta").load(path)
    assert df.count() == 150
    assert df.agg(F.max("id"), F.count("id")).first() == (149, 150)
    assert answered() == 0
    assert spark.read.format("pydelta").option("versionAsOf", 0).load(path).count() == 100
    assert answered() == 1


def test_users_filter_option_is_part_of_the_count(spark: SparkSession, table: str, answered: Any) -> None:
    reader = spark.read.format("pydelta")
    assert reader.option("filter", "p = 1").load(table).count() == 334
    assert answered() == 1
    assert reader.option("filter", "p = 1 and id < 100").load(table).count() == 17
    assert answered() == 1


def test_cached_frame_is_counted_from_the_cache(spark: SparkSession, table: str, answered: Any) -> None:
    df = spark.read.format("pydelta").load(table).filter("p = 1").cache()
    try:
        assert df.count() == 334
        assert answered() == 0
    finally:
        df.unpersist()
