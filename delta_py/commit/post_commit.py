"""The work after a commit: version checksum, checkpoint, log compaction, log cleanup, and symlink manifests if the table has them
enabled.

The commit already stands. A failure here is only logged: the next commit makes up for it. Most commits write only the checksum,
which is derived from the previous one. Every delta.checkpointInterval-th commit writes a checkpoint and then cleans the log.

PYDELTA_POST_COMMIT_ERRORS is for tests: with `all` every failure is raised, with `mistakes` only those that neither storage nor
data can cause. It is read at each commit, so it also applies in worker processes.
Protocol: Version Checksum File; Checkpoints; Log Compaction Files; Metadata Cleanup.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.commit_settings import current_settings
from delta_py.errors import CorruptTableError, DeltaError
from delta_py.log.checksum import VersionChecksum, read_checksum_of
from delta_py.log.commit_reader import read_actions
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import LogSegment, load_segment
from delta_py.object_stores.table_store import TableStore
from delta_py.protocol.actions import Action, CommitInfo
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore

# Modules that not every process needs are imported in the functions that use them: each process pays for its imports.
if TYPE_CHECKING:
    from delta_py.checkpoint.checkpoint_file import WrittenCheckpoint

_log = logging.getLogger("delta_py")

_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
_CHECKPOINT_INTERVAL = 10  # the default of delta.checkpointInterval
# How many versions back a checksum is searched for: concurrent writers may still be writing the checksums of the last few
# commits.
_CHECKSUM_LOOK_BACK = 4
# If the checkpoint and the log files after it are no larger than this, the log is replayed to compute a checksum.
_SMALL_LOG_BYTES = 1024 * 1024


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _timestamp_ms(actions: Sequence[Action], clock_ms: Callable[[], int]) -> int:
    """The time of the commit, ms since 1970: its in-commit timestamp, or else its timestamp, or else the time now."""
    info = next((action.values for action in actions if isinstance(action, CommitInfo)), {})
    return int(info.get("inCommitTimestamp") or info.get("timestamp") or clock_ms())


def run_post_commit(
    store: ObjectStore,
    writer: LogWriter,
    config: TableConfig,
    version: int,
    actions: Sequence[Action],
    *,
    clock_ms: Callable[[], int] = _now_ms,
    before: Snapshot | None = None,
    checksum: VersionChecksum | None = None,
) -> None:
    """Do the work after a commit. config: of the new version; actions: as they were committed. before: the snapshot of the
    previous version, if it is available. checksum: of the previous version, if it is known; its protocol and metadata are not
    used.

    Raises nothing, unless PYDELTA_POST_COMMIT_ERRORS is set.
    """
    from delta_py.log.log_compaction import compaction_range

    # An external table of a catalog: the catalog does not ratify the commit, but is told the new version.
    if isinstance(store, TableStore) and store.external_table is not None:
        with logging_failures(store, version, "is not reported to its catalog"):
            store.external_table.report_version(version, _timestamp_ms(actions, clock_ms))
    with logging_failures(store, version, "has no version checksum"):
        # The cheapest way that is possible: from the known checksum, from a stored one, or from the log.
        derived = None if checksum is None else checksum.after_commit(config, actions)
        derived = (
            derived
            or _derive_checksum(store, config, version, actions, before)
            or _replay_for_checksum(store, version, actions, before)
        )
        if derived is not None:
            writer.put_checksum(version, derived.to_bytes())
    interval = _CHECKPOINT_INTERVAL
    with logging_failures(store, version, "has no checkpoint"):
        interval = checkpoint_interval(config)
        settings = current_settings()
        if version > 0 and version % interval == 0 and settings.can_checkpoint:
            _write_checkpoint(store, writer, version, actions, clock_ms())
            with logging_failures(store, version, "was followed by no log cleanup"):
                if settings.can_clean_log:
                    _clean_log(store, writer, config, clock_ms())
    compacted = compaction_range(version, interval)
    if compacted is not None:
        with logging_failures(store, version, "has no log compaction"):
            _write_compaction(store, writer, *compacted)
    with logging_failures(store, version, "its symlink manifests are not up to date (generate writes them)"):
        if config.properties.boolean(_MANIFESTS):
            from delta_py.commit.symlink_manifests import update_manifests

            update_manifests(store, config, actions)


def checkpoint(snapshot: Snapshot, *, clock_ms: Callable[[], int] = _now_ms) -> int:
    """Write a checkpoint of the snapshot's version and clean the log. Returns the number of files in the checkpoint.

    Raises UnsupportedTableFeatureError if the table may not be written to, CorruptTableError if its state cannot be rebuilt,
    OSError if the checkpoint cannot be stored. A failed cleanup is never raised.
    """
    from delta_py.checkpoint.checkpoint import write_checkpoint

    writer = LogWriter(snapshot.store, snapshot.config)
    written = write_checkpoint(snapshot.store, writer, snapshot.segment, now_ms=clock_ms())
    with logging_failures(snapshot.store, snapshot.version, "was followed by no log cleanup"):
        # The newest version determines how long the log is retained, and the snapshot may be an older one.
        _clean_log(snapshot.store, writer, Snapshot.load(snapshot.store).config, clock_ms())
    return written.file_count


@contextmanager
def logging_failures(store: ObjectStore, version: int, what: str) -> Iterator[None]:
    """Log a failure of the body instead of raising it, because the commit already stands. what: the consequence, for the log, as
    in `has no checkpoint`."""
    raised = os.environ.get("PYDELTA_POST_COMMIT_ERRORS")
    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        if raised == "all":
            raise
        _log.warning("%s: version %d is committed, but %s: %s", store.root, version, what, error)
    except Exception:
        if raised in ("all", "mistakes"):
            raise
        _log.exception("%s: version %d is committed, but %s, by a mistake in pydelta", store.root, version, what)


def checkpoint_interval(config: TableConfig) -> int:
    """How many versions are from one checkpoint to the next (delta.checkpointInterval). Raises CorruptTableError if it is less
    than 1."""
    name = "delta.checkpointInterval"
    interval = config.properties.integer(name, _CHECKPOINT_INTERVAL)
    if interval < 1:
        raise CorruptTableError(f"Table property {name} is {interval}; it must be a number from 1 on.", property=name)
    return interval


# ---------------------------------------------------------------- checksum


def _derive_checksum(
    store: ObjectStore, config: TableConfig, version: int, actions: Sequence[Action], previous_snapshot: Snapshot | None
) -> VersionChecksum | None:
    """Derive the checksum from the previous version and the commit's own actions; None if they do not determine it."""
    # A commit of 0 bytes has lost its actions, and its checksum may describe them.
    if previous_snapshot is not None and previous_snapshot.segment.last_commit.size_bytes == 0:
        return None
    checksum = _empty_checksum(config) if version == 0 else _checksum_before(store, config, version, previous_snapshot)
    return None if checksum is None else checksum.after_commit(config, actions)


def _checksum_before(
    store: ObjectStore, config: TableConfig, version: int, previous_snapshot: Snapshot | None
) -> VersionChecksum | None:
    """The checksum of the previous version. Without one, it is computed from the checksum of one of the last few versions, or
    from the log if that is small."""
    if previous_snapshot is None:
        return _derive_from_older(store, config, version - 1, version)
    if previous_snapshot.checksum is not None:
        return previous_snapshot.checksum
    # The newest version with a checksum; None if no version since the last checkpoint has one, so that a search would be in vain.
    newest = previous_snapshot.segment.last_checksum_version
    checksum = None if newest is None else _derive_from_older(store, config, newest, version)
    return compute_checksum(previous_snapshot) if checksum is None and _is_small_log(previous_snapshot.segment) else checksum


def _derive_from_older(store: ObjectStore, config: TableConfig, newest: int, version: int) -> VersionChecksum | None:
    """The checksum of version - 1, computed from the newest checksum of the last few versions and the commits since then. newest:
    the version at which the search starts; it continues with older versions. None if there is no such checksum, or the commits do
    not determine the result."""
    for older_version in range(newest, max(version - 1 - _CHECKSUM_LOOK_BACK, -1), -1):
        checksum = read_checksum_of(store, older_version)
        if checksum is not None:
            for later in range(older_version + 1, version):
                # Protocol and metadata of the versions in between do not matter: only those of the last version are written.
                checksum = None if checksum is None else checksum.after_commit(config, read_actions(store, later))
            return checksum
    return None


def _empty_checksum(config: TableConfig) -> VersionChecksum:
    """The checksum from which that of version 0 is derived: a table without files. Protocol and metadata are those of
    `config`."""
    return VersionChecksum(
        path="",
        protocol=config.protocol,
        metadata=config.metadata,
        file_count=0,
        size_bytes=0,
        set_transactions=(),
        domain_metadata=(),
    )


def _replay_for_checksum(
    store: ObjectStore, version: int, actions: Sequence[Action], previous_snapshot: Snapshot | None
) -> VersionChecksum | None:
    """Compute the checksum of `version` from the log, which costs as much as loading the table; None if the log is not small.
    actions: those of the version's commit. previous_snapshot: of the version before, whose size is known; None if there is
    none."""
    if previous_snapshot is not None and not _is_small_log(previous_snapshot.segment):
        return None
    segment = load_segment(store, version)
    return compute_checksum(Snapshot.of_segment(store, segment), actions) if _is_small_log(segment) else None


def _is_small_log(segment: LogSegment) -> bool:
    """Whether the log is small enough to be replayed for a checksum."""
    return segment.size_bytes <= _SMALL_LOG_BYTES


def compute_checksum(snapshot: Snapshot, actions: Sequence[Action] = ()) -> VersionChecksum:
    """The checksum of a version, computed from the list of its files. actions: those of its commit, from which the txnId is
    taken; a checksum that is only compared, and not written, needs none."""
    sizes = [(batch.files.num_rows, pc.sum(batch.files["size"]).as_py() or 0) for batch in snapshot.file_batches()]
    return VersionChecksum(
        path="",
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        file_count=sum(count for count, _ in sizes),
        size_bytes=sum(size for _, size in sizes),
        in_commit_timestamp_ms=snapshot.timestamp_ms if snapshot.config.enabled("inCommitTimestamp") else None,
        set_transactions=tuple(snapshot.set_transactions().values()),
        domain_metadata=tuple(snapshot.domain_metadata().values()),
        txn_id=_commit_info(actions).txn_id,
    )


def _commit_info(actions: Sequence[Action]) -> CommitInfo:
    """The commitInfo of a commit; an empty one if it has none."""
    return next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))


# ---------------------------------------------------------------- checkpoint, compaction, cleanup


def _write_checkpoint(store: ObjectStore, writer: LogWriter, version: int, actions: Sequence[Action], now_ms: int) -> None:
    """Write the checkpoint of a version, and its version checksum if it has none. actions: of the version's commit."""
    from delta_py.checkpoint.checkpoint import write_checkpoint

    segment = load_segment(store, version)
    written = write_checkpoint(store, writer, segment, now_ms=now_ms)
    if segment.checksum is None:
        _write_checksum_of(written, writer, actions)


def _write_checksum_of(written: WrittenCheckpoint, writer: LogWriter, actions: Sequence[Action]) -> None:
    """Write the version checksum from the counts of a new checkpoint, for which the whole state was read."""
    other_actions, info = written.other_actions, _commit_info(actions)
    assert other_actions.protocol is not None and other_actions.metadata is not None
    checksum = VersionChecksum(
        path="",
        protocol=other_actions.protocol,
        metadata=other_actions.metadata,
        file_count=written.file_count,
        size_bytes=written.table_bytes,
        in_commit_timestamp_ms=info.in_commit_timestamp_ms,
        set_transactions=tuple(other_actions.transactions.values()),
        domain_metadata=tuple(other_actions.domains.values()),
        txn_id=info.txn_id,
    )
    writer.put_checksum(written.version, checksum.to_bytes())


def _clean_log(store: ObjectStore, writer: LogWriter, config: TableConfig, now_ms: int) -> None:
    """Delete the log files that no retained version needs. config: of the newest version."""
    from delta_py.checkpoint.cleanup import clean_log

    cleaned = clean_log(store, writer, config, now_ms=now_ms)
    if cleaned.deleted_count:
        _log.info(
            "%s: %d files of the log before version %s were expired and are deleted",
            store.root,
            cleaned.deleted_count,
            cleaned.first_version,
        )


def _write_compaction(store: ObjectStore, writer: LogWriter, start: int, end: int) -> None:
    """Write the log compaction of the commits start to end, unless it would be too large."""
    from delta_py.log.log_compaction import compact

    data = compact(store, start, end)
    if data is not None:
        writer.put_compaction(start, end, data)
