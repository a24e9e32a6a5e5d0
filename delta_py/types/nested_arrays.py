"""Parts of nested Arrow arrays: the fields of structs, the elements of lists, the keys and values of maps.

    struct_children(structs)                                  # null where the struct is null
    with_elements(lists, lambda elements: elements.cast(...)) # the same lists of other elements

Values below a null struct, list or map have no meaning, and a conversion must not fail because of them: these functions do not
pass them on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Converter: TypeAlias = Callable[[pa.Array], pa.Array]
ChildOffsets: TypeAlias = tuple[pa.Int32Array, int, int]  # as child_offsets returns them


def struct_children(array: pa.StructArray) -> list[pa.Array]:
    """The values of each field, null where the struct is null.

    This costs as much as one call of pyarrow's `struct_field`: that kernel reads all fields of the struct in each call.
    """
    return array.flatten() if array.null_count else [array.field(position) for position in range(array.type.num_fields)]


class NestedColumns:
    """Finds columns, and fields of structs in them, by path. Each struct is split only once, even if many of its fields are read.

    top: a function that returns a top-level column by its name, or None if there is no such column.
    """

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


# ---------------------------------------------------------------- lists and maps


def with_elements(lists: pa.Array, convert: Converter | None, kind: pa.DataType | None = None) -> pa.ListArray:
    """The same lists with converted elements. convert: converts all elements, which are in one array; None if the elements do not
    change. kind: the Arrow type of the result; None for a list of the type that `convert` returns."""
    lists = _drop_values_of_nulls(lists)
    offsets, first, count = child_offsets(lists)
    elements = _convert(lists.values.slice(first, count), convert)
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=_null_mask(lists))


def with_entries(
    maps: pa.MapArray, to_key: Converter | None, to_value: Converter | None, kind: pa.DataType | None = None
) -> pa.MapArray:
    """The same maps with converted keys and values. to_key, to_value: get all keys or values in one array; None if they do not
    change. kind: the type of the result; None for a map of the types that the two return."""
    maps = _drop_values_of_nulls(maps)
    offsets, first, count = child_offsets(maps)
    keys = _convert(maps.keys.slice(first, count), to_key)
    values = _convert(maps.items.slice(first, count), to_value)
    return pa.MapArray.from_arrays(offsets, keys, values, type=kind, mask=_null_mask(maps))


def child_offsets(array: pa.Array) -> ChildOffsets:
    """Where the values of a list or map array are in its child arrays: the offsets of the lists relative to their first value;
    the position of this value in the child array; the number of values. Values below null lists are among them."""
    if len(array) == 0:
        return pa.array([0], pa.int32()), 0, 0
    offsets = array.offsets
    first, last = offsets[0], offsets[-1]
    return pc.subtract(offsets, first).cast(pa.int32()), first.as_py(), last.as_py() - first.as_py()


def _drop_values_of_nulls(array: pa.Array) -> pa.Array:
    """The lists or maps without the elements of null ones."""
    if array.null_count == 0:
        return array
    lengths = np.diff(array.offsets.to_numpy())
    null_lengths = lengths[array.is_null().to_numpy(zero_copy_only=False)]
    # Lists that are null may still have elements. `take` copies only the elements of valid lists.
    return array.take(pa.array(np.arange(len(array)))) if null_lengths.any() else array


def _convert(array: pa.Array, convert: Converter | None) -> pa.Array:
    return array if convert is None else convert(array)


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
