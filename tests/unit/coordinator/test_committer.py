"""Group commit: commits that the writers of one process have ready at the same time are ratified together, and each writer learns
its result.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit import committer
from delta_py.commit.transaction import Transaction
from delta_py.coordinator import open_coordinator
from delta_py.coordinator.ledger import CoordinatorContendedError, CoordinatorUnavailableError, Ledger
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.coordinator.sqlite_ledger import SqliteLedger
from delta_py.errors import CommitOutcomeUnknownError, DeltaConcurrentModificationException, StorageError
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.actions import RemoveFile
from delta_py.snapshot import Snapshot
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.write.data_files import WrittenFiles
from tests.support.stores.coordination import FaultyLedger, coordinated, create_coordinated, ledger_url, rows_of

pytestmark = pytest.mark.usefixtures("publication_at_once", "no_waits")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def path(tmp_path: Path, url: str) -> Path:
    create_coordinated(tmp_path / "t", url, {"id": [0, 1, 2]}, delta__enableDeletionVectors="true")
    return tmp_path / "t"


class Calls:
    """The calls of `ratify`, and the effect of each: for its number, a step that gets the call."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        self.sizes: list[int] = []
        self.steps: dict[int, Callable[[Callable[[], Any]], Any]] = {}
        self._ledger = ledger
        faulty = FaultyLedger(ledger, lambda name, call: call())
        faulty.ratify = self._ratify  # type: ignore[attr-defined]
        monkeypatch.setitem(open_coordinator._open_ledgers, url, faulty)

    def _ratify(self, commits: Any, **options: Any) -> int:
        number = len(self.sizes)
        self.sizes.append(len(commits))
        call = lambda: self._ledger.ratify(commits, **options)  # noqa: E731
        moment: int = self.steps.get(number, lambda call: call())(call)
        return moment


@pytest.fixture
def calls(url: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(open_ledger(url), monkeypatch, url)


def append(path: Path, url: str, number: int) -> int:
    return write_delta(str(path), pa.table({"id": [number]}), mode="append", store=coordinated(path, url))


def committer_of(path: Path, url: str) -> committer._Committer:
    coordination = coordination_of(coordinated(path, url))
    assert coordination is not None
    tail = coordination.tail()
    assert tail is not None
    return committer._committer_of(coordination.ledger.identity, coordination.place, tail.table_id)


@contextmanager
def gathered(path: Path, url: str, steps: list[Callable[[], Any]]) -> Iterator[list[Future[Any]]]:
    """The steps in threads, in this order. Their commits wait for each other, and are tried at the end of the block."""
    shared = committer_of(path, url)
    with ThreadPoolExecutor(len(steps)) as pool, shared._leader_lock:
        futures = []
        for number, step in enumerate(steps):
            futures.append(pool.submit(step))
            while len(shared._waiting) <= number:
                assert not futures[-1].done(), futures[-1].exception()
                threading.Event().wait(0.002)
        yield futures


def appends(path: Path, url: str, *numbers: int) -> list[Callable[[], Any]]:
    return [lambda number=number: append(path, url, number) for number in numbers]  # type: ignore[misc]


def append_elsewhere(path: Path, url: str, number: int) -> None:
    """As another process does."""
    other = committer._Committer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committer, "_committer_of", lambda *_: other)
        append(path, url, number)


def behind_another(path: Path, url: str, number: int) -> Callable[[Callable[[], Any]], Any]:
    """A step before which another process commits."""

    def step(call: Callable[[], Any]) -> Any:
        append_elsewhere(path, url, number)
        return call()

    return step


def test_commits_that_wait_are_ratified_at_once(path: Path, url: str, calls: Calls) -> None:
    with gathered(path, url, appends(path, url, 10, 11, 12, 13)) as futures:
        append_versions = futures
    assert [future.result() for future in append_versions] == [1, 2, 3, 4]
    assert calls.sizes == [4]
    assert rows_of(path, url) == [0, 1, 2, 10, 11, 12, 13]
    snapshot = DeltaTable(str(path), store=coordinated(path, url)).snapshot
    snapshot.check_integrity()
    times = [DeltaTable(str(path), version=v, store=coordinated(path, url)).snapshot.timestamp_ms for v in range(5)]
    assert times == sorted(set(times)), "in-commit timestamps grow"


def test_commits_follow_those_of_other_processes(path: Path, url: str, calls: Calls) -> None:
    calls.steps[0] = behind_another(path, url, 99)
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    assert sorted(future.result() for future in futures) == [2, 3]
    assert calls.sizes == [2, 1, 2] and rows_of(path, url) == [0, 1, 2, 10, 11, 99]
    assert list((path / "_delta_log/_staged_commits").iterdir()) == [], "what lost is deleted"


def test_commits_of_many_files_are_not_kept_in_memory(path: Path, url: str) -> None:
    store = coordinated(path, url)
    removes = tuple(RemoveFile(f"part-{number}.parquet", deletion_timestamp_ms=1) for number in range(100))
    assert Transaction(Snapshot.load(store)).add(WrittenFiles(removes=removes)).commit("DELETE", {}) == 1
    assert append(path, url, 3) == 2
    assert list(committer_of(path, url)._winners) == [2]


def test_turns_are_taken_for_a_while_behind_a_lost_race(
    path: Path, url: str, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[str] = []

    @contextmanager
    def turn(ledger: SqliteLedger, table_ids: Iterable[str]) -> Iterator[None]:
        tables.extend(table_ids)
        append_elsewhere(path, url, 100 + len(tables))  # by the writer that had the turn before
        yield

    monkeypatch.setattr(SqliteLedger, "turn", turn)
    append(path, url, 10)
    assert tables == [], "nobody was in the way"
    calls.steps[1] = behind_another(path, url, 99)
    append(path, url, 11)
    append(path, url, 12)
    assert tables == [str(path), str(path)]
    assert calls.sizes == [1, 1, 1, 1, 1, 1, 1], "one race was lost, and none behind it: what comes before a turn is looked for"
    assert rows_of(path, url) == [0, 1, 2, 10, 11, 12, 99, 101, 102]
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 61.0)
    append(path, url, 13)
    assert tables == [str(path), str(path)]


def test_commit_ratifies_even_if_the_ledger_tail_is_unavailable(
    path: Path, url: str, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer_of(path, url)._contended_until = float("inf")
    tail = CoordinatedStore.tail

    def failing(store: CoordinatedStore) -> Any:
        if sys._getframe(1).f_code.co_name == "_ask_newest_version":
            raise CoordinatorUnavailableError("nobody there")
        return tail(store)

    monkeypatch.setattr(CoordinatedStore, "tail", failing)
    assert append(path, url, 10) == 1 and rows_of(path, url) == [0, 1, 2, 10]


def test_of_two_that_take_the_same_rows_one_is_refused(path: Path, url: str, calls: Calls) -> None:
    def delete(predicate: str) -> Any:
        return DeltaTable(str(path), store=coordinated(path, url)).delete(predicate)

    with gathered(path, url, [lambda: delete("id = 1"), lambda: delete("id = 1"), lambda: delete("id = 2")]) as futures:
        pass
    assert futures[0].exception() is None and futures[2].exception() is None
    assert isinstance(futures[1].exception(), DeltaConcurrentModificationException)
    assert calls.sizes == [2] and rows_of(path, url) == [0]


def lost(call: Callable[[], Any]) -> Any:
    call()
    raise CoordinatorUnavailableError("the answer was lost")


def refused(call: Callable[[], Any]) -> Any:
    raise CoordinatorUnavailableError("nobody there")


def test_answer_that_was_lost_is_looked_for(path: Path, url: str, calls: Calls) -> None:
    calls.steps[0] = lost
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    assert [future.result() for future in futures] == [1, 2]
    assert rows_of(path, url) == [0, 1, 2, 10, 11] and calls.sizes == [2, 2]


def test_ledger_that_does_not_answer_for_a_while_is_asked_again(path: Path, url: str, calls: Calls) -> None:
    calls.steps |= {0: refused, 1: refused}
    assert append(path, url, 10) == 1
    assert rows_of(path, url) == [0, 1, 2, 10]


def test_ledger_that_never_answers_leaves_all_in_doubt(path: Path, url: str, calls: Calls) -> None:
    calls.steps |= dict.fromkeys(range(100), refused)
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    for future in futures:
        with pytest.raises(CommitOutcomeUnknownError, match="txnId"):
            future.result()
    calls.steps.clear()
    assert rows_of(path, url) == [0, 1, 2] and append(path, url, 12) == 1


def contended(call: Callable[[], Any]) -> Any:
    raise CoordinatorContendedError("others were always before")


def test_contended_round_is_lost_and_tried_again(path: Path, url: str, calls: Calls) -> None:
    calls.steps[0] = contended
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    assert [future.result() for future in futures] == [1, 2]
    assert rows_of(path, url) == [0, 1, 2, 10, 11] and calls.sizes == [2, 2]
    assert list((path / "_delta_log/_staged_commits").iterdir()) == [], "what lost is deleted"


def test_commit_that_others_are_always_before_is_known_not_to_be(path: Path, url: str, calls: Calls) -> None:
    calls.steps |= dict.fromkeys(range(100), contended)
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    for future in futures:
        with pytest.raises(DeltaConcurrentModificationException, match="others were always before"):
            future.result()
    assert calls.sizes == [2, 2], "each round may take long, and others wait for their turn"
    assert list((path / "_delta_log/_staged_commits").iterdir()) == [] and len(list(path.glob("*.parquet"))) == 1
    calls.steps.clear()
    assert append(path, url, 12) == 1


def test_contended_single_commit_leaves_no_staged_file(path: Path, url: str, calls: Calls) -> None:
    calls.steps[0] = contended
    with pytest.raises(CoordinatorContendedError):
        coordinated(path, url).put_if_absent("_delta_log/00000000000000000001.json", b"{}")
    assert list((path / "_delta_log/_staged_commits").iterdir()) == [] and calls.sizes == [1]


def test_commit_with_lost_answer_is_recognised_after_contention(path: Path, url: str, calls: Calls) -> None:
    calls.steps |= {0: lost, 1: contended}
    assert append(path, url, 10) == 1
    assert rows_of(path, url) == [0, 1, 2, 10]


def test_leader_that_is_interrupted_leaves_the_others_in_doubt(path: Path, url: str, calls: Calls) -> None:
    def interrupted(call: Callable[[], Any]) -> Any:
        call()
        raise KeyboardInterrupt

    calls.steps[0] = interrupted
    with gathered(path, url, appends(path, url, 10, 11)) as futures:
        pass
    assert {type(future.exception()) for future in futures} == {KeyboardInterrupt, CommitOutcomeUnknownError}
    assert rows_of(path, url) == [0, 1, 2, 10, 11] and append(path, url, 12) == 3


def test_commit_that_cannot_be_staged_fails_alone(path: Path, url: str, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = CoordinatedStore.stage

    def failing(self: CoordinatedStore, version: int, data: bytes) -> Any:
        if b"no room" in data:
            raise OSError(28, "No space left on device")
        return stage(self, version, data)

    monkeypatch.setattr(CoordinatedStore, "stage", failing)
    options = {"user_metadata": "no room", "store": coordinated(path, url)}
    bad = lambda: write_delta(str(path), pa.table({"id": [66]}), mode="append", **options)  # noqa: E731
    ten, twelve = appends(path, url, 10, 12)
    with gathered(path, url, [ten, bad, twelve]) as futures:
        pass
    assert [futures[0].result(), futures[2].result()] == [1, 2]
    with pytest.raises(StorageError, match=r"cannot be staged.*No space left.*Nothing was committed"):
        futures[1].result()
    assert rows_of(path, url) == [0, 1, 2, 10, 12]
    assert len(list(path.glob("*.parquet"))) == 3, "the data file of what was refused is gone"


def test_table_that_left_its_ledger_meanwhile_is_written_without(path: Path, url: str, calls: Calls) -> None:
    def forgotten(call: Callable[[], Any]) -> Any:
        coordination = coordination_of(coordinated(path, url))
        assert coordination is not None and open_ledger(url).forget(coordination.place)
        return call()

    calls.steps[0] = forgotten
    assert append(path, url, 10) == 1
    assert (path / "_delta_log/00000000000000000001.json").exists()
    assert rows_of(path, url) == [0, 1, 2, 10], "by its feature it is made known again"


def test_many_threads(path: Path, url: str, calls: Calls) -> None:
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda number: append(path, url, number), range(100, 160)))
    assert sorted(versions) == list(range(1, 61)) and sum(calls.sizes) >= 60
    assert rows_of(path, url) == [0, 1, 2, *range(100, 160)]
    DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
