"""A ledger in a file of SQLite: many processes of one machine. It must lie on a disk of that machine, as SQLite's locks do not
hold on network file systems."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from delta_py.coordinator.connections import Connections
from delta_py.coordinator.ledger import unavailable
from delta_py.coordinator.sql_ledger import SqlLedger, Statements
from delta_py.coordinator.turns import FileTurns

_WAIT_SECONDS = 60.0  # for other processes' transactions


class SqliteLedger(SqlLedger):
    """path: of the file, made where it is missing. Raises CoordinatorUnavailableError."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self.shown = f"sqlite:///{self._path}"
        self._connections = Connections(self._connect)
        self._turns = FileTurns(f"{self._path}-turns")  # SQLite's own locks on its file are not for others
        self.prepare()

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        return self._turns.of(tables)

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Statements]:
        try:
            with self._connections.one() as connection, contextlib.closing(connection.cursor()) as cursor:
                cursor.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield _Statements(cursor)  # where it fails, closing the connection rolls back
                connection.commit()
        except sqlite3.Error as error:
            raise unavailable(self.shown, error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what is ratified stays so when the machine fails
        return connection


class _Statements:
    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._cursor.execute(sql, values).fetchall()

    def do(self, sql: str, *values: Any) -> None:
        self._cursor.execute(sql, values)
