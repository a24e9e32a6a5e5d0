"""Every query returns the same rows by every road: with the pruning rule, in rows and in columns, without it, and by Spark's own
Parquet reader.

The table has four partitions, two files in each, and a deletion vector for every file. If the rule is on, it must have changed
the plan. If it or the columnar reader is off, it must not have been used.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import pruning, register
from tests.spark.queries import query_shapes
from tests.spark.queries.query_shapes import SHAPES, Shape, Table, rows
from tests.spark.queries.random_queries import queries
from tests.support.runs.sampling import examples, sampled
from tests.support.spark.needs_spark import skip_before_spark
from tests.support.spark.older_settings import COLUMNAR_CONF, ENABLED_CONF, NATIVE_CONF, PARTIAL_CONF
from tests.support.spark.settings import restore

ROW_COUNT = 6_000

ROADS: dict[str, dict[str, str]] = {
    "rule": {ENABLED_CONF: "true", COLUMNAR_CONF: "false"},
    "columns": {ENABLED_CONF: "true", COLUMNAR_CONF: "true", NATIVE_CONF: "false"},
    "native": {ENABLED_CONF: "true", COLUMNAR_CONF: "true", NATIVE_CONF: "true"},
    "partial": {ENABLED_CONF: "true", COLUMNAR_CONF: "true", NATIVE_CONF: "false", PARTIAL_CONF: "true"},
    "no_rule": {ENABLED_CONF: "false", COLUMNAR_CONF: "true"},
}
ADAPTIVE = "spark.sql.adaptive.enabled"
SETTINGS: dict[str, dict[str, str]] = {
    "as_usual": {},
    "without_adaptive": {ADAPTIVE: "false"},
    "pushdown": {"spark.sql.python.filterPushdown.enabled": "true"},
    "tiny_batches": {"spark.sql.execution.arrow.maxRecordsPerOutputBatch": "77"},
    "without_whole_stage": {"spark.sql.codegen.wholeStage": "false", ADAPTIVE: "false"},
    "no_broadcast": {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.python.filterPushdown.enabled": "true"},
}
# Spark knows without reading that these have no rows.
WITHOUT_SCAN = {"filter_contradiction", "filter_not_in_with_null"}


@pytest.fixture(scope="module")
def parquet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = str(tmp_path_factory.mktemp("correctness") / "rows")
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    query_shapes.make_rows(spark, ROW_COUNT).write.parquet(directory)
    spark.conf.set("spark.sql.parquet.outputTimestampType", before)
    return Table(spark, "parquet", directory)


@pytest.fixture(scope="module")
def delta(parquet: Table, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The same rows in eight files. Four of them also have other rows, which deletion vectors hide."""
    path = str(tmp_path_factory.mktemp("correctness") / "delta")
    files = sorted(map(str, Path(parquet.path).glob("*.parquet")))
    for number, half in enumerate((files[:2], files[2:])):
        original = parquet.spark.read.parquet(*half)
        hidden_rows = original.withColumn("id", F.col("id") + 10 * ROW_COUNT).withColumn("a", F.lit(7)).filter("id % 3 = 0")
        if number:
            hidden_rows = hidden_rows.limit(0)
        writer = original.union(hidden_rows).coalesce(1).write.format("pydelta").mode("append").partitionBy("part")
        (writer if number else writer.option("delta.enableDeletionVectors", "true")).save(path)
    nothing = parquet.load().limit(0).write.format("pydelta").mode("overwrite")
    nothing.option("replaceWhere", f"id >= {10 * ROW_COUNT}").save(path)
    last = max(Path(path, "_delta_log").glob("*.json")).read_text()
    assert last.count('"deletionVector"') == 4
    return Table(parquet.spark, "pydelta", path)


@pytest.fixture(scope="module")
def expected(parquet: Table) -> Callable[[str], str]:
    return query_shapes.remembered(parquet)


def run(road: str, spark: SparkSession, query: Callable[[], Any], *, scans: bool = True) -> Any:
    """The query's result on this road. Fails if the rule was not used as it should be, or left a plan unpruned.

    scans: whether the query reads the table.
    """
    before = {name: spark.conf.get(name, None) for name in ROADS[road]}
    was = pruning.status(spark)
    for name, value in ROADS[road].items():
        spark.conf.set(name, value)
    try:
        result = query()
    finally:
        restore(spark, before)
    now = pruning.status(spark)
    assert now.installed
    assert now["pruning"].skipped == was["pruning"].skipped, now.last_error
    assert now["columns"].last_error is None
    assert now["log"].last_error == was["log"].last_error
    if road == "no_rule":
        assert now["pruning"].used == was["pruning"].used
    else:
        assert now["pruning"].used > was["pruning"].used or not scans
    assert now["parquet"].last_error == was["parquet"].last_error
    assert now["partial"].last_error == was["partial"].last_error
    assert now["partial"].used == was["partial"].used or road == "partial"
    assert now["columns"].used == was["columns"].used or road in ("columns", "native", "partial")
    assert now["parquet"].used == was["parquet"].used or road == "native"
    return result


# ---------------------------------------------------------------- queries


WITH_SETTINGS = [(name, list(SETTINGS)[place // 8 % len(SETTINGS)]) for place, name in enumerate(SHAPES)]
PUSHED = ["frame_reused_with_other_filters", "join_of_one_load_with_itself"]


@pytest.mark.parametrize(("name", "setting"), [*sampled(WITH_SETTINGS, 90), *((name, "pushdown") for name in sampled(PUSHED, 4))])
def test_query_shape_gives_the_same_rows_by_every_road(
    name: str, setting: str, delta: Table, expected: Callable[[str], str], conf: Any
) -> None:
    if setting == "tiny_batches":
        skip_before_spark("4.3", "right rows of cut batches")
    expected_rows = expected(name)
    conf(SETTINGS[setting])
    for road in ROADS:
        actual = run(road, delta.spark, lambda: repr(SHAPES[name](delta)), scans=name not in WITHOUT_SCAN)
        assert actual == expected_rows, road


@settings(max_examples=examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(query=queries())
def test_random_query_gives_the_same_rows_by_every_road(query: str, delta: Table, parquet: Table) -> None:
    try:
        expected_rows = parquet.sql(query)
    except AnalysisException:  # a kind of subquery that Spark does not allow here
        reject()
    scans = run("no_rule", delta.spark, lambda: reads(delta, query))
    for road in ROADS:
        actual = run(road, delta.spark, lambda: delta.sql(query), scans=scans)
        assert actual == expected_rows, (road, query)


def reads(table: Table, query: str) -> bool:
    """Whether Spark itself leaves the table in the plan: it knows that some filters have no rows."""
    table.load().createOrReplaceTempView("t")
    try:
        return "pydelta" in str(table.spark.sql(query)._jdf.queryExecution().optimizedPlan().toString())
    finally:
        table.spark.catalog.dropTempView("t")


# ---------------------------------------------------------------- sessions and threads

KINDS_OF_SESSION: dict[str, Callable[[SparkSession], SparkSession]] = {
    "new": lambda spark: spark.newSession(),
    "cloned": lambda spark: SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession()),
}
IN_EVERY_SESSION = ["union_of_one_load_with_two_filters", "cte_of_different_columns"]


@pytest.mark.parametrize("kind", KINDS_OF_SESSION)
def test_other_session_gives_the_same_rows_by_every_road(
    kind: str, delta: Table, expected: Callable[[str], str], spark: SparkSession
) -> None:
    expected_rows = [expected(name) for name in IN_EVERY_SESSION]
    session = KINDS_OF_SESSION[kind](spark)
    if kind == "new":
        there = Table(session, delta.format, delta.path)
        assert [repr(SHAPES[name](there)) for name in IN_EVERY_SESSION] == expected_rows, "before it is registered"
        register(session)
    for road in ROADS:
        there = Table(session, delta.format, delta.path)
        was = pruning.status(session)["parquet"].used
        assert run(road, session, lambda: [repr(SHAPES[name](there)) for name in IN_EVERY_SESSION]) == expected_rows, road  # noqa: B023
        assert (pruning.status(session)["parquet"].used > was) == (road == "native")


def test_threads_with_different_sessions_get_equal_rows(
    delta: Table, expected: Callable[[str], str], spark: SparkSession
) -> None:
    names = ["filter_partition_key", "group_by", "union_of_one_load_with_two_filters"]
    expected_rows = [expected(name) for name in names]

    def all_of_them(place: int) -> list[str]:
        session = spark.newSession()
        register(session)
        there = Table(session, delta.format, delta.path)
        turned = names[place:] + names[:place]
        results = run(list(ROADS)[place], session, lambda: {name: repr(SHAPES[name](there)) for name in turned})
        return [results[name] for name in names]

    with ThreadPoolExecutor(len(ROADS)) as threads:
        for road, results in zip(ROADS, threads.map(all_of_them, range(len(ROADS))), strict=True):
            assert results == expected_rows, road


@pytest.mark.parametrize("road", sampled(["columns", "rule", "no_rule", "native"], 2))
def test_threads_filter_one_frame_and_each_gets_its_rows(
    road: str, delta: Table, parquet: Table, spark: SparkSession
) -> None:
    requests = [
        ("part = 1", "s1"),
        ("a < 300", "st"),
        ("flag", "price"),
        ("id >= 3000", "ts"),
        ("s1 is null", "bin"),
        ("true", "a"),
    ]

    def answers(table: Table) -> list[list[str]]:
        frame = table.load()
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(lambda two: rows(frame.filter(two[0]).select("id", two[1])), requests))

    assert run(road, spark, lambda: answers(delta)) == answers(parquet)


# ---------------------------------------------------------------- reads within writes

Change = Callable[[Callable[[], DataFrame]], DataFrame]
READING_WRITES: dict[str, tuple[str, dict[str, str], Change]] = {
    "overwrite": ("overwrite", {}, lambda load: load().filter("part <> 2").withColumn("a", F.col("a") + 1)),
    "append": ("append", {}, lambda load: load().filter("a < 9").withColumn("id", F.col("id") + 1_000_000)),
    "append_joined": (
        "append",
        {},
        lambda load: load().filter("flag").join(load().filter("a < 99").select("id"), "id", "left_semi"),
    ),
    "replace_where": ("overwrite", {"replaceWhere": "part = 1"}, lambda load: load().filter("part = 1 and a > 500")),
}
REPLACED = {"overwrite": "true", "replace_where": "part = 1"}


@pytest.mark.parametrize(("road", "name"), sampled(product(ROADS, READING_WRITES), 6))
def test_write_that_reads_its_target_writes_the_former_rows(
    name: str, road: str, parquet: Table, spark: SparkSession, tmp_path: Path
) -> None:
    mode, options, change = READING_WRITES[name]
    columns = ["id", "a", "s1", "flag", "price", "part", "ts"]
    path = str(tmp_path / "t")
    before = parquet.load().select(*columns)
    before.repartition(2).write.format("pydelta").partitionBy("part").save(path)
    kept_rows = before.filter(f"not ({REPLACED[name]})") if name in REPLACED else before
    expected_rows = rows(kept_rows.union(change(lambda: before).select(*columns)))

    def write() -> list[str]:
        changed = change(lambda: spark.read.format("pydelta").load(path)).select(*columns)
        changed.write.format("pydelta").mode(mode).options(**options).save(path)
        return rows(spark.read.format("pydelta").load(path).select(*columns))

    assert run(road, spark, write) == expected_rows


@pytest.mark.parametrize("road", sampled(["columns", "rule", "no_rule", "native"], 4))
def test_stream_whose_batches_read_what_the_batches_before_wrote(road: str, spark: SparkSession, tmp_path: Path) -> None:
    """foreachBatch runs in a session that Spark clones for the query."""
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    for start in (0, 100, 200):
        spark.range(start, start + 100).coalesce(1).write.mode("append").parquet(source)
    spark.range(0).selectExpr("id", "id seen").write.format("pydelta").save(path)

    def batch(df: DataFrame, _: int) -> None:
        there = df.sparkSession.read.format("pydelta").load(path)
        seen = there.count() + there.filter("id % 2 = 0").count()
        df.join(there.select("id"), "id", "left_anti").withColumn("seen", F.lit(seen)).write.format("pydelta").mode(
            "append"
        ).save(path)

    def stream() -> list[str]:
        frames = spark.readStream.schema("id long").option("maxFilesPerTrigger", "1").parquet(source)
        query = frames.writeStream.foreachBatch(batch).trigger(availableNow=True).start()
        query.awaitTermination()
        return rows(spark.read.format("pydelta").load(path).groupBy("seen").agg(F.count("id").alias("n")))

    assert run(road, spark, stream) == [str({"seen": seen, "n": 100}) for seen in (0, 150, 300)]


# ---------------------------------------------------------------- more kinds of queries

MORE: dict[str, Shape] = {
    "global_view_of_a_view": lambda table: through_views(table),
    "recursive_cte": lambda table: table.sql(
        "with recursive r(n) as (select 1 union all select n * 3 from r where n < 2000)"
        " select count(*), sum(t.c) from r join t on t.id = r.n"
    ),
    "lateral_subquery": lambda table: table.sql(
        "select count(*), sum(m) from t, lateral (select max(x.c) m from t x where x.a = t.part and x.flag) where t.a < 20"
    ),
    "partition_key_of_a_join": lambda table: table.sql(
        "select count(*), sum(l.c) from t l join (select part, max(id) m from t where a = 5 and part < 2 group by part) r"
        " on l.part = r.part and l.id <= r.m"
    ),
    "join_of_three": lambda table: table.sql(
        "select x.part, count(*), sum(z.c) from t x join t y on x.id = y.a join t z on y.id = z.id"
        " where x.flag and y.part = 1 and z.s1 is not null group by x.part"
    ),
    "grouping_sets": lambda table: table.sql(
        "select part, s1, count(*), max(c) from t where a < 50 group by grouping sets ((part), (s1), ())"
    ),
    "columns_of_one_frame_in_turn": lambda table: columns_in_turn(table),
    "frame_joined_with_its_aggregate": lambda table: joined_with_its_aggregate(table),
    "cache_of_a_join_then_other_columns": lambda table: cached_join(table),
}


def through_views(table: Table) -> list[Any]:
    table.load().filter("a < 500").createOrReplaceTempView("narrow")
    table.spark.sql("select id, s1, part from narrow where part < 3").createOrReplaceGlobalTempView("correctness_view")
    query = "select part, count(s1), sum(id) from global_temp.correctness_view where id > 1000 group by part"
    return rows(table.spark.sql(query)) + rows(table.spark.newSession().sql(query))


def columns_in_turn(table: Table) -> list[Any]:
    frame = table.load()
    return [rows(frame.filter("a = 3").select(name)) for name in ("id", "s1", "st", "price", "bin")] + [frame.count()]


def joined_with_its_aggregate(table: Table) -> list[Any]:
    frame = table.load()
    largest = frame.groupBy("part").agg(F.max("c").alias("largest"))
    return rows(frame.join(largest, "part").filter("c >= largest - 60").select("id", "part", "s1"))


def cached_join(table: Table) -> list[Any]:
    frame = table.load()
    both = frame.filter("a < 40").select("id", "s1", "st").join(frame.filter("flag").select("id", "price", "bin"), "id").cache()
    try:
        return rows(both.groupBy("s1").agg(F.sum("price"))) + rows(both.select("bin", "id")) + rows(frame.agg(F.max("s2")))
    finally:
        both.unpersist(True)


@pytest.mark.parametrize("name", sampled(MORE, 9))
def test_query_of_another_kind_gives_the_same_rows_by_every_road(name: str, delta: Table, parquet: Table) -> None:
    expected_rows = MORE[name](parquet)
    for road in ROADS:
        assert run(road, delta.spark, lambda: MORE[name](delta)) == expected_rows, road
