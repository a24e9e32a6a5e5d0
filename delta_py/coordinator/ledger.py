"""Ledger: the database that says which staged commits are versions of which tables, and in which order across all tables.

    ledger = open_ledger("sqlite:///data/ledger.db")
    ledger.tail("/data/t")                        # Tail(version=9, commits=(8, 9)): two are not published yet
    ledger.ratify([Ratified("/data/t", 10, name, size, time_ms)])       # all of them or none

A table is identified by the place of its root (`place_of`). Commits that are ratified together share a moment, a number that
grows. A table's version at a moment is the newest that was ratified up to then, so one moment is one state of all tables.
Protocol: Catalog Responsibilities; Commit Protocol; Getting Ratified Commits from the Catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from delta_py.errors import (
    CorruptTableError,
    DeltaConcurrentModificationException,
    DeltaError,
    UnsupportedOperationError,
    shown,
)

COMMITTED_RETENTION_MS = 24 * 3600 * 1000
"""The minimum time for which a ledger remembers a committed transaction after the end of the transaction's time."""

TOKEN_RETENTION_MS = 24 * 3600 * 1000
"""How long a ledger remembers the token of a call that may be repeated."""

RETAINED_VERSIONS = 10_000
"""How many commits of a table a ledger retains before the table's newest published version."""

RETAINED_MOMENTS = 100_000
"""How many moments a ledger retains with their times."""

_STAGED_NAME = re.compile(r"[0-9]{20}\.[0-9A-Za-z-]{1,100}\.json")


def staged_version(name: str) -> int | None:
    """The version of a staged commit, from its file name in `_delta_log/_staged_commits`; None if the name is not that of a
    staged commit."""
    return int(name.partition(".")[0]) if _STAGED_NAME.fullmatch(name) is not None else None


def _is_staged_name(value: Any) -> bool:
    return isinstance(value, str) and staged_version(value) is not None


def _is_count(value: Any) -> bool:
    """Whether the value is a whole number from 0 to 2^63 - 1, as versions, sizes and times are."""
    return type(value) is int and 0 <= value < 2**63


@dataclass(frozen=True, slots=True)
class Ratified:
    """A staged commit that is, or will be, a version of a table. name: of the file in `_delta_log/_staged_commits`. time_ms: when
    it was staged, ms since 1970. content: of the file, for a commit that is not ratified yet; else None. Raises CorruptTableError
    for a name that is not that of a staged commit of that version, and for numbers that no commit can have."""

    table: str
    version: int
    name: str
    size_bytes: int
    time_ms: int
    content: bytes | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The file with this name is read and deleted, and anybody may have written the ledger.
        if not _is_staged_name(self.name):
            what = f"The ledger names {shown(self.name)} for {self.table}"
            raise CorruptTableError(f"{what}, which is the name of no staged commit.")
        numbers = (self.version, self.size_bytes, self.time_ms)
        if not all(map(_is_count, numbers)) or staged_version(self.name) != self.version:
            what = f"The ledger gives {self.name} of {self.table} the version, size and time {shown(numbers)}"
            raise CorruptTableError(f"{what}, which no commit of that name has.")


@dataclass(frozen=True, slots=True)
class Tail:
    """A table's newest version, and its ratified commits that may not be published yet: ascending, without gaps, up to the newest
    version; empty if all are published. table_id: of the table's metadata. base: in a transaction, the version that the table had
    when the transaction began; the transaction's own commits follow it. Raises CorruptTableError for versions that break these
    rules."""

    version: int
    commits: tuple[Ratified, ...] = ()
    table_id: str = ""
    base: int | None = None

    def __post_init__(self) -> None:
        versions = [commit.version for commit in self.commits]
        if not _is_count(self.version) or versions != list(range(self.version + 1 - len(versions), self.version + 1)):
            what = f"The ledger says that {shown(self.version)} is the newest version of a table"
            raise CorruptTableError(f"{what}, whose newest commits are {shown(versions)}. It is damaged, or was edited by hand.")


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction over tables. identity: its id. moment: the newest moment when the transaction began; it reads all
    tables as they were then."""

    identity: str
    moment: int


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """A commit that a transaction has staged, and that is ratified when the transaction ends successfully. described: what the
    commit depends on, and its content without the version, as JSON."""

    commit: Ratified
    described: bytes


@dataclass(frozen=True, slots=True)
class Inventory:
    """The identity of the ledger, read from the database, and the places of all tables that it knows."""

    identity: str
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """A table to register in a ledger that replaces a lost one. table: the table's place. published: its newest version with a
    published commit in the log. commits: the ratified commits after that version: ascending, without gaps."""

    table: str
    table_id: str
    published: int
    commits: tuple[Ratified, ...] = ()


class TransactionEndedError(
    DeltaConcurrentModificationException, error_class="DELTA_MULTI_TABLE_TRANSACTION_ABORTED", sql_state="40000"
):
    """The transaction was committed, aborted, or given up because its time was over."""


class VersionTakenError(DeltaConcurrentModificationException):
    """The table already has another commit of that version, or the table is not at the expected version; nothing was ratified.
    message_parameters: table, version (the newest)."""


class TokenUsedError(DeltaConcurrentModificationException):
    """A call with this token was already carried out. message_parameters: moment."""


class CoordinatorUnavailableError(DeltaError, OSError, error_class="DELTA_COORDINATOR_UNAVAILABLE", sql_state="08001"):
    """The ledger's database did not answer. Whether something was ratified is unknown; a later call to the ledger shows it."""


class CoordinatorContendedError(
    DeltaConcurrentModificationException, error_class="DELTA_COORDINATOR_CONTENDED", sql_state="40001"
):
    """Other writers changed the ledger's shared state at every attempt to ratify, until the ledger gave up. Nothing was ratified,
    and this call will not ratify anything later."""


class RatificationRefusedError(DeltaError, error_class="DELTA_COORDINATOR_REFUSED", sql_state="42501"):
    """The ledger did not ratify the commit, and never will."""


class TooManyUnpublishedError(RatificationRefusedError, error_class="DELTA_COORDINATOR_UNPUBLISHED_LIMIT", sql_state="54000"):
    """The catalog ratifies no more commits of the table before some are published. Nothing was ratified."""


class RatificationUnknownError(DeltaError, error_class="DELTA_COORDINATOR_RATIFICATION_UNKNOWN", sql_state="55000"):
    """A ledger does not know a table that has staged commits, and only the ledger could say whether they were ratified. Nothing
    was decided. message_parameters: commits (names of the files, by the table's path)."""


class Ledger(Protocol):
    """Many threads and processes may call it. Every method raises CoordinatorUnavailableError."""

    @property
    def identity(self) -> str:
        """The ledger's identity, the same for every URL that leads to it: tables name the ledger that coordinates them."""

    @property
    def shown(self) -> str:
        """The ledger's URL without secrets, for messages."""

    def register(self, table: str, version: int, table_id: str) -> None:
        """Begin to coordinate a table whose versions up to this one are published; does nothing if the table is known. Raises
        UnsupportedOperationError if another table is known at the place, or the table at another place."""

    def forget(self, table: str, version: int | None = None) -> bool:
        """Stop coordinating a table. Returns whether the table is unknown now. version: forget the table only if this is its
        newest version, and all its commits are published."""

    def inventory(self) -> Inventory:
        """Read which tables the ledger knows, and its identity in the database. From then on `identity` returns this identity,
        also if the database was created again since it was opened."""

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        """Become the ledger of that identity, which was lost, and register these tables, all of them or none. Moments start from
        the beginning, and no token is known. Raises UnsupportedOperationError if the ledger knows tables under another identity,
        or one of these tables under another place or id; VersionTakenError for a table that it already knows."""

    def tail(self, table: str) -> Tail | None:
        """The table's newest version, and its commits that may not be published; None if the table is not known."""

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        """Make all commits versions of their tables, or none; returns the moment.

        commits: for each table the versions after its newest, in order. expected: newest versions of other tables, which must
        still be the newest. transaction: ends with this call. token: identifies the call, so that its moment can be found later.
        Raises VersionTakenError, TransactionEndedError, CoordinatorContendedError, and TokenUsedError for a token that another
        call has used.
        """

    def turn(self, tables: Iterable[str]) -> AbstractContextManager[None]:
        """For a block that ratifies commits to the tables: other writers of these tables wait in the meantime, if the ledger can
        make them wait, for at most a few seconds. This only avoids lost races (turns.py): it raises nothing, and nothing depends
        on it."""

    def acknowledge(self, table: str, version: int) -> None:
        """Record that all commits up to this version are published."""

    def moment(self, time_ms: int | None = None) -> int | None:
        """The newest moment, or the newest up to a time (ms since 1970); None if the ledger does not reach back that far."""

    def version_at(self, table: str, moment: int) -> int | None:
        """The table's version at a moment; None if the table is not known or the ledger does not reach back that far."""

    # ------------------------------------------------------------ transactions over tables

    def begin(self, seconds: float) -> OpenTransaction:
        """Begin a transaction that is given up if it has not ended after this time. This also gives up other
        transactions whose time is over. Committed transactions are remembered for COMMITTED_RETENTION_MS after their time."""

    def find(self, transaction: str) -> OpenTransaction:
        """An open transaction. Raises TransactionEndedError."""

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        """The table as the transaction sees it: its state when the transaction began, followed by the commits that the
        transaction has proposed. None if the table is not known. Raises TransactionEndedError, also if the ledger does not reach
        back that far."""

    def propose(self, transaction: str, proposed: ProposedCommit) -> None:
        """Add a commit to the transaction. Raises VersionTakenError if the transaction already has a commit of that version,
        TransactionEndedError."""

    def proposed(self, transaction: str, table: str | None = None) -> list[ProposedCommit]:
        """The transaction's commits, of one table or of all, sorted by table and version."""

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        """Store reads of a table that belong to no commit of the transaction. reads: JSON. Raises TransactionEndedError."""

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        """All stored reads, by table, in any order; empty if the transaction has ended."""

    def state_of(self, transaction: str) -> str | None:
        """`open`, `committed` or `aborted`; None if the ledger no longer knows the transaction. Then it may have ended either
        way."""

    def abort(self, transaction: str) -> list[ProposedCommit]:
        """End the transaction without ratifying anything, even if its time is over. Returns its proposed commits, whose files the
        caller can delete: from then on, none of them can be ratified. A transaction that has already ended is not changed, and
        the result is empty."""

    def moment_of(self, token: str) -> int | None:
        """The moment of the `ratify` call that used a token; None if no call has used it, or if that was long ago."""


def version_taken_error(table: str, version: int, newest: int | None) -> VersionTakenError:
    """The error for a version that is not the next one. newest: the table's newest version; None if the table is not known."""
    have = "the coordinator does not know the table" if newest is None else f"its newest version is {newest}"
    return VersionTakenError(
        f"Version {version} of the table at {table} was not ratified: {have}. Nothing of this operation was committed. "
        "Run it again.",
        table=table,
        version=newest,
    )


def contended_error(ledger: str, seconds: float) -> CoordinatorContendedError:
    """The error for a call that lost every race for the ledger's items. ledger: its URL without secrets."""
    return CoordinatorContendedError(
        f"The coordinator {ledger} could not ratify commits for {seconds:.0f} s, because others changed the same items. "
        "Nothing was ratified. Run the operation again when fewer writers are at work, or use a coordinator in PostgreSQL.",
        coordinator=ledger,
    )


def unavailable_error(ledger: str, error: Any) -> CoordinatorUnavailableError:
    """The error for a database that gave no answer. ledger: its URL without secrets. error: the reason, an exception or a
    text."""
    reason = " ".join(str(error).split()).rstrip(".")  # databases put line breaks into messages
    return CoordinatorUnavailableError(
        f"The coordinator {ledger} gave no answer: {reason}. Make sure that its database can be reached, and written by "
        "readers too, then run the operation again.",
        coordinator=ledger,
    )


def ended_error(transaction: str, state: str | None) -> TransactionEndedError:
    """The error for a transaction that is not open any more. state: `committed` or `aborted`; None if it is not known."""
    what = "is not known: its time was over, and it was given up" if state is None else f"was {state} already"
    return TransactionEndedError(
        f"The transaction {transaction} {what}. Nothing of this operation was committed. Begin a new one.",
        transaction=transaction,
    )


def not_remembered_error(ledger: str, table: str, transaction: str) -> TransactionEndedError:
    """The error for a table whose version at the begin of a transaction the ledger does not know."""
    return TransactionEndedError(
        f"The coordinator {ledger} does not know which version the table at {table} had when the transaction {transaction} "
        "began: the table came later, or that is long ago. Nothing was read or written. Begin a new one.",
        transaction=transaction,
        table=table,
    )


def another_ledger_error(ledger: str, present: str, expected: str) -> UnsupportedOperationError:
    """The error for a database that has another identity than expected."""
    return UnsupportedOperationError(
        f"The database {ledger} is the ledger {present}, and not {expected}. Nothing was read or written. Restart the process "
        "if the database was created again in the meantime; to rebuild a ledger, name an empty database.",
        identity=present,
    )


def forget_call(place: str) -> str:
    """The call with which a ledger forgets the table at a place, for messages."""
    return f"delta_py.coordinator.open_coordinator.open_ledger(url).forget({place!r})"


def known_at_other_place_error(ledger: str, table: str, place: str) -> UnsupportedOperationError:
    """The error for a table at the place `table` whose id the ledger knows at another place. If both places are equal, the ledger
    knows another id there."""
    what = f"knows it as {place}" if place != table else "knows another table at that place, which was deleted"
    return UnsupportedOperationError(
        f"The table at {table} cannot be used through the coordinator {ledger}, which {what}. Nothing was read or written. Use "
        "the table by the path that it knows; or, if that is not in use any more, have it forget the place "
        f"({forget_call(place)}), which gives up commits that are not published.",
        place=place,
    )
