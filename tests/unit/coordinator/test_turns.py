"""Turns of writers: others wait for the writer that has the turn, but not for long, and never for a dead one."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from delta_py.coordinator import turns
from delta_py.coordinator.ledger import Ledger, version_taken_error
from delta_py.coordinator.open_coordinator import open_ledger
from tests.support.stores.coordination import ledger_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def ledger(url: str) -> Ledger:
    return open_ledger(url)


def take_turn(url: str, tables: list[str], ours: Connection) -> None:
    with open_ledger(url).turn(tables):
        ours.send("has it")
        ours.poll(60)


@pytest.fixture
def holder(url: str) -> Iterator[Callable[..., Any]]:
    """Starts a process that has the turn at tables until it has to end, or is killed."""
    open_ledger(url)
    context = multiprocessing.get_context("fork")
    started: list[tuple[Any, Callable[[], None]]] = []

    def start(*tables: str) -> tuple[Any, Callable[[], None]]:
        here, there = context.Pipe()
        process = context.Process(target=take_turn, args=(url, list(tables), there))
        process.start()
        there.close()

        def end() -> None:
            with contextlib.suppress(OSError):  # it was killed
                here.send("end")

        started.append((process, end))
        assert here.poll(60) and here.recv() == "has it"
        return process, end

    yield start
    for process, end in started:
        end()
        process.join(60)


def waited_for(ledger: Ledger, tables: list[str], meanwhile: Callable[[], None] = lambda: None, *, after: float = 0.3) -> float:
    """Seconds until the turn at the tables came. `meanwhile` runs after this many seconds."""
    start = time.monotonic()
    timer = threading.Timer(after, meanwhile)
    timer.start()
    with ledger.turn(tables):
        seconds = time.monotonic() - start
    timer.join()
    return seconds


def test_writers_of_a_table_take_turns(ledger: Ledger, holder: Callable[..., Any]) -> None:
    _, end = holder("/a", "/b")
    assert waited_for(ledger, ["/c"]) < turns.WAIT_SECONDS
    assert 0.25 < waited_for(ledger, ["/b", "/c"], end) < turns.WAIT_SECONDS


def test_turn_of_a_process_that_was_killed_is_over(ledger: Ledger, holder: Callable[..., Any]) -> None:
    process, _ = holder("/a")
    assert 0.25 < waited_for(ledger, ["/a"], process.kill) < turns.WAIT_SECONDS


def test_turn_is_given_back_where_its_block_fails(ledger: Ledger, holder: Callable[..., Any]) -> None:
    for error in (version_taken_error("/a", 1, 1), OSError("no")):
        with pytest.raises(type(error)), ledger.turn(["/a"]):
            raise error
    start = time.monotonic()
    holder("/a")
    assert time.monotonic() - start < turns.WAIT_SECONDS - 1


def test_turn_that_does_not_end_holds_nobody_up_for_long(
    ledger: Ledger, holder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder("/a")
    monkeypatch.setattr(turns, "WAIT_SECONDS", 0.5)
    assert waited_for(ledger, ["/a"]) > 0.4
    monkeypatch.setattr(turns, "WAIT_SECONDS", 60)
    assert waited_for(ledger, ["/a"]) < 60, "for a while nobody waits at that table"
    assert waited_for(ledger, ["/b"]) < 60


def test_several_turns_are_waited_for_no_longer_than_one(
    ledger: Ledger, holder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, end = holder("/a")
    holder("/b")
    monkeypatch.setattr(turns, "WAIT_SECONDS", 2)
    assert waited_for(ledger, ["/a", "/b"], end, after=1.8) < 3.6


def test_where_no_locks_can_be_taken_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "turns").symlink_to(tmp_path / "elsewhere")  # no link is followed
    start = time.monotonic()
    for path in (tmp_path / "turns", tmp_path / "missing" / "turns", tmp_path):
        with turns.FileTurns(str(path)).of(["/a"]):
            pass
    assert time.monotonic() - start < turns.WAIT_SECONDS and not (tmp_path / "elsewhere").exists()


def test_turns_may_be_taken_in_threads_and_behind_a_fork(ledger: Ledger, url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        seconds = list(pool.map(lambda table: waited_for(ledger, [table]), ["/a", "/b", "/c", "/d"]))
    process = multiprocessing.get_context("fork").Process(target=waited_for, args=(open_ledger(url), ["/a"]))
    process.start()
    process.join(30)
    assert process.exitcode == 0 and max(seconds) < turns.WAIT_SECONDS
