"""Maintenance of a table's log on request. Commits do the same work automatically, each a part of it.

    write_checksum(snapshot)            # the version checksum of a version that has none
    compact_log(snapshot)               # the commits since the last checkpoint as one file
    clean_log(store)                    # the part of the log that has expired

None of it changes the contents of a version; if the process dies, the log still reads as before. commit/post_commit.py has the
checkpoint.
Protocol: Version Checksum File; Log Compaction Files; Metadata Cleanup.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from delta_py.checkpoint import cleanup
from delta_py.commit.post_commit import compute_checksum
from delta_py.errors import InvalidOptionError, LogFileNotFoundError, VersionNotFoundError
from delta_py.log.catalog_contract import Maintenance, refuse_forbidden
from delta_py.log.commit_reader import read_actions
from delta_py.log.log_compaction import compact
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import list_log
from delta_py.protocol.actions import Action
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore


def write_checksum(snapshot: Snapshot) -> bool:
    """Write the version checksum of the snapshot's version from its state. With it, readers load the version faster and notice
    damage.

    Returns False if the version has one that is not empty; it stays unchanged. Raises UnsupportedTableFeatureError for a table
    that may not be written to, CorruptTableError when its state cannot be rebuilt, OSError.
    """
    writer = LogWriter(snapshot.store, snapshot.config)
    checksum_file = snapshot.segment.checksum
    if checksum_file is not None and checksum_file.size_bytes:
        return False
    writer.replace_checksum(snapshot.version, compute_checksum(snapshot, _read_actions(snapshot)).to_bytes())
    return True


def _read_actions(snapshot: Snapshot) -> Sequence[Action]:
    """The actions of the version's own commit; none if the commit does not exist any more."""
    try:
        return read_actions(snapshot.store, snapshot.version)
    except LogFileNotFoundError:  # the version exists only in a checkpoint
        return ()


def compact_log(snapshot: Snapshot, start: int | None = None, end: int | None = None) -> tuple[int, int] | None:
    """Write the commits of a range of versions as one file, so that loading a version opens fewer files.

    start, end: both included; None for those after the last checkpoint up to the snapshot's version. Returns the range; None
    if there is nothing to gain: a single commit, or commits of more bytes than are read in one piece.
    Raises InvalidOptionError for an invalid range, VersionNotFoundError for commits that the log does not have; else as
    write_checksum.
    """
    writer = LogWriter(snapshot.store, snapshot.config)
    checkpoint = snapshot.segment.checkpoint
    first = start if start is not None else 0 if checkpoint is None else checkpoint.version + 1
    last = snapshot.version if end is None else end
    if start is not None and end is not None and not 0 <= start < end:
        raise InvalidOptionError(
            f"The versions {start} to {end} are no range of at least two commits. Nothing was changed. Give the smaller one "
            "first.",
            option="start",
        )
    if first >= last:
        return None
    commits = list_log(snapshot.store, first, last).commits
    missing_version = next((version for version in range(first, last + 1) if version not in commits), None)
    if missing_version is not None:
        raise VersionNotFoundError(
            f"The log of the table at {snapshot.table_root} has no commit of version {missing_version}, so the "
            f"versions {first} to {last} cannot be compacted. Nothing was changed. Give versions that the history shows.",
            version=missing_version,
        )
    data = compact(snapshot.store, first, last)
    if data is None:
        return None
    writer.put_compaction(first, last, data)
    return first, last


def clean_log(store: ObjectStore, *, now_ms: int | None = None) -> int:
    """Delete log files that no version within delta.logRetentionDuration needs; returns the number of deleted files: 0 if
    delta.enableExpiredLogCleanup is false. The cleanup after a commit stops after some seconds; this one has no time limit.

    now_ms: ms since 1970, for tests. Raises as write_checksum. Files that were deleted before an error were not needed.
    """
    config = Snapshot.load(store).config
    refuse_forbidden(store, Maintenance.LOG_CLEANUP, "Log cleanup of", "Nothing was deleted.")
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    writer = LogWriter(store, config)
    # The clock stands still, so that the cleanup has no time limit.
    return cleanup.clean_log(store, writer, config, now_ms=now_ms, clock=lambda: 0.0).deleted_count
