"""The end of a transaction over tables: its commits are rebased on those of other writers and ratified together.

    versions = commit_group(ledger, transaction, {place: GroupTable(store, base)})     # {place: new version}

A place is the location of a table's root, in the form that the ledger uses as the table's key (storage/coordinated.py). A
proposal is a commit of the transaction as its ledger stores it until the end of the transaction.

Each table's commits follow the winners by the same rules as any commit (conflicts.rebase). For tables that were only read, the
reads are checked. Then one transaction of the ledger makes all of the commits versions, or none. The ledger does so only if no
table got a new version since it was checked; otherwise the transaction is tried again.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from delta_py.backoff import Backoff
from delta_py.commit.attempts import read_winning_commit
from delta_py.commit.conflicts import rebase
from delta_py.commit.post_commit import run_post_commit
from delta_py.commit.prepared import (
    ROW_TRACKING_DOMAIN,
    IsolationLevel,
    PreparedCommit,
    ReadSet,
    WinningCommit,
    row_id_high_water_mark,
)
from delta_py.commit.proposed_form import from_json
from delta_py.commit.shared_rows import merge_shared_vectors
from delta_py.coordinator.ledger import Ledger, ProposedCommit, Ratified, VersionTakenError
from delta_py.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DeltaError,
    StorageError,
    UnsupportedOperationError,
)
from delta_py.log.coordination import name_group
from delta_py.log.log_writer import LogWriter, commit_bytes
from delta_py.object_stores.open_store import named_coordination
from delta_py.protocol.actions import Action, CommitInfo, DomainMetadata
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot, replaced_table_error
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.store import ObjectStore
from delta_py.threads import in_threads
from delta_py.write.data_files import delete_files

_log = logging.getLogger("delta_py")
_ATTEMPTS = 200
_THREADS, _THREAD_NAME = 8, "delta_py-group"
_BACKOFF = Backoff(first_seconds=0.002, longest_seconds=0.05)


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A table of the transaction. store: opened outside the transaction. base: the table's version when the transaction began.
    reads: the reads that must still hold; None if nothing was read, or if only writes count. is_serializable: the reads of its
    commits must hold as at level Serializable, whatever level the table has. read_ids: the ids of the table's metadata that were
    read."""

    store: ObjectStore
    base: int
    reads: ReadSet | None = None
    is_serializable: bool = False
    read_ids: frozenset[str] = frozenset()


@dataclass(slots=True)
class _TriedTable:
    """A table across all attempts. winners: commits of other writers after its base, as far as they were read. base, ours: the
    snapshot of the base version, and our commits to the table; None and () if it is only read. The commits are parsed once,
    because their read sets remember which files of other writers match."""

    table: GroupTable
    base: Snapshot | None = None
    ours: Sequence[PreparedCommit] = ()
    winners: list[WinningCommit] = field(default_factory=list)

    @classmethod
    def of(cls, table: GroupTable, proposed: Sequence[ProposedCommit]) -> _TriedTable:
        """A table with its proposals: the commits that the transaction has stored in the ledger until now."""
        if not proposed:
            return cls(table)
        base = Snapshot.load(table.store, version=table.base)
        parsed = [from_json(proposal.described, table.store, base.config) for proposal in proposed]
        if table.is_serializable:
            parsed = [_serializable(prepared) for prepared in parsed]
        return cls(table, base, [replace(prepared, checksum=base.checksum) for prepared in parsed])

    @property
    def table_ids(self) -> frozenset[str]:
        """The ids of the tables that were read and written at this place: one id, if all is well."""
        return self.table.read_ids | {prepared.table_id for prepared in self.ours if prepared.table_id}

    def check_reads(self) -> int:
        """Check that the reads still hold, and return the newest version. Raises a conflict, SchemaMismatchError if another table
        is at the place now, UnsupportedOperationError if the ledger no longer knows a table there."""
        coordinated, store = named_coordination(self.table.store), self.table.store
        assert coordinated.transaction is None
        tail = coordinated.tail()
        if tail is None:
            raise _forgotten_table_error(coordinated)
        if not self.table_ids <= {tail.table_id}:
            raise replaced_table_error(store.root, "the transaction has read or written it")
        # Earlier attempts have already read the first of the winners.
        for version in range(self.table.base + 1 + len(self.winners), tail.version + 1):
            self.winners.append(read_winning_commit(store, version))
        if self.winners and self.table.reads is not None:
            # Rebase an empty commit with these reads, only to raise its conflicts.
            info = {"operation": "a transaction that read the table"}
            base, reads = self.table.base, self.table.reads
            rebase(PreparedCommit(base + 1, base, str(uuid.uuid4()), info, reads=reads), self.winners)
        return self.table.base + len(self.winners)


def _serializable(prepared: PreparedCommit) -> PreparedCommit:
    """The commit at level Serializable, if its level is WriteSerializable.

    WriteSerializable lets a commit be ordered before a blind append that came first. If another commit of the same transaction
    were ordered after that append, the transaction as a whole would have no place in the order.
    """
    if prepared.isolation is not IsolationLevel.WRITE_SERIALIZABLE:
        return prepared
    level = IsolationLevel.SERIALIZABLE
    return replace(prepared, isolation=level, commit_info={**prepared.commit_info, "isolationLevel": level.value})


@dataclass(slots=True)
class _PlacedTable:
    """The commits of one table at the versions that they will get. base: the snapshot that the transaction read. follows_others:
    other writers have committed since then. actions: of each commit. new_paths: files of deletion vectors that this attempt has
    written. staged: the commits that were already staged."""

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
    """Make all commits that a transaction has proposed versions of their tables. Returns the newest version of each table that it
    changed, by place.

    tables: by place, every table that it has read or written. token: as in Ledger.ratify. Raises a
    DeltaConcurrentModificationException if another writer's commit forbids one of them, TransactionEndedError, TokenUsedError,
    CoordinatorUnavailableError; then nothing is committed. Raises CommitOutcomeUnknownError if the ledger does not say what
    happened to it.
    """
    proposed = ledger.proposed(transaction)
    by_place: dict[str, list[ProposedCommit]] = {}
    for proposal in proposed:
        by_place.setdefault(proposal.commit.table, []).append(proposal)
    if unknown_places := by_place.keys() - tables.keys():
        raise unidentified_tables_error(transaction, "changed", unknown_places)
    tried_by_place: dict[str, _TriedTable] = {}
    _run_for_tables(
        [partial(_add_tried_table, tried_by_place, place, table, by_place.get(place, ())) for place, table in tables.items()],
        tables.values(),
    )
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_BACKOFF.wait_seconds(attempt))
        placed: list[_PlacedTable] = []
        try:
            with ledger.turn(by_place) if attempt else nullcontext():  # after a lost race, take turns with other writers
                # Tables that were only read: the ledger ratifies only if these are still their newest versions.
                expected = {place: table.check_reads() for place, table in tried_by_place.items() if place not in by_place}
                placing = [partial(_place, tried_by_place[place], placed) for place in by_place]
                _run_for_tables(placing, tables.values())
                # The threads have added the tables in any order.
                placed.sort(key=lambda placed_table: placed_table.coordinated.place)
                _add_participants(placed, transaction)
                _run_for_tables([partial(_stage, placed_table) for placed_table in placed], placed)
                _ratify(ledger, transaction, tables, placed, expected, token)
        except VersionTakenError:
            _drop(placed)
            continue
        except CommitOutcomeUnknownError:  # the staged commits may be ratified, so no file is deleted
            raise
        except Exception as error:
            _drop(placed)
            if isinstance(error, DeltaError) or not isinstance(error, OSError):
                raise
            roots = ", ".join(sorted(table.store.root for table in tables.values()))
            raise StorageError(
                f"The transaction {transaction} over the tables {roots} could not be committed, as storage failed: {error}. "
                "Nothing of it was committed. Run it again.",
                path=roots,
            ) from error
        _run_post_commits(placed, proposed)
        return {placed_table.coordinated.place: placed_table.prepared[-1].version for placed_table in placed}
    raise ConcurrentWriteException(
        f"The transaction {transaction} was tried {_ATTEMPTS} times, and others committed to one of its {len(tables)} tables "
        "each time. Nothing of it was committed. Run it again when fewer writers are at work.",
        error_class="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        sql_state="40000",
        attempts=_ATTEMPTS,
    )


def unidentified_tables_error(transaction: str, what: str, places: Iterable[str]) -> UnsupportedOperationError:
    """The error for tables that the transaction did not open by their paths. what: what the transaction did to them, `read` or
    `changed`."""
    return UnsupportedOperationError(
        f"The transaction {transaction} has {what} {', '.join(sorted(places))}, and does not know by which path, or the "
        "coordinator no longer knows the table, for example because it was deleted. Nothing was committed. Open tables by the "
        "methods of the transaction, and only tables that exist."
    )


def _forgotten_table_error(coordinated: CoordinatedStore) -> UnsupportedOperationError:
    """The error for a table that the ledger has forgotten since the transaction began."""
    return UnsupportedOperationError(
        f"The coordinator {coordinated.ledger.shown} does not know the table at {coordinated.root} any more, which the "
        "transaction has read or written: it was deleted, or has left its coordinator. Nothing was committed. Run it again.",
        error_class="DELTA_MULTI_TABLE_PARTICIPANT_NOT_CATALOG_MANAGED",
        sql_state="0AKDC",
        path=coordinated.root,
    )


def _run_for_tables(steps: Sequence[Callable[[], None]], tables: Iterable[GroupTable | _PlacedTable]) -> None:
    """Run steps of several tables: in threads if any of the stores is remote, because then each step waits for replies."""
    in_threads(steps, _THREADS if any(table.store.is_remote for table in tables) else 1, _THREAD_NAME)


# ---------------------------------------------------------------- rebase on the winners


def _add_tried_table(
    tried_by_place: dict[str, _TriedTable], place: str, table: GroupTable, proposed: Sequence[ProposedCommit]
) -> None:
    """Add the table, with its parsed proposals, to `tried_by_place`. proposed: those of this table."""
    tried_by_place[place] = _TriedTable.of(table, proposed)


def _place(tried_table: _TriedTable, all_placed: list[_PlacedTable]) -> None:
    """Place a table's commits at the versions after its newest one, and add the result to all_placed.

    Each commit is first rebased on the winners, as if it were the only one of the transaction. Then it gets a version, row ids
    and a time after the transaction's own earlier commits to the table. Raises as _TriedTable.check_reads and conflicts.rebase.
    """
    store, base, coordinated = tried_table.table.store, tried_table.base, named_coordination(tried_table.table.store)
    assert base is not None
    newest = tried_table.check_reads()
    placed = _PlacedTable(store, coordinated, base, follows_others=bool(tried_table.winners))
    all_placed.append(placed)  # also if this fails: its new files must then be deleted
    for number, proposed_commit in enumerate(tried_table.ours):
        prepared = proposed_commit
        if tried_table.winners:
            _check_independent(tried_table.ours, proposed_commit)
            prepared = rebase(replace(proposed_commit, version=tried_table.table.base + 1), tried_table.winners)
            if prepared.shared:
                prepared, path = merge_shared_vectors(store, prepared)
                placed.new_paths.extend([] if path is None else [path])
            prepared = replace(prepared, version=newest + 1 + number)
        if number:
            prepared = _after_own_commits(prepared, placed.actions)
        placed.prepared.append(prepared)
        placed.actions.append(prepared.actions(time.time_ns() // 1_000_000))


def _check_independent(ours: Sequence[PreparedCommit], prepared: PreparedCommit) -> None:
    """Raise ConcurrentWriteException if the commit cannot be rebased without the transaction's other commits to the table. ours:
    all commits of the transaction to the table.

    That is so if it removes a file that another of them adds, in a table with row tracking: the row ids that the first commit
    assigns would differ from those that the second one refers to.
    """
    added_paths = {add.path for commit in ours if commit is not prepared for add in commit.adds}
    if prepared.row_id_high_water_mark is not None and any(remove.path in added_paths for remove in prepared.removes):
        raise ConcurrentWriteException(
            "Another writer has committed to a table with row tracking, in which this transaction has changed rows that it had "
            "written itself. Nothing of it was committed. Run it again."
        )


def _after_own_commits(prepared: PreparedCommit, earlier_actions: Sequence[Sequence[Action]]) -> PreparedCommit:
    """The commit with row ids and an in-commit timestamp after those of the transaction's own earlier commits to the table.
    earlier_actions: the actions of each of them."""
    info = next(action for action in earlier_actions[-1] if isinstance(action, CommitInfo))
    mark = prepared.row_id_high_water_mark
    if mark is not None:
        domains = [action for actions in earlier_actions for action in actions if isinstance(action, DomainMetadata)]
        marks = [row_id_high_water_mark(domain) for domain in domains if domain.domain == ROW_TRACKING_DOMAIN]
        mark = max([mark, *marks])
    return replace(prepared, previous_timestamp_ms=info.in_commit_timestamp_ms, row_id_high_water_mark=mark)


# ---------------------------------------------------------------- ratify together


def _add_participants(placed: Sequence[_PlacedTable], transaction: str) -> None:
    """Write the list of all commits of the transaction into each commit's commitInfo, so that the tables' logs show the
    transaction without the ledger."""
    participants = [
        {"tableId": placed_table.base.metadata.id, "version": prepared.version}
        for placed_table in placed
        for prepared in placed_table.prepared
    ]
    group: dict[str, Any] = {"transactionId": transaction, "participants": participants}
    for placed_table in placed:
        placed_table.actions = [list(name_group(actions, group)) for actions in placed_table.actions]


def _stage(placed: _PlacedTable) -> None:
    """Write the table's commits to its directory of staged commits, where the ledger can ratify them."""
    for prepared, actions in zip(placed.prepared, placed.actions, strict=True):
        placed.staged.append(placed.coordinated.stage(prepared.version, commit_bytes(actions)))


def _drop(placed: Sequence[_PlacedTable]) -> None:
    """Delete the staged commits, and the files that the attempt has written."""
    for placed_table in placed:
        for staged in placed_table.staged:
            placed_table.coordinated.drop_staged(staged)
        delete_files(placed_table.store, placed_table.new_paths)


def _ratify(
    ledger: Ledger,
    transaction: str,
    tables: Mapping[str, GroupTable],
    placed: Sequence[_PlacedTable],
    expected: Mapping[str, int],
    token: str | None,
) -> None:
    """Have all staged commits ratified. If this raises, nothing is ratified, except with CommitOutcomeUnknownError: then the
    staged commits may be ratified."""
    staged = [commit for placed_table in placed for commit in placed_table.staged]
    try:
        ledger.ratify(staged, expected=expected, transaction=transaction, token=token)
    except Exception as error:
        # The ledger has answered that it does not ratify. After any other error, it may have ratified.
        is_refusal = isinstance(error, DeltaError) and not isinstance(error, OSError)
        if is_refusal or not _was_ratified(ledger, transaction, tables, placed):
            raise


def _was_ratified(ledger: Ledger, transaction: str, tables: Mapping[str, GroupTable], placed: Sequence[_PlacedTable]) -> bool:
    """Whether the commits were ratified although the ledger's answer was lost: then either all of them are, or none. The
    transaction is aborted first if it has not ended, so that the ledger cannot ratify it after this answer. The ledger does not
    ratify a transaction that it no longer knows, but it may have done so before. Raises CommitOutcomeUnknownError."""
    try:
        drafts = ledger.abort(transaction)
        state = ledger.state_of(transaction)
        was_ratified = _is_in_log(placed) if state is None else state == "committed"
    except (DeltaError, OSError) as error:
        raise _unknown_outcome_error(ledger, transaction) from error
    if was_ratified is None:
        raise _unknown_outcome_error(ledger, transaction)
    for draft in drafts:
        named_coordination(tables[draft.commit.table].store).drop_staged(draft.commit)
    return was_ratified


def _is_in_log(placed: Sequence[_PlacedTable]) -> bool | None:
    """Whether the staged commits were ratified, judged by the versions of the first table; None if its ledger no longer knows
    that table. Raises OSError, DeltaError."""
    if not placed:
        return False
    first_table, data = placed[0], commit_bytes(placed[0].actions[0])
    staged, tail = first_table.staged[0], first_table.coordinated.tail()
    if tail is None:
        return None
    if tail.version < staged.version:
        return False
    for commit in tail.commits:
        if commit.version == staged.version:
            return commit.name == staged.name
    return first_table.store.read(f"{LOG_DIRECTORY}/{commit_file_name(staged.version)}") == data  # it is published


def _unknown_outcome_error(ledger: Ledger, transaction: str) -> CommitOutcomeUnknownError:
    """The error for a transaction that may or may not be committed."""
    return CommitOutcomeUnknownError(
        f"The coordinator {ledger.shown} neither confirmed nor refused the transaction {transaction}. It may stand, in all "
        "of its tables or in none. What was written is kept. Look into the history of one of them for the transactionGroup "
        "with this id before you run the transaction again: if it is there, the transaction is complete.",
        transaction=transaction,
    )


def _run_post_commits(placed: Sequence[_PlacedTable], proposed: Sequence[ProposedCommit]) -> None:
    """Do the work that follows the commit, table by table. The transaction is already committed."""
    drafts_by_place: dict[str, list[Ratified]] = {}  # the staged commits as they were proposed
    for proposal in proposed:
        drafts_by_place.setdefault(proposal.commit.table, []).append(proposal.commit)
    _run_for_tables(
        [partial(_run_post_commits_of, placed_table, drafts_by_place[placed_table.coordinated.place]) for placed_table in placed],
        placed,
    )


def _run_post_commits_of(placed: _PlacedTable, drafts: Sequence[Ratified]) -> None:
    """Do the work after the commits of one table. drafts: the commits as they were proposed. They are deleted, because the
    ratified commits replace them."""
    placed.coordinated.note_ratified(placed.staged)
    for draft in drafts:
        placed.coordinated.drop_staged(draft)
    config, previous_snapshot = placed.base.config, None if placed.follows_others else placed.base
    checksum = placed.prepared[0].checksum
    for prepared, actions in zip(placed.prepared, placed.actions, strict=True):
        metadata = prepared.metadata or prepared.followed_metadata or config.metadata
        config = TableConfig(prepared.protocol or config.protocol, metadata)
        writer = LogWriter(placed.store, config)
        run_post_commit(placed.store, writer, config, prepared.version, actions, before=previous_snapshot, checksum=checksum)
        # No snapshot exists of the versions between the transaction's own commits.
        previous_snapshot, checksum = None, None if checksum is None else checksum.after_commit(config, actions)
