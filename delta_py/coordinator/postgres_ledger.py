"""A ledger in a PostgreSQL database: many processes of many machines. Its tables are made in the schema that the connection finds
first, such as `public`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from delta_py.coordinator.connections import Connections
from delta_py.coordinator.ledger import unavailable
from delta_py.coordinator.sql_ledger import SqlLedger, Statements
from delta_py.errors import UnsupportedOperationError

_WRITERS = 0x70796465  # the lock that writers take: they come one after the other, as moments do
_CONNECT_SECONDS = 10


class PostgresLedger(SqlLedger):
    """url: `postgresql://user:password@host:port/database`. Raises UnsupportedOperationError where psycopg is not installed,
    CoordinatorUnavailableError."""

    def __init__(self, url: str) -> None:
        self._url, self._psycopg = url, _psycopg()
        parts = urlsplit(url)
        self.shown = f"postgresql://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        self._connections = Connections(lambda: self._psycopg.connect(url, connect_timeout=_CONNECT_SECONDS))
        self.prepare()

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """None: a lock in the database would hold a connection while commits are staged, and one more while it is waited for."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Statements]:
        try:
            self._look_for_server()
            with self._connections.one() as connection:
                levels = self._psycopg.IsolationLevel
                connection.isolation_level = levels.READ_COMMITTED if writes else levels.REPEATABLE_READ
                with connection.pipeline():
                    statements = _Statements(connection)
                    if writes:
                        statements.do("SELECT pg_advisory_xact_lock(?)", _WRITERS)
                    yield statements  # where it fails, closing the connection rolls back
                    connection.commit()
        except self._psycopg.Error as error:
            raise unavailable(self.shown, str(error).replace(self._url, self.shown)) from error

    def _look_for_server(self) -> None:
        """A connection that was used before may be one that the server has closed since: then all of them are made anew."""
        is_lost = False
        try:
            with self._connections.one() as connection, connection.pipeline():
                try:
                    connection.execute("SELECT 1")
                    connection.rollback()
                except self._psycopg.OperationalError:  # behind the block psycopg would warn of it
                    is_lost = True
        except self._psycopg.OperationalError:
            is_lost = True
        if is_lost:
            self._connections.forget()


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UnsupportedOperationError(
            "A coordinator in PostgreSQL needs psycopg. Install pydelta with the extra postgres: pip install 'pydelta[postgres]'."
        ) from error
    return psycopg


class _Statements:
    """In a pipeline: a statement is on its way at once, and only who wants its rows waits for the server. Writers hold a lock
    that all others wait for, so each wait counts. Each statement has a cursor of its own: one would give the rows of an earlier
    statement whose answer comes while the next is sent."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql.replace("?", "%s"), values).fetchall()
        return rows

    def do(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql.replace("?", "%s"), values)
