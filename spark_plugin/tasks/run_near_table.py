"""Runs steps of an operation that look at a table or change it, and that are no Spark jobs: they run where the table is.

    snapshot = at_table(spark, partial(Snapshot.load, store))

In a classic session that is this process, on the driver. A Spark Connect client may have no access to the table's files or to the
server's machine. There a step runs as a task of one row, which has the access that tasks have. The step's input travels pickled,
like all code that a client runs in tasks; its result travels as data (task_answers.py).
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from delta_py.errors import CommitOutcomeUnknownError
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.settings import conf
from spark_plugin.tasks.task_answers import Failure, from_text, to_text
from spark_plugin.tasks.task_progress import watched

A = TypeVar("A")
T = TypeVar("T")

# How often `abandon` deletes files, and how long it waits after each time; and how often if it cannot see whether tasks still
# run.
_ABANDON_ROUNDS, _ABANDON_WAIT_SECONDS = 8, 0.5
_BLIND_ABANDON_ROUNDS = 3

_log = logging.getLogger("pydelta")

_VALUE = "value"
# A schema as text would need a call to the server.
_ITEM_SCHEMA = StructType([StructField(_VALUE, BinaryType())])
_ANSWER_SCHEMA = StructType([StructField(_VALUE, StringType())])


def at_table(spark: Any, step: Callable[[], T], *, once: bool = False) -> T:
    """Return the result of the step; its errors are raised here unchanged. Over Spark Connect an error that is neither of
    delta_py nor an OSError becomes a RuntimeError.

    once: the step must not run twice, such as a commit. Spark repeats a task whose executor was lost: then the step raises
    CommitOutcomeUnknownError.
    """
    if adapter_of(spark).is_driver:
        return step()
    # Spark Connect: a job with one item runs the step in one task. The item itself has no meaning.
    (outcome,) = each_in_task(spark, [None], lambda _: _outcome(step, once))
    if isinstance(outcome, Failure):
        raise outcome.error
    return outcome


def each_in_task(spark: Any, items: Sequence[A], work: Callable[[A], T]) -> list[T]:
    """Return the result of `work` for each item, in order, computed in tasks. It is for Spark Connect, which has no jobs except
    those of DataFrames: the items are the rows of a DataFrame. Results are of the classes that task_answers.py lists."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for item in batch.column(0).to_pylist():
                yield pa.record_batch({_VALUE: pa.array([to_text(work(pickle.loads(item)))], pa.string())})

    frame = spark.createDataFrame([(bytearray(pickle.dumps(item)),) for item in items], _ITEM_SCHEMA)
    return [from_text(row[_VALUE]) for row in frame.mapInArrow(run, _ANSWER_SCHEMA).collect()]


def in_tasks(spark: Any, items: Sequence[A], work: Callable[[A], T]) -> list[T]:
    """Return the result of `work` for each item, in order. Each item has its own task; over Spark Connect the server divides the
    items among tasks (each_in_task)."""
    if not items:
        return []
    with watched(spark, len(items)):
        if not adapter_of(spark).is_driver:
            return each_in_task(spark, items, work)
        results: list[T] = spark.sparkContext.parallelize(items, len(items)).map(work).collect()
        return results


def tasks_worth_while(spark: Any) -> int:
    """Return how many tasks a job should have at least: Spark's default number. A Spark Connect server does not tell this
    number; then settings decide, or it is 8."""
    parallelism = adapter_of(spark).default_parallelism()
    if parallelism is not None:
        return parallelism
    return int(conf(spark, "spark.sql.leafNodeDefaultParallelism") or conf(spark, "spark.default.parallelism") or 8)


def _outcome(step: Callable[[], T], once: bool) -> T | Failure:
    """Run a step in a task. An error is returned as data: Spark would repeat a task that raises it."""
    try:
        if once:
            _check_first_run()
        return step()
    except Exception as error:  # raised again in the process that called
        return Failure(error)


def _check_first_run() -> None:
    """Raise CommitOutcomeUnknownError if Spark repeats the task: its first run may have committed before its executor was
    lost."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        raise CommitOutcomeUnknownError(
            "Spark lost the task that was to commit, and started it again: whether the first had committed is not known. Nothing "
            "more was done, and the data files are kept. Look into the table's history before you run the operation again."
        )


# ---------------------------------------------------------------- failures


def abandon(spark: Any, abort: Callable[[], Any]) -> None:
    """Delete the files that the tasks of an operation wrote, by calling `abort`. Call it again while tasks are running, because
    Spark ends those of a failed job a little later. Spark Connect does not show whether tasks are running."""
    adapter = adapter_of(spark)
    for _ in range(_ABANDON_ROUNDS if adapter.shows_tasks else _BLIND_ABANDON_ROUNDS):
        may_still_write = adapter.may_run_tasks()  # asked before the deletion: such a task may write after it
        clean_up(spark, abort)
        if not may_still_write:
            return
        time.sleep(_ABANDON_WAIT_SECONDS)


def clean_up(spark: Any, step: Callable[[], Any]) -> None:
    """Run a step that deletes files, where the table is. Over Spark Connect it may fail, because the session has failed. This is
    only logged, because it must not hide the error for which the files are deleted."""
    try:
        at_table(spark, step)
    except PySparkException as error:
        _log.warning("could not delete files that nobody needs any more (VACUUM will remove them): %s", error)
