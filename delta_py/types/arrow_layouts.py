"""Arrow types without their layout: many Arrow types hold the same values and differ only in their memory layout.

    plain_type(dictionary<values=string_view, indices=uint32>)  -> string
    plain_type(large_list_view<item: run_end_encoded<int64>>)   -> list<item: int64>

In: any Arrow type. Out: the type with the layout that pydelta works with. row_rules/plain_layout.py converts values.
"""

from __future__ import annotations

import pyarrow as pa

# Shapes keep their extension type: its metadata has the CRS that row_rules/geospatial.py compares with the column's CRS.
_SHAPES = "geoarrow."


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type for the same values without dictionaries, runs, views, 64-bit offsets, fixed sizes and extensions."""
    types = pa.types
    if is_geospatial(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if is_list_like(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_plain_field(field) for field in schema], schema.metadata)


def is_geospatial(kind: pa.DataType) -> bool:
    """Whether values are geometries or geographies of GeoArrow."""
    return isinstance(kind, pa.BaseExtensionType) and str(kind.extension_name).startswith(_SHAPES)


def is_list_like(kind: pa.DataType) -> bool:
    """Whether values are lists, in any of Arrow's five list layouts."""
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _plain_field(field: pa.Field) -> pa.Field:
    """The field keeps its metadata, which marks the parts of variants and shapes."""
    return field.with_type(plain_type(field.type))
