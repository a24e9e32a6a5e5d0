"""Changes of columns' types that need no change of the files: which changes are allowed, and how the schema records them.

    is_widening(INTEGER, LONG)
    with_recorded_changes(schema_before, schema_after)      # `delta.typeChanges` in the metadata of the changed fields

Readers convert the values of older files to the new type. The record says which types a table's files may have.
Protocol: Type Widening; Type Change Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from delta_py.expressions.coercion import INTEGRAL
from delta_py.types.column_rules import TYPE_CHANGES
from delta_py.types.schema import (
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    Path,
    StructType,
    map_fields,
    type_name,
)

# The digits before the point that a decimal needs to hold integers of up to 32 bits, and of 64 bits, by the protocol.
_INTEGRAL_DIGITS = 10
_LONG_DIGITS = 20


def is_widening(old: DataType, new: DataType, *, like_iceberg: bool = False) -> bool:
    """Whether the protocol allows this change of a column's type. like_iceberg: only the changes that Iceberg allows too.
    Protocol: Type Widening.
    """
    if old in INTEGRAL and new in INTEGRAL:
        return INTEGRAL.index(old) < INTEGRAL.index(new)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        # The precision grows at least as much as the scale, so that no digits before the point are lost.
        digits, scale = new.precision - old.precision, new.scale - old.scale
        return digits >= scale >= 0 and digits > 0 and not (like_iceberg and scale)
    if (old, new) == (FLOAT, DOUBLE):
        return True
    if like_iceberg:
        return False
    if old in INTEGRAL and isinstance(new, DecimalType):
        return new.precision - new.scale >= (_LONG_DIGITS if old == LONG else _INTEGRAL_DIGITS)
    return (old in INTEGRAL and old != LONG and new == DOUBLE) or (old, new) == (DATE, TIMESTAMP_NTZ)


def type_change(old: DataType, new: DataType, inside: Path, version: int | None = None) -> dict[str, Any]:
    """The record of one change. inside: the path from the field to the element, key or value that changed; () for the field
    itself. version: the table's version after the change; only clients of the feature's preview require it."""
    numbered = {} if version is None else {"tableVersion": version}
    change = {**numbered, "fromType": _protocol_name(old), "toType": _protocol_name(new)}
    return {**change, "fieldPath": ".".join(inside)} if inside else change


def with_recorded_changes(before: StructType, after: StructType, version: int | None = None) -> StructType:
    """The schema after a change, with all changes of types in its fields' metadata. Fields are matched by name, ignoring case;
    new fields have no record. version: as in type_change."""
    fields = []
    for f in after.fields:
        field_before = before.find(f.name)
        if field_before is None:
            fields.append(f)
            continue
        changed_types = _changed_parts(field_before.data_type, f.data_type, ())
        changes = [type_change(old_type, new_type, inside, version) for inside, old_type, new_type in changed_types]
        recorded_changes = f.metadata.get(TYPE_CHANGES, ())
        metadata = {**f.metadata, TYPE_CHANGES: [*recorded_changes, *changes]} if changes else f.metadata
        fields.append(replace(f, data_type=_with_changes_inside(field_before.data_type, f.data_type, version), metadata=metadata))
    return StructType(tuple(fields))


def without_recorded_changes(schema: StructType) -> StructType:
    """The schema of a table whose files all have the schema's types."""
    return map_fields(
        schema, lambda f: replace(f, metadata={key: value for key, value in f.metadata.items() if key != TYPE_CHANGES})
    )


def _with_changes_inside(old_type: DataType, new_type: DataType, version: int | None) -> DataType:
    """The new type, whose structs, at any depth, record the changes of their fields."""
    match old_type, new_type:
        case StructType(), StructType():
            return with_recorded_changes(old_type, new_type, version)
        case ArrayType(old, _), ArrayType(new, nulls):
            return ArrayType(_with_changes_inside(old, new, version), nulls)
        case MapType(old_key, old_value, _), MapType(key, value, nulls):
            return MapType(_with_changes_inside(old_key, key, version), _with_changes_inside(old_value, value, version), nulls)
    return new_type


def _changed_parts(old: DataType, new: DataType, inside: Path) -> Iterator[tuple[Path, DataType, DataType]]:
    """The plain types that differ, with their paths; structs inside record their own changes. No file has values of type void, so
    that replacing void by another type is not a change for readers."""
    match old, new:
        case StructType(), StructType():
            return
        case ArrayType(element, _), ArrayType(new_element, _):
            yield from _changed_parts(element, new_element, (*inside, "element"))
        case MapType(key, value, _), MapType(new_key, new_value, _):
            yield from _changed_parts(key, new_key, (*inside, "key"))
            yield from _changed_parts(value, new_value, (*inside, "value"))
        case _:
            if old not in (new, VOID):
                yield inside, old, new


def _protocol_name(data_type: DataType) -> str:
    """The name of a simple type in the schema's JSON."""
    return type_name(data_type) if isinstance(data_type, DecimalType) else getattr(data_type, "name", "")
