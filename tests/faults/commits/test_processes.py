"""Eight processes write to one table at the same time, each in another way: no row and no version is lost or doubled."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import ConcurrentTransactionException
from delta_py.log.history import history
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore

ROUNDS = 6
KINDS = ("append", "append once", "replace rows", "replace partition")
PROPERTIES = {
    "plain": {},
    "vectors and all": {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "5",
        "delta.enableChangeDataFeed": "true",
    },
}


def rows(writer: str, turn: int, count: int = 3) -> pa.Table:
    return pa.table({"writer": [writer] * count, "turn": [turn] * count, "n": list(range(count))})


def write_all(root: str, writer: str, kind: str, finished: Any) -> None:
    """One write in each turn; the queue gets the versions of these writes."""
    versions = []
    for turn in range(ROUNDS):
        data, options = rows(writer, turn), dict[str, Any](mode="append")
        match kind:
            case "append once":
                options |= {"txn_app_id": writer, "txn_version": turn}
            case "replace rows":
                options = {"mode": "overwrite", "replace_where": f"writer = '{writer}' AND n < 3"}
            case "replace partition":
                options = {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}
        versions.append(write_delta(root, data, **options))
        if kind == "append once":  # a repeated write does nothing, even if others have committed since
            assert write_delta(root, data, **options) >= versions[-1]
    finished.put((writer, versions))


@pytest.mark.parametrize("properties", PROPERTIES)
def test_eight_processes_of_mixed_writes_lose_and_double_no_row(tmp_path: Path, properties: str) -> None:
    root, context = str(tmp_path), multiprocessing.get_context("spawn")
    write_delta(root, rows("first", 0), partition_by=["writer"], configuration=PROPERTIES[properties])
    writers = {f"{kind} {number}": kind for kind in KINDS for number in range(2)}
    finished = context.SimpleQueue()
    processes = [context.Process(target=write_all, args=(root, *item, finished)) for item in writers.items()]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    versions = dict(finished.get() for _ in processes)

    count = len(writers) * ROUNDS
    assert sorted(version for mine in versions.values() for version in mine) == list(range(1, count + 1))
    assert history(LocalStore(root))["version"].to_pylist() == list(range(count, -1, -1))
    check_rows(root, writers)
    check_versions(root, versions)
    listed = set(Snapshot.load(LocalStore(root)).files()["path"].to_pylist())
    assert all((tmp_path / path).exists() for path in listed)


def check_rows(root: str, writers: dict[str, str]) -> None:
    """A writer that appends has the rows of all turns, a writer that replaces has those of the last one."""
    expected = Counter({("first", 0): 3})
    for writer, kind in writers.items():
        turns = range(ROUNDS) if kind.startswith("append") else [ROUNDS - 1]
        expected.update({(writer, turn): 3 for turn in turns})
    table = DeltaTable(root)
    table.snapshot.check_integrity()
    rows = table.to_arrow()
    assert Counter(zip(rows["writer"].to_pylist(), rows["turn"].to_pylist(), strict=True)) == expected


def check_versions(root: str, versions: dict[str, list[int]]) -> None:
    """Each version has the rows of all commits up to it, read from the log of many writers and checkpoints."""
    for number in range(0, max(max(mine) for mine in versions.values()) + 1, 7):
        rows = DeltaTable(root, version=number).to_arrow(["writer", "turn"])
        pairs = Counter(zip(rows["writer"].to_pylist(), rows["turn"].to_pylist(), strict=True))
        for writer, mine in versions.items():
            turns = [turn for turn, version in enumerate(mine) if version <= number]
            expected_turns = turns if writer.startswith("append") else turns[-1:]
            assert {turn: pairs[writer, turn] for turn in range(ROUNDS) if pairs[writer, turn]} == dict.fromkeys(
                expected_turns, 3
            )


def write_same_transaction(root: str, finished: Any) -> None:
    results = []
    for turn in range(ROUNDS):
        while True:
            try:
                results.append(write_delta(root, rows("same", turn), mode="append", txn_app_id="same", txn_version=turn))
                break
            except ConcurrentTransactionException:
                continue  # another process is working on it: run again, to find it recorded
    finished.put(results)


def test_processes_that_repeat_one_transaction_write_it_once(tmp_path: Path) -> None:
    root, context = str(tmp_path), multiprocessing.get_context("spawn")
    write_delta(root, rows("first", 0))
    finished = context.SimpleQueue()
    processes = [context.Process(target=write_same_transaction, args=(root, finished)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert DeltaTable(root).version == ROUNDS
    table_rows = DeltaTable(root).to_arrow()
    assert Counter(zip(table_rows["writer"].to_pylist(), table_rows["turn"].to_pylist(), strict=True)) == Counter(
        {("first", 0): 3, **{("same", turn): 3 for turn in range(ROUNDS)}}
    )
