"""The tasks of Spark jobs, as the progress of a command counts them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.task_counts import QueryCounts


def counted_at_the_end(counts: Any, at_least: int) -> int:
    """The number of tasks, when all of them are done: Spark's listeners learn a moment later that a job has ended."""
    end = time.monotonic() + 10
    while (done_and_known := counts()) != (max(at_least, done_and_known[0]),) * 2:
        assert time.monotonic() < end, done_and_known
        time.sleep(0.02)
    return int(done_and_known[0])


@pytest.fixture
def group(spark: SparkSession) -> Iterator[str]:
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "of the user")
    yield "of the user"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def run_tasks(spark: SparkSession, count: int) -> None:
    spark.sparkContext.parallelize(range(count), count).map(lambda number: number).collect()


def test_tasks_of_a_block_are_counted(spark: SparkSession) -> None:
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # another test may have set one
    run_tasks(spark, 3)
    with adapter_of(spark).count_tasks() as counts:
        assert counts() == (0, 0)
        run_tasks(spark, 5)
        assert counted_at_the_end(counts, 5) == 5
        groups = spark.sparkContext.parallelize(range(8), 4).map(lambda number: (number % 2, number)).groupByKey(3)
        groups.collect()
        assert counted_at_the_end(counts, 12) == 5 + 4 + 3
        groups.collect()  # its first stage is skipped
        assert counted_at_the_end(counts, 15) == 5 + 4 + 3 + 3
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_group_of_the_user_remains(spark: SparkSession, group: str) -> None:
    run_tasks(spark, 2)
    with adapter_of(spark).count_tasks() as counts:
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == group
        run_tasks(spark, 4)
        assert counted_at_the_end(counts, 4) == 4
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == group


def test_messages_of_a_server_are_summed_over_queries() -> None:
    counts = QueryCounts()

    def stages(*numbers: tuple[int, int]) -> list[SimpleNamespace]:
        return [SimpleNamespace(num_completed_tasks=done, num_tasks=known) for done, known in numbers]

    counts.take(None, 0, "a", done=False)
    assert counts.tasks() == (0, 0)
    counts.take(stages((1, 4)), 1, "a", done=False)
    counts.take(stages((2, 2), (0, 3)), 1, "b", done=False)
    assert counts.tasks() == (3, 9)
    counts.take(stages((1, 4)), 0, "a", done=True)
    assert counts.tasks() == (6, 9)
    counts.take(stages((2, 2), (3, 3)), 0, "b", done=True)
    assert counts.tasks() == (9, 9)
