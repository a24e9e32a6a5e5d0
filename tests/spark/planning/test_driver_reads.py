"""Small queries whose rows the driver's own Python reads: without a job, with the same rows as a job, and by a job if it does not
read them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import DeltaTable, pruning
from spark_plugin.driver_channel.channel import PLAN, READ
from spark_plugin.driver_planning.offers import planning_handlers
from spark_plugin.options import read_limits
from spark_plugin.source import small_scan
from tests.support.oracles.frames import executed_plan, rows
from tests.support.spark.driver_offers import asked, offer
from tests.support.spark.older_settings import PLANNING_CONF as PLANNING
from tests.support.tables.small_table import WITH_VECTORS, make_table

ENABLED = "spark.pydelta.driverReads.enabled"

QUERIES = [
    "select * from {t}",
    "select * from {t} where id = 7",
    "select id + 1 n, upper(name) u, st.a from {t} where k in (2, 3) and st.b like 'b%' and id % 2 = 0",
    "select * from {t} where id = 7 and name = 'none'",
    "select id, x, tags[0] tag, props['k1'] p from {t} where x is null or x > 20",
    "select id from (select id, k from {t} where k = 3 limit 5) where k = 3 limit 3",
    "select cast(id as string) s, date_add(day, 1) d, at from {t} where day > date'2020-01-05'",
    "select id, case when k > 2 then name else null end c from {t} where not (k = 1)",
    "select id from {t} where k = 2 and at < timestamp'2020-01-01 00:30:00'",
]
OF_TASKS = [
    "select count(*), max(name) from {t} where k = 2",
    "select id from {t} order by id desc",
    "select id, explode(tags) from {t}",
    "select id, rand() r from {t}",
    "select id from {t} where id = (select max(id) from {t})",
    "select a.id from {t} a join {t} b on a.id = b.id",
    "select id from {t} union all select id from {t}",
    "select distinct k from {t}",
]


@pytest.fixture
def driver(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Switches it on; returns the number of queries that it read since. Arrow's memory in the JVM is free when the test ends."""
    conf({ENABLED: "true"})
    with asked(spark, conf, "driver") as count:
        yield count
    assert spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getAllocatedMemory() == 0  # type: ignore[union-attr]


@pytest.fixture
def faultless(spark: SparkSession) -> Iterator[None]:
    before = pruning.status(spark)["driver"].last_error
    yield
    assert pruning.status(spark)["driver"].last_error == before


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """90 rows in three files, one per partition, some deleted; one more file with all rows deleted."""
    path = str(tmp_path_factory.mktemp("driver_reads") / "t")
    columns = [
        "id",
        "if(id < 90, id div 30 + 1, 9) k",
        "if(id % 11 = 0, null, concat('n', id)) name",
        "if(id % 5 = 0, null, id / 3) x",
        "named_struct('a', id, 'b', concat('b', id % 3)) st",
        "array(cast(id as string), 'tag') tags",
        "map('k1', id, 'k2', null) props",
        "date_add(date'2020-01-01', cast(id as int)) day",
        "timestamp_seconds(1577836800 + id * 60) at",
        "cast(id as decimal(20, 3)) price",
        "unhex(hex(id)) raw",
        "id % 2 = 0 flag",
        "cast(id as float) f",
    ]
    frame = spark.range(0, 100, 1, 1).selectExpr(*columns)
    frame.write.format("pydelta").partitionBy("k").option("delta.enableDeletionVectors", "true").save(path)
    DeltaTable.forPath(spark, path).delete("id % 10 = 4 or k = 9")
    return path


def view(spark: SparkSession, path: str) -> str:
    spark.read.format("pydelta").load(path).createOrReplaceTempView("driver_reads")
    return "driver_reads"


def jobs_of(spark: SparkSession, work: Callable[[], Any]) -> int:
    spark.sparkContext.setJobGroup("driver reads", "counted")
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup("driver reads"))
    try:
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup("driver reads")) - before
    finally:
        spark.sparkContext.setJobGroup("tests", "others")


# ---------------------------------------------------------------- which queries


@pytest.mark.parametrize("query", QUERIES)
def test_small_query_runs_no_job_and_has_the_rows_of_one(
    query: str, spark: SparkSession, table: str, driver: Callable[[], int], conf: Any, faultless: None
) -> None:
    text = query.format(t=view(spark, table))
    spark.sql(text).collect()  # the first query may take long: it loads Java's classes for texts
    before = driver()
    collected: list[str] = []
    assert jobs_of(spark, lambda: collected.extend(rows(spark.sql(text)))) == 0
    assert driver() - before == 1
    conf({ENABLED: "false"})
    by_job: list[str] = []
    assert jobs_of(spark, lambda: by_job.extend(rows(spark.sql(text)))) > 0
    if "limit" in query:
        assert set(collected) < set(rows(spark.sql(text.replace("limit 5", "").replace("limit 3", ""))))
        assert len(collected) == len(by_job)
    else:
        assert collected == by_job
    assert driver() - before == 1


@pytest.mark.parametrize("query", OF_TASKS)
def test_other_queries_are_read_by_tasks(
    query: str, spark: SparkSession, table: str, driver: Callable[[], int], faultless: None
) -> None:
    df = spark.sql(query.format(t=view(spark, table)))
    assert jobs_of(spark, df.collect) > 0
    assert driver() == 0


def test_plan_shows_what_tasks_would_do(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    df = spark.read.format("pydelta").load(table).filter("id = 7")
    plan = executed_plan(df)
    assert plan.startswith("ReadByDriver\n+- ")
    assert "PushedFilters: [id IS NOT NULL, id = 7], 1 of 3 files" in plan
    assert driver() == 0, "to show a plan reads nothing"
    assert len(df.collect()) == 1
    metrics: Any = df._jdf.queryExecution().executedPlan().metrics()  # type: ignore[operator]
    assert (driver(), metrics.apply("numOutputRows").value()) == (1, 1)


def test_driver_reads_first_rows_of_row_groups_of_any_size(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(400_000)})] * 5, row_group_size=400_000)
    df = spark.read.format("pydelta").load(path)
    shown: list[Any] = []
    assert jobs_of(spark, lambda: shown.extend(df.select((F.col("id") + 0).alias("n")).take(30))) == 0
    assert [row.n for row in shown] == list(range(30))
    assert jobs_of(spark, lambda: df.show(5)) == 0
    assert jobs_of(spark, lambda: df.head(2)) == 0
    assert driver() == 3
    assert jobs_of(spark, lambda: df.filter("id = 3").collect()) > 0, "five files"
    assert driver() == 3


def test_functions_of_users_run_in_tasks(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    doubled = F.udf(lambda n: n * 2, "long")
    df = spark.read.format("pydelta").load(table).filter("id = 7").select(doubled("id").alias("n"))
    assert [row.n for row in df.collect()] == [14]
    assert driver() == 0


@pytest.mark.parametrize(
    "limit", ["DRIVER_ROWS", "DRIVER_BYTES", "rows", "values", "encoded_bytes", "decoded_bytes", "vector_bytes"]
)
def test_tasks_read_what_is_not_small(
    limit: str, spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(100)})], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id % 2 = 0")

    def found() -> int:
        return len(spark.read.format("pydelta").load(path).filter("id > 9").collect())

    assert (found(), driver()) == (45, 1)
    if limit.startswith("DRIVER_"):
        monkeypatch.setattr(read_limits, limit, 10)
    else:
        monkeypatch.setattr(small_scan, "LIMITS", replace(small_scan.LIMITS, **{limit: 10}))
    assert (found(), driver()) == (45, 1)


def test_work_above_a_limit_is_done_for_its_rows_alone(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(4000)})])
    even = spark.read.format("pydelta").load(path).filter("id % 2 = 0")
    assert len(even.selectExpr("repeat(concat('x', id), 100000) r").limit(3).collect()) == 3
    assert driver() == 1
    assert len(even.selectExpr("repeat(concat('x', id), 10000) r").collect()) == 2000, "40 MB"
    assert driver() == 1


LONG_WORK = "size(array_sort(transform(sequence(1, 3000), x -> (x * 7919 + id) % 3001))) n"


def test_long_work_stays_in_tasks_that_can_be_cancelled(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(n, n + 200)}) for n in range(0, 4000, 200)])
    df = spark.read.format("pydelta").load(path)
    assert len(df.filter("id < 3").selectExpr(LONG_WORK).collect()) == 3
    assert driver() == 1
    for long in (df.selectExpr(LONG_WORK), df.filter(f"{LONG_WORK.removesuffix(' n')} < 0")):
        spark.sparkContext.setJobGroup("long", "to be cancelled", True)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: (time.sleep(1.5), spark.sparkContext.cancelJobGroup("long")))
            before = time.monotonic()
            with pytest.raises(Exception, match="cancelled"):
                long.collect()
            assert time.monotonic() - before < 10
        spark.sparkContext.setJobGroup("tests", "others")
    assert driver() == 1


def test_texts_with_a_collation_are_read_by_tasks(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None
) -> None:
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "concat('A', id) collate UTF8_LCASE s").write.format("pydelta").save(path)
    df = spark.read.format("pydelta").load(path)
    assert rows(df.filter("s = 'a1'")) == ["Row(id=1, s='A1')"]
    assert driver() == 0
    assert rows(df.filter("s = 'a1'").select("id")) == ["Row(id=1)"]


def test_scan_is_planned_once(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    planned: list[bytes] = []
    work = planning_handlers()
    plan = work[PLAN]
    offer(spark, {**work, PLAN: lambda body: planned.append(body) or plan(body)})
    assert len(spark.read.format("pydelta").load(table).filter("id = 7").collect()) == 1
    assert (driver(), len(planned)) == (1, 1)


# ---------------------------------------------------------------- whose rows


def test_rows_of_other_kinds_of_reads(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], faultless: None, conf: Any
) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    spark.range(0, 30, 1, 1).selectExpr("id", "id % 3 `a b`").write.format("pydelta").options(**properties).save(path)
    spark.sql(f"ALTER TABLE pydelta.`{path}` RENAME COLUMN id TO n")
    DeltaTable.forPath(spark, path).update("n = 5", {"n": "500"})

    def reader(**options: Any) -> DataFrame:
        return spark.read.format("pydelta").options(**options).load(path)

    reads_of = [
        lambda: reader().filter("n > 25"),
        lambda: reader(versionAsOf=0).filter("id = 5"),
        lambda: reader(readChangeFeed=True, startingVersion=2).select("n", "_change_type", "_commit_version"),
        lambda: reader().filter("n < 3").select("n", "_metadata.row_index", "_metadata.file_name", "_metadata.row_id"),
        lambda: spark.sql(f"SELECT `a b` FROM pydelta.`{path}` WHERE n = 500"),
        lambda: reader(columns="n").filter("n = 4"),
    ]
    by_driver = [rows(read()) for read in reads_of]
    assert driver() == len(reads_of)
    conf({ENABLED: "false"})
    assert [rows(read()) for read in reads_of] == by_driver
    assert all(by_driver)


def test_subquery_that_is_there_twice_is_read_once(
    spark: SparkSession, table: str, driver: Callable[[], int], conf: Any, faultless: None
) -> None:
    name = view(spark, table)
    seven = f"(select id from {name} where id = 7)"
    text = f"select id from {name} where id > {seven} and id < {seven} + 9"
    for adaptive in ("true", "false"):
        conf({"spark.sql.adaptive.enabled": adaptive})
        before = driver()
        assert [row.id for row in spark.sql(text).collect()] == [8, 9, 10, 11, 12, 13, 15]
        assert driver() - before == 1, executed_plan(spark.sql(text))


@pytest.mark.parametrize(
    "settings",
    [{"spark.sql.adaptive.forceApply": "true"}, {"spark.sql.codegen.wholeStage": "false"}, {"spark.sql.ansi.enabled": "false"}],
)
def test_settings_of_spark(
    settings: dict[str, str], spark: SparkSession, table: str, driver: Callable[[], int], conf: Any, faultless: None
) -> None:
    text = f"select id, name from {view(spark, table)} where k = 1"
    expected = rows(spark.sql(text))
    conf(settings)
    assert rows(spark.sql(text)) == expected
    assert len(expected) == 27


def test_query_is_asked_from_many_threads(spark: SparkSession, table: str, driver: Callable[[], int], faultless: None) -> None:
    def found(wanted_id: int) -> list[int]:
        return [row.id for row in spark.read.format("pydelta").load(table).filter(f"id = {wanted_id}").collect()]

    wanted_ids = [n for n in range(50) if n % 10 != 4][:40]
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(found, wanted_ids)) == [[n] for n in wanted_ids]
    assert driver() > 0


def test_frame_keeps_its_version_and_its_rows(spark: SparkSession, tmp_path: Path, driver: Callable[[], int]) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    df = spark.read.format("pydelta").load(path)
    cached = df.cache()
    assert cached.count() == 2
    DeltaTable.forPath(spark, path).delete("id = 1")
    assert rows(df.filter("id > 0")) == ["Row(id=1)", "Row(id=2)"]
    df.unpersist()
    assert rows(df.filter("id > 0")) == ["Row(id=1)", "Row(id=2)"]
    assert rows(spark.read.format("pydelta").load(path)) == ["Row(id=2)"]
    assert driver() == 2


# ---------------------------------------------------------------- where it fails


def error_of(df: DataFrame) -> tuple[type, str]:
    with pytest.raises(PySparkException) as raised:
        df.collect()
    return type(raised.value), str(raised.value).split("JVM stacktrace")[0].split("SQLSTATE")[0]


def test_errors_are_those_of_tasks(spark: SparkSession, tmp_path: Path, driver: Callable[[], int], conf: Any) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2], "s": ["1", "x"]})])
    lost = make_table(tmp_path / "lost", [pa.table({"id": [1, 2]})])
    for file in Path(lost).glob("*.parquet"):
        file.unlink()
    load = spark.read.format("pydelta").load
    failing = [
        load(path).select(F.expr("cast(s as int)")),
        load(path).filter("1 / (id - 1) > 0"),
        load(lost).filter("id = 1"),
    ]
    by_driver = [error_of(df) for df in failing]
    assert driver() == 0
    assert pruning.status(spark)["driver"].last_error is not None
    conf({ENABLED: "false"})
    by_tasks = [error_of(df) for df in failing]
    assert [kind for kind, _ in by_driver] == [kind for kind, _ in by_tasks]
    assert [text[:60] for _, text in by_driver] == [text[:60] for _, text in by_tasks]


@pytest.mark.parametrize("answer", ["fails", "cut short", "another type"])
def test_tasks_read_what_python_does_not_answer(
    answer: str, spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    def read(_: bytes) -> bytes:
        if answer == "fails":
            raise OSError("the disk is gone")
        sink = pa.BufferOutputStream()
        kind = pa.int32() if answer == "another type" else pa.int64()
        with pa.ipc.new_stream(sink, pa.schema([("id", kind)])) as writer:
            writer.write_table(pa.table({"id": pa.array([7], kind)}))
        complete_stream = bytes(sink.getvalue().to_pybytes())
        return complete_stream[:-40] if answer == "cut short" else complete_stream

    offer(spark, {**planning_handlers(), READ: read})
    df = spark.read.format("pydelta").load(table).filter("id = 7").select("id")
    assert rows(df) == ["Row(id=7)"]
    assert driver() == 0
    assert pruning.status(spark)["driver"].last_error is not None


def test_table_that_is_gone_between_planning_and_reading(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    df = spark.read.format("pydelta").load(path).filter("id = 1")
    executed_plan(df)
    shutil.rmtree(path)
    error_of(df)
    assert driver() == 0


def test_sessions_and_reads_that_do_not_want_it(
    spark: SparkSession, table: str, driver: Callable[[], int], conf: Any, faultless: None
) -> None:
    def found(**options: Any) -> list[str]:
        return rows(spark.read.format("pydelta").options(**options).load(table).filter("id = 7").select("id"))

    assert found(logAnswers=False) == found(pruning=False) == ["Row(id=7)"]
    conf({PLANNING: "false"})
    assert found() == ["Row(id=7)"]
    assert driver() == 0
