"""Group commit: commits that several writers of one process have ready for a coordinated table are ratified together.

    done, actions = commit_prepared(attempts, writer, prepared, new_paths)  # any table; a table without a ledger commits alone

The first writer's thread is the leader. It rebases all waiting commits on the commits of other writers and on each other, by the
usual rules (conflicts.rebase). It stages them at consecutive versions, and the ledger ratifies all of them in one transaction. A
commit that conflicts with one of them fails alone. The next commits gather while a leader works. Leaders of several processes
that get in each other's way take turns (coordinator/turns.py).
Protocol: Commit Protocol.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

from delta_py.commit.attempts import Attempts, read_winning_commit, too_many_attempts_error, unknown_outcome_error
from delta_py.commit.prepared import PreparedCommit, WinningCommit
from delta_py.coordinator.ledger import (
    CoordinatorContendedError,
    CoordinatorUnavailableError,
    RatificationRefusedError,
    Ratified,
    VersionTakenError,
)
from delta_py.errors import CorruptTableError, DeltaConcurrentModificationException, DeltaError, StorageError, TableNotFoundError
from delta_py.log.log_writer import LogWriter, commit_bytes
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.actions import Action
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.threads import in_threads

_log = logging.getLogger("delta_py")

_CONTENDED_ROUNDS = 2  # each round lasts as long as the ledger keeps trying
_CONTENDED_SECONDS = 60.0  # how long leaders take turns at the table after a lost race
_THREADS, _THREAD_NAME = 8, "delta_py-committer"
_MOST_CACHED_WINNERS, _MOST_FILES_OF_CACHED_WINNER = 256, 64


def commit_prepared(
    attempts: Attempts, writer: LogWriter, prepared: PreparedCommit, new_paths: list[str]
) -> tuple[PreparedCommit, list[Action]]:
    """Return the commit at the version that it got, and its actions. Raises as Attempts.put_until_certain."""
    coordinated = coordination_of(attempts.store)
    # tail: what the ledger knows of the table; None if no ledger ratifies the commit now. In a multi-table transaction, the
    # commits are ratified together at its end.
    tail = None if coordinated is None or coordinated.transaction is not None else coordinated.last_tail
    if coordinated is None or tail is None or prepared.version == 0:
        return attempts.put_until_certain(writer, prepared, new_paths)
    waiting = _WaitingCommit(attempts, coordinated, prepared, new_paths)
    _committer_of(coordinated.ledger.identity, coordinated.place, tail.table_id).ratify_with_others(waiting)
    if waiting.has_left:  # the table needs no ledger any more
        return attempts.put_until_certain(writer, waiting.prepared, new_paths)
    if waiting.error is not None:
        raise waiting.error
    return waiting.prepared, waiting.actions


@dataclass(slots=True)
class _WaitingCommit:
    """A commit whose writer waits until a leader has settled it.

    prepared: the commit for the version after all known versions; after the commit, as it was committed. actions: as they were
    committed; empty before. new_paths: the writer's list of files to delete if the commit fails; attempts add to it. rounds: how
    many rounds have tried the commit. failures: how many times the store failed. contended: in how many rounds the ledger was
    busy with other tables. error: why the commit failed; None if it did not. has_left: the table no longer has a ledger, so the
    writer must commit without it. is_settled: the commit succeeded, failed or has left, so its writer need not wait any more.
    """

    attempts: Attempts
    coordinated: CoordinatedStore
    prepared: PreparedCommit
    new_paths: list[str]
    actions: list[Action] = field(default_factory=list)
    rounds: int = 0
    failures: int = 0
    contended: int = 0
    error: DeltaError | None = None
    has_left: bool = False
    is_settled: bool = False

    def fail(self, error: DeltaError) -> None:
        """Settle the commit with an error, which its writer raises."""
        self.error, self.is_settled = error, True

    def wait_or_fail(self, what: str, error: OSError) -> None:
        """Handle a failure of the store after which no part of the commit is ratified: wait, so that the next round may succeed.
        After too many failures, settle the commit with an error instead. what: the failure, for the message."""
        self.failures += 1
        _log.warning("%s: %s: %s", self.attempts.store.root, what, error)
        if self.failures >= self.attempts.policy.unsettled_attempts:
            root = self.attempts.store.root
            self.fail(StorageError(f"{root}: {what}: {error}. Nothing was committed. Run the operation again."))
        else:
            self.attempts.sleep(self.attempts.policy.wait_seconds(self.failures, in_doubt=True))


@dataclass(slots=True)
class _PlacedCommit:
    """A waiting commit at the version that it will get in this round. data: the content of its commit file. staged: the commit
    file in the directory of staged commits, where the ledger can ratify it; None before that. error: why it could not be
    staged."""

    waiting: _WaitingCommit
    prepared: PreparedCommit
    actions: list[Action]
    data: bytes
    staged: Ratified | None = None
    error: DeltaError | OSError | None = None

    def stage(self) -> None:
        """Write the commit file to the directory of staged commits."""
        try:
            self.staged = self.waiting.coordinated.stage(self.prepared.version, self.data)
        except (DeltaError, OSError) as error:
            self.error = error

    def drop(self) -> None:
        """Delete the staged commit file, because it was not ratified."""
        if self.staged is not None:
            self.waiting.coordinated.drop_staged(self.staged)


class _Committer:
    """The committer of one table, shared by all threads of this process that write to the table."""

    def __init__(self) -> None:
        self._leader_lock = threading.Lock()  # held by the leader
        self._waiting_lock = threading.Lock()  # guards changes of _waiting
        self._waiting: list[_WaitingCommit] = []  # in the order in which their writers came
        self._newest = -1  # the newest version that is known to be ratified
        self._winners: dict[int, WinningCommit] = {}  # ratified commits by version, parsed
        self._contended_until = 0.0  # leaders take turns until then because a race was lost recently; in time.monotonic

    def ratify_with_others(self, waiting: _WaitingCommit) -> None:
        """Return when the commit is settled. The thread that holds the lock is the leader, and settles the commits of all waiting
        threads. A thread that gets the lock later may find its commit settled."""
        with self._waiting_lock:
            self._waiting.append(waiting)
        try:
            with self._leader_lock:
                while not waiting.is_settled:
                    self._run_round()
        finally:
            with self._waiting_lock:
                self._waiting = [other for other in self._waiting if other is not waiting]

    def _run_round(self) -> None:
        """Try once to have all waiting commits ratified. Each round settles the first of them, or rebases it on more of the
        versions before it.

        After this process has lost a race against another process, the leaders of all processes take turns for a while: the
        ledger lets only one of them work on the table at a time, so that none loses again.
        """
        if time.monotonic() >= self._contended_until:
            return self._try_once()
        coordinated = next(waiting for waiting in self._waiting if not waiting.is_settled).coordinated
        with coordinated.ledger.turn([coordinated.place]):
            self._ask_newest_version(coordinated)
            self._try_once()

    def _ask_newest_version(self, coordinated: CoordinatedStore) -> None:
        """Ask the ledger for the newest version, so that commits are staged at versions that are free. If the ledger does not
        answer, nothing is lost: it refuses the commits later if their versions are taken.
        """
        try:
            tail = coordinated.tail()
        except CoordinatorUnavailableError as error:
            _log.info("%s: the ledger did not tell the newest version: %s", coordinated.root, error)
        else:
            self._newest = max(self._newest, -1 if tail is None else tail.version)

    def _try_once(self) -> None:
        """Prepare the first commits that wait, stage them, and have the ledger ratify them in one request."""
        unsettled = [waiting for waiting in self._waiting if not waiting.is_settled]
        batch = unsettled[: unsettled[0].coordinated.commits_per_request]
        # Each commit was prepared for the version after the newest one that its writer knew.
        self._newest = max(self._newest, *(waiting.prepared.version - 1 for waiting in batch))
        placed = _stage_all(self._place_in_order([waiting for waiting in batch if self._rebase_on_winners(waiting)]))
        if placed:
            self._ratify(placed)

    # ------------------------------------------------------------ rebase on the winners, and on each other

    def _rebase_on_winners(self, waiting: _WaitingCommit) -> bool:
        """Rebase the commit on all ratified commits. Returns whether that succeeded. If not, the commit is settled with an error,
        or waits for the next round."""
        waiting.rounds += 1
        versions = range(waiting.prepared.version, self._newest + 1)
        try:
            if waiting.rounds > waiting.attempts.policy.conflict_attempts:
                raise too_many_attempts_error(waiting.rounds - 1, waiting.prepared)
            winners = [self._load_winner(waiting, version) for version in versions]
            if winners:
                waiting.prepared = waiting.attempts.rebase_on(waiting.prepared, winners, waiting.new_paths)
        except DeltaError as error:
            waiting.fail(error)
        except OSError as error:
            waiting.wait_or_fail("commits that others have made meanwhile cannot be read", error)
        else:
            return True
        return False

    def _load_winner(self, waiting: _WaitingCommit, version: int) -> WinningCommit:
        """The ratified commit of a version, which is read and parsed once for all waiting commits, if it can be cached."""
        winner = self._winners.get(version)
        if winner is None:
            winner = read_winning_commit(waiting.attempts.store, version)
            self._cache_winners([winner])
        return winner

    def _cache_winners(self, winners: Sequence[WinningCommit]) -> None:
        """Cache winning commits, because other waiting commits are checked against them too. Commits with many files are not
        cached, and at most _MOST_CACHED_WINNERS are, to limit memory."""
        small = (winner for winner in winners if len(winner.adds) + len(winner.removes) <= _MOST_FILES_OF_CACHED_WINNER)
        self._winners |= {winner.version: winner for winner in small}
        while len(self._winners) > _MOST_CACHED_WINNERS:
            del self._winners[min(self._winners)]

    def _place_in_order(self, batch: Sequence[_WaitingCommit]) -> list[_PlacedCommit]:
        """Rebase each commit on those before it in the batch. A commit that conflicts with one of them waits for the next
        round.
        """
        placed: list[_PlacedCommit] = []
        commits_before: list[WinningCommit] = []  # the placed commits of this round
        for waiting in batch:
            try:
                prepared = waiting.prepared
                if commits_before:
                    prepared = waiting.attempts.rebase_on(prepared, commits_before, waiting.new_paths)
                actions = prepared.actions(waiting.attempts.clock_ms())
                data = commit_bytes(actions)
            except DeltaConcurrentModificationException:
                assert commits_before  # the commit was already rebased on all ratified commits
                continue  # the commit that it conflicts with is not ratified yet: the next round decides
            except DeltaError as error:
                waiting.fail(error)
            except OSError as error:
                waiting.wait_or_fail("rows that others took out of the same files cannot be read", error)
            else:
                placed.append(_PlacedCommit(waiting, prepared, actions, data))
                commits_before.append(WinningCommit.parse(prepared.version, data))
        return placed

    # ------------------------------------------------------------ ratify together

    def _ratify(self, placed: Sequence[_PlacedCommit]) -> None:
        """Have the staged commits ratified, and settle them. If this is interrupted, all of them are in doubt."""
        try:
            self._try_to_ratify(placed, [placed_commit.staged for placed_commit in placed if placed_commit.staged is not None])
        except BaseException:
            _leave_in_doubt(placed)  # all waiting writers get this error, not only the leader
            raise

    def _try_to_ratify(self, placed: Sequence[_PlacedCommit], staged: Sequence[Ratified]) -> None:
        """Send the same commits at the same versions until the ledger says what happened to them, and settle them accordingly.

        staged: the staged files of `placed`, in the same order.
        """
        coordinated, attempts = placed[0].waiting.coordinated, placed[0].waiting.attempts
        is_unanswered = False  # an attempt had no answer: the ledger may have carried it out, or may do so later
        for attempt in range(attempts.policy.unsettled_attempts):
            if attempt:
                attempts.sleep(attempts.policy.wait_seconds(attempt, in_doubt=True))
            try:
                coordinated.ratify(staged)
                return self._settle_won(placed, staged)
            except (VersionTakenError, CoordinatorContendedError) as error:
                is_ours = _is_ours(placed[0])  # an earlier call may have succeeded although its answer was lost
                if is_ours is not None:
                    return self._settle_won(placed, staged) if is_ours else self._settle_lost(placed, error)
            except (RatificationRefusedError, TableNotFoundError) as error:
                # This refusal says nothing about an earlier attempt, whose staged files the ledger may name by now.
                if not is_unanswered:
                    return _settle_refused(placed, error)
                if _is_ours(placed[0]):
                    return self._settle_won(placed, staged)
                _log.warning("%s: the ledger refuses what it may have done before: %s", attempts.store.root, error)
            except CoordinatorUnavailableError as error:
                is_unanswered = True
                _log.warning("%s: the ledger did not confirm: %s", attempts.store.root, error)
        _leave_in_doubt(placed)

    def _settle_won(self, placed: Sequence[_PlacedCommit], staged: Sequence[Ratified]) -> None:
        """Settle the commits: all of them are ratified."""
        for placed_commit in placed:
            waiting = placed_commit.waiting
            waiting.coordinated.note_ratified(staged)  # each writer has its own store, which remembers the newest version
            waiting.prepared, waiting.actions, waiting.is_settled = placed_commit.prepared, placed_commit.actions, True
        self._cache_winners([WinningCommit.parse(placed_commit.prepared.version, placed_commit.data) for placed_commit in placed])
        self._newest = placed[-1].prepared.version

    def _settle_lost(self, placed: Sequence[_PlacedCommit], error: VersionTakenError | CoordinatorContendedError) -> None:
        """Handle a lost race, after which none of the commits is ratified: delete the staged files, and take the newest version
        from the error. The commits wait for the next round, unless the ledger was busy too often, no longer knows the table, or
        is older than the table.
        """
        for placed_commit in placed:
            placed_commit.drop()
        if isinstance(error, CoordinatorContendedError):
            return _count_lost_round(placed, error)
        newest = error.message_parameters["version"]
        if newest is None:  # the ledger no longer knows the table
            for placed_commit in placed:
                placed_commit.waiting.has_left = placed_commit.waiting.is_settled = True
            return
        self._newest, first = newest, placed[0].waiting
        if newest < placed[0].prepared.version - 1:  # the ledger does not know versions that it has ratified
            self._winners = {version: winner for version, winner in self._winners.items() if version <= newest}
            return _fail_for_older_ledger(placed, newest)
        self._contended_until = time.monotonic() + _CONTENDED_SECONDS
        first.attempts.sleep(first.attempts.policy.wait_seconds(first.rounds))


def _stage_all(placed: Sequence[_PlacedCommit]) -> Sequence[_PlacedCommit]:
    """Stage the commits, and return those that may be ratified: all before the first one that could not be staged. The later ones
    are rebased on that one, so their staged files are deleted, and they wait for the next round."""
    steps = [placed_commit.stage for placed_commit in placed]
    if placed:
        in_threads(steps, _THREADS if placed[0].waiting.coordinated.is_remote else 1, _THREAD_NAME)
    ratifiable = list(takewhile(lambda placed_commit: placed_commit.staged is not None, placed))
    for placed_commit in placed[len(ratifiable) :]:
        placed_commit.drop()
        if isinstance(placed_commit.error, OSError):
            placed_commit.waiting.wait_or_fail("the commit cannot be staged", placed_commit.error)
        elif placed_commit.error is not None:
            placed_commit.waiting.fail(placed_commit.error)
    return ratifiable


def _is_ours(placed: _PlacedCommit) -> bool | None:
    """Whether the commit became a version; None if the store does not say. One commit is enough: the ledger ratifies all commits
    of a request or none."""
    try:
        return read_winning_commit(placed.waiting.attempts.store, placed.prepared.version).txn_id == placed.prepared.txn_id
    except FileNotFoundError:
        return False
    except (OSError, DeltaError):  # a catalog may refuse to show the table
        return None


def _settle_refused(placed: Sequence[_PlacedCommit], error: DeltaError) -> None:
    """Settle commits that the ledger refused with its error. Each writer then raises the error for its own commit."""
    for placed_commit in placed:
        placed_commit.drop()
        placed_commit.waiting.fail(error)


def _count_lost_round(placed: Sequence[_PlacedCommit], error: CoordinatorContendedError) -> None:
    """Handle a round in which the ledger was busy with other tables, so that the versions of this table are still free. A commit
    that lost too often is settled with the error, so that the commits after it get their turn."""
    for placed_commit in placed:
        placed_commit.waiting.contended += 1
        if placed_commit.waiting.contended >= _CONTENDED_ROUNDS:
            placed_commit.waiting.fail(error)


def _fail_for_older_ledger(placed: Sequence[_PlacedCommit], newest: int) -> None:
    """Settle the commits with an error, because the ledger no longer knows versions that it has ratified. newest: the newest
    version that the ledger knows."""
    first = placed[0]
    coordinated, ratified_version = first.waiting.coordinated, first.prepared.version - 1
    error = CorruptTableError(
        f"The coordinator {coordinated.ledger.shown} knows the table at {coordinated.root} up to version {newest}, and it had "
        f"ratified version {ratified_version}. Nothing was committed. If the ledger was restored from a backup, it is older than "
        "the table: have it rebuilt in an empty database (rebuild_ledger, of delta_py.repair.rebuild_ledger). If the versions "
        "were given up, run the operation again.",
        version=ratified_version,
    )
    for placed_commit in placed:
        placed_commit.waiting.fail(error)


def _leave_in_doubt(placed: Sequence[_PlacedCommit]) -> None:
    """Settle the commits with CommitOutcomeUnknownError. Their staged files stay, because the ledger may have ratified them."""
    for placed_commit in placed:
        if not placed_commit.waiting.is_settled:
            placed_commit.waiting.fail(unknown_outcome_error(placed_commit.waiting.attempts.store, placed_commit.prepared))


@lru_cache(maxsize=1024)  # of the tables to which this process has committed last: each has one committer
def _committer_of(ledger: str, place: str, table_id: str) -> _Committer:
    """The committer of a table. ledger: its identity. place: where the table is. table_id: as the ledger knows it, so that a
    table that replaces another at the same place gets a new committer."""
    return _Committer()


os.register_at_fork(after_in_child=_committer_of.cache_clear)  # other threads may have held its locks
