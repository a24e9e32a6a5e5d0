"""A prepared commit, the commits that came before it after all, and whether it may follow them.

    later = rebase(ours, winners)      # the commit for the next free version, or a conflict

A commit is prepared once, against the version that was read; what depends on the version that it gets (in-commit
timestamp, row ids, row commit versions) is worked out when its actions are asked for. Nothing is read or written here.
Protocol: Row Tracking; In-Commit Timestamps; Domain Metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from delta_py.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    DeltaConcurrentModificationException,
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
    parse_action,
)

ROW_TRACKING_DOMAIN = "delta.rowTracking"
NEW_TABLE = -1


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit that is ready but for its version.

    version: the one to try next. read_version: NEW_TABLE when the commit creates the table.
    commit_info: without its times. is_blind_append: it only adds files and depends on nothing that was read.
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
    is_blind_append: bool = False
    in_commit_timestamps: bool = False
    previous_timestamp_ms: int | None = None
    row_id_high_water_mark: int | None = None

    def actions(self, now_ms: int) -> list[Action]:
        """The actions of the commit at its present version; commitInfo first.
        Protocol: Writer Requirements for In-Commit Timestamps; Writer Requirements for Row Tracking."""
        adds, domains = self._with_row_ids()
        settled = (action for action in (self.protocol, self.metadata) if action is not None)
        return [self._commit_info(now_ms), *settled, *domains, *self.removes, *adds, *self.cdc]

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
    """A commit of another writer (or our own, when its confirmation was lost) after the version that was read."""

    version: int
    txn_id: str | None
    operation: str
    protocol: Protocol | None
    metadata: Metadata | None
    row_tracking: DomainMetadata | None
    timestamp_ms: int | None

    @classmethod
    def parse(cls, version: int, data: bytes) -> WinningCommit:
        """The content of a commit file. Raises CorruptTableError when it breaks the protocol."""
        actions = [action for line in data.split(b"\n") if line.strip() for action in [parse_action(line)]]
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))
        domains = {action.domain: action for action in actions if isinstance(action, DomainMetadata)}
        return cls(
            version=version,
            txn_id=info.txn_id,
            operation=str(info.values.get("operation") or "an unnamed operation"),
            protocol=next((action for action in actions if isinstance(action, Protocol)), None),
            metadata=next((action for action in actions if isinstance(action, Metadata)), None),
            row_tracking=domains.get(ROW_TRACKING_DOMAIN),
            timestamp_ms=info.in_commit_timestamp_ms,
        )


def rebase(ours: PreparedCommit, winners: Sequence[WinningCommit]) -> PreparedCommit:
    """Our commit for the version after the winners'.

    winners: the commits from ours.version on, in order, at least one, none of them ours.
    Raises ProtocolChangedException (also when both created the table), MetadataChangedException, and
    ConcurrentWriteException for a commit that read something: nothing of ours is committed then.
    """
    assert winners and winners[0].version == ours.version
    for winner in winners:
        _check(ours, winner)
    marks = [row_id_high_water_mark(winner.row_tracking) for winner in winners if winner.row_tracking is not None]
    times = [winner.timestamp_ms for winner in winners if winner.timestamp_ms is not None]
    return replace(
        ours,
        version=winners[-1].version + 1,
        previous_timestamp_ms=times[-1] if times else ours.previous_timestamp_ms,
        row_id_high_water_mark=marks[-1] if marks and ours.row_id_high_water_mark is not None else ours.row_id_high_water_mark,
    )


def _check(ours: PreparedCommit, winner: WinningCommit) -> None:
    if ours.read_version == NEW_TABLE:
        raise _conflict(
            ProtocolChangedException,
            winner,
            "created the table that this one was to create",
            "Append to it, or choose another path.",
        )
    if winner.protocol is not None:
        raise _conflict(ProtocolChangedException, winner, "changed the table's protocol", "Run the operation again.")
    if winner.metadata is not None:
        raise _conflict(MetadataChangedException, winner, "changed the table's metadata", "Run the operation again.")
    if not ours.is_blind_append:
        raise _conflict(
            ConcurrentWriteException, winner, "changed the table after this one had read it", "Run the operation again."
        )


def _conflict(
    kind: type[DeltaConcurrentModificationException], winner: WinningCommit, what: str, remedy: str
) -> DeltaConcurrentModificationException:
    return kind(
        f"Transaction conflict detected: another writer's commit {winner.version} ({winner.operation}) {what}. "
        f"Nothing of this operation was committed. {remedy}",
        version=winner.version,
        operation=winner.operation,
    )
