"""Streams whose source runs in the driver's own Python: with the same results as Spark's process of a stream, and in that process
if the driver does not answer.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import pruning
from spark_plugin.driver_channel.channel import PLAN, STREAM
from spark_plugin.driver_planning import offer as offer_driver
from spark_plugin.driver_planning.planner import planned
from spark_plugin.driver_planning.stream_requests import Streams
from tests.support.runs.sampling import sampled
from tests.support.spark.driver_offers import offer
from tests.support.spark.older_settings import PLANNING_CONF as ENABLED_CONF
from tests.support.tables.streamed_tables import daily_table, rows

CALLS = {
    "initialOffset": 2,
    "latestOffset": 4,
    "partitions": 3,
    "commit": 2,
    "prepareForTriggerAvailableNow": 1,
    "getDefaultReadLimit": 1,
    "reportLatestOffset": 4,
}
"""Of a stream in three batches, how often each is called; a batch is committed by the next one."""


class Driver:
    """The driver's own Python as Java calls it for streams. fail: raises if the driver must not answer."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.streams = spark, Streams()
        self.calls, self.answered = list[str](), list[str]()
        self.fail: Callable[[str], None] = lambda call: None
        offer(spark, {PLAN: planned, STREAM: self.answer})

    def answer(self, body: bytes) -> bytes:
        call = json.loads(body[4 : 4 + int.from_bytes(body[:4], "big")])["call"]
        self.calls.append(call)
        self.fail(call)
        answer = self.streams.answer(body)
        self.answered.append(call)
        return answer

    def fail_at(self, call: str, number: int) -> None:
        def fail(called: str) -> None:
            if called == call and self.calls.count(call) == number:
                raise OSError("no more files can be opened here")

        self.fail = fail

    @property
    def error(self) -> str | None:
        return pruning.status(self.spark)["driver-planning"].last_error


@pytest.fixture
def driver(spark: SparkSession, conf: Any) -> Iterator[Driver]:
    conf({ENABLED_CONF: "true"})
    yield Driver(spark)
    conf({ENABLED_CONF: "true"})
    assert offer_driver(spark), "in the place of what a test has offered"


class Copy:
    """Copies a stream of a table of three files, one per batch, into another table."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.table = daily_table(root / "t")

    def run(self, name: str = "copy") -> list[Any]:
        """The offsets of the batches; the row ids of each are those that the target's versions added."""
        frame = self.spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1).load(self.table)
        writer = frame.writeStream.format("pydelta").option("checkpointLocation", str(self.root / f"{name}-checkpoint"))
        query = writer.trigger(availableNow=True).start(str(self.root / name))
        query.awaitTermination()
        return [json.loads(p.json)["sources"][0]["endOffset"] for p in query.recentProgress if p.numInputRows]

    def batches(self, name: str = "copy") -> list[list[int]]:
        target = str(self.root / name)
        ids = [set(PlainTable(target, version=version).to_arrow(["id"])["id"].to_pylist()) for version in range(3)]
        return [sorted(after - before) for before, after in zip([set[int](), *ids], ids, strict=False)]


@pytest.fixture
def copy(spark: SparkSession, tmp_path: Path) -> Copy:
    return Copy(spark, tmp_path)


def test_stream_is_answered_here_as_by_its_process(copy: Copy, driver: Driver, conf: Any) -> None:
    before = pruning.status(copy.spark)["driver-planning"].used
    here = copy.run()
    assert {call: driver.calls.count(call) for call in CALLS} == CALLS
    assert (driver.calls[0], driver.calls[-1], set(driver.calls) - set(CALLS)) == ("open", "close", {"open", "close"})
    planned = pruning.status(copy.spark)["driver-planning"].used
    assert planned == before + 4, "three batches, and the function that their tasks run"
    conf({ENABLED_CONF: "false"})
    assert copy.run("by_process") == here
    assert copy.batches() == copy.batches("by_process") == [[1, 2], [3], [4]]
    assert driver.calls.count("open") == 1


FAULTS = [(call, number) for call, often in {"open": 1, **CALLS}.items() for number in range(1, often + 1)]


@pytest.mark.parametrize(("call", "number"), sampled(FAULTS, 6))
def test_process_goes_on_at_whatever_call_the_driver_fails(call: str, number: int, copy: Copy, driver: Driver) -> None:
    driver.fail_at(call, number)
    copy.run()
    assert copy.batches() == [[1, 2], [3], [4]]
    assert driver.calls[-2:] == [call, "close"], "nothing is asked here any more"
    assert "no more files can be opened here" in str(driver.error)


def test_stream_of_a_driver_that_is_silent_goes_on_in_a_process(copy: Copy, driver: Driver, conf: Any) -> None:
    def silent(body: bytes) -> bytes:
        if b'"partitions"' in body:
            time.sleep(3)
        return driver.answer(body)

    conf({"spark.pydelta.driverPlanning.answerSeconds": "0.5"})
    offer(copy.spark, {PLAN: planned, STREAM: silent}, is_silent=True)
    copy.run()
    assert copy.batches() == [[1, 2], [3], [4]]
    assert "did not answer within 500 ms" in str(driver.error)


def test_trigger_reads_all_rows_once_if_a_process_takes_over(copy: Copy, driver: Driver) -> None:
    """Or later: the process checks again how far the table has grown. Nothing is read twice or omitted."""

    def fail(call: str) -> None:
        if call == "latestOffset" and driver.calls.count(call) == 2:
            write_delta(copy.table, rows(5), mode="append")
            raise OSError("no more files can be opened here")

    driver.fail = fail
    copy.run()
    assert sorted(PlainTable(str(copy.root / "copy")).to_arrow(["id"])["id"].to_pylist()) == [1, 2, 3, 4, 5]


def change_of_rows(table: str) -> None:
    write_delta(table, rows(7), mode="overwrite")


def log_that_is_gone(table: str) -> None:
    shutil.rmtree(Path(table) / "_delta_log")


def other_column(table: str) -> None:
    write_delta(table, rows(7).append_column("more", [[1]]), mode="append", merge_schema=True)


@pytest.mark.parametrize("harm", [change_of_rows, log_that_is_gone, other_column])
def test_driver_stream_failure_has_class_and_text_of_a_process(
    harm: Callable[[str], None], copy: Copy, driver: Driver, conf: Any
) -> None:
    def failure() -> tuple[type, str]:
        copy.run()
        harm(copy.table)
        try:
            copy.run()
        except PySparkException as error:
            return type(error), re.sub(r"[0-9a-f-]{36}|file \S+", "#", str(error))
        finally:
            for name in ("t", "copy", "copy-checkpoint"):
                shutil.rmtree(copy.root / name)
        raise AssertionError("nothing failed")

    before = driver.error
    here = failure()
    assert "open" in driver.calls and driver.error == before, "what a process finds wrong too is no error of the driver's"
    daily_table(Path(copy.table))
    conf({ENABLED_CONF: "false"})
    assert failure() == here


def test_streams_are_answered_at_once(copy: Copy, driver: Driver) -> None:
    both = threading.Barrier(2, timeout=120)

    def fail(call: str) -> None:
        if call == "latestOffset" and driver.calls.count(call) <= 2:
            both.wait()

    driver.fail, before = fail, driver.error
    threads = [threading.Thread(target=copy.run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert copy.batches("one") == copy.batches("two") == [[1, 2], [3], [4]]
    assert (both.broken, driver.error) == (False, before)


def test_query_stopped_during_open_leaves_no_stream(copy: Copy, driver: Driver) -> None:
    opening, stopped = threading.Event(), threading.Event()

    def fail(call: str) -> None:
        if call == "open":
            opening.set()
            assert stopped.wait(20)

    driver.fail = fail
    frame = copy.spark.readStream.format("pydelta").load(copy.table)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(copy.root / "checkpoint")).start()
    assert opening.wait(20)
    query.stop()
    assert query.exception() is None
    assert wait_until(lambda: "close" in driver.calls)
    stopped.set()
    assert wait_until(lambda: driver.answered.count("open") == 1)
    assert len(driver.streams) == 0


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_query_that_is_stopped_tells_the_driver(copy: Copy, driver: Driver) -> None:
    frame = copy.spark.readStream.format("pydelta").load(copy.table)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(copy.root / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert driver.calls[-1] == "close"
