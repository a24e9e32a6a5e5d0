"""DeltaTransaction: changes of several tables that become visible together or not at all, and consistent reads of all of them.

    with DeltaTransaction("sqlite:///data/ledger.db") as tx:
        tx.append("/data/orders", orders)
        tx.delete("/data/cart", "customer = 7")
        total = tx.read("/data/accounts", filter="id = 7")

    transact(url, [check("/data/accounts", "id = 7"), append("/data/orders", orders)], token="order 4711")

All tables are read as they were when the transaction began, with its own changes. Leaving the block commits; an exception, or
`abort`, leaves no trace. Tables that are changed must be coordinated by the ledger (`delta.feature.catalogManaged`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from delta_py.commit.group import GroupTable, commit_group, unidentified_tables_error
from delta_py.commit.prepared import ReadSet, combine_matches
from delta_py.commit.proposed_form import reads_from_json
from delta_py.commit.transaction import Transaction
from delta_py.coordinator.ledger import OpenTransaction, TokenUsedError
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.definition.arrow_data import arrow_stream
from delta_py.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    UnsupportedOperationError,
)
from delta_py.expressions.parse import parse_predicate
from delta_py.object_stores.open_store import PathLike, named_coordination, open_store, path_text
from delta_py.row_changes.write import write_delta
from delta_py.scan.planning import ScanOptions
from delta_py.snapshot import Snapshot
from delta_py.storage.coordinated import place_of, root_of
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.table import DeltaTable

if TYPE_CHECKING:
    from delta_py.row_changes.merge import TableMerger

SECONDS = 24 * 3600.0  # after this time, the ledger gives up a transaction that has not ended
_MOST_SECONDS = 1e10  # about 300 years


@raises_storage_errors(lambda transaction: transaction._tables_text())
class DeltaTransaction:
    """A transaction over several tables, for a `with` block.

    coordinator: the URL of the ledger, the database that orders the commits of coordinated tables. isolation: with
    `serializable`, all rows that were read must be unchanged at commit; with `snapshot`, only those read to be written.
    storage_options: the options of the tables' stores, or a function that returns them for a table's path. seconds: if the
    transaction has not ended after this time, it is given up.

    Threads must not share an instance.
    """

    def __init__(
        self,
        coordinator: str,
        *,
        isolation: str = "serializable",
        storage_options: Mapping[str, str] | Callable[[str], Mapping[str, str]] | None = None,
        seconds: float = SECONDS,
    ) -> None:
        if isolation.lower() not in ("serializable", "snapshot"):
            raise InvalidOptionError(
                f"There is no isolation {isolation!r} of transactions. Use serializable or snapshot.", option="isolation"
            )
        if not abs(seconds) <= _MOST_SECONDS:
            raise InvalidOptionError(
                f"A transaction is given up after a number of seconds, at most {_MOST_SECONDS:.0f}, not {seconds}.",
                option="seconds",
            )
        self._is_serializable = isolation.lower() == "serializable"
        self._coordinator, self._seconds = coordinator, seconds
        self._options_for_path = storage_options if callable(storage_options) else lambda path: storage_options or {}
        self._open_transaction: OpenTransaction | None = None
        # The keys of these three are places: the names by which ledgers know tables (place_of).
        self._reads: dict[str, list[Transaction]] = {}  # one for each call of note_read; it has recorded the rows that were read
        self._read_ids: dict[str, set[str]] = {}  # the ids in the metadata of the tables that were read
        self._paths: dict[str, list[str]] = {}  # the spellings of the table's path that the caller has used
        self.versions: dict[str, int] = {}
        """The versions that the transaction committed, by each path that the caller passed for the table, set by the commit."""

    # ------------------------------------------------------------ begin and end

    def __enter__(self) -> Self:
        """Begin the transaction. Raises UnsupportedOperationError for one that has begun and not ended: its changes so far would
        be lost."""
        if self._open_transaction is not None:
            raise UnsupportedOperationError(
                f"The transaction {self._open_transaction.identity} has begun and not ended, so it cannot begin again. Use "
                "another DeltaTransaction for a transaction within its block."
            )
        self._reads, self._read_ids, self._paths, self.versions = {}, {}, {}, {}  # of a previous transaction
        self._open_transaction = open_ledger(self._coordinator).begin(self._seconds)
        return self

    def resume(self, identity: str) -> Self:
        """Continue a transaction that has begun elsewhere, for example in another process. identity: the ledger's id of it.
        Raises TransactionEndedError; UnsupportedOperationError for a serializable transaction: its reads are not known here."""
        if self._is_serializable:
            raise UnsupportedOperationError(
                f"The transaction {identity} cannot be resumed as a serializable one: the ledger does not know what it has "
                "read. Use isolation snapshot."
            )
        ledger = open_ledger(self._coordinator)
        self._open_transaction = ledger.find(identity)
        for place in {proposed.commit.table for proposed in ledger.proposed(identity)}:
            self.storage_options(root_of(place))  # adds the table to the transaction
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open_transaction is None:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    @property
    def identity(self) -> str:
        """The ledger's id of the transaction."""
        return self._required_transaction().identity

    def commit(self, *, token: str | None = None) -> dict[str, int]:
        """Commit all changes, or none; returns the newest version of each changed table, by each path that the caller passed for
        it.

        token: identifies a call that may be repeated: a second call with it changes nothing (TokenUsedError). Raises a
        DeltaConcurrentModificationException, after which the whole transaction may be run again.
        """
        transaction, ledger = self._required_transaction(), open_ledger(self._coordinator)
        try:
            held_reads = ledger.held_reads(transaction.identity) if self._is_serializable else {}
            # Reads of a table that is not part of this transaction cannot be checked for conflicts.
            if unopened_tables := held_reads.keys() - self._paths.keys():
                raise unidentified_tables_error(transaction.identity, "read", unopened_tables)
            tables = {place: self._describe_for_commit(place, transaction, held_reads.get(place, [])) for place in self._paths}
            coordinated = {place: table for place, table in tables.items() if table is not None}
            versions = commit_group(ledger, transaction.identity, coordinated, token=token)
        except CommitOutcomeUnknownError:
            self._open_transaction = None  # not aborted: the commits may be versions of their tables already
            raise
        except BaseException:
            self.abort()
            raise
        self._open_transaction = None
        self.versions = {path: version for place, version in versions.items() for path in self._paths[place]}
        return self.versions

    def abort(self) -> None:
        """End the transaction and change no table. VACUUM deletes the data files that were written."""
        transaction, self._open_transaction = self._required_transaction(), None
        # The staged commits, files in _delta_log/_staged_commits, are not needed any more. They are deleted where the store of
        # the table is known.
        for proposed in open_ledger(self._coordinator).abort(transaction.identity):
            if proposed.commit.table in self._paths:
                named_coordination(self._store_outside_transaction(proposed.commit.table)).drop_staged(proposed.commit)

    def _required_transaction(self) -> OpenTransaction:
        """The open transaction. Raises UnsupportedOperationError if none is open."""
        if self._open_transaction is None:
            raise UnsupportedOperationError("The transaction has not begun, or has ended. Use it in a with statement.")
        return self._open_transaction

    # ------------------------------------------------------------ tables

    def storage_options(self, path: PathLike) -> dict[str, str]:
        """Options to read and write a table as a part of this transaction, in Spark too. The table becomes part of
        the transaction."""
        path = path_text(path)
        coordinator_options = {"coordinator": self._coordinator, "coordinator.transaction": self._required_transaction().identity}
        options = {**self._options_for_path(path), **coordinator_options}
        paths = self._paths.setdefault(named_coordination(open_store(path, StorageOptions.of(options))).place, [])
        if path not in paths:
            paths.append(path)
        return options

    def table(self, path: PathLike) -> DeltaTable:
        """A table as it was when the transaction began, with its own changes up to now. Its methods that change it become part of
        the transaction. Rows that it reads are not checked for conflicts: `read` does that."""
        return DeltaTable(path, store=self._store(path))

    def read(
        self,
        path: PathLike,
        columns: list[str] | None = None,
        filter: str | None = None,
        *,
        verify_checksums: bool = False,
    ) -> pa.Table:
        """Rows of a table. In a serializable transaction they must be unchanged at commit. verify_checksums: as for
        DeltaTable.scan."""
        table = self.table(path)
        self.note_read(table, filter)
        return table.to_arrow(columns=columns, filter=filter, verify_checksums=verify_checksums)

    def note_read(self, table: DeltaTable, filter: str | None = None, *, time_zone: str = "UTC") -> None:
        """Record that rows of a table were read, so that the commit fails if another writer has changed them. filter: SQL that
        selects the rows; None for all rows. time_zone: the zone of times in the filter that name no zone."""
        predicate = None if filter is None else parse_predicate(filter, table.snapshot.schema, session_timezone=time_zone)
        transaction = Transaction(table.snapshot)
        transaction.scan(predicate, options=ScanOptions(timezone=time_zone))
        place = place_of(table.snapshot.table_root)
        self._reads.setdefault(place, []).append(transaction)
        self._read_ids.setdefault(place, set()).add(table.metadata.id)

    def append(self, path: PathLike, data: Any, **options: Any) -> None:
        """Append rows to a table. data, options: as write_delta takes them."""
        write_delta(path, data, mode="append", store=self._store(path), **options)

    def overwrite(self, path: PathLike, data: Any, **options: Any) -> None:
        """Replace the rows of a table. data, options: as write_delta takes them."""
        write_delta(path, data, mode="overwrite", store=self._store(path), **options)

    def delete(self, path: PathLike, predicate: str | None = None) -> dict[str, int]:
        """Delete the rows for which the predicate (SQL) is true; None: all. Returns metrics, as DeltaTable.delete does."""
        return self.table(path).delete(predicate)

    def update(
        self,
        path: PathLike,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: str | None = None,
    ) -> dict[str, int]:
        """Set columns in the rows for which the predicate (SQL) is true. Arguments and metrics as for DeltaTable.update."""
        return self.table(path).update(updates, new_values, predicate)

    def merge(
        self,
        path: PathLike,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        truncate_nanoseconds: bool = False,
    ) -> TableMerger:
        """A MERGE of an Arrow source into a table: add clauses, then `.execute()`. Arguments as for DeltaTable.merge."""
        table = self.table(path)
        return table.merge(source, predicate, source_alias, target_alias, truncate_nanoseconds=truncate_nanoseconds)

    # ------------------------------------------------------------ inside

    def _tables_text(self) -> str:
        """The tables of the transaction, for messages; the ledger's URL if there are none yet."""
        return ", ".join(path for paths in self._paths.values() for path in paths) or self._coordinator

    def _store(self, path: PathLike) -> ObjectStore:
        """The table's store, opened as a part of the transaction."""
        return open_store(path, StorageOptions.of(self.storage_options(path)))

    def _store_outside_transaction(self, place: str) -> ObjectStore:
        """The table's store, opened with the coordinator but outside of the transaction."""
        path = self._paths[place][0]
        return open_store(path, StorageOptions.of({**self._options_for_path(path), "coordinator": self._coordinator}))

    def _describe_for_commit(self, place: str, begun: OpenTransaction, held_reads: Sequence[bytes]) -> GroupTable | None:
        """What the commit has to know about a table, with all its reads as one; None for a table that the ledger does not
        coordinate: its writers are not checked for conflicts. held_reads: the reads of statements that changed nothing, as JSON
        from the ledger."""
        # The version of the table when the transaction began. A moment is a number of the ledger for one state of all its tables.
        base = open_ledger(self._coordinator).version_at(place, begun.moment)
        if base is None:
            return None
        store = self._store_outside_transaction(place)
        reads = [transaction.reads for transaction in self._reads.get(place, [])] if self._is_serializable else []
        if held_reads:
            config = Snapshot.load(store, version=base).config
            reads += [reads_from_json(reads_json, store, config) for reads_json in held_reads]
        ids = frozenset(self._read_ids.get(place, ())) if self._is_serializable else frozenset[str]()
        return GroupTable(store, base, _join_reads(reads), self._is_serializable, ids)


def _join_reads(reads: list[ReadSet]) -> ReadSet | None:
    """All reads of one table as one; None if there are none."""
    if not reads:
        return None
    return ReadSet(
        tuple(predicate for read_set in reads for predicate in read_set.predicates),
        combine_matches([read_set.may_match for read_set in reads if read_set.may_match is not None]),
        frozenset().union(*(read_set.paths for read_set in reads)),
        all_rows=any(read_set.all_rows for read_set in reads),
        partitions=tuple(partitions for read_set in reads for partitions in read_set.partitions),
    )


# ---------------------------------------------------------------- one call


@dataclass(frozen=True, slots=True)
class Step:
    """One step of `transact`, from append, delete, update or check. run: does the step in a transaction."""

    path: str
    run: Callable[[DeltaTransaction], None]


def append(path: str, data: Any, *, truncate_nanoseconds: bool = False) -> Step:
    """A step that appends rows. data, truncate_nanoseconds: as write_delta takes them. The rows are read into memory now: a
    stream returns its rows only once, and `transact` may run the step several times. Raises as write_delta."""
    rows = arrow_stream(data).read_all()
    return Step(path, lambda tx: tx.append(path, rows, truncate_nanoseconds=truncate_nanoseconds))


def delete(path: str, predicate: str | None = None) -> Step:
    """A step that deletes the rows for which the predicate (SQL) is true; None: all."""

    def run(tx: DeltaTransaction) -> None:
        tx.delete(path, predicate)

    return Step(path, run)


def update(path: str, updates: Mapping[str, str], predicate: str | None = None) -> Step:
    """A step that sets columns in the rows for which the predicate (SQL) is true; None: all. updates: SQL by column."""

    def run(tx: DeltaTransaction) -> None:
        tx.update(path, updates, predicate=predicate)

    return Step(path, run)


def check(path: str, predicate: str, *, rows: int | None = None) -> Step:
    """A step that checks that there are rows for which the predicate (SQL) is true: exactly `rows`, or at least one if it is
    None. Other writers must not change these rows before the commit. The step raises CheckFailedError."""

    def run(tx: DeltaTransaction) -> None:
        row_count = tx.read(path, columns=[], filter=predicate).num_rows
        # Exactly `rows` rows, or at least one if `rows` is None.
        if row_count != rows if rows is not None else not row_count:
            expected = "at least one" if rows is None else str(rows)
            raise CheckFailedError(
                f"{row_count} rows of the table at {path} match {predicate}, and {expected} should. Nothing was committed.",
                path=path,
                rows=row_count,
            )

    return Step(path, run)


class CheckFailedError(DeltaError, error_class="DELTA_MULTI_TABLE_TRANSACTION_ABORTED", sql_state="40000"):
    """A check of `transact` did not hold; nothing was committed."""


def transact(
    coordinator: str,
    steps: Sequence[Step],
    *,
    token: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    attempts: int = 20,
) -> bool:
    """Run all steps, in order, as one transaction, or none of them. Returns whether this call did it.

    token: identifies a call that may be repeated within 24 hours: returns False if an earlier call with it was carried out, and
    does nothing again. attempts: how often to start again if other writers conflict. Raises CheckFailedError, and the
    DeltaConcurrentModificationException of the last attempt.
    """
    for attempt in range(attempts):
        if token is not None and open_ledger(coordinator).moment_of(token) is not None:
            return False
        tx = DeltaTransaction(coordinator, storage_options=storage_options)
        try:
            with tx:
                for step in steps:
                    step.run(tx)
                tx.commit(token=token)
        except TokenUsedError:
            return False
        except DeltaConcurrentModificationException:
            if attempt == attempts - 1:
                raise
        else:
            return True
    raise AssertionError("the last attempt returns or raises")
