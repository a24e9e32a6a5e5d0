"""New data files: checked rows split by partition, as Parquet with statistics.

    written = write_files(state, batches)     # in a task; WrittenFiles goes back to the driver

Nothing here writes to the log: files that no commit names are not part of the table. If writing fails, the unfinished files are
deleted again.
Protocol: Data Files; Per-file Statistics; Add File and Remove File.
"""

from __future__ import annotations

import logging
import secrets
import string
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.errors import DeltaError, StorageError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import AddCDCFile, AddFile, RemoveFile
from delta_py.protocol.identity_columns import identity_columns
from delta_py.protocol.paths import CHANGE_DATA_DIRECTORY, data_file_name, partition_directory
from delta_py.row_rules.conform import ConformedBatch, Conformer, as_conformed
from delta_py.row_rules.identity_numbers import IdentityValues
from delta_py.row_rules.write_state import WriteState
from delta_py.scan.file_groups import CHANGE_TYPE
from delta_py.statistics.stats_collector import StatsCollector
from delta_py.storage.arrow_files import discard
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import (
    StructType,
    find_path,
)
from delta_py.write.partition_split import PartitionKey, split_by_partition
from delta_py.write.written_columns import convert_structure, file_fields, parquet_field, physical_field

_log = logging.getLogger("delta_py")

# Larger batches are processed in slices of about this size.
_SLICE_BYTES = 16 * 1024 * 1024
_GATHERED_ROWS = 65_536  # rows of a batch that small batches are combined to
_LONGEST_NAME_BYTES = 255  # of a directory's name, in most file systems
_PREFIX_LETTERS = string.ascii_letters + string.digits
_CHANGE_TYPE = pa.field(CHANGE_TYPE, pa.string(), nullable=False)
_FILE_CODECS = {"gzip": "gz"}  # codecs that have another name in file names


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files that one or more tasks wrote, as actions that are not committed yet.

    row_count: rows in `adds`. size_bytes: bytes of `adds`. new_paths: the files that this write created; they may be deleted if
    it is not committed. An add may also name a file that existed before. identity_marks: pairs of an identity column that got
    numbers and the furthest of its numbers in the direction of its step; each task gives one pair for such a column.
    """

    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    cdc: tuple[AddCDCFile, ...] = ()
    row_count: int = 0
    size_bytes: int = 0
    new_paths: tuple[str, ...] = ()
    identity_marks: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of_all(cls, parts: Iterable[WrittenFiles]) -> WrittenFiles:
        """All parts together, in their order."""
        parts = list(parts)
        return cls(
            adds=tuple(add for part in parts for add in part.adds),
            removes=tuple(remove for part in parts for remove in part.removes),
            cdc=tuple(change for part in parts for change in part.cdc),
            row_count=sum(part.row_count for part in parts),
            size_bytes=sum(part.size_bytes for part in parts),
            new_paths=tuple(path for part in parts for path in part.new_paths),
            identity_marks=tuple(mark for part in parts for mark in part.identity_marks),
        )


def write_files(state: WriteState, batches: Iterable[pa.RecordBatch], *, task: int = 0) -> WrittenFiles:
    """Write the rows of `batches` to new files of the table.

    batches: any number and size; their schema may differ in order and case of columns (see Conformer). task: its number; it
    becomes part of the files' names, and the numbers of identity columns depend on it.
    Memory is bounded by the layout's buffer_bytes and one batch, open files by its max_open_files. No file is written if there
    are no rows.
    Raises as Conformer, and StorageError if the store fails. Then all new files are deleted.
    """
    writers = [FileSetWriter(state, task)]
    if state.insert_changes:
        writers.append(FileSetWriter(state, task, change_type="insert"))
    conformer = TaskConformer(state, task)
    larger_batches = combine_batches(batches, min(_SLICE_BYTES, state.layout.row_group_bytes))
    written = _write_all((conformed for batch in larger_batches for conformed in conformer.conform(batch)), writers)
    return replace(written, identity_marks=conformer.identity_marks)


def write_unchanged(state: WriteState, batches: Iterable[pa.RecordBatch], *, task: int = 0) -> WrittenFiles:
    """As write_files, for rows of this table that are only moved. They are not checked, because they already satisfy the table's
    rules."""
    return _write_all(unchanged_batches(batches), [FileSetWriter(state, task)])


def _write_all(batches: Iterable[ConformedBatch], writers: Sequence[FileSetWriter]) -> WrittenFiles:
    """Give each batch to all writers: one writes data files, another the same rows as change data."""
    with abandon_on_failure(writers[0].store.root, writers):
        for batch in batches:
            for writer in writers:
                writer.add(batch)
        return WrittenFiles.of_all([writer.finish() for writer in writers])


@contextmanager
def abandon_on_failure(table_root: str, writers: Sequence[FileSetWriter]) -> Iterator[None]:
    """If the block raises, delete the files that the writers have started. An OSError becomes a StorageError. table_root: for the
    error."""
    try:
        yield
    except BaseException as error:
        for writer in writers:
            writer.abandon()
        if isinstance(error, OSError) and not isinstance(error, DeltaError):
            raise StorageError(
                f"Writing data files of the table at {table_root} failed: {error}. Nothing was committed."
            ) from error
        raise


def unchanged_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[ConformedBatch]:
    """Rows of the table itself, which satisfy its rules, in pieces of about _SLICE_BYTES."""
    for batch in batches:
        for piece in _slices(batch):
            yield as_conformed(piece)


class TaskConformer:
    """A Conformer for the batches of one task, whose schemas may differ."""

    def __init__(self, state: WriteState, task: int = 0) -> None:
        self._state = state
        columns = identity_columns(state.schema)
        self._identities = IdentityValues(columns, task, state.tasks) if columns else None
        self._conformer: Conformer | None = None
        self._schema: pa.Schema | None = None

    @property
    def identity_marks(self) -> tuple[tuple[str, int], ...]:
        """WrittenFiles.identity_marks for the rows that were conformed so far."""
        return () if self._identities is None else self._identities.marks

    def conform(self, batch: pa.RecordBatch, *, new_rows: bool = True) -> Iterator[ConformedBatch]:
        """The conformed rows of the batch, in pieces of about _SLICE_BYTES. new_rows: as in Conformer.conform. Raises as
        Conformer."""
        if self._conformer is None or not batch.schema.equals(self._schema):
            self._conformer, self._schema = Conformer(self._state, batch.schema, self._identities), batch.schema
        for piece in _slices(batch):
            yield self._conformer.conform(piece, new_rows=new_rows)


def combine_batches(
    batches: Iterable[pa.RecordBatch], most_bytes: int = _SLICE_BYTES, most_rows: int = _GATHERED_ROWS
) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches, with about most_rows rows or most_bytes bytes each; smaller before a change of the schema
    and at the end.

    A batch has a high cost that does not depend on its rows, and so does each partition in it: 8 million rows in 20 partitions
    took 32 s in batches of 2,048 rows, as Spark sends them, and 15 s in these.
    """
    buffered_batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if buffered_batches and not batch.schema.equals(buffered_batches[0].schema):
            yield _concat(buffered_batches)
            buffered_batches, rows, size = [], 0, 0
        buffered_batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield _concat(buffered_batches)
            buffered_batches, rows, size = [], 0, 0
    if buffered_batches:
        yield _concat(buffered_batches)


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows as one batch; a single batch is not copied."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of the batch in slices of about _SLICE_BYTES."""
    size, rows = batch.nbytes, batch.num_rows
    step = rows if size <= _SLICE_BYTES else max(1, rows * _SLICE_BYTES // size)
    for start in range(0, rows, max(1, step)):
        yield batch.slice(start, step)


def delete_files(store: ObjectStore, paths: Iterable[str]) -> None:
    """Delete data files that no commit names, as far as possible: the remaining ones are harmless, and VACUUM removes them."""
    for path in paths:
        try:
            store.delete(path)
        except (OSError, StorageError) as error:
            _log.warning("could not delete %s, which no commit names (VACUUM will): %s", path, error)


def delete_files_of(store: ObjectStore, write_id: str) -> int:
    """Delete every data file and deletion vector file with the write's id in its name; returns how many there were. As
    delete_files, it may fail for some files. Only for a write that will never be committed."""
    try:
        paths = [info.path for info in store.list_recursive("") if f"{write_id}-" in info.path.rpartition("/")[2]]
    except (OSError, StorageError) as error:
        _log.warning("could not look for the files of a failed write in %s (VACUUM will remove them): %s", store.root, error)
        return 0
    delete_files(store, paths)
    try:
        store.abort_uploads(f"{write_id}-")
    except (OSError, StorageError) as error:
        _log.warning("parts of files of a failed write may stay in %s until the store cleans up: %s", store.root, error)
    return len(paths)


@contextmanager
def delete_files_on_failure(
    state: WriteState, run: Callable[[Callable[[], int]], object] = lambda step: step()
) -> Iterator[None]:
    """If the block raises, delete the files with the write's id in their names. run: calls the function that deletes them, in a
    process that has access to the table."""
    try:
        yield
    except BaseException:
        run(partial(delete_files_of, state.store, state.write_id))
        raise


# ---------------------------------------------------------------- files


@dataclass(slots=True)
class _OpenFile:
    """A Parquet file that is being written. path: relative to the table. row_count: rows written so far."""

    path: str
    sink: pa.NativeFile
    parquet: pq.ParquetWriter
    footer: list[pq.FileMetaData]  # contains the footer once `parquet` is closed
    stats: StatsCollector
    row_count: int = 0


@dataclass(slots=True)
class _Partition:
    """Buffered rows of one partition, and its current file. key: the values of the partition columns, as protocol text."""

    key: PartitionKey
    buffered: list[pa.RecordBatch] = field(default_factory=list)
    buffered_bytes: int = 0
    buffered_rows: int = 0
    file: _OpenFile | None = None


class FileSetWriter:
    """Writes the rows of one task to data files, or to files of change data. Buffers rows per partition until they fill a row
    group; opens a file when its first row group is written.

    change_type: None for data files; insert, delete, update_preimage or update_postimage for rows that are change data.
    Protocol: Data Files; Add CDC File.
    """

    def __init__(self, state: WriteState, task: int, change_type: str | None = None) -> None:
        self._state, self._task, self._change_type = state, task, change_type
        self.store, self._layout = state.store, state.layout
        # The same id for all files of the write, then 12 characters that distinguish the attempts of its tasks.
        self._file_id = f"{state.write_id}-{uuid.uuid4().hex[-12:]}"
        self._partition_fields = tuple(find_path(state.schema, (name,))[0] for name in state.partition_columns)
        self._file_fields = file_fields(state)
        self._physical_schema = StructType(tuple(physical_field(f, state.column_mapping_mode) for f in self._file_fields))
        fields = [parquet_field(f) for f in self._physical_schema.fields]
        self._parquet_schema = pa.schema([*fields, _CHANGE_TYPE] if change_type is not None else fields)
        self._partitions: dict[PartitionKey, _Partition] = {}
        # Partitions with an open file, least recently used first.
        self._open_partitions: OrderedDict[PartitionKey, _Partition] = OrderedDict()
        self._buffered_bytes = 0
        self._started_paths: list[str] = []
        self._finished_adds: list[AddFile] = []
        self._row_count = 0

    # ------------------------------------------------------------ add rows

    def add(self, conformed: ConformedBatch) -> None:
        """Buffer the rows by partition, and write what no longer fits into the buffer. The batch may have more columns than the
        state's schema; these are ignored."""
        for key, rows in split_by_partition(conformed.batch, self._partition_fields):
            # The Parquet schema of change data has one more field, at its end: the kind of change.
            fields = zip(self._file_fields, self._parquet_schema, strict=False)
            arrays = [convert_structure(rows.column(f.name), into.type) for f, into in fields]
            if self._change_type is not None:
                arrays.append(pa.repeat(self._change_type, rows.num_rows))
            self._buffer(key, pa.RecordBatch.from_arrays(arrays, schema=self._parquet_schema))
        if self._buffered_bytes > self._layout.buffer_bytes:
            self._write_largest_partitions()

    def _write_largest_partitions(self) -> None:
        """Write the largest partitions until half of the buffer is free, so that one sort serves many writes."""
        for partition in sorted(self._partitions.values(), key=lambda p: p.buffered_bytes, reverse=True):
            if self._buffered_bytes <= self._layout.buffer_bytes // 2:
                break
            self._write_row_groups(partition)

    def _buffer(self, key: PartitionKey, rows: pa.RecordBatch) -> None:
        """Keep rows in memory until the partition has enough for a row group, and then write them."""
        partition, size_bytes = self._partitions.setdefault(key, _Partition(key)), rows.nbytes
        partition.buffered.append(rows)
        partition.buffered_rows += rows.num_rows
        partition.buffered_bytes += size_bytes
        self._buffered_bytes += size_bytes
        if partition.buffered_bytes >= self._layout.row_group_bytes or partition.buffered_rows >= self._layout.row_group_rows:
            self._write_row_groups(partition)

    # ------------------------------------------------------------ write row groups

    def _write_row_groups(self, partition: _Partition) -> None:
        """Write the buffered rows as row groups of the partition's file, and of more files if a file has reached its row
        limit."""
        rows = _concat(partition.buffered)
        self._buffered_bytes -= partition.buffered_bytes
        partition.buffered, partition.buffered_rows, partition.buffered_bytes = [], 0, 0
        limit, start = self._layout.max_records_per_file, 0
        while start < rows.num_rows:
            file = partition.file or self._open_next_file(partition)
            free_rows = rows.num_rows if limit is None else limit - file.row_count
            part = rows.slice(start, free_rows)
            file.parquet.write_table(pa.Table.from_batches([part]), row_group_size=self._layout.row_group_rows)
            file.stats.update(part)
            file.row_count += part.num_rows
            start += part.num_rows
            self._open_partitions.move_to_end(partition.key)
            if file.sink.tell() >= self._layout.target_file_bytes or file.row_count == limit:
                self._close_file(partition)
        # This call has opened at most one file that is still open. If that is one too many, close the file that was written to
        # longest ago.
        if len(self._open_partitions) > self._layout.max_open_files:
            self._close_file(next(iter(self._open_partitions.values())))

    def _open_next_file(self, partition: _Partition) -> _OpenFile:
        """Open the partition's next file."""
        codec = self._layout.compression
        is_change = self._change_type is not None
        name = data_file_name(
            self._task, self._file_id, len(self._started_paths), codec=_FILE_CODECS.get(codec, codec), change_data=is_change
        )
        directory = partition_directory(self._physical_partition(partition.key).items())
        if is_change:
            directory = f"{CHANGE_DATA_DIRECTORY}/{directory}" if directory else CHANGE_DATA_DIRECTORY
        if self._layout.random_prefix:
            prefix = "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(self._layout.random_prefix))
            directory = f"{CHANGE_DATA_DIRECTORY}/{prefix}" if is_change else prefix
        if any(len(part.encode()) > _LONGEST_NAME_BYTES for part in directory.split("/")):
            # The log says which partition a file belongs to; its directory is only for human readers.
            directory = CHANGE_DATA_DIRECTORY if is_change else ""
        path = f"{directory}/{name}" if directory else name
        self._started_paths.append(path)
        sink, footer = self.store.open_output(path), list[pq.FileMetaData]()
        parquet = pq.ParquetWriter(
            sink,
            self._parquet_schema,
            compression=codec,
            version="2.6",
            data_page_version=self._layout.page_version,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            metadata_collector=footer,
            **({} if is_change else self._file_options),
        )
        stats = StatsCollector(
            self._physical_schema, self._state.stats_columns, string_prefix=self._state.stats_string_prefix, use_footer=True
        )
        partition.file = _OpenFile(path, sink, parquet, footer, stats)
        self._open_partitions[partition.key] = partition
        return partition.file

    @property
    def _file_options(self) -> dict[str, Any]:
        """Arguments of pyarrow's ParquetWriter for data files; files of change data do not get them."""
        filters = {"bloom_filter_options": self._layout.bloom_filters} if self._layout.bloom_filters else {}
        return {**filters, **self._layout.parquet_options}

    def _close_file(self, partition: _Partition) -> None:
        """Finish the partition's file and collect its add action."""
        file = partition.file
        assert file is not None
        file.parquet.close()
        file.stats.add_footer_bounds(file.footer[0])
        size = file.sink.tell()
        file.sink.close()
        partition.file = None
        del self._open_partitions[partition.key]
        self._row_count += file.row_count
        self._finished_adds.append(
            AddFile(
                path=file.path,
                partition_values=self._physical_partition(partition.key),
                size_bytes=size,
                modification_time_ms=time.time_ns() // 1_000_000,
                data_change=self._state.data_change,
                stats=file.stats.to_json(),
            )
        )

    def _physical_partition(self, key: PartitionKey) -> dict[str, str | None]:
        """The partition's values by the physical names of the partition columns."""
        mode = self._state.column_mapping_mode
        return {column_mapping.to_physical(f, mode).name: text for f, text in zip(self._partition_fields, key, strict=True)}

    # ------------------------------------------------------------ finish or abandon

    def finish(self) -> WrittenFiles:
        """Write the buffered rows, finish all files, and return them: as `adds`, or as `cdc` if they are change data."""
        for partition in self._partitions.values():
            if partition.buffered:
                self._write_row_groups(partition)
            if partition.file is not None:
                self._close_file(partition)
        paths = tuple(file.path for file in self._finished_adds)
        if self._change_type is not None:
            changes = tuple(AddCDCFile(file.path, file.partition_values, file.size_bytes) for file in self._finished_adds)
            return WrittenFiles(cdc=changes, new_paths=paths)
        size_bytes = sum(file.size_bytes for file in self._finished_adds)
        return WrittenFiles(tuple(self._finished_adds), row_count=self._row_count, size_bytes=size_bytes, new_paths=paths)

    def abandon(self) -> None:
        """Close the open files and delete all files that were started."""
        for partition in self._open_partitions.values():
            file = partition.file
            assert file is not None
            file.parquet.is_open = False  # otherwise its finaliser would write a footer
            try:
                discard(file.sink)
            except OSError as error:
                _log.warning("could not close %s after a failed write: %s", file.path, error)
        delete_files(self.store, self._started_paths)
