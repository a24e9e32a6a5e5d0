"""A ledger in a PostgreSQL database: many processes of many machines. Its tables are made in the schema that the connection finds
first, such as `public`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from delta_py.coordinator.ledger import unavailable
from delta_py.coordinator.sql_ledger import SqlLedger, Statements, rows_of
from delta_py.errors import UnsupportedOperationError

_WRITERS = 0x70796465  # the lock that writers take: they come one after the other, as moments do
_CONNECT_SECONDS = 10


class PostgresLedger(SqlLedger):
    """url: `postgresql://user:password@host:port/database`. Raises UnsupportedOperationError where psycopg is not installed,
    CoordinatorUnavailableError."""

    def __init__(self, url: str) -> None:
        self._url, self._mine = url, threading.local()
        parts = urlsplit(url)
        self.shown = f"postgresql://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        self._psycopg = _psycopg()
        self.prepare()

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Statements]:
        levels = self._psycopg.IsolationLevel
        try:
            connection = self._begun(levels.READ_COMMITTED if writes else levels.REPEATABLE_READ)
            with connection.cursor() as cursor:
                try:
                    if writes:
                        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITERS,))
                    yield _Statements(cursor)
                except BaseException:
                    with contextlib.suppress(self._psycopg.Error):  # a connection that is lost has rolled back
                        connection.rollback()
                    raise
                connection.commit()
        except self._psycopg.Error as error:
            raise unavailable(self.shown, str(error).replace(self._url, self.shown)) from error

    def _begun(self, level: Any) -> Any:
        """This thread's connection, in a transaction. One that the server has closed meanwhile is made anew."""
        for is_last in (False, True):
            connection = self._connection()
            connection.isolation_level = level
            try:
                connection.execute("SELECT 1")  # begins it, and shows whether the server is there
            except self._psycopg.OperationalError:
                self._mine.connection = None
                if is_last:
                    raise
            else:
                return connection
        raise AssertionError("the second round returns or raises")

    def _connection(self) -> Any:
        """One a thread; one that a process has inherited is its parent's."""
        known = getattr(self._mine, "connection", None)
        if known is not None and known[0] == os.getpid() and not known[1].closed:
            return known[1]
        connection = self._psycopg.connect(self._url, connect_timeout=_CONNECT_SECONDS)
        self._mine.connection = (os.getpid(), connection)
        return connection


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UnsupportedOperationError(
            "A coordinator in PostgreSQL needs psycopg. Install pydelta with the extra postgres: pip install 'pydelta[postgres]'."
        ) from error
    return psycopg


class _Statements:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return list(rows_of(self._cursor.execute(sql.replace("?", "%s"), values)))
