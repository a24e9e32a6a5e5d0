"""A ledger in a database that speaks SQL: its tables, and each step as one transaction. A moment is a number that
grows with each ratification (ledger.py), not a time.

commits     one row for each ratified commit, until long after it is published: also the state of tables at a moment
tables      one row for each table: its newest version, the version up to which all commits are published, and the version and
            the moment at which it was registered (first_version, first_moment)
ledger      one row: the ledger's identity, and the newest moment
moments     one row for each moment: its time
transactions, proposals     transactions over several tables, and their staged commits while they are open
held_reads  reads of these transactions that belong to no staged commit
tokens      one row for each token of a call that may be repeated
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from delta_py.coordinator.ledger import (
    COMMITTED_RETENTION_MS,
    RETAINED_MOMENTS,
    RETAINED_VERSIONS,
    TOKEN_RETENTION_MS,
    Inventory,
    OpenTransaction,
    ProposedCommit,
    Ratified,
    Restored,
    Tail,
    TokenUsedError,
    another_ledger_error,
    ended_error,
    known_at_other_place_error,
    not_remembered_error,
    version_taken_error,
)

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS ledger (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL, moment BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tables (place TEXT PRIMARY KEY, table_id TEXT NOT NULL UNIQUE, version BIGINT NOT NULL, "
    "published BIGINT NOT NULL, first_version BIGINT NOT NULL, first_moment BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS commits (place TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL, "
    "size_bytes BIGINT NOT NULL, time_ms BIGINT NOT NULL, moment BIGINT NOT NULL, PRIMARY KEY (place, version))",
    "CREATE TABLE IF NOT EXISTS moments (moment BIGINT PRIMARY KEY, time_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS transactions (identity TEXT PRIMARY KEY, moment BIGINT NOT NULL, state TEXT NOT NULL, "
    "ends_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS proposals (transaction_id TEXT NOT NULL, place TEXT NOT NULL, version BIGINT NOT NULL, "
    "name TEXT NOT NULL, size_bytes BIGINT NOT NULL, time_ms BIGINT NOT NULL, described TEXT NOT NULL, "
    "PRIMARY KEY (transaction_id, place, version))",
    "CREATE TABLE IF NOT EXISTS held_reads (identity TEXT PRIMARY KEY, transaction_id TEXT NOT NULL, place TEXT NOT NULL, "
    "described TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tokens (token TEXT PRIMARY KEY, moment BIGINT NOT NULL, time_ms BIGINT NOT NULL)",
)
_OPEN, _COMMITTED, _ABORTED = "open", "committed", "aborted"
_TRANSACTION_TABLES = ("proposals", "held_reads")  # rows that exist only while transactions are open


class Statements(Protocol):
    """Runs SQL within one transaction; `?` stands for a value."""

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, or the rows that a change returns."""

    def do(self, sql: str, *values: Any) -> None:
        """Run a change that returns no rows. The change may be sent later, together with the next statement. If the change fails,
        the next statement or the commit raises the error."""


class SqlLedger:
    """A Ledger (ledger.py) without its database: its methods do and raise what the methods of Ledger do. table: the place of a
    table. Subclasses open the database and implement `_transaction` and `turn`. Writers run one after the other."""

    identity: str
    shown: str

    def _transaction(self, *, writes: bool) -> contextlib.AbstractContextManager[Statements]:
        """One serialisable transaction, which is committed when the block succeeds. Raises CoordinatorUnavailableError."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Create the tables if they are missing, and read the ledger's identity."""
        with self._transaction(writes=True) as sql:
            for statement in _SCHEMA:
                sql.do(statement)
            sql.do("INSERT INTO ledger VALUES (1, ?, 0) ON CONFLICT DO NOTHING", str(uuid.uuid4()))
            self.identity = _read_identity(sql)

    # ------------------------------------------------------------ tables

    def register(self, table: str, version: int, table_id: str) -> None:
        """Begin to coordinate a table whose versions up to this one are published."""
        with self._transaction(writes=True) as sql:
            if (present_identity := _read_identity(sql)) != self.identity:  # the database was created again since it was opened
                raise another_ledger_error(self.shown, present_identity, self.identity)
            self._add_if_unknown(sql, table, version, table_id)

    def _add_if_unknown(self, sql: Statements, table: str, version: int, table_id: str) -> bool:
        """Add the table if it is not known, and return whether it was added. Raises UnsupportedOperationError if its place or its
        id is known otherwise."""
        rows = sql.run("SELECT place, table_id FROM tables WHERE place = ? OR table_id = ?", table, table_id)
        for place, known_id in rows:
            if (place, known_id) != (table, table_id):
                raise known_at_other_place_error(self.shown, table, place)
        if not rows:
            ((moment,),) = sql.run("SELECT moment FROM ledger")
            sql.do("INSERT INTO tables VALUES (?, ?, ?, ?, ?, ?)", table, table_id, version, version, version, moment)
        return not rows

    def inventory(self) -> Inventory:
        """The ledger's identity, and the places of all tables."""
        with self._transaction(writes=False) as sql:
            self.identity = _read_identity(sql)
            return Inventory(self.identity, tuple(place for (place,) in sql.run("SELECT place FROM tables ORDER BY place")))

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        """Become the ledger of that identity, which was lost, and register these tables with their unpublished commits."""
        with self._transaction(writes=True) as sql:
            if (present_identity := _read_identity(sql)) != identity:
                if sql.run("SELECT 1 FROM tables LIMIT 1"):
                    raise another_ledger_error(self.shown, present_identity, identity)
                sql.do("UPDATE ledger SET identity = ?", identity)
            for table in tables:
                if not self._add_if_unknown(sql, table.table, table.published, table.table_id):
                    raise version_taken_error(
                        table.table, table.published, _read_newest_versions(sql, {table.table}).get(table.table)
                    )
            commits = [commit for table in tables for commit in table.commits]
            if commits:
                _ratify(sql, commits, {table.table: table.published for table in tables}, _now_ms())
        self.identity = identity

    def forget(self, table: str, version: int | None = None) -> bool:
        """Stop coordinating a table. version: only if this is its newest version, and all commits are published."""
        with self._transaction(writes=True) as sql:
            rows = sql.run("SELECT version, published FROM tables WHERE place = ?", table)
            if rows and version is not None and rows[0] != (version, version):
                return False
            sql.do("DELETE FROM tables WHERE place = ?", table)
            sql.do("DELETE FROM commits WHERE place = ?", table)
            return True

    def tail(self, table: str) -> Tail | None:
        """The table's newest version, and its commits that are not published; None if the table is not known."""
        with self._transaction(writes=False) as sql:
            return _read_tail(sql, table)

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        """The table as the transaction sees it: its version when the transaction began (base), then the proposed commits."""
        with self._transaction(writes=False) as sql:
            begun, tail = _find_open(sql, transaction), _read_tail(sql, table)
            if tail is None:
                return None
            base = _find_version_at(sql, table, begun.moment)
            if base is None:
                raise not_remembered_error(self.shown, table, transaction)
            columns = "place, version, name, size_bytes, time_ms"
            where = "WHERE transaction_id = ? AND place = ? ORDER BY version"
            proposed_commits = [Ratified(*row) for row in sql.run(f"SELECT {columns} FROM proposals {where}", transaction, table)]
            # Otherwise they belong to a table that was at this place before.
            if proposed_commits and proposed_commits[0].version != base + 1:
                raise not_remembered_error(self.shown, table, transaction)
        commits = (*(commit for commit in tail.commits if commit.version <= base), *proposed_commits)
        return replace(tail, version=base + len(proposed_commits), commits=commits, base=base)

    # ------------------------------------------------------------ commits

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        """Make all commits versions of their tables, or none; returns the moment. Parameters as in Ledger.ratify."""
        with self._transaction(writes=True) as sql:
            if transaction is not None:
                _find_open(sql, transaction)  # raises if it has ended
                _end_transaction(sql, transaction, _COMMITTED)
            newest = _read_newest_versions(sql, {commit.table for commit in commits}.union(expected or ()))
            for table, version in (expected or {}).items():
                if newest.get(table) != version:
                    raise version_taken_error(table, version, newest.get(table))
            now = _now_ms()
            moment = _ratify(sql, commits, newest, now)
            if token is not None:
                _use_token(sql, token, moment, now)
        return moment

    def acknowledge(self, table: str, version: int) -> None:
        """Record that all commits up to this version are published, and delete commits that are no longer retained."""
        with self._transaction(writes=True) as sql:
            where = "WHERE place = ? AND published < ? AND version >= ?"
            sql.do(f"UPDATE tables SET published = ? {where}", version, table, version, version)
            sql.do("DELETE FROM commits WHERE place = ? AND version < ?", table, version - RETAINED_VERSIONS)

    # ------------------------------------------------------------ moments

    def moment(self, time_ms: int | None = None) -> int | None:
        """The newest moment, or the newest up to a time; None if the ledger does not reach back that far."""
        with self._transaction(writes=False) as sql:
            if time_ms is None:
                return int(sql.run("SELECT moment FROM ledger")[0][0])
            return sql.run("SELECT MAX(moment) FROM moments WHERE time_ms <= ?", time_ms)[0][0]  # type: ignore[no-any-return]

    def version_at(self, table: str, moment: int) -> int | None:
        """The table's version at a moment; None if the table or its version then is not known."""
        with self._transaction(writes=False) as sql:
            return _find_version_at(sql, table, moment)

    # ------------------------------------------------------------ transactions over tables

    def begin(self, seconds: float) -> OpenTransaction:
        """Begin a transaction that may last for this time, and delete the rows of transactions whose time is over."""
        identity, now = str(uuid.uuid4()), _now_ms()
        with self._transaction(writes=True) as sql:
            for name in _TRANSACTION_TABLES:
                sql.do(f"DELETE FROM {name} WHERE transaction_id IN (SELECT identity FROM transactions WHERE ends_ms < ?)", now)
            # Committed transactions are remembered for longer than the others.
            is_old = "ends_ms < CASE WHEN state = ? THEN ? ELSE ? END"
            sql.do(f"DELETE FROM transactions WHERE {is_old}", _COMMITTED, now - COMMITTED_RETENTION_MS, now)
            ((moment,),) = sql.run("SELECT moment FROM ledger")
            sql.do("INSERT INTO transactions VALUES (?, ?, ?, ?)", identity, moment, _OPEN, now + round(seconds * 1000))
        return OpenTransaction(identity=identity, moment=moment)

    def find(self, transaction: str) -> OpenTransaction:
        """An open transaction. Raises TransactionEndedError."""
        with self._transaction(writes=False) as sql:
            return _find_open(sql, transaction)

    def propose(self, transaction: str, proposed: ProposedCommit) -> None:
        """Add a staged commit to an open transaction. Raises VersionTakenError if it already has a commit of that version."""
        commit = proposed.commit
        with self._transaction(writes=True) as sql:
            _find_open(sql, transaction)  # raises if it has ended
            key = (transaction, commit.table, commit.version)
            if sql.run("SELECT 1 FROM proposals WHERE transaction_id = ? AND place = ? AND version = ?", *key):
                raise version_taken_error(commit.table, commit.version, commit.version)
            values = (*key, commit.name, commit.size_bytes, commit.time_ms, proposed.described.decode())
            sql.do("INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?, ?)", *values)

    def proposed(self, transaction: str, table: str | None = None) -> list[ProposedCommit]:
        """The commits of an open transaction, of one table or of all; empty if it has ended."""
        with self._transaction(writes=False) as sql:
            return _read_proposed(sql, transaction, table)

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        """Store reads of a table that belong to no commit of the transaction."""
        with self._transaction(writes=True) as sql:
            _find_open(sql, transaction)  # raises if it has ended
            sql.do("INSERT INTO held_reads VALUES (?, ?, ?, ?)", str(uuid.uuid4()), transaction, table, reads.decode())

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        """The stored reads of an open transaction, by table; empty if it has ended."""
        reads_by_place: dict[str, list[bytes]] = {}
        with self._transaction(writes=False) as sql:
            for place, described in sql.run("SELECT place, described FROM held_reads WHERE transaction_id = ?", transaction):
                reads_by_place.setdefault(place, []).append(described.encode())
        return reads_by_place

    def state_of(self, transaction: str) -> str | None:
        """`open`, `committed` or `aborted`; None if the transaction is not known any more."""
        with self._transaction(writes=False) as sql:
            rows = sql.run("SELECT state FROM transactions WHERE identity = ?", transaction)
        return rows[0][0] if rows else None

    def abort(self, transaction: str) -> list[ProposedCommit]:
        """End a transaction, and return the commits that it had proposed; empty if it had ended before."""
        with self._transaction(writes=True) as sql:
            proposals = _read_proposed(sql, transaction, None)
            return proposals if _end_transaction(sql, transaction, _ABORTED) else []

    def moment_of(self, token: str) -> int | None:
        """The moment of the `ratify` call that used a token; None if no such call is known."""
        with self._transaction(writes=False) as sql:
            rows = sql.run("SELECT moment FROM tokens WHERE token = ?", token)
        return rows[0][0] if rows else None


def _read_identity(sql: Statements) -> str:
    """The ledger's identity, as the database has it now."""
    return str(sql.run("SELECT identity FROM ledger")[0][0])


def _read_tail(sql: Statements, table: str) -> Tail | None:
    """The newest version, and the commits that are not published; None if the table is not known. If all are published, the LEFT
    JOIN gives one row without a commit."""
    rows = sql.run(
        "SELECT t.version, c.version, c.name, c.size_bytes, c.time_ms, t.table_id FROM tables t LEFT JOIN commits c "
        "ON c.place = t.place AND c.version > t.published WHERE t.place = ? ORDER BY c.version",
        table,
    )
    if not rows:
        return None
    return Tail(rows[0][0], tuple(Ratified(table, *row[1:5]) for row in rows if row[1] is not None), rows[0][5])


def _find_version_at(sql: Statements, table: str, moment: int) -> int | None:
    """The newest version that was ratified up to the moment; None if the table was registered later, or the ledger no longer
    knows.
    """
    first = sql.run("SELECT first_version, first_moment FROM tables WHERE place = ?", table)
    if not first:
        return None
    ((newest, oldest),) = sql.run(
        "SELECT MAX(CASE WHEN moment <= ? THEN version END), MIN(version) FROM commits WHERE place = ?", moment, table
    )
    if newest is not None:
        return int(newest)
    # No known commit is old enough. The table then had its first version, if it was registered by then and no commit was deleted.
    ((first_version, first_moment),) = first
    return int(first_version) if first_moment <= moment and oldest in (None, first_version + 1) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _find_open(sql: Statements, transaction: str) -> OpenTransaction:
    """An open transaction. Raises TransactionEndedError."""
    rows = sql.run("SELECT moment, state FROM transactions WHERE identity = ? AND ends_ms >= ?", transaction, _now_ms())
    if not rows or rows[0][1] != _OPEN:
        raise ended_error(transaction, rows[0][1] if rows else None)
    return OpenTransaction(identity=transaction, moment=rows[0][0])


def _end_transaction(sql: Statements, transaction: str, state: str) -> bool:
    """End a transaction, and delete what it has proposed and read. state: committed or aborted. Returns whether the transaction
    had not ended yet.
    """
    where = "WHERE identity = ? AND state = ? RETURNING identity"
    is_open = bool(sql.run(f"UPDATE transactions SET state = ? {where}", state, transaction, _OPEN))
    for transaction_table in _TRANSACTION_TABLES:
        sql.do(f"DELETE FROM {transaction_table} WHERE transaction_id = ?", transaction)
    return is_open


def _read_proposed(sql: Statements, transaction: str, table: str | None) -> list[ProposedCommit]:
    """The transaction's commits, sorted by table and version. table: None for all tables."""
    columns = "place, version, name, size_bytes, time_ms, described"
    place_condition, values = ("", (transaction,)) if table is None else (" AND place = ?", (transaction, table))
    rows = sql.run(f"SELECT {columns} FROM proposals WHERE transaction_id = ?{place_condition} ORDER BY place, version", *values)
    return [ProposedCommit(Ratified(*row[:5]), row[5].encode()) for row in rows]


def _use_token(sql: Statements, token: str, moment: int, now: int) -> None:
    """Record that the call with this token got this moment. Raises TokenUsedError."""
    sql.do("DELETE FROM tokens WHERE time_ms < ?", now - TOKEN_RETENTION_MS)
    rows = sql.run("SELECT moment FROM tokens WHERE token = ?", token)
    if rows:
        raise TokenUsedError(
            f"The call with the token {token} was already carried out; nothing was done again.", moment=rows[0][0]
        )
    sql.do("INSERT INTO tokens VALUES (?, ?, ?)", token, moment, now)


def _read_newest_versions(sql: Statements, tables: Collection[str]) -> dict[str, int]:
    """The newest version of each of these tables, without those that are not known."""
    if not tables:
        return {}
    marks = ", ".join("?" * len(tables))
    return {place: version for place, version in sql.run(f"SELECT place, version FROM tables WHERE place IN ({marks})", *tables)}


def _ratify(sql: Statements, commits: Sequence[Ratified], newest: Mapping[str, int], now: int) -> int:
    """Make all commits versions of their tables; returns the moment. newest: the newest version of each of these tables before,
    without tables that are not known. now: ms since 1970. Raises VersionTakenError.
    """
    versions = dict(newest)
    for commit in commits:
        if commit.version - 1 != versions.get(commit.table):
            raise version_taken_error(commit.table, commit.version, newest.get(commit.table))
        versions[commit.table] = commit.version
    ((moment,),) = sql.run("UPDATE ledger SET moment = moment + 1 RETURNING moment")
    for commit in commits:
        values = (commit.table, commit.version, commit.name, commit.size_bytes, commit.time_ms, moment)
        sql.do("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", *values)
    for table in {commit.table for commit in commits}:
        sql.do("UPDATE tables SET version = ? WHERE place = ?", versions[table], table)
    sql.do("INSERT INTO moments VALUES (?, ?)", moment, now)
    sql.do("DELETE FROM moments WHERE moment < ?", moment - RETAINED_MOMENTS)
    return int(moment)
