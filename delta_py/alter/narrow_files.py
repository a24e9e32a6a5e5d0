"""Rewrite of files whose columns have narrower types than the table's, before type widening is dropped.

    optimize(store, OptimizeRequest(), LocalBinWriters(), kind=NarrowFiles)

It reads the footers, many in parallel; files that have the table's types do not change. OPTIMIZE does the rewrite: the class here
only selects the files.
Protocol: Type Widening; Add File and Remove File.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.optimize.reorg import Purge
from delta_py.protocol.column_mapping import ID
from delta_py.types.schema import ArrayType, DataType, MapType, StructType, to_arrow_type

_FIELD_ID = b"PARQUET:field_id"


class NarrowFiles(Purge):
    """Selects the files that have a narrower type than the table in some column, for a rewrite. A file is also selected if its
    types cannot be told for certain."""

    def _select_candidates(self, files: pa.Table, limit: int) -> pa.ChunkedArray:
        return pc.is_in(files["path"], self._select_by_footer(files, self._is_narrow))

    def _is_narrow(self, file: pq.ParquetFile) -> bool:
        """Whether a column of the file has another type than the table's. Only the footer of the file is read."""
        schema = self.snapshot.config.physical_schema
        return not _has_types(list(file.schema_arrow), schema, by_id=self.snapshot.config.column_mapping_mode == "id")


def _has_types(fields: list[pa.Field], struct: StructType, *, by_id: bool) -> bool:
    """Whether the fields of a file have the types of the table's fields. Fields that the table lacks do not matter. by_id:
    fields match by their ids.
    """
    # A field without an id is matched by its name even with by_id.
    types_by_name: Mapping[Any, DataType] = {f.name.lower(): f.data_type for f in struct.fields}
    types_by_id = {f.metadata.get(ID): f.data_type for f in struct.fields} if by_id else {}
    for field in fields:
        field_id = (field.metadata or {}).get(_FIELD_ID)
        table_type = types_by_id.get(int(field_id)) if by_id and field_id is not None else types_by_name.get(field.name.lower())
        if table_type is not None and not _has_type(field.type, table_type, by_id=by_id):
            return False
    return True


def _has_type(file_type: pa.DataType, table_type: DataType, *, by_id: bool) -> bool:
    """Whether a file's column has the table's type. Timestamps match in any unit."""
    match table_type:
        case StructType():
            return pa.types.is_struct(file_type) and _has_types(list(file_type), table_type, by_id=by_id)
        case ArrayType(element, _):
            return pa.types.is_list(file_type) and _has_type(file_type.value_type, element, by_id=by_id)
        case MapType(key, value, _):
            part_pairs = ((file_type.key_type, key), (file_type.item_type, value)) if pa.types.is_map(file_type) else ()
            return bool(part_pairs) and all(_has_type(file_part, part_type, by_id=by_id) for file_part, part_type in part_pairs)
    arrow_type = to_arrow_type(table_type)
    if pa.types.is_timestamp(arrow_type):
        return bool(pa.types.is_timestamp(file_type))
    # Texts and bytes, which have several types in Arrow, are never narrowed.
    return bool(file_type.equals(arrow_type)) or not (pa.types.is_primitive(file_type) or pa.types.is_decimal(file_type))
