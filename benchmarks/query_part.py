"""The parts `query` and `open`: queries, and opening tables of many files, beside delta-spark and Spark's Parquet reader."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import (
    HERE,
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
from benchmarks.make_log_table import REMOVES_PER_COMMIT, ROWS_PER_FILE

# Of pydelta's time over delta-spark's.
TARGETS = {
    "whole rows": 1.0,
    "one column": 1.0,
    "count": 1.0,
    "point lookup by a sorted key": 1.0,
    "range, 1 % of ids": 1.0,
    "partition filter": 1.0,
    "group by": 1.1,
}


def query_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    tables = query_tables(directory, sizes)
    parts = [_queries(tables, sizes, python, readers, peer) for python, readers in environments(peer)]
    return Part.of_all(parts)


def _queries(tables: Path, sizes: Sizes, python: Path, readers: str, peer: Path) -> Part:
    command = [str(python), str(HERE / "query_run.py"), str(tables), "--rows", str(sizes.scan_rows)]
    result = run_json([*command, "--readers", readers, "--rounds", str(sizes.runs)], spark_environment(python, peer))
    medians = {
        query: {reader: statistics.median(seconds) for reader, seconds in by_reader.items()}
        for query, by_reader in result["seconds"].items()
    }
    ratios = {query: found["pydelta"] / found["delta"] for query, found in medians.items() if "delta" in found}
    title = (
        f"## Queries: {sizes.scan_rows:,} rows x 10 columns, TPC-H-like at scale {sizes.warehouse_scale}, Spark {result['spark']}"
    )
    return Part([title, "", query_text(medians), ""], ratios)


def query_text(medians: Mapping[str, Mapping[str, float]]) -> str:
    """medians: seconds by reader, by query."""
    rows = [_row(query, found) for query, found in medians.items()]
    if not any("delta" in found for found in medians.values()):
        return table_text(
            ["query", "Spark's Parquet", "pydelta", "to Parquet"], [[row[0], row[1], row[3], row[5]] for row in rows]
        )
    return table_text(["query", "Spark's Parquet", "delta-spark", "pydelta", "to delta-spark", "to Parquet", "target"], rows)


def _row(query: str, found: Mapping[str, float]) -> list[str]:
    """target: of the ratio to delta-spark."""
    target = TARGETS.get(query)
    return [
        query,
        *(f"{found[reader]:.2f} s" if reader in found else "" for reader in ("parquet", "delta", "pydelta")),
        *(f"{found['pydelta'] / found[peer]:.2f}x" if peer in found else "" for peer in ("delta", "parquet")),
        "" if target is None else f"at most {target}x",
    ]


# ---------------------------------------------------------------- opening


def open_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    """Only where delta-spark is there: the times of one reader alone are the part `state`."""
    python = peer_python(peer)
    many = sizes.commits_without_checkpoint
    tables = {f"{files:,} files": (files, 20) for files in (10, 10_000, *sizes.state_files)} | {f"{many:,} commits": (10, many)}
    rows, ratios = [], {}
    for name, (files, commits) in tables.items():
        wanted = (commits * REMOVES_PER_COMMIT + files // 2) * ROWS_PER_FILE + ROWS_PER_FILE // 2
        table = log_table(directory, files, commits=commits)
        command = [str(python), str(HERE / "open_run.py"), str(table), "--id", str(wanted), "--rounds", str(min(sizes.runs, 3))]
        found = run_json(command, spark_environment(python, peer))
        cold, warm = ({reader: statistics.median(s) for reader, s in found[kind].items()} for kind in ("cold", "warm"))
        ratios[f"open {name}"] = cold["pydelta"] / cold["delta"]
        times = [f"{seconds[reader]:.2f} s" for seconds in (cold, warm) for reader in ("delta", "pydelta")]
        rows.append([name, *times, f"{ratios[f'open {name}']:.2f}x"])
    head = ["table", "delta-spark, first", "pydelta, first", "delta-spark, again", "pydelta, again", "first, ratio"]
    note = "Target: the first opening of 300,000 files at most 0.3x. `first`: nothing of the table is in delta-spark's cache."
    title = "## Opening a table and planning a query that needs one file, in a running Spark 4.2.0 session"
    return Part([title, "", table_text(head, rows), "", note, ""], ratios)
