"""Tables that a report has advice for, with a path and a column that need quotes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from delta_py import DeltaTable, write_delta

_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointInterval": "3",
}


def advised_table(directory: Path) -> str:
    """Six small files, a quarter of their rows deleted, all values in every file, and no checkpoint. Returns the path."""
    path = str(directory / "it's a table")
    for number in range(6):
        rows = pa.table({"a.b": np.arange(100) % 50, "c": np.arange(100)})
        write_delta(path, rows, mode="append", configuration=_PROPERTIES if number == 0 else None)
    DeltaTable(path).delete("c % 4 = 0")
    for checkpoint in (Path(path) / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    return path


def clustered_table(directory: Path) -> str:
    """Six files, clustered only by x. Returns the path."""
    path = str(directory / "clustered")
    for number in range(6):
        write_delta(path, pa.table({"x": np.arange(10) + number * 10, "y": np.arange(10)}), mode="append")
    DeltaTable(path).cluster_by(["x"])
    return path
