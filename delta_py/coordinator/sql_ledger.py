"""A ledger in a database that speaks SQL: its tables, and each step as one transaction.

    commits     one row a ratified commit, until long after it is published: also what tables were like at a moment
    tables      one row a table: its newest version, and up to which version all is published
    ledger      one row: the ledger's identity, and the newest moment
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from delta_py.coordinator.ledger import Ratified, Tail, taken

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS ledger (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL, moment BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tables (place TEXT PRIMARY KEY, version BIGINT NOT NULL, published BIGINT NOT NULL, "
    "first_version BIGINT NOT NULL, first_moment BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS commits (place TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL, "
    "size_bytes BIGINT NOT NULL, time_ms BIGINT NOT NULL, moment BIGINT NOT NULL, PRIMARY KEY (place, version))",
)
_KEPT_VERSIONS = 10_000  # of a table, behind the newest that is published


class Statements(Protocol):
    """What runs SQL within one transaction; `?` stands for a value."""

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; none of another statement."""


class SqlLedger:
    """Ledger but for its database: `_transaction` is one, serialisable, that is committed when its block ends well, and raises
    CoordinatorUnavailableError. Its writers come one after the other."""

    identity: str
    shown: str

    def _transaction(self, *, writes: bool) -> contextlib.AbstractContextManager[Statements]:
        raise NotImplementedError

    # ------------------------------------------------------------ tables

    def register(self, table: str, version: int) -> None:
        with self._transaction(writes=True) as sql:
            if not sql.run("SELECT 1 FROM tables WHERE place = ?", table):
                ((moment,),) = sql.run("SELECT moment FROM ledger")
                sql.run("INSERT INTO tables VALUES (?, ?, ?, ?, ?)", table, version, version, version, moment)

    def forget(self, table: str) -> None:
        with self._transaction(writes=True) as sql:
            sql.run("DELETE FROM tables WHERE place = ?", table)
            sql.run("DELETE FROM commits WHERE place = ?", table)

    def tail(self, table: str) -> Tail | None:
        with self._transaction(writes=False) as sql:
            rows = sql.run(
                "SELECT t.version, c.version, c.name, c.size_bytes, c.time_ms FROM tables t LEFT JOIN commits c "
                "ON c.place = t.place AND c.version > t.published WHERE t.place = ? ORDER BY c.version",
                table,
            )
        if not rows:
            return None
        return Tail(rows[0][0], tuple(Ratified(table, *row[1:]) for row in rows if row[1] is not None))

    # ------------------------------------------------------------ commits

    def ratify(self, commits: Sequence[Ratified], *, expected: Mapping[str, int] | None = None) -> int:
        with self._transaction(writes=True) as sql:
            for table, version in (expected or {}).items():
                newest = _version(sql, table)
                if newest != version:
                    raise taken(table, version, newest)
            ((moment,),) = sql.run("UPDATE ledger SET moment = moment + 1 RETURNING moment")
            for table, group in groupby(commits, key=lambda commit: commit.table):
                _append(sql, table, list(group), moment)
        return int(moment)

    def acknowledge(self, table: str, version: int) -> None:
        with self._transaction(writes=True) as sql:
            sql.run("UPDATE tables SET published = ? WHERE place = ? AND published < ?", version, table, version)
            sql.run("DELETE FROM commits WHERE place = ? AND version < ?", table, version - _KEPT_VERSIONS)

    # ------------------------------------------------------------ moments

    def moment(self) -> int:
        with self._transaction(writes=False) as sql:
            ((moment,),) = sql.run("SELECT moment FROM ledger")
        return int(moment)

    def version_at(self, table: str, moment: int) -> int | None:
        with self._transaction(writes=False) as sql:
            ((newest, oldest),) = sql.run(
                "SELECT MAX(CASE WHEN moment <= ? THEN version END), MIN(version) FROM commits WHERE place = ?", moment, table
            )
            first = sql.run("SELECT first_version, first_moment FROM tables WHERE place = ?", table)
        if newest is not None or not first:
            return newest if first else None
        ((first_version, first_moment),) = first
        reaches_back = first_moment <= moment and oldest in (None, first_version + 1)
        return int(first_version) if reaches_back else None


def _version(sql: Statements, table: str) -> int | None:
    rows = sql.run("SELECT version FROM tables WHERE place = ?", table)
    return rows[0][0] if rows else None


def _append(sql: Statements, table: str, commits: list[Ratified], moment: int) -> None:
    newest = _version(sql, table)
    if newest is None or [commit.version for commit in commits] != list(range(newest + 1, newest + 1 + len(commits))):
        raise taken(table, commits[0].version, newest)
    for commit in commits:
        values = (table, commit.version, commit.name, commit.size_bytes, commit.time_ms, moment)
        sql.run("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", *values)
    sql.run("UPDATE tables SET version = ? WHERE place = ?", commits[-1].version, table)


def rows_of(cursor: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement of DB-API; none of one that is no query."""
    return iter(cursor.fetchall()) if cursor.description is not None else iter(())
