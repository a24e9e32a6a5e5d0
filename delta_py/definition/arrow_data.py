"""Rows that a caller passes, as Arrow batches in the plain layout.

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
    """The rows of data as Arrow batches in the plain layout (types/arrow_layouts.py). No batch is empty: an empty one whose
    offset lies far in its column comes through Arrow's C stream with an offset beyond its buffers, and cannot be concatenated
    with others.

    Raises TypeError for data without an Arrow stream; UnsupportedOperationError for a column whose type holds no data
    (DELTA_UNSUPPORTED_DATA_TYPES), or that Delta does not have, before any row is read.
    """
    _check_no_python_objects(data)
    reader = _arrow_stream(data)
    for field in reader.schema:
        _check_has_data(field, field.name)
    from_arrow_schema(reader.schema)
    batches = (piece for batch in reader if batch.num_rows for piece in plain_batches(batch))
    return pa.RecordBatchReader.from_batches(plain_schema(reader.schema), batches)


def _arrow_stream(data: Any) -> pa.RecordBatchReader:
    """The data as a reader of batches, without a copy if possible."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if _is_of(data, "pandas") and hasattr(data, "columns"):
        data = _of_pandas(data)
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


def _is_of(data: Any, library: str) -> bool:
    """Whether the data is an object of a library, or of a class derived from one of its classes."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(data).__mro__)


def _of_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = ". ".join(str(part) for part in error.args)
        raise UnsupportedOperationError(
            f"The pandas frame cannot become columns of a table: {what}. Nothing was written. Give each column a name of its own "
            "and values of one type, such as frame.astype({'column': 'string'})."
        ) from error


# ---------------------------------------------------------------- types that hold no data


def _check_no_python_objects(data: Any) -> None:
    """polars exports a column of Python objects as their addresses in memory, in a type that does not reveal this."""
    if not _is_of(data, "polars"):
        return
    for name, kind in dict(getattr(data, "schema", None) or {}).items():
        if _holds_objects(kind):
            raise _no_data(
                name,
                f"the polars type {kind}, whose values are Python objects: Arrow gets only their addresses in memory",
                "Convert the column to text or to a struct, or leave it out, as in frame.drop(...)",
            )


def _holds_objects(kind: Any) -> bool:
    """kind: a data type of polars, perhaps nested."""
    if getattr(kind, "__name__", type(kind).__name__) == "Object":
        return True
    inner = [getattr(kind, "inner", None), *(field.dtype for field in getattr(kind, "fields", None) or ())]
    return any(_holds_objects(part) for part in inner if part is not None)


def _check_has_data(field: pa.Field, name: str) -> None:
    """Arrow has extension types whose values mean nothing by themselves. name: the path of the column."""
    kind = field.type
    extension = (field.metadata or {}).get(_EXTENSION_NAME, b"").decode(errors="replace")
    if isinstance(kind, pa.BaseExtensionType):
        extension, kind = str(kind.extension_name), kind.storage_type
    if extension == _PANDAS_PERIOD:
        raise _no_data(
            name,
            "the pandas type period, whose values are numbers that mean nothing without its frequency",
            "Convert the column with .dt.to_timestamp() or .astype('string')",
        )
    if extension == _OPAQUE and pa.types.is_null(kind):
        remedy = "Leave the column out, or convert it at its source"
        raise _no_data(name, f"the Arrow type {field.type}, without any values", remedy)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        _check_has_data(pa.field("", kind.value_type), name)
    for number in range(kind.num_fields if pa.types.is_nested(kind) else 0):
        _check_has_data(kind.field(number), f"{name}.{kind.field(number).name}")


def _no_data(name: str, what: str, remedy: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"Column {name} has {what}. Nothing was written. {remedy}.",
        error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        sql_state="0AKDC",
        column=name,
    )
