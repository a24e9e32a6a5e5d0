"""NOT NULL, at every depth of a column.

Protocol: Column Invariants.
"""

from __future__ import annotations

import pyarrow as pa

from delta_py.errors import InvariantViolationError
from delta_py.types.nested_arrays import child_offsets, struct_children
from delta_py.types.schema import ArrayType, DataType, MapType, StructType


def check_not_null(array: pa.Array, data_type: DataType, nullable: bool, name: str) -> None:
    """Raise InvariantViolationError for a forbidden null. name: the column's name, or the dotted path of a part of the column.

    The fields of a null struct are null, as in delta-spark: a null struct breaks the rule of a field that is NOT NULL. Nothing
    inside a null element of a list or map is checked."""
    if not nullable and array.null_count:
        raise InvariantViolationError(
            f"NOT NULL constraint violated for column: {name} ({array.null_count} of {len(array)} rows of a batch are null). "
            "Nothing was written. Give the column values.",
            error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            sql_state="23502",
            column=name,
        )
    if not _forbids_nulls(data_type):
        return
    match data_type:
        case StructType(fields):
            for child, f in zip(struct_children(array), fields, strict=True):
                check_not_null(child, f.data_type, f.nullable, f"{name}.{f.name}")
        case ArrayType(element, contains_null):
            check_not_null(_without_allowed_nulls(array.flatten(), contains_null), element, contains_null, f"{name}.element")
        case MapType(key, value, contains_null):
            valid_maps = _without_allowed_nulls(array, True)
            _, first, count = child_offsets(valid_maps)
            # Arrow allows no null keys, so only the inside of a key is checked.
            check_not_null(valid_maps.keys.slice(first, count), key, True, f"{name}.key")
            values = valid_maps.items.slice(first, count)
            check_not_null(_without_allowed_nulls(values, contains_null), value, contains_null, f"{name}.value")


def _without_allowed_nulls(elements: pa.Array, contains_null: bool) -> pa.Array:
    """The elements to check: if nulls are allowed, the others; if not, all, so that check_not_null reports a null."""
    return elements.drop_null() if contains_null and elements.null_count else elements


def _forbids_nulls(data_type: DataType) -> bool:
    """Whether any part of the type forbids nulls."""
    match data_type:
        case StructType(fields):
            return any(not f.nullable or _forbids_nulls(f.data_type) for f in fields)
        case ArrayType(element, contains_null):
            return not contains_null or _forbids_nulls(element)
        case MapType(key, value, value_contains_null):
            return not value_contains_null or _forbids_nulls(key) or _forbids_nulls(value)
    return False
