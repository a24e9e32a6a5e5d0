"""Columns of a Parquet file that the table's schema lacks, at any depth: data of a dropped column.

    UnknownColumns.of(config).are_in(pq.ParquetFile(source))

Fields are identified by their ids if the table maps columns by id and the file has ids, and else by their physical names,
ignoring case. The materialized columns of row tracking are known. The content of a variant counts as one value.
Protocol: Column Mapping; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow.parquet as pq

from delta_py.parquet.file_schema import FileField, FileSchema, Shape, read_file_schema
from delta_py.protocol.column_mapping import ID, to_physical
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import ArrayType, DataType, MapType, StructType

_MATERIALIZED = ("delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName")


@dataclass(frozen=True, slots=True)
class UnknownColumns:
    """Finds out whether files have columns that a table does not know. The fields describe the columns that the table knows.

    schema: with physical names. by_id: whether the table maps columns by id. materialized_names: the lower-case names of the row
    tracking columns, which are not in the schema.
    """

    schema: StructType
    by_id: bool
    materialized_names: frozenset[str]

    @classmethod
    def of(cls, config: TableConfig) -> Self:
        """For the table with this configuration."""
        mode = config.column_mapping_mode
        materialized_columns = (config.properties.get(name) for name in _MATERIALIZED)
        return cls(
            to_physical(config.schema, mode),
            mode == "id",
            frozenset(name.lower() for name in materialized_columns if name is not None),
        )

    def are_in(self, file: pq.ParquetFile) -> bool:
        """Whether the file has a column, at any depth, that the table lacks."""
        columns = read_file_schema(file)
        fields = [field for field in columns.fields if field.name.lower() not in self.materialized_names]
        return self._has_unknown_field(fields, self.schema, columns)

    def _has_unknown_field(self, fields: Sequence[FileField], struct: StructType, columns: FileSchema) -> bool:
        """Whether the struct lacks one of the file's fields, or a field at any depth inside of one."""
        known_fields = self._types_by_key(struct, columns)
        for field in fields:
            data_type = known_fields.get(field.field_id if self._uses_ids(columns) else field.name.lower())
            if data_type is None or self._contains_unknown_field(field, data_type, columns):
                return True
        return False

    def _types_by_key(self, struct: StructType, columns: FileSchema) -> Mapping[object, DataType]:
        """The types of the struct's fields, by the key that identifies them in this file: the id, or the lower-case name."""
        if self._uses_ids(columns):
            return {f.metadata.get(ID): f.data_type for f in struct.fields}
        return {f.name.lower(): f.data_type for f in struct.fields}

    def _uses_ids(self, columns: FileSchema) -> bool:
        return self.by_id and columns.has_field_ids

    def _contains_unknown_field(self, field: FileField, data_type: DataType, columns: FileSchema) -> bool:
        """Whether a field of the file contains a field that the table's type for it lacks. Values of other types contain none."""
        match data_type, field.shape:
            case StructType(), Shape.STRUCT:
                return self._has_unknown_field(field.children, data_type, columns)
            case ArrayType(element, _), Shape.LIST:
                return self._contains_unknown_field(field.children[0], element, columns)
            case MapType(key, value, _), Shape.MAP:
                key_field, value_field = field.children
                return self._contains_unknown_field(key_field, key, columns) or self._contains_unknown_field(
                    value_field, value, columns
                )
        return False
