"""Which rows of a file are read: all except those in a deletion vector, or only those in a selection.

Positions are 0-based rows of the Parquet file. They stay in the bitmap that was read, and only those of one range of rows are
expanded at a time: a vector of a few bytes may contain more rows than fit into memory.
Protocol: Reader Requirements for Deletion Vectors.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_py.errors import DeletionVectorError
from delta_py.parquet.values.buffers import Ndarray
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, read_deletion_vector, row_indexes
from delta_py.scan.scan_state import ScanFile
from delta_py.storage.store import ObjectStore


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The rows of a file to read. dropped: the rows to leave out; None for no rows. selected: the only rows to read, except the
    dropped ones; None for all rows."""

    dropped: BitMap64 | None = None
    selected: BitMap64 | None = None

    def remaining_count(self, start: int, stop: int) -> int:
        """An upper limit for how many of the rows from start to stop (exclusive) are read. 0 is exact: none is read."""
        count = stop - start
        if self.dropped is not None and self.dropped.range_cardinality(start, stop) == count:
            return 0
        return count if self.selected is None else self.selected.range_cardinality(start, stop)

    def pick(self, start: int, stop: int) -> RowPick | None:
        """The rows to read from start to stop; None for all of them."""
        dropped = None if self.dropped is None else _rows_between(self.dropped, start, stop)
        if self.selected is None and (dropped is None or len(dropped) == 0):
            return None
        is_read = np.full(stop - start, self.selected is None)
        if self.selected is not None:
            is_read[_rows_between(self.selected, start, stop) - start] = True
        if dropped is not None:
            is_read[dropped - start] = False
        return RowPick.of(is_read)


def _rows_between(rows: BitMap64, start: int, stop: int) -> Ndarray:
    """The positions in `rows` from start to stop (exclusive), ascending."""
    return row_indexes(rows & BitMap64(range(start, stop)))


_log = logging.getLogger("delta_py")

ALL_ROWS = RowSelection()


def load_selection(store: ObjectStore, file: ScanFile, row_count: int) -> RowSelection:
    """Read the file's deletion vector and selection. row_count: the number of rows of the Parquet file; positions
    beyond it have no effect.

    Raises DeletionVectorError for a vector that is missing or damaged.
    """
    if file.deletion_vector is None and file.selection is None:
        return ALL_ROWS
    return RowSelection(
        _read_bitmap(store, file, file.deletion_vector, row_count),
        _read_bitmap(store, file, file.selection, row_count),
    )


def _read_bitmap(
    store: ObjectStore, file: ScanFile, descriptor: DeletionVectorDescriptor | None, row_count: int
) -> BitMap64 | None:
    """The rows in a deletion vector or a selection of the file; None if there is no descriptor."""
    if descriptor is None:
        return None
    try:
        bitmap = read_deletion_vector(store, descriptor)
    except FileNotFoundError as error:
        raise DeletionVectorError(
            f"The deletion vector {descriptor.path} of data file {file.path} is missing, so that its deleted rows cannot be "
            "told from the others. Restore the file; VACUUM with too short a retention may have removed it.",
            error_class="DELTA_DELETION_VECTOR_FILE_NOT_FOUND",
            path=file.path,
            deletion_vector=descriptor.path,
        ) from error
    if bitmap and bitmap.max() >= row_count:
        # Tables with such vectors exist, and all other implementations read them. The existing rows are not in doubt.
        _log.warning(
            "The deletion vector of data file %s names row %d of %d; rows beyond the end of the file are ignored.",
            file.path,
            bitmap.max(),
            row_count,
        )
    return bitmap


@dataclass(frozen=True, slots=True)
class RowPick:
    """Some rows of a batch, in order. indices: their positions in the batch (int32). row_count: the number of rows of the batch.
    Arrow gets the rows as `_indices` (the positions) or `_mask` (one boolean per row of the batch).

    Arrow has two kernels for this, and measurements showed which is faster: `take` if many rows are dropped, or if values have a
    fixed width and no nulls; `filter` otherwise, above all for text if most rows remain.
    """

    indices: Ndarray
    row_count: int
    _indices: pa.Array
    _mask: pa.Array

    @classmethod
    def of(cls, keep: Ndarray) -> RowPick:
        """The rows for which `keep` is true. keep: one boolean per row of the batch."""
        indices = np.flatnonzero(keep).astype(np.int32)
        bits = pa.py_buffer(np.packbits(keep, bitorder="little"))
        mask = pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits])
        return cls(indices, len(keep), pa.array(indices), mask)

    def __len__(self) -> int:
        return len(self.indices)

    def narrowed(self, keep: Ndarray) -> RowPick:
        """The picked rows for which `keep` is true. keep: one boolean per picked row."""
        row_mask = np.zeros(self.row_count, bool)
        row_mask[self.indices[keep]] = True
        return RowPick.of(row_mask)

    def rows_of(self, array: pa.Array) -> pa.Array:
        """The picked rows. Arrow's take is faster than its filter if at most half of the rows are picked. For values of fixed
        width without nulls, take is faster if at least 1 % of the rows are dropped.
        """
        picked_count, total_count = len(self.indices), self.row_count
        is_fixed_width = pa.types.is_primitive(array.type) or pa.types.is_decimal(array.type)
        is_plain = array.null_count == 0 and is_fixed_width
        if picked_count * 2 <= total_count or (is_plain and (total_count - picked_count) * 100 >= total_count):
            return pc.take(array, self._indices, boundscheck=False)
        return array.filter(self._mask)
