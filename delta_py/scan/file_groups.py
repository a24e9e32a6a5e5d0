"""The files of one task: an Arrow table while it is sent, Python values where the files are read.

This module has what an executor needs of a plan, and no planning code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Self

import pyarrow as pa

from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.scan.scan_state import ScanFile
from delta_py.types.schema import LONG, STRING, TIMESTAMP, DataType, StructField

# Files of a change feed have columns with one value for all their rows. They may also have a deletion vector that selects the
# only rows to read.
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
CHANGE_FIELDS = (StructField(CHANGE_TYPE, STRING), StructField(COMMIT_VERSION, LONG), StructField(COMMIT_TIMESTAMP, TIMESTAMP))
SELECTION = "selection"
# Columns of a file that several tasks read: the first byte of a task's part, and the length of the part in bytes. 0 and the
# file's size mean the whole file.
PART_START, PART_BYTES = "part_start", "part_bytes"


def bytes_to_read(files: pa.Table) -> pa.ChunkedArray:
    """How many bytes a scan reads of each file, or of each part of a file (int64). files: the files of a Scan, or of
    Scan.cut_files."""
    return files[PART_BYTES if PART_BYTES in files.column_names else "size"]


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files that one task reads: an Arrow table as compressed IPC bytes; None for no files."""

    table_ipc: bytes | None = None

    @classmethod
    def of(cls, files: pa.Table) -> Self:
        """The group of these files of a Scan. They are written in batches of 4,096, because scan_files makes Python values of a
        whole batch at once."""
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        table = files.combine_chunks()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=4096)
        return cls(table_ipc=sink.getvalue().to_pybytes())

    def scan_files(self) -> Iterator[ScanFile]:
        """The files as values, one batch at a time."""
        if self.table_ipc is None:
            return
        with pa.ipc.open_stream(self.table_ipc) as reader:
            for batch in reader:
                yield from scan_files(batch)


def scan_files(files: pa.RecordBatch) -> Iterator[ScanFile]:
    """Convert rows of FILE_SCHEMA to values, for the task that reads them. All columns that only some plans have are optional:
    file numbers, parts, selections, values for commits and columns of the change feed."""
    columns = [files[name].to_pylist() if name in files.schema.names else repeat(None, files.num_rows) for name in _COLUMNS]
    for row, constants in zip(zip(*columns, strict=True), _constants(files), strict=True):
        # The three lines of _COLUMNS.
        path, size, modification_time_ms, partition_values, vector, selection = row[:6]
        row_id, row_version, number, part_start, part_bytes = row[6:11]
        stats, path_text, tags, provider = row[11:]
        yield ScanFile(
            path=path,
            size_bytes=size,
            modification_time_ms=modification_time_ms,
            partition_values=dict(partition_values or ()),
            deletion_vector=None if vector is None else DeletionVectorDescriptor.from_json(vector),
            selection=None if selection is None else DeletionVectorDescriptor.from_json(selection),
            base_row_id=row_id,
            default_row_commit_version=row_version,
            constants=constants,
            stats=stats,
            path_text=path_text,
            tags=None if tags is None else dict(tags),
            clustering_provider=provider,
            number=number,
            part=None if part_start is None or part_bytes == size else (part_start, part_bytes),
        )


# The columns that scan_files reads, in the order in which it unpacks them.
_COLUMNS = (
    *("path", "size", "modification_time", "partition_values", "deletion_vector", SELECTION),
    *("base_row_id", "default_row_commit_version", "number", PART_START, PART_BYTES),
    *("stats", "path_text", "tags", "clustering_provider"),
)


def _constants(files: pa.RecordBatch) -> Iterator[dict[str, tuple[Any, DataType]]]:
    """The change feed's columns that have one value for all rows of a file: one dictionary for each file, from names to pairs of
    value and type. A timestamp is a number of microseconds since 1970. A null value is left out: files of change data have no
    such change type, because their rows contain it."""
    fields = [f for f in CHANGE_FIELDS if f.name in files.schema.names]
    columns = [files[f.name] for f in fields]
    plain_columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    # zip of no columns would yield nothing, but there must be one dictionary for each file.
    rows = zip(*(column.to_pylist() for column in plain_columns), strict=True) if fields else repeat((), files.num_rows)
    for values in rows:
        yield {f.name: (value, f.data_type) for f, value in zip(fields, values, strict=True) if value is not None}
