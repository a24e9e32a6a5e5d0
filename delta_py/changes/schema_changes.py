"""Whether rows of an older schema can be read with a newer schema by only adding nulls.

    why_incompatible(older_metadata, newer_metadata) -> None, or the reason
    why_not_found(older_metadata, newer_metadata)    the same for the rows of files that one commit removed

The change data feed calls why_incompatible for every version in its range, because it returns rows as they were written: it does
not rename columns, change types or move values between partitions.
Protocol: Column Mapping; Schema Serialization Format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata
from delta_py.types.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    Path,
    StructField,
    StructType,
    parse_schema,
    type_name,
)

# The number of decimal digits of the integer types, by the protocol's rules for widening to decimals.
_DIGITS: Mapping[DataType, int] = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}


def why_incompatible(older: Metadata, newer: Metadata, *, widening: bool = False) -> str | None:
    """The first reason why rows of the older schema cannot be read with the newer schema; None if they can, because the newer
    schema only has additional fields.

    A field may not be renamed, dropped, get another type, or become NOT NULL; partition columns and the use of column mapping may
    not change, but mapping may be turned on. widening: a type may become wider. A void field is null in all older rows, and may
    become any type.
    """
    old_schema, new_schema = parse_schema(older.schema_string), parse_schema(newer.schema_string)
    if [name.lower() for name in older.partition_columns] != [name.lower() for name in newer.partition_columns]:
        return f"partition columns ({', '.join(older.partition_columns)}) became ({', '.join(newer.partition_columns)})"
    old_mode, new_mode = column_mapping.mode(older.configuration), column_mapping.mode(newer.configuration)
    if new_mode == "none":
        return _struct_difference(old_schema, new_schema, (), widening) if old_mode == "none" else "column mapping was turned off"
    return _mapping_difference(old_schema, new_schema, old_mode, new_mode) or _struct_difference(
        old_schema, new_schema, (), widening
    )


def why_not_found(older: Metadata, newer: Metadata) -> str | None:
    """The first column of the older schema whose values a read of older files with the newer schema would not find, so that it
    would be null, as a reason; None if there is no such column. Types are not compared: file readers raise an error for a value
    of another type."""
    old_mode, new_mode = column_mapping.mode(older.configuration), column_mapping.mode(newer.configuration)
    if new_mode == "id" != old_mode:
        return f"the column mapping mode {old_mode} became id"
    new_physical_paths = {
        _folded(path): physical for physical, path in _physical_and_logical_paths(parse_schema(newer.schema_string), new_mode)
    }
    for physical, path in _physical_and_logical_paths(parse_schema(older.schema_string), old_mode):
        new_physical = new_physical_paths.get(_folded(path), physical)
        if _folded(new_physical) != _folded(physical):
            return f"files name column {'.'.join(path)} {'.'.join(new_physical)}, and named it {'.'.join(physical)}"
    return None


def _folded(path: Path) -> Path:
    """The path in lower case: names of columns ignore case."""
    return tuple(name.lower() for name in path)


def _mapping_difference(old_schema: StructType, new_schema: StructType, old_mode: str, new_mode: str) -> str | None:
    """The first field that was renamed or dropped, or a change of the mode, as a reason; None if there is none. When column
    mapping is turned on, each column's name becomes its physical name."""
    if old_mode not in ("none", new_mode):
        return f"the column mapping mode {old_mode} became {new_mode}"
    old_paths, new_paths = (
        dict(_physical_and_logical_paths(old_schema, old_mode)),
        dict(_physical_and_logical_paths(new_schema, new_mode)),
    )
    for physical, path in old_paths.items():
        if physical not in new_paths:
            return f"column {path[-1]} was dropped"
        if new_paths[physical][-1] != path[-1]:
            return f"column {path[-1]} was renamed to {new_paths[physical][-1]}"
    return None


def _physical_and_logical_paths(
    data_type: DataType, mode: str, physical: Path = (), path: Path = ()
) -> Iterator[tuple[Path, Path]]:
    """The physical and the logical path of every field, at any depth. physical, path: those of the type itself; empty for a
    table."""
    match data_type:
        case StructType(fields):
            for f in fields:
                paths = (*physical, column_mapping.physical_name(f, mode)), (*path, f.name)
                yield paths
                yield from _physical_and_logical_paths(f.data_type, mode, *paths)
        case ArrayType(element, _):
            yield from _physical_and_logical_paths(element, mode, (*physical, "element"), (*path, "element"))
        case MapType(key, value, _):
            yield from _physical_and_logical_paths(key, mode, (*physical, "key"), (*path, "key"))
            yield from _physical_and_logical_paths(value, mode, (*physical, "value"), (*path, "value"))


def _struct_difference(old_struct: StructType, new_struct: StructType, path: Path, widening: bool) -> str | None:
    """Why rows of the old struct cannot be read with the new one; None if they can. path: the struct's path. widening: types may
    become wider."""
    new_fields: Mapping[str, StructField] = {f.name.lower(): f for f in new_struct.fields}
    for f in old_struct.fields:
        field_path = (*path, f.name)
        new_field = new_fields.get(f.name.lower())
        if new_field is None or new_field.name != f.name:
            return f"column {'.'.join(field_path)} is gone"
        if f.nullable and not new_field.nullable:
            return f"column {'.'.join(field_path)} became NOT NULL"
        reason = _type_difference(f.data_type, new_field.data_type, field_path, widening)
        if reason is not None:
            return reason
    return None


def _type_difference(old_type: DataType, new_type: DataType, path: Path, widening: bool) -> str | None:
    """Why values of the old type cannot be read with the new one; None if they can. widening: types may become wider."""
    match old_type, new_type:
        case StructType(), StructType():
            return _struct_difference(old_type, new_type, path, widening)
        case ArrayType(old_element, old_nulls), ArrayType(new_element, new_nulls):
            not_null_reason = _not_null_reason(old_nulls, new_nulls, (*path, "element"))
            return not_null_reason or _type_difference(old_element, new_element, (*path, "element"), widening)
        case MapType(), MapType():
            not_null_reason = _not_null_reason(old_type.value_contains_null, new_type.value_contains_null, (*path, "value"))
            keys = _type_difference(old_type.key_type, new_type.key_type, (*path, "key"), widening)
            return (
                not_null_reason or keys or _type_difference(old_type.value_type, new_type.value_type, (*path, "value"), widening)
            )
    if old_type in (new_type, VOID) or (widening and is_wider(old_type, new_type)):
        return None
    return f"column {'.'.join(path)} was {type_name(old_type)} and became {type_name(new_type)}"


def is_wider(old_type: DataType, new_type: DataType) -> bool:
    """Whether a column may go from the old type to the new one. Protocol: Type Widening."""
    digits = _DIGITS.get(old_type)
    if isinstance(new_type, DecimalType):
        if isinstance(old_type, DecimalType):
            return new_type.scale >= old_type.scale and new_type.precision - new_type.scale >= old_type.precision - old_type.scale
        # By the protocol, BYTE and SHORT need decimals with as many digits as INT.
        return digits is not None and new_type.precision - new_type.scale >= max(digits, _DIGITS[INTEGER])
    if digits is not None:
        return _DIGITS.get(new_type, 0) > digits or (new_type == DOUBLE and old_type != LONG)
    return (old_type, new_type) in ((FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ))


def _not_null_reason(old_nulls: bool, new_nulls: bool, path: Path) -> str | None:
    """The reason if the part of an array or map could be null and no longer can; else None."""
    return f"column {'.'.join(path)} became NOT NULL" if old_nulls and not new_nulls else None
