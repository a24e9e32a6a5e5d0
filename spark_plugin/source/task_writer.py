"""Batch writes: `df.write.format("pydelta")`.

    DeltaWriter.open (driver: plan_write) -> write (tasks: write_files) -> commit (driver, another process: commit_write)

Every step is delta_py's. A WritePlan and WrittenFiles travel between the steps. The plan is pickled separately, because tasks
need only its WriteState, and would otherwise import the modules that plan and commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from delta_py.errors import ProtocolChangedException
from delta_py.types.schema import StructType
from delta_py.write.data_files import WrittenFiles, write_files
from spark_plugin.source.batch_writer import BatchWriter
from spark_plugin.tasks.pickled_value import PickledValue
from spark_plugin.tasks.tcp_nodelay import PromptTask

if TYPE_CHECKING:
    from delta_py.row_changes.write_plans import WritePlan
    from spark_plugin.options.write_options import WriteOptions


@dataclass(frozen=True)
class TaskFiles(WriterCommitMessage):
    """The files that one task wrote."""

    written: WrittenFiles


class DeltaWriter(PromptTask, BatchWriter):
    """One save of a DataFrame. Spark pickles it into the tasks, which write files, and into the process that commits.

    plan: what to write and commit; None if there is nothing to do: the mode is `ignore` and the table exists, or the table
    already has this write (the options txnAppId and txnVersion)."""

    def __init__(self, options: WriteOptions, plan: WritePlan | None) -> None:
        self._job = PickledValue.of((options.mode, plan))
        self._state = None if plan is None else plan.state

    @classmethod
    def open(cls, options: WriteOptions, schema: StructType) -> Self:
        """Plan the save. schema: the columns of the DataFrame. Raises, before any task runs, the errors that make the write
        impossible."""
        from delta_py.definition.catalog_entry import enter_in_catalog
        from delta_py.row_changes.write import plan_write
        from delta_py.row_changes.write_plans import NothingToDo

        store, request = options.open_target()
        plan = plan_write(store, schema, request)
        if isinstance(plan, NothingToDo):
            enter_in_catalog(store)  # as after a commit: the table may exist without an entry in its catalog
        return cls(options, None if isinstance(plan, NothingToDo) else plan)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task to files. If there is nothing to do, the rows are ignored."""
        if self._state is None:
            return TaskFiles(WrittenFiles())
        context = TaskContext.get()
        return TaskFiles(write_files(self._state, iterator, task=0 if context is None else context.partitionId()))

    def commit_here(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit to the store of the plan, not to the path of the options: a relative path would name another table if the
        working directory of this process is another one."""
        from delta_py.definition.catalog_entry import enter_in_catalog
        from delta_py.row_changes.write import commit_write

        mode, plan = self._job.open()
        if plan is None:
            return
        try:
            commit_write(plan.state.store, plan, _written(messages))
        except ProtocolChangedException:
            # Another writer created the table in the meantime. In mode `ignore` this is no error, and our files are deleted.
            if mode != "ignore":
                raise
            enter_in_catalog(plan.state.store)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Spark aborts a job if tasks failed, and also if `commit` raised or its process died.

        In the second case all tasks returned their message, and the commit may exist or still appear. Then nothing is deleted
        here; `commit` itself has deleted the files that it knows to be lost. In the first case other tasks may still be writing:
        those without a message, except the failed one.
        """
        from delta_py.row_changes.write import abort_write

        _, plan = self._job.open()
        missing_messages = sum(message is None for message in messages)
        if plan is not None and missing_messages:
            abort_write(plan.state.store, plan, stragglers=missing_messages > 1)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenFiles]:
    return [message.written for message in messages if isinstance(message, TaskFiles)]
