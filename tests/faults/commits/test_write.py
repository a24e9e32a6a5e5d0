"""Every storage call of a write, failed in turn: the table reads as before or as after, never differently.

The workload's calls are counted once. Then each of them fails before its effect, or after it (the reply is lost); or all later
calls fail too, or the process is killed. PYDELTA_SEED and PYDELTA_FAULTS_N choose the schedules of racing writers.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.errors import (
    ProtocolChangedException,
    TableNotFoundError,
)
from delta_py.log.history import history
from delta_py.row_changes.write import write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import sampled
from tests.support.runs.seeds import run_seed
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

SEED = run_seed() or 20240607
SCHEDULES = int(os.environ.get("PYDELTA_FAULTS_N") or 24)


def rows(writer: str, count: int = 6) -> pa.Table:
    return pa.table({"writer": [writer] * count, "n": range(count), "part": [n % 2 for n in range(count)]})


def create(store: Any, properties: Mapping[str, str] | None = None) -> int:
    data = rows("create")
    return write_delta(store.root, data, mode="append", partition_by=["part"], configuration=properties, store=store)


def append(store: Any, writer: str = "append") -> int:
    return write_delta(store.root, rows(writer), mode="append", store=store)


def read(root: Path, version: int | None = None) -> Counter[str]:
    """The version's number of rows from each writer. Every listed file must be complete."""
    table = DeltaTable(str(root), version=version)
    for file in table.files().to_pylist():
        assert (root / file["path"]).stat().st_size == file["size"]
    return Counter(table.to_arrow(["writer"])["writer"].to_pylist())


def data_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in (".parquet", ".bin")} - checkpoints(root)


def checkpoints(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in (root / "_delta_log").rglob("*")}


def listed_files(root: Path) -> set[str]:
    return set(Snapshot.load(LocalStore(str(root))).files()["path"].to_pylist())


def newest(root: Path) -> int:
    try:
        return Snapshot.load(LocalStore(str(root))).version
    except TableNotFoundError:
        return -1


def overwrite(store: Any, **options: Any) -> int:
    return write_delta(store.root, rows("overwrite"), mode="overwrite", store=store, **options)


def replace_rows(store: Any) -> int:
    return overwrite(store, replace_where="n < 6 AND writer <> 'first'")


def replace_some_rows(store: Any) -> int:
    """Two rows of each of the files. These files are read, and get deletion vectors or are rewritten."""
    data = rows("overwrite", 4)
    return write_delta(store.root, data, mode="overwrite", store=store, replace_where="n < 4")


@dataclass(frozen=True)
class Workload:
    """old: rows by writer before it (None: there is no table). new: rows by writer after it."""

    run: Callable[[Any], int]
    new: Mapping[str, int]
    old: Mapping[str, int] | None = field(default_factory=lambda: {"create": 6})
    properties: Mapping[str, str] | None = None

    @property
    def version(self) -> int:
        return 0 if self.old is None else 1

    def prepare(self, root: Path) -> None:
        if self.old is not None:
            create(LocalStore(str(root)), self.properties)


WORKLOADS = {
    "create": Workload(create, {"create": 6}, None),
    "append": Workload(append, {"create": 6, "append": 6}),
    "overwrite": Workload(overwrite, {"overwrite": 6}),
    "dynamic overwrite": Workload(lambda store: overwrite(store, partition_overwrite_mode="dynamic"), {"overwrite": 6}),
    "replaceWhere of all rows": Workload(replace_rows, {"overwrite": 6}),
    "replaceWhere by rewriting": Workload(replace_some_rows, {"create": 2, "overwrite": 4}),
    "replaceWhere by vectors": Workload(
        replace_some_rows, {"create": 2, "overwrite": 4}, properties={"delta.enableDeletionVectors": "true"}
    ),
    "replaceWhere with change data": Workload(
        replace_some_rows, {"create": 2, "overwrite": 4}, properties={"delta.enableChangeDataFeed": "true"}
    ),
}


def calls_of(tmp_path: Path, workload: str) -> list[str]:
    root = tmp_path / "count"
    root.mkdir()
    load = WORKLOADS[workload]
    load.prepare(root)
    store = FaultyStore(LocalStore(str(root)))
    assert load.run(store) == load.version
    assert read(root) == load.new
    return store.calls


@pytest.mark.parametrize(("workload", "kind"), sampled(itertools.product(WORKLOADS, FAULTS), 5))
def test_write_with_one_call_failed_is_done_once_or_not_at_all(tmp_path: Path, workload: str, kind: str) -> None:
    calls = calls_of(tmp_path, workload)
    assert sum(call.startswith("put_if_absent _delta_log") for call in calls) >= 1
    outcomes = Counter(one_fault(tmp_path / str(number), workload, Fault(number, **FAULTS[kind])) for number in range(len(calls)))
    assert sum(outcomes.values()) == len(calls)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(root: Path, workload: str, fault: Fault) -> str:
    load = WORKLOADS[workload]
    version, old = load.version, load.old or {}
    root.mkdir()
    load.prepare(root)
    before, store = data_files(root), FaultyStore(LocalStore(str(root)), fault)
    version_made, outcome = outcome_of(lambda: load.run(store))
    assert version_made == version or outcome != "done"
    is_committed = newest(root) == version
    assert is_committed or newest(root) == version - 1
    assert (is_committed, outcome) not in ((False, "done"), (True, "refused")), store.calls[fault.call]
    for number in range(newest(root) + 1):
        assert read(root, number) == (old if number < version else load.new), store.calls[fault.call]
    if outcome == "refused" and not fault.lasting:
        assert len(data_files(root) - before) <= 1, "only the file whose delete failed may stay"
    if not is_committed:  # a second run succeeds
        assert load.run(LocalStore(str(root))) == version
        assert read(root) == load.new
    return outcome


# ---------------------------------------------------------------- racing writers


class _Turns:
    """Lets one of several threads run at a time, chosen at random at each call of the store. The schedule can be replayed."""

    def __init__(self, seed: int, count: int) -> None:
        self._random, self._condition = random.Random(seed), threading.Condition()
        self._waiting: set[int] = set()
        self._alive, self._turn = set(range(count)), -1

    def pause(self, me: int) -> None:
        with self._condition:
            self._waiting.add(me)
            self._choose()
            self._condition.wait_for(lambda: self._turn == me, timeout=30)
            assert self._turn == me, "the schedule hangs"
            self._waiting.discard(me)
            self._turn = -1

    def leave(self, me: int) -> None:
        with self._condition:
            self._alive.discard(me)
            self._choose()

    def _choose(self) -> None:
        if self._turn == -1 and self._waiting == self._alive and self._alive:
            self._turn = self._random.choice(sorted(self._waiting))
            self._condition.notify_all()


class _TurnStore(FaultyStore):
    """Waits for its turn before each call on the log, and loses some replies of commits."""

    def __init__(self, inner: LocalStore, turns: _Turns, me: int, seed: int) -> None:
        super().__init__(inner)
        self._turns, self._me, self._random = turns, me, random.Random(seed * 1000 + me)

    def run(self, name: str, action: Callable[[], Any]) -> Any:
        if "_delta_log" in name:
            self._turns.pause(self._me)
        result = super().run(name, action)
        if name.startswith("put_if_absent") and self._random.random() < 0.3:
            raise OSError("injected: reply lost")
        return result


@pytest.mark.parametrize("schedule", range(SCHEDULES))
def test_racing_appends_in_any_order_are_all_there_once(tmp_path: Path, schedule: int) -> None:
    create(LocalStore(str(tmp_path)))
    seed = SEED + schedule
    results = race(tmp_path, seed, append)
    assert sorted(results.values()) == [1, 2, 3], f"seed {seed}: {results}"
    assert read(tmp_path) == Counter({"create": 6, "w0": 6, "w1": 6, "w2": 6}), f"seed {seed}"
    assert data_files(tmp_path) == listed_files(tmp_path)


@pytest.mark.parametrize("schedule", range(SCHEDULES // 4))
def test_racing_creates_in_any_order_leave_one_table(tmp_path: Path, schedule: int) -> None:
    seed = SEED + schedule
    results = race(tmp_path, seed, append)
    created_versions = {writer: version for writer, version in results.items() if isinstance(version, int)}
    lost = [error for error in results.values() if not isinstance(error, int)]
    assert sorted(created_versions.values()) == list(range(len(created_versions))) and all(
        isinstance(e, ProtocolChangedException) for e in lost
    ), f"seed {seed}"
    assert read(tmp_path) == Counter(dict.fromkeys(created_versions, 6)), f"seed {seed}"
    assert data_files(tmp_path) == listed_files(tmp_path)


def race(root: Path, seed: int, run: Callable[[Any, str], int], count: int = 3) -> dict[str, int | BaseException]:
    turns, results = _Turns(seed, count), dict[str, int | BaseException]()

    def writer(me: int) -> None:
        try:
            results[f"w{me}"] = run(_TurnStore(LocalStore(str(root)), turns, me, seed), f"w{me}")
        except BaseException as error:
            results[f"w{me}"] = error
        finally:
            turns.leave(me)

    threads = [threading.Thread(target=writer, args=(me,)) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def _append_many(root: str, writer: str, count: int) -> None:
    for _ in range(count):
        write_delta(root, rows(writer, 2), mode="append")


def test_processes_appending_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    create(LocalStore(str(tmp_path)))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(str(tmp_path), f"p{n}", 10)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert read(tmp_path) == Counter({"create": 6, **{f"p{n}": 20 for n in range(4)}})
    assert history(LocalStore(str(tmp_path)))["version"].to_pylist() == list(range(40, -1, -1))
    assert data_files(tmp_path) == listed_files(tmp_path)
