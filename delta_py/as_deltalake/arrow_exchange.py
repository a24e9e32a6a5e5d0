"""Arrow objects in the classes that deltalake's users get and pass.

deltalake returns classes of the package arro3. Where it is installed, so do the functions here; else they return pyarrow's. Both
have the Arrow PyCapsule interface, so `pyarrow.table(result)` works in both cases.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from delta_py.types.arrow_layouts import plain_type

# The functions `..._out` return the same value as an object of arro3's class, or unchanged if arro3 is not installed.


def table_out(table: pa.Table) -> Any:
    return _in_arro3(table, "Table")


def reader_out(reader: pa.RecordBatchReader) -> Any:
    return _in_arro3(reader, "RecordBatchReader")


def schema_out(schema: pa.Schema) -> Any:
    return _in_arro3(schema, "Schema")


def field_out(field: pa.Field) -> Any:
    return _in_arro3(field, "Field")


def type_out(data_type: pa.DataType) -> Any:
    return _in_arro3(data_type, "DataType")


def _in_arro3(value: Any, class_name: str) -> Any:
    """The value as an object of arro3's class of this name; the value itself if arro3 is not installed."""
    if importlib.util.find_spec("arro3") is None:
        return value
    return getattr(importlib.import_module("arro3.core"), class_name).from_arrow(value)


def type_in(data_type: Any) -> pa.DataType:
    """pyarrow's type for an Arrow type of any library. Raises TypeError for another value."""
    if isinstance(data_type, pa.DataType):
        return data_type
    if not hasattr(data_type, "__arrow_c_schema__"):
        return pa.field(data_type).type  # raises TypeError
    return pa.DataType._import_from_c_capsule(data_type.__arrow_c_schema__())


def field_in(field: Any) -> pa.Field:
    return field if isinstance(field, pa.Field) else pa.Field._import_from_c_capsule(field.__arrow_c_schema__())


def schema_in(schema: Any) -> pa.Schema:
    return schema if isinstance(schema, pa.Schema) else pa.schema(schema)


def reader_in(data: Any) -> pa.RecordBatchReader:
    """A reader of rows of any library, or of a sequence of batches. Raises TypeError for data without an Arrow interface;
    ValueError for an empty sequence."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        batches = [_batch(batch_like) for batch_like in data]
        if not batches:
            raise ValueError("The list of batches is empty, so the columns are unknown. Pass a table without rows instead.")
        return pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = _batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise TypeError(f"{type(data).__name__} has no Arrow interface. Pass a table of pyarrow, polars or pandas, or batches.")


def _batch(batch_like: Any) -> pa.RecordBatch:
    return batch_like if isinstance(batch_like, pa.RecordBatch) else pa.record_batch(batch_like)


def large_types(schema: pa.Schema) -> pa.Schema:
    """The schema with 64-bit offsets of texts, binary values and lists, at any depth."""
    return pa.schema([field.with_type(_with_large_offsets(field.type)) for field in schema])


def _with_large_offsets(data_type: pa.DataType) -> pa.DataType:
    """The type with 64-bit offsets, at any depth."""
    data_type = plain_type(data_type)
    if pa.types.is_string(data_type):
        return pa.large_string()
    if pa.types.is_binary(data_type):
        return pa.large_binary()
    if pa.types.is_list(data_type):
        return pa.large_list(data_type.value_field.with_type(_with_large_offsets(data_type.value_type)))
    if pa.types.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return pa.map_(key.with_type(_with_large_offsets(key.type)), item.with_type(_with_large_offsets(item.type)))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_with_large_offsets(field.type)) for field in data_type])
    return data_type


def view_type(data_type: pa.DataType) -> pa.DataType:
    """Texts and binary values as views, which DataFusion and so deltalake's queries return."""
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return pa.string_view()
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return pa.binary_view()
    return data_type
