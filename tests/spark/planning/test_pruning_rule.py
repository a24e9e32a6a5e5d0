"""The pruning rule: every query returns the rows that Spark's own Parquet reader returns, and the rule has changed its plan.

Most tests read a real Delta table. Some read ParquetSource (support/parquet_source.py), which drops exactly the rows that the
predicate rejects, so a predicate that excludes too much changes the rows.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import pruning, register
from spark_plugin.spark_versions import to_arrow_schema
from tests.spark.planning.parquet_source import FORMAT, TRACE, GreedySource, ParquetSource
from tests.spark.queries import query_shapes
from tests.spark.queries.query_shapes import SHAPES, Table
from tests.support.oracles.frames import executed_plan
from tests.support.runs.sampling import sampled

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ADAPTIVE = "spark.sql.adaptive.enabled"
ENABLED = "spark.pydelta.pruning.enabled"

SETTINGS: dict[str, dict[str, str]] = {
    "as_usual": {PUSHDOWN: "false", ADAPTIVE: "true"},
    "as_unusual": {PUSHDOWN: "true", ADAPTIVE: "false"},
}
# Spark knows without reading that these have no rows.
WITHOUT_SCAN = {"filter_contradiction", "filter_not_in_with_null"}
# Queries that a predicate or limit would make wrong if it excluded too much, or was used for the wrong scan.
SHARP = sorted(
    name for name in SHAPES if name.startswith(("filter", "nested", "limit", "set", "frame", "join", "first", "cache"))
)


# ---------------------------------------------------------------- the rows, three ways


@pytest.fixture(scope="module")
def parquet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = str(tmp_path_factory.mktemp("shapes") / "rows")
    writer = query_shapes.make_rows(spark).write.option("parquet.block.size", 20_000)
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer.parquet(directory)
    spark.conf.set("spark.sql.parquet.outputTimestampType", before)
    return Table(spark, "parquet", directory)


@pytest.fixture(scope="module")
def delta(parquet: Table, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The same rows in 16 files, with statistics: four commits, partitioned by `part`."""
    path = str(tmp_path_factory.mktemp("shapes") / "delta")
    schema = to_arrow_schema(parquet.load().schema)
    for file in sorted(Path(parquet.path).glob("*.parquet")):
        write_deltalake(path, pq.read_table(file).cast(schema), partition_by=["part"], mode="append")
    return Table(parquet.spark, "pydelta", path)


@pytest.fixture(scope="module")
def exact(parquet: Table) -> Table:
    """The same rows through ParquetSource."""
    parquet.spark.dataSource.register(ParquetSource)
    assert pruning.install(parquet.spark, FORMAT)
    return Table(parquet.spark, FORMAT, parquet.path)


@pytest.fixture(scope="module")
def expected(parquet: Table) -> Callable[[str], str]:
    return query_shapes.remembered(parquet)


@pytest.fixture
def applied(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """The number of scans pruned since the test began. No plan may be unpruned when the test ends."""
    before = pruning.status(spark)
    assert before.installed
    yield lambda: pruning.status(spark)["pruning"].used - before["pruning"].used
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after.last_error


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("name", "setting"),
    [*((name, "as_usual") for name in sampled(SHAPES, 30)), *((name, "as_unusual") for name in sampled(SHAPES, 90))],
)
def test_query_on_delta_table_gives_rows_of_spark_parquet_reader(
    name: str, setting: str, delta: Table, expected: Callable[[str], str], conf: Any, applied: Callable[[], int]
) -> None:
    conf(SETTINGS[setting])
    assert repr(SHAPES[name](delta)) == expected(name)
    assert applied() > 0 or name in WITHOUT_SCAN


@pytest.mark.parametrize("name", sampled(SHARP, 24))
def test_query_on_source_that_filters_exactly_gives_equal_rows(
    name: str, exact: Table, expected: Callable[[str], str], applied: Callable[[], int]
) -> None:
    assert repr(SHAPES[name](exact)) == expected(name)
    assert applied() > 0 or name in WITHOUT_SCAN


def test_null_among_binary_constants_leaves_the_scan_pruned(delta: Table, parquet: Table, applied: Callable[[], int]) -> None:
    """Spark 4.2 fails to write such a filter as text."""
    condition = "bin IN (cast('42' as binary), NULL)"
    assert delta.load().where(condition).count() == parquet.load().where(condition).count() > 0
    assert applied() > 0


SEVERAL_FILTERS = [
    "frame_reused_with_other_filters",
    "union_of_one_load_with_two_filters",
    "join_of_one_load_with_itself",
    "first_rows",
]


@pytest.mark.parametrize(
    ("name", "pushdown", "switch"), sampled(product(SEVERAL_FILTERS, ["true", "false"], ["conf", "option"]), 10)
)
def test_frame_with_several_filters_is_right_without_the_rule(
    name: str, pushdown: str, switch: str, delta: Table, expected: Callable[[str], str], conf: Any, applied: Callable[[], int]
) -> None:
    conf({PUSHDOWN: pushdown, ENABLED: str(switch != "conf").lower()})
    options = (("pruning", "false"),) if switch == "option" else ()
    assert repr(SHAPES[name](Table(delta.spark, delta.format, delta.path, options))) == expected(name)
    assert applied() == 0


def test_threads_query_one_frame_and_each_gets_its_rows(exact: Table, applied: Callable[[], int]) -> None:
    df = exact.load()
    expected_counts = [1, 2, 3, 4] * 2
    with ThreadPoolExecutor(4) as threads:
        counts = threads.map(lambda a: df.filter(f"a >= {a * 100} and part = {a % 4}").count(), expected_counts)
    assert list(counts) == [(1000 - a * 100) * 4 for a in expected_counts]
    assert applied() == len(expected_counts)


def test_filter_on_a_collated_string_follows_the_collation(exact: Table, applied: Callable[[], int]) -> None:
    """The source compares bytes, so this predicate must not reach it."""
    df = exact.load(schema="id long, s2 string collate utf8_lcase")
    same = exact.load().filter("s2 = 'x1'").count()
    assert same > 0
    assert df.filter("s2 = 'X1'").count() == same
    assert df.filter("s2 in ('X1', 'X2') or id < 0").count() == exact.load().filter("s2 in ('x1', 'x2')").count()
    assert applied() == 4


# ---------------------------------------------------------------- what reaches the source


def scan_of(df: DataFrame) -> str:
    """The scan's lines in explain("formatted")."""
    plan = str(
        df._jdf.queryExecution().explainString(df._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted"))
    )
    return plan[plan.index(") BatchScan") :]


def read_schema(df: DataFrame) -> str:
    return next(line for line in scan_of(df).splitlines() if line.startswith("ReadSchema: ")).removeprefix("ReadSchema: ")


@pytest.mark.parametrize(
    ("query", "schema"),
    [
        ("select sum(a) from t", "struct<a:int>"),
        ("select id from t where s1 = 'x'", "struct<id:bigint,s1:string>"),
        ("select sum(st.x), max(st.deep.q) from t", "struct<st:struct<x:int,deep:struct<q:bigint>>>"),
        ("select items.k from t", "struct<items:array<struct<k:int>>>"),
        ("select 1 from t", "struct<>"),
        ("select a + 1 from t where exists (select 1)", "struct<a:int>"),
    ],
)
def test_scan_reads_only_the_columns_that_the_query_needs(query: str, schema: str, delta: Table) -> None:
    delta.load().createOrReplaceTempView("t")
    try:
        assert read_schema(delta.spark.sql(query)) == schema
    finally:
        delta.spark.catalog.dropTempView("t")


def test_scan_of_a_users_schema_is_pruned_from_that_schema(delta: Table, applied: Callable[[], int]) -> None:
    df = delta.load(schema="st struct<y: string, x: int>, c bigint, a int")
    assert read_schema(df) == "struct<st:struct<y:string,x:int>,c:bigint,a:int>"
    assert read_schema(df.filter("a = 1").select("st.y")) == "struct<st:struct<y:string>,a:int>"
    assert df.filter("a = 1").select("st.y").distinct().orderBy("y").collect()[-1].y == "city_1"
    assert applied() == 3


KEPT_FILES = {
    "part = 1": 4,
    "part in (1, 3)": 8,
    "part = 1 or id < 4000": 7,
    "id >= 4000 and id < 4010": 4,
    "st.deep.p < 100": 4,
    "s1 > 'city_9'": 0,
    "s1 is null and part = 2": 4,
    "not (part = 1)": 12,
    "price < 10 or price > 158": 8,
    "d < date'2020-01-01'": 0,
    "ts < timestamp'2023-11-16 00:00:00'": 4,
    "abs(part) = 1": 16,
}


@pytest.fixture(scope="module")
def matching(parquet: Table) -> dict[str, int]:
    """The number of rows for which each condition is true, by Spark's Parquet reader in one query."""
    counts = parquet.load().selectExpr(*(f"count_if({condition})" for condition in KEPT_FILES)).first()
    assert counts is not None
    return dict(zip(KEPT_FILES, counts, strict=True))


@pytest.mark.parametrize("condition", KEPT_FILES)
def test_filter_keeps_only_the_files_that_may_match(condition: str, delta: Table, matching: dict[str, int]) -> None:
    remaining_count = KEPT_FILES[condition]
    df = delta.load().filter(condition)
    assert f"Kept: {remaining_count} of 16 files" in scan_of(df)
    assert df.count() == matching[condition]
    report = pruning.status(delta.spark).last_scan
    assert report is not None
    assert (report.files_kept, report.files_total) == (remaining_count, 16)
    assert 0 <= report.bytes_kept <= report.bytes_total
    assert (report.bytes_kept == 0) == (remaining_count == 0)


def test_limit_is_read_by_one_task(delta: Table) -> None:
    df = delta.load().limit(4_321)
    assert "PushedLimit: 4321" in scan_of(df)
    assert df.rdd.getNumPartitions() == 1
    assert df.count() == 4_321


# ---------------------------------------------------------------- explain()


def test_explain_names_format_path_filters_and_files(delta: Table) -> None:
    df = delta.load().filter("part = 1").select("id")
    short = df._jdf.queryExecution().simpleString()
    for plan in (short, scan_of(df)):
        for text in ("BatchScan pydelta", delta.path, "part = 1", "4 of 16 files", "struct<id:bigint,part:int>"):
            assert text in plan


def test_explain_and_the_action_after_it_plan_the_scan_once(exact: Table, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    df = exact.reader().option(TRACE, str(trace)).load(exact.path).filter("a = 3").select("id")
    df._jdf.queryExecution().simpleString()
    df._jdf.queryExecution().toString()
    assert len(df.collect()) == 16
    assert len(trace.read_text().splitlines()) == 1


def test_explain_of_a_scan_that_cannot_be_planned_does_not_fail(exact: Table, tmp_path: Path) -> None:
    df = exact.reader().option(TRACE, str(tmp_path / "no" / "directory")).load(exact.path)
    assert "not planned: " in df._jdf.queryExecution().simpleString()
    with pytest.raises(Exception, match="No such file or directory"):
        df.collect()


# ---------------------------------------------------------------- reuse of a repeated part


def reused(df: DataFrame) -> int:
    return executed_plan(df).count("ReusedExchange")


def test_query_reuses_an_equal_part_and_no_different_part(delta: Table, conf: Any) -> None:
    conf({ADAPTIVE: "false", "spark.sql.autoBroadcastJoinThreshold": "-1"})

    def sums(df: DataFrame, condition: str) -> DataFrame:
        return df.filter(condition).groupBy("s1").agg(F.sum("c").alias("c"))

    one, other = delta.load(), delta.load()
    assert reused(sums(one, "a < 9").join(sums(one, "a < 9"), "s1")) == 1
    assert reused(sums(one, "a < 9").join(sums(other, "a < 9"), "s1")) == 1
    assert reused(sums(one, "a < 9").join(sums(one, "a < 8"), "s1")) == 0
    assert reused(sums(one, "a < 9").join(sums(other.limit(9), "a < 9"), "s1")) == 0
    older = delta.reader().option("versionAsOf", 1).load(delta.path)
    both = sums(one, "a < 9").join(sums(older, "a < 9"), "s1").toDF("s1", "now", "before")
    assert reused(both) == 0
    assert both.filter("now <= before").count() == 0


# ---------------------------------------------------------------- switching it off


@pytest.mark.parametrize("switch", ["conf", "option"])
def test_switched_off_rule_reads_everything(switch: str, delta: Table, conf: Any, applied: Callable[[], int]) -> None:
    if switch == "conf":
        conf({ENABLED: "false"})
    reader = delta.reader().option("pruning", str(switch == "conf"))
    df = reader.load(delta.path).filter("part = 1").select("id")
    assert "dotted.name" in scan_of(df)
    assert df.count() == 4_000
    assert applied() == 0


# ---------------------------------------------------------------- installing it


def rule_names(spark: SparkSession) -> list[str]:
    rules = spark._jsparkSession.experimental().extraOptimizations()
    return [rules.apply(i).ruleName() for i in range(rules.length())]


@pytest.fixture
def other_rule(spark: SparkSession) -> Iterator[Any]:
    """A rule of another library, which changes nothing. Afterwards the session's rules are restored."""
    experimental = spark._jsparkSession.experimental()
    before = experimental.extraOptimizations()
    name = "org.apache.spark.sql.catalyst.optimizer.CollapseProject$"
    yield spark._jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
    getattr(experimental, "extraOptimizations_$eq")(before)


def test_register_again_adds_no_second_rule(spark: SparkSession) -> None:
    before = rule_names(spark)
    register(spark)
    assert pruning.install(spark)
    assert rule_names(spark) == before
    assert before.count("pydelta.rule.PruneScans") == 1


def test_register_keeps_other_rules_and_restores_a_lost_rule(
    spark: SparkSession, other_rule: Any, delta: Table
) -> None:
    experimental = spark._jsparkSession.experimental()
    getattr(experimental, "extraOptimizations_$eq")(experimental.extraOptimizations().take(0).appended(other_rule))
    assert not pruning.status(spark).installed
    register(spark)
    assert rule_names(spark) == [other_rule.ruleName(), "pydelta.rule.PruneScans"]
    assert delta.load().agg(F.sum("a")).first()[0] == 7_992_000
    assert pruning.status(spark)["pruning"].used == 1


def test_new_session_prunes_only_after_it_is_registered(spark: SparkSession, delta: Table) -> None:
    before = pruning.status(spark)
    session = spark.newSession()
    assert pruning.status(session) == pruning.PruningStatus(installed=False)
    register(session)
    there = Table(session, delta.format, delta.path)
    assert read_schema(there.load().agg(F.sum("a"))) == "struct<a:int>"
    assert there.load().filter("part = 1").count() == 4_000
    status = pruning.status(session)
    assert (status.installed, status["pruning"].used, status["pruning"].skipped) == (True, 2, 0)
    assert pruning.status(spark)["pruning"].used == before["pruning"].used


def test_cloned_session_shares_rule_and_counts_of_its_original(
    spark: SparkSession, delta: Table, applied: Callable[[], int]
) -> None:
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    assert rule_names(clone) == rule_names(spark)
    assert read_schema(Table(clone, delta.format, delta.path).load().select("a")) == "struct<a:int>"
    assert applied() == 1


# ---------------------------------------------------------------- backing off


@pytest.fixture
def java_log(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """The JVM's log messages about pruning, from level INFO on."""
    jvm: Any = spark._jvm
    core = jvm.org.apache.logging.log4j.core
    writer = jvm.java.io.StringWriter()
    layout = core.layout.PatternLayout.newBuilder().withPattern("%p %m%n").build()
    appender = core.appender.WriterAppender.createAppender(layout, None, writer, "pruning test", False, True)
    appender.start()
    info, off = jvm.org.apache.logging.log4j.Level.INFO, jvm.org.apache.logging.log4j.Level.OFF
    logger = jvm.org.apache.logging.log4j.LogManager.getLogger("pydelta.pruning")
    core.config.Configurator.setLevel("pydelta.pruning", info)
    logger.addAppender(appender)
    yield lambda: str(writer.toString())
    logger.removeAppender(appender)
    core.config.Configurator.setLevel("pydelta.pruning", off)


def test_plan_in_unknown_state_is_skipped_and_logged_once(
    spark: SparkSession, parquet: Table, conf: Any, java_log: Callable[[], str], other_rule: Any
) -> None:
    """A source that takes the filters of Spark's own push-down: its reaction to a marker is unknown."""
    session = spark.newSession()
    session.conf.set(PUSHDOWN, "true")
    session.dataSource.register(GreedySource)
    assert pruning.install(session, GreedySource.name())
    for a in (1, 2):
        df = session.read.format(GreedySource.name()).load(parquet.path)
        assert df.filter(f"a = {a}").select("id").count() == 16
    status = pruning.status(session)
    assert (status["pruning"].used, status["pruning"].skipped) == (0, 2)
    assert "already handed over filters" in str(status.last_error)
    (line,) = java_log().splitlines()
    assert line.startswith("WARN A query is read without column pruning: java.lang.IllegalStateException: ")
    assert "`columns` and `filter`" in line


def test_planned_scan_logs_how_many_files_it_keeps(delta: Table, java_log: Callable[[], str]) -> None:
    assert len(delta.load().filter("part = 1").select("id").collect()) == 4_000
    (line,) = java_log().splitlines()
    assert line.startswith(f"INFO Scan of {delta.path} keeps 4 of 16 files, ")


# ---------------------------------------------------------------- predicates on their way


def handed_over(table: Table, trace: Path, condition: str) -> list[str]:
    """The conjuncts that reach the source when it is planned, as text, without the null tests that Spark adds."""
    df = table.reader().option(TRACE, str(trace)).load(table.path).filter(condition).select("id")
    df._jdf.queryExecution().simpleString()
    return [text for text in json.loads(trace.read_text().splitlines()[-1]) if not text.startswith("Not(operand=IsNull(")]


@pytest.mark.parametrize(
    ("condition", "name", "value"),
    [
        ("a = -7", "a", -7),
        ("c = 9223372036854775807", "c", 9223372036854775807),
        ("b = 0.1D", "b", 0.1),
        ("b = -1e-320D", "b", -1e-320),
        ("b = double('-Infinity')", "b", float("-inf")),
        ("f = cast(0.1 as float)", "f", 0.10000000149011612),
        ("price = 0.100", "price", Decimal("0.100")),
        ("flag", "flag", True),
        ("bin = X'00ff22'", "bin", b"\x00\xff\x22"),
        ("d = date'0001-01-01'", "d", dt.date(1, 1, 1)),
        ("d = date'9999-12-31'", "d", dt.date(9999, 12, 31)),
        ("ts = timestamp'1969-12-31 23:59:59.999999'", "ts", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)),
        ("ntz = timestamp_ntz'9999-12-31 23:59:59.999999'", "ntz", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ("""s2 = 'é"\\\\, \\n\\u0001\\uD83D\\uDE00'""", "s2", 'é"\\, \n\u0001\U0001f600'),
    ],
)
def test_constant_of_each_type_reaches_the_source_exactly(
    condition: str, name: str, value: object, exact: Table, tmp_path: Path
) -> None:
    (comparison,) = handed_over(exact, tmp_path / "trace", condition)
    assert comparison.startswith(f"Comparison(op='=', left=Column(path=('{name}',)), right=Literal(value={value!r}, data_type=")


@pytest.mark.parametrize(
    "condition",
    [
        "ts = timestamp'+10001-01-01 00:00:00'",  # beyond the range of Python's datetime
        "s2 like '%x_%'",
        "a + 1 = 2",
        "size(ints) = 3",
        "tags['m'] = 3",
        "items[0].k = 3",
        "st is null",
        "s2 = 'x1' collate utf8_lcase",
    ],
)
def test_predicate_of_different_python_meaning_stays_in_spark(condition: str, exact: Table, tmp_path: Path) -> None:
    assert handed_over(exact, tmp_path / "trace", condition) == []


def test_long_chain_of_conditions_reaches_the_source_whole(exact: Table, tmp_path: Path) -> None:
    condition = " or ".join(f"(a = {i} and c > {i})" for i in range(300))
    (chain,) = handed_over(exact, tmp_path / "trace", condition)
    assert chain.startswith("Or(operands=(And(operands=(")
    assert chain.count("And(operands=(") == 300
