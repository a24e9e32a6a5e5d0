"""The column `_metadata` of a scan, where the table has a column of this name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import ScanOptions, plan_scan


def test_own_column_of_the_table_comes_first(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "_metadata": ["a", "b"]})
    write_delta(str(tmp_path), rows)
    scan = plan_scan(DeltaTable(str(tmp_path)).snapshot, None, None, ScanOptions(metadata_column=True))
    assert pa.Table.from_batches(list(read_files(scan.state, scan.scan_files()))).to_pydict() == rows.to_pydict()
