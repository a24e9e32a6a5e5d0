"""Taking rows out of data files: by a larger deletion vector, or by a new file without them.

    delete_rows(file, predicate scan, state) -> WrittenFiles      # one remove, and the adds that stand for the other rows

Nothing here touches the log; the caller commits.
Protocol: Deletion Vectors; Writer Requirement for Deletion Vectors; Add CDC File.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from delta_py.errors import DeltaError, UnsupportedOperationError
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.protocol.deletion_vectors import dv_file_bytes, from_row_indexes, inline_descriptor, read_deletion_vector
from delta_py.protocol.schema import LONG, StructField, StructType
from delta_py.protocol.table_config import TableConfig
from delta_py.read.reader import read_files
from delta_py.read.scan import METADATA_COLUMN, ScanOptions, make_state
from delta_py.read.scan_state import ScanFile, ScanState
from delta_py.storage.store import ObjectStore
from delta_py.write.conform import WriteState
from delta_py.write.files import WrittenFiles, delete_files, write_change_files, write_unchanged

_ROW_INDEX = StructType((StructField(METADATA_COLUMN, StructType((StructField("row_index", LONG),))),))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How rows leave files of one table state; goes to every task.

    rows: a scan of all columns.
    use_deletion_vectors: else files are written anew. change_data: write the deleted rows as change data.
    """

    state: WriteState
    rows: ScanState
    use_deletion_vectors: bool
    change_data: bool

    @classmethod
    def of(cls, config: TableConfig, state: WriteState) -> Rewrite:
        """Raises UnsupportedOperationError for a table whose rows must keep their ids while files are written anew."""
        use_vectors = config.enabled("deletionVectors")
        if not use_vectors and config.enabled("rowTracking"):
            raise UnsupportedOperationError(
                "The table tracks rows (delta.enableRowTracking) and has no deletion vectors: this version cannot write files "
                "anew and keep the ids of their rows. Nothing was changed. Set delta.enableDeletionVectors to true.",
            )
        rows = make_state(config, state.table_root, None, None, ScanOptions(timezone=state.time_zone))
        return cls(state, rows, use_vectors, config.enabled("changeDataFeed") and not use_vectors)


def row_index_columns() -> StructType:
    """What a scan must be asked for so that delete_rows can use it."""
    return _ROW_INDEX


def removed(file: ScanFile, *, now_ms: int | None = None, data_change: bool = True) -> RemoveFile:
    """The action that takes the whole file out of the table. now_ms: since 1970, the deletion time.
    Protocol: Add File and Remove File."""
    return RemoveFile(
        path=file.path,
        path_text=file.path_text,
        data_change=data_change,
        deletion_timestamp_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        extended_file_metadata=True,
        partition_values=dict(file.partition_values),
        size_bytes=file.size_bytes,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def delete_rows(
    store: ObjectStore, file: ScanFile, matching: ScanState, rewrite: Rewrite | None, state: WriteState
) -> WrittenFiles:
    """Take the rows that the scan `matching` finds in the file out of it.

    matching: gives row_index_columns() of exactly the rows to delete (drop_rows); without predicate, of all rows.
    rewrite: may be None only then. Nothing comes back for a file without such
    rows; only a remove for one of which all rows go.
    """
    remove = removed(file, data_change=state.data_change)
    if matching.predicate is None:
        return WrittenFiles(removes=(remove,))
    assert rewrite is not None
    deleted = _row_indexes(store, file, matching)
    if not deleted:
        return WrittenFiles()
    present = BitMap64() if file.deletion_vector is None else read_deletion_vector(store, file.deletion_vector)
    gone = present | deleted
    with store.open_input(file.path) as source:
        row_count = pq.read_metadata(source).num_rows
    if len(gone) == row_count and not rewrite.change_data:
        return WrittenFiles(removes=(remove,))
    if rewrite.use_deletion_vectors:
        return _with_vector(store, file, remove, gone, row_count)
    return _written_anew(store, file, remove, deleted, gone, rewrite)


def _row_indexes(store: ObjectStore, file: ScanFile, matching: ScanState) -> BitMap64:
    found = BitMap64()
    for batch in read_files(matching, [file], store):
        found |= from_row_indexes(batch.column(0).field("row_index").to_numpy(zero_copy_only=False).astype(np.uint64))
    return found


def _with_vector(store: ObjectStore, file: ScanFile, remove: RemoveFile, gone: BitMap64, row_count: int) -> WrittenFiles:
    data, (descriptor,) = dv_file_bytes([gone], uuid.uuid4())
    path = descriptor.path
    assert path is not None
    try:
        store.put_if_absent(path, data)
    except (DeltaError, OSError):  # a reply that was lost: it may be there all the same
        delete_files(store, [path])
        raise
    add = AddFile(
        path=file.path,
        path_text=file.path_text,
        partition_values=dict(file.partition_values),
        size_bytes=file.size_bytes,
        modification_time_ms=file.modification_time_ms,
        data_change=remove.data_change,
        stats=_wide_stats(file.stats, row_count),
        deletion_vector=descriptor,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )
    return WrittenFiles(adds=(add,), removes=(remove,), new_paths=(path,))


def _wide_stats(stats: str | None, row_count: int) -> str:
    """The file's statistics as bounds that need not be met any more. numRecords counts the deleted rows too.
    Protocol: Per-file Statistics; Writer Requirement for Deletion Vectors."""
    try:
        known = orjson.loads(stats or "{}")
    except orjson.JSONDecodeError:
        known = {}
    found: dict[str, Any] = known if isinstance(known, dict) else {}
    return orjson.dumps({**found, "numRecords": row_count, "tightBounds": False}).decode()


def _written_anew(
    store: ObjectStore, file: ScanFile, remove: RemoveFile, deleted: BitMap64, gone: BitMap64, rewrite: Rewrite
) -> WrittenFiles:
    kept = replace(file, deletion_vector=inline_descriptor(gone))
    parts = [write_unchanged(rewrite.state, _batches(store, kept, rewrite.rows), store)]
    try:
        if rewrite.change_data:
            lost = replace(file, selection=inline_descriptor(deleted))
            parts.append(write_change_files(rewrite.state, _batches(store, lost, rewrite.rows), "delete", store))
    except BaseException:
        delete_files(store, parts[0].new_paths)
        raise
    return WrittenFiles.of_all([*parts, WrittenFiles(removes=(remove,))])


def _batches(store: ObjectStore, file: ScanFile, rows: ScanState) -> Iterator[pa.RecordBatch]:
    yield from read_files(rows, [file], store)
