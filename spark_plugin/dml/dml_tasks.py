"""The functions of the tasks of both jobs. Each new worker process imports this module and its imports, so it has only task
code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext

from delta_py.write.rewrite import RemovedRows, Rewrite, TouchedFile, remove_rows
from delta_py.write.task_changes import ChangeState, write_changes
from spark_plugin.tasks.task_answers import to_text
from spark_plugin.tasks.tcp_nodelay import answer_promptly

RESULT = "result"


def row_writer(state: ChangeState) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow that writes the changed rows of a task. A task with rows returns one row RESULT."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer_promptly()
        changes = write_changes(state, batches, task=task_number())
        if changes.touched or changes.written.adds:
            yield pa.record_batch({RESULT: pa.array([to_text(changes)], pa.string())})

    return run


def file_rewriter(rewrite: Rewrite) -> Callable[[Sequence[TouchedFile]], RemovedRows]:
    """Return a function that deletes rows from a task's files."""

    def run(files: Sequence[TouchedFile]) -> RemovedRows:
        return remove_rows(files, rewrite, task=task_number())

    return run


def task_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
