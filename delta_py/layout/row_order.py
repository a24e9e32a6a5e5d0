"""The order of a table's rows by several columns, and its division into files, fitted to a sample of the rows.

    order = RowOrder.of(sample, [("a",), ("b", "c")], Curve.HILBERT, files=8)     # driver
    pieces = order.pieces(batch)                                                  # executor: for each row, file * PIECES + piece

Files get about the same number of rows. Within a file rows are in the order of PIECES pieces, so that row groups skip, too.
Source: VLDB'20, section 4.4 (OPTIMIZE with Z-order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.layout.curves import MAX_PLACE_BITS, Cells, hilbert, z_order
from delta_py.layout.ranks import ColumnRanks
from delta_py.types.schema import Path

PIECES = 16  # ranges of the order in each file
_MAX_RANK_BITS = 12  # of a column's ranks: 4096 ranks


class Curve(Enum):
    Z_ORDER = "zorder"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of rows along a curve, divided into files, and each file into PIECES pieces.

    paths: the columns that order the rows. ranks: for each of them, the ranks of its values. cuts: the position on the curve
    where each piece except the first begins, ascending; their number is files * PIECES - 1.
    """

    paths: tuple[Path, ...]
    curve: Curve
    ranks: tuple[ColumnRanks, ...]
    cuts: Cells

    @classmethod
    def of(cls, sample: pa.Table, paths: Sequence[Path], curve: Curve, files: int) -> RowOrder:
        """Fit the order to a sample. sample: a column for each of the paths, in their order; at least one row. len(paths) is at
        most MAX_PLACE_BITS. files: the requested number; the result has at most one file per sampled row, because a table's
        target file size may be any number.
        """
        bits = min(_MAX_RANK_BITS, MAX_PLACE_BITS // len(paths), sample.num_rows.bit_length())  # no more ranks than sampled rows
        ranks = tuple(ColumnRanks.of(column, bits) for column in sample.columns)
        without_cuts = cls(tuple(paths), curve, ranks, np.empty(0, np.int64))
        positions = np.sort(without_cuts._curve_positions(sample.columns))
        pieces = min(files, sample.num_rows) * PIECES
        # The pieces are cut at equal distances in the sorted sample, so that they get about the same number of rows.
        return cls(without_cuts.paths, curve, ranks, positions[np.arange(1, pieces) * len(positions) // pieces])

    @property
    def file_count(self) -> int:
        return (len(self.cuts) + 1) // PIECES

    def pieces(self, batch: pa.RecordBatch) -> Cells:
        """The number of the piece that each row belongs to, counted through all files: file * PIECES + piece."""
        columns = [column_at(batch, path) for path in self.paths]
        return np.searchsorted(self.cuts, self._curve_positions(columns), "right").astype(np.int64)

    def _curve_positions(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Cells:
        """The position of each row on the curve. columns: the values of the paths."""
        ranks = np.stack([ranks.ranks(column) for ranks, column in zip(self.ranks, columns, strict=True)])
        curve = hilbert if self.curve is Curve.HILBERT else z_order
        return curve(ranks, self.ranks[0].bits)


def column_at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    """The values of a column that may be nested; null if a struct above it is null."""
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column
