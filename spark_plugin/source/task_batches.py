"""The input and output of a read task: its files, and batches with exactly the Arrow types that Spark expects."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_py.scan.file_groups import FileGroup
from delta_py.scan.scan_state import ScanFile, ScanState
from spark_plugin.pruning.partition_messages import FILES, MessagePartition
from spark_plugin.source.geometry_srid import has_shapes, is_shape, with_srids

if TYPE_CHECKING:
    from delta_py.scan.planning import Scan
    from spark_plugin.options.common import SessionSettings
    from spark_plugin.source.native_files import NativeFiles


class DeltaPartition(MessagePartition):
    """The files of one task. state: how the task reads them; None if it reads them as the ScanState of its reader says, which all
    tasks of the reader share. message: what the optimizer rule learns about the whole scan (partition_messages.py); None for all
    tasks except the first."""

    def __init__(self, files: FileGroup, message: Mapping[str, str | bytes] | None = None) -> None:
        super().__init__(message)
        self.files = files
        self.state: ScanState | None = None

    def scan_files(self) -> Iterator[ScanFile]:
        return self.files.scan_files()


class NativePartition(DeltaPartition):
    """A task that Spark's own Parquet reader may run. Its files are only in the message FILES, an Arrow stream.

    If Spark's reader gives up in the middle of the task, Python reads the rest. first: how many files Python skips, because
    Spark's reader has read them. rows: which rows of the next file Python reads; None for all.
    """

    def __init__(self, stream: bytes) -> None:
        super().__init__(FileGroup(), {FILES: stream})
        self.first = 0
        self.rows: range | None = None

    def scan_files(self) -> Iterator[ScanFile]:
        stream = self.messages[FILES]
        assert isinstance(stream, bytes)
        files = islice(FileGroup(stream).scan_files(), self.first, None)
        if self.rows is None:
            return files
        from pyroaring import BitMap64

        from delta_py.protocol.deletion_vectors import inline_descriptor

        # Only the first of these files is read in part: Spark's reader has already returned its earlier rows.
        return chain([replace(next(files), selection=inline_descriptor(BitMap64(self.rows)))], files)


def rest_of(pickled: bytes, first: int, start: int, rows: int) -> NativePartition:
    """Return the rest of a task: it starts at row `start` of one of its files, which has `rows` rows. NativePartition.java calls
    this function by its name if Spark's reader cannot continue. pickled: the task's NativePartition. first: the position of the
    file among the files of the task, from 0."""
    partition: NativePartition = pickle.loads(bytes(pickled))
    partition.first = first
    partition.rows = range(start, rows) if start else None
    return partition


def partitions_of(
    scan: Scan, settings: SessionSettings, message: Mapping[str, str | bytes], native: NativeFiles | None = None
) -> list[DeltaPartition]:
    """Return the tasks of a scan; empty if there is no file. message: what the optimizer rule learns about the scan; the first
    task carries it. native: tells which files Spark's own Parquet reader may read, and gives it their list; these files get their
    own tasks. None if Python reads all files."""
    task_count = settings.target_partitions if native is None else settings.native_partitions
    files = scan.cut_files(settings.max_partition_bytes, settings.open_cost_bytes, task_count)
    if native is None:
        tasks = [DeltaPartition(FileGroup.of(group)) for group in _packed(files, settings, task_count)]
    else:
        # Each reader gets the part of its own number of tasks that corresponds to its share of the bytes.
        native_files, other_files, native_share = native.split(files)
        python_task_count = settings.target_partitions * (1.0 - native_share)
        native_task_count = task_count * native_share
        tasks = [DeltaPartition(FileGroup.of(group)) for group in _packed(other_files, settings, python_task_count)]
        tasks += [NativePartition(native.stream_of(group)) for group in _packed(native_files, settings, native_task_count)]
    if tasks:
        tasks[0].messages.update(message)
    return tasks


def _packed(files: pa.Table, settings: SessionSettings, task_count: float) -> list[pa.Table]:
    """Divide files among tasks of similar size. Returns the files of each task. task_count: how many tasks the scan
    should have; a float, because it is a share of another number."""
    from delta_py.scan.packing import pack_files  # tasks import this module too, and need no packing

    return pack_files(files, settings.max_partition_bytes, settings.open_cost_bytes, max(1, round(task_count)))


# ---------------------------------------------------------------- Arrow types


class _Relabel:
    """A batch that pa.record_batch imports under another schema of the same layout. It goes through the Arrow C data interface,
    which passes the schema and the buffers separately, so nothing is copied."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def relabelled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the names and nullability of `schema`, at every depth, because Spark compares them and a user's
    own schema may differ from the table's. Each geometry and geography becomes a struct of its SRID and its WKB value.
    """
    if batch.schema.equals(schema):
        return batch
    if any(has_shapes(kind) for kind in schema.types):
        columns = [with_srids(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    return pa.record_batch(_Relabel(batch, schema))


def check_layout(ours: pa.Schema, target_schema: pa.Schema) -> None:
    """Check once, before the read, that `relabelled` can put batches with the schema `ours` under `target_schema`. It does not
    check each batch, and would read a batch of another layout as garbage."""
    assert _same_layout(pa.struct(list(ours)), pa.struct(list(target_schema))), f"{ours} has not the layout of {target_schema}"


def _same_layout(first: pa.DataType, second: pa.DataType) -> bool:
    """Return whether arrays of the types have the same buffers: the same types except for names, nullability and metadata.
    second: a type of Spark, in which a shape (a geometry or geography) is a struct of SRID and WKB; relabelled makes that struct
    from WKB, which is binary."""
    if is_shape(second):
        return bool(pa.types.is_binary(first))
    if first.num_fields != second.num_fields or first.id != second.id:
        return False
    if first.num_fields == 0:
        return bool(first == second)
    return all(_same_layout(first.field(i).type, second.field(i).type) for i in range(first.num_fields))
