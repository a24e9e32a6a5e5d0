"""Facts about the log's health and retention for a report: checkpoints, checksums, faults, removed files.

Protocol: Checkpoints; Log Compaction Files; Version Checksum File; Metadata Cleanup.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.post_commit import checkpoint_interval
from delta_py.errors import DeltaError, LogIntegrityError, readable
from delta_py.log.checksum import damage_of
from delta_py.log.last_checkpoint import LAST_CHECKPOINT_PATH, read_last_checkpoint
from delta_py.log.last_vacuum import LAST_VACUUM_PATH, read_last_vacuum
from delta_py.log.segment import available_versions, list_log
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, LOG_RETENTION, retention_ms
from delta_py.protocol.paths import LOG_DIRECTORY
from delta_py.repair.log_check import LogCheck
from delta_py.report.facts import (
    CommitFacts,
    Fault,
    LogFacts,
    RetentionFacts,
    Unknown,
    VacuumDebt,
    VacuumReason,
    known,
    total,
)
from delta_py.snapshot import Snapshot
from delta_py.vacuum.vacuum import Vacuum, VacuumRequest


def log_facts(snapshot: Snapshot, *, check: bool) -> LogFacts:
    """Facts about the state of the log. check: look for faults, as FSCK does, which reads every checkpoint. Raises OSError if the
    log cannot be listed."""
    store, segment = snapshot.store, snapshot.segment
    listing = list_log(store, 0)
    versions = sorted(listing.commits)
    checkpoint = segment.checkpoint
    to_load = [*(checkpoint.files if checkpoint else ()), *segment.replay_files()]
    checksum_state, checksum_detail = _checksum_state(snapshot)
    return LogFacts(
        newest_version=max(versions),
        earliest_version=known(lambda: available_versions(store)[0]),
        commits=len(versions),
        commit_bytes=sum(file.size_bytes for file in listing.commits.values()),
        gaps=tuple((before + 1, after - 1) for before, after in pairwise(versions) if after != before + 1),
        checkpoints=len(listing.checkpoints),
        incomplete_checkpoints=len(listing.incomplete),
        newest_checkpoint=checkpoint.version if checkpoint else None,
        newest_checkpoint_kind=checkpoint.kind.name if checkpoint else None,
        newest_checkpoint_bytes=sum(file.size_bytes for file in checkpoint.files) if checkpoint else None,
        checkpoint_interval=known(lambda: checkpoint_interval(snapshot.config)),
        commits_since_checkpoint=len(segment.commits),
        last_checkpoint=known(lambda: _last_checkpoint(snapshot)),
        compactions=len(listing.compactions),
        compactions_in_use=len(segment.compactions),
        checksums=len(listing.checksums),
        checksum=checksum_state,
        checksum_detail=checksum_detail,
        files_to_load=len(to_load),
        bytes_to_load=sum(file.size_bytes for file in to_load),
        faults=known(lambda: _faults(snapshot)) if check else Unknown("not requested: the check of the log"),
        source=f"a listing of {LOG_DIRECTORY}; the files that version {snapshot.version} is read from; the log's part of FSCK",
    )


def _last_checkpoint(snapshot: Snapshot) -> int | Unknown | None:
    """The version that _last_checkpoint names; None if there is no such file."""
    hint = read_last_checkpoint(snapshot.store)
    if hint is not None:
        return hint.version
    is_there = any(info.path == LAST_CHECKPOINT_PATH for info in snapshot.store.list_from(LOG_DIRECTORY, "_last_checkpoint"))
    return Unknown(f"{LAST_CHECKPOINT_PATH} is damaged") if is_there else None


def _checksum_state(snapshot: Snapshot) -> tuple[str | Unknown, str | None]:
    """(the state of the version's checksum, its fault or None). The state is `agrees`, `contradicts`, `damaged`, `older form` or
    `none`."""
    file = snapshot.segment.checksum
    if file is None:
        return "none", None
    if snapshot.checksum is None:  # the file exists, and could not be used
        damage = known(lambda: damage_of(snapshot.store, file))
        if isinstance(damage, Unknown):
            return damage, None
        return ("older form", None) if damage is None else ("damaged", damage)
    try:
        snapshot.check_integrity()
    except LogIntegrityError as error:
        return "contradicts", error.message
    except (DeltaError, OSError) as error:
        return Unknown(readable(str(error))), None
    return "agrees", None


def _faults(snapshot: Snapshot) -> tuple[Fault, ...]:
    """The faults that FSCK finds in the log."""
    rows = LogCheck(snapshot.store).find_faults()
    return tuple(Fault(row["kind"], row["path"], row["version"], row["reason"], row["can_repair"]) for row in rows)


# ---------------------------------------------------------------- retention


def retention_facts(
    snapshot: Snapshot, live_paths: pa.ChunkedArray | None, commits: CommitFacts | Unknown, now_ms: int, *, vacuum: bool
) -> RetentionFacts:
    """Facts about removed files, and what VACUUM would delete. live_paths: of the live files, None if they are not known.
    vacuum: run VACUUM as a dry run, which lists the table's directories."""
    properties = snapshot.config.properties
    deleted_file_ms = known(lambda: retention_ms(properties, DELETED_FILE_RETENTION))
    tombstone_numbers: tuple[int | Unknown, ...] | Unknown = Unknown("the live files are not known")
    if live_paths is not None:
        tombstone_numbers = known(lambda: _tombstones(snapshot, live_paths, deleted_file_ms, now_ms))
    count, size, without_size, without_time, expired, expired_size = (
        [tombstone_numbers] * 6 if isinstance(tombstone_numbers, Unknown) else tombstone_numbers
    )
    last_vacuum: int | Unknown | None
    if isinstance(commits, Unknown):
        last_vacuum = commits
    elif commits.last_vacuum is not None:
        last_vacuum = commits.last_vacuum.timestamp_ms
    else:
        # Only if all commits since version 0 were read is it certain that there was no VACUUM.
        oldest = commits.commits[-1].version if commits.commits else snapshot.version
        last_vacuum = None if oldest == 0 else Unknown(f"no commit from {oldest} on is the end of a VACUUM")
    return RetentionFacts(
        deleted_file_ms=deleted_file_ms,
        log_ms=known(lambda: retention_ms(properties, LOG_RETENTION)),
        tombstones=count,
        tombstone_bytes=size,
        without_size=without_size,
        without_time=without_time,
        expired=expired,
        expired_bytes=expired_size,
        last_vacuum_version=known(lambda: read_last_vacuum(snapshot.store)),
        last_vacuum_ms=last_vacuum,
        vacuum=known(lambda: _vacuum_debt(snapshot, now_ms))
        if vacuum
        else Unknown("not requested: report(vacuum=True) makes a dry run"),
        source=f"remove actions of version {snapshot.version}: deletionTimestamp and size; table properties; {LAST_VACUUM_PATH}",
    )


def _tombstones(
    snapshot: Snapshot, live_paths: pa.ChunkedArray, deleted_file_ms: int | Unknown, now_ms: int
) -> tuple[int | Unknown, ...]:
    """Six facts about the removed files that are not live again: their number, their bytes, the number without a size, the number
    without a time, the number of expired ones, and the bytes of these. A file that was removed more than once counts once.

    live_paths: of the live files. deleted_file_ms: how long removed files are retained.
    """
    removed = snapshot.tombstones()
    removed = removed.filter(pc.invert(pc.is_in(removed["path"], live_paths.combine_chunks())))
    unique_files = removed.group_by("path").aggregate([("size", "max"), ("deletion_timestamp", "max")])
    sizes, times = unique_files["size_max"], unique_files["deletion_timestamp_max"]
    independent_of_time = (unique_files.num_rows, _total(sizes), sizes.null_count, times.null_count)
    if isinstance(deleted_file_ms, Unknown):
        return (*independent_of_time, deleted_file_ms, deleted_file_ms)
    expired = pc.fill_null(pc.less(times, now_ms - deleted_file_ms), False)
    return (*independent_of_time, pc.sum(expired).as_py() or 0, _total(sizes.filter(expired)))


def _total(sizes: pa.ChunkedArray) -> int | Unknown:
    """The sum of the sizes. Unknown if one of them is: a partial sum would be read as the total."""
    if sizes.null_count:
        return Unknown(f"{sizes.null_count:,} of {len(sizes):,} remove actions have no size")
    return total(sizes)


def _vacuum_debt(snapshot: Snapshot, now_ms: int) -> VacuumDebt:
    """The files that VACUUM would delete now; nothing is deleted."""
    removable_files = Vacuum.begin(snapshot.store, VacuumRequest(), lambda: now_ms).find()
    groups = removable_files.group_by("reason").aggregate([("size", "count"), ("size", "sum")]).sort_by("reason").to_pylist()
    reasons = tuple(VacuumReason(row["reason"], row["size_count"], row["size_sum"] or 0) for row in groups)
    return VacuumDebt(removable_files.num_rows, total(removable_files["size"]), reasons)
