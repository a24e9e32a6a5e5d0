"""CHAR(n) columns: stored as text of any length up to n, read padded with blanks to n, as Spark does.

The log has the type string, and the declared type as DDL in the metadata of the top-level field. Padding does not keep
the order of texts, so statistics of such leaves say nothing about what is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.schema import Path, StructField

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"

# Where the CHARs of a type are: a length; by struct field; of a list's elements; of a map's keys and values.
CharTypes: TypeAlias = "int | Mapping[str, CharTypes] | tuple[CharTypes | None, ...] | None"


def char_types(field: StructField) -> CharTypes:
    """The CHARs in a field's declared type; None if it has none. Raises nothing for text that is no DDL: that is None."""
    declared = field.metadata.get(DECLARED_TYPE)
    if not isinstance(declared, str) or "char(" not in declared.lower().replace("varchar(", ""):
        return None
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return _of_type(exp.DataType.build(declared, dialect="spark"))
    except SqlglotError:
        return None


def _of_type(declared: Any) -> CharTypes:
    from sqlglot import exp

    kinds = exp.DataType.Type
    inner = declared.expressions
    if declared.this in (kinds.CHAR, kinds.NCHAR) and inner:
        return int(inner[0].name)
    if declared.this == kinds.STRUCT:
        named = {part.name: _of_type(part.args["kind"]) for part in inner if part.args.get("kind") is not None}
        return {name: found for name, found in named.items() if found is not None} or None
    if declared.this in (kinds.ARRAY, kinds.LIST, kinds.MAP):
        parts = tuple(_of_type(part) for part in inner)
        return parts if any(part is not None for part in parts) else None
    return None


def is_char(field: StructField, inner: Path = ()) -> bool:
    """Whether the leaf at `inner` below the field is a CHAR."""
    found = char_types(field)
    for name in inner:
        found = found.get(name) if isinstance(found, Mapping) else None
    return isinstance(found, int)


def pad(array: pa.Array, chars: CharTypes) -> pa.Array:
    """The array with its CHARs padded; `chars` as of the array's type."""
    match chars:
        case int():
            return pc.utf8_rpad(array, chars, " ")
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
    """The same rows over other children, which are as long as the array's own."""
    if pa.types.is_struct(array.type):
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
    return pa.Array.from_buffers(
        array.type, len(array), array.buffers()[:2], array.null_count, offset=array.offset, children=children
    )
