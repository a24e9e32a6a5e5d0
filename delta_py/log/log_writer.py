"""LogWriter: the only object that writes or deletes under `_delta_log`.

A commit is written only if its name is free. If the store's reply does not show whether an attempt succeeded, the writer reads
the log itself: our commit contains our txnId.
Several writers may write checkpoints, compactions and `_last_checkpoint` at once. Each file is stored as a whole, and each
writer's version of it is valid.
Protocol: Creation of New Log Entries; Delta Log Entries; Commit Provenance Information; Last Checkpoint File.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import orjson

from delta_py.errors import CorruptTableError, StorageError, UnsupportedOperationError
from delta_py.log.coordination import name_group, require_coordinator
from delta_py.log.last_checkpoint import LAST_CHECKPOINT_PATH, json_checksum, read_last_checkpoint
from delta_py.log.last_vacuum import LAST_VACUUM_PATH, last_vacuum_text
from delta_py.log.limits import beyond_limit, limit_bytes
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.actions import Action, CommitInfo, action_to_line, parse_action
from delta_py.protocol.paths import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    LogKind,
    checksum_file_name,
    commit_file_name,
    compacted_file_name,
    parse_log_name,
)
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.storage.copying import copy_object
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")

ASIDE = ".broken"
"""The suffix of the names of files that a repair has set aside."""


class Outcome(Enum):
    """The result of an attempt to commit."""

    WON = "won"  # the version is ours
    LOST = "lost"  # the version is another writer's
    UNKNOWN = "unknown"  # the store neither confirmed nor refused, and the version does not exist (yet)


class LogWriter:
    """Writes to one table's log. config: the protocol and metadata that hold after the commit.

    The constructor raises UnsupportedTableFeatureError if this writer must not write to the table.
    """

    def __init__(self, store: ObjectStore, config: TableConfig) -> None:
        config.require(Operation.WRITE)
        require_coordinator(store, config)
        self._store = store

    @property
    def root(self) -> str:
        """The table's root."""
        return self._store.root

    def put_commit(self, version: int, actions: Iterable[Action], describe: Callable[[], bytes] | None = None) -> Outcome:
        """Try to commit the actions as version `version` of the table, with one put-if-absent.

        In a multi-table transaction, the actions are not committed now: they become a proposed commit, which the transaction
        commits at its end. describe: returns the description that the transaction stores with the proposed commit
        (commit/proposed_form.py). It is called only in such a transaction, and is required there.
        The commitInfo among the actions should have a txnId that no other attempt uses. It identifies an attempt whose
        confirmation was lost. Raises StorageError if the store is sure that nothing was written and never will be, and
        UnsupportedOperationError, before anything is written, if no reader would accept an action.
        """
        all_actions = tuple(actions)
        path = f"{LOG_DIRECTORY}/{commit_file_name(version)}"
        coordinated = coordination_of(self._store)
        if coordinated is not None and coordinated.transaction is not None:
            all_actions = name_group(all_actions, {"transactionId": coordinated.transaction})
        data = commit_bytes(all_actions)
        try:
            if coordinated is not None and coordinated.transaction is not None:
                assert describe is not None
                coordinated.propose(version, data, describe())
            else:
                self._store.put_if_absent(path, data)
        except FileExistsError:
            # It may still be our commit, if the store repeated a request whose reply was lost. A commit that cannot be read
            # (None) counts as another writer's, because the store has refused ours.
            return Outcome.WON if self._has_txn_id(path, _txn_id(all_actions)) else Outcome.LOST
        except OSError as error:
            _log.warning("%s: the store did not confirm commit %d: %s", self.root, version, error)
            return self._outcome_from_log(path, _txn_id(all_actions))
        return Outcome.WON

    def put_checksum(self, version: int, data: bytes) -> None:
        """Write the version checksum of a commit, unless it has one. Raises OSError.
        Protocol: Version Checksum File."""
        with contextlib.suppress(FileExistsError):
            # A machine failure may leave an empty file. Readers ignore it.
            self._store.put_if_absent(f"{LOG_DIRECTORY}/{checksum_file_name(version)}", data, durably=False)

    # ------------------------------------------------------------ optional files

    def put_checkpoint(self, name: str, data: bytes) -> None:
        """Write a checkpoint file into `_delta_log`. It replaces a file of the same name. Raises OSError."""
        log_name = parse_log_name(name)
        assert log_name is not None and log_name.is_checkpoint, name
        self._store.put(f"{LOG_DIRECTORY}/{name}", data)

    def put_sidecar(self, name: str, data: bytes) -> None:
        """Write a sidecar of a checkpoint under a name that nobody else uses. Raises OSError. Protocol: Sidecar Files."""
        self._store.put(f"{SIDECAR_DIRECTORY}/{name}", data)

    def put_compaction(self, start: int, end: int, data: bytes) -> None:
        """Write the compaction of the commits start to end, unless it exists. Raises OSError.
        Protocol: Log Compaction Files."""
        with contextlib.suppress(FileExistsError):
            self._store.put_if_absent(f"{LOG_DIRECTORY}/{compacted_file_name(start, end)}", data)

    def put_last_checkpoint(self, version: int, fields: Mapping[str, Any]) -> None:
        """Point `_last_checkpoint` to a checkpoint, unless it points to a later one. Raises OSError.

        fields: the fields of the file except version and checksum. If two writers write at once, the file may still name the
        older checkpoint. That only makes a listing longer.
        Protocol: Last Checkpoint File Schema; JSON checksum.
        """
        last_checkpoint = read_last_checkpoint(self._store)
        if last_checkpoint is not None and last_checkpoint.version > version:
            return
        value = {"version": version, **fields}
        self._store.put(LAST_CHECKPOINT_PATH, orjson.dumps({**value, "checksum": json_checksum(value)}))

    def put_last_vacuum(self, version: int) -> None:
        """Record the last version whose removed files VACUUM has processed. Raises OSError."""
        self._store.put(LAST_VACUUM_PATH, last_vacuum_text(version))

    # ------------------------------------------------------------ repairs

    def replace_checksum(self, version: int, data: bytes) -> None:
        """Write the version checksum of a commit. It replaces a wrong one. Raises OSError.
        Protocol: Version Checksum File."""
        self._store.put(f"{LOG_DIRECTORY}/{checksum_file_name(version)}", data)

    def forget_last_checkpoint(self) -> None:
        """Delete a wrong `_last_checkpoint`. Without it, readers list the log. Raises OSError."""
        self._store.delete(LAST_CHECKPOINT_PATH)

    def set_aside(self, path: str) -> None:
        """Rename a compaction or a checkpoint file, so that readers ignore it. If it raises OSError, the file may have both
        names."""
        name = parse_log_name(path.rpartition("/")[2])
        assert name is not None and (name.is_checkpoint or name.kind is LogKind.COMPACTION), path
        copy_object(self._store, path, self._store, f"{path}{ASIDE}")
        self.delete(path)

    def delete(self, path: str) -> None:
        """Delete a commit, checksum, checkpoint, compaction or sidecar. Raises OSError. Protocol: Metadata Cleanup."""
        directory, _, name = path.rpartition("/")
        log_name = parse_log_name(name)
        in_log = directory == LOG_DIRECTORY and log_name is not None and log_name.kind is not LogKind.LAST_CHECKPOINT
        assert in_log or (directory == SIDECAR_DIRECTORY and name.endswith(".parquet")), path
        self._store.delete(path)

    # ------------------------------------------------------------ who wrote a commit

    def _outcome_from_log(self, path: str, txn_id: str | None) -> Outcome:
        """WON if the commit at the path has the txnId, LOST if it has another one. UNKNOWN if there is no commit, if it cannot be
        read, or if our commit has no txnId by which it could be recognized."""
        has_txn_id = self._has_txn_id(path, txn_id)
        if has_txn_id is None or (has_txn_id is False and txn_id is None):
            return Outcome.UNKNOWN
        return Outcome.WON if has_txn_id else Outcome.LOST

    def _has_txn_id(self, path: str, txn_id: str | None) -> bool | None:
        """Whether the commit at `path` has the txnId; None if there is no commit, or it cannot be read."""
        try:
            data = self._store.read(path)
        except FileNotFoundError:
            return None
        except (OSError, StorageError) as error:
            _log.warning("%s: %s cannot be read to see whose commit it is: %s", self.root, path, error)
            return None
        return txn_id is not None and any(_line_txn_id(line) == txn_id for line in data.splitlines() if b'"commitInfo"' in line)


def commit_bytes(actions: Iterable[Action]) -> bytes:
    """The content of a commit file. Raises UnsupportedOperationError if no reader would accept it."""
    lines = [action_to_line(action) + b"\n" for action in actions]
    if max(map(len, lines), default=0) > limit_bytes():
        raise UnsupportedOperationError(
            f"No reader could read the commit: {beyond_limit('a line of it')}. Nothing was committed."
        )
    return b"".join(lines)


def _txn_id(actions: tuple[Action, ...]) -> str | None:
    return next((action.txn_id for action in actions if isinstance(action, CommitInfo)), None)


def _line_txn_id(line: bytes) -> str | None:
    """The txnId of a line with a commitInfo action; None if it has none."""
    try:
        action = parse_action(line)
    except CorruptTableError:
        return None  # another writer wrote this line
    return action.txn_id if isinstance(action, CommitInfo) else None
