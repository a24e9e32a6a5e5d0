"""A ledger in a SQLite file: for many processes on one machine. The file must be on a local disk, because SQLite's locks do not
work on network file systems."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from delta_py.coordinator.connections import Connections
from delta_py.coordinator.ledger import unavailable_error
from delta_py.coordinator.sql_ledger import SqlLedger, Statements
from delta_py.coordinator.turns import FileTurns

_WAIT_SECONDS = 60.0  # how long to wait for other processes' transactions


class SqliteLedger(SqlLedger):
    """A Ledger in a SQLite file. path: of the file; it is created if it is missing. shown: its URL. Raises
    CoordinatorUnavailableError."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self.shown = f"sqlite:///{self._path}"
        self._connections = Connections(self._connect)
        self._turns = FileTurns(f"{self._path}-turns")  # a separate file, because only SQLite may lock its own file
        self.prepare()

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """Let other writers of these tables on this machine wait during the block."""
        return self._turns.of(tables)

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Statements]:
        """One transaction of the database, which is committed when the block succeeds. writes: take SQLite's lock of writers."""
        try:
            with self._connections.connection() as connection, contextlib.closing(connection.cursor()) as cursor:
                # IMMEDIATE: a writer has the lock before it reads, so nobody changes what it has read.
                cursor.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield _Statements(cursor)  # if the block fails, closing the connection rolls back
                connection.commit()
        except sqlite3.Error as error:
            raise unavailable_error(self.shown, error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # ratified commits survive a machine failure
        return connection


class _Statements:
    """Runs SQL in the transaction of a cursor. Implements Statements."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._cursor.execute(sql, values).fetchall()

    def do(self, sql: str, *values: Any) -> None:
        self._cursor.execute(sql, values)
