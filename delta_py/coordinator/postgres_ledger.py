"""A ledger in a PostgreSQL database: for many processes on many machines. Its tables are created in the first schema of the
connection's search path, such as `public`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from delta_py.coordinator.connections import Connections
from delta_py.coordinator.ledger import unavailable_error
from delta_py.coordinator.sql_ledger import SqlLedger, Statements
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.release import install_command

_WRITERS_LOCK = 0x70796465  # the lock that writers take: they run one after the other, because moments are ordered
_CONNECT_SECONDS = 10
_MOST_IDLE_SECONDS = 60  # after this time the server drops an idle writer that holds the lock: its machine may be gone
# Without these a call hangs for as long as the system allows when the network drops packets silently. A gateway does so after it
# has forgotten an idle connection. A URL may set other values.
_CONNECTION_SETTINGS = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}


class PostgresLedger(SqlLedger):
    """A Ledger in a PostgreSQL database. url: `postgresql://user:password@host:port/database`. shown: the URL without secrets.
    Raises UnsupportedOperationError if psycopg is not installed, InvalidOptionError, CoordinatorUnavailableError."""

    def __init__(self, url: str) -> None:
        self._url, self._psycopg = url, _psycopg()
        self.shown = _hide_secrets(url, self._psycopg)
        self._connections = Connections(self._connect)
        self.prepare()

    def _connect(self) -> Any:
        url_settings = self._psycopg.conninfo.conninfo_to_dict(self._url)
        settings = {name: value for name, value in _CONNECTION_SETTINGS.items() if name not in url_settings}
        return self._psycopg.connect(self._url, connect_timeout=_CONNECT_SECONDS, **settings)

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """No turns: a lock in the database would occupy a connection during staging, and another one for each waiting writer."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Statements]:
        """One transaction of the database, which is committed when the block succeeds. writes: take the lock of writers."""
        try:
            self._check_server()
            with self._connections.connection() as connection:
                # A writer must see what was committed while it waited for the lock. A reader needs one state of all tables.
                levels = self._psycopg.IsolationLevel
                connection.isolation_level = levels.READ_COMMITTED if writes else levels.REPEATABLE_READ
                with connection.pipeline() as pipeline:
                    statements = _Statements(connection, pipeline)
                    if writes:
                        statements.do(f"SET LOCAL idle_in_transaction_session_timeout = '{_MOST_IDLE_SECONDS}s'")
                        statements.do("SELECT pg_advisory_xact_lock(?)", _WRITERS_LOCK)
                    yield statements  # if the block fails, closing the connection rolls back
                    connection.commit()
        except self._psycopg.Error as error:
            raise unavailable_error(self.shown, str(error).replace(self._url, self.shown)) from error

    def _check_server(self) -> None:
        """Check that a pooled connection still works. If it does not, the server was restarted, perhaps: close all unused
        connections, so that the caller opens a new one."""
        is_lost = False
        try:
            with self._connections.connection() as connection, connection.pipeline():
                try:
                    connection.execute("SELECT 1")
                    connection.rollback()
                except self._psycopg.OperationalError:  # outside the block psycopg would log a warning about it
                    is_lost = True
        except self._psycopg.OperationalError:
            is_lost = True
        if is_lost:
            self._connections.forget()


def _hide_secrets(url: str, psycopg: Any) -> str:
    """The URL without its secrets. Raises InvalidOptionError, which shows no part of the URL, if a part of a password may be
    parsed as something else."""
    # As libpq does, the text up to the first `@` counts as user and password, unless a `/` comes before it.
    login, at, place = url.partition("://")[2].partition("@")
    if not at or "/" in login:  # the URL has no user and password
        place = login + at + place
    place = place.partition("?")[0]
    try:
        port = psycopg.conninfo.conninfo_to_dict(url).get("port") or ""
        is_parsed = all(port_number.isdecimal() or not port_number for port_number in port.split(",")) and "@" not in place
    except psycopg.Error:  # its message shows the text that it could not read
        is_parsed = False
    if not is_parsed:
        raise InvalidOptionError(
            "The URL of a coordinator in PostgreSQL cannot be read. Write postgresql://user:password@host:port/database; blanks "
            "and the characters % @ : / ? of a user, a password or a database are percent-encoded: an @ is %40.",
            option="coordinator",
        )
    return f"postgresql://{place}"


def _psycopg() -> Any:
    """The module psycopg. Raises UnsupportedOperationError if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise UnsupportedOperationError(
            f"A coordinator in PostgreSQL needs psycopg. Install pydelta with the extra postgres: {install_command('postgres')}."
        ) from error
    return psycopg


class _Statements:
    """Statements in a pipeline: each statement is sent at once, and only a caller that needs its rows waits for the server.
    Writers hold a lock that all others wait for, so each wait counts. Each statement has its own cursor: a shared cursor would
    return the rows of an earlier statement whose answer arrives while the next one is sent."""

    def __init__(self, connection: Any, pipeline: Any) -> None:
        self._connection, self._pipeline = connection, pipeline

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s"), values)
        self._pipeline.sync()  # the server's idle timeout does not count inside a pipeline
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    def do(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql.replace("?", "%s"), values)
