"""The part `stream`: from table to table or to the noop sink, compared with delta-spark; and the cost of a trigger without new
data.
"""

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

_PEER_BATCHES = 100  # each takes delta-spark more than a second


def stream_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    python = peer_python(peer)
    tables = query_tables(directory, sizes)
    rows, medians = [], {}
    for settings, writer in product(SETTINGS, ("delta", "pydelta")):
        command = [str(python), str(HERE / "spark/stream_run.py"), str(tables), "--format", writer]
        command += ["--rows", str(sizes.scan_rows), "--rounds", str(min(sizes.runs, 3))]
        batches = sizes.small_batches if writer == "pydelta" else min(sizes.small_batches, _PEER_BATCHES)
        result = run_json([*command, "--small-batches", str(batches)], spark_environment(python, peer, settings))
        medians[settings, writer] = [statistics.median(result[name]) for name in ("whole", "large", "filtered")]
        share = max(1, len(result["small"]) // 10)
        first, last = (statistics.median(part) for part in (result["small"][share : 2 * share], result["small"][-share:]))
        times = [f"{seconds:.2f} s" for seconds in medians[settings, writer]]
        rows.append([f"{writer}, {settings}", *times, f"{first * 1000:.0f} ms", f"{last * 1000:.0f} ms"])
    ratios = {
        settings: [ours / theirs for ours, theirs in zip(medians[settings, "pydelta"], medians[settings, "delta"], strict=True)]
        for settings in SETTINGS
    }
    head = [
        "format",
        f"{sizes.scan_rows:,} rows in 8 batches to a table",
        "4 large files in 2 batches to the noop sink",
        "a hundredth of their rows",
        "a small batch, second tenth",
        "a small batch, last tenth",
    ]
    tuned, defaults = (", ".join(f"{ratio:.2f}x" for ratio in ratios[settings]) for settings in (TUNED, DEFAULTS))
    lines = [
        f"The first three {tuned} of delta-spark's time, tuned (target: at most 0.8x), {defaults} with defaults. "
        f"Small batches: {sizes.small_batches:,} ({min(sizes.small_batches, _PEER_BATCHES)} for delta-spark), one file "
        "each; target: the time of a batch does not grow.",
        "",
        _idle_text(directory, sizes, python),
    ]
    text = ["## Streams, Spark 4.2.0", "", table_text(head, rows), "", *lines, ""]
    return Part(text, {"stream": ratios[TUNED][0]})


def _idle_text(directory: Path, sizes: Sizes, python: Path) -> str:
    files = sizes.state_files[0]
    table = log_table(directory, files, commits=sizes.idle_commits)
    seconds = run_json([str(python), str(HERE / "spark/idle_run.py"), str(table)])["seconds"]
    return (
        f"A trigger without new data, after {sizes.idle_commits:,} commits of a table of {files:,} files: "
        f"{statistics.median(seconds) * 1000:.1f} ms of Python, at most {max(seconds) * 1000:.1f} (median and longest of "
        f"{len(seconds)}; target: under 50 ms)."
    )
