"""The part `wide`: tables of two-row files and up to 5,000 columns, without Spark, compared with deltalake in the same run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import HERE, Part, Sizes, run_json, table_text

_TARGET_COLUMNS = 3_000
_NO_SLOWER = ("read 1 file", "read 3 files", "update")

Seconds = Mapping[str, Mapping[str, float]]
"""By the number of columns, and the operation."""


def wide_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    columns = ",".join(map(str, sizes.wide_columns))
    command = [sys.executable, str(HERE / "library/wide_run.py")]
    options = ["--columns", columns, "--runs", str(min(sizes.runs, 3))]
    seconds = {engine: run_json([*command, engine, str(directory), *options]) for engine in ("pydelta", "deltalake")}
    return Part(wide_text(seconds["pydelta"], seconds["deltalake"]))


def wide_text(ours: Seconds, peer: Seconds) -> list[str]:
    counts = list(ours)
    rows = [
        [operation, *(f"{ours[count][operation]:.2f} s, {peer[count][operation]:.2f} s" for count in counts)]
        for operation in ours[counts[0]]
    ]
    head = ["operation", *(f"{int(count):,} columns" for count in counts)]
    return [
        "## Wide tables: files of two rows, CPU seconds of all threads, without Spark",
        "",
        table_text(head, rows),
        "",
        "In each cell: pydelta, deltalake.",
        "",
        *_targets(ours, peer),
        "",
    ]


def _targets(ours: Seconds, peer: Seconds) -> list[str]:
    count = str(_TARGET_COLUMNS)
    if count not in ours:
        return []
    ratios = ", ".join(f"{name} {ours[count][name] / peer[count][name]:.2f}x" for name in _NO_SLOWER)
    return [f"With {_TARGET_COLUMNS:,} columns: {ratios} of deltalake's time (target: at most 1x)."]
