"""Positions on the two curves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.layout.curves import Cells, hilbert, z_order

GRIDS = [(1, 6), (2, 4), (3, 3), (4, 2), (5, 2), (2, 1)]


def grid(columns: int, bits: int) -> Cells:
    """Every cell."""
    axes = np.meshgrid(*[np.arange(1 << bits)] * columns, indexing="ij")
    return np.stack([axis.ravel() for axis in axes]).astype(np.int64)


@pytest.mark.parametrize("curve", [z_order, hilbert])
@pytest.mark.parametrize(("columns", "bits"), GRIDS)
def test_each_cell_has_a_place_of_its_own(curve: Callable[[Cells, int], Cells], columns: int, bits: int) -> None:
    assert sorted(curve(grid(columns, bits), bits)) == list(range(1 << columns * bits))


@pytest.mark.parametrize(("columns", "bits"), GRIDS)
def test_hilbert_curve_goes_from_each_cell_to_a_neighbour(columns: int, bits: int) -> None:
    cells = grid(columns, bits)
    along = cells[:, np.argsort(hilbert(cells, bits))]
    assert (np.abs(np.diff(along, axis=1)).sum(axis=0) == 1).all()


def test_z_order_takes_bits_by_turns_from_the_highest() -> None:
    assert z_order(np.array([[0b10], [0b01], [0b11]]), 2).tolist() == [0b101_011]


@given(st.lists(st.tuples(*[st.integers(0, 4095)] * 4), min_size=1, max_size=50))
def test_highest_places_stay_within_64_bits(rows: list[tuple[int, ...]]) -> None:
    ranks = np.array(rows, np.int64).T
    for curve in (z_order, hilbert):
        places = curve(ranks.copy(), 12)
        assert places.min() >= 0 and places.max() < 1 << 48
        assert len(set(places.tolist())) == len(set(rows))
