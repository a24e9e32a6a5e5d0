"""The part `sql`: what SQL costs before a query runs, compared with Spark's own `sql`, `load`, and delta-spark."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import (
    HERE,
    TUNED,
    Part,
    Sizes,
    peer_python,
    query_tables,
    run_json,
    spark_environment,
    table_text,
)


def sql_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    table = query_tables(directory, sizes) / "plain"
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        first = _run(Path(sys.executable), peer, table, "pydelta", sizes, cache)
        pydelta = [_run(Path(sys.executable), peer, table, "pydelta", sizes, cache) for _ in range(min(sizes.runs, 3))]
    delta = [_run(peer_python(peer), peer, table, "delta", sizes, "")]
    for name, results in (("pydelta, Spark 4.3", pydelta), ("delta-spark, Spark 4.2", delta)):
        rows.append([name, *(f"{_median(results, what):.2f} ms" for what in ("spark", "select", "sql", "load"))])
    head = ["session", "`select 1` by Spark's own `sql`", "`select 1`", "SELECT by path", "`read.load`"]
    wrapper = _median(pydelta, "select") - _median(pydelta, "spark")
    lines = [
        f"`register`: {_median(pydelta, 'register'):.0f} ms with warm caches, {first['register']:.0f} ms if the Java classes "
        f"are compiled. The wrapper adds {wrapper:+.3f} ms to `select 1` (target: "
        f"nothing measurable). A SELECT by path takes {_median(pydelta, 'sql') / _median(pydelta, 'load'):.2f}x of "
        "`read.load` (target: at most 1.0x). Both make the frame, and run no query.",
    ]
    return Part(["## SQL before a query runs", "", table_text(head, rows), "", *lines, ""])


def _run(python: Path, peer: Path, table: Path, source: str, sizes: Sizes, cache: str) -> Any:
    command = [str(python), str(HERE / "spark/sql_run.py"), str(table), "--format", source, "--rounds", str(sizes.commits)]
    return run_json(command, {**spark_environment(python, peer, TUNED), "PYDELTA_CACHE_DIR": cache})


def _median(results: list[Any], what: str) -> float:
    return statistics.median(one[what] for one in results)
