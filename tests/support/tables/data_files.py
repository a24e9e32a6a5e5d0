"""Data files in a directory, and reads of them by a ScanState without a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from delta_py.parquet.file_reader import read_files
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, inline_descriptor
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanFile, ScanState
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import DataType, StructField, StructType, to_arrow_schema


def write_file(root: Path, name: str, table: pa.Table | dict[str, Any], **options: Any) -> ScanFile:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **{"store_schema": False, **options})
    return ScanFile(name, path.stat().st_size, modification_time_ms=1_700_000_000_123)


def column(
    name: str, data_type: DataType, source: ColumnSource = ColumnSource.DATA, *, physical: StructField | None = None
) -> ScanColumn:
    logical = StructField(name, data_type)
    return ScanColumn(logical, physical or logical, source)


def scan_state(root: Path, columns: Sequence[ScanColumn], *, store: ObjectStore | None = None, **options: Any) -> ScanState:
    return ScanState(store or LocalStore(str(root)), tuple(columns), **options)


def read_batches(state: ScanState, files: Iterable[ScanFile] | ScanFile) -> list[pa.RecordBatch]:
    """All batches, each checked: the exact schema, valid arrays, not empty."""
    schema = to_arrow_schema(StructType(tuple(c.logical for c in state.columns)))
    batches = list(read_files(state, [files] if isinstance(files, ScanFile) else files))
    for batch in batches:
        assert batch.schema.equals(schema)
        for array, field in zip(batch.columns, schema, strict=True):
            assert array.type.equals(field.type)
        batch.validate(full=True)
        assert batch.num_rows > 0
    return batches


def read_table(state: ScanState, files: Iterable[ScanFile] | ScanFile) -> pa.Table:
    schema = to_arrow_schema(StructType(tuple(c.logical for c in state.columns)))
    return pa.Table.from_batches(read_batches(state, files), schema=schema)


def read_rows(state: ScanState, files: Iterable[ScanFile] | ScanFile) -> list[dict[str, Any]]:
    return list(read_table(state, files).to_pylist())


def inline_vector(rows: Iterable[int]) -> DeletionVectorDescriptor:
    return inline_descriptor(BitMap64(list(rows)))
