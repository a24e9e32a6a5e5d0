"""Rows that keep their ids when they are rewritten: the materialized columns of row tracking.

Ids and commit versions are two additional columns of the rows, with the names from the table's properties. They are part of a
WriteState's schema for rows that already have ids. A null there stands for the file's base row id and default commit version.
Protocol: Row Tracking; Writer Requirements for Row Tracking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from delta_py.errors import CorruptTableError
from delta_py.protocol import column_mapping
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import MATERIALIZED, WriteState
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.types.schema import LONG, StructField, StructType

_ICEBERG_IDS = ({column_mapping.ID: 2147483540}, {column_mapping.ID: 2147483539})  # Iceberg reserves these field ids for them
_METADATA_FIELDS = ("row_id", "row_commit_version")  # of the struct ROW_ADDRESS that a scan returns


@dataclass(frozen=True, slots=True)
class RowIdColumns:
    """The names, in data files, of the two columns that materialize row ids and row commit versions. for_iceberg: the columns
    have the field ids that Iceberg reserves for them."""

    row_id: str
    row_commit_version: str
    for_iceberg: bool = False

    @classmethod
    def of(cls, config: TableConfig) -> RowIdColumns | None:
        """The columns that the table's properties name; None for a table whose rows need not keep their ids."""
        if not config.enabled("rowTracking"):
            return None
        names = [
            config.properties.get(f"delta.rowTracking.materialized{part}ColumnName") for part in ("RowId", "RowCommitVersion")
        ]
        if names[0] is None or names[1] is None:
            raise CorruptTableError(
                "The table tracks rows (delta.enableRowTracking), and its properties do not name the columns for the ids of rows "
                "that move (delta.rowTracking.materializedRowIdColumnName, ...CommitVersionColumnName). The metadata is damaged."
            )
        return cls(names[0], names[1], 3 in config.iceberg_versions)

    def add_to_state(self, state: WriteState) -> WriteState:
        """The state that writes rows with ids: its schema ends with the two columns."""
        ids = _ICEBERG_IDS if self.for_iceberg else ({}, {})
        names = (self.row_id, self.row_commit_version)
        fields = tuple(
            StructField(n, LONG, metadata={MATERIALIZED: True, **iceberg_id}) for n, iceberg_id in zip(names, ids, strict=True)
        )
        return replace(state, schema=StructType((*state.schema.fields, *fields)))

    def drop_from_state(self, state: WriteState) -> WriteState:
        """The inverse of add_to_state: the state that writes rows without ids."""
        return replace(state, schema=StructType(state.schema.fields[: -len(_METADATA_FIELDS)]))

    def append_to_rows(self, batch: pa.RecordBatch, row_ids: pa.Array, row_commit_versions: pa.Array) -> pa.RecordBatch:
        """The batch with the two columns at its end."""
        names = [*batch.schema.names, self.row_id, self.row_commit_version]
        return pa.RecordBatch.from_arrays([*batch.columns, row_ids, row_commit_versions], names=names)

    def convert_scanned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch of a scan of all columns and row_id_fields(): the two columns replace that struct."""
        ids_and_versions = batch.column(ROW_ADDRESS)
        row_ids, row_commit_versions = (ids_and_versions.field(name) for name in _METADATA_FIELDS)
        return self.append_to_rows(batch.drop_columns([ROW_ADDRESS]), row_ids, row_commit_versions)


def row_id_fields() -> StructField:
    """The column that a scan must return in addition to the table's columns, so that `convert_scanned` can be used."""
    return StructField(ROW_ADDRESS, StructType(tuple(StructField(name, LONG) for name in _METADATA_FIELDS)))
