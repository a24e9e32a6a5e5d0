"""Convert a caller's data to the Arrow layout that pydelta works with: dictionaries, run-end encoding, views, 64-bit offsets and
extensions become plain arrays of the same values.

    for piece in plain_batches(batch): ...      # piece.schema == plain_schema(batch.schema)

In: one batch in any Arrow layout. Out: its rows in order, as batches that are small in memory. A small dictionary, one run, or
views of one buffer can stand for any number of bytes, so the rows are divided by their size in the plain layout. Columns that are
already plain are not copied. Types: types/arrow_layouts.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import UnsupportedOperationError
from delta_py.parquet.values.buffers import Ndarray
from delta_py.types.arrow_layouts import is_geospatial, is_list_like, plain_schema, plain_type

# plain_batches divides rows into pieces. A piece has at most _MOST_ROWS rows, and about _MOST_BYTES bytes in the plain layout.
_MOST_ROWS = 1 << 17
_MOST_BYTES = 16 * 1024 * 1024
_INT32_MAX = 2**31 - 1  # the largest offset in the plain layout
_OFFSET_BYTES = 4
_VIEW_BYTES = 16

_DictionaryKey: TypeAlias = tuple[pa.DataType, int, int, tuple[int, ...]]


def plain_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of the batch in the plain layout.

    Raises UnsupportedOperationError for a value of more than 2 GiB, which no plain array can hold.
    """
    schema = plain_schema(batch.schema)
    if schema.equals(batch.schema):
        yield batch
        return
    converter = _PlainConverter()
    for start in range(0, batch.num_rows, _MOST_ROWS):
        rows = batch.slice(start, _MOST_ROWS)
        for piece in _pieces(rows, converter):
            columns = [converter.to_plain(column) for column in piece.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def with_small_offsets(array: pa.Array) -> pa.Array:
    """The same values with offsets that fit into 32 bits: the array is copied if it is a slice whose texts end after the first
    2 GiB of a larger array's bytes. Arrow refuses to cast such a slice to 32-bit offsets, however short its texts are."""
    if (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)) and len(array):
        end = np.frombuffer(array.buffers()[1], np.int64)[array.offset + len(array)]
        if end > _INT32_MAX:
            return array.take(pa.array(np.arange(len(array))))
    return array


def _pieces(batch: pa.RecordBatch, converter: _PlainConverter) -> Iterator[pa.RecordBatch]:
    """The rows of the batch in slices of about _MOST_BYTES in the plain layout, each of at least one row."""
    all_row_bytes = np.zeros(batch.num_rows, np.int64)
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        if not _is_plain(column.type):
            row_bytes = converter.row_bytes(column)
            _check_rows_fit(row_bytes, name)
            all_row_bytes += row_bytes
    # For each row: the bytes of the batch up to the end of the row.
    end_bytes = np.cumsum(all_row_bytes)
    start = 0
    while start < batch.num_rows:
        yielded_bytes = int(end_bytes[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(end_bytes, yielded_bytes + _MOST_BYTES, side="right")))
        yield batch.slice(start, end - start)
        start = end


def _check_rows_fit(row_bytes: Ndarray, name: str) -> None:
    """Raise UnsupportedOperationError for a value that no plain array can hold. row_bytes: the size of each row's value."""
    largest = int(row_bytes.max(initial=0))
    if largest > _INT32_MAX:
        raise UnsupportedOperationError(
            f"Column {name} of the data has a value of {largest} bytes, and a value can have {_INT32_MAX} at most. Nothing was "
            "written. Divide the value over several rows.",
            column=name,
            size=largest,
        )


@dataclass(slots=True)
class _PlainConverter:
    """Converts the values of one batch to the plain layout. Each dictionary is converted once, however many pieces the batch is
    divided into.

    _values: converted dictionaries. _dictionary_row_bytes: for each dictionary, the size of each of its values in bytes.
    """

    _values: dict[_DictionaryKey, pa.Array] = field(default_factory=dict)
    _dictionary_row_bytes: dict[_DictionaryKey, Ndarray] = field(default_factory=dict)

    # ------------------------------------------------------------ values

    def to_plain(self, array: pa.Array) -> pa.Array:
        """The same values in the type plain_type(array.type)."""
        kind, types = array.type, pa.types
        if _is_plain(kind):
            return array
        if isinstance(kind, pa.BaseExtensionType):
            return self.to_plain(array.storage)
        if types.is_dictionary(kind):
            return self.to_plain(self._dictionary_values(array.dictionary).take(array.indices))
        if types.is_run_end_encoded(kind):
            values, runs = _covered_runs(array)
            return self.to_plain(self._takeable(values).take(pa.array(runs)))
        if types.is_map(kind):
            starts, sizes = _spans(array)
            keys, items = self._elements(array.keys, starts, sizes), self._elements(array.items, starts, sizes)
            return pa.MapArray.from_arrays(_offsets(sizes), keys, items, type=plain_type(kind), mask=_null_mask(array))
        if is_list_like(kind):
            starts, sizes = _spans(array)
            values = self._elements(array.values, starts, sizes)
            return pa.ListArray.from_arrays(_offsets(sizes), values, type=plain_type(kind), mask=_null_mask(array))
        if types.is_struct(kind):
            children = [self.to_plain(array.field(number)) for number in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(plain_type(kind)), mask=_null_mask(array))
        return with_small_offsets(array).cast(plain_type(kind))

    def _elements(self, values: pa.Array, starts: Ndarray, sizes: Ndarray) -> pa.Array:
        """The values of lists one after another, in the plain layout, without those that belong to no list. starts, sizes: as
        from _spans."""
        starts, sizes = starts[sizes > 0], sizes[sizes > 0]
        if not len(sizes):
            return self.to_plain(values.slice(0, 0))
        values, starts = _covered_part(values, starts, sizes)
        # If each list begins where the one before it ends, the values need not be copied.
        if (starts[1:] == (starts + sizes)[:-1]).all():
            return self.to_plain(values)
        # The position of each element in its list, from 0 on.
        positions_in_list = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.to_plain(self._takeable(values).take(pa.array(np.repeat(starts, sizes) + positions_in_list)))

    def _takeable(self, values: pa.Array) -> pa.Array:
        """The values in a type that Arrow's `take` supports. Texts get 64-bit offsets, because together they may have any
        size."""
        types, kind = pa.types, values.type
        if isinstance(kind, pa.BaseExtensionType) and not is_geospatial(kind):
            return self._takeable(values.storage)
        if types.is_string_view(kind):
            return values.cast(pa.large_string())
        if types.is_binary_view(kind):
            return values.cast(pa.large_binary())
        return self.to_plain(values) if types.is_nested(kind) or types.is_run_end_encoded(kind) else values

    def _dictionary_values(self, dictionary: pa.Array) -> pa.Array:
        """The values of a dictionary in a type that Arrow's `take` supports, converted once."""
        key = _dictionary_key(dictionary)
        if key not in self._values:
            self._values[key] = self._takeable(dictionary)
        return self._values[key]

    # ------------------------------------------------------------ sizes

    def row_bytes(self, array: pa.Array) -> Ndarray:
        """The approximate size in bytes of each row in the plain layout; values below a null parent count too."""
        kind, types = array.type, pa.types
        if isinstance(kind, pa.BaseExtensionType):
            return self.row_bytes(array.storage)
        if types.is_dictionary(kind):
            sizes = np.append(self._dictionary_sizes(array.dictionary), _OFFSET_BYTES)  # the last size is that of nulls
            return sizes[_integers(array.indices, null=len(sizes) - 1)]
        if types.is_run_end_encoded(kind):
            values, runs = _covered_runs(array)
            return self.row_bytes(values)[runs]
        if types.is_map(kind):
            starts, sizes = _spans(array)
            return self._spanned_bytes(array.keys, starts, sizes) + self._spanned_bytes(array.items, starts, sizes)
        if is_list_like(kind):
            return self._spanned_bytes(array.values, *_spans(array)) + _OFFSET_BYTES
        if types.is_struct(kind):
            parts = [self.row_bytes(array.field(number)) for number in range(kind.num_fields)]
            return sum(parts, np.zeros(len(array), np.int64))
        return _text_lengths(array) if _is_text(kind) else np.full(len(array), _width_bytes(kind), np.int64)

    def _spanned_bytes(self, values: pa.Array, starts: Ndarray, sizes: Ndarray) -> Ndarray:
        """The bytes of each row's values, which begin at `starts`. sizes: the number of each row's values."""
        spanned = np.zeros(len(sizes), np.int64)
        has_elements = sizes > 0
        if has_elements.any():
            values, starts = _covered_part(values, starts[has_elements], sizes[has_elements])
            # The bytes before each value, and those of all values at the end.
            ends = np.append(0, np.cumsum(self.row_bytes(values)))
            spanned[has_elements] = ends[starts + sizes[has_elements]] - ends[starts]
        return spanned

    def _dictionary_sizes(self, dictionary: pa.Array) -> Ndarray:
        """The size in bytes of each value of a dictionary in the plain layout, computed once."""
        key = _dictionary_key(dictionary)
        if key not in self._dictionary_row_bytes:
            self._dictionary_row_bytes[key] = self.row_bytes(dictionary)
        return self._dictionary_row_bytes[key]


def _is_plain(kind: pa.DataType) -> bool:
    return is_geospatial(kind) or plain_type(kind).equals(kind)


def _dictionary_key(array: pa.Array) -> _DictionaryKey:
    """Identifies a dictionary of a batch by its type, position and buffers: pyarrow creates a new object at each access."""
    return array.type, array.offset, len(array), tuple(0 if buffer is None else buffer.address for buffer in array.buffers())


def _covered_runs(array: pa.RunEndEncodedArray) -> tuple[pa.Array, Ndarray]:
    """The values of the runs that the array covers, and for each row the number of its run."""
    ends = array.run_ends.to_numpy(zero_copy_only=False)
    runs = np.searchsorted(ends, np.arange(array.offset, array.offset + len(array)), side="right")
    first, end = (int(runs[0]), int(runs[-1]) + 1) if len(runs) else (0, 0)
    return array.values.slice(first, end - first), runs - first


def _spans(array: pa.Array) -> tuple[Ndarray, Ndarray]:
    """Where the elements of each list or map start in `values` (or `keys`), and how many it has; a null has none. If it has none,
    its start has no meaning."""
    types, kind = pa.types, array.type
    if not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if types.is_fixed_size_list(kind):
        starts = np.arange(array.offset, array.offset + len(array)) * kind.list_size
        sizes = np.full(len(array), kind.list_size, np.int64)
    elif types.is_list_view(kind) or types.is_large_list_view(kind):
        starts, sizes = _integers(array.offsets), _integers(array.sizes)
    else:
        offsets = _integers(array.offsets)
        starts, sizes = offsets[:-1], np.diff(offsets)
    nulls = _null_mask(array)
    return starts, sizes if nulls is None else np.where(nulls.to_numpy(zero_copy_only=False), 0, sizes)


def _covered_part(values: pa.Array, starts: Ndarray, sizes: Ndarray) -> tuple[pa.Array, Ndarray]:
    """The part of the values that the lists cover, and where each list starts in it. There is at least one list, and none is
    empty."""
    first = int(starts.min())
    return values.slice(first, int((starts + sizes).max()) - first), starts - first


def _integers(array: pa.Array, null: int = 0) -> Ndarray:
    """The integers as int64, with the number `null` in place of each null."""
    numbers: Ndarray = pc.fill_null(array.cast(pa.int64()), null).to_numpy(zero_copy_only=False)
    return numbers


def _offsets(sizes: Ndarray) -> pa.Array:
    """Arrow's offsets of lists with these numbers of elements, one after another."""
    return pa.array(np.append(0, np.cumsum(sizes)), pa.int32())


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _is_text(kind: pa.DataType) -> bool:
    """Whether values of the type are texts or bytes of any length, in any layout."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
    )


def _text_lengths(array: pa.Array) -> Ndarray:
    """The bytes of each text in the plain layout, with its offset."""
    types, kind = pa.types, array.type
    if not (types.is_string_view(kind) or types.is_binary_view(kind)):
        return _integers(pc.binary_length(array)) + _OFFSET_BYTES
    # Arrow has no kernel for the length of a view: it is the first of the view's four 32-bit numbers.
    views = array.buffers()[1]
    if views is None or not len(array):
        return np.full(len(array), _OFFSET_BYTES, np.int64)
    numbers = np.frombuffer(views, np.int32, count=(array.offset + len(array)) * _VIEW_BYTES // 4)
    lengths = numbers.reshape(-1, 4)[array.offset :, 0].astype(np.int64)
    nulls = _null_mask(array)
    if nulls is not None:
        lengths[nulls.to_numpy(zero_copy_only=False)] = 0
    return lengths + _OFFSET_BYTES


def _width_bytes(kind: pa.DataType) -> int:
    """The size in bytes of a value of fixed width."""
    return 0 if pa.types.is_null(kind) else max(1, int(kind.bit_width) // 8)
