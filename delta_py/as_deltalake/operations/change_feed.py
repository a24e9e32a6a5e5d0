"""deltalake's load_cdf: the change data feed, with deltalake's defaults for its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from delta_py.as_deltalake.arrow_exchange import view_type
from delta_py.errors import ChangeDataFeedError, TimestampOutOfRangeError
from delta_py.scan.file_groups import CHANGE_FIELDS, COMMIT_TIMESTAMP, COMMIT_VERSION
from delta_py.table import DeltaTable
from delta_py.types.schema import StructType, to_arrow_schema

# Error classes of a start after the newest version.
_AFTER_NEWEST = ("DELTA_CDC_START_VERSION_AFTER_LATEST", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT")


def read_changes(
    table: DeltaTable,
    starting_version: int | None,
    ending_version: int | None,
    starting_time: datetime | None,
    ending_time: datetime | None,
    columns: Sequence[str] | None,
    predicate: str | None,
    *,
    allow_out_of_range: bool,
) -> pa.RecordBatchReader:
    """The changes between two versions, or two times. Without a start, they begin with version 0. predicate: in Spark's dialect.
    allow_out_of_range: a start after the newest version gives no rows, instead of an error. Raises as DeltaTable.changes."""
    try:
        return _with_deltalake_types(
            table.load_cdf(starting_version, ending_version, starting_time, ending_time, columns=columns, predicate=predicate)
        )
    except (ChangeDataFeedError, TimestampOutOfRangeError) as error:
        if not allow_out_of_range or error.error_class not in _AFTER_NEWEST:
            raise
        schema = to_arrow_schema(StructType((*table.struct_type.fields, *CHANGE_FIELDS)))
        names = columns or schema.names
        empty = pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in names]), [])
        return _with_deltalake_types(empty)


def _with_deltalake_types(changes: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows with the types of deltalake's feed: times of commits in milliseconds without a zone (UTC), unsigned versions,
    texts as views."""
    types = {COMMIT_TIMESTAMP: pa.timestamp("ms"), COMMIT_VERSION: pa.uint64()}
    schema = pa.schema([field.with_type(types.get(field.name, view_type(field.type))) for field in changes.schema])
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in changes))
