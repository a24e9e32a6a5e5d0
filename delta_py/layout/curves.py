"""Positions on curves that go through all cells of a grid: cells that are near on the curve are near in every column.

    places = z_order(ranks, bits=12)        # or hilbert; rows sorted by it are close together in each of the columns

A grid has 2**bits cells along each column. The Hilbert curve has no jumps, so that a stretch of it is more compact than one of
the Z-order curve.
Source: G. M. Morton, A Computer Oriented Geodetic Data Base, 1966; J. Skilling, Programming the Hilbert Curve, 2004.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Cells: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MAX_PLACE_BITS = 62
"""The limit for all columns together: a position is a non-negative number of 64 bits."""


def z_order(ranks: Cells, bits: int) -> Cells:
    """The position of each row: the bits of its ranks interleaved, from the highest on, the first column first.

    ranks: (columns, rows), each from 0 to 2**bits - 1; columns * bits at most MAX_PLACE_BITS.
    """
    columns = len(ranks)
    spread = _spread(columns, bits)
    places = np.zeros(ranks.shape[1], np.int64)
    for column in range(columns):
        places |= spread[ranks[column]] << (columns - 1 - column)
    return places


def hilbert(ranks: Cells, bits: int) -> Cells:
    """The position of each row on the Hilbert curve. Arguments as in z_order."""
    cells = ranks.copy()
    columns, first_column = len(cells), cells[0]  # a view: changing `first_column` below changes `cells`
    for level in range(bits - 1, 0, -1):  # Skilling's "inverse undo": reflect or swap the bits below each level
        below = (1 << level) - 1
        for column in range(columns):
            is_set = (cells[column] >> level) & 1
            swapped = ((first_column ^ cells[column]) & below) * (1 - is_set)
            first_column ^= swapped | (below * is_set)
            if column:
                cells[column] ^= swapped
    for column in range(1, columns):  # Gray code
        cells[column] ^= cells[column - 1]
    flips = np.zeros_like(first_column)
    for level in range(bits - 1, 0, -1):
        flips ^= ((cells[-1] >> level) & 1) * ((1 << level) - 1)
    return z_order(cells ^ flips, bits)


def _spread(columns: int, bits: int) -> Cells:
    """For each number of `bits` bits: the number with its bits `columns` positions apart."""
    numbers = np.arange(1 << bits, dtype=np.int64)
    spread = np.zeros_like(numbers)
    for bit in range(bits):
        spread |= ((numbers >> bit) & 1) << (bit * columns)
    return spread
