"""Arrow arrays as numpy arrays and buffers, and back, without copying if possible."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ndarray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def fixed_values(array: pa.Array, dtype: Any) -> Ndarray:
    """The values of a fixed-width array as numpy's `dtype`, which has the same width; the value of a null is arbitrary."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, count=array.offset + len(array))[array.offset :]


def from_values(arrow: pa.DataType, values: Ndarray, nulls_of: pa.Array | None = None) -> pa.Array:
    """The inverse of fixed_values. nulls_of: an array of the same length whose nulls are copied."""
    bitmap = None if nulls_of is None else validity(nulls_of)
    return pa.Array.from_buffers(arrow, len(values), [bitmap, pa.py_buffer(np.ascontiguousarray(values))])


def validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bitmap whose first bit is the array's first row; None if no row is null."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    valid = pc.is_valid(array)
    assert valid.offset == 0
    return valid.buffers()[1]


def int32_offsets(array: pa.Array) -> Ndarray:
    """The offsets of a binary, string, list or map array: one more than the number of rows, not necessarily from 0."""
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        return np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(buffer, np.int32, count=array.offset + len(array) + 1)[array.offset :]


def list_parts(array: pa.Array) -> tuple[Ndarray, pa.Array]:
    """(offsets from 0, exactly the values between them) of a list or map array."""
    offsets = int32_offsets(array)
    start, end = int(offsets[0]), int(offsets[-1])
    values = array.values
    if start or end != len(values):
        values, offsets = values.slice(start, end - start), offsets - np.int32(start)
    return offsets, values


def bytes_of(array: pa.Array) -> tuple[Ndarray, Ndarray]:
    """(all bytes of the array's buffer as uint8, the rows' offsets into them) of a binary or string array."""
    buffer = array.buffers()[2]
    data = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    return data, int32_offsets(array)


def binary_array(data: Ndarray, offsets: Ndarray, bitmap: pa.Buffer | None = None) -> pa.Array:
    """A binary array from its bytes and the rows' offsets into them, one more than rows. bitmap: the validity of the rows; None
    if none is null."""
    offset_buffer = pa.py_buffer(np.ascontiguousarray(offsets, np.int32))
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [bitmap, offset_buffer, pa.py_buffer(np.ascontiguousarray(data))])


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without views: texts and bytes get buffers of their own, at any depth.

    If a file's writer used views (an Arrow schema in the footer records it), the file is decoded into views, and Arrow has
    no kernels to select rows of views.
    """
    plain_types = [_plain_type(kind) for kind in batch.schema.types]
    if plain_types == batch.schema.types:
        return batch
    arrays = [array if kind == array.type else array.cast(kind) for array, kind in zip(batch.columns, plain_types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without views."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if not pa.types.is_nested(kind):
        return kind
    children = [kind.field(n) for n in range(kind.num_fields)]
    if pa.types.is_map(kind):
        children = [kind.key_field, kind.item_field]
    plain_children = [child.with_type(_plain_type(child.type)) for child in children]
    if all(plain_child.type == child.type for plain_child, child in zip(plain_children, children, strict=True)):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(plain_children)
    if pa.types.is_map(kind):
        return pa.map_(*plain_children)
    if pa.types.is_large_list(kind):
        return pa.large_list(plain_children[0])
    return pa.list_(plain_children[0]) if pa.types.is_list(kind) else kind
