"""Lists of files that may be too long for memory: tables that move to a temporary file when they grow.

    collect_batches(batches, schema) -> pa.Table        # in the order of arrival
    sorted_by(("size", "path"), batches, schema) -> pa.Table

A long list is stored in an Arrow file that is mapped into memory. The file has no name any more, so nothing remains on disk
however the process ends. Slices of the list are read from the file.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

_ROWS_IN_MEMORY = 100_000
_ROWS_AT_ONCE = 8_192  # the rows of one record batch in the file
_SAMPLES_PER_PORTION = 64  # more samples make the portions of sorted_by more equal
_Key = tuple[Any, ...]  # the values of a row in the columns that sort it


def collect_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, in_memory: int = _ROWS_IN_MEMORY) -> pa.Table:
    """The batches as one table. in_memory: a table with more rows than this is written to a file, in pieces of this many
    rows."""
    pieces = _pieces_of_rows(batches, schema, in_memory)
    first_piece = next(pieces, schema.empty_table())
    second_piece = next(pieces, None)
    return first_piece if second_piece is None else _table_in_file(chain((first_piece, second_piece), pieces), schema)


def sorted_by(
    keys: Sequence[str], batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, in_memory: int = _ROWS_IN_MEMORY
) -> pa.Table:
    """The rows ordered by the keys, which are unique and never null: the order does not depend on the order of arrival.

    in_memory: about this many rows are in memory at a time. Pieces are sorted one by one. Then the sorted pieces are cut at keys
    that divide all rows into about equal portions, and each portion is merged from all pieces and sorted.
    """
    pieces = _pieces_of_rows(batches, schema, in_memory)
    first_piece = _sorted_by_keys(next(pieces, schema.empty_table()), keys)
    second_piece = next(pieces, None)
    if second_piece is None:
        return first_piece
    # A run is a sorted piece in a file.
    runs = [_table_in_file([_sorted_by_keys(piece, keys)], schema) for piece in chain((first_piece, second_piece), pieces)]
    bounds = _portion_bounds(runs, keys, in_memory)
    cuts = [_cut_positions(run, keys, bounds) for run in runs]
    portions = (
        _sorted_by_keys(
            pa.concat_tables(
                [run.slice(cut[portion], cut[portion + 1] - cut[portion]) for run, cut in zip(runs, cuts, strict=True)]
            ),
            keys,
        )
        for portion in range(len(bounds) + 1)
    )
    return _table_in_file(portions, schema)


def _pieces_of_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Tables of at least `rows` rows, except for the last."""
    pending_batches: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        pending_batches.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(pending_batches, schema)
            pending_batches, count = [], 0
    if pending_batches:
        yield pa.Table.from_batches(pending_batches, schema)


def _sorted_by_keys(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in keys])


def _table_in_file(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows, in a temporary file that is mapped into memory. The file's name is deleted at once, so the file itself disappears
    when the table is not used any more."""
    descriptor, path = tempfile.mkstemp(prefix="pydelta-files-")
    os.close(descriptor)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for table in tables:
                writer.write_table(table.combine_chunks(), max_chunksize=_ROWS_AT_ONCE)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()
    finally:
        os.unlink(path)


# ---------------------------------------------------------------- portions


def _portion_bounds(runs: list[pa.Table], keys: Sequence[str], rows: int) -> list[_Key]:
    """Keys, ascending, that divide the rows of all runs into portions of about `rows` rows."""
    # A sampled key stands for `step` rows. So _SAMPLES_PER_PORTION of them stand for about `rows` rows, whichever run they are
    # from.
    sampled_keys: list[_Key] = []
    step = max(1, rows // _SAMPLES_PER_PORTION)
    for run in runs:
        sampled_keys.extend(_key_at(run, keys, place) for place in range(step, run.num_rows, step))
    sampled_keys.sort()
    return sampled_keys[_SAMPLES_PER_PORTION - 1 :: _SAMPLES_PER_PORTION]


def _cut_positions(run: pa.Table, keys: Sequence[str], bounds: list[_Key]) -> list[int]:
    """The positions at which a sorted run is cut into portions: from 0 to its number of rows, both included. A portion begins
    with the first row whose key is not less than the portion's bound."""
    places = range(run.num_rows)
    return [0, *(bisect_left(places, bound, key=lambda place: _key_at(run, keys, place)) for bound in bounds), run.num_rows]


def _key_at(run: pa.Table, keys: Sequence[str], place: int) -> _Key:
    """The key of the row at a position."""
    return tuple(run[name][place].as_py() for name in keys)
