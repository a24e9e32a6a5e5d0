"""From rows to files: how evenly, and how many files a reader skips."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from delta_py.layout.row_order import PIECES, Curve, RowOrder
from delta_py.layout.spill import SpilledRows

COLUMNS = [("a",), ("b",), ("c",), ("d",)]
FILES = 100


def uniform(rows: int, columns: int = 4) -> pa.Table:
    numbers = np.random.default_rng(7)
    return pa.table({name: numbers.integers(0, 10**9, rows) for (name,) in COLUMNS[:columns]})


def skipped(table: pa.Table, files: np.ndarray, count: int) -> list[float]:
    """For each column, the share of files that a search for one value skips by minima and maxima."""
    shares = []
    for column in table.columns:
        values = column.to_numpy()
        bounds = [(values[files == number].min(), values[files == number].max()) for number in range(count)]
        wanted_values = np.random.default_rng(1).choice(values, 500)
        shares.append(1 - np.mean([[low <= value <= high for low, high in bounds] for value in wanted_values]))
    return shares


def files_of(table: pa.Table, curve: Curve, count: int = FILES, columns: int = 4) -> np.ndarray:
    order = RowOrder.of(table, COLUMNS[:columns], curve, count)
    assert order.file_count == count
    return order.pieces(table.combine_chunks().to_batches()[0]) // PIECES


def test_z_order_skips_as_in_the_paper() -> None:
    """VLDB'20, section 4.4: 100 files, four uniform columns: at least 43 % for each, 54 % on average; 25 % sorted by one."""
    table = uniform(200_000)
    shares = skipped(table, files_of(table, Curve.Z_ORDER), FILES)
    assert min(shares) >= 0.43 and np.mean(shares) >= 0.54, shares
    by_one = np.empty(len(table), np.int64)
    by_one[np.argsort(table["a"].to_numpy())] = np.arange(len(table)) * FILES // len(table)
    assert np.mean(skipped(table, by_one, FILES)) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("curve", Curve)
def test_files_get_the_same_number_of_rows(curve: Curve) -> None:
    table = uniform(100_000)
    counts = np.bincount(files_of(table, curve, 10))
    assert len(counts) == 10 and counts.max() - counts.min() < 500


def test_rows_of_one_value_are_one_piece() -> None:
    table = pa.table({"a": pa.array([1] * 100)})
    assert len(set(files_of(table, Curve.HILBERT, 4, 1))) == 1


def test_no_more_files_than_rows_of_the_sample() -> None:
    """A log may claim that its files have 2 ** 53 bytes."""
    order = RowOrder.of(pa.table({"a": [3, 1, 2]}), COLUMNS[:1], Curve.Z_ORDER, 2**26)
    assert order.file_count == 3
    assert sorted(order.pieces(pa.record_batch({"a": [3, 1, 2]})) // PIECES) == [0, 1, 2]


def test_nested_column_whose_struct_is_null() -> None:
    rows = pa.table({"s": pa.array([{"x": 3}, None, {"x": None}, {"x": 1}], pa.struct([("x", pa.int64())]))})
    order = RowOrder.of(pa.table({"0": pa.array([1, 2, 3, 4])}), [("s", "x")], Curve.Z_ORDER, 1)
    places = order.pieces(rows.to_batches()[0])
    assert places[1] == places[2] <= places[3] < places[0]


def test_spilled_rows_come_back_by_pieces() -> None:
    with SpilledRows() as spilled:
        for piece, data in [(2, b"x" * 1000), (0, b"a"), (2, b""), (1, b"b")]:
            spilled.put(piece, data)
        assert [bytes(data) for data in spilled.take([0, 2, 9, 1])] == [b"a", b"x" * 1000, b"", b"b"]


def test_hilbert_curve_skips_five_points_more() -> None:
    table = uniform(200_000)
    z_order, hilbert = (np.mean(skipped(table, files_of(table, curve), FILES)) for curve in (Curve.Z_ORDER, Curve.HILBERT))
    assert hilbert >= z_order + 0.05
