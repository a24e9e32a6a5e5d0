"""The part `stream`: from table to table, beside delta-spark; and what a trigger costs that finds nothing new."""

from __future__ import annotations

import statistics
from itertools import product
from pathlib import Path

from benchmarks.common import (
    DEFAULTS,
    HERE,
    SETTINGS,
    TUNED,
    Part,
    Sizes,
    log_table,
    peer_python,
    query_tables,
    run_json,
    spark_environment,
    table_text,
)

_PEER_BATCHES = 100  # they take delta-spark over a second each


def stream_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    python = peer_python(peer)
    tables = query_tables(directory, sizes)
    rows, whole = [], {}
    for settings, writer in product(SETTINGS, ("delta", "pydelta")):
        command = [str(python), str(HERE / "stream_run.py"), str(tables / "plain"), "--format", writer]
        command += ["--rows", str(sizes.scan_rows), "--rounds", str(min(sizes.runs, 3))]
        batches = sizes.small_batches if writer == "pydelta" else min(sizes.small_batches, _PEER_BATCHES)
        found = run_json([*command, "--small-batches", str(batches)], spark_environment(python, peer, settings))
        whole[settings, writer] = statistics.median(found["whole"])
        share = max(1, len(found["small"]) // 10)
        first, last = (statistics.median(part) for part in (found["small"][share : 2 * share], found["small"][-share:]))
        times = [f"{whole[settings, writer]:.2f} s", f"{first * 1000:.0f} ms", f"{last * 1000:.0f} ms"]
        rows.append([f"{writer}, {settings}", *times])
    ratios = {settings: whole[settings, "pydelta"] / whole[settings, "delta"] for settings in SETTINGS}
    head = ["format", f"{sizes.scan_rows:,} rows in 8 batches", "a small batch, second tenth", "a small batch, last tenth"]
    lines = [
        f"8 batches: {ratios[TUNED]:.2f}x of delta-spark's time, tuned (target: at most 0.8x), {ratios[DEFAULTS]:.2f}x with "
        f"defaults. Small batches: {sizes.small_batches:,} ({min(sizes.small_batches, _PEER_BATCHES)} for delta-spark), one file "
        "each; target: the time of a batch does not grow.",
        "",
        _idle_text(directory, sizes, python),
    ]
    text = ["## Streams from table to table, Spark 4.2.0", "", table_text(head, rows), "", *lines, ""]
    return Part(text, {"stream": ratios[TUNED]})


def _idle_text(directory: Path, sizes: Sizes, python: Path) -> str:
    files = sizes.state_files[0]
    table = log_table(directory, files, commits=sizes.idle_commits)
    seconds = run_json([str(python), str(HERE / "idle_run.py"), str(table)])["seconds"]
    return (
        f"A trigger that finds nothing new, behind {sizes.idle_commits:,} commits of a table of {files:,} files: "
        f"{statistics.median(seconds) * 1000:.1f} ms of Python, at most {max(seconds) * 1000:.1f} (median and longest of "
        f"{len(seconds)}; target: under 50 ms)."
    )
