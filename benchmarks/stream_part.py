"""The part `stream`: from table to table, beside delta-spark."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.common import HERE, Part, Sizes, run_json, spark_environment, table_text
from benchmarks.make_query_tables import make_tables


def stream_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    python = peer / "bin" / "python"
    if not python.exists():
        return Part(["## Streams: not measured, there is no environment with delta-spark", ""])
    tables = directory / "queries"
    if not tables.exists():
        make_tables(tables, sizes.scan_rows, sizes.warehouse_scale)
    rows, whole = [], {}
    for writer in ("delta", "pydelta"):
        command = [str(python), str(HERE / "stream_run.py"), str(tables / "plain"), "--format", writer]
        command += ["--rows", str(sizes.scan_rows), "--rounds", str(min(sizes.runs, 3))]
        found = run_json([*command, "--small-batches", str(sizes.small_batches)], spark_environment(python, peer))
        whole[writer] = statistics.median(found["whole"])
        share = max(1, len(found["small"]) // 10)
        first, last = (statistics.median(part) for part in (found["small"][share : 2 * share], found["small"][-share:]))
        rows.append([writer, f"{whole[writer]:.2f} s", f"{first * 1000:.0f} ms", f"{last * 1000:.0f} ms"])
    ratio = whole["pydelta"] / whole["delta"]
    head = ["format", f"{sizes.scan_rows:,} rows in 8 batches", "a small batch, second tenth", "a small batch, last tenth"]
    lines = [
        f"8 batches: {ratio:.2f}x of delta-spark's time (target: at most 1.1x). Small batches: {sizes.small_batches:,}, one file "
        "each; target: the time of a batch does not grow."
    ]
    return Part(["## Streams from table to table, Spark 4.2.0", "", table_text(head, rows), "", *lines, ""], {"stream": ratio})
