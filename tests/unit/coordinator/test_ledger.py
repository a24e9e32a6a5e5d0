"""The contract of ledgers, on SQLite and PostgreSQL; and what only ledgers there meet."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from delta_py.coordinator import turns
from delta_py.coordinator.ledger import CoordinatorUnavailableError, Ledger, Ratified, Tail, taken
from delta_py.coordinator.opening import open_ledger
from delta_py.coordinator.sql_ledger import SqlLedger
from delta_py.errors import CorruptTableError, InvalidOptionError, UnsupportedOperationError
from tests.support import postgres as postgres_server
from tests.support.ledger_contract import *  # noqa: F403


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    with postgres_server.running() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a ledger that is empty."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path / 'ledger.db'}"
    import psycopg

    schema, server = f"s{uuid.uuid4().hex}", request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{server}?options=-csearch_path%3D{schema}"


@pytest.mark.parametrize("name", ["../../x", "00000000000000000001.json", "00000000000000000001.a/b.json", ""])
def test_name_that_is_none_of_a_staged_commit_is_refused(name: str) -> None:
    with pytest.raises(CorruptTableError, match="name of no staged commit"):
        Ratified("/a", 1, name, 1, 1)


def test_password_of_a_database_is_not_shown(postgres: str) -> None:
    password = urlsplit(postgres).password
    assert password is not None
    wrong = postgres.replace("/postgres", "/nothing")
    with pytest.raises(CoordinatorUnavailableError, match="nothing") as caught:
        open_ledger(wrong)
    assert password not in open_ledger(postgres).shown + str(caught.value) + repr(caught.value)


def test_change_that_the_database_refuses_is_no_commit(url: str) -> None:
    """Whatever is sent before and behind it."""
    ledger = open_ledger(url)
    assert isinstance(ledger, SqlLedger)
    with pytest.raises(CoordinatorUnavailableError), ledger._transaction(writes=True) as sql:
        sql.do("INSERT INTO moments VALUES (?, ?)", 7, 1)
        sql.do("INSERT INTO moments VALUES (?, ?)", 7, 2)
    with pytest.raises(CoordinatorUnavailableError), ledger._transaction(writes=True) as sql:
        sql.do("INSERT INTO moments VALUES (?, ?)", 8, 1)
        sql.do("INSERT INTO moments VALUES (?, ?)", 8, 2)
        sql.run("SELECT moment FROM moments")
    with ledger._transaction(writes=False) as sql:
        assert sql.run("SELECT moment FROM moments") == []
    with ledger._transaction(writes=True) as sql:
        sql.do("INSERT INTO moments VALUES (?, ?)", 7, 1)
    with ledger._transaction(writes=False) as sql:
        assert sql.run("SELECT moment FROM moments") == [(7,)]


def test_rows_of_a_statement_are_its_own_however_early_others_are_answered(postgres: str) -> None:
    """A notice has the server send at once what it has; else it would answer when it is waited for."""
    ledger = open_ledger(postgres)
    assert isinstance(ledger, SqlLedger)
    with ledger._transaction(writes=True) as sql:
        for number in range(3):
            sql.do("SELECT ?::int", number)
            sql.do("DO $$ BEGIN RAISE NOTICE 'sent'; END $$")
            time.sleep(0.1)
            assert sql.run("SELECT ?::int", 10 + number) == [(10 + number,)]


def test_connection_that_the_server_has_closed_is_made_anew(postgres: str) -> None:
    import psycopg

    ledger = open_ledger(postgres)
    ledger.register("/t", 0, "t")
    with psycopg.connect(postgres, autocommit=True) as other:
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    assert ledger.tail("/t") == Tail(0, (), "t")


def test_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database, and longer than a header of one would be" * 20)
    with pytest.raises(CoordinatorUnavailableError, match=r"DELTA_COORDINATOR_UNAVAILABLE.*no\.db"):
        open_ledger(f"sqlite://{tmp_path / 'no.db'}")
    with pytest.raises(CoordinatorUnavailableError):
        open_ledger(f"sqlite://{tmp_path / 'missing' / 'ledger.db'}")


@pytest.mark.parametrize("url", ["", "sqlite:///", "mysql://host/db", "ledger.db"])
def test_url_of_no_ledger_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptionError):
        open_ledger(url)


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [("psycopg", "postgresql://127.0.0.1/none", "postgres"), ("boto3", "dynamodb://none", "s3")],
)
def test_package_that_is_missing_is_named_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch, package: str, url: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for module in ("delta_py.coordinator.dynamodb_ledger", "delta_py.aws_clients"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(UnsupportedOperationError, match=rf"{package}.*pip install 'pydelta\[{extra}\]'"):
        open_ledger(url)

# ---------------------------------------------------------------- turns


def take_turn(url: str, tables: list[str], ours: Connection) -> None:
    with open_ledger(url).turn(tables):
        ours.send("has it")
        ours.poll(60)


@pytest.fixture
def holder(url: str) -> Iterator[Callable[..., Any]]:
    """Starts a process that has the turn at tables until it is told to end, or killed."""
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


def waited_for(ledger: Ledger, tables: list[str], meanwhile: Callable[[], None] = lambda: None) -> float:
    """Seconds until the turn at the tables came."""
    start = time.monotonic()
    timer = threading.Timer(0.3, meanwhile)
    timer.start()
    with ledger.turn(tables):
        seconds = time.monotonic() - start
    timer.join()
    return seconds


def test_writers_of_a_table_take_turns(ledger: Ledger, holder: Callable[..., Any]) -> None:
    _, end = holder("/a", "/b")
    assert waited_for(ledger, ["/c"]) < 0.25
    assert 0.25 < waited_for(ledger, ["/b", "/c"], end) < turns.WAIT_SECONDS


def test_turn_of_a_process_that_was_killed_is_over(ledger: Ledger, holder: Callable[..., Any]) -> None:
    process, _ = holder("/a")
    assert 0.25 < waited_for(ledger, ["/a"], process.kill) < turns.WAIT_SECONDS


def test_turn_is_given_back_where_its_block_fails(ledger: Ledger, holder: Callable[..., Any]) -> None:
    for error in (taken("/a", 1, 1), OSError("no")):
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
    assert 0.4 < waited_for(ledger, ["/a"]) < turns.WAIT_SECONDS + 2
    assert waited_for(ledger, ["/a"]) < 0.25, "for a while nobody waits at that table"
    assert waited_for(ledger, ["/b"]) < 0.25


def test_where_no_locks_can_be_taken_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "turns").symlink_to(tmp_path / "elsewhere")  # no link is followed
    start = time.monotonic()
    for path in (tmp_path / "turns", tmp_path / "missing" / "turns", tmp_path):
        with turns.FileTurns(str(path)).of(["/a"]):
            pass
    assert time.monotonic() - start < 0.25 and not (tmp_path / "elsewhere").exists()


def test_turns_may_be_taken_in_threads_and_behind_a_fork(ledger: Ledger, url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        seconds = list(pool.map(lambda table: waited_for(ledger, [table]), ["/a", "/b", "/c", "/d"]))
    process = multiprocessing.get_context("fork").Process(target=waited_for, args=(open_ledger(url), ["/a"]))
    process.start()
    process.join(30)
    assert process.exitcode == 0 and max(seconds) < turns.WAIT_SECONDS
