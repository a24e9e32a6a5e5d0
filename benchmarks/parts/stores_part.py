"""The part `stores`: pydelta and a table in S3. It counts requests and round trips and measures time, compared with deltalake;
compares the SDK as a source of Parquet with pyarrow's own client; and measures the memory that reads need.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import HERE, Part, Sizes, run_json, table_text
from benchmarks.tables.bench_store import Asked, BenchStore, bench_store
from benchmarks.tables.make_log_table import make_table
from benchmarks.tables.make_store_tables import COMMITS, make_file_table, make_log_of_pydelta

_LATENCY_SECONDS = 0.05
_SOURCE_LATENCY_SECONDS = 0.02
_FILES = 1000
_GROUPS = 10
# Row groups of 64 MB.
_LARGE_COLUMNS, _LARGE_GROUP_ROWS = 8, 1_000_000
_MEMORY_TARGET_MB = 400
_ENGINES = ("pydelta", "deltalake")


def stores_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    with bench_store() as store:
        _make_tables(store, directory, sizes)
        requests = [
            result for case in CASES for engine in _ENGINES for result in _measured(store, directory, case, engine, sizes.runs)
        ]
        sources = {latency: _sources(store, latency, sizes.runs) for latency in (0.0, _SOURCE_LATENCY_SECONDS)}
        readings = _readings(store, min(sizes.runs, 3))
    large_bytes = _LARGE_COLUMNS * _LARGE_GROUP_ROWS * sizes.store_large_groups * 8
    return Part([*requests_text(requests), *sources_text(sources), *memory_text(readings, large_bytes)])


def _make_tables(store: BenchStore, directory: Path, sizes: Sizes) -> None:
    make_log_of_pydelta(str(directory / "log"), _FILES)
    make_table(str(directory / "log-of-others"), files=_FILES, commits=COMMITS)
    for name, source in (("log", "log"), ("log-of-others", "log-of-others"), ("warm-log", "log")):
        store.send(directory / source, name)
    for name, columns in (("file", 10), ("warm-file", 4)):
        make_file_table(store.open(name), columns=columns, groups=_GROUPS, group_rows=sizes.store_group_rows)
    large = store.open("large-file")
    make_file_table(large, columns=_LARGE_COLUMNS, groups=sizes.store_large_groups, group_rows=_LARGE_GROUP_ROWS)


def _run(store: BenchStore, engine: str, operation: str, table: str, warm_table: str, cache: str) -> Any:
    command = [sys.executable, str(HERE / "library/stores_run.py"), engine, operation, store.url(table), store.url(warm_table)]
    return run_json(command, {**store.environment, "PYDELTA_CACHE_DIR": cache})


# ---------------------------------------------------------------- requests


@dataclass(frozen=True)
class Case:
    """table: its name. warm_table: a table of the same kind, for what a process does once. targets: for the requests of pydelta,
    with an empty cache directory and with the one that the first run filled. is_new: each run gets a new copy of the table.
    """

    title: str
    operation: str
    table: str
    warm_table: str
    targets: tuple[str, ...]
    is_new: bool = False

    def names(self, engine: str) -> list[str]:
        return [engine, f"{engine}-again"][: len(self.targets) if engine == "pydelta" else 1]


_OPENED = "1 GET, 1 LIST, the checkpoint's ranges, the commits in parallel; 6 deep"
_OPENED_AGAIN = "1 GET, 1 LIST"
_APPENDED = "no LIST after the data file, 1 PUT for the commit, 3 deep with the steps after it"
_COLUMN = "footer and the column's ranges"
_COLUMN_AGAIN = "the column's ranges"

CASES = (
    Case("open and prune, log by pydelta", "open", "log", "warm-log", (_OPENED, _OPENED_AGAIN)),
    Case("open and prune, log by others", "open", "log-of-others", "warm-log", (_OPENED, _OPENED_AGAIN)),
    Case("append, log by pydelta", "append", "log", "warm-log", (_APPENDED,), is_new=True),
    Case("append, log by others", "append", "log-of-others", "warm-log", (_APPENDED,), is_new=True),
    Case("one column of ten", "column", "file", "warm-file", (_COLUMN, _COLUMN_AGAIN)),
)


@dataclass(frozen=True)
class Measured:
    """target: for the requests. seconds: medians, without latency and with _LATENCY_SECONDS for each request."""

    title: str
    reader: str
    target: str
    asked: Asked
    seconds: tuple[float, float]

    @property
    def row(self) -> list[str]:
        asked_requests = self.asked
        requests = [
            _counts(kinds)
            for kinds in (asked_requests.log, asked_requests.data, asked_requests.commit, asked_requests.afterwards)
        ]
        sizes = [f"{asked_requests.down_bytes:,}", f"{asked_requests.up_bytes:,}"]
        times = [f"{seconds * 1000:.0f} ms" for seconds in self.seconds]
        return [self.title, self.reader, *requests, str(asked_requests.round_trips), *sizes, *times, self.target]


def _measured(store: BenchStore, directory: Path, case: Case, engine: str, runs: int) -> list[Measured]:
    """One result for each of the case's names. Of several sets of requests, the most frequent one with latency is reported: only
    with latency do requests that can run in parallel also do so on a busy machine."""
    seconds: dict[tuple[str, float], list[float]] = {}
    requests: dict[str, list[Asked]] = {name: [] for name in case.names(engine)}
    for latency in (0.0, _LATENCY_SECONDS):
        for number in range(runs):
            table = f"{case.table}-{engine}-{latency}-{number}" if case.is_new else case.table
            if case.is_new:
                store.send(directory / case.table, table)
            with tempfile.TemporaryDirectory(prefix="pydelta-bench-") as cache, store.delayed(latency):
                for name in requests:
                    with store.asked(table) as exchanges:
                        run = _run(store, engine, case.operation, table, case.warm_table, cache)
                    assert case.operation != "open" or run["count"] == 1, f"{name} keeps {run['count']} files, not 1"
                    seconds.setdefault((name, latency), []).append(run["seconds"])
                    if latency:
                        requests[name].append(Asked.of(exchanges))
    return [
        Measured(
            case.title,
            name,
            target if engine == "pydelta" else "",
            max(requests[name], key=requests[name].count),
            (statistics.median(seconds[name, 0.0]), statistics.median(seconds[name, _LATENCY_SECONDS])),
        )
        for name, target in zip(requests, case.targets, strict=False)
    ]


def requests_text(results: Sequence[Measured]) -> list[str]:
    head = ["operation", "by", "log", "data files", "the commit", "after it", "round trips", "bytes down", "bytes up"]
    head += ["without latency", f"{_LATENCY_SECONDS * 1000:.0f} ms a request", "target: at most"]
    return [
        "## Requests to an object store (an emulator of S3), compared with deltalake",
        "",
        table_text(head, [measured.row for measured in results]),
        "",
        f"Logs: a checkpoint of {_FILES:,} files and {COMMITS} commits after it. pydelta-again: with the cache directory of an "
        "earlier process. Round trips: the longest chain of requests that wait for one another. One-time work of a process for a "
        f"store is done before. One column: of a file of {_GROUPS} row groups; opening the table is counted too. More targets: "
        "no more requests, bytes and time than deltalake.",
        "",
    ]


def _counts(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


# ---------------------------------------------------------------- the SDK and pyarrow's client


def _sources(store: BenchStore, latency: float, runs: int) -> Any:
    with store.delayed(latency):
        command = [sys.executable, str(HERE / "spark/source_run.py"), store.url("file"), "--rounds", str(runs)]
        return run_json(command, store.environment)


def sources_text(sources: Mapping[float, Any]) -> list[str]:
    """sources: the output of source_run.py, by latency."""
    rows = []
    for latency, results in sources.items():
        for title, runs in results.items():
            medians = {
                name: [statistics.median(run[what] for run in runs[name]) for what in ("seconds", "cpu_seconds")] for name in runs
            }
            ratio = medians["sdk"][0] / min(medians["file"][0], medians["dataset"][0])
            times = [f"{seconds * 1000:.0f} ms" for seconds in (*medians["sdk"], *medians["file"], *medians["dataset"])]
            rows.append([title, f"{latency * 1000:.0f} ms", *times, f"{ratio:.2f}x"])
    head = ["read", "latency a request"]
    head += [text for name in ("pydelta, SDK", "pyarrow, ParquetFile", "pyarrow, dataset") for text in (name, "its CPU")]
    return [
        "## A file of ten columns over the SDK, as pydelta reads, and over pyarrow's own S3 client",
        "",
        table_text([*head, "to the quicker"], rows),
        "",
        "Footer included. pyarrow: over S3FileSystem with pre_buffer; its dataset decodes on all cores, the others on one.",
        "",
    ]


# ---------------------------------------------------------------- memory


def _readings(store: BenchStore, runs: int) -> dict[str, list[Any]]:
    """Reads the large file; the engines take turns."""
    results: dict[str, list[Any]] = {engine: [] for engine in _ENGINES}
    for _ in range(runs):
        for engine in _ENGINES:
            results[engine].append(_run(store, engine, "rows", "large-file", "warm-file", ""))
    return results


def memory_text(readings: Mapping[str, Sequence[Any]], size_bytes: int) -> list[str]:
    """readings: the output of stores_run.py, by engine."""
    rows = []
    for engine, runs in readings.items():
        seconds, peak_mb = statistics.median(run["seconds"] for run in runs), max(run["peak_mb"] for run in runs)
        rows.append([engine, f"{seconds:.2f} s", f"{peak_mb:.0f} MB"])
    return [
        f"## Reading all rows of a file of {size_bytes / 1e9:.2f} GB, row groups of 64 MB, from the store",
        "",
        table_text(["by", "time", "peak memory of the process, the largest"], rows),
        "",
        f"Target: under {_MEMORY_TARGET_MB} MB.",
        "",
    ]
