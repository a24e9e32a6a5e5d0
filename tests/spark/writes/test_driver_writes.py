"""Batch writes that the driver's own Python plans and commits: as a worker does, once, and by a worker if Python is not used."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable, write_delta
from delta_py.errors import CommitOutcomeUnknownError, ConcurrentAppendException, DeltaError, SchemaMismatchError
from spark_plugin import pruning
from spark_plugin.driver_channel.channel import COMMIT, PLAN, WRITE
from spark_plugin.driver_planning.planner import planned
from spark_plugin.driver_planning.writes import committed_write, planned_write
from tests.support.spark.driver_offers import asked, offer, server_of
from tests.support.spark.older_settings import PLANNING_CONF as ENABLED_CONF
from tests.support.tables.small_table import make_table

ANSWER_SECONDS = "spark.pydelta.driverPlanning.answerSeconds"


@pytest.fixture
def driver(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Switches it on; returns the number of writes that the driver's Python has planned since."""
    with asked(spark, conf, "driver-writes") as count:
        yield count


@pytest.fixture
def table(tmp_path: Path) -> str:
    return make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])


def append(spark: SparkSession, path: str, first: int = 10, count: int = 2) -> None:
    spark.range(first, first + count, 1, 1).write.format("pydelta").mode("append").save(path)


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow()["id"].to_pylist())


def version(path: str) -> int:
    return DeltaTable(path).version


def files(path: str) -> set[str]:
    return {file.name for file in Path(path).rglob("*.parquet")}


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_writes_are_the_same_by_either_road(
    enabled: str, spark: SparkSession, tmp_path: Path, driver: Callable[[], int], conf: Any
) -> None:
    conf({ENABLED_CONF: enabled})
    path = str(tmp_path / "t")
    rows = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 part")
    rows.write.format("pydelta").partitionBy("part").save(path)
    rows.filter("part = 1").withColumn("id", F.expr("id + 100")).write.format("pydelta").mode("overwrite").option(
        "replaceWhere", "part = 1"
    ).save(path)
    spark.sql(f"INSERT INTO pydelta.`{path}` VALUES (1000, 0)")
    rows.limit(3).write.format("pydelta").mode("append").option("txnAppId", "app").option("txnVersion", 1).save(path)
    rows.limit(3).write.format("pydelta").mode("append").option("txnAppId", "app").option("txnVersion", 1).save(path)
    rows.write.format("pydelta").mode("ignore").save(path)
    assert version(path) == 3
    assert ids(path) == sorted([*range(0, 20, 2), *range(101, 120, 2), 1000, *[row.id for row in rows.limit(3).collect()]])
    assert driver() == (6 if enabled == "true" else 0)
    assert [commit["operation"] for commit in DeltaTable(path).history().to_pylist()] == ["WRITE"] * 4


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_errors_are_the_same_by_either_road(
    enabled: str, spark: SparkSession, table: str, driver: Callable[[], int], conf: Any
) -> None:
    conf({ENABLED_CONF: enabled})
    before = files(table)
    with pytest.raises(SchemaMismatchError) as planning:
        spark.range(3).selectExpr("id", "'x' other").write.format("pydelta").mode("append").save(table)
    assert isinstance(planning.value, PySparkException)
    assert planning.value.getCondition() == "DELTA_METADATA_MISMATCH"
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        spark.range(0, 4, 1, 2).selectExpr("id div (id - 3) id").write.format("pydelta").mode("append").save(table)
    assert (version(table), files(table)) == (0, before), "what tasks wrote is deleted"


def test_commit_that_loses_a_race_raises_what_a_worker_raises(
    spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    def racing(body: bytes) -> bytes:
        if body[:1] == b"\0":  # and not the abort that follows
            write_delta(table, pa.table({"id": [7]}), mode="append")
        return committed_write(body)

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: racing})
    with pytest.raises(ConcurrentAppendException) as raised:
        spark.range(1).write.format("pydelta").mode("overwrite").option("replaceWhere", "id >= 0").option(
            "isolationLevel", "Serializable"
        ).save(table)
    assert isinstance(raised.value, PySparkException)
    assert ids(table) == [1, 2, 7]


def test_commit_whose_answer_is_lost_is_not_made_again(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    requests = []

    def lost(body: bytes) -> bytes:
        requests.append(body[:1])
        if body[:1] == b"\0":
            assert committed_write(body) == b""
        raise ConnectionError("the answer is lost")

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: lost})
    with pytest.raises(CommitOutcomeUnknownError, match="Look at the table's history") as raised:
        append(spark, table)
    assert isinstance(raised.value, PySparkException)
    assert requests == [b"\0", b"\1"], "Spark aborts what it does not know, which deletes nothing"
    assert ids(table) == [1, 2, 10, 11]
    assert version(table) == 1


def test_commit_whose_connection_breaks_is_not_made_again(
    spark: SparkSession, table: str, driver: Callable[[], int]
) -> None:
    """A worker does not repeat a commit that was sent."""

    def cut(body: bytes) -> bytes:
        answer = committed_write(body)
        if body[:1] == b"\0":
            for connection in list(server._pulse._due):  # those with running work
                connection.socket.shutdown(socket.SHUT_RDWR)
        return answer

    server = server_of(spark)
    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: cut})
    with pytest.raises(CommitOutcomeUnknownError):
        append(spark, table)
    assert "the connection to the driver's Python broke" in str(pruning.status(spark)["driver-planning"].last_error)
    assert (ids(table), version(table)) == ([1, 2, 10, 11], 1)
    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: committed_write})
    append(spark, table, 20)
    assert (version(table), driver()) == (2, 2), "by another connection"


def test_sink_of_a_stream_is_no_batch_write(
    spark: SparkSession, table: str, tmp_path: Path, driver: Callable[[], int]
) -> None:
    target = str(tmp_path / "copy")
    stream = spark.readStream.format("pydelta").load(table).writeStream.format("pydelta").outputMode("append")
    query = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(target)
    query.awaitTermination(60)
    assert query.exception() is None
    assert (ids(target), driver()) == ([1, 2], 0)


def test_worker_commits_what_it_has_planned(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    def failing(body: bytes) -> bytes:
        raise OSError("no more files can be opened here")

    def never(body: bytes) -> bytes:
        pytest.fail("the driver's Python was asked to commit what it has not planned")

    offer(spark, {PLAN: planned, WRITE: failing, COMMIT: never})
    append(spark, table)
    assert (ids(table), driver()) == ([1, 2, 10, 11], 0)
    assert "no more files can be opened here" in str(pruning.status(spark)["driver-planning"].last_error)


def test_worker_plans_where_python_is_silent(spark: SparkSession, table: str, driver: Callable[[], int], conf: Any) -> None:
    conf({ANSWER_SECONDS: "0.3"})

    def silent(body: bytes) -> bytes:
        time.sleep(2)
        return b""

    offer(spark, {PLAN: silent, WRITE: silent, COMMIT: silent}, is_silent=True)
    append(spark, table)
    assert (ids(table), driver()) == ([1, 2, 10, 11], 0)


def test_commit_is_waited_for_however_long_it_takes(
    spark: SparkSession, table: str, driver: Callable[[], int], conf: Any
) -> None:
    conf({ANSWER_SECONDS: "2"})

    def slow(body: bytes) -> bytes:
        time.sleep(2.3)
        return committed_write(body)

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: slow})
    append(spark, table)
    assert (ids(table), driver(), version(table)) == ([1, 2, 10, 11], 1, 1)


def test_worker_commits_what_python_has_no_thread_for(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int]
) -> None:
    paths = [make_table(tmp_path / f"t{n}", [pa.table({"id": [0]})]) for n in range(24)]
    with ThreadPoolExecutor(24) as pool:
        list(pool.map(lambda path: append(spark, path), paths))
    assert [(ids(path), version(path)) for path in paths] == [([0, 10, 11], 1)] * 24


def test_writers_of_one_table_race_as_ever(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: append(spark, table, 100 + n, 1), range(12)))
    assert ids(table) == [1, 2, *range(100, 112)]
    assert version(table) == 12
    assert driver() > 0


def test_write_from_a_function_of_a_stream(spark: SparkSession, table: str, tmp_path: Path, driver: Callable[[], int]) -> None:
    target = str(tmp_path / "copy")

    def save(batch: Any, number: int) -> None:
        batch.write.format("pydelta").mode("append").save(target)

    stream = spark.readStream.format("pydelta").load(table).writeStream.foreachBatch(save)
    query = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert query.exception() is None
    assert ids(target) == [1, 2]
    assert driver() == 1


def test_other_sessions_write_too(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    from spark_plugin import register

    other = spark.newSession()
    register(other)
    append(other, table)
    assert ids(table) == [1, 2, 10, 11]
    assert pruning.status(other)["driver-writes"].used == 1


def test_write_is_committed_where_it_was_planned(
    spark: SparkSession, tmp_path: Path, driver: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread lets the process change its directory at the same time. The path is relative to the directory in which the
    JVM started."""
    start = spark._jvm.java.lang.System.getProperty("user.dir")
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def moved(body: bytes) -> bytes:
        monkeypatch.chdir(elsewhere)
        return committed_write(body)

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: moved})
    monkeypatch.chdir(start)
    append(spark, os.path.relpath(path, start))
    assert (ids(path), driver(), os.getcwd()) == ([1, 2, 10, 11], 1, str(elsewhere))
    monkeypatch.chdir(start)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        spark.range(0, 4, 1, 2).selectExpr("id div (id - 3) id").write.format("pydelta").mode("append").save(
            os.path.relpath(path, start)
        )
    assert os.getcwd() == str(elsewhere)
    assert files(path) == {*DeltaTable(path).files()["path"].to_pylist()}, "what tasks wrote is deleted"


def test_large_commit_is_committed_here_too(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    sizes = []

    def commit(body: bytes) -> bytes:
        sizes.append(len(body))
        return committed_write(body)

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: commit})
    name = "n" * 1_100_000
    spark.range(1).selectExpr("id", f"id `{name}`").write.format("pydelta").mode("append").option("mergeSchema", True).save(table)
    assert (driver(), version(table), DeltaTable(table).to_arrow().num_rows) == (1, 1, 3)
    assert len(sizes) == 1 and sizes[0] > 1_100_000


def test_interrupted_commit_is_waited_for(
    spark: SparkSession, table: str, tmp_path: Path, driver: Callable[[], int]
) -> None:
    """Streams stop like this: by an interrupt of the thread that writes."""
    begun, interrupted = Event(), Event()

    def slow(body: bytes) -> bytes:
        begun.set()
        assert interrupted.wait(30)
        return committed_write(body)

    def save(batch: Any, number: int) -> None:
        try:
            batch.write.format("pydelta").mode("append").save(table)
        except Exception as error:
            outcomes.append(type(error))
            raise
        outcomes.append(None)

    outcomes: list[type[Exception] | None] = []
    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: slow})
    rows = spark.readStream.format("pydelta").load(make_table(tmp_path / "s", [pa.table({"id": [7]})]))
    query = rows.writeStream.foreachBatch(save).option("checkpointLocation", str(tmp_path / "c")).start()
    assert begun.wait(60)
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(query.stop)
        time.sleep(0.5)
        interrupted.set()
        stopped.result(60)
    assert (version(table), outcomes) == (1, [None])


def test_error_that_is_none_of_deltas(spark: SparkSession, table: str, driver: Callable[[], int]) -> None:
    def failing(body: bytes) -> bytes:
        return committed_write(body[:1] + b"\0\0\0\1x") if body[:1] == b"\0" else committed_write(body)

    offer(spark, {PLAN: planned, WRITE: planned_write, COMMIT: failing})
    with pytest.raises(PySparkException, match="PYTHON_DATA_SOURCE_ERROR") as raised:
        append(spark, table)
    assert not isinstance(raised.value, DeltaError)
    assert version(table) == 0
