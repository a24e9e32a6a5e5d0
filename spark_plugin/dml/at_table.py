"""Steps of an operation that look at a table or change it, and are not of Spark's jobs: they run where the table is.

    snapshot = at_table(spark, lambda: Snapshot.load(open_store(path)))

In a classic session that is here, on the driver. The client of Spark Connect may see neither the table's files nor the
server's machine, so there a step runs as a task of one row, which sees what tasks see; what it uses and what it gives travel
pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.types import BinaryType, StructField, StructType

from delta_py.errors import CommitOutcomeUnknownError
from spark_plugin.spark_internals import is_connect

A = TypeVar("A")
T = TypeVar("T")

_VALUE = "value"
# A schema as text would be a question to the server.
_SCHEMA = StructType([StructField(_VALUE, BinaryType())])


def at_table(spark: Any, step: Callable[[], T], *, once: bool = False) -> T:
    """What the step returns; what it raises is raised here as it is.

    once: the step must not be run a second time, such as a commit. Spark repeats a task whose executor was lost: it raises
    CommitOutcomeUnknownError then.
    """
    if not is_connect(spark):
        return step()
    (outcome,) = each_in_task(spark, [None], lambda _: _outcome(step, once))
    done, value = outcome
    if not done:
        raise value
    return value  # type: ignore[no-any-return]


def each_in_task(spark: Any, items: Sequence[A], work: Callable[[A], T]) -> list[T]:
    """What `work` makes of each of the items, in tasks: over Spark Connect, which has no other jobs than those of DataFrames."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                result = cloudpickle.dumps(work(pickle.loads(text)))  # type: ignore[no-untyped-call]
                yield pa.record_batch({_VALUE: pa.array([result], pa.binary())})

    frame = spark.createDataFrame([(bytearray(pickle.dumps(item)),) for item in items], _SCHEMA)
    return [pickle.loads(row[_VALUE]) for row in frame.mapInArrow(run, _SCHEMA).collect()]


def _outcome(step: Callable[[], Any], once: bool) -> tuple[bool, Any]:
    try:
        if once:
            _check_first_run()
        return True, step()
    except Exception as error:  # raised again where it was asked for
        return False, error


def _check_first_run() -> None:
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        raise CommitOutcomeUnknownError(
            "Spark lost the task that was to commit, and began it anew: whether the first had committed is not known. Nothing "
            "more was done, and the data files are kept. Look into the table's history before you run the operation again."
        )
