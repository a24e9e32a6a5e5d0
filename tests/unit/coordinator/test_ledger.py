"""The contract of ledgers, on SQLite and PostgreSQL; and cases that only these ledgers have."""

from __future__ import annotations

import sys
import time
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from delta_py.coordinator.ledger import CoordinatorUnavailableError, Ratified, Tail
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.coordinator.postgres_ledger import PostgresLedger
from delta_py.coordinator.sql_ledger import SqlLedger
from delta_py.errors import CorruptTableError, InvalidOptionError, UnsupportedOperationError
from tests.support.servers import postgres as postgres_server
from tests.support.stores.ledger_contract import *  # noqa: F403


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    with postgres_server.running() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty ledger."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path / 'ledger.db'}"
    import psycopg

    schema, server = f"s{uuid.uuid4().hex}", request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{server}?options=-csearch_path%3D{schema}"


@pytest.mark.parametrize("name", ["../../x", "00000000000000000001.json", "00000000000000000001.a/b.json", "", b"1", None])
def test_name_that_is_none_of_a_staged_commit_is_refused(name: Any) -> None:
    with pytest.raises(CorruptTableError, match="name of no staged commit"):
        Ratified("/a", 1, name, 1, 1)


@pytest.mark.parametrize("numbers", [("1", 1, 1), (1.0, 1, 1), (None, 1, 1), (-1, 1, 1), (2, 1, 1), (1, "1", 1), (1, 1, 2**63)])
def test_numbers_that_no_staged_commit_has_are_refused(numbers: tuple[Any, Any, Any]) -> None:
    version, size_bytes, time_ms = numbers
    with pytest.raises(CorruptTableError, match="no commit of that name has"):
        Ratified("/a", version, "00000000000000000001.a.json", size_bytes, time_ms)


@pytest.mark.parametrize("version", ["2", 2.0, None, 3, 1, 2**63])
def test_tail_refuses_a_version_other_than_its_newest_commit(version: Any) -> None:
    commits = [Ratified("/a", number, f"{number:020}.a.json", 1, 1) for number in (0, 1, 2)]
    for present in (commits[1:], commits[::2]):
        with pytest.raises(CorruptTableError, match="newest version of a table"):
            Tail(version if present == commits[1:] else 2, tuple(present))
    assert Tail(2, tuple(commits[1:])).version == 2


def test_password_of_a_database_is_not_shown(postgres: str) -> None:
    password = urlsplit(postgres).password
    assert password is not None
    wrong = postgres.replace("/postgres", "/nothing")
    with pytest.raises(CoordinatorUnavailableError, match="nothing") as caught:
        open_ledger(wrong)
    assert password not in open_ledger(postgres).shown + str(caught.value) + repr(caught.value)


@pytest.mark.parametrize(
    "rest",
    [
        "u:hush/hush@host/db",
        "u:hush@hush@host/db",
        "u:hush hush@host/db",
        "u:hush%zzhush@host/db",
        "u:hush?hush/@host/db",
        "u:x@host:hush/db",
    ],
)
def test_ambiguous_postgresql_url_is_refused_and_not_shown(rest: str) -> None:
    with pytest.raises(InvalidOptionError, match="percent-encoded") as caught:
        open_ledger(f"postgresql://{rest}")
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_port_that_there_is_not_is_named_and_no_password() -> None:
    url = "postgresql://u:hush%20#@127.0.0.1:99999/db"
    with pytest.raises(CoordinatorUnavailableError, match="99999") as caught:
        open_ledger(url)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_change_that_the_database_refuses_is_no_commit(url: str) -> None:
    """Whatever is sent before and after it."""
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


def test_statement_gets_its_rows_if_others_are_answered_early(postgres: str) -> None:
    """A notice makes the server send its data immediately; otherwise it would answer when the client waits for it."""
    ledger = open_ledger(postgres)
    assert isinstance(ledger, SqlLedger)
    with ledger._transaction(writes=True) as sql:
        for number in range(3):
            sql.do("SELECT ?::int", number)
            sql.do("DO $$ BEGIN RAISE NOTICE 'sent'; END $$")
            time.sleep(0.1)
            assert sql.run("SELECT ?::int", 10 + number) == [(10 + number,)]


def test_stalled_writer_loses_the_lock_to_other_writers(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_py.coordinator.postgres_ledger._MOST_IDLE_SECONDS", 1)
    still, other = PostgresLedger(postgres), PostgresLedger(postgres)
    begun = time.monotonic()
    with pytest.raises(CoordinatorUnavailableError), still._transaction(writes=True) as statements:
        statements.do("INSERT INTO moments VALUES (?, ?)", 99, 1)
        statements.run("SELECT 1")
        other.register("/still", 0, "still")
        assert 0.5 < time.monotonic() - begun < 20
        statements.run("SELECT 1")
    assert still.tail("/still") == Tail(0, (), "still"), "it goes on"
    with still._transaction(writes=False) as statements:
        assert statements.run("SELECT moment FROM moments WHERE moment = 99") == []


def test_connection_has_keepalives_that_notice_a_dead_network(postgres: str) -> None:
    settings = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}
    for url, expected_settings in ((postgres, settings), (f"{postgres}?keepalives_idle=7", {**settings, "keepalives_idle": "7"})):
        ledger = PostgresLedger(url)
        with ledger._connections.connection() as connection:
            actual_settings = connection.info.get_parameters()
        assert {name: actual_settings.get(name) for name in expected_settings} == expected_settings


def test_connection_that_the_server_has_closed_is_made_anew(postgres: str) -> None:
    import psycopg

    ledger = open_ledger(postgres)
    ledger.register("/t", 0, "t")
    with psycopg.connect(postgres, autocommit=True) as other:
        condition = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {condition}")
    assert ledger.tail("/t") == Tail(0, (), "t")


def test_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database, and longer than a header of one would be" * 20)
    with pytest.raises(CoordinatorUnavailableError, match=r"DELTA_COORDINATOR_UNAVAILABLE.*no\.db"):
        open_ledger(f"sqlite://{tmp_path / 'no.db'}")
    with pytest.raises(CoordinatorUnavailableError):
        open_ledger(f"sqlite://{tmp_path / 'missing' / 'ledger.db'}")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "is no URL"),
        ("ledger.db", "is no URL"),
        ("/data/ledger.db", "is no URL"),
        ("sqlite:///", "a URL of sqlite is not written so"),
        ("sqlite:/data/ledger.db", "a URL of sqlite is not written so"),
        ("sqlite://data/ledger.db", "a URL of sqlite is not written so"),
        ("SQLITE:///data/ledger.db", "a URL of sqlite is not written so"),
        ("postgresql:/u:hush@host/db", "a URL of postgresql is not written so"),
        ("mysql://u:hush@host/db", "no coordinator has URLs of the scheme mysql"),
    ],
)
def test_invalid_ledger_url_is_refused_and_right_ones_are_named(url: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{why}.*sqlite:///path/of/file.db") as caught:
        open_ledger(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [("psycopg", "postgresql://127.0.0.1/none", "postgres"), ("boto3", "dynamodb://none", "s3")],
)
def test_missing_package_is_named_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch, package: str, url: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for module in ("delta_py.coordinator.dynamodb_ledger", "delta_py.aws_clients"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(UnsupportedOperationError, match=rf"{package}.*pip install 'pydelta-lake\[{extra}\]'"):
        open_ledger(url)
