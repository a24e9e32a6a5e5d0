"""Convert Python and numpy values to Arrow values without pandas.

If pandas is installed, pyarrow imports it for the first value that it converts from Python or numpy (`pa.array`, `pa.scalar`,
`pc.equal(column, 3)`). That import takes longer than everything else in planning a scan of a small table. So, between the log and
the plan, the common types of values are built from bytes instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

_NUMBERS: dict[pa.DataType, np.dtype[Any]] = {
    kind: np.dtype(str(kind)) for kind in (pa.int64(), pa.int32(), pa.int16(), pa.int8())
}
_ARROW_TYPES = {number: kind for kind, number in _NUMBERS.items()}
_OFFSETS: dict[pa.DataType, np.dtype[Any]] = {pa.string(): np.dtype("int32"), pa.large_string(): np.dtype("int64")}


def array(values: Collection[Any], kind: pa.DataType) -> Any:
    """The array that pa.array(values, kind) returns, with its errors, but without pandas for integers, texts, booleans and nulls.
    kind: the Arrow type."""
    types = set(map(type, values))
    if kind in _NUMBERS and types <= {int, type(None)}:
        converted = _integer_array(values, kind)
    elif kind in _OFFSETS and types <= {str, type(None)}:
        converted = _text_array(values, kind)
    elif kind == pa.bool_() and types <= {bool}:
        converted = from_numpy(np.array([*values], np.bool_))
    else:
        converted = pa.nulls(len(values), kind) if types <= {type(None)} else None
    # pa.array converts all other values, and raises the error for values that do not fit.
    return pa.array(values, kind) if converted is None else converted


def _integer_array(values: Collection[int | None], kind: pa.DataType) -> Any:
    """An array of integers; None if a number does not fit."""
    limits = np.iinfo(_NUMBERS[kind])
    present_values = [value for value in values if value is not None]
    if present_values and not limits.min <= min(present_values) <= max(present_values) <= limits.max:
        return None
    numbers = np.array([0 if value is None else value for value in values], limits.dtype)
    has_nulls = len(present_values) < len(numbers)
    return from_numpy(numbers, np.array([value is None for value in values], np.bool_) if has_nulls else None)


def _text_array(values: Collection[str | None], kind: pa.DataType) -> Any:
    """An array of texts; None if they are too long for one array."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.array([0, *accumulate(map(len, encoded))], np.int64)
    if offsets[-1] > np.iinfo(_OFFSETS[kind]).max:
        return None
    nulls = [value is None for value in values]
    offset_bytes = pa.py_buffer(offsets.astype(_OFFSETS[kind]))
    return pa.Array.from_buffers(kind, len(encoded), [_validity_bitmap(nulls), offset_bytes, pa.py_buffer(b"".join(encoded))])


def from_numpy(values: np.ndarray[Any, np.dtype[Any]], nulls: np.ndarray[Any, np.dtype[np.bool_]] | None = None) -> Any:
    """An array of signed integers or booleans. Values are null where `nulls` is true."""
    bitmap = None if nulls is None else _validity_bitmap(nulls)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap, _pack_bits(values)])
    return pa.Array.from_buffers(_ARROW_TYPES[values.dtype], len(values), [bitmap, pa.py_buffer(np.ascontiguousarray(values))])


def _validity_bitmap(nulls: Iterable[bool]) -> pa.Buffer | None:
    """Arrow's bitmap of valid values; None if no value is null."""
    is_null = np.asarray(nulls, np.bool_)
    return _pack_bits(~is_null) if is_null.any() else None


def _pack_bits(values: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer:
    """One bit for each boolean, in Arrow's order: the first value is the lowest bit."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def scalar(value: Any, kind: pa.DataType) -> Any:
    """The scalar that pa.scalar(value, kind) returns, but without pandas for the values that `array` converts without it."""
    return array([value], kind)[0]


def to_numpy(values: pa.Array) -> Any:
    """Convert numbers or booleans to numpy; numbers are not copied. Raises pa.ArrowInvalid if there are nulls."""
    if values.null_count or not (values.type in _NUMBERS or values.type == pa.bool_()):
        return values.to_numpy()  # raises for nulls
    end, buffer = values.offset + len(values), values.buffers()[1] or b""
    if values.type == pa.bool_():
        return np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")[values.offset :].view(np.bool_)
    return np.frombuffer(buffer, _NUMBERS[values.type], end)[values.offset :]


# The nulls have no type and no values, so Arrow fills these masks without Python values.
def all_true(count: int) -> pa.BooleanArray:
    return pa.nulls(count).is_null()


def all_false(count: int) -> pa.BooleanArray:
    return pa.nulls(count).is_valid()


TRUE, FALSE = all_true(1)[0], all_false(1)[0]
ZERO, NULL = array([0, None], pa.int64())  # scalars of type int64
EMPTY = scalar("", pa.string())
