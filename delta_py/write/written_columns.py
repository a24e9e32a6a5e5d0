"""The columns of a data file and their form: physical names, field ids, Arrow types.

Protocol: Data Files; Delta Data Type to Parquet Type Mappings; Writer Requirements for Column Mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol import column_mapping
from delta_py.row_rules.geospatial import parquet_type
from delta_py.row_rules.write_state import MATERIALIZED, WriteState
from delta_py.types.nested_arrays import with_elements, with_entries
from delta_py.types.schema import (
    VARIANT_ARROW,
    VOID,
    ArrayType,
    DataType,
    GeospatialType,
    MapType,
    StructField,
    StructType,
    to_arrow_type,
)


def file_fields(state: WriteState) -> tuple[StructField, ...]:
    """The columns that files contain. Void columns and void fields of structs are left out (a column that a file lacks is null).
    Partition columns are left out unless the table requires them or there would be no other column; then they come last.
    Protocol: Data Files.
    """
    stored_fields = _without_void(state.schema).fields
    data = tuple(f for f in stored_fields if f.name not in state.partition_columns)
    partitions = tuple(f for f in stored_fields if f.name in state.partition_columns)
    return (*data, *partitions) if state.keep_partition_columns or not data else data


def _without_void(struct: StructType) -> StructType:
    """The struct as files contain it. A struct of only void fields keeps them: a Parquet group without fields is not valid, and
    without the group readers could not see which structs are null. Only rows that another program wrote have such structs."""
    stored_fields = tuple(
        replace(f, data_type=_without_void(f.data_type)) if isinstance(f.data_type, StructType) else f
        for f in struct.fields
        if f.data_type != VOID
    )
    return StructType(stored_fields) if stored_fields else struct


def physical_field(f: StructField, mode: str) -> StructField:
    """The field under its name in data files. The columns of row ids already have it (MATERIALIZED)."""
    return f if MATERIALIZED in f.metadata else column_mapping.to_physical(f, mode)


def parquet_field(physical: StructField) -> pa.Field:
    """A field of a data file. All are optional in Parquet, so that a constraint can be dropped without a rewrite.
    Protocol: Delta Data Type to Parquet Type Mappings; Writer Requirements for Column Mapping."""
    field_id = physical.metadata.get(column_mapping.ID)
    metadata = None if field_id is None else {b"PARQUET:field_id": str(field_id).encode()}
    kind = _parquet_type(physical.data_type, physical.name, physical.metadata.get(column_mapping.NESTED_IDS) or {})
    return pa.field(physical.name, kind, nullable=True, metadata=metadata)


def _parquet_type(data_type: DataType, name: str, nested_ids: Mapping[str, int]) -> pa.DataType:
    """The Arrow type of a column or a part of it, with the field ids of elements, keys and values that Iceberg needs.

    name: the name of the nearest enclosing field, with the parts between it and the type, such as `tags.element`. nested_ids:
    field ids by such names. Protocol: Iceberg Compatibility V2.
    """

    def part(kind: DataType, part_name: str, *, nullable: bool = True) -> pa.Field:
        """A field for a part of the type, with its field id. kind: the part's type. part_name: element, key or value."""
        field_id = nested_ids.get(f"{name}.{part_name}")
        metadata = None if field_id is None else {b"PARQUET:field_id": str(field_id).encode()}
        return pa.field(part_name, _parquet_type(kind, f"{name}.{part_name}", nested_ids), nullable=nullable, metadata=metadata)

    match data_type:
        case StructType(fields):
            return pa.struct([parquet_field(f) for f in fields])
        case ArrayType(element, _):
            return pa.list_(part(element, "element"))
        case MapType(key, value, _):
            return pa.map_(part(key, "key", nullable=False), part(value, "value"))
        case GeospatialType():
            return parquet_type(data_type)
    return to_arrow_type(data_type)


def convert_structure(array: pa.Array, into: pa.DataType) -> pa.Array:
    """The same values with other names and nullability of nested fields, without the void fields of structs that `into` lacks. No
    value is copied, except for parts of null variants."""
    if isinstance(into, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(into, array)
    if into.equals(VARIANT_ARROW):
        return _with_parts_below_nulls(array)
    if array.type.equals(into, check_metadata=True) and not _contains_variant(into):
        return array
    if pa.types.is_struct(into):
        # The values below a null struct do not count: a variant there must be null, too.
        hides_values = array.null_count and _contains_variant(into)
        parts = array.flatten() if hides_values else map(array.field, range(array.type.num_fields))
        if into.num_fields < array.type.num_fields:
            parts = [part for part in parts if not pa.types.is_null(part.type)]
        children = [convert_structure(part, f.type) for part, f in zip(parts, into, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(into), mask=array.is_null())
    if pa.types.is_list(into):
        return with_elements(array, partial(convert_structure, into=into.value_type), into)
    if pa.types.is_map(into):
        to_key, to_value = (partial(convert_structure, into=kind) for kind in (into.key_type, into.item_type))
        return with_entries(array, to_key, to_value, into)
    return array


def _contains_variant(into: pa.DataType) -> bool:
    """Whether the type contains a variant, at any depth."""
    return into.equals(VARIANT_ARROW) or any(_contains_variant(into.field(i).type) for i in range(into.num_fields))


def _with_parts_below_nulls(variants: pa.StructArray) -> pa.StructArray:
    """Give null variants empty parts: Parquet requires both parts, and Arrow's writer looks for them below null variants as well.
    A non-null variant that lacks a part is not changed: that writer refuses it."""
    if not variants.null_count:
        return variants
    parts = [pc.if_else(variants.is_null(), b"", variants.field(i)) for i in range(variants.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=variants.is_null())
