"""The objects that Spark sends into the tasks of a read. This module contains no planning: each of Spark's worker processes on
the executors imports everything that this module imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from delta_py.parquet.file_reader import read_files
from delta_py.scan.file_groups import FileGroup
from delta_py.scan.scan_state import ScanState
from delta_py.types.schema import to_arrow_schema as delta_arrow_schema
from spark_plugin.source.task_batches import DeltaPartition, check_layout, partitions_of, relabelled
from spark_plugin.spark_versions import to_arrow_schema
from spark_plugin.tasks.tcp_nodelay import PromptTask

if TYPE_CHECKING:
    from delta_py.checkpoint.leases import Lease
    from delta_py.scan.planning import Scan
    from spark_plugin.options.common import SessionSettings
    from spark_plugin.source.native_files import NativeFiles
    from spark_plugin.source.small_scan import SmallScan

FORMAT = "pydelta"


class TaskSource(DataSource):
    """Replaces DeltaSource in a task, where Spark needs only its name."""

    @classmethod
    def name(cls) -> str:
        return FORMAT


class DeltaReader(PromptTask, DataSourceReader):
    """A planned scan. It defines no pushFilters: Spark would pass the filters of one query and use the result for other queries.
    Instead filters come with the schema (spark_plugin/pruning).

    message: what the optimizer rule in the JVM learns about the planned scan (partition_messages.py); the first partition carries
    it.
    is_replanned: whether Spark has planned this scan before. Spark then gives the new partitions to the reader of the first
    planning, which may have read another version of the table. So each partition carries its own ScanState.
    lease: keeps VACUUM from deleting the files while they are read. It is written when Spark requests the partitions, renewed by
    the tasks, and expires by itself; None for a read without a lease.
    native: tells which files Spark's own Parquet reader may read; None if Python reads all files.
    small_scan: the same scan for the driver's own Python, which reads it if its rows are few; None if they may be many, and in
    tasks."""

    def __init__(
        self,
        scan: Scan,
        columns: StructType,
        settings: SessionSettings,
        *,
        message: Mapping[str, str | bytes] | None = None,
        is_replanned: bool = False,
        lease: Lease | None = None,
        native: NativeFiles | None = None,
        small_scan: SmallScan | None = None,
    ) -> None:
        self._scan: Scan | None = scan
        self._settings: SessionSettings | None = settings
        self._message = message or {}
        self._is_replanned = is_replanned
        self._lease = lease
        self._native = native
        self.small_scan = small_scan
        self._state: ScanState = scan.state
        self._schema: pa.Schema = to_arrow_schema(columns)
        check_layout(delta_arrow_schema(scan.output_schema), self._schema)

    def partitions(self) -> list[InputPartition]:
        assert self._scan is not None and self._settings is not None, "planned on the driver only"
        # Written before Spark starts a task, so that no VACUUM deletes the files in between. A user who may only read cannot
        # write it.
        if self._lease is not None and not self._lease.put():
            self._lease = None  # it could not be written, so tasks have nothing to renew
        partitions = partitions_of(self._scan, self._settings, self._message, self._native)
        partitions = partitions or [DeltaPartition(FileGroup(), self._message)]  # the rule needs a partition for its message
        if self._is_replanned:
            for partition in partitions:
                partition.state = self._state
        return [*partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, in Spark's Arrow types. This runs in the task."""
        assert isinstance(partition, DeltaPartition)
        with self._renewed_lease():
            for batch in read_files(partition.state or self._state, partition.scan_files()):
                yield relabelled(batch, self._schema)

    def _renewed_lease(self) -> AbstractContextManager[Any]:
        """Renew the lease inside the block, so that it does not expire before the task ends; do nothing for a read without a
        lease."""
        if self._lease is None:
            return nullcontext()
        from delta_py.checkpoint.leases import HeldLease  # few reads have a lease

        return HeldLease(self._lease, is_shared=True)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only planning needs: tasks get their files in their partition."""
        return {**self.__dict__, "_scan": None, "_settings": None, "_native": None, "small_scan": None}
