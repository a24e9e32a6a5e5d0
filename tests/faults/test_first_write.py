"""Every storage call of a create and an append, failed in turn: the table reads as before or as after, never otherwise.

The workload's calls are counted once; then each is failed before it takes effect, after it (the reply is lost), for good
from there on, and with the process killed. PYDELTA_FAULTS_SEED and PYDELTA_FAULTS_N choose the schedules of racing writers.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.commands.write import write_delta
from delta_py.commit.transaction import RetryPolicy
from delta_py.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    ProtocolChangedException,
    TableNotFoundError,
)
from delta_py.log.history import history
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.faulty_store import Fault, FaultyStore, Killed

SEED = int(os.environ.get("PYDELTA_FAULTS_SEED") or 20240607)
SCHEDULES = int(os.environ.get("PYDELTA_FAULTS_N") or 24)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt: 0.0)


def rows(writer: str, count: int = 6) -> pa.Table:
    return pa.table({"writer": [writer] * count, "n": range(count), "part": [n % 2 for n in range(count)]})


def create(store: Any) -> int:
    return write_delta(store.root, rows("create"), mode="append", partition_by=["part"], store=store)


def append(store: Any, writer: str = "append") -> int:
    return write_delta(store.root, rows(writer), mode="append", store=store)


def read(root: Path, version: int | None = None) -> Counter[str]:
    """How many rows of each writer the version has; every listed file must be whole."""
    snapshot = Snapshot.load(LocalStore(str(root)), version=version)
    found: Counter[str] = Counter()
    for file in snapshot.files().to_pylist():
        assert (root / file["path"]).stat().st_size == file["size"]
        found.update(pq.ParquetFile(root / file["path"]).read(["writer"])["writer"].to_pylist())
    return found


def data_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet")}


def listed_files(root: Path) -> set[str]:
    return set(Snapshot.load(LocalStore(str(root))).files()["path"].to_pylist())


def newest(root: Path) -> int:
    try:
        return Snapshot.load(LocalStore(str(root))).version
    except TableNotFoundError:
        return -1


WORKLOADS: dict[str, tuple[Callable[[Any], int], str, int]] = {
    "create": (create, "create", 0),
    "append": (append, "append", 1),
}


def prepare(root: Path, workload: str) -> None:
    if workload == "append":
        create(LocalStore(str(root)))


def calls_of(tmp_path: Path, workload: str) -> list[str]:
    root = tmp_path / "count"
    root.mkdir()
    prepare(root, workload)
    store = FaultyStore(LocalStore(str(root)))
    assert WORKLOADS[workload][0](store) == WORKLOADS[workload][2]
    return store.calls


KINDS = {
    "fails before it": {"after": False},
    "reply lost": {"after": True},
    "store is down from it on": {"after": False, "lasting": True},
    "reply lost and then down": {"after": True, "lasting": True},
    "killed before it": {"after": False, "killed": True},
    "killed after it": {"after": True, "killed": True},
}


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("kind", KINDS)
def test_write_with_one_call_failed_is_done_once_or_not_at_all(tmp_path: Path, workload: str, kind: str) -> None:
    calls = calls_of(tmp_path, workload)
    assert sum(call.startswith("put_if_absent _delta_log") for call in calls) >= 1
    outcomes = Counter(one_fault(tmp_path / str(number), workload, Fault(number, **KINDS[kind])) for number in range(len(calls)))
    assert sum(outcomes.values()) == len(calls)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(root: Path, workload: str, fault: Fault) -> str:
    run, writer, version = WORKLOADS[workload]
    root.mkdir()
    prepare(root, workload)
    old, store = read(root) if version else Counter[str](), FaultyStore(LocalStore(str(root)), fault)
    try:
        assert run(store) == version
        outcome = "done"
    except CommitOutcomeUnknownError:
        outcome = "unknown"
    except Killed:
        outcome = "killed"
    except (DeltaError, OSError):
        outcome = "refused"
    made = newest(root) == version
    assert made or newest(root) == version - 1
    assert (made, outcome) not in ((False, "done"), (True, "refused")), store.calls[fault.call]
    for number in range(newest(root) + 1):
        expected = old if number < version else old + Counter({writer: 6})
        assert read(root, number) == expected
    if outcome == "refused" and not fault.lasting:
        left_behind = data_files(root) - (listed_files(root) if version else set())
        assert len(left_behind) <= 1, "only the file whose delete failed may stay"
    if not made:  # running it again succeeds
        assert run(LocalStore(str(root))) == version
        assert read(root) == old + Counter({writer: 6})
    return outcome


# ---------------------------------------------------------------- racing writers


class _Turns:
    """Lets one of several threads run at a time, chosen at random at each call of the store: a replayable schedule."""

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
    done = {writer: version for writer, version in results.items() if isinstance(version, int)}
    lost = [error for error in results.values() if not isinstance(error, int)]
    assert sorted(done.values()) == list(range(len(done))) and all(isinstance(e, ProtocolChangedException) for e in lost), (
        f"seed {seed}"
    )
    assert read(tmp_path) == Counter(dict.fromkeys(done, 6)), f"seed {seed}"
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
