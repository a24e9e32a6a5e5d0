"""The part `dml`: DELETE, UPDATE and MERGE compared with delta-spark, with one session for each operation and writer."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.common import HERE, SETTINGS, Part, Sizes, peer_python, query_tables, run_json, spark_environment, table_text

# The highest ratio of pydelta's time to delta-spark's. The names are dml_run's.
TARGETS = {
    "delete 1 %, deletion vectors": 1.0,
    "delete 1 %, rewriting": 1.2,
    "update 1 %": 1.0,
    "merge 200,000 rows, half match": 1.0,
    "merge 200,000 rows, clauses with conditions": 1.0,
    "merge into 1 of 100 partitions": 0.5,
}


def dml_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    title = f"## DML: a table of {sizes.scan_rows:,} rows x 10 columns, Spark 4.2.0"
    return operations_part(title, TARGETS, directory, sizes, peer)


def operations_part(
    title: str,
    targets: Mapping[str, float],
    directory: Path,
    sizes: Sizes,
    peer: Path,
    all_settings: Sequence[str] = SETTINGS,
) -> Part:
    """Operations of dml_run by both writers, with the settings. targets: the highest ratio of pydelta's time to delta-spark's."""
    python = peer_python(peer)
    tables = query_tables(directory, sizes)
    rows, ratios = [], {}
    for (operation, target), settings in product(targets.items(), all_settings):
        results = {writer: _run(operation, writer, tables, sizes, python, peer, settings) for writer in ("delta", "pydelta")}
        checksums = {writer: result["left"] for writer, result in results.items()}
        assert checksums["delta"] == checksums["pydelta"], f"{operation} leaves other rows: {checksums}"
        medians = {writer: statistics.median(result["seconds"]) for writer, result in results.items()}
        ratios[operation] = ratio = medians["pydelta"] / medians["delta"]  # the last settings: tuned
        times = [f"{medians[writer]:.2f} s" for writer in ("delta", "pydelta")]
        peaks = [f"{results[writer]['peak_mb']:.0f} MB" for writer in ("delta", "pydelta")]
        rows.append([operation, settings, *times, f"{ratio:.2f}x", f"at most {target}x", *peaks])
    head = ["operation", "settings", "delta-spark", "pydelta", "ratio", "target", "delta-spark, peak", "pydelta, peak"]
    note = "Peak: memory of the session and all its processes (Pss). Spark may fill a JVM heap of up to 4 GB."
    return Part([title, "", table_text(head, rows), "", note, ""], ratios)


def _run(operation: str, writer: str, tables: Path, sizes: Sizes, python: Path, peer: Path, settings: str) -> Any:
    command = [str(python), str(HERE / "spark/dml_run.py"), operation, "--writer", writer, "--tables", str(tables)]
    rounds = str(min(sizes.runs, 3))
    return run_json([*command, "--rows", str(sizes.scan_rows), "--rounds", rounds], spark_environment(python, peer, settings))
