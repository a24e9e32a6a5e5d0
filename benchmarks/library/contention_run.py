"""Transactions over two tables that get in each other's way; prints the measurements as JSON, one entry for each case.

    python benchmarks/library/contention_run.py DIRECTORY [--ledger URL] --sizes 1 10 100 --hot 0 0.9 --processes 4 --seconds 6

Each transaction adds 1 to some accounts, and appends a row to the entries. size: the number of accounts. hot: the share of them
that is drawn from 10 of the 2,000 accounts; the others are drawn from all. Accounts are in 50 files with deletion vectors: two
transactions conflict if they change the same account. An aborted transaction counts as aborted and is not repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import tempfile
import time
from typing import Any

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.object_stores.open_store import open_store
from delta_py.storage import publication
from delta_py.storage.store_options import StorageOptions
from delta_py.transactions import DeltaTransaction

ACCOUNTS, FILES, HOT_ACCOUNTS = 2_000, 50, 10


def create(path: str, ledger: str, rows: list[pa.Table]) -> str:
    store = open_store(path, StorageOptions.of({"coordinator": ledger}))
    configuration = {"delta.feature.catalogManaged": "supported", "delta.enableDeletionVectors": "true"}
    for number, part in enumerate(rows):
        write_delta(path, part, mode="append", store=store, configuration=configuration if number == 0 else None)
    DeltaTable(path, store=store)
    return path


def accounts(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "balance": pa.array([0] * count, pa.int64())})


def case(directory: str, ledger: str, size: int, hot: float, processes: int, seconds: float) -> dict[str, float]:
    place = tempfile.mkdtemp(dir=directory)
    each = ACCOUNTS // FILES
    table = create(f"{place}/accounts", ledger, [accounts(number * each, each) for number in range(FILES)])
    entries = create(f"{place}/entries", ledger, [pa.table({"changed": pa.array([0], pa.int64())})])
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(processes), context.Queue()
    arguments = [(table, entries, ledger, size, hot, number, seconds, ready, counts) for number in range(processes)]
    started = [context.Process(target=_change, args=each) for each in arguments]
    for process in started:
        process.start()
    counts_by_process = [counts.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join()
    commits, aborts = (sum(column) for column in zip(*counts_by_process, strict=True))
    options = {"coordinator": ledger}
    total = sum(DeltaTable(table, storage_options=options).to_arrow()["balance"].to_pylist())
    changed = sum(DeltaTable(entries, storage_options=options).to_arrow()["changed"].to_pylist())
    assert total == changed, f"{total} changes of accounts, and entries of {changed}"
    return {"size": size, "hot": hot, "commits_per_second": commits / seconds, "abort_rate": aborts / max(1, commits + aborts)}


def _change(
    table: str, entries: str, ledger: str, size: int, hot: float, seed: int, seconds: float, ready: Any, counts: Any
) -> None:
    draw, commits, aborts = random.Random(seed), 0, 0
    ready.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        chosen: set[int] = set()
        while len(chosen) < size:
            can_be_hot = draw.random() < hot and len(chosen) < HOT_ACCOUNTS
            chosen.add(draw.randrange(HOT_ACCOUNTS if can_be_hot else ACCOUNTS))
        try:
            with DeltaTransaction(ledger, isolation="snapshot") as tx:
                tx.update(table, {"balance": "balance + 1"}, predicate=f"id IN ({', '.join(map(str, sorted(chosen)))})")
                tx.append(entries, pa.table({"changed": pa.array([size], pa.int64())}))
            commits += 1
        except DeltaConcurrentModificationException:
            aborts += 1
    counts.put((commits, aborts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--ledger", default="sqlite")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--hot", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.directory)
    ledger = f"sqlite://{directory}/ledger.db" if arguments.ledger == "sqlite" else arguments.ledger
    try:
        cases = [(size, hot) for hot in arguments.hot for size in arguments.sizes]
        results = [case(directory, ledger, size, hot, arguments.processes, arguments.seconds) for size, hot in cases]
    finally:
        publication.finish()
        shutil.rmtree(directory)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
