"""The part `maintenance`: OPTIMIZE and Z-order compared with delta-spark, with one session for each writer; auto compaction;
VACUUM of very many files; lookups with an index and without.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.common import HERE, TUNED, Part, Sizes, run_json, table_text
from benchmarks.parts.dml_part import TARGETS as DML_TARGETS
from benchmarks.parts.dml_part import operations_part

# The highest ratio of pydelta's time to delta-spark's. The names are dml_run's.
TARGETS = {"optimize 200 small files": 0.8}
Z_ORDER_TARGETS = {"z-order by 2 columns": 1.0, "z-order by 4 columns": 1.0}
OPERATION_TARGETS = {**DML_TARGETS, **TARGETS, **Z_ORDER_TARGETS}
_SMALLER_ROWS = 1_000_000
_APPENDS = 1000

# The most seconds for VACUUM in a process without Spark.
VACUUM_SECONDS = {"lite": 10.0, "full": None}
_INDEXED = 100  # one in this many of VACUUM's files, for lookups
_FULL_FILES = 5  # one in this many of the files of lite, because each of them exists


def maintenance_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    """Z-order runs once after a run that warms up."""
    few = replace(sizes, runs=1)
    smaller = replace(few, scan_rows=min(_SMALLER_ROWS, sizes.scan_rows // 2))
    parts = [operations_part(_title("Maintenance", sizes), TARGETS, directory, sizes, peer)]
    parts.append(operations_part(_title("Z-order", few), Z_ORDER_TARGETS, directory, few, peer))
    in_smaller = operations_part(_title("Z-order", smaller), Z_ORDER_TARGETS, directory / "smaller", smaller, peer)
    parts.append(Part(in_smaller.text))
    return Part.of_all([*parts, auto_compact_part(directory, sizes), vacuum_part(directory, sizes), index_part(sizes)])


def operation_part(operation: str, rows: int | None, directory: Path, sizes: Sizes, peer: Path) -> Part:
    """One operation of dml_run, compared with the tuned peer. rows: of the table; None for the sizes of the parts."""
    sizes = sizes if rows is None else replace(sizes, scan_rows=rows)
    targets = {operation: OPERATION_TARGETS[operation]}
    return operations_part(_title(operation, sizes), targets, directory / f"rows-{sizes.scan_rows}", sizes, peer, (TUNED,))


def _title(what: str, sizes: Sizes) -> str:
    return f"## {what}: a table of {sizes.scan_rows:,} rows x 10 columns, Spark 4.2.0"


def auto_compact_part(directory: Path, sizes: Sizes) -> Part:
    appends = min(_APPENDS, 10 * sizes.commits)
    rows, medians = [], {}
    for auto in (False, True):
        path = directory / f"appends_{auto}"
        command = [sys.executable, str(HERE / "library/auto_compact_run.py"), str(path), "--appends", str(appends)]
        result = run_json([*command, "--auto"] if auto else command)
        medians[auto] = statistics.median(result["seconds"])
        ratio = f"{medians[True] / medians[False]:.2f}x" if auto else ""
        targets = ["at most 1.3x, 60 files"] if auto else [""]
        what = "with auto compaction" if auto else "without"
        total = f"{sum(result['seconds']):.1f} s"
        rows.append([what, f"{1000 * medians[auto]:.1f} ms", ratio, *targets, str(result["files"]), total])
    head = ["appends of one row", "median", "ratio", "target", "files at the end", "all of them"]
    return Part([f"## Auto compaction: {appends:,} appends without Spark", "", table_text(head, rows), ""])


def vacuum_part(directory: Path, sizes: Sizes) -> Part:
    rows = []
    for kind, target in VACUUM_SECONDS.items():
        files = max(sizes.state_files) // (1 if kind == "lite" else _FULL_FILES)
        command = [sys.executable, str(HERE / "library/vacuum_run.py"), kind, str(directory / f"vacuum_{kind}")]
        command += ["--files", str(files), "--removed", str(files // 100)]
        runs = [run_json(command) for _ in range(min(sizes.runs, 3))]
        seconds = statistics.median(result["seconds"] for result in runs)
        what = f"{files:,} {'live' if kind == 'lite' else 'listed'}, {runs[0]['deleted']:,} deleted"
        peak = max(result["peak_mb"] for result in runs)
        at_most = "" if target is None else f"at most {target:.0f} s"
        rows.append([f"VACUUM {kind}", what, f"{seconds:.1f} s", at_most, f"{peak:.0f} MB"])
    return Part(["## VACUUM, local files", "", table_text(["kind", "files", "seconds", "target", "peak"], rows), ""])


def index_part(sizes: Sizes) -> Part:
    files = max(sizes.state_files) // _INDEXED
    rows = []
    for by, options in {"DeltaTable, without Spark": [], "Spark": ["--spark"]}.items():
        result = run_json([sys.executable, str(HERE / "library/index_run.py"), "--files", str(files), *options])
        without, first, later = (result[name] for name in ("without_seconds", "first_seconds", "with_seconds"))
        times = [f"{without:.2f} s", f"{1000 * first:.0f} ms", f"{1000 * later:.0f} ms", f"{without / later:.0f}x"]
        creation = f"{result['create_seconds']:.1f} s, {result['index_bytes'] / 1e6:.0f} MB"
        rows.append([by, *times, str(result["most_files_opened"]), creation])
    head = ["lookup of one value by", "without", "with, the first", "with, median", "quicker", "files opened", "making the index"]
    title = f"## Index: {files:,} files of 1,000 rows, any of which may hold the value"
    target = "Target: at most 3 files opened, 10x quicker."
    return Part([title, "", table_text(head, rows), "", target, ""])
