"""The end of a transaction over tables: its commits behind those that others made meanwhile, and all of them ratified at once.

    moment = commit_group(ledger, transaction, {place: GroupTable(store, reads)})

Each table's commits follow the winners by the same rules as any commit (conflicts.rebase), and tables that were only read are
held to what was read of them. Then one transaction of the ledger makes all of them versions, or none; it does so only if no table
has moved since it was looked at, and is tried again otherwise.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from delta_py.commit.attempts import winning_commit
from delta_py.commit.conflicts import rebase
from delta_py.commit.post_commit import run_post_commit
from delta_py.commit.prepared import ROW_TRACKING_DOMAIN, PreparedCommit, ReadSet, WinningCommit, row_id_high_water_mark
from delta_py.commit.proposed_form import from_json
from delta_py.commit.shared_rows import settle_shared
from delta_py.coordinator.ledger import Ledger, Proposed, Ratified, VersionTakenError
from delta_py.errors import CommitOutcomeUnknownError, ConcurrentWriteException, UnsupportedOperationError
from delta_py.log.coordination import named_group
from delta_py.log.writer import LogWriter, commit_bytes
from delta_py.protocol.actions import Action, CommitInfo, DomainMetadata
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.opening import coordination_of
from delta_py.storage.store import ObjectStore
from delta_py.threads import in_threads
from delta_py.write.files import delete_files

_log = logging.getLogger("delta_py")
_ATTEMPTS = 200
_THREADS, _NAME = 8, "delta_py-group"
_LONGEST_WAIT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A table of the transaction. store: without the transaction. base: its version when that began. reads: what was read of it
    and must still hold; None for nothing, or where only what is written counts."""

    store: ObjectStore
    base: int
    reads: ReadSet | None = None


@dataclass(slots=True)
class _Placed:
    """The commits of one table at the versions that they are to have."""

    store: ObjectStore
    coordinated: CoordinatedStore
    base: Snapshot
    follows_others: bool
    prepared: list[PreparedCommit] = field(default_factory=list)
    actions: list[list[Action]] = field(default_factory=list)
    new_paths: list[str] = field(default_factory=list)
    staged: list[Ratified] = field(default_factory=list)


def commit_group(
    ledger: Ledger, transaction: str, tables: Mapping[str, GroupTable], *, token: str | None = None
) -> dict[str, int]:
    """Make all that a transaction has proposed versions of their tables; returns the newest version of each table that it
    changed, by place.

    tables: by place, all that it has read or written. token: as in Ledger.ratify. Raises a DeltaConcurrentModificationException
    when another writer's commit forbids one of them, TransactionEndedError, TokenUsedError; nothing is committed then. Raises
    CoordinatorUnavailableError when the ledger does not say what became of it.
    """
    proposed = ledger.proposed(transaction)
    by_place: dict[str, list[Proposed]] = {}
    for one in proposed:
        by_place.setdefault(one.commit.table, []).append(one)
    if strange := by_place.keys() - tables.keys():
        raise UnsupportedOperationError(
            f"The transaction {transaction} has changed {', '.join(sorted(strange))}, and does not know by which path. Nothing "
            "was committed. Name tables by the methods of the transaction."
        )
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.002 * 2 ** min(attempt, 8))))
        placed: list[_Placed] = []
        try:
            expected = {place: _check_reads(table) for place, table in tables.items() if place not in by_place}
            placing = [partial(_place, tables[place], commits, placed) for place, commits in by_place.items()]
            _each(placing, tables.values())
            placed.sort(key=lambda one_table: one_table.coordinated.place)
            _name_group(placed, transaction)
            _each([partial(_stage, one_table) for one_table in placed], placed)
            staged = [commit for one_table in placed for commit in one_table.staged]
            ledger.ratify(staged, expected=expected, transaction=transaction, token=token)
        except VersionTakenError:
            _drop(placed)
            continue
        except Exception as error:
            if not _is_done(ledger, transaction, tables, error):
                _drop(placed)
                raise
        _finish(placed, proposed)
        return {one_table.coordinated.place: one_table.prepared[-1].version for one_table in placed}
    raise ConcurrentWriteException(
        f"The transaction {transaction} was tried {_ATTEMPTS} times, and others committed to one of its {len(tables)} tables "
        "each time. Nothing of it was committed. Run it again when fewer writers are at work.",
        error_class="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        sql_state="40000",
        attempts=_ATTEMPTS,
    )


def _each(steps: Sequence[Callable[[], None]], tables: Iterable[GroupTable | _Placed]) -> None:
    """Steps of several tables: at the same time where a store has to be waited for."""
    in_threads(steps, _THREADS if any(table.store.is_remote for table in tables) else 1, _NAME)


# ---------------------------------------------------------------- behind the winners


def _winners(store: ObjectStore, base: int) -> list[WinningCommit]:
    coordinated = coordination_of(store)
    assert coordinated is not None and coordinated.transaction is None
    tail = coordinated.tail()
    newest = base if tail is None else tail.version
    return [winning_commit(store, version) for version in range(base + 1, newest + 1)]


def _check_reads(table: GroupTable) -> int:
    """The version up to which what was read still holds. Raises a conflict."""
    winners = _winners(table.store, table.base)
    _check_against(table, winners)
    return table.base + len(winners)


def _check_against(table: GroupTable, winners: Sequence[WinningCommit]) -> None:
    if winners and table.reads is not None:
        info = {"operation": "a transaction that read the table"}
        rebase(PreparedCommit(table.base + 1, table.base, str(uuid.uuid4()), info, reads=table.reads), winners)


def _place(table: GroupTable, proposed: Sequence[Proposed], all_placed: list[_Placed]) -> None:
    """Add a table's commits for the versions after its newest. Raises a conflict."""
    coordinated = coordination_of(table.store)
    assert coordinated is not None
    winners = _winners(table.store, table.base)
    _check_against(table, winners)
    newest = table.base + len(winners)
    base = Snapshot.load(table.store, version=table.base)
    ours = [from_json(one.described, table.store, base.config) for one in proposed]
    placed = _Placed(table.store, coordinated, base, bool(winners))
    all_placed.append(placed)  # also where it fails: its new files are to go then
    for number, prepared in enumerate(ours):
        prepared = replace(prepared, checksum=base.checksum)
        if winners:
            _check_alone(ours, prepared)
            prepared = rebase(replace(prepared, version=table.base + 1), winners)
            if prepared.shared:
                prepared, path = settle_shared(table.store, prepared)
                placed.new_paths.extend([] if path is None else [path])
            prepared = replace(prepared, version=newest + 1 + number)
        if number:
            prepared = _behind(prepared, placed.actions)
        placed.prepared.append(prepared)
        placed.actions.append(prepared.actions(time.time_ns() // 1_000_000))


def _check_alone(ours: Sequence[PreparedCommit], prepared: PreparedCommit) -> None:
    """Commits of one transaction to one table that build on each other cannot each follow others by themselves: ids of rows that
    the first gives would not be those that the second speaks of."""
    added = {add.path for commit in ours if commit is not prepared for add in commit.adds}
    if prepared.row_id_high_water_mark is not None and any(remove.path in added for remove in prepared.removes):
        raise ConcurrentWriteException(
            "Another writer has committed to a table with row tracking, in which this transaction has changed rows that it had "
            "written itself. Nothing of it was committed. Run it again."
        )


def _behind(prepared: PreparedCommit, before: Sequence[Sequence[Action]]) -> PreparedCommit:
    """Row ids and time after those of the transaction's own commits before."""
    info = next(action for action in before[-1] if isinstance(action, CommitInfo))
    mark = prepared.row_id_high_water_mark
    if mark is not None:
        domains = [action for actions in before for action in actions if isinstance(action, DomainMetadata)]
        marks = [row_id_high_water_mark(domain) for domain in domains if domain.domain == ROW_TRACKING_DOMAIN]
        mark = max([mark, *marks])
    return replace(prepared, previous_timestamp_ms=info.in_commit_timestamp_ms, row_id_high_water_mark=mark)


# ---------------------------------------------------------------- ratified at once


def _name_group(placed: Sequence[_Placed], transaction: str) -> None:
    """Each commit names all of the transaction, so that the tables tell of it without the ledger."""
    participants = [
        {"tableId": one.base.metadata.id, "version": prepared.version}
        for one in placed
        for prepared in one.prepared
    ]
    group: dict[str, Any] = {"transactionId": transaction, "participants": participants}
    for one in placed:
        one.actions = [list(named_group(actions, group)) for actions in one.actions]


def _stage(placed: _Placed) -> None:
    for prepared, actions in zip(placed.prepared, placed.actions, strict=True):
        placed.staged.append(placed.coordinated.stage(prepared.version, commit_bytes(actions)))


def _drop(placed: Sequence[_Placed]) -> None:
    for one in placed:
        for staged in one.staged:
            one.coordinated.drop_staged(staged)
        delete_files(one.store, one.new_paths)


def _is_done(ledger: Ledger, transaction: str, tables: Mapping[str, GroupTable], error: Exception) -> bool:
    """Whether it was ratified although the ledger's answer was lost: all of it is then, or nothing. So that the ledger does not
    take what it was asked later, behind this answer, the transaction is ended first if it has not. Raises
    CommitOutcomeUnknownError where the ledger does not say; what is staged is kept then, for it may stand."""
    if not isinstance(error, OSError):
        return False
    try:
        drafts = ledger.abort(transaction)
        is_done = ledger.state_of(transaction) == "committed"
    except OSError as second:
        raise CommitOutcomeUnknownError(
            f"The coordinator {ledger.shown} neither confirmed nor refused the transaction {transaction}. It may stand, in all "
            "of its tables or in none. What was written is kept. Look into the history of one of them for the transactionGroup "
            "with this id before you run the transaction again: if it is there, all is done.",
            transaction=transaction,
        ) from second
    for draft in drafts:
        coordinated = coordination_of(tables[draft.commit.table].store)
        assert coordinated is not None
        coordinated.drop_staged(draft.commit)
    return is_done


def _finish(placed: Sequence[_Placed], proposed: Sequence[Proposed]) -> None:
    """What follows, table by table. The transaction stands."""
    stale: dict[str, list[Ratified]] = {}
    for earlier in proposed:
        stale.setdefault(earlier.commit.table, []).append(earlier.commit)
    _each([partial(_follow, one, stale[one.coordinated.place]) for one in placed], placed)


def _follow(placed: _Placed, stale: Sequence[Ratified]) -> None:
    """stale: the commits as they were proposed, which are not needed any more."""
    placed.coordinated.took(placed.staged)
    for earlier in stale:
        placed.coordinated.drop_staged(earlier)
    config, before = placed.base.config, None if placed.follows_others else placed.base
    checksum = placed.prepared[0].checksum
    for prepared, actions in zip(placed.prepared, placed.actions, strict=True):
        metadata = prepared.metadata or prepared.followed_metadata or config.metadata
        config = TableConfig(prepared.protocol or config.protocol, metadata)
        writer = LogWriter(placed.store, config)
        run_post_commit(placed.store, writer, config, prepared.version, actions, before=before, checksum=checksum)
        before, checksum = None, None if checksum is None else checksum.after(config, actions)
