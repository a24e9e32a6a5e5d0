"""Group commit: what writers of one process have ready for a coordinated table at the same time is ratified at once.

    done, actions = settle(attempts, writer, prepared, new_paths)      # of any table; alone where no ledger has its commits

Whoever comes first leads: it puts all commits that wait behind those that others made meanwhile and behind each other, by the
rules of every commit (conflicts.rebase), stages them at consecutive versions, and has the ledger ratify all of them in one
transaction. A commit that may not follow one of them fails alone. While a leader is at work the next ones gather. Leaders of
several processes that get in each other's way take turns (coordinator/turns.py).
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

from delta_py.commit.attempts import Attempts, too_many_attempts, unknown_outcome, winning_commit
from delta_py.commit.prepared import PreparedCommit, WinningCommit
from delta_py.coordinator.ledger import CoordinatorContendedError, CoordinatorUnavailableError, Ratified, VersionTakenError
from delta_py.errors import CorruptTableError, DeltaConcurrentModificationException, DeltaError, StorageError
from delta_py.log.log_writer import LogWriter, commit_bytes
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.actions import Action
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.threads import in_threads

_log = logging.getLogger("delta_py")

_MOST_AT_ONCE = 64
_CONTENDED_ROUNDS = 2  # each of which takes as long as the ledger's patience
_CONTENDED_SECONDS = 60.0  # in which, behind a lost race, turns are taken at the table
_THREADS, _NAME = 8, "delta_py-committer"
_KEPT_WINNERS, _KEPT_FILES = 256, 64


def settle(
    attempts: Attempts, writer: LogWriter, prepared: PreparedCommit, new_paths: list[str]
) -> tuple[PreparedCommit, list[Action]]:
    """The commit at the version that it got, and its actions. Raises as Attempts.settle."""
    coordinated = coordination_of(attempts.store)
    tail = None if coordinated is None or coordinated.transaction is not None else coordinated.last_tail
    if coordinated is None or tail is None or prepared.version == 0:
        return attempts.settle(writer, prepared, new_paths)
    waiting = _Waiting(attempts, coordinated, prepared, new_paths)
    _committer_of(coordinated.ledger.identity, coordinated.place, tail.table_id).settle(waiting)
    if waiting.has_left:
        return attempts.settle(writer, waiting.prepared, new_paths)
    if waiting.error is not None:
        raise waiting.error
    return waiting.prepared, waiting.actions


@dataclass(slots=True)
class _Waiting:
    """A commit of one writer. prepared: for the version behind all that is known to be there, or as it was committed. failures:
    of the store, in a row. contended: rounds in which writers of the ledger's other tables were always before. error: why it was
    not committed. has_left: the table is coordinated no more."""

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
        self.error, self.is_settled = error, True

    def failed(self, what: str, error: OSError) -> None:
        """The store did not answer: it may when it is asked again. Nothing of the commit is ratified."""
        self.failures += 1
        _log.warning("%s: %s: %s", self.attempts.store.root, what, error)
        if self.failures >= self.attempts.policy.unsettled_attempts:
            root = self.attempts.store.root
            self.fail(StorageError(f"{root}: {what}: {error}. Nothing was committed. Run the operation again."))
        else:
            self.attempts.sleep(self.attempts.policy.wait_seconds(self.failures, in_doubt=True))


@dataclass(slots=True)
class _Placed:
    """A commit that waits, at the version that it is to have in this round."""

    waiting: _Waiting
    prepared: PreparedCommit
    actions: list[Action]
    data: bytes
    staged: Ratified | None = None
    error: DeltaError | OSError | None = None

    def stage(self) -> None:
        try:
            self.staged = self.waiting.coordinated.stage(self.prepared.version, self.data)
        except (DeltaError, OSError) as error:
            self.error = error

    def drop(self) -> None:
        if self.staged is not None:
            self.waiting.coordinated.drop_staged(self.staged)


class _Committer:
    """Of one table."""

    def __init__(self) -> None:
        self._turn = threading.Lock()  # of the leader
        self._changing = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._newest = -1  # of the versions that are known to be ratified
        self._winners: dict[int, WinningCommit] = {}
        self._contended_until = 0.0  # until when turns are taken, as a race was lost lately; by time.monotonic

    def settle(self, waiting: _Waiting) -> None:
        with self._changing:
            self._waiting.append(waiting)
        try:
            with self._turn:
                while not waiting.is_settled:
                    self._round()
        finally:
            with self._changing:
                self._waiting = [other for other in self._waiting if other is not waiting]

    def _round(self) -> None:
        """Try once to have all that wait ratified. The first of them is settled then, or knows more of the versions before it."""
        if time.monotonic() >= self._contended_until:
            return self._try_once()
        coordinated = next(waiting for waiting in self._waiting if not waiting.is_settled).coordinated
        with coordinated.ledger.turn([coordinated.place]):
            self._look(coordinated)
            self._try_once()

    def _look(self, coordinated: CoordinatedStore) -> None:
        """Where others are by now, so that nothing is staged behind what is not the newest. A ledger that does not tell it is
        asked again when it is to ratify."""
        try:
            tail = coordinated.tail()
        except CoordinatorUnavailableError as error:
            _log.info("%s: the ledger did not tell the newest version: %s", coordinated.root, error)
        else:
            self._newest = max(self._newest, -1 if tail is None else tail.version)

    def _try_once(self) -> None:
        batch = [waiting for waiting in self._waiting if not waiting.is_settled][:_MOST_AT_ONCE]
        self._newest = max(self._newest, *(waiting.prepared.version - 1 for waiting in batch))
        placed = _staged(self._placed([waiting for waiting in batch if self._follow_winners(waiting)]))
        if placed:
            self._ratify(placed)

    # ------------------------------------------------------------ behind the winners, and behind each other

    def _follow_winners(self, waiting: _Waiting) -> bool:
        """Bring the commit behind all that is ratified; whether it is."""
        waiting.rounds += 1
        versions = range(waiting.prepared.version, self._newest + 1)
        try:
            if waiting.rounds > waiting.attempts.policy.conflict_attempts:
                raise too_many_attempts(waiting.rounds - 1, waiting.prepared)
            winners = [self._winner(waiting, version) for version in versions]
            if winners:
                waiting.prepared = waiting.attempts.follow(waiting.prepared, winners, waiting.new_paths)
        except DeltaError as error:
            waiting.fail(error)
        except OSError as error:
            waiting.failed("commits that others have made meanwhile cannot be read", error)
        else:
            return True
        return False

    def _winner(self, waiting: _Waiting, version: int) -> WinningCommit:
        winner = self._winners.get(version)
        if winner is None:
            winner = winning_commit(waiting.attempts.store, version)
            self._remember([winner])
        return winner

    def _remember(self, winners: Sequence[WinningCommit]) -> None:
        small = (winner for winner in winners if len(winner.adds) + len(winner.removes) <= _KEPT_FILES)
        self._winners |= {winner.version: winner for winner in small}
        while len(self._winners) > _KEPT_WINNERS:
            del self._winners[min(self._winners)]

    def _placed(self, batch: Sequence[_Waiting]) -> list[_Placed]:
        placed: list[_Placed] = []
        ahead: list[WinningCommit] = []  # of this round
        for waiting in batch:
            try:
                prepared = waiting.prepared
                if ahead:
                    prepared = waiting.attempts.follow(prepared, ahead, waiting.new_paths)
                actions = prepared.actions(waiting.attempts.clock_ms())
                data = commit_bytes(actions)
            except DeltaConcurrentModificationException:
                assert ahead
                continue  # what it may not follow is not ratified yet: the next round tells
            except DeltaError as error:
                waiting.fail(error)
            except OSError as error:
                waiting.failed("rows that others took out of the same files cannot be read", error)
            else:
                placed.append(_Placed(waiting, prepared, actions, data))
                ahead.append(WinningCommit.parse(prepared.version, data))
        return placed

    # ------------------------------------------------------------ ratified at once

    def _ratify(self, placed: Sequence[_Placed]) -> None:
        try:
            self._try_to_ratify(placed, [one.staged for one in placed if one.staged is not None])
        except BaseException:
            _leave_in_doubt(placed)  # those who wait, not the one whose turn it is, are told so
            raise

    def _try_to_ratify(self, placed: Sequence[_Placed], staged: Sequence[Ratified]) -> None:
        """The same commits at the same versions, until the ledger has said what became of them."""
        coordinated, attempts = placed[0].waiting.coordinated, placed[0].waiting.attempts
        for attempt in range(attempts.policy.unsettled_attempts):
            if attempt:
                attempts.sleep(attempts.policy.wait_seconds(attempt, in_doubt=True))
            try:
                coordinated.ratify(staged)
                return self._win(placed, staged)
            except (VersionTakenError, CoordinatorContendedError) as error:
                is_ours = _is_ours(placed[0])  # by a call whose answer was lost
                if is_ours is not None:
                    return self._win(placed, staged) if is_ours else self._lose(placed, error)
            except CoordinatorUnavailableError as error:
                _log.warning("%s: the ledger did not confirm: %s", attempts.store.root, error)
        _leave_in_doubt(placed)

    def _win(self, placed: Sequence[_Placed], staged: Sequence[Ratified]) -> None:
        for one in placed:
            one.waiting.coordinated.took(staged)
            one.waiting.prepared, one.waiting.actions, one.waiting.is_settled = one.prepared, one.actions, True
        self._remember([WinningCommit.parse(one.prepared.version, one.data) for one in placed])
        self._newest = placed[-1].prepared.version

    def _lose(self, placed: Sequence[_Placed], error: VersionTakenError | CoordinatorContendedError) -> None:
        for one in placed:
            one.drop()
        if isinstance(error, CoordinatorContendedError):
            return _lose_to_other_tables(placed, error)
        newest = error.message_parameters["version"]
        if newest is None:  # the ledger does not know the table any more
            for one in placed:
                one.waiting.has_left = one.waiting.is_settled = True
            return
        self._newest, first = newest, placed[0].waiting
        if newest < placed[0].prepared.version - 1:
            self._winners = {version: winner for version, winner in self._winners.items() if version <= newest}
            return _lose_to_older_ledger(placed, newest)
        self._contended_until = time.monotonic() + _CONTENDED_SECONDS
        first.attempts.sleep(first.attempts.policy.wait_seconds(first.rounds))


def _staged(placed: Sequence[_Placed]) -> Sequence[_Placed]:
    """Those that are staged and may be ratified: all, up to the first that was not."""
    steps = [one.stage for one in placed]
    if placed:
        in_threads(steps, _THREADS if placed[0].waiting.coordinated.is_remote else 1, _NAME)
    good = list(takewhile(lambda one: one.staged is not None, placed))
    for one in placed[len(good) :]:
        one.drop()
        if isinstance(one.error, OSError):
            one.waiting.failed("the commit cannot be staged", one.error)
        elif one.error is not None:
            one.waiting.fail(one.error)
    return good


def _is_ours(placed: _Placed) -> bool | None:
    """Whether the commit is a version; None where the store does not say."""
    try:
        return winning_commit(placed.waiting.attempts.store, placed.prepared.version).txn_id == placed.prepared.txn_id
    except FileNotFoundError:
        return False
    except OSError:
        return None


def _lose_to_other_tables(placed: Sequence[_Placed], error: CoordinatorContendedError) -> None:
    """The versions are free still. What has lost so too often is not tried again: others wait for their turn."""
    for one in placed:
        one.waiting.contended += 1
        if one.waiting.contended >= _CONTENDED_ROUNDS:
            one.waiting.fail(error)


def _lose_to_older_ledger(placed: Sequence[_Placed], newest: int) -> None:
    """It has ratified versions that it does not know any more."""
    first = placed[0]
    coordinated, known = first.waiting.coordinated, first.prepared.version - 1
    error = CorruptTableError(
        f"The coordinator {coordinated.ledger.shown} knows the table at {coordinated.root} up to version {newest}, and it had "
        f"ratified version {known}. Nothing was committed. Was the ledger restored from a backup, it is older than the table: "
        "have it rebuilt in an empty database (rebuild_ledger, of delta_py.repair.rebuild_ledger). Were the versions given up, "
        "run the operation again.",
        version=known,
    )
    for one in placed:
        one.waiting.fail(error)


def _leave_in_doubt(placed: Sequence[_Placed]) -> None:
    for one in placed:
        if not one.waiting.is_settled:
            one.waiting.fail(unknown_outcome(one.waiting.attempts.store, one.prepared))


@lru_cache(maxsize=1024)
def _committer_of(ledger: str, place: str, table_id: str) -> _Committer:
    return _Committer()


os.register_at_fork(after_in_child=_committer_of.cache_clear)  # whose locks other threads may have held
