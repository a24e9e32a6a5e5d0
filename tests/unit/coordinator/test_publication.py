"""Ratified commits are published in the background: all together, at the latest when the process ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator import open_coordinator
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.storage import publication
from delta_py.storage.coordinated import place_of
from delta_py.transactions import DeltaTransaction
from tests.support.stores.coordination import FaultyLedger, coordinated, create_coordinated, ledger_url, rows_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def path(tmp_path: Path, url: str) -> Path:
    create_coordinated(tmp_path / "t", url, {"id": [0]})
    return tmp_path / "t"


def append(path: Path, url: str, number: int) -> int:
    return write_delta(str(path), pa.table({"id": [number]}), mode="append", store=coordinated(path, url))


def staged(path: Path) -> int:
    return len(list((path / "_delta_log/_staged_commits").iterdir()))


def published(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in (path / "_delta_log").glob("????????????????????.json"))


def wait_until(condition: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.01)


def test_commits_are_published_together_in_the_background(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication.finish()
    calls: list[str] = []
    ledger = open_ledger(url)

    def noted(name: str, call: object) -> object:
        calls.append(name)
        return call()  # type: ignore[operator]

    monkeypatch.setattr(publication, "_GATHER_SECONDS", 1.0)
    monkeypatch.setitem(open_coordinator._open_ledgers, url, FaultyLedger(ledger, noted))
    for number in range(1, 4):  # few enough for no compaction, which waits for publication
        append(path, url, number)
    assert published(path) == [0] and staged(path) == 3, "not by their writers"
    assert rows_of(path, url) == [0, 1, 2, 3]
    wait_until(lambda: published(path) == [0, 1, 2, 3] and not staged(path))
    assert published(path) == [0, 1, 2, 3] and not staged(path)
    publication.finish()
    assert calls.count("ledger acknowledge") == 1 and calls.count("ledger ratify") == 3
    tail = ledger.tail(place_of(str(path)))
    assert tail is not None and tail.commits == ()


def test_each_commit_asks_the_ledger_twice(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publication.finish()
    monkeypatch.setattr(publication, "publish_later", lambda store: None)
    calls: list[str] = []
    ledger = open_ledger(url)

    def noted(name: str, call: object) -> object:
        calls.append(name)
        return call()  # type: ignore[operator]

    monkeypatch.setitem(open_coordinator._open_ledgers, url, FaultyLedger(ledger, noted))
    append(path, url, 1)
    assert calls == ["ledger tail", "ledger ratify"]


def test_finish_publishes_what_waits(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "_GATHER_SECONDS", 30.0)
    append(path, url, 1)
    publication.finish()
    assert published(path) == [0, 1] and not staged(path)


_APPEND = """
import os, sys, pyarrow as pa
from delta_py import write_delta
from delta_py.storage import publication
publication._GATHER_SECONDS = 30.0
for number in range(3):
    write_delta(sys.argv[1], pa.table({"id": [number]}), mode="append", storage_options={"coordinator": sys.argv[2]})
if sys.argv[3] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("end", ["ends", "killed"])
def test_exit_publishes_commits_and_a_kill_leaves_them_to_others(
    path: Path, url: str, end: str
) -> None:
    process = subprocess.run([sys.executable, "-c", _APPEND, str(path), url, end], check=False)
    assert process.returncode == (0 if end == "ends" else -signal.SIGKILL)
    assert published(path) == ([0, 1, 2, 3] if end == "ends" else [0])
    assert rows_of(path, url) == [0, 0, 1, 2]
    append(path, url, 9)
    publication.finish()
    assert published(path) == [0, 1, 2, 3, 4] and not staged(path)


def test_checkpoint_waits_for_no_thread(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "_GATHER_SECONDS", 30.0)
    for number in range(1, 11):
        append(path, url, number)
    assert (path / "_delta_log/00000000000000000010.checkpoint.parquet").exists()
    assert published(path) == list(range(11))
    DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()


def _in_child(path: str, url: str) -> None:
    append(Path(path), url, 7)
    publication.finish()
    os._exit(0 if published(Path(path)) == [0, 1, 2] else 1)


def test_child_publishes_its_own(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "_GATHER_SECONDS", 0.5)
    append(path, url, 1)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(str(path), url))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    publication.finish()
    assert rows_of(path, url) == [0, 1, 7] and not staged(path)


def test_thread_ends_when_nothing_comes_and_starts_again(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = publication._Publisher()
    monkeypatch.setattr(publication, "_publisher", publisher)
    monkeypatch.setattr(publication, "_IDLE_SECONDS", 0.05)
    append(path, url, 1)
    wait_until(lambda: publisher._thread is None)
    assert publisher._thread is None and published(path) == [0, 1]
    append(path, url, 2)
    wait_until(lambda: published(path) == [0, 1, 2])
    assert published(path) == [0, 1, 2]


def test_commit_stands_where_no_thread_can_be_started(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, waits = threading.Thread.start, threading.Event()

    def refused(thread: threading.Thread) -> None:
        if thread.name == "delta_py-publication" and not waits.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(publication, "_publisher", publication._Publisher())
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert [append(path, url, number) for number in (1, 2)] == [1, 2]
    with DeltaTransaction(url) as tx:
        tx.append(str(path), pa.table({"id": [3]}))
    assert rows_of(path, url) == [0, 1, 2, 3]
    assert published(path) == [0, 1, 2, 3] and staged(path) == 0
    waits.set()
    append(path, url, 4)
    wait_until(lambda: published(path) == [0, 1, 2, 3, 4])
    assert published(path) == [0, 1, 2, 3, 4]
