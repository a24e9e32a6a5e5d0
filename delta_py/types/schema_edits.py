"""A schema with one of its parts changed, at any depth: `a.b`, `list.element.x`, `map.key`, `map.value.y`.

    path = resolve_path(schema, "orders.element.price")          # as the schema spells it
    edit_field(schema, path, lambda f: replace(f, nullable=True))
    edit_fields(schema, path[:-1], lambda fields: (*fields, new))

A path goes through the fields of structs by name, ignoring case, and through `element` of an array, `key` and `value` of a map.
These three have no field of their own; they are shown as one of that name, of which only the type can change.
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
    """The path of a part of the schema, as the schema spells it. name: dotted, with backticks around names that have dots; or
    the names one by one. A name with dots that is a column's means this column.

    Raises SchemaMismatchError: DELTA_COLUMN_NOT_FOUND_IN_SCHEMA, or DELTA_COLUMN_PATH_NOT_NESTED for a name below a plain type.
    """
    if isinstance(name, str):
        names: Path = (name,) if schema.find(name) is not None else split_name(name)
    else:
        names = tuple(name)
    spelled: list[str] = []
    part: DataType = schema
    for step in names:
        inner = part_of(part, step)
        if inner is None:
            raise _not_found(part, names, len(spelled))
        spelled.append(inner.name)
        part = inner.data_type
    return tuple(spelled)


def field_at(schema: StructType, path: Path) -> StructField:
    """The field at a path of resolve_path."""
    found = StructField("", schema)
    for step in path:
        inner = part_of(found.data_type, step)
        assert inner is not None, f"{path} was resolved"
        found = inner
    return found


def part_of(data_type: DataType, name: str) -> StructField | None:
    """The field of this name directly inside a type, ignoring case; None when there is none."""
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
    """The schema with the type at a path of resolve_path replaced by what `change` makes of it."""
    edited = _edited(schema, path, change)
    assert isinstance(edited, StructType)
    return edited


def edit_fields(schema: StructType, parent: Path, change: Callable[[Fields], Fields]) -> StructType:
    """The schema with other fields in the struct at a path. Raises SchemaMismatchError (DELTA_ADD_COLUMN_PARENT_NOT_STRUCT)."""

    def changed(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            raise SchemaMismatchError(
                f"{'.'.join(parent)} is {type_name(data_type)} and not a struct: it has no fields of its own. Nothing was "
                "changed. Name a struct, the element of an array, or the key or value of a map.",
                error_class="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
                sql_state="42KD3",
                column=".".join(parent),
            )
        return StructType(change(data_type.fields))

    return edit_type(schema, parent, changed)


def edit_field(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with the field at a path replaced by what `change` makes of it; of an array's or map's part only the type."""
    *outer, name = path
    parent = field_at(schema, tuple(outer)).data_type
    if isinstance(parent, StructType):
        return edit_fields(schema, tuple(outer), lambda fields: tuple(change(f) if f.name == name else f for f in fields))
    return edit_type(schema, path, lambda _: change(field_at(schema, path)).data_type)


def is_field(schema: StructType, path: Path) -> bool:
    """Whether a path leads to a field of a struct, and not to an array's or map's part."""
    return isinstance(field_at(schema, path[:-1]).data_type, StructType)


def placed(fields: Fields, field: StructField, after: str | None) -> Fields:
    """The fields with one more behind another, whose name is found ignoring case; None: before all.

    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA).
    """
    if after is None:
        return (field, *fields)
    known = StructType(fields).find(after)
    if known is None:
        raise _not_found(StructType(fields), (after,), 0)
    place = fields.index(known) + 1
    return (*fields[:place], field, *fields[place:])


def _edited(data_type: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(data_type)
    name, *inner = path
    rest = tuple(inner)
    match data_type:
        case StructType(fields):
            parts = (replace(f, data_type=_edited(f.data_type, rest, change)) if f.name == name else f for f in fields)
            return StructType(tuple(parts))
        case ArrayType(element, contains_null):
            return ArrayType(_edited(element, rest, change), contains_null)
        case MapType(key, value, contains_null) if name == "key":
            return MapType(_edited(key, rest, change), value, contains_null)
        case MapType(key, value, contains_null):
            return MapType(key, _edited(value, rest, change), contains_null)
    raise AssertionError(f"{path} was resolved")


def _not_found(part: DataType, names: Path, depth: int) -> SchemaMismatchError:
    name, where = ".".join(names), ".".join(names[:depth])
    match part:
        case StructType():
            known = ", ".join(part.names)
        case ArrayType():
            known = "element"
        case MapType():
            known = "key, value"
        case _:
            return SchemaMismatchError(
                f"Column {name} is not in the schema: {where} is {type_name(part)}, which has nothing inside. Nothing was "
                "changed.",
                error_class="DELTA_COLUMN_PATH_NOT_NESTED",
                sql_state="42704",
                column=name,
            )
    return SchemaMismatchError(
        f"Column {name} is not in the schema: {names[depth]!r} is not among {known}{f' of {where}' if where else ''}. "
        "Nothing was changed.",
        error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        sql_state="42703",
        column=name,
    )
