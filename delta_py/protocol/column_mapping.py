"""Column mapping: logical names (users, schema) and physical names (data files, partition values, statistics).

Each struct field, at any depth, has `delta.columnMapping.id` and `delta.columnMapping.physicalName` in its metadata. Elements of
arrays and keys and values of maps have no names, so only the struct fields inside them have these keys. Translation changes only
names. In mode `none`, logical and physical names are the same.
Protocol: Column Mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.types.schema import ArrayType, DataType, MapType, Path, StructField, StructType, find_path, map_fields

if TYPE_CHECKING:
    from delta_py.protocol.features import Properties  # tasks that only read do not import this module

MODE_PROPERTY = "delta.columnMapping.mode"
MAX_ID_PROPERTY = "delta.columnMapping.maxColumnId"
ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
FIELD_KEYS = (ID, PHYSICAL_NAME, NESTED_IDS)
"""The keys of column mapping in a field's metadata."""
MODES = ("none", "name", "id")
NAMED_BY_ID = "delta.enableIcebergWriterCompatV1"  # with this property, physical names are `col-<id>`
_WITH_NESTED_IDS = ("delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")

Named = TypeVar("Named", StructField, StructType)


def mode(configuration: Mapping[str, str]) -> str:
    """`none`, `name` or `id`, from a table's properties. Raises CorruptTableError for any other value."""
    text = configuration.get(MODE_PROPERTY, "none").lower()
    if text not in MODES:
        raise CorruptTableError(
            f"Table property {MODE_PROPERTY} is {text!r}; known are {', '.join(MODES)}.", property=MODE_PROPERTY
        )
    return text


def check_mode_change(before: str, after: str) -> None:
    """Raises UnsupportedOperationError (DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE) if the mode of an existing table cannot
    change in this way. The rules are those of delta-spark."""
    if before != after and after != "none" and (before, after) != ("none", "name"):
        raise UnsupportedOperationError(
            f"The column mapping mode of an existing table cannot change from {before!r} to {after!r}: its files were written "
            "with the current mode. Nothing was changed. 'none' can become 'name', and 'name' or 'id' can become 'none'.",
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            sql_state="0AKDC",
            old_mode=before,
            new_mode=after,
        )


def physical_name(f: StructField, mode: str) -> str:
    """The name of a field inside data files. mode: of column mapping, as `mode` returns it.

    Raises CorruptTableError if the mode needs a physical name or an id and the field has none.
    """
    if mode == "none":
        return f.name
    name, number = f.metadata.get(PHYSICAL_NAME), f.metadata.get(ID)
    if not isinstance(name, str) or not name:
        raise _missing_key_error(f, PHYSICAL_NAME, mode)
    if mode == "id" and not _is_id(number):
        raise _missing_key_error(f, ID, mode)
    return name


def to_physical(named: Named, mode: str) -> Named:
    """The same field or schema with physical names, including nested fields. Types, nullability and metadata do not change.

    Raises CorruptTableError if a field has no name or id and the mode needs it, and if two fields of one struct have the same
    physical name.
    """
    if mode == "none":
        return named
    if isinstance(named, StructField):
        return StructField(physical_name(named, mode), _rename(named.data_type, mode), named.nullable, named.metadata)
    return _rename_struct(named, mode)


def physical_path(schema: StructType, path: Path, mode: str) -> Path:
    """A logical path of struct field names (ignoring case) -> the physical path.

    Raises SchemaMismatchError for a path that is not in the schema.
    """
    return tuple(physical_name(f, mode) for f in find_path(schema, path))


def logical_path(schema: StructType, physical: Path, name_of: Callable[[StructField], str]) -> Path | None:
    """A physical path -> the logical path; None if it leads to no field. name_of: returns the physical name of a field."""
    path: Path = ()
    fields = schema.fields
    for part in physical:
        matching_field = next((f for f in fields if name_of(f) == part), None)
        if matching_field is None:
            return None
        path = (*path, matching_field.name)
        fields = matching_field.data_type.fields if isinstance(matching_field.data_type, StructType) else ()
    return path


def max_column_id(schema: StructType) -> int:
    """The highest column id in the schema; 0 if there is none."""
    return _max_id(schema)


def wants_nested_ids(properties: Properties) -> bool:
    """Whether elements of arrays and keys and values of maps have ids. Protocol: Iceberg Compatibility V2."""
    return any(properties.boolean(name) for name in _WITH_NESTED_IDS)


def name_by_id(number: int) -> str:
    """The physical name of a column with this id, in tables that Iceberg writers may write."""
    return f"col-{number}"


def assign(
    schema: StructType, physical: Callable[[StructField], str], properties: Properties, first_free: int = 1
) -> tuple[StructType, int]:
    """Assign an id and a physical name to every field that has none, and ids to parts of arrays and maps if the table needs them.

    physical: returns the name for a field: a new `col-<uuid>` for a new table, the logical name for a table with existing files.
    Tables that Iceberg writers may write have `col-<id>` instead.
    properties: the table's properties after the change. first_free: the lowest id that was never assigned; it is raised above the
    ids in the schema. Returns the schema and the highest id assigned so far: the table's `delta.columnMapping.maxColumnId`.
    Protocol: Writer Requirements for Column Mapping; Iceberg Compatibility V2.
    """
    # highest_id: of those assigned so far. assigns_nested_ids: whether parts of arrays and maps get ids.
    highest_id, assigns_nested_ids = max(first_free - 1, max_column_id(schema)), wants_nested_ids(properties)
    is_named_by_id = properties.boolean(NAMED_BY_ID)

    def complete_type(data_type: DataType) -> DataType:
        """The type, in which all fields at any depth have an id and a physical name."""
        match data_type:
            case StructType(fields):
                return StructType(tuple(complete_field(f) for f in fields))
            case ArrayType(element, contains_null):
                return ArrayType(complete_type(element), contains_null)
            case MapType(key, value, contains_null):
                return MapType(complete_type(key), complete_type(value), contains_null)
            case _:
                return data_type

    def complete_field(f: StructField) -> StructField:
        """The field with an id and a physical name. The fields inside it get them too."""
        nonlocal highest_id
        metadata = dict(f.metadata)
        if not _is_id(metadata.get(ID)):
            highest_id += 1
            metadata[ID] = highest_id
        if not metadata.get(PHYSICAL_NAME):
            metadata[PHYSICAL_NAME] = name_by_id(metadata[ID]) if is_named_by_id else physical(f)
        parts = _nested_names(metadata[PHYSICAL_NAME], f.data_type) if assigns_nested_ids else []
        if parts:
            existing_ids = metadata.get(NESTED_IDS) or {}
            ids = {part: existing_ids.get(part) for part in parts}
            for part in (part for part in parts if not _is_id(ids[part])):
                highest_id += 1
                ids[part] = highest_id
            metadata[NESTED_IDS] = ids
        return StructField(f.name, complete_type(f.data_type), f.nullable, metadata)

    complete_schema = StructType(tuple(complete_field(f) for f in schema.fields))
    return complete_schema, highest_id


def _nested_names(prefix: str, data_type: DataType) -> list[str]:
    """The names of elements, keys and values between a field and the fields inside it, outer names first: `m.key`, `m.value` and
    `m.value.element` for a map `m` of arrays. prefix: the name of the data_type itself."""
    match data_type:
        case ArrayType(element, _):
            inner = {"element": element}
        case MapType(key, value, _):
            inner = {"key": key, "value": value}
        case _:
            return []
    outer_names = [f"{prefix}.{part}" for part in inner]
    return [*outer_names, *(name for part, kind in inner.items() for name in _nested_names(f"{prefix}.{part}", kind))]


def without_column_mapping(schema: StructType) -> StructType:
    """The schema without ids and physical names: for a table that turns column mapping off, or to assign new ones."""

    def strip_field(f: StructField) -> StructField:
        """The field without the metadata of column mapping."""
        return replace(f, metadata={key: item for key, item in f.metadata.items() if not key.startswith("delta.columnMapping.")})

    return map_fields(schema, strip_field)


def _rename(data_type: DataType, mode: str) -> DataType:
    """The type with the physical names of all fields in it."""
    match data_type:
        case StructType():
            return _rename_struct(data_type, mode)
        case ArrayType(element, contains_null):
            return ArrayType(_rename(element, mode), contains_null)
        case MapType(key, value, contains_null):
            return MapType(_rename(key, mode), _rename(value, mode), contains_null)
        case _:
            return data_type


def _rename_struct(struct: StructType, mode: str) -> StructType:
    """The struct with physical names. Raises CorruptTableError if two of its fields have the same one."""
    fields = tuple(to_physical(f, mode) for f in struct.fields)
    names = [f.name for f in fields]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise CorruptTableError(
            f"Columns {', '.join(struct.names)} share the physical names {', '.join(repeated)}; "
            "it is unknown which column holds which data. The metaData action is damaged.",
            physical_names=repeated,
        )
    return StructType(fields)


def _max_id(data_type: DataType) -> int:
    """The greatest column id in the type, also of elements, keys and values; 0 if there is none."""
    match data_type:
        case StructType(fields):
            field_ids = (number for f in fields for number in (f.metadata.get(ID), *(f.metadata.get(NESTED_IDS) or {}).values()))
            ids = [number for number in field_ids if isinstance(number, int) and _is_id(number)]
            return max([0, *ids, *(_max_id(f.data_type) for f in fields)])
        case ArrayType(element, _):
            return _max_id(element)
        case MapType(key, value, _):
            return max(_max_id(key), _max_id(value))
        case _:
            return 0


def _is_id(value: object) -> bool:
    """Whether the value can be a column id: a whole number, and no boolean, which Python counts as a number."""
    return isinstance(value, int) and not isinstance(value, bool)


def _missing_key_error(f: StructField, key: str, mode: str) -> CorruptTableError:
    """The error for a field without the id or physical name that the mode needs. key: the missing key of its metadata."""
    return CorruptTableError(
        f"Column {f.name!r} has no {key}, which column mapping mode {mode!r} needs: its data cannot be found in the files. "
        "The metaData action is damaged.",
        column=f.name,
        mode=mode,
    )
