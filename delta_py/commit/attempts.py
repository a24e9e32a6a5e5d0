"""How a prepared commit becomes a version of its table: it is tried until its outcome is certain.

    done, actions = Attempts(store, RetryPolicy.of(store)).put_until_certain(writer, prepared, new_paths)

An attempt is a put-if-absent. After a lost race, the commits since then are read and checked, and our commit is rebased on them
(conflicts.rebase). If a confirmation was lost, the txnId in our own commitInfo shows that the commit succeeded.
Protocol: Creation of New Log Entries; Commit Provenance Information.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

from delta_py.backoff import Backoff
from delta_py.commit.conflicts import rebase
from delta_py.commit.prepared import PreparedCommit, WinningCommit
from delta_py.commit.proposed_form import to_json
from delta_py.commit.shared_rows import merge_shared_vectors
from delta_py.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    CorruptTableError,
    DeltaError,
    StorageError,
)
from delta_py.log.log_writer import LogWriter, Outcome
from delta_py.protocol.actions import Action
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a commit is tried, and how long the pauses between attempts are.

    conflict_attempts: how many versions are tried before the commit fails because other writers took all of them.
    unsettled_attempts: how many times in a row the outcome may be unknown before the commit fails with CommitOutcomeUnknownError.
    first_wait_seconds: the pause with which Backoff starts. Pauses are at most longest_wait_seconds, or longest_doubt_seconds
    while the outcome is unknown.
    """

    conflict_attempts: int = 1000
    unsettled_attempts: int = 10
    first_wait_seconds: float = 0.004
    longest_wait_seconds: float = 0.03
    longest_doubt_seconds: float = 0.03

    @classmethod
    def of(cls, store: ObjectStore) -> Self:
        """The policy for a store. A remote store that throttles, or a network that fails, needs longer to recover than a disk."""
        return cls(unsettled_attempts=14, longest_doubt_seconds=8.0) if store.is_remote else cls()

    def wait_seconds(self, attempt: int, *, in_doubt: bool = False) -> float:
        """How long to wait before an attempt. attempt: 1 for the first repetition. in_doubt: the outcome of an earlier attempt is
        unknown."""
        longest = self.longest_doubt_seconds if in_doubt else self.longest_wait_seconds
        return Backoff(self.first_wait_seconds, longest).wait_seconds(attempt)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Makes prepared commits versions of one table. store: the table's store. clock_ms: returns ms since 1970. sleep: waits for a
    number of seconds. Tests and simulations replace both."""

    store: ObjectStore
    policy: RetryPolicy
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep

    def put_until_certain(
        self, writer: LogWriter, prepared: PreparedCommit, new_paths: list[str]
    ) -> tuple[PreparedCommit, list[Action]]:
        """Return the commit at the version that it got, and its actions. The actions change only with the version: a repeated
        attempt writes the same actions, so it does not matter which of the attempts the store carried out.

        new_paths: files that an attempt creates are added to this list.
        """
        # unknown_count: how many attempts in a row had an unknown outcome, all at the same version and with the same actions.
        actions, unknown_count = prepared.actions(self.clock_ms()), 0
        for attempt in range(self.policy.conflict_attempts):
            if attempt:
                self.sleep(self.policy.wait_seconds(unknown_count or attempt, in_doubt=unknown_count > 0))
            try:
                outcome = writer.put_commit(prepared.version, actions, partial(to_json, prepared))
            except DeltaError as error:
                if unknown_count:  # an earlier attempt at this version may still appear
                    raise unknown_outcome_error(self.store, prepared) from error
                raise
            winners = [] if outcome is Outcome.WON else self._winners(prepared)
            # If the first winner has our own txnId, an earlier attempt has succeeded, although its confirmation was lost.
            if outcome is Outcome.WON or (winners and winners[0].txn_id == prepared.txn_id):
                return prepared, actions
            if winners:  # the race for this version is lost
                prepared = self.rebase_on(prepared, winners, new_paths)
                actions, unknown_count = prepared.actions(self.clock_ms()), 0
                continue
            # No commit of this version can be read: neither ours nor another one.
            unknown_count += 1
            if unknown_count >= self.policy.unsettled_attempts:
                raise unknown_outcome_error(self.store, prepared)
        raise too_many_attempts_error(self.policy.conflict_attempts, prepared)

    def rebase_on(self, prepared: PreparedCommit, winners: list[WinningCommit], new_paths: list[str]) -> PreparedCommit:
        """Rebase our commit on the winners: the commits of other writers that took the versions which we tried. Raises as rebase.

        It must be certain that our commit did not become a version. new_paths: files that this creates are added to this list.
        """
        rebased = rebase(prepared, winners)
        if not rebased.shared:
            return rebased
        merged, path = merge_shared_vectors(self.store, rebased)
        new_paths.extend([] if path is None else [path])
        return merged

    def _winners(self, prepared: PreparedCommit) -> list[WinningCommit]:
        """Read the commits from the version that we tried on; [] if there are none or the store does not answer.

        The first one may be our own, which an earlier attempt wrote: then it has our txnId. The caller checks that.
        """
        winners: list[WinningCommit] = []
        while True:
            version = prepared.version + len(winners)
            try:
                winners.append(read_winning_commit(self.store, version))
            except FileNotFoundError:
                return winners
            except (OSError, StorageError) as error:
                _log.warning("commit %s cannot be read while ours is retried: %s", version, error)
                return winners


def read_winning_commit(store: ObjectStore, version: int) -> WinningCommit:
    """Read the commit of a version that another writer took in the meantime. Raises FileNotFoundError if the version does not
    exist, OSError, StorageError, and CorruptTableError for a commit that breaks the protocol."""
    data = store.read(f"{LOG_DIRECTORY}/{commit_file_name(version)}")
    try:
        return WinningCommit.parse(version, data)
    except CorruptTableError as error:
        raise CorruptTableError(
            f"Version {version} of the table at {store.root}, which another writer committed, cannot be read: "
            f"{error.message} What it says is unknown, so our commit cannot follow it. The data files are kept.",
            version=version,
        ) from error


def unknown_outcome_error(store: ObjectStore, prepared: PreparedCommit) -> CommitOutcomeUnknownError:
    """The error for a commit that may or may not have become a version."""
    return CommitOutcomeUnknownError(
        f"The store neither confirmed nor refused version {prepared.version} of the table at {store.root}, and does not "
        f"show it. The commit may still appear. The data files are kept. Look into the history for the txnId {prepared.txn_id} "
        "before you run the operation again: if it is there, the operation is complete.",
        version=prepared.version,
        txn_id=prepared.txn_id,
    )


def too_many_attempts_error(attempts: int, prepared: PreparedCommit) -> ConcurrentWriteException:
    """The error for a commit that lost every race. attempts: how many versions were tried."""
    return ConcurrentWriteException(
        f"{attempts} versions were tried up to {prepared.version - 1}; other writers took each of them. "
        "Nothing of this operation was committed. Run it again when fewer writers are at work.",
        error_class="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        sql_state="40000",
        attempts=attempts,
    )
