"""A prepared commit, the commits that came before it after all, and whether it may follow them.

    later = rebase(ours, winners)      # the commit for the next free version, or a conflict

A commit is prepared once, against the version that was read; what depends on the version that it gets (in-commit
timestamp, row ids, row commit versions) is worked out when its actions are asked for. Nothing is read or written here.

What conflicts, for a winner's commit and ours:

    winner did                          conflicts when
    change the protocol, create         always
    change the metadata                 always
    record a transaction id             ours read or records the same application id
    set a metadata domain               ours sets it too (row tracking's is merged)
    add files                           ours read rows that one of them may hold, and the isolation level asks for it
    remove files                        ours read or removes one of them

Isolation: Serializable counts all added files; WriteSerializable leaves out those of blind appends, unless ours changes the
metadata; SnapshotIsolation counts none. A file may hold a row unless its partition values or statistics exclude it.
Protocol: Row Tracking; In-Commit Timestamps; Domain Metadata; Transaction Identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

import orjson

from delta_py.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CorruptTableError,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta_py.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    parse_action,
)

ROW_TRACKING_DOMAIN = "delta.rowTracking"
NEW_TABLE = -1


class IsolationLevel(Enum):
    """The values are the names that table properties and commits use."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"

    @classmethod
    def parse(cls, text: str) -> IsolationLevel:
        """Raises InvalidOptionError for a name that is none of the three, in any case of letters."""
        for level in cls:
            if level.value.lower() == text.lower():
                return level
        raise InvalidOptionError(
            f"There is no isolation level {text!r}. Use {', '.join(level.value for level in cls)}.",
            error_class="DELTA_INVALID_ISOLATION_LEVEL",
            sql_state="25000",
            level=text,
        )


MayMatch: TypeAlias = Callable[[Sequence[AddFile]], Sequence[bool]]


def _all_match(adds: Sequence[AddFile]) -> Sequence[bool]:
    return [True] * len(adds)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a commit depends on.

    predicates: SQL of the rows that were read, for messages. may_match: for added files, whether each may hold such a row;
    None when no rows were read. paths: data files that were read. app_ids: transaction ids that were looked up.
    """

    predicates: tuple[str, ...] = ()
    may_match: MayMatch | None = None
    paths: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()

    @classmethod
    def whole_table(cls, paths: frozenset[str]) -> ReadSet:
        return cls(("true",), _all_match, paths)

    @property
    def is_empty(self) -> bool:
        """Whether the commit depends on no rows and no files."""
        return self.may_match is None and not self.paths


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit that is ready but for its version.

    version: the one to try next. read_version: NEW_TABLE when the commit creates the table.
    commit_info: without its times. reads: what it depends on.
    in_commit_timestamps: the table has them; previous_timestamp_ms is that of version - 1, None for a new table.
    row_id_high_water_mark: the highest row id given out up to version - 1 (-1 for none); None when the table has no row
    tracking.
    """

    version: int
    read_version: int
    txn_id: str
    commit_info: Mapping[str, Any]
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    cdc: tuple[AddCDCFile, ...] = ()
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads: ReadSet = field(default_factory=ReadSet)
    isolation: IsolationLevel = IsolationLevel.SERIALIZABLE
    in_commit_timestamps: bool = False
    previous_timestamp_ms: int | None = None
    row_id_high_water_mark: int | None = None

    @property
    def is_blind_append(self) -> bool:
        """It only adds files and depends on nothing that was read."""
        return not self.removes and not self.cdc and self.reads.is_empty

    def actions(self, now_ms: int) -> list[Action]:
        """The actions of the commit at its present version; commitInfo first.
        Protocol: Writer Requirements for In-Commit Timestamps; Writer Requirements for Row Tracking."""
        adds, row_tracking = self._with_row_ids()
        settled = (action for action in (self.protocol, self.metadata) if action is not None)
        domains = (*self.domains, *row_tracking)
        return [self._commit_info(now_ms), *settled, *domains, *self.transactions, *self.removes, *adds, *self.cdc]

    def _commit_info(self, now_ms: int) -> CommitInfo:
        times = {"timestamp": now_ms}
        if self.in_commit_timestamps:
            previous = self.previous_timestamp_ms
            times = {"inCommitTimestamp": now_ms if previous is None else max(now_ms, previous + 1), **times}
        return CommitInfo({**times, **self.commit_info, "txnId": self.txn_id})

    def _with_row_ids(self) -> tuple[Iterable[AddFile], tuple[DomainMetadata, ...]]:
        mark = self.row_id_high_water_mark
        if mark is None or not self.adds:
            return self.adds, ()
        adds = []
        for add in self.adds:
            if add.base_row_id is None:
                row_count = num_records(add)
                assert row_count is not None, "Transaction.commit lets no add pass without numRecords"
                add = replace(add, base_row_id=mark + 1, default_row_commit_version=self.version)
                mark += row_count
            adds.append(add)
        if mark == self.row_id_high_water_mark:
            return adds, ()
        text = orjson.dumps({"rowIdHighWaterMark": mark}).decode()
        return adds, (DomainMetadata(ROW_TRACKING_DOMAIN, text),)


def num_records(add: AddFile) -> int | None:
    """The row count that the file's statistics state; None if they do not.
    Protocol: Per-file Statistics."""
    try:
        value = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return value if isinstance(value, int) and value >= 0 else None


def row_id_high_water_mark(domain: DomainMetadata | None) -> int:
    """The mark that the row tracking domain states; -1 before any row id was given out."""
    if domain is None or domain.removed:
        return -1
    try:
        return int(orjson.loads(domain.configuration)["rowIdHighWaterMark"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(
            f"The domain {ROW_TRACKING_DOMAIN} holds {domain.configuration!r}, which is no high water mark. The log is damaged."
        ) from error


# ---------------------------------------------------------------- the commits that won


@dataclass(frozen=True, slots=True)
class WinningCommit:
    """A commit of another writer (or our own, when its confirmation was lost) after the version that was read.

    is_blind_append: as its writer says; False where it does not say.
    """

    version: int
    txn_id: str | None
    operation: str
    is_blind_append: bool = False
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    app_ids: frozenset[str] = frozenset()
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, version: int, data: bytes) -> WinningCommit:
        """The content of a commit file. Raises CorruptTableError when it breaks the protocol."""
        actions = [action for line in data.split(b"\n") if line.strip() for action in [parse_action(line)]]
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))
        removes = tuple(action for action in actions if isinstance(action, RemoveFile))
        return cls(
            version=version,
            txn_id=info.txn_id,
            operation=str(info.values.get("operation") or "an unnamed operation"),
            is_blind_append=info.values.get("isBlindAppend") is True and not removes,
            protocol=next((action for action in actions if isinstance(action, Protocol)), None),
            metadata=next((action for action in actions if isinstance(action, Metadata)), None),
            adds=tuple(action for action in actions if isinstance(action, AddFile)),
            removes=removes,
            app_ids=frozenset(action.app_id for action in actions if isinstance(action, SetTransaction)),
            domains={action.domain: action for action in actions if isinstance(action, DomainMetadata)},
            timestamp_ms=info.in_commit_timestamp_ms,
        )


def rebase(ours: PreparedCommit, winners: Sequence[WinningCommit]) -> PreparedCommit:
    """Our commit for the version after the winners'.

    winners: the commits from ours.version on, in order, at least one, none of them ours.
    Raises the conflict of the first winner that has one, a DeltaConcurrentModificationException: nothing of ours is
    committed then.
    """
    assert winners and winners[0].version == ours.version
    for winner in winners:
        _check(ours, winner)
    tracking = [winner.domains[ROW_TRACKING_DOMAIN] for winner in winners if ROW_TRACKING_DOMAIN in winner.domains]
    marks = [row_id_high_water_mark(domain) for domain in tracking]
    times = [winner.timestamp_ms for winner in winners if winner.timestamp_ms is not None]
    return replace(
        ours,
        version=winners[-1].version + 1,
        previous_timestamp_ms=times[-1] if times else ours.previous_timestamp_ms,
        row_id_high_water_mark=marks[-1] if marks and ours.row_id_high_water_mark is not None else ours.row_id_high_water_mark,
    )


def _check(ours: PreparedCommit, winner: WinningCommit) -> None:
    _check_table(ours, winner)
    _check_names(ours, winner)
    _check_removed(ours, winner)
    _check_added(ours, winner)


def _check_table(ours: PreparedCommit, winner: WinningCommit) -> None:
    if ours.read_version == NEW_TABLE:
        raise _conflict(
            ProtocolChangedException,
            ours,
            winner,
            "created the table that this one was to create",
            "Append to it, or choose another path.",
        )
    if winner.protocol is not None:
        raise _conflict(ProtocolChangedException, ours, winner, "changed the table's protocol")
    if winner.metadata is not None:
        raise _conflict(MetadataChangedException, ours, winner, "changed the table's metadata")


def _check_names(ours: PreparedCommit, winner: WinningCommit) -> None:
    shared = winner.app_ids & (ours.reads.app_ids | {transaction.app_id for transaction in ours.transactions})
    if shared:
        what = f"recorded a transaction of the application {sorted(shared)[0]}, as this one does"
        raise _conflict(
            ConcurrentTransactionException, ours, winner, what, "See to it that one stream or job at a time writes under that id."
        )
    domains = {domain.domain for domain in ours.domains} & winner.domains.keys()
    if domains:
        raise _conflict(
            ConcurrentWriteException,
            ours,
            winner,
            f"set the metadata domain {sorted(domains)[0]}, as this one does",
            error_class="DELTA_CONCURRENT_DOMAIN_METADATA",
        )


def _check_removed(ours: PreparedCommit, winner: WinningCommit) -> None:
    if not winner.removes:
        return
    removed = {remove.path for remove in winner.removes}
    both = removed & {remove.path for remove in ours.removes}
    if both:
        raise _conflict(
            ConcurrentDeleteDeleteException, ours, winner, f"removed {_files(both)}, which this one removes or changes too"
        )
    read = removed & ours.reads.paths
    if read:
        raise _conflict(ConcurrentDeleteReadException, ours, winner, f"removed {_files(read)}, which this one has read")


def _check_added(ours: PreparedCommit, winner: WinningCommit) -> None:
    """Files that were only arranged anew hold no new rows; what they replace is a matter of _check_removed."""
    if ours.reads.may_match is None or ours.isolation is IsolationLevel.SNAPSHOT_ISOLATION:
        return
    blind_counts = ours.isolation is IsolationLevel.SERIALIZABLE or ours.metadata is not None
    if winner.is_blind_append and not blind_counts:
        return
    adds = [add for add in winner.adds if add.data_change]
    found = [add for add, matches in zip(adds, ours.reads.may_match(adds), strict=True) if matches]
    if not found:
        return
    enough = (
        IsolationLevel.WRITE_SERIALIZABLE
        if winner.is_blind_append and ours.metadata is None
        else IsolationLevel.SNAPSHOT_ISOLATION
    )
    where = ", ".join(f"{name}={value}" for name, value in found[0].partition_values.items())
    raise _conflict(
        ConcurrentAppendException,
        ours,
        winner,
        f"added {_files({add.path for add in found})}{f' to partition [{where}]' if where else ''}, which may hold rows that "
        f"this one had to read: {' or '.join(ours.reads.predicates)}",
        f"Run the operation again. Isolation level {enough.value} would have let it pass ({ours.isolation.value} is in force).",
    )


def _files(paths: Iterable[str]) -> str:
    first, *others = sorted(paths)
    return f"{first} and {len(others)} more files" if others else f"the file {first}"


def _conflict(
    kind: type[DeltaConcurrentModificationException],
    ours: PreparedCommit,
    winner: WinningCommit,
    what: str,
    remedy: str = "Run the operation again.",
    error_class: str | None = None,
) -> DeltaConcurrentModificationException:
    operation = ours.commit_info.get("operation", "this operation")
    return kind(
        f"Transaction conflict detected: another writer's commit {winner.version} ({winner.operation}) {what}. "
        f"Nothing of this operation ({operation}, which read version {ours.read_version}) was committed. {remedy}",
        error_class=error_class,
        version=winner.version,
        operation=winner.operation,
        isolation_level=ours.isolation.value,
        predicates=list(ours.reads.predicates),
    )
