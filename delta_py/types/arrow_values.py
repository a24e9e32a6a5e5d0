"""Convert Python and numpy values to Arrow values without pandas.

If pandas is installed, pyarrow imports it for the first value that it converts from Python or numpy (`pa.array`, `pa.scalar`,
`pc.equal(column, 3)`). That import takes longer than everything else in planning a scan of a small table. So, between the log and
the plan, the common types of values are built from bytes instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
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
    """As pa.array, with its errors, but without pandas for integers, texts, booleans and nulls."""
    types = set(map(type, values))
    if kind in _NUMBERS and types <= {int, type(None)}:
        converted = _whole_numbers(values, kind)
    elif kind in _OFFSETS and types <= {str, type(None)}:
        converted = _texts(values, kind)
    elif kind == pa.bool_() and types <= {bool}:
        converted = from_numpy(np.array([*values], np.bool_))
    else:
        converted = pa.nulls(len(values), kind) if types <= {type(None)} else None
    return pa.array(values, kind) if converted is None else converted


def _whole_numbers(values: Collection[int | None], kind: pa.DataType) -> Any:
    """An array of integers; None if a number does not fit."""
    limits, present = np.iinfo(_NUMBERS[kind]), [value for value in values if value is not None]
    if present and not limits.min <= min(present) <= max(present) <= limits.max:
        return None
    numbers = np.array([0 if value is None else value for value in values], limits.dtype)
    return from_numpy(numbers, None if len(present) == len(numbers) else np.array([value is None for value in values], np.bool_))


def _texts(values: Collection[str | None], kind: pa.DataType) -> Any:
    """An array of texts; None if they are too long for one array."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.array([0, *accumulate(map(len, encoded))], np.int64)
    if offsets[-1] > np.iinfo(_OFFSETS[kind]).max:
        return None
    nulls = [value is None for value in values]
    stored = pa.py_buffer(offsets.astype(_OFFSETS[kind]))
    return pa.Array.from_buffers(kind, len(encoded), [_bitmap(nulls), stored, pa.py_buffer(b"".join(encoded))])


def from_numpy(values: np.ndarray[Any, np.dtype[Any]], nulls: np.ndarray[Any, np.dtype[np.bool_]] | None = None) -> Any:
    """An array of signed integers or booleans. Values are null where `nulls` is true."""
    bitmap = None if nulls is None else _bitmap(nulls)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap, _bits(values)])
    return pa.Array.from_buffers(_ARROW_TYPES[values.dtype], len(values), [bitmap, pa.py_buffer(np.ascontiguousarray(values))])


def _bitmap(nulls: Iterable[bool]) -> pa.Buffer | None:
    is_null = np.asarray(nulls, np.bool_)
    return _bits(~is_null) if is_null.any() else None


def _bits(values: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def scalar(value: Any, kind: pa.DataType) -> Any:
    """As pa.scalar, but without pandas for the values that `array` converts without it."""
    return array([value], kind)[0]


def to_numpy(values: pa.Array) -> Any:
    """Convert numbers or booleans to numpy; numbers are not copied. Raises pa.ArrowInvalid if there are nulls."""
    if values.null_count or not (values.type in _NUMBERS or values.type == pa.bool_()):
        return values.to_numpy()
    end, buffer = values.offset + len(values), values.buffers()[1] or b""
    if values.type == pa.bool_():
        return np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")[values.offset :].view(np.bool_)
    return np.frombuffer(buffer, _NUMBERS[values.type], end)[values.offset :]


def struct_children(array: pa.StructArray) -> list[pa.Array]:
    """The values of each field, null where the struct is null.

    This costs as much as one call of pyarrow's `struct_field`: that kernel reads all fields of the struct in each call.
    """
    return array.flatten() if array.null_count else [array.field(position) for position in range(array.type.num_fields)]


class NestedColumns:
    """Columns, and the fields of structs in them, by path. Each struct is split only once, even if many of its fields are read.

    top: returns a column by its name; None if there is none."""

    def __init__(self, top: Callable[[str], pa.Array | None]) -> None:
        self._top = top
        self._fields: dict[tuple[str, ...], Mapping[str, pa.Array]] = {}

    def find(self, path: tuple[str, ...]) -> pa.Array | None:
        """The column at a path. Its values are null where a struct above it is null. None if no field, or more than one field,
        has this path."""
        parent, name = path[:-1], path[-1]
        if not parent:
            return self._top(name)
        if parent not in self._fields:
            self._fields[parent] = _fields_by_name(self.find(parent))
        return self._fields[parent].get(name)


def _fields_by_name(array: pa.Array | None) -> Mapping[str, pa.Array]:
    """The fields of a struct that have a unique name; empty if the array is not a struct."""
    if array is None or not pa.types.is_struct(array.type):
        return {}
    names = [f.name for f in array.type]
    counts = Counter(names)
    return {name: child for name, child in zip(names, struct_children(array), strict=True) if counts[name] == 1}


def all_true(count: int) -> pa.BooleanArray:
    return pa.nulls(count).is_null()


def all_false(count: int) -> pa.BooleanArray:
    return pa.nulls(count).is_valid()


TRUE, FALSE = all_true(1)[0], all_false(1)[0]
ZERO, NULL = array([0, None], pa.int64())
EMPTY = scalar("", pa.string())
