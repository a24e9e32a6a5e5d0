"""Scans that the driver's own Python plans: as a worker does, and by a worker if it does not answer."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

from delta_py.errors import ExpressionError, TableNotFoundError
from spark_plugin import pruning, register
from spark_plugin.dataframe_api import method_patches
from spark_plugin.driver_channel.channel import OPEN, PLAN
from spark_plugin.driver_planning import offer as offer_driver
from spark_plugin.driver_planning.planner import open_source, planned
from tests.support.runs.sampling import sampled, takes_all
from tests.support.spark.driver_offers import asked, offer
from tests.support.spark.older_settings import PLANNING_CONF as ENABLED_CONF
from tests.support.spark.settings import restore
from tests.support.tables.small_table import append, make_table, reproducible_table

ANSWER_SECONDS = "spark.pydelta.driverPlanning.answerSeconds"


@pytest.fixture
def driver(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Switches it on; returns the number of plans that the driver's Python made since."""
    with asked(spark, conf, "driver-planning") as count:
        yield count


@pytest.fixture
def faultless(spark: SparkSession) -> Iterator[None]:
    """The driver's Python does not fail during the test."""
    before = pruning.status(spark)["driver-planning"].last_error
    yield
    assert pruning.status(spark)["driver-planning"].last_error == before


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three files of one partition each."""
    commits = [pa.table({"id": pa.array([n, n + 10], pa.int64()), "day": [day] * 2}) for n, day in enumerate("abc")]
    return make_table(tmp_path / "t", commits, partition_by=["day"], properties={"delta.enableChangeDataFeed": "true"})


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


# ---------------------------------------------------------------- it plans


def test_replaced_table_of_equal_file_metadata_has_new_rows(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 0)  # log content is cached immediately
    live = tmp_path / "live"
    for day in (10, 50):
        new_table = reproducible_table(tmp_path / str(day), [pa.table({"id": pa.array([day, day + 1], pa.int64())})])
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(new_table, live)
        for _ in range(2):
            assert ids(load(spark, str(live)).filter("id >= 50")) == ([50, 51] if day == 50 else [])
            assert load(spark, str(live)).selectExpr("min(id)", "max(id)").collect() == [(day, day + 1)]
    assert driver() > 0


def test_driver_plans_a_scan_if_the_setting_is_on_at_that_time(
    spark: SparkSession, table: str, driver: Callable[[], int], conf: Any
) -> None:
    frame = load(spark, table)
    assert ids(frame.filter("day = 'b' and id > 5")) == [11]
    cached_scan = pruning.status(spark).last_scan
    assert cached_scan is not None and (cached_scan.files_kept, cached_scan.files_total) == (1, 3)
    assert ids(spark.sql(f"SELECT id FROM pydelta.`{table}` WHERE day = 'c'")) == [2, 12]
    assert frame.agg({"id": "max"}).collect()[0][0] == 12
    assert driver() == 3
    conf({ENABLED_CONF: "false"})
    assert ids(frame.filter("day = 'a'")) == [0, 10]
    assert driver() == 3
    spark.conf.unset(ENABLED_CONF)
    assert ids(frame.filter("day = 'a'")) == [0, 10]
    assert driver() == 4, "it is on unless a session turns it off"


@pytest.mark.usefixtures("faultless")
def test_driver_load_needs_no_worker_and_gives_an_equal_frame(
    spark: SparkSession, table: str, driver: Callable[[], int], conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads() -> list[DataFrame]:
        reader = spark.read.format("pydelta")
        return [
            load(spark, table),
            load(spark, f"file:{table}@v1"),
            spark.read.load(format="pydelta", path=table, versionAsOf=0, schema="id long"),
            reader.option("COLUMNS", "day").option("path", table).load(),
            reader.load(),
            load(spark, table, readChangeFeed="true", startingVersion="1"),
        ]

    def facts(frame: DataFrame) -> list[Any]:
        relation = frame._jdf.queryExecution().analyzed()
        options = dict(relation.options().asCaseSensitiveMap())
        session = {name: value for name, value in json.loads(options.pop("pydelta.session")).items() if name != "confs"}
        classes = [each.getClass().getSimpleName() for each in (relation, relation.table())]
        return [frame.schema, options, session, classes, relation.table().name(), relation.catalog().isEmpty()]

    conf({ENABLED_CONF: "false"})
    by_workers = loads()
    conf({ENABLED_CONF: "true"})
    with monkeypatch.context() as patched:
        patched.setattr(method_patches, "read_settings", pytest.fail)
        here = loads()
    assert [facts(frame) for frame in here] == [facts(frame) for frame in by_workers]
    assert ids(here[2]) == [0, 10]
    assert here[0].select("_metadata.row_index").count() == 6
    assert [len(frame.collect()) for frame in here] == [6, 4, 2, 6, 6, 4]
    assert driver() == 7


@pytest.mark.usefixtures("faultless")
def test_driver_opens_sql_tables_with_the_answers_of_workers(
    spark: SparkSession, table: str, tmp_path: Path, driver: Callable[[], int], conf: Any
) -> None:
    open_requests = []

    def told(body: bytes) -> bytes:
        open_requests.append(json.loads(body)["options"])
        return open_source(body)

    def answers() -> list[Any]:
        path = f"pydelta.`{table}`"
        return [
            spark.sql(f"SELECT day, id FROM {path} WHERE id > 5 ORDER BY id").collect(),
            spark.sql(f"SELECT id FROM {path} VERSION AS OF 0 ORDER BY id").collect(),
            spark.sql("SELECT max(id) FROM opened_here").collect(),
            spark.sql(f"SELECT count(*) FROM table_changes_by_path('{table}', 1)").collect(),
            spark.sql("DESCRIBE TABLE EXTENDED opened_here").filter("col_name in ('id', 'day', 'Location')").collect(),
            spark.sql("SHOW TBLPROPERTIES opened_here").collect(),
        ]

    spark.sql(f"CREATE TABLE opened_here USING pydelta LOCATION '{table}'")
    try:
        conf({ENABLED_CONF: "false"})
        by_workers = answers()
        conf({ENABLED_CONF: "true"})
        offer(spark, {PLAN: planned, OPEN: told})
        assert answers() == by_workers
    finally:
        spark.sql("DROP TABLE opened_here")
    assert len(open_requests) >= 6
    assert {options["path"].removeprefix("file:") for options in open_requests} == {table}
    assert ids(spark.table(f"pydelta.`{table}`")) == [0, 1, 2, 10, 11, 12]


@pytest.mark.usefixtures("faultless")
def test_sql_writes_into_tables_that_were_opened_here(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    spark.sql(f"INSERT INTO pydelta.`{table}` SELECT id + 100, day FROM pydelta.`{table}` WHERE day = 'a'")
    assert ids(spark.sql(f"SELECT id FROM pydelta.`{table}` WHERE day = 'a'")) == [0, 10, 100, 110]
    spark.sql(f"CREATE TABLE pydelta.`{table}2` USING pydelta AS SELECT * FROM pydelta.`{table}` WHERE id > 50")
    assert ids(spark.sql(f"SELECT id FROM pydelta.`{table}2`")) == [100, 110]


def test_relative_path_resolves_in_the_directory_of_the_workers(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(tmp_path / "t", [pa.table({"id": pa.array([1], pa.int64())})])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableNotFoundError):
        load(spark, "t")


def test_queries_of_threads_are_planned_at_the_same_time(
    spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    both = Barrier(2, timeout=120)

    def together(body: bytes) -> bytes:
        both.wait()
        return planned(body)

    offer(spark, {PLAN: together})
    frame = load(spark, table)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda day: ids(frame.filter(f"day = '{day}'")), "ab")) == [[0, 10], [1, 11]]
    assert (both.broken, driver()) == (False, 2)


def test_threads_plan_at_once(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    def query(number: int) -> list[int]:
        return ids(load(spark, table).filter(f"id = {number % 3}"))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(query, range(16))) == [[number % 3] for number in range(16)]
    assert driver() == 16


# ---------------------------------------------------------------- it does not plan: a worker does


def test_long_planning_is_waited_for(spark: SparkSession, table: str, driver: Callable[[], int], conf: Any) -> None:
    def slowly(body: bytes) -> bytes:
        time.sleep(2.3)
        return planned(body)

    conf({ANSWER_SECONDS: "2"})
    offer(spark, {PLAN: slowly})
    assert ids(load(spark, table).filter("day = 'a'")) == [0, 10]
    assert driver() == 1


def test_silent_python_is_asked_once(spark: SparkSession, table: str, driver: Callable[[], int], conf: Any) -> None:
    requests = []

    def silent(body: bytes) -> bytes:
        requests.append(body)
        time.sleep(2)
        return b""

    conf({ANSWER_SECONDS: "0.3"})
    offer(spark, {OPEN: silent, PLAN: silent}, is_silent=True)
    frame = load(spark, table)
    assert ids(frame.filter("day = 'a'")) == [0, 10]
    assert ids(frame.filter("day = 'b'")) == [1, 11]
    assert (driver(), len(requests)) == (0, 1)
    assert "did not answer within 300 ms" in str(pruning.status(spark)["driver-planning"].last_error)
    conf({ANSWER_SECONDS: "15"})
    register(spark)
    assert ids(frame.filter("day = 'c'")) == [2, 12]
    assert driver() == 0, "what was given up stays so"
    offer_driver(spark)
    assert ids(frame.filter("day = 'c'")) == [2, 12]
    assert driver() == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "abc", "NaN", ""])
def test_limit_that_is_no_number_of_seconds_is_refused(
    seconds: str, spark: SparkSession, table: str, driver: Callable[[], int], conf: Any
) -> None:
    conf({ANSWER_SECONDS: seconds})
    with pytest.raises(IllegalArgumentException, match=re.escape(ANSWER_SECONDS)):
        ids(load(spark, table).filter("day = 'a'"))
    conf({ANSWER_SECONDS: "15"})
    assert ids(load(spark, table).filter("day = 'a'")) == [0, 10]
    assert driver() == 1, "a wrong setting ends nothing"


def test_failing_driver_python_is_tried_only_three_times(
    spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    requests = []

    def failing(body: bytes) -> bytes:
        requests.append(body)
        raise OSError("no more files can be opened here")

    offer(spark, {OPEN: failing, PLAN: failing})
    frame = load(spark, table)
    for _ in range(5):
        assert ids(frame.filter("day = 'a'")) == [0, 10]
    assert (driver(), len(requests)) == (0, 3)
    assert "no more files can be opened here" in str(pruning.status(spark)["driver-planning"].last_error)


# ---------------------------------------------------------------- errors are those of workers


def of_a_missing_version(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table, versionAsOf="7")


def of_a_missing_table(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table + "x")


def of_an_unknown_option(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table, versionAsof_="7")


def of_a_missing_column(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table, columns="nope")


def of_a_filter_that_is_none(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table, filter="id >")


def of_a_filter_on_a_missing_column(spark: SparkSession, table: str) -> DataFrame:
    return load(spark, table, filter="nope = 1")


def of_another_schema(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("pydelta").schema("id string, nope int").load(table)


def of_two_paths(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("pydelta").load([table, table])


def of_no_path(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("pydelta").load()


def of_a_path_given_twice(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("pydelta").option("path", table).load(table)


def of_a_missing_version_in_sql(spark: SparkSession, table: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM pydelta.`{table}` VERSION AS OF 7")


def of_a_missing_table_in_sql(spark: SparkSession, table: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM pydelta.`{table}x`")


def of_a_missing_column_in_sql(spark: SparkSession, table: str) -> DataFrame:
    return spark.sql(f"SELECT nope FROM pydelta.`{table}`")


def of_a_log_that_is_gone(spark: SparkSession, table: str) -> DataFrame:
    frame = load(spark, table)
    shutil.rmtree(Path(table) / "_delta_log")
    return frame


FAILURES = {name: make for name, make in list(globals().items()) if name.startswith("of_")}


@pytest.mark.parametrize("make", sampled(FAILURES, 7))
def test_failure_in_the_driver_has_the_class_and_text_of_workers(
    make: str, spark: SparkSession, tmp_path: Path, driver: Callable[[], int], conf: Any
) -> None:
    def failure() -> tuple[type, str]:
        path = make_table(tmp_path / "t", [pa.table({"id": pa.array([1], pa.int64())})])
        try:
            FAILURES[make](spark, path).filter("id = 1").collect()
        except Exception as error:
            return type(error), re.sub(r"#\d+", "#", str(error))  # each plan numbers its columns again
        finally:
            shutil.rmtree(path)
        raise AssertionError("nothing failed")

    here = failure()
    conf({ENABLED_CONF: "false"})
    assert failure() == here


@pytest.mark.skipif(not takes_all(), reason="workers die of such errors, and it takes seconds to start others: make nightly")
def test_errors_of_users_do_not_end_the_asking(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    for _ in range(3):
        with pytest.raises(ExpressionError):
            load(spark, table, filter="id >").collect()
    assert ids(load(spark, table).filter("day = 'a'")) == [0, 10]
    assert driver() == 1


# ---------------------------------------------------------------- which version


def test_frame_pins_its_version_unless_it_follows_the_latest(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int]
) -> None:
    root = tmp_path / "t"
    path = make_table(root, [pa.table({"id": pa.array([1], pa.int64())})])
    pinned, follower = load(spark, path), load(spark, path, followLatest="true")
    assert (ids(pinned.filter("id > 0")), ids(follower.filter("id > 0"))) == ([1], [1])
    append(root, pa.table({"id": pa.array([2], pa.int64())}))
    assert (ids(pinned.filter("id > 0")), ids(follower.filter("id > 0"))) == ([1], [1, 2])
    assert ids(load(spark, path).filter("id > 0")) == [1, 2]
    assert ids(load(spark, path, versionAsOf="0").filter("id > 0")) == [1]
    assert driver() == 6


def test_table_made_anew_at_the_same_place_and_version_is_seen(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int]
) -> None:
    for number in (1, 2, 3):
        path = make_table(tmp_path / "t", [pa.table({"id": pa.array([number], pa.int64())})])
        assert ids(load(spark, path).filter("id > 0")) == [number]
        assert ids(load(spark, path).filter("id > 0")) == [number]
        shutil.rmtree(path)
    assert driver() == 6


def test_new_session_of_the_same_application_is_answered_too(
    spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    other = spark.newSession()
    register(other)
    before = {name: other.conf.get(name, None) for name in (ENABLED_CONF,)}
    try:
        other.conf.set(ENABLED_CONF, "true")
        register(other)
        assert ids(load(other, table).filter("day = 'a'")) == [0, 10]
        assert (pruning.status(other)["driver-planning"].used, driver()) == (1, 0)
    finally:
        restore(other, before)
