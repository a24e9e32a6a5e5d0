"""Commits of coordinated tables on this machine's disk, without Spark; prints what was measured as JSON.

    python benchmarks/coordinator_run.py latency DIRECTORY [--ledger URL] --commits 200
    python benchmarks/coordinator_run.py race DIRECTORY [--ledger URL] --processes 8 --threads 1 --tables 1 --seconds 10
    python benchmarks/coordinator_run.py transactions DIRECTORY --ledger URL --commits 50

latency: milliseconds of each append of one row in one process, data file, commit and what follows it included. race: processes,
each with threads, that append as fast as they can, each to the next of some tables; commits a second in all. transactions:
milliseconds of a transaction that appends a row to one table, and of one over three tables, by turns; whole, and of its commit
alone. Without a ledger the tables are not coordinated. URL may be `sqlite`, for a file beside the tables, or `dynamodb`, for an
emulator on this machine (make emulators).
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

sys.path.insert(0, str(Path(__file__).parent.parent))

from delta_py import DeltaTable, write_delta
from delta_py.storage import publication
from delta_py.storage.opening import open_store
from delta_py.storage.options import StorageOptions
from delta_py.transactions import DeltaTransaction
from tests.support.emulators import DYNAMODB, dynamodb_ledger_url, running

ROW = pa.table({"id": [1], "text": ["x"]})


def made(path: str, ledger: str | None) -> Callable[[], Any]:
    """What appends a row to a table, which is there."""
    options = StorageOptions.of({} if ledger is None else {"coordinator": ledger})
    return lambda: write_delta(path, ROW, mode="append", store=open_store(path, options))


def create(path: str, ledger: str | None) -> str:
    configuration = {} if ledger is None else {"delta.feature.catalogManaged": "supported"}
    store = open_store(path, StorageOptions.of({} if ledger is None else {"coordinator": ledger}))
    write_delta(path, ROW, store=store, configuration=configuration)
    DeltaTable(path, store=store)
    return path


def milliseconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return (time.perf_counter() - start) * 1000


def latency(directory: str, ledger: str | None, commits: int) -> dict[str, float]:
    append = made(create(f"{directory}/t", ledger), ledger)
    append()
    taken = sorted(milliseconds(append) for _ in range(commits))
    return {"p50_ms": statistics.median(taken), "p95_ms": taken[len(taken) * 95 // 100], "max_ms": taken[-1]}


def race(
    directory: str, ledger: str | None, processes: int, threads: int, tables: int, seconds: float
) -> dict[str, float]:
    paths = [create(f"{directory}/t{number}", ledger) for number in range(tables)]
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=_append_on, args=(paths, ledger, number, threads, seconds, ready, counts))
        for number in range(processes)
    ]
    for process in started:
        process.start()
    done = [counts.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join()
    options = {} if ledger is None else {"coordinator": ledger}
    rows = sum(DeltaTable(path, storage_options=options).to_arrow().num_rows for path in paths)
    assert rows == tables + sum(done), f"{rows} rows of {sum(done)} commits"
    return {"commits_per_second": sum(done) / seconds, "least": min(done), "most": max(done)}


def _append_on(
    paths: list[str], ledger: str | None, number: int, threads: int, seconds: float, ready: Any, counts: Any
) -> None:
    appends = [made(path, ledger) for path in paths]
    ready.wait()
    end = time.monotonic() + seconds

    def work(thread: int) -> int:
        done = 0
        while time.monotonic() < end:
            appends[(number + thread + done) % len(appends)]()
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        counts.put(sum(pool.map(work, range(threads))))


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
    taken = [(*timed(paths[:1]), *timed(paths)) for _ in range(commits)]
    names = ("one_ms", "one_commit_ms", "three_ms", "three_commit_ms")
    return {name: statistics.median(column) for name, column in zip(names, zip(*taken, strict=True), strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "race", "transactions"))
    parser.add_argument("directory")
    parser.add_argument("--ledger")
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="pydelta-bench-", dir=given.directory)
    ledger = given.ledger or (None if given.what != "transactions" else f"sqlite://{directory}/ledger.db")
    if ledger == "sqlite":
        ledger = f"sqlite://{directory}/ledger.db"
    emulators = contextlib.ExitStack()
    try:
        if ledger == "dynamodb":
            ledger = dynamodb_ledger_url(emulators.enter_context(running(DYNAMODB)))
        if given.what == "latency":
            result = latency(directory, ledger, given.commits)
        elif given.what == "race":
            result = race(directory, ledger, given.processes, given.threads, given.tables, given.seconds)
        else:
            assert ledger is not None
            result = transactions(directory, ledger, given.commits)
    finally:
        publication.finish()
        emulators.close()
        shutil.rmtree(directory)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
