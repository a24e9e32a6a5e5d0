"""The number of rows that are decoded at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from delta_py.parquet.batch_size import BatchSizer


def batch(rows: int, row_bytes: int) -> pa.RecordBatch:
    return pa.record_batch({"t": pa.array(["x" * (row_bytes - 4)] * rows)})


def test_first_batch_is_small_and_grows_to_the_bound_in_rows() -> None:
    sizer = BatchSizer(65_536, 32 << 20)
    assert sizer.start_range(1_000_000, 8_000_000, 0) == 4_096
    assert [piece.num_rows for piece in sizer.split_batch(batch(4_096, 12))] == [4_096]
    assert sizer.rows == 65_536


def test_rows_follow_what_batches_turn_out_to_be() -> None:
    sizer = BatchSizer(65_536, 1 << 20)
    assert sizer.start_range(1_000, 1_000, 0) == 4_096
    sizer.split_batch(batch(100, 10_000))
    assert 95 <= sizer.rows <= 105
    sizer.split_batch(batch(105, 100))
    assert sizer.rows > 1_000


def test_large_dictionary_shrinks_the_first_batch_moderately() -> None:
    sizer = BatchSizer(65_536, 32 << 20)
    assert sizer.start_range(1_000_000, 8_000_000, 1 << 20) == 64
    assert sizer.start_range(1_000_000, 8_000_000, 1 << 14) == 2_048


def test_next_file_starts_from_what_the_last_ones_rows_took() -> None:
    sizer = BatchSizer(65_536, 1 << 20)
    sizer.start_range(1_000, 100_000, 0)
    sizer.split_batch(batch(1_000, 1_000))
    alike, larger = sizer.start_range(1_000, 100_000, 0), sizer.start_range(1_000, 1_000_000, 0)
    assert 1_000 <= alike <= 1_050
    assert 100 <= larger <= 105


def test_oversized_batch_is_cut_without_loss_of_rows() -> None:
    full_batch = pa.record_batch({"x": np.arange(1_000), "t": ["y" * 100] * 1_000})
    pieces = BatchSizer(65_536, 10_000).split_batch(full_batch)
    assert max(piece.nbytes for piece in pieces) <= 10_000
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([full_batch]))


def test_single_row_larger_than_the_bound_comes_alone() -> None:
    pieces = BatchSizer(65_536, 1_000).split_batch(batch(3, 5_000))
    assert [piece.num_rows for piece in pieces] == [1, 1, 1]
