"""QueryBuilder: SQL queries over tables, computed by duckdb.

deltalake computes queries with DataFusion. If duckdb is not installed, QueryBuilder raises an error that says what to do;
DeltaTable.scan selects columns and rows without duckdb. duckdb refuses SQL that only DataFusion has.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from delta_py.as_deltalake.arrow_exchange import reader_out, view_type
from delta_py.as_deltalake.exceptions import DeltaError
from delta_py.as_deltalake.sql_dialects import duckdb_sql
from delta_py.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from delta_py.as_deltalake.table import DeltaTable


class QueryBuilder:
    """Runs SQL queries over registered tables. Raises UnsupportedOperationError if duckdb is not installed."""

    def __init__(self) -> None:
        if importlib.util.find_spec("duckdb") is None:
            raise UnsupportedOperationError(
                "QueryBuilder needs duckdb: pip install duckdb. Without it, DeltaTable.scan(columns, predicate) reads rows."
            )
        duckdb: Any = importlib.import_module("duckdb")
        self._connection, self._error = duckdb.connect(), duckdb.Error
        self._schemas: list[pa.Schema] = []

    def register(self, table_name: str, delta_table: DeltaTable) -> Self:
        """Name a table in the queries. Its rows are read when a query runs, at the version that the object has now."""
        self._connection.register(table_name, delta_table.to_pyarrow_dataset())
        self._schemas.append(pa.schema(delta_table.schema()))
        return self

    def execute(self, sql: str) -> Any:
        """Run a query. Returns its rows as a stream of batches. Raises DeltaError for SQL that duckdb refuses."""
        try:
            relation = self._connection.sql(duckdb_sql(sql))  # None for a statement without a result
            result = pa.table({}) if relation is None else relation.to_arrow_table()
        except self._error as error:
            raise DeltaError(f"duckdb refuses the query: {error}") from error
        table = _as_datafusion(result, self._schemas)
        return reader_out(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def _as_datafusion(table: pa.Table, schemas: list[pa.Schema]) -> pa.Table:
    """A result of duckdb with the schema that DataFusion would return: texts as views, instants in UTC, and columns of the
    registered tables with their NOT NULL and their metadata. schemas: of the registered tables, in the order of registration."""
    # If several tables have a column of a name, the table that was registered first decides.
    table_fields = {field.name: field for schema in reversed(schemas) for field in schema}
    fields = []
    for field, column in zip(table.schema, table.columns, strict=True):
        table_field = table_fields.get(field.name, field)
        column_type = _in_utc(field.type)
        is_same = table_field.type == column_type
        is_nullable = table_field.nullable or not is_same or column.null_count > 0
        fields.append(pa.field(field.name, view_type(column_type), is_nullable, table_field.metadata if is_same else None))
    return table.cast(pa.schema(fields))


def _in_utc(data_type: pa.DataType) -> pa.DataType:
    """The type with UTC as its time zone, if it is an instant: duckdb returns instants in the zone of the process."""
    is_instant = pa.types.is_timestamp(data_type) and data_type.tz is not None
    return pa.timestamp(data_type.unit, "UTC") if is_instant else data_type
