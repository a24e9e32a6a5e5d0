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
"""The column of the rows that tasks of the first job return: a TaskChanges as text."""


def row_writer(state: ChangeState) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow that writes the changed rows of a task. A task that changed or wrote rows returns one row
    with the column RESULT."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer_promptly()  # otherwise the task would wait 40 ms for its first rows
        changes = write_changes(state, batches, task=task_number())
        if changes.touched or changes.written.adds:
            yield pa.record_batch({RESULT: pa.array([to_text(changes)], pa.string())})

    return run


def file_rewriter(rewrite: Rewrite) -> Callable[[Sequence[TouchedFile]], RemovedRows]:
    """Return the function of a task of the second job: it deletes rows from the task's files, and returns what it removed and
    wrote."""

    def run(files: Sequence[TouchedFile]) -> RemovedRows:
        return remove_rows(files, rewrite, task=task_number())

    return run


def task_number() -> int:
    """Return the number of this task in its job, for the names of its files; 0 outside of a task."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
