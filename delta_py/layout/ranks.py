"""Values as ranks: the share of a column's rows that come before a value, as a number of a given number of bits.

    column = ColumnRanks.of(sample, bits=12)
    column.ranks(values)                # 0 to 2**bits - 1, rising with the values

Ranks make columns of any type and any distribution comparable: each cell of a grid of ranks holds about the same number of rows.
Nulls come first. A value of many rows takes as many ranks as it has rows, and all its rows have the highest of them, so that
other values are not squeezed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.layout.curves import Cells


@dataclass(frozen=True, slots=True)
class ColumnRanks:
    """Gives the values of a column ranks from 0 to 2**bits - 1, by a sample of the column.

    The sorted sample, nulls first, is divided by 2**bits values at equal distances. nulls: how many of these are null. bounds:
    the others, ascending: numbers if these can represent the values, else texts or bytes.
    """

    bits: int
    bounds: np.ndarray[Any, Any] | pa.Array
    nulls: int

    @classmethod
    def of(cls, sample: pa.Array | pa.ChunkedArray, bits: int) -> ColumnRanks:
        """Fit to a sample of the column: values of any type that has an order, at least one row. The share of ranks for nulls is
        the share of rows that are null."""
        values = _comparable_values(sample)
        count, cells = len(sample), 1 << bits
        nulls = round(sample.null_count * cells / count)
        value_count = count - sample.null_count
        if isinstance(values, np.ndarray):
            values = np.sort(values[_is_valid(sample)])
            bounds: np.ndarray[Any, Any] | pa.Array = values[_spaced_positions(value_count, cells - nulls)]
        else:
            values = values.drop_null()
            bounds = values.take(pc.sort_indices(values)).take(pa.array(_spaced_positions(value_count, cells - nulls)))
        return cls(bits, bounds, nulls)

    def ranks(self, values: pa.Array | pa.ChunkedArray) -> Cells:
        """The rank of each value; 0 for a null. A value below all bounds gets the first rank after those of the nulls."""
        comparable = _comparable_values(values)
        if isinstance(comparable, np.ndarray):
            reached_counts = np.searchsorted(self.bounds, comparable, "right")
        else:
            reached_counts = _count_reached_bounds(self.bounds, comparable)
        last_rank = (1 << self.bits) - 1
        ranks = np.clip(self.nulls + reached_counts - 1, min(self.nulls, last_rank), last_rank)
        return np.where(_is_valid(values), ranks, 0).astype(np.int64)


def _is_valid(values: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each value is not null."""
    return np.asarray(values.is_valid())


def _spaced_positions(count: int, cells: int) -> Cells:
    """The positions of `cells` of `count` sorted values, at equal distances; some repeat if `count` is smaller."""
    return np.arange(cells if count else 0, dtype=np.int64) * count // max(1, cells)


def _comparable_values(values: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any] | pa.Array:
    """The values as numbers of the same order, or as texts or bytes. Nulls become any number, or stay null."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    arrow_type = values.type
    if pa.types.is_dictionary(arrow_type):
        return _comparable_values(values.dictionary_decode())
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):  # the nearest double suffices for an order of files
        return pc.fill_null(values.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type):
        return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(arrow_type):
        return pc.fill_null(values.view(pa.int32()), 0).to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(arrow_type):
        return pc.fill_null(values.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return values


def _count_reached_bounds(bounds: pa.Array, values: pa.Array) -> Cells:
    """The number of bounds that are not greater than each value; any number for nulls. Arrow compares bytes, as Spark does."""
    bounds_and_values = pa.concat_arrays([bounds.cast(values.type), values])
    order = pc.sort_indices(bounds_and_values).to_numpy()  # a stable sort: a bound comes before the values that equal it
    reached_counts = np.empty(len(order), np.int64)
    reached_counts[order] = np.cumsum(order < len(bounds))
    return reached_counts[len(bounds) :]
