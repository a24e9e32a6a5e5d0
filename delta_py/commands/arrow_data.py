"""Rows that a caller hands over, as Arrow batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_py.errors import UnsupportedOperationError


def arrow_stream(data: Any) -> pa.RecordBatchReader:
    """The rows of data as Arrow batches, none of them empty: an empty one that lies far in its column comes through Arrow's C
    stream with an offset beyond its buffers, and then cannot be put together with others. Raises as write_delta."""
    reader = _arrow_stream(data)
    return pa.RecordBatchReader.from_batches(reader.schema, (batch for batch in reader if batch.num_rows))


def _arrow_stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
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


def _of_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = ". ".join(str(part) for part in error.args)
        raise UnsupportedOperationError(
            f"The pandas frame cannot become columns of a table: {what}. Nothing was written. Give each column a name of its own "
            "and values of one type, such as frame.astype({'column': 'string'})."
        ) from error
