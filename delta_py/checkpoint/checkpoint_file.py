"""A checkpoint file that is being built: rows of actions as Parquet, in memory until the file is complete.

Protocol: Checkpoint Schema; Checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.log.reconciliation import StateWithoutFiles
from delta_py.protocol.parquet_settings import ParquetSettings

_ROWS_PER_GROUP = 10_000  # small pieces share a row group of up to this many rows: each group costs some sixty column chunks
# Leaves of file actions with few distinct values. Only these leaves are dictionary-encoded.
_REPETITIVE_LEAVES = (
    "partitionValues.key_value.key",
    "partitionValues.key_value.value",
    "tags.key_value.key",
    "clusteringProvider",
)


@dataclass(slots=True)
class WrittenCheckpoint:
    """What a new checkpoint contains. The counts are filled in while it is written.

    other_actions: the newest action of each kind other than files. file_count, table_bytes: number and total size of the live
    files.
    action_count: rows, including those of sidecars. size_bytes: size of the checkpoint's files, including sidecars.
    """

    version: int
    other_actions: StateWithoutFiles
    file_count: int = 0
    table_bytes: int = 0
    action_count: int = 0
    size_bytes: int = 0

    def count_adds(self, adds: pa.StructArray) -> None:
        """Add the files of a batch of add rows to the counts."""
        self.file_count += len(adds)
        self.table_bytes += pc.sum(adds.field("size")).as_py() or 0

    @property
    def hint(self) -> Mapping[str, Any]:
        """The fields of `_last_checkpoint` except the version. Protocol: Last Checkpoint File Schema."""
        return {"size": self.action_count, "sizeInBytes": self.size_bytes, "numOfAddFiles": self.file_count}


class RowFile:
    """Builds a Parquet file of actions in memory. Each row has one action, in the column of its kind; the other columns are null.

    types: kind of action, which is the column's name -> type of the column. row_count: the rows that were written so far.
    """

    def __init__(self, types: Mapping[str, pa.DataType], settings: ParquetSettings) -> None:
        self._types, self._sink, self.row_count = types, pa.BufferOutputStream(), 0
        schema = pa.schema(list(types.items()))
        dictionary_leaves = [f"{action}.{leaf}" for action in ("add", "remove") for leaf in _REPETITIVE_LEAVES]
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=settings.codec,
            data_page_version=settings.page_version,
            use_dictionary=dictionary_leaves,
            write_page_checksum=True,
            store_schema=False,
        )
        self._schema = schema
        self._buffered_tables: list[pa.Table] = []
        self._buffered_rows = 0

    def write(self, name: str, rows: pa.StructArray) -> None:
        """Write rows of one kind of action. name: the kind. Small pieces share a row group."""
        if len(rows) == 0:
            return
        if self._buffered_rows + len(rows) > _ROWS_PER_GROUP:
            self._end_row_group()
        columns = [rows if kind == name else pa.nulls(len(rows), self._types[kind]) for kind in self._types]
        self._buffered_tables.append(pa.Table.from_arrays(columns, schema=self._schema))
        self._buffered_rows += len(rows)
        self.row_count += len(rows)
        if self._buffered_rows >= _ROWS_PER_GROUP:
            self._end_row_group()

    def _end_row_group(self) -> None:
        """Write the buffered rows as one row group."""
        if self._buffered_tables:
            self._writer.write_table(pa.concat_tables(self._buffered_tables))
        self._buffered_tables, self._buffered_rows = [], 0

    def close(self) -> bytes:
        """The complete Parquet file."""
        self._end_row_group()
        self._writer.close()
        data: bytes = self._sink.getvalue().to_pybytes()
        return data


def rows_of_state(other_actions: StateWithoutFiles) -> dict[str, list[dict[str, Any]]]:
    """All actions except file actions, as JSON objects by kind. other_actions: has a protocol and metadata."""
    assert other_actions.protocol is not None and other_actions.metadata is not None
    return {
        "protocol": [other_actions.protocol.to_json()],
        "metaData": [other_actions.metadata.to_json()],
        "txn": [transaction.to_json() for transaction in other_actions.transactions.values()],
        "domainMetadata": [domain.to_json() for domain in other_actions.domains.values()],
    }


def as_rows(values: Iterable[Mapping[str, Any]], kind: pa.StructType) -> pa.StructArray:
    """Convert JSON objects to a struct column. kind: the type of the column, which says which objects are maps."""
    return pa.array([_row(value, kind) for value in values], kind)


def _row(value: Mapping[str, Any], kind: pa.StructType) -> dict[str, Any]:
    """A JSON object as the value that pa.array needs for a struct: an object in it becomes a dict for a struct field, and a list
    of pairs for a map field. Fields that `kind` does not have are left out."""
    row: dict[str, Any] = {}
    for field in kind:
        item = value.get(field.name)
        if isinstance(item, Mapping):
            item = list(item.items()) if pa.types.is_map(field.type) else _row(item, field.type)
        row[field.name] = item
    return row
