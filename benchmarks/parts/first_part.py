"""The part `first`: the first query of a session, from the start of its process to its rows, compared with delta-spark."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import HERE, TUNED, Part, Sizes, peer_python, query_tables, run_json, spark_environment, table_text
from benchmarks.spark.first_run import QUERIES, SELECT_1

_RUNS = 5
_TARGET = 0.6


def first_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    """Processes take turns. The first of each kind does not count: it fills caches, and reads files from disk."""
    table = query_tables(directory, sizes) / "plain"
    new, old = Path(sys.executable), peer_python(peer)
    kinds = [(python, "spark", SELECT_1) for python in (old, new)]
    kinds += [(python, name, query) for query in QUERIES for python, name in ((old, "delta"), (old, "pydelta"), (new, "pydelta"))]
    seconds_by_kind: dict[tuple[Path, str, str], list[float]] = {kind: [] for kind in kinds}
    versions: dict[Path, str] = {}
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        for round_number in range(min(sizes.runs, _RUNS) + 1):
            for kind in kinds:
                python, _, query = kind
                begun = time.time()
                environment = {**spark_environment(python, peer, TUNED), "PYDELTA_CACHE_DIR": cache}
                result = _run(*kind, table, sizes.scan_rows, environment)
                versions[python] = result["spark"]
                assert answers.setdefault(query, result["rows"]) == result["rows"], (
                    f"{kind}: {result['rows']}, not {answers[query]}"
                )
                seconds_by_kind[kind] += [result["at"] - begun] if round_number else []
    medians = {kind: statistics.median(seconds) for kind, seconds in seconds_by_kind.items()}
    rows = [[query, name, versions[python], f"{seconds:.2f} s"] for (python, name, query), seconds in medians.items()]
    ratios = {query: medians[old, "pydelta", query] / medians[old, "delta", query] for query in QUERIES}
    beside = " and ".join(f"{query} {ratio:.2f}x" for query, ratio in ratios.items())
    text = [
        f"## The first query of a session, from the start of its process to its rows: a table of {sizes.scan_rows:,} rows, tuned",
        "",
        table_text(["query", "by", "Spark", "median"], rows),
        "",
        f"Of delta-spark's time: {beside} (target: at most {_TARGET}x). "
        "`spark` is Spark alone: no reader of tables can avoid this time.",
        "",
    ]
    return Part(text, {f"first query, {query}": ratio for query, ratio in ratios.items()})


def _run(python: Path, source: str, query: str, table: Path, rows: int, environment: dict[str, str]) -> Any:
    command = [str(python), str(HERE / "spark/first_run.py"), str(table), "--format", source]
    command += ["--query", query, "--rows", str(rows)]
    return run_json(command, environment)
