"""The part `maintenance`: OPTIMIZE beside delta-spark, a session of its own for each writer; VACUUM of very many files."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from benchmarks.common import HERE, Part, Sizes, run_json, table_text
from benchmarks.dml_part import operations_part

# Of pydelta's time over delta-spark's. The names are dml_run's.
TARGETS = {"optimize 200 small files": 0.8}

# Of VACUUM in a process without Spark: seconds at most.
VACUUM_SECONDS = {"lite": 10.0, "full": None}
_FULL_FILES = 5  # one in so many of the files of lite, as each of them is there


def maintenance_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    title = f"## Maintenance: a table of {sizes.scan_rows:,} rows x 10 columns, Spark 4.2.0"
    return Part.of_all([operations_part(title, TARGETS, directory, sizes, peer), vacuum_part(directory, sizes)])


def vacuum_part(directory: Path, sizes: Sizes) -> Part:
    rows = []
    for kind, target in VACUUM_SECONDS.items():
        files = max(sizes.state_files) // (1 if kind == "lite" else _FULL_FILES)
        command = [sys.executable, str(HERE / "vacuum_run.py"), kind, str(directory / f"vacuum_{kind}")]
        command += ["--files", str(files), "--removed", str(files // 100)]
        found = [run_json(command) for _ in range(min(sizes.runs, 3))]
        seconds = statistics.median(result["seconds"] for result in found)
        what = f"{files:,} {'live' if kind == 'lite' else 'listed'}, {found[0]['deleted']:,} deleted"
        peak = max(result["peak_mb"] for result in found)
        at_most = "" if target is None else f"at most {target:.0f} s"
        rows.append([f"VACUUM {kind}", what, f"{seconds:.1f} s", at_most, f"{peak:.0f} MB"])
    return Part(["## VACUUM, local files", "", table_text(["kind", "files", "seconds", "target", "peak"], rows), ""])
