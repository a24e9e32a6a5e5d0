"""Ledger: the database that says which staged commits are versions of which tables, and in which order over all tables.

    ledger = open_ledger("sqlite:///data/ledger.db")
    ledger.tail("/data/t")                        # Tail(version=9, commits=(8, 9)): two are not published yet
    ledger.ratify([Ratified("/data/t", 10, name, size, time_ms)])       # all of them or none

A table is known by the place of its root (`place_of`). What is ratified at once shares a moment, a number that grows; a table's
version at a moment is the newest that was ratified up to then, so one moment is one state of all tables.
Protocol: Catalog Responsibilities; Commit Protocol; Getting Ratified Commits from the Catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from delta_py.errors import (
    CorruptTableError,
    DeltaConcurrentModificationException,
    DeltaError,
    UnsupportedOperationError,
    shown,
)

KEPT_COMMITTED_MS = 24 * 3600 * 1000
"""How long a ledger knows a transaction that was committed, at least, behind the end of its time."""

_STAGED_NAME = re.compile(r"[0-9]{20}\.[0-9A-Za-z-]{1,100}\.json")


def staged_version(name: str) -> int | None:
    """The version that a file in `_delta_log/_staged_commits` is to be; None for a name that is none of a staged commit."""
    return int(name.partition(".")[0]) if _STAGED_NAME.fullmatch(name) is not None else None


def _is_staged_name(value: Any) -> bool:
    return isinstance(value, str) and staged_version(value) is not None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


@dataclass(frozen=True, slots=True)
class Ratified:
    """A staged commit that is, or is to be, a version of a table. name: of the file in `_delta_log/_staged_commits`.
    time_ms: when it was staged, ms since 1970. Raises CorruptTableError for a name that is none of a staged commit of that
    version, and numbers that no commit has."""

    table: str
    version: int
    name: str
    size_bytes: int
    time_ms: int

    def __post_init__(self) -> None:
        # It is read and deleted: a ledger may have been written by anybody.
        if not _is_staged_name(self.name):
            what = f"The ledger names {shown(self.name)} for {self.table}"
            raise CorruptTableError(f"{what}, which is the name of no staged commit.")
        numbers = (self.version, self.size_bytes, self.time_ms)
        if not all(map(_is_count, numbers)) or staged_version(self.name) != self.version:
            what = f"The ledger says of {self.name} for {self.table} version, size and time {shown(numbers)}"
            raise CorruptTableError(f"{what}, which no commit of that name has.")


@dataclass(frozen=True, slots=True)
class Tail:
    """A table's newest version, and its ratified commits that may not be published yet: ascending, without gaps, to the newest
    version; none where all are published. table_id: of the table's metadata. base: in a transaction, the version that the table
    had when it began; own commits follow it. Raises CorruptTableError for versions that are not so."""

    version: int
    commits: tuple[Ratified, ...] = ()
    table_id: str = ""
    base: int | None = None

    def __post_init__(self) -> None:
        versions = [commit.version for commit in self.commits]
        if not _is_count(self.version) or versions != list(range(self.version + 1 - len(versions), self.version + 1)):
            what = f"The ledger says that {shown(self.version)} is the newest version of a table"
            raise CorruptTableError(f"{what}, whose newest commits are {shown(versions)}. It is damaged, or was written by hand.")


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction over tables that is under way. moment: the state of all tables that it reads."""

    identity: str
    moment: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """A staged commit of a transaction. described: what it depends on, and what it says whatever its version, as JSON."""

    commit: Ratified
    described: bytes


@dataclass(frozen=True, slots=True)
class Inventory:
    """Which ledger it is, by the database itself, and the places of all tables that it knows."""

    identity: str
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """A table of a ledger that was lost. published: its newest version that is at its place in the log. commits: the ratified
    ones behind that: ascending, without gaps."""

    table: str
    table_id: str
    published: int
    commits: tuple[Ratified, ...] = ()


class TransactionEndedError(DeltaConcurrentModificationException):
    """The transaction was committed, aborted, or given up because its time was over."""

    error_class = "DELTA_MULTI_TABLE_TRANSACTION_ABORTED"
    sql_state = "40000"


class VersionTakenError(DeltaConcurrentModificationException):
    """Another commit is that version of a table already, or the table is not at the version that was expected; nothing was
    ratified. message_parameters: table, version (the newest)."""


class TokenUsedError(DeltaConcurrentModificationException):
    """What the token stands for is done already. message_parameters: moment."""


class CoordinatorUnavailableError(DeltaError, OSError):
    """The ledger's database gave no answer. Whether something was ratified is not known; the ledger says it when asked again."""

    error_class = "DELTA_COORDINATOR_UNAVAILABLE"
    sql_state = "08001"


class CoordinatorContendedError(DeltaConcurrentModificationException):
    """Others changed what the ledger has for all tables whenever it was to ratify something, until it gave up. Nothing was
    ratified, nor will be by that call."""

    error_class = "DELTA_COORDINATOR_CONTENDED"
    sql_state = "40001"


class RatificationUnknownError(DeltaError):
    """A ledger does not know a table that has staged commits, of which the ledger alone could say whether they were ratified.
    Nothing was decided. message_parameters: commits (names of the files, by the table's path)."""

    error_class = "DELTA_COORDINATOR_RATIFICATION_UNKNOWN"
    sql_state = "55000"


class Ledger(Protocol):
    """May be called from many threads and processes. Every method raises CoordinatorUnavailableError."""

    @property
    def identity(self) -> str:
        """Which ledger it is, however it is reached: tables name the one that coordinates them."""

    @property
    def shown(self) -> str:
        """Its URL without secrets."""

    def register(self, table: str, version: int, table_id: str) -> None:
        """Begin to coordinate a table whose versions up to this one are published; nothing where the table is known. Raises
        UnsupportedOperationError where another table is known at the place, or the table at another place."""

    def forget(self, table: str, version: int | None = None) -> bool:
        """End it, and say whether the table is not known now. version: only if that is its newest, and all is published."""

    def inventory(self) -> Inventory:
        """Asks the database, also which ledger it is; `identity` says the same from then on."""

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        """Be the ledger of that identity, which was lost, and know these tables, all of them or none. Moments begin anew, and no
        token is known. Raises UnsupportedOperationError where it knows tables under another identity, or one of these otherwise;
        VersionTakenError for one that it knows already."""

    def tail(self, table: str) -> Tail | None:
        """None where the table is not known."""

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        """Make all of them versions of their tables, or none; returns the moment.

        commits: of each table the versions after its newest, in order. expected: newest versions of other tables, which must
        still hold. transaction: that ends with it. token: with which the moment is found again. Raises VersionTakenError,
        TransactionEndedError, CoordinatorContendedError, and TokenUsedError for a token that another call has used.
        """

    def turn(self, tables: Iterable[str]) -> AbstractContextManager[None]:
        """For a block that ratifies commits to the tables: others who do it meanwhile wait, where the ledger can have them wait,
        and no longer than a few seconds. A courtesy that spares lost races (turns.py): it raises nothing, and nothing depends
        on it."""

    def acknowledge(self, table: str, version: int) -> None:
        """All commits up to this version are published."""

    def moment(self, time_ms: int | None = None) -> int | None:
        """The newest moment, or the newest up to a time (ms since 1970); None where the ledger does not reach back so far."""

    def version_at(self, table: str, moment: int) -> int | None:
        """The table's version at a moment; None where the table is not known or the ledger does not reach back so far."""

    # ------------------------------------------------------------ transactions over tables

    def begin(self, seconds: float) -> Begun:
        """Begin a transaction that is given up when it has not ended so long after now. What others have left is given up too;
        those that were committed are known for KEPT_COMMITTED_MS behind their time."""

    def find(self, transaction: str) -> Begun:
        """A transaction that is under way. Raises TransactionEndedError."""

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        """A table as the transaction has it: as it was when that began, with the commits that it has proposed. None where the
        table is not known. Raises TransactionEndedError, also where the ledger does not reach back so far."""

    def propose(self, transaction: str, proposed: Proposed) -> None:
        """Add a commit to it. Raises VersionTakenError where the transaction has one of that version already,
        TransactionEndedError."""

    def proposed(self, transaction: str, table: str | None = None) -> list[Proposed]:
        """Its commits, of one table or of all, by table and version."""

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        """Keep what it has read of a table and no commit of its says. reads: JSON. Raises TransactionEndedError."""

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        """All that it was to keep, by table, in any order; nothing of one that has ended."""

    def state_of(self, transaction: str) -> str | None:
        """`open`, `committed` or `aborted`; None where it is not known any more, which says nothing of how it ended."""

    def abort(self, transaction: str) -> list[Proposed]:
        """End it without a trace, also where its time is over; returns what it had proposed. Nothing of it is ratified from then
        on. One that has ended stays as it is, and has proposed nothing."""

    def moment_of(self, token: str) -> int | None:
        """The moment of the call of `ratify` that has used a token; None where none has, or it was long ago."""


def taken(table: str, version: int, newest: int | None) -> VersionTakenError:
    have = "the coordinator does not know the table" if newest is None else f"its newest version is {newest}"
    return VersionTakenError(
        f"Version {version} of the table at {table} was not ratified: {have}. Nothing of this operation was committed. "
        "Run it again.",
        table=table,
        version=newest,
    )


def contended(ledger: str, seconds: float) -> CoordinatorContendedError:
    return CoordinatorContendedError(
        f"The coordinator {ledger} was asked to ratify commits for {seconds:.0f} s, and others changed its items each time. "
        "Nothing was ratified. Run the operation again when fewer writers are at work, or use a coordinator in PostgreSQL.",
        coordinator=ledger,
    )


def unavailable(ledger: str, error: Any) -> CoordinatorUnavailableError:
    told = " ".join(str(error).split()).rstrip(".")  # databases break lines
    return CoordinatorUnavailableError(
        f"The coordinator {ledger} gave no answer: {told}. See to it that its database can be reached, and written by "
        "readers too, then run the operation again.",
        coordinator=ledger,
    )


def ended(transaction: str, state: str | None) -> TransactionEndedError:
    what = "is not known: its time was over, and it was given up" if state is None else f"was {state} already"
    return TransactionEndedError(
        f"The transaction {transaction} {what}. Nothing of this operation was committed. Begin a new one.",
        transaction=transaction,
    )


def not_remembered(ledger: str, table: str, transaction: str) -> TransactionEndedError:
    return TransactionEndedError(
        f"The coordinator {ledger} does not know which version the table at {table} had when the transaction {transaction} "
        "began: the table came later, or that is long ago. Nothing was read or written. Begin a new one.",
        transaction=transaction,
        table=table,
    )


def another_ledger(ledger: str, present: str, wanted: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The database {ledger} is the ledger {present}, and not {wanted}. Nothing was read or written. Start the process anew "
        "if the database was made anew meanwhile; for a ledger that is to be rebuilt name an empty database.",
        identity=present,
    )


def to_forget(place: str) -> str:
    """The call, for messages, with which a ledger forgets the table at a place."""
    return f"delta_py.coordinator.open_coordinator.open_ledger(url).forget({place!r})"


def known_otherwise(ledger: str, table: str, place: str) -> UnsupportedOperationError:
    what = f"knows it as {place}" if place != table else "knows another table at that place, which was deleted"
    return UnsupportedOperationError(
        f"The table at {table} cannot be used through the coordinator {ledger}, which {what}. Nothing was read or written. Use "
        "the table by the path that it knows; or, if that is not in use any more, have it forget the place "
        f"({to_forget(place)}), which gives up commits that are not published.",
        place=place,
    )
