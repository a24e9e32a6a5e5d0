"""Commits of coordinated tables on this machine's disk, without Spark; prints the measurements as JSON.

    python benchmarks/library/coordinator_run.py latency DIRECTORY [--ledger URL] --commits 200
    python benchmarks/library/coordinator_run.py race DIRECTORY [--ledger URL] --processes 8 --threads 1 --tables 1 --seconds 10
    python benchmarks/library/coordinator_run.py alone DIRECTORY --ledger URL --processes 8 --tables 1 --seconds 10
    python benchmarks/library/coordinator_run.py transactions DIRECTORY --ledger URL --commits 50

latency: milliseconds of each append of one row in one process, including the data file, the commit and the steps after it. race:
processes, each with threads, append as fast as they can, and visit the tables in turn; the commits per second of all of them.
alone: the capacity of the ledger itself: processes ask where a table is and have the next version ratified, in turns, without
files of tables. transactions: milliseconds of a transaction that appends a row to one table, and of one over three tables, in
turns; of the whole transaction, and of its commit alone.

Without a ledger the tables are not coordinated. URL may be `sqlite`, for a file next to the tables, `dynamodb`, for an emulator
on this machine (make emulators), or `deltalake`, for deltalake's own writer, without a ledger. An append that deltalake gives up
does not count as a commit, and is reported.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.ledger import Ratified, VersionTakenError
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.paths import staged_commit_name
from delta_py.storage import publication
from delta_py.storage.store_options import StorageOptions
from delta_py.transactions import DeltaTransaction
from tests.support.servers.emulators import DYNAMODB, dynamodb_ledger_url, running

ROW = pa.table({"id": [1], "text": ["x"]})
_PEER = "deltalake"


def made(path: str, ledger: str | None) -> Callable[[], bool]:
    """A function that appends a row to an existing table, and returns whether it succeeded."""
    if ledger == _PEER:
        return lambda: _appended_by_peer(path)
    options = StorageOptions.of({} if ledger is None else {"coordinator": ledger})
    return lambda: write_delta(path, ROW, mode="append", store=open_store(path, options)) > 0


def _appended_by_peer(path: str) -> bool:
    import deltalake

    try:
        deltalake.write_deltalake(path, ROW, mode="append")
    except deltalake.exceptions.CommitFailedError:
        return False
    return True


def create(path: str, ledger: str | None) -> str:
    ledger = _url(ledger)
    configuration = {} if ledger is None else {"delta.feature.catalogManaged": "supported"}
    store = open_store(path, StorageOptions.of({} if ledger is None else {"coordinator": ledger}))
    write_delta(path, ROW, store=store, configuration=configuration)
    DeltaTable(path, store=store)
    return path


def _url(ledger: str | None) -> str | None:
    return None if ledger == _PEER else ledger


def milliseconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return (time.perf_counter() - start) * 1000


def latency(directory: str, ledger: str | None, commits: int) -> dict[str, float]:
    append = made(create(f"{directory}/t", ledger), ledger)
    append()
    append_times = sorted(milliseconds(append) for _ in range(commits))
    return {
        "p50_ms": statistics.median(append_times),
        "p95_ms": append_times[len(append_times) * 95 // 100],
        "max_ms": append_times[-1],
    }


def race(
    directory: str, ledger: str | None, processes: int, threads: int, tables: int, seconds: float
) -> dict[str, float]:
    paths = [create(f"{directory}/t{number}", ledger) for number in range(tables)]
    commit_counts, failed = _at_once(_append_on, processes, paths, ledger, threads, seconds)
    url = _url(ledger)
    options = {} if url is None else {"coordinator": url}
    rows = sum(DeltaTable(path, storage_options=options).to_arrow().num_rows for path in paths)
    assert rows == tables + sum(commit_counts), f"{rows} rows of {sum(commit_counts)} commits"
    return {
        "commits_per_second": sum(commit_counts) / seconds,
        "least": min(commit_counts),
        "most": max(commit_counts),
        "failed": failed,
    }


def alone(directory: str, ledger: str, processes: int, tables: int, seconds: float) -> dict[str, float]:
    places = [f"{directory}/t{number}" for number in range(tables)]
    for place in places:
        open_ledger(ledger).register(place, 0, place)
    commit_counts, _ = _at_once(_ratify_on, processes, places, ledger, 1, seconds)
    tails = [open_ledger(ledger).tail(place) for place in places]
    assert sum(tail.version for tail in tails if tail is not None) == sum(commit_counts)
    return {"commits_per_second": sum(commit_counts) / seconds, "least": min(commit_counts), "most": max(commit_counts)}


def _at_once(work: Any, processes: int, paths: list[str], ledger: str | None, threads: int, seconds: float) -> tuple[Any, int]:
    """The number of commits of each process, and of all failures."""
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=work, args=(paths, ledger, number, threads, seconds, ready, counts)) for number in range(processes)
    ]
    for process in started:
        process.start()
    results = [counts.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join()
    return [commits for commits, _ in results], sum(failed for _, failed in results)


def _append_on(
    paths: list[str], ledger: str | None, number: int, threads: int, seconds: float, ready: Any, counts: Any
) -> None:
    appends = [made(path, ledger) for path in paths]
    ready.wait()
    end = time.monotonic() + seconds

    def work(thread: int) -> tuple[int, int]:
        commits = failed = 0
        while time.monotonic() < end:
            if appends[(number + thread + commits) % len(appends)]():
                commits += 1
            else:
                failed += 1
        return commits, failed

    with ThreadPoolExecutor(threads) as pool:
        counted = list(pool.map(work, range(threads)))
    counts.put((sum(commits for commits, _ in counted), sum(failed for _, failed in counted)))


def _ratify_on(places: list[str], ledger: str, number: int, threads: int, seconds: float, ready: Any, counts: Any) -> None:
    opened, commits = open_ledger(ledger), 0
    ready.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        place = places[(number + commits) % len(places)]
        with opened.turn([place]):
            tail = opened.tail(place)
            assert tail is not None
            version = tail.version + 1
            with contextlib.suppress(VersionTakenError):  # if the ledger has no turns
                opened.ratify([Ratified(place, version, staged_commit_name(version, f"{number}-{commits}"), 1, 1)])
                commits += 1
        if commits % 20 == 0:  # the tail grows until it is acknowledged
            opened.acknowledge(place, version)
    counts.put((commits, 0))


def transactions(directory: str, ledger: str, commits: int) -> dict[str, float]:
    paths = [create(f"{directory}/t{number}", ledger) for number in range(3)]

    def timed(chosen: list[str]) -> tuple[float, float]:
        start = time.perf_counter()
        with DeltaTransaction(ledger) as tx:
            for path in chosen:
                tx.append(path, ROW)
            commit = milliseconds(tx.commit)
        return (time.perf_counter() - start) * 1000, commit

    timed(paths)
    times = [(*timed(paths[:1]), *timed(paths)) for _ in range(commits)]
    names = ("one_ms", "one_commit_ms", "three_ms", "three_commit_ms")
    return {name: statistics.median(column) for name, column in zip(names, zip(*times, strict=True), strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "race", "alone", "transactions"))
    parser.add_argument("directory")
    parser.add_argument("--ledger")
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.directory)
    ledger = arguments.ledger or (None if arguments.what != "transactions" else f"sqlite://{directory}/ledger.db")
    if ledger == "sqlite":
        ledger = f"sqlite://{directory}/ledger.db"
    emulators = contextlib.ExitStack()
    try:
        if ledger == "dynamodb":
            ledger = dynamodb_ledger_url(emulators.enter_context(running(DYNAMODB)))
        if arguments.what == "latency":
            result = latency(directory, ledger, arguments.commits)
        elif arguments.what == "alone":
            assert ledger is not None
            result = alone(directory, ledger, arguments.processes, arguments.tables, arguments.seconds)
        elif arguments.what == "race":
            result = race(directory, ledger, arguments.processes, arguments.threads, arguments.tables, arguments.seconds)
        else:
            assert ledger is not None
            result = transactions(directory, ledger, arguments.commits)
    finally:
        publication.finish()
        emulators.close()
        shutil.rmtree(directory)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
