"""`DeltaTable.alter`: ALTER TABLE on the table's newest version. Method names are those of deltalake if it has them.

    DeltaTable("/data/t").alter.add_columns([NewColumn("x", LONG)])

Each method returns the version: the new one, or the newest if nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_py.alter.alter import add_feature, set_properties, unset_properties
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column, replace_columns
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.alter.sync_identity import sync_identity
from delta_py.alter.table_constraints import add_constraints, drop_constraint
from delta_py.alter.table_labels import set_column_metadata, set_table_description, set_table_name
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import DataType, StructField, StructType, from_arrow_schema, from_arrow_type


@raises_storage_errors(lambda alterer: alterer.store.root)
@dataclass(frozen=True, slots=True)
class TableAlterer:
    """The methods of `DeltaTable.alter`. time_zone: the zone in which the SQL of constraints is evaluated."""

    store: ObjectStore
    time_zone: str = "UTC"

    # ------------------------------------------------------------ columns

    def add_columns(
        self, columns: pa.Schema | pa.Field | StructType | StructField | Sequence[NewColumn | pa.Field | StructField]
    ) -> int:
        """Add columns; NewColumn also allows fields of structs, and positions. Raises as alter_columns.add_columns."""
        if isinstance(columns, pa.Field | StructField):
            columns = [columns]
        if isinstance(columns, StructType):
            columns = columns.fields
        return add_columns(self.store, [_new_column(column) for column in columns])

    def rename_column(self, name: str, new_name: str) -> int:
        return rename_column(self.store, name, new_name)

    def drop_columns(self, names: Sequence[str], *, if_exists: bool = False) -> int:
        return drop_columns(self.store, names, if_exists=if_exists)

    def change_column(
        self,
        name: str,
        *,
        data_type: DataType | pa.DataType | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        drop_default: bool = False,
        first: bool = False,
        after: str | None = None,
    ) -> int:
        """Change one column, or a nested part of it. None and False mean unchanged; the parameters are those of ColumnChange.
        Raises as alter_columns.change_columns."""
        delta_type = from_arrow_type(data_type) if isinstance(data_type, pa.DataType) else data_type
        change = ColumnChange(name, delta_type, nullable, comment, default, drop_default, first, after)
        return change_columns(self.store, [change])

    def change_columns(self, changes: Sequence[ColumnChange]) -> int:
        return change_columns(self.store, changes)

    def drop_column_not_null(self, name: str) -> int:
        return change_columns(self.store, [ColumnChange(name, nullable=True)])

    def replace_columns(self, columns: pa.Schema | StructType) -> int:
        """Give the table these columns, in this order. Raises as alter_columns.replace_columns."""
        return replace_columns(self.store, from_arrow_schema(columns) if isinstance(columns, pa.Schema) else columns)

    def sync_identity(self, name: str) -> int:
        return sync_identity(self.store, name)

    # ------------------------------------------------------------ constraints, properties, features

    def add_constraint(self, constraints: Mapping[str, str]) -> int:
        """Add CHECK constraints, by name and SQL, in one commit. Raises as table_constraints.add_constraints."""
        return add_constraints(self.store, constraints, time_zone=self.time_zone)

    def drop_constraint(self, name: str, raise_if_not_exists: bool = True) -> int:
        return drop_constraint(self.store, name, if_exists=not raise_if_not_exists)

    def set_table_properties(self, properties: Mapping[str, str]) -> int:
        return set_properties(self.store, properties)

    def unset_table_properties(self, names: Sequence[str], *, if_exists: bool = False) -> int:
        return unset_properties(self.store, names, if_exists=if_exists)

    def set_table_name(self, name: str) -> int:
        return set_table_name(self.store, name)

    def set_table_description(self, description: str) -> int:
        return set_table_description(self.store, description)

    def set_column_metadata(self, column: str, metadata: Mapping[str, Any]) -> int:
        """Add keys to the metadata of a column, nested ones dotted. Raises as table_labels.set_column_metadata."""
        return set_column_metadata(self.store, column, metadata)

    def add_feature(self, name: str) -> int:
        return add_feature(self.store, name)

    def drop_feature(self, name: str, *, truncate_history: bool = False) -> int:
        """Remove a feature from the protocol, and its traces from the table. Raises as drop_feature.drop_feature."""
        return drop_feature(self.store, name, truncate_history=truncate_history)


def _new_column(column: NewColumn | pa.Field | StructField) -> NewColumn:
    if isinstance(column, NewColumn):
        return column
    field = from_arrow_schema(pa.schema([column])).fields[0] if isinstance(column, pa.Field) else column
    return NewColumn((field.name,), field.data_type, field.nullable, metadata=field.metadata)
