"""Compact many files into one: the rows of a bin, rewritten in their order (executor).

    written = compact(files, rewrite, task=3)          # one add, and a remove for each file

The rows keep their ids if the table tracks rows. Because the order of the rows is kept, the new position of each row is known:
`positions_of_new_deletions` returns it for rows that another writer has deleted in the meantime.
Nothing here writes to the log; the caller commits.
Protocol: Add File and Remove File; Deletion Vectors; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from delta_py.parquet.row_counts import read_row_count
from delta_py.prefetch import prefetch
from delta_py.protocol.deletion_vectors import from_row_indexes, read_deletion_vector, row_indexes
from delta_py.row_rules.write_state import for_rearranged_rows
from delta_py.scan.scan_state import ScanFile
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles, delete_files, write_unchanged
from delta_py.write.rewrite import Rewrite, live_batches, remove_action_of, wrong_row_count


def compact(
    files: Sequence[ScanFile], rewrite: Rewrite, *, task: int = 0, count_rows: Callable[[int], None] | None = None
) -> WrittenFiles:
    """Write the live rows of files of one partition to one file; to none if no row remains.

    rewrite: from for_compaction, so that no file reaches the target size and all rows go to one file. count_rows: called with the
    row count of each batch, to report progress. Memory: two batches and a row group. Raises RowCountMismatchError if the files do
    not have as many rows as their statistics say. Then the new file is deleted.
    """
    batches = prefetch(live_batches(files, rewrite))  # one core decodes, another encodes
    batches = batches if count_rows is None else report_row_counts(batches, count_rows)
    written = write_unchanged(rewrite.state, batches, task=task)
    mismatch = wrong_row_count(files, written.row_count)
    if mismatch is not None:
        delete_files(rewrite.state.store, written.new_paths)
        raise mismatch
    removes = tuple(remove_action_of(file, data_change=rewrite.state.data_change) for file in files)
    return WrittenFiles.of_all([written, WrittenFiles(removes=removes)])


def report_row_counts(batches: Iterable[pa.RecordBatch], count_rows: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    """The batches; calls count_rows with the number of rows of each one when the next one is requested."""
    for batch in batches:
        yield batch
        count_rows(batch.num_rows)


def positions_of_new_deletions(store: ObjectStore, files: Sequence[ScanFile], live_files: Sequence[ScanFile]) -> BitMap64 | None:
    """The positions, in the file that `compact` made of `files`, of rows that were deleted since then; None if rows were
    restored.

    live_files: the same files with their current deletion vectors.
    """
    # offset: the position of the file's first remaining row in the new file.
    new_positions, offset = BitMap64(), 0
    for old_file, live_file in zip(files, live_files, strict=True):
        assert old_file.path == live_file.path
        deleted_rows, deleted_rows_now = _read_vector(store, old_file), _read_vector(store, live_file)
        if not deleted_rows <= deleted_rows_now:
            return None  # a row that the new file lacks is live again
        row_count = read_row_count(store, old_file.path, old_file.size_bytes)
        skipped_rows = _positions_in_file(deleted_rows, row_count)
        new_deletions = _positions_in_file(deleted_rows_now - deleted_rows, row_count)
        # A row stands as many positions earlier in the new file as rows before it were skipped.
        new_positions |= from_row_indexes(new_deletions - np.searchsorted(skipped_rows, new_deletions) + offset)
        offset += row_count - len(skipped_rows)
    return new_positions


def _read_vector(store: ObjectStore, file: ScanFile) -> BitMap64:
    """The positions of the file's deleted rows; empty if it has no deletion vector."""
    return BitMap64() if file.deletion_vector is None else read_deletion_vector(store, file.deletion_vector)


def _positions_in_file(rows: BitMap64, row_count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The positions in ascending order. Vectors may contain positions after the end of the file; these mean nothing, and are left
    out."""
    places = row_indexes(rows)
    return places[: int(np.searchsorted(places, row_count))]


def for_compaction(rewrite: Rewrite) -> Rewrite:
    """The same rewrite for rows that are only rearranged, with one file for each bin: no file reaches the target size."""
    return replace(rewrite, state=for_rearranged_rows(rewrite.state, target_file_bytes=2**62))
