"""The work of the tasks that write the rows of a bin (files that are compacted together) in another order, to several new files.

A sample of the rows tells how to cut the bin into pieces; the rows of each piece go to one file.

    sample = sample_columns(files, arrangement, every=80)             # a RowOrder is fitted to the sample
    for piece, rows in split_rows(files, arrangement, order): ...     # goes to the task that writes the piece's file
    written = write_pieces(batches, arrangement, task=3)              # the pieces of one file, by their numbers

The rows keep their ids if the table tracks rows. Nothing here writes to the log; the caller commits.
Protocol: Add File and Remove File; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.layout.row_order import RowOrder, column_at
from delta_py.parquet.file_reader import read_files
from delta_py.prefetch import prefetch
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import for_rearranged_rows
from delta_py.scan.packing import equal_runs
from delta_py.scan.planning import ScanOptions, make_state
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.types.schema import Path, StructType
from delta_py.write.data_files import WrittenFiles, combine_batches, write_unchanged
from delta_py.write.rewrite import Rewrite, live_batches

# Rows are sorted in batches of about this size.
_MOST_GATHERED_BYTES = 64 << 20
_MOST_GATHERED_ROWS = 1 << 21
# About the size of the batches that split_rows yields.
_PIECE_BYTES = 8 << 20
# Characters of a text, or bytes, in a sample.
_SAMPLED_LETTERS = 256
# About the largest share of file_shares, if the files themselves are not larger.
_SHARE_BYTES = 256 << 20
_FILE_SIZE_TOLERANCE = 1.5  # how much larger than its target a file may get before the remaining rows go to another file


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How rows are written, and the columns that order them; every task gets it.

    rewrite: how the rows are read and written. paths: the columns or fields that order the rows, by logical names.
    ordering_columns: the scan that reads only these columns.
    """

    rewrite: Rewrite
    paths: tuple[Path, ...]
    ordering_columns: ScanState

    @classmethod
    def of(cls, config: TableConfig, rewrite: Rewrite, paths: Sequence[Path], target_bytes: int) -> Arrangement:
        """How tasks write rows in the order of some columns. paths: the columns or fields, as the schema spells them; none is a
        partition column. rewrite: one for rows that are only moved. target_bytes: about the size of the new files."""
        state = for_rearranged_rows(rewrite.state, target_file_bytes=int(target_bytes * _FILE_SIZE_TOLERANCE))
        options = ScanOptions(timezone=state.time_zone)
        columns = make_state(config, state.store, _select_paths(config.schema, paths), None, options)
        return cls(replace(rewrite, state=state), tuple(paths), columns)


@dataclass(frozen=True, slots=True)
class SampledBin:
    """The files of a bin whose rows are sampled. every: a sample takes every n-th row of the files; this is n."""

    files: tuple[ScanFile, ...]
    every: int


def file_shares(files: Sequence[ScanFile], tasks: int) -> list[tuple[ScanFile, ...]]:
    """Split the files, in their order, into shares of about equal size, one for each task that splits rows; more shares if
    they are large. Each share's rows are cut into all pieces, so small shares would produce very many pieces."""
    end_bytes = np.cumsum([file.size_bytes for file in files])
    count = max(min(tasks, len(files)), int(end_bytes[-1]) // _SHARE_BYTES)
    # The number of each file's share.
    share_of_file = np.minimum((end_bytes - 1) * count // max(1, int(end_bytes[-1])), count - 1)
    return [tuple(files[start:stop]) for start, stop in equal_runs(share_of_file)]


def _select_paths(struct: StructType, paths: Sequence[Path]) -> StructType:
    """The struct with only the fields that the paths lead to."""
    fields = []
    for field in struct.fields:
        inner_paths = [path[1:] for path in paths if path[0] == field.name]
        # An empty path is the field itself; then the field is needed as a whole.
        if inner_paths and () not in inner_paths:
            assert isinstance(field.data_type, StructType)
            field = replace(field, data_type=_select_paths(field.data_type, inner_paths))
        if inner_paths:
            fields.append(field)
    return StructType(tuple(fields))


def sample_columns(files: Sequence[ScanFile], arrangement: Arrangement, every: int) -> pa.Table:
    """Every n-th live row of the files (n is `every`), with a column for each of arrangement.paths, named 0, 1, and so on. Texts
    and bytes are cut to their beginnings, because the driver holds the samples of all bins."""
    names = [str(number) for number in range(len(arrangement.paths))]
    # skipped_rows: how many rows at the beginning of the batch come before its first sampled row.
    parts, skipped_rows = list[pa.RecordBatch](), 0
    for batch in read_files(arrangement.ordering_columns, files):
        sampled_rows = np.arange(skipped_rows, batch.num_rows, every)
        skipped_rows = (skipped_rows - batch.num_rows) % every
        columns = [_cut_texts(column_at(batch, path).take(pa.array(sampled_rows))) for path in arrangement.paths]
        parts.append(pa.RecordBatch.from_arrays(columns, names=names))
    return pa.Table.from_batches(parts) if parts else pa.table({name: pa.nulls(0) for name in names})


def _cut_texts(values: pa.Array) -> pa.Array:
    """Texts and bytes, cut to a length that still distinguishes nearly all of them. A cut value sorts before the value that it
    was cut from."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, _SAMPLED_LETTERS)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return pc.binary_slice(values, 0, _SAMPLED_LETTERS)
    return values


def split_rows(files: Sequence[ScanFile], arrangement: Arrangement, order: RowOrder) -> Iterator[tuple[int, pa.RecordBatch]]:
    """All live rows of the files, as pairs: the number of a piece, and rows that belong to it. order: tells each row's piece.
    Memory: three times _MOST_GATHERED_BYTES, and two batches."""
    batches = prefetch(live_batches(files, arrangement.rewrite))  # one core decodes, another sorts
    for rows in combine_batches(batches, _MOST_GATHERED_BYTES, _MOST_GATHERED_ROWS):
        piece_numbers = order.pieces(rows)
        by_piece = np.argsort(piece_numbers, kind="stable")
        rows, piece_numbers = rows.take(pa.array(by_piece)), piece_numbers[by_piece]
        for start, stop in equal_runs(piece_numbers):
            # As many rows as have about _PIECE_BYTES.
            step = max(1, (stop - start) * _PIECE_BYTES // max(1, rows.slice(start, stop - start).nbytes))
            for first in range(start, stop, step):
                yield int(piece_numbers[start]), rows.slice(first, min(step, stop - first))


def write_pieces(batches: Iterable[pa.RecordBatch], arrangement: Arrangement, *, task: int) -> WrittenFiles:
    """Write one file, or several if there are many more rows than the sample predicted. Memory: a batch and a row group."""
    return write_unchanged(arrangement.rewrite.state, batches, task=task)


def rows_to_bytes(rows: pa.RecordBatch) -> bytes:
    """Serialize rows to send them to another task."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def rows_from_bytes(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """The inverse of rows_to_bytes."""
    return pa.ipc.open_stream(data).read_next_batch()
