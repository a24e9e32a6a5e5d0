"""The part `maintenance`: OPTIMIZE beside delta-spark, a session of its own for each writer."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common import Part, Sizes
from benchmarks.dml_part import operations_part

# Of pydelta's time over delta-spark's. The names are dml_run's.
TARGETS = {"optimize 200 small files": 0.8}


def maintenance_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    title = f"## Maintenance: a table of {sizes.scan_rows:,} rows x 10 columns, Spark 4.2.0"
    return operations_part(title, TARGETS, directory, sizes, peer)
