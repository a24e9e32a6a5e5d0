"""CHAR(n) columns: files store text of any length up to n, and a read pads it with blanks to n, as Spark does.

Padding changes the order of texts, so the statistics of such leaves do not bound the values that are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import UnsupportedOperationError
from delta_py.types.char_types import CharType, CharTypes, char_type_at, char_types, select_kind
from delta_py.types.schema import Path, StructField
from delta_py.types.sizes import bytes_text

_MAX_BATCH_TEXT_BYTES = 1 << 30  # of the padded texts of one column in one batch


def padded_chars(field: StructField) -> CharTypes:
    """The CHAR types of a top-level field, for `pad`; None if it has none. A declared type that cannot be parsed
    counts as none."""
    return select_kind(char_types(field), "char")


def is_char(field: StructField, inner: Path = ()) -> bool:
    """Whether the leaf at `inner` below the field is a CHAR."""
    char_type = char_type_at(field, inner)
    return char_type is not None and char_type.kind == "char"


def ends_in_char(path_fields: Sequence[StructField]) -> bool:
    """Whether the last field of a path is CHAR: statistics describe the stored text, so they do not bound the padded text."""
    return is_char(path_fields[0], tuple(inner.name for inner in path_fields[1:]))


def pad(array: pa.Array, chars: CharTypes) -> pa.Array:
    """The array with its CHARs padded.

    chars: the CHAR types in the array's type: a CharType for texts, a mapping from field names for a struct, (element,) for a
    list, (key, value) for a map. A part that is None contains no CHAR and is returned unchanged.
    Raises UnsupportedOperationError, before it allocates memory, for a length that makes the text of a batch too large.
    """
    match chars:
        case CharType():
            if len(array) * chars.length > _MAX_BATCH_TEXT_BYTES:
                raise UnsupportedOperationError(
                    f"A column is of type CHAR({chars.length}), and {len(array)} texts of it, padded to that length, would take "
                    f"more than {bytes_text(_MAX_BATCH_TEXT_BYTES)}: so many are not made. Select the other columns."
                )
            return pc.utf8_rpad(array, chars.length, " ")
        case Mapping():
            children = [pad(array.field(i), chars.get(f.name)) for i, f in enumerate(array.type)]
            return _with_children(array, children)
        case (element,):
            return _with_children(array, [pad(array.values, element)])
        case (key, value):
            entries = pa.StructArray.from_arrays(
                [pad(array.keys, key), pad(array.items, value)], fields=[array.type.key_field, array.type.item_field]
            )
            return _with_children(array, [entries])
    return array


def _with_children(array: pa.Array, children: list[pa.Array]) -> pa.Array:
    """The same structs, lists or maps, with nulls and list lengths unchanged, but with other child arrays.

    children: as long as array.field(i) of a struct, or as the whole array.values, array.keys and array.items, which ignore the
    offset of a slice. So only lists and maps get the array's own offset again.
    """
    if pa.types.is_struct(array.type):
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
    validity_and_offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        array.type, len(array), validity_and_offsets, array.null_count, offset=array.offset, children=children
    )
