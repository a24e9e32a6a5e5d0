"""QueryBuilder: SQL queries over tables, computed by duckdb.

deltalake computes them with DataFusion. Where duckdb is not installed, the error says what to do; and DeltaTable.scan selects
columns and rows without it. SQL that only DataFusion has is refused by duckdb.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from delta_py.as_deltalake.arrow_exchange import reader_out
from delta_py.as_deltalake.exceptions import DeltaError
from delta_py.as_deltalake.sql_dialects import duckdb_sql
from delta_py.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from delta_py.as_deltalake.table import DeltaTable


class QueryBuilder:
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
        dataset = delta_table.to_pyarrow_dataset()
        self._connection.register(table_name, dataset)
        self._schemas.append(dataset.schema)
        return self

    def execute(self, sql: str) -> Any:
        """The rows of a query, as a stream of batches. Raises DeltaError for SQL that duckdb refuses."""
        try:
            relation = self._connection.sql(duckdb_sql(sql))  # None for a statement without a result
            result = pa.table({}) if relation is None else relation.to_arrow_table()
        except self._error as error:
            raise DeltaError(f"duckdb refuses the query: {error}") from error
        table = _as_datafusion(result, self._schemas)
        return reader_out(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def _as_datafusion(table: pa.Table, schemas: list[pa.Schema]) -> pa.Table:
    """The result with the types that DataFusion gives: texts as views, and NOT NULL where a column of the tables has it."""
    fields = []
    for field, column in zip(table.schema, table.columns, strict=True):
        known = [schema.field(field.name) for schema in schemas if field.name in schema.names]
        is_required = bool(known) and not any(each.nullable for each in known) and column.null_count == 0
        fields.append(pa.field(field.name, _view(field.type), nullable=not is_required))
    return table.cast(pa.schema(fields))


def _view(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return pa.string_view()
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return pa.binary_view()
    return data_type
