"""Change one part of a schema at any depth: `a.b`, `list.element.x`, `map.key`, `map.value.y`.

    path = resolve_path(schema, "orders.element.price")          # as the schema spells it
    edit_field(schema, path, lambda f: replace(f, nullable=True))
    edit_fields(schema, path[:-1], lambda fields: (*fields, new))

A path contains the names of struct fields, ignoring case, and `element` for an array, `key` and `value` for a map. The latter
three are not fields in the schema. The functions here represent each as a field of that name; only its type can change.
Protocol: Schema Serialization Format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from delta_py.errors import SchemaMismatchError
from delta_py.types.names import split_name
from delta_py.types.schema import ArrayType, DataType, MapType, Path, StructField, StructType, type_name

Fields = tuple[StructField, ...]


def resolve_path(schema: StructType, name: str | Sequence[str]) -> Path:
    """The path of a part of the schema, as the schema spells it. name: dotted, with backticks around names that contain dots; or
    a sequence of names. A name with dots means a column if a column has exactly this name.

    Raises SchemaMismatchError: DELTA_COLUMN_NOT_FOUND_IN_SCHEMA, or DELTA_COLUMN_PATH_NOT_NESTED for a name below a plain type.
    """
    if isinstance(name, str):
        names: Path = (name,) if schema.find(name) is not None else split_name(name)
    else:
        names = tuple(name)
    schema_names: list[str] = []
    part: DataType = schema
    for requested_name in names:
        next_part = part_of(part, requested_name)
        if next_part is None:
            raise _not_found_error(part, names, len(schema_names))
        schema_names.append(next_part.name)
        part = next_part.data_type
    return tuple(schema_names)


def field_at(schema: StructType, path: Path) -> StructField:
    """The field at a path that resolve_path returned."""
    current = StructField("", schema)
    for name in path:
        next_field = part_of(current.data_type, name)
        assert next_field is not None, f"{path} was resolved"
        current = next_field
    return current


def part_of(data_type: DataType, name: str) -> StructField | None:
    """The field of this name directly inside a type, ignoring case; None if there is none. The parts of arrays and maps count as
    fields."""
    match data_type:
        case StructType():
            return data_type.find(name)
        case ArrayType(element, contains_null):
            return StructField("element", element, contains_null) if name.lower() == "element" else None
        case MapType(key, value, contains_null):
            parts = {"key": StructField("key", key, False), "value": StructField("value", value, contains_null)}
            return parts.get(name.lower())
    return None


def edit_type(schema: StructType, path: Path, change: Callable[[DataType], DataType]) -> StructType:
    """The schema with the type at a path replaced by the result of `change`. path: from resolve_path."""
    edited_schema = _edit_part(schema, path, change)
    assert isinstance(edited_schema, StructType)
    return edited_schema


def edit_fields(schema: StructType, parent: Path, change: Callable[[Fields], Fields]) -> StructType:
    """The schema with other fields in the struct at a path. Raises SchemaMismatchError (DELTA_ADD_COLUMN_PARENT_NOT_STRUCT)."""

    def change_struct(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            raise SchemaMismatchError(
                f"{'.'.join(parent)} is {type_name(data_type)} and not a struct: it has no fields of its own. Nothing was "
                "changed. Name a struct, the element of an array, or the key or value of a map.",
                error_class="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
                sql_state="42KD3",
                column=".".join(parent),
            )
        return StructType(change(data_type.fields))

    return edit_type(schema, parent, change_struct)


def edit_field(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with the field at a path replaced by the result of `change`. For a part of an array or map, only the type is
    replaced."""
    *parent_path, name = path
    parent = field_at(schema, tuple(parent_path)).data_type
    if isinstance(parent, StructType):
        return edit_fields(schema, tuple(parent_path), lambda fields: tuple(change(f) if f.name == name else f for f in fields))
    return edit_type(schema, path, lambda _: change(field_at(schema, path)).data_type)


def is_field(schema: StructType, path: Path) -> bool:
    """Whether a path leads to a field of a struct, and not to a part of an array or map."""
    return isinstance(field_at(schema, path[:-1]).data_type, StructType)


def insert_field(fields: Fields, field: StructField, after: str | None) -> Fields:
    """The fields with a new field inserted after the field named `after`, ignoring case. None inserts it before all fields.

    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA).
    """
    if after is None:
        return (field, *fields)
    preceding = StructType(fields).find(after)
    if preceding is None:
        raise _not_found_error(StructType(fields), (after,), 0)
    position = fields.index(preceding) + 1
    return (*fields[:position], field, *fields[position:])


def _edit_part(data_type: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    """The type with the part at the path replaced by the result of `change`."""
    if not path:
        return change(data_type)
    name, *inner_names = path
    inner_path = tuple(inner_names)
    match data_type:
        case StructType(fields):
            parts = (replace(f, data_type=_edit_part(f.data_type, inner_path, change)) if f.name == name else f for f in fields)
            return StructType(tuple(parts))
        case ArrayType(element, contains_null):
            return ArrayType(_edit_part(element, inner_path, change), contains_null)
        case MapType(key, value, contains_null) if name == "key":
            return MapType(_edit_part(key, inner_path, change), value, contains_null)
        case MapType(key, value, contains_null):
            return MapType(key, _edit_part(value, inner_path, change), contains_null)
    raise AssertionError(f"{path} was resolved")


def _not_found_error(part: DataType, names: Path, depth: int) -> SchemaMismatchError:
    """The error for a path whose first `depth` names exist, but not the next one. part: the type that they lead to."""
    name, where = ".".join(names), ".".join(names[:depth])
    match part:
        case StructType():
            known_names = ", ".join(part.names)
        case ArrayType():
            known_names = "element"
        case MapType():
            known_names = "key, value"
        case _:
            return SchemaMismatchError(
                f"Column {name} is not in the schema: {where} is {type_name(part)}, which has nothing inside. Nothing was "
                "changed.",
                error_class="DELTA_COLUMN_PATH_NOT_NESTED",
                sql_state="42704",
                column=name,
            )
    return SchemaMismatchError(
        f"Column {name} is not in the schema: {names[depth]!r} is not among {known_names}{f' of {where}' if where else ''}. "
        "Nothing was changed.",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        sql_state="42703",
        column=name,
    )
