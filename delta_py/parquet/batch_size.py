"""How many rows to decode at a time, so that a batch stays within the scan's bounds in rows and in bytes.

A footer contains the encoded size of columns, not the decoded size (a dictionary may hold one long text for
all rows). So reading starts from the footer's figures, with few rows, and then follows the size of the decoded batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

_FIRST_ROWS = 4_096  # of the first batch, before the decoded size of a row is known
_FEW_ROWS = 64  # dictionaries do not make the first batch of a range smaller than this
_GROWTH = 16  # a batch has at most this many times as many rows as the batch before


class BatchSizer:
    """Decides how many rows the next batch gets. start_range begins a range of rows, and split_batch is called with each batch.

    One sizer serves a whole scan: the row size of one file is the best estimate for the next file. max_rows, max_bytes: bounds of
    a batch. rows: the row count of the next batch.
    """

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max(1, max_rows)
        self._max_bytes = max(1, max_bytes)
        self._row_bytes: float | None = None  # decoded, of the last batch
        self._encoded_row_bytes = 0.0  # the footer's figure for the same rows
        self.rows = 0

    def start_range(self, row_count: int, byte_count: int, dictionary_bytes: int) -> int:
        """Begin a range of rows, and return the row count of its first batch, which `rows` has too.

        row_count, byte_count: the size of the range, in rows and in encoded bytes. dictionary_bytes: the size of the dictionaries
        of its texts; in the worst case each row repeats all of these bytes when it is decoded.
        """
        encoded_row_bytes = byte_count / max(1, row_count)
        row_bytes_guess, limit = encoded_row_bytes, min(_FIRST_ROWS, self._max_rows)
        if self._row_bytes is not None:
            # If these rows take more encoded bytes than those of the last range, the decoded size has probably grown as much.
            growth = encoded_row_bytes / max(self._encoded_row_bytes, 1e-9)
            row_bytes_guess, limit = self._row_bytes * max(1.0, growth), self._max_rows
        if dictionary_bytes:
            limit = min(limit, max(_FEW_ROWS, self._max_bytes // dictionary_bytes))
        self._encoded_row_bytes = encoded_row_bytes
        self.rows = self._fitting_rows(row_bytes_guess, limit)
        return self.rows

    def split_batch(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Split a decoded batch into pieces within the bounds (a single row may exceed them), and set `rows` for
        the next batch."""
        if batch.num_rows == 0:
            return []
        self._row_bytes = batch.nbytes / batch.num_rows
        self.rows = self._fitting_rows(self._row_bytes, min(self._max_rows, self.rows * _GROWTH))
        piece_rows = self._fitting_rows(self._row_bytes, self._max_rows)
        return [batch.slice(start, piece_rows) for start in range(0, batch.num_rows, piece_rows)]

    def _fitting_rows(self, row_bytes: float, limit: int) -> int:
        """How many rows of this size fit into a batch: at least 1, at most `limit`."""
        # A row can take no bytes: 1e-9 avoids the division by zero.
        return max(1, min(limit, int(self._max_bytes / max(row_bytes, 1e-9))))


def dictionary_bytes(row_group: Any, leaves: Iterable[int]) -> int:
    """The approximate size in bytes of these columns' (text or binary) dictionaries: no single value is larger.

    row_group: pyarrow.parquet.RowGroupMetaData.
    """
    total = 0
    for leaf in leaves:
        chunk = row_group.column(leaf)
        if chunk.has_dictionary_page and chunk.dictionary_page_offset and chunk.total_compressed_size > 0:
            # The page is compressed in the file; the whole chunk's ratio is an estimate for it.
            page_bytes = max(0, chunk.data_page_offset - chunk.dictionary_page_offset)
            total += int(page_bytes * max(1.0, chunk.total_uncompressed_size / chunk.total_compressed_size))
    return total
