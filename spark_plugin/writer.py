"""Batch writes: `df.write.format("pydelta")`.

    DeltaWriter.open (driver: plan_write) -> write (tasks: write_files) -> commit (driver, another process: commit_write)

Every step is delta_py's; what travels between them is a WritePlan and WrittenFiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_py.commands.write import WritePlan, abort_write, commit_write, plan_write
from delta_py.errors import ProtocolChangedException
from delta_py.protocol.schema import StructType
from delta_py.storage.store import open_store
from delta_py.write.files import WrittenFiles, write_files
from spark_plugin.write_options import WriteOptions


@dataclass(frozen=True)
class TaskFiles(WriterCommitMessage):
    """What one task wrote."""

    written: WrittenFiles


class DeltaWriter(DataSourceArrowWriter):
    """One save. plan: None when there is nothing to do: mode `ignore` found a table, or the table has the write already."""

    def __init__(self, options: WriteOptions, plan: WritePlan | None) -> None:
        self._options = options
        self._plan = plan

    @classmethod
    def open(cls, options: WriteOptions, schema: StructType) -> Self:
        """schema: of the DataFrame. Raises, before any task runs, what makes the write impossible."""
        plan = plan_write(open_store(options.path), schema, options.request)
        return cls(options, None if isinstance(plan, int) else plan)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self._plan is None:
            return TaskFiles(WrittenFiles())
        context = TaskContext.get()
        return TaskFiles(write_files(self._plan.state, iterator, task=0 if context is None else context.partitionId()))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._plan is None:
            return
        try:
            commit_write(open_store(self._options.path), self._plan, _written(messages))
        except ProtocolChangedException:
            # Another writer created the table meanwhile, and our files are deleted: that is what `ignore` asks for.
            if self._options.mode != "ignore":
                raise

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Spark aborts a job of which tasks failed, and also when `commit` raised or its process died.

        In the second case all tasks gave their message, and the commit may stand or still appear: then nothing is deleted
        here, as `commit` has deleted what it knows to be lost. In the first case other tasks may still be writing: those
        without a message, but for the failed one.
        """
        silent = sum(message is None for message in messages)
        if self._plan is not None and silent:
            abort_write(open_store(self._options.path), self._plan, stragglers=silent > 1)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenFiles]:
    return [message.written for message in messages if isinstance(message, TaskFiles)]
