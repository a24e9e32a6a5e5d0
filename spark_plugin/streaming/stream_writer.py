"""Streaming writes: `df.writeStream.format("pydelta")`, each batch one commit.

For each batch Spark makes a new writer on the driver, sends it to the tasks, and commits with another writer in another
process. So the plan of the first writer comes back in the tasks' messages, and the writer that commits plans nothing.

    DeltaStreamWriter.open (driver: plan_write) -> write (tasks: write_files) -> commit (driver, another process: commit_write)

Tasks do not unpickle the plan, so that they need not import the modules that plan and commit.
The commit records (query id, batch id) as a transaction: a batch that runs again after a failure changes nothing.
Protocol: Transaction Identifiers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from delta_py.storage import publication
from delta_py.types.schema import StructType
from delta_py.write.data_files import WrittenFiles, write_files
from spark_plugin.tasks.pickled_value import PickledValue
from spark_plugin.tasks.tcp_nodelay import PromptTask

if TYPE_CHECKING:
    from delta_py.row_changes.write_plans import WritePlan
    from spark_plugin.options.write_options import WriteOptions

# The local property in which Spark passes the query's id to every task of a stream.
_QUERY_ID = "sql.streaming.queryId"
# The module of Spark that runs in a process which commits.
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"


@dataclass(frozen=True)
class BatchFiles(WriterCommitMessage):
    """The files that one task wrote. plan: of the batch; the same in all its messages. query_id: of the stream, from Spark."""

    plan: PickledValue[WritePlan]
    query_id: str
    written: WrittenFiles


class DeltaStreamWriter(PromptTask, DataSourceStreamArrowWriter):
    """The writer of one batch of a stream. plan: what the batch writes and commits; None in the process that commits, which gets
    the plan with the tasks' messages."""

    def __init__(self, options: WriteOptions, plan: WritePlan | None) -> None:
        self._options = PickledValue.of(options)
        self._plan = None if plan is None else PickledValue.of(plan)
        self._state = None if plan is None else plan.state

    @classmethod
    def open(cls, options: WriteOptions, schema: StructType) -> Self:
        """Make the writer of a batch. schema: of the stream. Raises, before any task runs, the errors that make the write
        impossible."""
        if _COMMIT_WORKER in sys.modules:  # this process commits: the plan comes with the tasks' messages
            return cls(options, None)
        from delta_py.row_changes.write import plan_write
        from delta_py.row_changes.write_plans import NothingToDo

        store, request = options.open_target()
        plan = plan_write(store, schema, replace(request, merge_casts=True))
        assert not isinstance(plan, NothingToDo), "appends and overwrites without a transaction always have something to do"
        return cls(options, plan)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert self._plan is not None and self._state is not None and context is not None, (
            "tasks write with the plan of their batch"
        )
        query_id = context.getLocalProperty(_QUERY_ID)
        assert query_id is not None, "Spark tells every task of a stream its query id"
        return BatchFiles(self._plan, query_id, write_files(self._state, iterator, task=context.partitionId()))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        from delta_py.definition.request import StreamBatch
        from delta_py.row_changes.write import commit_write

        files = _files(messages)  # all have the same plan and query id, so the first stands for all
        assert files, "Spark runs a task even for a batch without rows"
        mode = "Complete" if self._options.open().mode == "overwrite" else "Append"
        plan, batch = files[0].plan.open(), StreamBatch(files[0].query_id, batchId, mode)
        commit_write(plan.state.store, plan, [part.written for part in files], batch=batch)
        publication.finish()  # Spark may end this process at any time

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete the files of a batch whose tasks failed. Spark also aborts a batch if `commit` raised or its process died. Then
        all tasks have returned their message, and the commit may exist, so nothing is deleted here.

        A task that fails deletes its own files. The plan identifies the files of killed tasks. The plan comes with the message of
        any task that completed; without such a message the files stay until VACUUM.
        """
        from delta_py.row_changes.write import abort_write

        files, missing_messages = _files(messages), sum(message is None for message in messages)
        if files and missing_messages:
            plan = files[0].plan.open()
            # One message is missing because its task failed. The tasks of further missing ones may still be writing.
            abort_write(plan.state.store, plan, stragglers=missing_messages > 1)


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[BatchFiles]:
    return [message for message in messages if isinstance(message, BatchFiles)]
