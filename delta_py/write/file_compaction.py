"""Many files as one: the rows of a bin, written anew in their order (executor).

    written = compact(files, rewrite, task=3)          # one add, and a remove for each file

The rows keep their ids where the table tracks rows. As their order is kept, it is known where each row has gone: `moved_rows`
says it of rows that somebody else has deleted meanwhile.
Nothing here touches the log; the caller commits.
Protocol: Add File and Remove File; Deletion Vectors; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyroaring import BitMap64

from delta_py.parquet.row_counts import stored_row_count
from delta_py.prefetch import ahead
from delta_py.protocol.deletion_vectors import from_row_indexes, read_deletion_vector, row_indexes
from delta_py.scan.scan_state import ScanFile
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles, delete_files, write_unchanged
from delta_py.write.rewrite import Rewrite, live_batches, removed, wrong_row_count


def compact(files: Sequence[ScanFile], rewrite: Rewrite, *, task: int = 0) -> WrittenFiles:
    """Write the live rows of files of one partition to one file; to none if no row is left.

    rewrite: of a table state whose target_file_bytes no file reaches. Memory: two batches and a row group. Raises
    RowCountMismatchError for files that have not the rows that their statistics say; nothing stays behind then.
    """
    batches = ahead(live_batches(files, rewrite))  # one core decodes, another encodes
    written = write_unchanged(rewrite.state, batches, task=task)
    mismatch = wrong_row_count(files, written.row_count)
    if mismatch is not None:
        delete_files(rewrite.state.store, written.new_paths)
        raise mismatch
    removes = tuple(removed(file, data_change=rewrite.state.data_change) for file in files)
    return WrittenFiles.of_all([written, WrittenFiles(removes=removes)])


def moved_rows(store: ObjectStore, files: Sequence[ScanFile], live: Sequence[ScanFile]) -> BitMap64 | None:
    """Where the rows are, in the file that `compact` made of `files`, that have been deleted since; None where rows came back.

    live: the same files with the deletion vectors that they have now.
    """
    moved, offset = BitMap64(), 0
    for before, now in zip(files, live, strict=True):
        assert before.path == now.path
        gone, gone_now = _vector(store, before), _vector(store, now)
        if not gone <= gone_now:
            return None
        row_count = stored_row_count(store, before.path, before.size_bytes)
        left_out = _within(gone, row_count)
        since = _within(gone_now - gone, row_count)
        moved |= from_row_indexes(since - np.searchsorted(left_out, since) + offset)
        offset += row_count - len(left_out)
    return moved


def _vector(store: ObjectStore, file: ScanFile) -> BitMap64:
    return BitMap64() if file.deletion_vector is None else read_deletion_vector(store, file.deletion_vector)


def _within(rows: BitMap64, row_count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rising places; those beyond the file are met in vectors, and mean nothing."""
    places = row_indexes(rows)
    return places[: int(np.searchsorted(places, row_count))]


def for_compaction(rewrite: Rewrite) -> Rewrite:
    """The same for rows that are only arranged anew, a file a bin."""
    state = replace(rewrite.state, data_change=False, target_file_bytes=2**62, max_records_per_file=None)
    return replace(rewrite, state=state)
