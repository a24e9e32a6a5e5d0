"""The parts `query` and `open`: queries, and opening tables of many files, compared with delta-spark and Spark's Parquet."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import (
    DEFAULTS,
    HERE,
    SETTINGS,
    TUNED,
    Part,
    Sizes,
    environments,
    log_table,
    peer_python,
    query_tables,
    run_json,
    spark_environment,
    table_text,
)
from benchmarks.spark.query_run import LARGE, queries
from benchmarks.tables.make_log_table import REMOVES_PER_COMMIT, ROWS_PER_FILE

# The highest ratio of pydelta's time to delta-spark's.
TARGETS = {
    "count": 1.0,
    **dict.fromkeys(("point lookup by a sorted key", "range, 1 % of ids", "partition filter"), 0.7),
    **dict.fromkeys(("one column", "group by", "whole rows"), 0.8),
    **dict.fromkeys((f"TPC-H {number}" for number in (1, 3, 5, 6, 10, 12, 14, 18)), 0.9),
    "scan after deletes": 0.6,
}
TARGETS |= {query.name: TARGETS[query.name.removeprefix(LARGE)] for query in queries(0) if query.name.startswith(LARGE)}
# The highest ratio of the sum of the TPC-H-like queries to Spark's Parquet reader.
TARGET_OF_SUM = 1.05
THREADS, LOOKUPS = 16, 1000


def query_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    tables = query_tables(directory, sizes)
    pythons = environments(peer)
    parts = [_queries(tables, sizes, python, readers, peer) for python, readers in pythons]
    parts += [_lookups(tables, sizes, python, peer) for python, readers in pythons if "delta" in readers.split(",")]
    return Part.of_all(parts)


def _queries(tables: Path, sizes: Sizes, python: Path, readers: str, peer: Path) -> Part:
    command = [str(python), str(HERE / "spark/query_run.py"), str(tables), "--rows", str(sizes.scan_rows), "--readers", readers]
    command += ["--rounds", str(sizes.runs)]
    result = run_json(command, spark_environment(python, peer, TUNED))
    medians = _medians(result)
    if "delta" in readers.split(","):
        for query, seconds in _medians(run_json(command, spark_environment(python, peer, DEFAULTS))).items():
            medians[query] |= {f"{reader}, {DEFAULTS}": median for reader, median in seconds.items()}
    ratios = {query: seconds["pydelta"] / seconds["delta"] for query, seconds in medians.items() if "delta" in seconds}
    title = (
        f"## Queries: {sizes.scan_rows:,} rows x 10 columns, TPC-H-like at scale {sizes.warehouse_scale}, Spark {result['spark']}"
    )
    return Part([title, "", query_text(medians), "", _sum_text(medians), ""], ratios)


def _medians(result: Any) -> dict[str, dict[str, float]]:
    return {
        query: {reader: statistics.median(seconds) for reader, seconds in by_reader.items()}
        for query, by_reader in result["seconds"].items()
    }


def query_text(medians: Mapping[str, Mapping[str, float]]) -> str:
    """medians: seconds by reader, by query; of a session with defaults by `<reader>, defaults`."""
    if not any("delta" in seconds for seconds in medians.values()):
        rows = [[query, *_times(seconds, "parquet", "pydelta"), _ratio(seconds, "parquet")] for query, seconds in medians.items()]
        return table_text(["query", "Spark's Parquet", "pydelta", "to Parquet"], rows)
    head = ["query", "Spark's Parquet", "delta-spark", "pydelta", "to delta-spark", "to Parquet", "target"]
    head += ["delta-spark, defaults", "pydelta, defaults", "to delta-spark, defaults"]
    return table_text(head, [_row(query, seconds) for query, seconds in medians.items()])


def _sum_text(medians: Mapping[str, Mapping[str, float]]) -> str:
    warehouse = [seconds for name, seconds in medians.items() if name.startswith("TPC-H")]

    def total(reader: str) -> float:
        return sum(seconds[reader] for seconds in warehouse)

    text = f"All TPC-H-like queries: {total('pydelta') / total('parquet'):.2f}x of Spark's Parquet reader"
    beside = f", {total('pydelta') / total('delta'):.2f}x of delta-spark" if "delta" in warehouse[0] else ""
    return f"{text} (target: at most {TARGET_OF_SUM}x){beside}."


def _row(query: str, seconds: Mapping[str, float]) -> list[str]:
    """target: the highest ratio to delta-spark, tuned."""
    target = TARGETS.get(query)
    return [
        query,
        *_times(seconds, "parquet", "delta", "pydelta"),
        _ratio(seconds, "delta"),
        _ratio(seconds, "parquet"),
        "" if target is None else f"at most {target}x",
        *_times(seconds, "delta, defaults", "pydelta, defaults"),
        _ratio(seconds, "delta, defaults", "pydelta, defaults"),
    ]


def _times(seconds: Mapping[str, float], *readers: str) -> list[str]:
    return [f"{seconds[reader]:.2f} s" if reader in seconds else "" for reader in readers]


def _ratio(seconds: Mapping[str, float], peer: str, reader: str = "pydelta") -> str:
    return f"{seconds[reader] / seconds[peer]:.2f}x" if peer in seconds else ""


# ---------------------------------------------------------------- many at once


def _lookups(tables: Path, sizes: Sizes, python: Path, peer: Path) -> Part:
    command = [str(python), str(HERE / "spark/threads_run.py"), str(tables)]
    command += ["--rows", str(sizes.scan_rows), "--threads", str(THREADS)]
    result = run_json([*command, "--queries", str(LOOKUPS)], spark_environment(python, peer, TUNED))
    rows = [_lookups_row(reader, times) for reader, times in result["found"].items()]
    title = f"## {LOOKUPS:,} point lookups by a sorted key from {THREADS} threads, Spark {result['spark']}, tuned"
    return Part([title, "", table_text(["reader", "queries/s", "p50", "p99"], rows), ""])


def _lookups_row(reader: str, times: Mapping[str, list[float]]) -> list[str]:
    cuts = statistics.quantiles(times["latencies"], n=100)
    return [reader, f"{len(times['latencies']) / sum(times['seconds']):.1f}", f"{cuts[49]:.2f} s", f"{cuts[98]:.2f} s"]


# ---------------------------------------------------------------- opening


def open_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    """Runs only if delta-spark is available: the part `state` has the times of one reader alone."""
    python = peer_python(peer)
    many = sizes.commits_without_checkpoint
    tables = {f"{files:,} files": (files, 20) for files in (10, 10_000, *sizes.state_files)} | {f"{many:,} commits": (10, many)}
    rows, ratios = [], {}
    for name, (files, commits) in tables.items():
        wanted_id = (commits * REMOVES_PER_COMMIT + files // 2) * ROWS_PER_FILE + ROWS_PER_FILE // 2
        table = log_table(directory, files, commits=commits)
        command = [
            str(python),
            str(HERE / "spark/open_run.py"),
            str(table),
            "--id",
            str(wanted_id),
            "--rounds",
            str(min(sizes.runs, 3)),
        ]
        for settings in SETTINGS:
            seconds = run_json(command, spark_environment(python, peer, settings))
            cold, warm = ({reader: statistics.median(s) for reader, s in seconds[kind].items()} for kind in ("cold", "warm"))
            ratio = cold["pydelta"] / cold["delta"]
            times = [f"{medians[reader]:.2f} s" for medians in (cold, warm) for reader in ("delta", "pydelta")]
            rows.append([name, settings, *times, f"{ratio:.2f}x"])
            ratios[f"open {name}"] = ratio  # the last settings: tuned
    head = ["table", "settings", "delta-spark, first", "pydelta, first", "delta-spark, again", "pydelta, again", "first, ratio"]
    note = "Target: the first opening of 300,000 files at most 0.3x. `first`: nothing of the table is in delta-spark's cache."
    title = "## Opening a table and planning a query that needs one file, in a running Spark 4.2.0 session"
    return Part([title, "", table_text(head, rows), "", note, ""], ratios)
