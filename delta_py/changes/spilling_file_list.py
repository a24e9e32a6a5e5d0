"""Lists of files that may be too long for memory: tables that move to a temporary file when they grow.

    collected(batches, schema) -> pa.Table        # in the order of arrival
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
_ROWS_AT_ONCE = 8_192  # of one record batch in the file
_SAMPLES_OF_A_RUN = 64  # more samples make the portions of sorted_by more equal
_Key = tuple[Any, ...]


def collected(batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, in_memory: int = _ROWS_IN_MEMORY) -> pa.Table:
    """The batches as one table. in_memory: a table with more rows is written to a file, in pieces of this many rows."""
    pieces = _pieces(batches, schema, in_memory)
    first = next(pieces, schema.empty_table())
    second = next(pieces, None)
    return first if second is None else _in_file(chain((first, second), pieces), schema)


def sorted_by(
    keys: Sequence[str], batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, in_memory: int = _ROWS_IN_MEMORY
) -> pa.Table:
    """The rows ordered by the keys, which are unique and never null: the order does not depend on the order of arrival.

    in_memory: about this many rows are in memory at a time. Pieces are sorted one by one. Then the sorted pieces are cut at keys
    that divide all rows into about equal portions, and each portion is merged from all pieces and sorted.
    """
    pieces = _pieces(batches, schema, in_memory)
    first = _sorted(next(pieces, schema.empty_table()), keys)
    second = next(pieces, None)
    if second is None:
        return first
    # A run is a sorted piece in a file.
    runs = [_in_file([_sorted(piece, keys)], schema) for piece in chain((first, second), pieces)]
    bounds = _portion_bounds(runs, keys, in_memory)
    cuts = [_cuts(run, keys, bounds) for run in runs]
    portions = (
        _sorted(pa.concat_tables([run.slice(cut[i], cut[i + 1] - cut[i]) for run, cut in zip(runs, cuts, strict=True)]), keys)
        for i in range(len(bounds) + 1)
    )
    return _in_file(portions, schema)


def _pieces(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Tables of at least `rows` rows, except for the last."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(waiting, schema)
            waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _sorted(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in keys])


def _in_file(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows in a file without a name, mapped into memory."""
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
    """Ascending keys with about `rows` rows of all runs between two of them."""
    # A sampled key stands for `step` rows. So _SAMPLES_OF_A_RUN of them stand for about `rows` rows, whichever run they are from.
    sampled: list[_Key] = []
    step = max(1, rows // _SAMPLES_OF_A_RUN)
    for run in runs:
        sampled.extend(_key(run, keys, place) for place in range(step, run.num_rows, step))
    sampled.sort()
    return sampled[_SAMPLES_OF_A_RUN - 1 :: _SAMPLES_OF_A_RUN]


def _cuts(run: pa.Table, keys: Sequence[str], bounds: list[_Key]) -> list[int]:
    """The positions at which a sorted run is cut into portions: from 0 to its number of rows, both included. A portion begins
    with the first row whose key is not less than the portion's bound."""
    places = range(run.num_rows)
    return [0, *(bisect_left(places, bound, key=lambda place: _key(run, keys, place)) for bound in bounds), run.num_rows]


def _key(run: pa.Table, keys: Sequence[str], place: int) -> _Key:
    return tuple(run[name][place].as_py() for name in keys)
