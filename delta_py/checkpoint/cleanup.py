"""Log cleanup: delete the log files that no retained version needs.

The first retained version is the newest commit that is as old as `delta.logRetentionDuration`. The cutoff is rounded down to
midnight UTC, so that one cleanup a day is enough. Cleanup takes the newest verified checkpoint at or before that commit and
deletes everything before it, oldest first. If cleanup is interrupted, every retained version can still be rebuilt, and the next
cleanup continues. A checkpoint is verified if it was compared with the other records of its version (checkpoint_proof.py).
Protocol: Metadata Cleanup.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from delta_py.checkpoint.checkpoint_proof import fault_of
from delta_py.errors import CorruptTableError
from delta_py.log.catalog_contract import Maintenance, is_forbidden
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import CommitClock
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import Checkpoint, list_log, load_segment, log_file
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.features import PROTECTED_BEFORE
from delta_py.protocol.intervals import LOG_RETENTION, retention_ms
from delta_py.protocol.paths import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    STAGED_DIRECTORY,
    LogKind,
    classic_checkpoint_name,
    parse_log_name,
    version_prefix,
)
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectInfo, ObjectStore

_log = logging.getLogger("delta_py")

_DAY_MS, _MINUTE_MS = 86_400_000, 60_000
# How old a staged commit must be to be deleted. A multi-table transaction that ends later writes its staged commits again.
_STAGED_RETENTION_MS = 7 * _DAY_MS
# How long one cleanup may delete; the next cleanup deletes the remaining files.
BUDGET_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CleanedLog:
    """The result of a cleanup. first_version: the oldest retained version; None if there was nothing to delete."""

    first_version: int | None = None
    deleted_count: int = 0


def clean_log(
    store: ObjectStore,
    writer: LogWriter,
    config: TableConfig,
    *,
    now_ms: int,
    clock: Callable[[], float] = time.monotonic,
    retention_override_ms: int | None = None,
) -> CleanedLog:
    """Delete the expired files of the log. config: of the newest version. clock: seconds, for BUDGET_SECONDS.
    retention_override_ms: retain versions for this time, rounded to the minute, and ignore the table's properties; None uses
    the properties.

    Raises OSError and CorruptTableError. Files that were deleted before the error were not needed.
    """
    if is_forbidden(store, Maintenance.LOG_CLEANUP):
        return CleanedLog()
    _delete_stale_staged(store, now_ms)
    if retention_override_ms is None and not config.properties.boolean("delta.enableExpiredLogCleanup", default=True):
        return CleanedLog()
    cutoff_ms = _midnight_before(now_ms - retention_ms(config.properties, LOG_RETENTION))
    if retention_override_ms is not None:
        cutoff_ms = (now_ms - retention_override_ms) // _MINUTE_MS * _MINUTE_MS
    newest_expired = _newest_commit_until(store, config, cutoff_ms)
    checkpoint = None if newest_expired is None else _newest_verified_checkpoint(store, newest_expired, clock)
    # The feature checkpointProtection forbids a cleanup that ends before this version.
    if checkpoint is None or checkpoint.version < config.properties.integer(PROTECTED_BEFORE, 0):
        return CleanedLog()
    _put_v2_under_classic_name(store, writer)
    deadline = clock() + BUDGET_SECONDS
    deleted_count = 0
    has_deleted_checkpoints = False
    for info, kind in _files_to_delete(store, checkpoint.version):
        if clock() > deadline:
            break
        writer.delete(info.path)
        deleted_count += 1
        has_deleted_checkpoints |= kind in (LogKind.CHECKPOINT_V2, LogKind.CHECKPOINT_CLASSIC)
    # A new sidecar may belong to a checkpoint that is still being written. So only sidecars are deleted that are older than the
    # cutoff and were written before yesterday's last midnight.
    if has_deleted_checkpoints and config.feature("v2Checkpoint"):
        deleted_count += _delete_unused_sidecars(store, writer, min(cutoff_ms, _midnight_before(now_ms - _DAY_MS)))
    return CleanedLog(checkpoint.version, deleted_count)


def _delete_stale_staged(store: ObjectStore, now_ms: int) -> None:
    """Delete staged commits of writers that died before ratification, and of abandoned transactions.

    A staged commit is a file that a writer has stored and the table's coordinator has not ratified yet. Does nothing if the table
    has no coordinator, or inside of a multi-table transaction.
    """
    coordinated = coordination_of(store)
    if coordinated is None or coordinated.transaction is not None:
        return
    tail = coordinated.tail()
    # The paths of staged commits that are ratified. They are versions of the table, and perhaps not published yet.
    ratified_paths = set() if tail is None else {f"{STAGED_DIRECTORY}/{commit.name}" for commit in tail.commits}
    for info in list(store.list_from(STAGED_DIRECTORY)):
        if info.path not in ratified_paths and info.modification_time_ms < now_ms - _STAGED_RETENTION_MS:
            store.delete(info.path)


def _midnight_before(time_ms: int) -> int:
    """The last midnight UTC at or before a time; ms since 1970."""
    return time_ms - time_ms % _DAY_MS


def _newest_commit_until(store: ObjectStore, config: TableConfig, cutoff_ms: int) -> int | None:
    """The newest version committed at or before a time; None if there is none. Only the old end of the log is read."""
    commit_clock, version = CommitClock(store, config), None
    for info in store.list_from(LOG_DIRECTORY, version_prefix(0)):
        name = parse_log_name(info.path.rpartition("/")[2])
        if name is None or name.kind is not LogKind.COMMIT:
            continue
        if commit_clock.time_of_next(log_file(info, name)) > cutoff_ms:
            break
        version = name.version
    return version


def _newest_verified_checkpoint(store: ObjectStore, newest: int, clock: Callable[[], float]) -> Checkpoint | None:
    """The newest checkpoint at or before a version whose preceding log may be deleted (checkpoint_proof.py).

    None if there is no such checkpoint, or no log before it.
    """
    listing = list_log(store, 0, newest)
    for checkpoint in listing.checkpoints:
        if checkpoint.version not in listing.commits:
            continue  # without its own commit, the checkpoint's version cannot be read, so it cannot be the first retained one
        if next(_files_to_delete(store, checkpoint.version), None) is None:
            return None  # nothing could be deleted, and an older checkpoint would not change that
        try:
            fault = fault_of(store, checkpoint, listing, clock=clock)
        except CorruptTableError as error:
            fault = error.message
        if fault is None:
            return checkpoint
        _log.warning("%s: log cleanup does not rely on the checkpoint of version %d: %s", store.root, checkpoint.version, fault)
    return None


def _put_v2_under_classic_name(store: ObjectStore, writer: LogWriter) -> None:
    """Store the newest checkpoint under a classic name too, if it is V2, before commits are deleted.

    Clients that do not know V2 checkpoints then read the protocol in that file, and report that they do not support it. Without
    the file, they would only report that commits are missing, because cleanup has deleted them.
    Protocol: Handling Backward compatibility while moving to UUID-named v2 Checkpoints.
    """
    newest = load_segment(store).checkpoint
    if newest is None or newest.kind is not LogKind.CHECKPOINT_V2 or not newest.files[0].path.endswith(".parquet"):
        return
    name = classic_checkpoint_name(newest.version)
    if any(info.path == f"{LOG_DIRECTORY}/{name}" for info in store.list_from(LOG_DIRECTORY, name)):
        return
    writer.put_checkpoint(name, store.read(newest.files[0].path))


def _files_to_delete(store: ObjectStore, first_retained: int) -> Iterator[tuple[ObjectInfo, LogKind]]:
    """The log files that can be deleted, and their kinds, oldest first. first_retained: the version of the checkpoint with which
    the retained log begins. These are all files of earlier versions, and compactions that begin at this version, because they
    contain commits that the checkpoint replaces."""
    for info in store.list_from(LOG_DIRECTORY, version_prefix(0)):
        name = parse_log_name(info.path.rpartition("/")[2])
        if name is None or name.kind is LogKind.LAST_CHECKPOINT:
            continue
        if name.version < first_retained or (name.version == first_retained and name.kind is LogKind.COMPACTION):
            yield info, name.kind
        elif name.version > first_retained:
            return


def _delete_unused_sidecars(store: ObjectStore, writer: LogWriter, before_ms: int) -> int:
    """Delete sidecars written before `before_ms` (since 1970) that no checkpoint names, and return their number.

    Deletes none if any checkpoint cannot be read.
    """
    used_paths: set[str] = set()
    for checkpoint in list_log(store, 0).checkpoints:
        try:
            used_paths.update(
                sidecar.path for sidecar in CheckpointReader(checkpoint, CommitReader(store, uses_cache=False)).sidecars
            )
        except CorruptTableError as error:
            _log.warning(
                "%s: no sidecar is deleted, because a checkpoint that may use it cannot be read: %s", store.root, error.message
            )
            return 0
    unused_sidecars = [
        info
        for info in store.list_from(SIDECAR_DIRECTORY)
        if info.path.endswith(".parquet") and info.modification_time_ms < before_ms and info.path not in used_paths
    ]
    for info in unused_sidecars:
        writer.delete(info.path)
    return len(unused_sidecars)
