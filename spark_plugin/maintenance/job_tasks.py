"""The functions that the tasks of OPTIMIZE and of deep clones run. Each new worker process imports this module and its imports,
so it has only what tasks need.

OPTIMIZE rewrites bins: groups of files whose rows go into the same new files. If the rows are sorted, a shuffle brings the rows
of each new file into one task. They travel in pieces, PIECES for each file, and each piece is a range of the order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from delta_py.layout.row_order import PIECES, RowOrder
from delta_py.scan.scan_state import ScanFile
from delta_py.storage.store import ObjectStore
from delta_py.write.arranging import (
    Arrangement,
    SampledBin,
    rows_from_bytes,
    rows_to_bytes,
    sample_columns,
    split_rows,
    write_pieces,
)
from delta_py.write.data_files import WrittenFiles
from delta_py.write.file_compaction import compact
from delta_py.write.file_copies import Copy, copy_files
from delta_py.write.rewrite import Rewrite
from spark_plugin.dml.dml_tasks import task_number
from spark_plugin.tasks.task_answers import to_text
from spark_plugin.tasks.tcp_nodelay import answer_promptly

Batches = Iterable[pa.RecordBatch]

SHARE, PIECE, ROWS, FILE, ANSWER = "share", "piece", "rows", "file", "answer"
"""Columns of the rows that tasks get and return; see row_splitter and piece_writer."""


def copier(source: ObjectStore, target: ObjectStore) -> Callable[[Sequence[Copy]], int]:
    """Return a function that copies files of one table to another, and returns how many it copied."""

    def run(copies: Sequence[Copy]) -> int:
        copy_files(source, target, copies)
        return len(copies)

    return run


def bin_compactor(rewrite: Rewrite) -> Callable[[Sequence[ScanFile]], WrittenFiles]:
    """Return a function that writes the rows of a bin's files to one file."""

    def run(files: Sequence[ScanFile]) -> WrittenFiles:
        return compact(files, rewrite, task=task_number())

    return run


def bin_sampler(arrangement: Arrangement) -> Callable[[SampledBin], pa.Table]:
    """Return a function that reads a sample of the columns that define the order of a bin's rows."""

    def run(part: SampledBin) -> pa.Table:
        return sample_columns(part.files, arrangement, part.every)

    return run


def row_splitter(arrangement: Arrangement, orders: Sequence[RowOrder]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow, which splits rows by the new file that they belong to. orders: by the number of a bin.

    In: SHARE, (number of a bin, number of its first new file, files to read), pickled by the driver. Out: FILE, the number of the
    new file among those of all bins; PIECE, the number of the piece within the bin, PIECES for each file; ROWS as bytes.
    """

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        answer_promptly()
        for batch in batches:
            for share in batch.column(0):
                number, first_file, files = pickle.loads(share.as_py())
                for piece, rows in split_rows(files, arrangement, orders[number]):
                    file = first_file + piece // PIECES
                    columns = [pa.array([file], pa.int32()), pa.array([piece], pa.int32()), pa.array([rows_to_bytes(rows)])]
                    yield pa.RecordBatch.from_arrays(columns, names=[FILE, PIECE, ROWS])

    return run


def piece_writer(arrangement: Arrangement) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow. In: the output of row_splitter, sorted by FILE and PIECE. Out: FILE, and as ANSWER the
    WrittenFiles of this file as text."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        """Write one file of each group of pieces that follow each other."""
        answer_promptly()
        # Pairs of FILE and ROWS; PIECE, between them, has only sorted them.
        rows = (row for batch in batches for row in zip(batch.column(0).to_pylist(), batch.column(2), strict=True))
        for file, rows_of_file in groupby(rows, key=lambda row: row[0]):
            pieces = (rows_from_bytes(data.as_buffer()) for _, data in rows_of_file)
            written = write_pieces(pieces, arrangement, task=file)
            yield pa.record_batch({FILE: pa.array([file], pa.int32()), ANSWER: pa.array([to_text(written)], pa.string())})

    return run
