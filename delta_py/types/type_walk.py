"""Every type and every field inside a type, at any depth, with its path if the caller needs it.

    [path for path, field in fields_with_paths(schema) if not field.nullable]

The element of an array, and the key and value of a map, have the names `element`, `key` and `value` in a path.
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_py.types.schema import ArrayType, DataType, MapType, Path, StructField, StructType


def all_fields(data_type: DataType) -> Iterator[StructField]:
    """Every struct field at any depth, outer before inner, also inside arrays and maps."""
    return (field for _, field in fields_with_paths(data_type))


def fields_with_paths(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, StructField]]:
    """Every struct field at any depth, outer before inner, also inside arrays and maps, with its path."""
    match data_type:
        case StructType(fields):
            for f in fields:
                yield (*path, f.name), f
                yield from fields_with_paths(f.data_type, (*path, f.name))
        case ArrayType() | MapType():
            for part_path, part in direct_parts(data_type, path):
                yield from fields_with_paths(part, part_path)


def all_types(data_type: DataType) -> Iterator[DataType]:
    """A type and every type inside it."""
    return (inner_type for _, inner_type in types_with_paths(data_type))


def types_with_paths(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """A type and every type inside it, with their paths."""
    yield path, data_type
    for inner_path, inner_type in direct_parts(data_type, path):
        yield from types_with_paths(inner_type, inner_path)


def direct_parts(data_type: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    """The fields of a struct, the element of an array, the key and the value of a map, with their paths."""
    match data_type:
        case StructType(fields):
            yield from (((*path, f.name), f.data_type) for f in fields)
        case ArrayType(element, _):
            yield (*path, "element"), element
        case MapType(key, value, _):
            yield (*path, "key"), key
            yield (*path, "value"), value
