"""The work of a task of a DELETE, UPDATE or MERGE with the changed rows that Spark sends it.

    changes = write_changes(state, batches, task=3)      # in a task; TaskChanges goes back to the driver

New rows are checked and become data files, and change data if that is enabled. For removed rows only their positions are kept: a
set of row positions for each file, as deletion vectors that nothing in the table refers to. rewrite.py removes the rows from
their files after all tasks have finished.
Protocol: Deletion Vectors; Add CDC File; Row Tracking.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_py.parquet.values.buffers import Ndarray
from delta_py.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    dv_file_bytes,
    from_row_indexes,
    inline_descriptor,
)
from delta_py.row_rules.write_state import WriteState
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import (
    FileSetWriter,
    TaskConformer,
    WrittenFiles,
    abandon_on_failure,
    combine_batches,
    delete_files,
)
from delta_py.write.row_ids import RowIdColumns

FILE, ROW, CHANGE, NEW, ROW_ID = "__pydelta_file", "__pydelta_row", "__pydelta_change", "__pydelta_new", "__pydelta_row_id"
"""Columns of the rows that a task gets: number of the file (int) and position in it (long), both null for an insert; the kind of
change (byte: DELETED, UPDATED, INSERTED); the new row (struct, null for a delete; absent if there are only deletes); the row's
id, if the table tracks rows."""

CLAUSE = "__pydelta_clause"
"""The number of the MERGE clause that made the row; the column may be absent."""

DELETED, UPDATED, INSERTED = 0, 1, 2

# Positions that are buffered before they are added to the sets.
_MOST_BUFFERED_ROWS = 1 << 20
# The sets go to the driver inside the result if they have at most this many bytes; larger ones go to a file.
_INLINE_BYTES = 64 * 1024
_POST_IMAGES = {UPDATED: "update_postimage", INSERTED: "insert"}


@dataclass(frozen=True, slots=True)
class ChangeState:
    """What the tasks of a DELETE, UPDATE or MERGE need to write changed rows. write_id: part of the names of all files. new_rows:
    how new rows are written, with the columns of row ids if the table tracks rows; None for a DELETE, which has no new rows.
    row_ids: these columns, or None. change_data: new rows are written as change data too."""

    store: ObjectStore
    write_id: str
    new_rows: WriteState | None = None
    row_ids: RowIdColumns | None = None
    change_data: bool = False


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """Rows to remove from one file. file: its number in the scan. deleted, updated: the positions of deleted rows, and of the old
    versions of updated rows; None if there are none. The counts are numbers of passed rows: larger than the sets if a row was
    passed more than once."""

    file: int
    deleted: DeletionVectorDescriptor | None
    updated: DeletionVectorDescriptor | None
    deleted_count: int
    updated_count: int


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """The result of one task. written: files with new rows. touched: the old rows to remove. updated, inserted: counts of passed
    new rows. scratch: paths of files that hold positions for `touched`; nobody needs them after the operation. by_clause: pairs
    of a MERGE clause's number and the number of rows that it made."""

    written: WrittenFiles = field(default_factory=WrittenFiles)
    touched: tuple[TouchedRows, ...] = ()
    updated: int = 0
    inserted: int = 0
    scratch: tuple[str, ...] = ()
    by_clause: tuple[tuple[int, int], ...] = ()


def vector_file_id(write_id: str) -> UUID:
    """A new name for a deletion vector file. It contains the write's id, by which the files of a failed write are found."""
    return UUID(f"{write_id}-{secrets.token_hex(6)}")


def write_changes(state: ChangeState, batches: Iterable[pa.RecordBatch], *, task: int = 0) -> TaskChanges:
    """Write the new rows of `batches` and collect the positions of the old ones.

    batches: with the columns FILE, ROW, CHANGE, and where they are needed NEW and ROW_ID.
    Memory: that of write_files, some rows' positions, and the sets of positions. Raises as write_files. Then all new files are
    deleted.
    """
    old_positions, writer = _OldPositions(), _NewRowWriter(state, task)
    by_clause: Counter[int] = Counter()
    with abandon_on_failure(state.store.root, writer.writers):
        for batch in combine_batches(batches):
            changes = batch.column(CHANGE).to_numpy(zero_copy_only=False)
            old_positions.add(batch, changes)
            writer.add(batch, changes)
            if CLAUSE in batch.schema.names:
                by_clause.update(_count_values(batch.column(CLAUSE)))
        old_positions.flush()
        written = writer.finish()
        try:
            touched, scratch = old_positions.to_descriptors(state.store, state.write_id)
        except BaseException:
            delete_files(state.store, written.new_paths)
            raise
    return TaskChanges(written, touched, writer.counts[UPDATED], writer.counts[INSERTED], scratch, tuple(by_clause.items()))


def _count_values(numbers: pa.Array) -> dict[int, int]:
    """How often each number occurs."""
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(numbers).to_pylist()}


# ---------------------------------------------------------------- new rows


class _NewRowWriter:
    """Writes new rows to data files, and as change data. counts: new rows so far, by kind of change (UPDATED or INSERTED).
    _image_writers: the writers of change data, by kind of change; empty if no change data is written."""

    def __init__(self, state: ChangeState, task: int) -> None:
        self._state = state
        self.counts = {UPDATED: 0, INSERTED: 0}
        self._image_writers: dict[int, FileSetWriter] = {}
        self._row_writer: FileSetWriter | None = None
        if state.new_rows is None:
            return
        self._row_writer, self._conformer = FileSetWriter(state.new_rows, task), TaskConformer(state.new_rows, task)
        if state.change_data:
            plain = state.new_rows if state.row_ids is None else state.row_ids.drop_from_state(state.new_rows)
            self._image_writers = {kind: FileSetWriter(plain, task, name) for kind, name in _POST_IMAGES.items()}

    @property
    def writers(self) -> list[FileSetWriter]:
        """All writers, for the clean-up after a failure."""
        return [*self._image_writers.values(), *([] if self._row_writer is None else [self._row_writer])]

    def add(self, batch: pa.RecordBatch, changes: Ndarray) -> None:
        """Write the new rows of a batch. changes: the kind of change of each row; rows that are only deleted are skipped."""
        for kind in (UPDATED, INSERTED):
            is_kind = changes == kind
            count = int(is_kind.sum())
            if count:
                self.counts[kind] += count
                self._write(batch if count == batch.num_rows else batch.filter(pa.array(is_kind)), kind)

    def _write(self, batch: pa.RecordBatch, kind: int) -> None:
        """Write the new rows of a batch whose rows all have the same kind of change."""
        assert self._row_writer is not None, "rows were handed over to a task that writes none"
        rows = pa.RecordBatch.from_struct_array(_check_no_null(batch.column(NEW)))
        row_ids = self._state.row_ids
        if row_ids is not None:
            # The rows keep their ids, and a null id gives an inserted row a new one. The commit version is that of this commit,
            # for which null stands.
            rows = row_ids.append_to_rows(rows, batch.column(ROW_ID), pa.nulls(batch.num_rows, pa.int64()))
        for conformed in self._conformer.conform(rows, new_rows=kind == INSERTED):
            self._row_writer.add(conformed)
            if kind in self._image_writers:
                self._image_writers[kind].add(conformed)

    def finish(self) -> WrittenFiles:
        written = WrittenFiles.of_all([writer.finish() for writer in self.writers])
        return written if self._row_writer is None else replace(written, identity_marks=self._conformer.identity_marks)


def _check_no_null(structs: pa.Array) -> pa.Array:
    """The same new rows. A null struct among them would become a row of nulls, which is never intended."""
    assert structs.null_count == 0, "a new row is null"
    return structs


# ---------------------------------------------------------------- positions of old rows


class _OldPositions:
    """Sets of the positions of old rows, by number of the file and kind of change (DELETED or UPDATED). Positions are buffered
    and added to the sets many at a time.

    _buffered: pairs of arrays, keys and row positions. A key is 2 * (number of the file) + (kind of the change).
    _row_counts: how many rows were passed for each set; more than the set has if a row was passed more than once.
    """

    def __init__(self) -> None:
        self._buffered: list[tuple[Ndarray, Ndarray]] = []
        self._buffered_count = 0
        self._sets: dict[tuple[int, int], BitMap64] = {}
        self._row_counts: dict[tuple[int, int], int] = {}

    def add(self, batch: pa.RecordBatch, changes: Ndarray) -> None:
        """Buffer the positions of a batch's old rows. changes: the kind of change of each row."""
        files, rows = batch.column(FILE), batch.column(ROW)
        # Inserts have no file.
        if files.null_count:
            has_file = pc.is_valid(files)
            files, rows, changes = files.filter(has_file), rows.filter(has_file), changes[has_file.to_numpy(zero_copy_only=False)]
        keys = files.to_numpy(zero_copy_only=False).astype(np.int64) * 2 + changes
        self._buffered.append((keys, rows.to_numpy(zero_copy_only=False).astype(np.uint64)))
        self._buffered_count += len(keys)
        if self._buffered_count >= _MOST_BUFFERED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Add the buffered positions to the sets."""
        if not self._buffered_count:
            return
        keys, rows = (np.concatenate(parts) for parts in zip(*self._buffered, strict=True))
        self._buffered, self._buffered_count = [], 0
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        # Where each key begins in the sorted array, and where the last one ends.
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        for start, stop in pairwise(bounds):
            file, kind = divmod(int(keys[start]), 2)
            positions = from_row_indexes(rows[start:stop])
            earlier_positions = self._sets.get((file, kind))
            self._sets[file, kind] = positions if earlier_positions is None else earlier_positions | positions
            self._row_counts[file, kind] = self._row_counts.get((file, kind), 0) + stop - start

    def to_descriptors(self, store: ObjectStore, write_id: str) -> tuple[tuple[TouchedRows, ...], tuple[str, ...]]:
        """The rows to remove from each file, with the sets as deletion vectors: inline if they are small together, otherwise in
        one new file. Also returns the path of that file, or () if there is none."""
        keys = sorted(self._sets)
        # A set has at least one byte, so more sets than _INLINE_BYTES cannot be inline together.
        inline = [inline_descriptor(self._sets[key]) for key in keys[:_INLINE_BYTES]]
        if len(inline) == len(keys) and sum(descriptor.size_in_bytes for descriptor in inline) <= _INLINE_BYTES:
            return tuple(self._touched_rows(dict(zip(keys, inline, strict=True)))), ()
        data, descriptors = dv_file_bytes([self._sets[key] for key in keys], vector_file_id(write_id))
        path = descriptors[0].path
        assert path is not None
        try:
            store.put_if_absent(path, data)
        except BaseException:  # the reply may have been lost: the file may exist all the same
            delete_files(store, [path])
            raise
        return tuple(self._touched_rows(dict(zip(keys, descriptors, strict=True)))), (path,)

    def _touched_rows(self, sets: dict[tuple[int, int], DeletionVectorDescriptor]) -> Iterator[TouchedRows]:
        """The rows to remove from each file. sets: deletion vectors with their positions, by file number and kind of change."""
        for file in sorted({file for file, _ in sets}):
            deleted, updated = (file, DELETED), (file, UPDATED)
            yield TouchedRows(
                file, sets.get(deleted), sets.get(updated), self._row_counts.get(deleted, 0), self._row_counts.get(updated, 0)
            )
