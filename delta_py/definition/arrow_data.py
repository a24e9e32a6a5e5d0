"""Rows that a caller passes, as Arrow batches in the plain layout: the Arrow types that the rest of the code handles.

All data of callers comes through here: rows to write, and the source of a MERGE.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_py.errors import UnsupportedOperationError
from delta_py.row_rules.plain_layout import plain_batches
from delta_py.types.arrow_layouts import plain_schema
from delta_py.types.schema import from_arrow_schema

_EXTENSION_NAME = b"ARROW:extension:name"
_PANDAS_PERIOD, _OPAQUE = "pandas.period", "arrow.opaque"


def arrow_stream(data: Any) -> pa.RecordBatchReader:
    """The rows of data as Arrow batches in the plain layout (types/arrow_layouts.py). Empty batches are left out: an
    empty batch that was cut out of a long column gets an offset beyond its buffers in Arrow's C stream, and cannot be
    concatenated with others.

    Raises TypeError for data without an Arrow stream; UnsupportedOperationError for a column whose type holds no data
    (DELTA_UNSUPPORTED_DATA_TYPES), or that Delta does not have, before any row is read.
    """
    _check_no_python_objects(data)
    reader = _reader_of(data)
    for field in reader.schema:
        _check_has_data(field, field.name)
    from_arrow_schema(reader.schema)  # raises for types that Delta does not have
    batches = (piece for batch in reader if batch.num_rows for piece in plain_batches(batch))
    return pa.RecordBatchReader.from_batches(plain_schema(reader.schema), batches)


def _reader_of(data: Any) -> pa.RecordBatchReader:
    """The data as a reader of batches, without a copy if possible."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if _is_of_library(data, "pandas") and hasattr(data, "columns"):
        data = _table_of_pandas(data)
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(
            f"{type(data).__name__} gives no Arrow stream (__arrow_c_stream__). Pass a pyarrow Table or RecordBatchReader, a "
            "pandas, polars or duckdb frame, or convert it with pyarrow.table(...)."
        )
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        raise UnsupportedOperationError(
            f"The data's Arrow stream cannot be read: {error}. Nothing was written. Columns nested more than 60 levels deep "
            "cannot be passed so: flatten them, or pass a RecordBatchReader."
        ) from error


def _is_of_library(data: Any, library: str) -> bool:
    """Whether the data is an object of a library, or of a class derived from one of its classes."""
    return any(base_class.__module__.partition(".")[0] == library for base_class in type(data).__mro__)


def _table_of_pandas(frame: Any) -> pa.Table:
    """A pandas frame as an Arrow table, without its index. Raises UnsupportedOperationError."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        text = ". ".join(str(argument) for argument in error.args)
        raise UnsupportedOperationError(
            f"The pandas frame cannot become columns of a table: {text}. Nothing was written. Give each column a name of its own "
            "and values of one type, such as frame.astype({'column': 'string'})."
        ) from error


# ---------------------------------------------------------------- types that hold no data


def _check_no_python_objects(data: Any) -> None:
    """Raises UnsupportedOperationError for a column of Python objects. polars exports it as their addresses in memory, in a type
    that does not reveal this, so only the type in polars shows it."""
    if not _is_of_library(data, "polars"):
        return
    for name, polars_type in dict(getattr(data, "schema", None) or {}).items():
        if _holds_objects(polars_type):
            raise _no_data_error(
                name,
                f"the polars type {polars_type}, whose values are Python objects: Arrow gets only their addresses in memory",
                "Convert the column to text or to a struct, or leave it out, as in frame.drop(...)",
            )


def _holds_objects(polars_type: Any) -> bool:
    """Whether a data type of polars is, or contains, the type of Python objects."""
    if getattr(polars_type, "__name__", type(polars_type).__name__) == "Object":
        return True
    nested_types = [getattr(polars_type, "inner", None), *(field.dtype for field in getattr(polars_type, "fields", None) or ())]
    return any(_holds_objects(nested_type) for nested_type in nested_types if nested_type is not None)


def _check_has_data(field: pa.Field, name: str) -> None:
    """Raises UnsupportedOperationError for a column, or a part of it, with an extension type of Arrow whose values mean nothing
    by themselves. name: the path of the column."""
    arrow_type = field.type
    extension = (field.metadata or {}).get(_EXTENSION_NAME, b"").decode(errors="replace")
    if isinstance(arrow_type, pa.BaseExtensionType):
        extension, arrow_type = str(arrow_type.extension_name), arrow_type.storage_type
    if extension == _PANDAS_PERIOD:
        raise _no_data_error(
            name,
            "the pandas type period, whose values are numbers that mean nothing without its frequency",
            "Convert the column with .dt.to_timestamp() or .astype('string')",
        )
    if extension == _OPAQUE and pa.types.is_null(arrow_type):
        remedy = "Leave the column out, or convert it at its source"
        raise _no_data_error(name, f"the Arrow type {field.type}, without any values", remedy)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        _check_has_data(pa.field("", arrow_type.value_type), name)
    for index in range(arrow_type.num_fields if pa.types.is_nested(arrow_type) else 0):
        _check_has_data(arrow_type.field(index), f"{name}.{arrow_type.field(index).name}")


def _no_data_error(name: str, what: str, remedy: str) -> UnsupportedOperationError:
    """The error for a column whose type holds no data. what: the type, and why. remedy: what to do."""
    return UnsupportedOperationError(
        f"Column {name} has {what}. Nothing was written. {remedy}.",
        error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        sql_state="0AKDC",
        column=name,
    )
