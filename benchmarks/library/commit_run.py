"""Commits of one small file on this machine's disk, without Spark; prints the measurements as JSON.

    python benchmarks/library/commit_run.py latency WRITER DIRECTORY --commits 200
    python benchmarks/library/commit_run.py race WRITER DIRECTORY --processes 8 --seconds 10

WRITER: pydelta, deltalake. latency: milliseconds of each append of one row in one process, including the data file, the commit
and the steps after it. race: processes append to one table as fast as they can; the commits per second of all of them, and
whether every commit is in the table once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa


def pydelta(path: str) -> Callable[[pa.Table], None]:
    from delta_py import write_delta

    def append(rows: pa.Table) -> None:
        write_delta(path, rows, mode="append")

    return append


def deltalake(path: str) -> Callable[[pa.Table], None]:
    from deltalake import write_deltalake

    def append(rows: pa.Table) -> None:
        write_deltalake(path, rows, mode="append")

    return append


WRITERS = {"pydelta": pydelta, "deltalake": deltalake}


def one_row(number: int) -> pa.Table:
    return pa.table({"writer": [number], "text": ["x"]})


def latency(writer: str, path: str, commits: int) -> dict[str, Any]:
    append, milliseconds = WRITERS[writer](path), []
    for number in range(commits + 1):
        start = time.perf_counter()
        append(one_row(number))
        milliseconds.append((time.perf_counter() - start) * 1000)
    ordered = sorted(milliseconds[1:])  # the first append creates the table and runs late imports
    return {"p50_ms": statistics.median(ordered), "p95_ms": ordered[len(ordered) * 95 // 100], "max_ms": ordered[-1]}


def race(writer: str, path: str, processes: int, seconds: float) -> dict[str, Any]:
    WRITERS[writer](path)(one_row(-1))
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=_append_on, args=(writer, path, number, seconds, ready, counts)) for number in range(processes)
    ]
    for process in started:
        process.start()
    commits_by_process = dict(counts.get(timeout=seconds + 120) for _ in started)
    for process in started:
        process.join()
    return {
        "commits_per_second": sum(commits_by_process.values()) / seconds,
        "least": min(commits_by_process.values()),
        "most": max(commits_by_process.values()),
    } | _check(path, commits_by_process)


def _append_on(writer: str, path: str, number: int, seconds: float, ready: Any, counts: Any) -> None:
    append, rows, commits = WRITERS[writer](path), one_row(number), 0
    ready.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        append(rows)
        commits += 1
    counts.put((number, commits))


def _check(path: str, commits_by_process: dict[int, int]) -> dict[str, Any]:
    """Check that each commit's row is in the table once, and that each version is one commit."""
    from delta_py import DeltaTable

    table = DeltaTable(path)
    rows_by_writer = Counter(table.to_arrow()["writer"].to_pylist())
    assert rows_by_writer == Counter({-1: 1, **commits_by_process}), f"{rows_by_writer} rows of {commits_by_process} commits"
    assert table.version == sum(commits_by_process.values())
    return {"versions": table.version}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "race"))
    parser.add_argument("writer", choices=WRITERS)
    parser.add_argument("directory")
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    path = tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.directory)
    try:
        if arguments.what == "latency":
            result = latency(arguments.writer, path, arguments.commits)
        else:
            result = race(arguments.writer, path, arguments.processes, arguments.seconds)
    finally:
        shutil.rmtree(path)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
