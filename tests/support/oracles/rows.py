"""Compares rows as bags: the order does not count, but every value and the number of equal rows do.

Values are equal if they are the same value of their type: instants at microseconds, NaN equal to NaN, -0.0 different from 0.0,
decimals with their scale, maps without regard to the order of their entries, null different from empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Row = tuple[Hashable, ...]


def difference(expected: pa.Table, actual: pa.Table) -> str | None:
    """None if both have the same rows, by position of the columns; otherwise a text that shows some differences."""
    if expected.num_columns != actual.num_columns:
        return f"{expected.num_columns} columns expected, {actual.num_columns} read"
    expected_counts, actual_counts = Counter(rows(expected)), Counter(rows(actual))
    if expected_counts == actual_counts:
        return None
    return (
        f"{expected.num_rows} rows expected, {actual.num_rows} read; "
        f"missing: {_some(expected_counts - actual_counts)}; not expected: {_some(actual_counts - expected_counts)}"
    )


def rows(table: pa.Table) -> Iterator[Row]:
    if table.num_columns == 0:
        return iter([()] * table.num_rows)
    columns = ([value for chunk in column.chunks for value in comparable(chunk)] for column in table.columns)
    return zip(*columns, strict=True)


def comparable(array: pa.Array) -> list[Hashable]:
    """The values of an array as Python values that are equal exactly if the values are."""
    kind = array.type
    if isinstance(kind, pa.ExtensionType):
        return comparable(array.storage)
    if pt.is_dictionary(kind):
        return comparable(array.dictionary_decode())
    if pt.is_null(kind):
        return [None] * len(array)
    if pt.is_struct(kind):
        return _where_valid(array, zip(*(comparable(child) for child in array.flatten()), strict=True))
    if pt.is_map(kind):
        entries = list(zip(comparable(array.keys), comparable(array.items), strict=True))
        return _where_valid(array, (("map", *sorted(run, key=repr)) for run in _runs(array, entries)))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _where_valid(array, (("list", *run) for run in _runs(array, comparable(array.values))))
    return _leaf(array)


def _leaf(array: pa.Array) -> list[Hashable]:
    kind = array.type
    if pt.is_floating(kind):
        array = _float_bits(array)
    elif pt.is_timestamp(kind):
        # A finer value than microseconds would be lost: safe casting refuses it.
        array = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pt.is_date(kind):
        array = array.cast(pa.date32()).cast(pa.int32())
    elif pt.is_decimal(kind):
        return [None if value is None else f"{value:f}" for value in array.to_pylist()]
    elif pt.is_boolean(kind):
        return [None if value is None else ("true" if value else "false") for value in array.to_pylist()]
    values: list[Hashable] = array.to_pylist()
    return values


def _float_bits(array: pa.Array) -> pa.Array:
    """The bits of each number as a double, with one pattern for every NaN."""
    doubles = pc.if_else(pc.is_nan(array), float("nan"), array).cast(pa.float64())
    bits = doubles.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    return pa.array(bits, mask=np.asarray(doubles.is_null()))


def _runs(array: pa.Array, values: list[Hashable]) -> Iterator[list[Hashable]]:
    """For each element of a list or map array its run of child values."""
    if pt.is_fixed_size_list(array.type):
        size = array.type.list_size
        starts = range(array.offset * size, (array.offset + len(array)) * size, size)
        return (values[start : start + size] for start in starts)
    offsets = array.offsets.to_pylist()
    return (values[start:stop] for start, stop in pairwise(offsets))


def _where_valid(array: pa.Array, values: Iterable[Hashable]) -> list[Hashable]:
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _some(rows: Counter[Row]) -> str:
    shown = "; ".join(f"{count} x {str(row)[:300]}" for row, count in islice(rows.items(), 3))
    return f"{rows.total()} ({shown})" if shown else "none"
