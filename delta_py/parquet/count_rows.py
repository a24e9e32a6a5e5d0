"""The number of rows of a version for which a predicate is true."""

from __future__ import annotations

from delta_py.expressions.tree import Expression
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot


def count_rows(snapshot: Snapshot, predicate: Expression | None = None, timezone: str = "UTC") -> int:
    """How many rows of the version match. predicate: None for all rows; then the number comes from the log if all files state
    their rows. Raises as plan_scan and read_files."""
    if predicate is None:
        recorded_rows = plan_scan(snapshot, (), None, ScanOptions(count_rows=True, timezone=timezone)).report.rows_kept
        if recorded_rows is not None:
            return recorded_rows
    scan = plan_scan(snapshot, (), predicate, ScanOptions(drop_rows=True, timezone=timezone))
    return sum(batch.num_rows for batch in read_files(scan.state, scan.scan_files()))
