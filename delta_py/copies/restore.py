"""RESTORE: commits the state of an earlier version as a new version.

    restore(store, version=3) -> Restored(version=7, ...)

Files of the earlier version that are no longer in the table are added again, others are removed. Data files stay unchanged, and
have the row ids of the earlier version. Metadata and domains are those of the earlier version, except those that never go back:
the protocol, the highest column id, the highest row id, identity columns' high water marks, whether commits carry their
timestamps, and other properties of the log. A restore fails if data files of the earlier version are gone, or leaves them out
(ignore_missing_files). It always fails if a deletion vector is gone, because the deleted rows would come back, and if VACUUM has
only moved the files into quarantine, because their rows are not lost.
Protocol: Add File and Remove File; Change Metadata; Domain Metadata.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from delta_py.checkpoint.clone_notes import leaving_clone_notes
from delta_py.checkpoint.leases import MOST_SECONDS, HeldLease, Lease
from delta_py.commit.post_commit import logging_failures
from delta_py.commit.prepared import ROW_TRACKING_DOMAIN, row_id_high_water_mark, row_tracking_domain
from delta_py.commit.row_count_check import highest_assigned_row_id
from delta_py.commit.transaction import Transaction
from delta_py.definition.log_properties import LOG_FEATURES, with_log_of, with_marks_of
from delta_py.definition.protocols import with_features
from delta_py.definition.row_tracking import files_to_renumber
from delta_py.definition.timestamps import ENABLED as TIMESTAMPS
from delta_py.errors import DataFileError, DeletionVectorError, TimestampOutOfRangeError, VersionNotFoundError
from delta_py.log.history import version_at_timestamp
from delta_py.object_stores.open_store import is_in_transaction
from delta_py.progress import progress
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import DomainMetadata, Metadata
from delta_py.repair.file_check import file_faults, find_absent, paths_named_by
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import list_quarantine
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import add_action_of, remove_action_of

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a RESTORE. version: the new version. The other fields count files and bytes: of the table after the RESTORE,
    of the files that it removed, and of the files that it added again (restored). num_missing_files: data files of the earlier
    version that the table does not get back, because they are gone.
    """

    version: int
    table_size_after_restore: int
    num_of_files_after_restore: int
    num_removed_files: int
    num_restored_files: int
    removed_files_size: int
    restored_files_size: int
    num_missing_files: int = 0

    def metrics(self) -> dict[str, int]:
        """The metrics under delta-spark's names. numMissingFiles, which delta-spark lacks, is added if files are missing."""
        missing = {"numMissingFiles": self.num_missing_files} if self.num_missing_files else {}
        return {
            **missing,
            "numRestoredFiles": self.num_restored_files,
            "numRemovedFiles": self.num_removed_files,
            "restoredFilesSize": self.restored_files_size,
            "removedFilesSize": self.removed_files_size,
            "numOfFilesAfterRestore": self.num_of_files_after_restore,
            "tableSizeAfterRestore": self.table_size_after_restore,
        }


@progress("RESTORE", "files")
def restore(
    store: ObjectStore,
    *,
    version: int | None = None,
    timestamp_ms: int | None = None,
    timestamp: str | None = None,
    ignore_missing_files: bool = False,
) -> Restored:
    """Commit the state of a version, or of the newest version at or before a time, as the newest. For the newest version itself,
    nothing is committed.

    timestamp: the time as the caller wrote it, for the history. ignore_missing_files: leave out data files of that version that
    are gone, with a warning; their rows are lost. Then all files of the new version exist, and every reader can read it.
    Raises VersionNotFoundError (DELTA_CANNOT_RESTORE_TABLE_VERSION), TimestampOutOfRangeError
    (DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER); UnsupportedOperationError for a version with a column mapping mode to which the
    table cannot return; DataFileError when files of that version are gone; DataFileError after the commit when a VACUUM that had
    started before deleted some of them in the meantime; conflicts as Transaction.commit.
    """
    current = Snapshot.load(store)
    past = _past_snapshot(store, current, version, timestamp_ms)
    if past.version == current.version:
        files = list(plan_scan(current, None, None, ScanOptions(keep_all=True)).scan_files())
        return Restored(
            version=current.version,
            table_size_after_restore=_total_bytes(files),
            num_of_files_after_restore=len(files),
            num_removed_files=0,
            num_restored_files=0,
            removed_files_size=0,
            restored_files_size=0,
        )
    with _lease_during_restore(store, past.version):
        return _commit_restore(store, current, past, timestamp, ignore_missing_files=ignore_missing_files)


@contextmanager
def _lease_during_restore(store: ObjectStore, version: int) -> Iterator[None]:
    """A `with` block for the RESTORE. A lease (a small file next to the log) protects the version's files from each VACUUM that
    starts during the block. The lease ends with the block, because after the commit the newest version references the files.

    In a transaction over several tables, the commit counts only when the transaction ends. So the lease then has the maximum
    duration, and only a failed block ends it.
    """
    if not is_in_transaction(store):
        with HeldLease(Lease(store, version)):
            yield
        return
    lease = Lease(store, version, MOST_SECONDS)
    lease.put()
    try:
        yield
    except BaseException:
        lease.end()
        raise


def _commit_restore(
    store: ObjectStore, current: Snapshot, past: Snapshot, timestamp: str | None, *, ignore_missing_files: bool
) -> Restored:
    """Commit the restored state. current: the newest version. past: the version to restore. Raises and returns as restore."""
    column_mapping.check_mode_change(current.config.column_mapping_mode, past.config.column_mapping_mode)
    transaction = Transaction(current).restores(past)
    options = ScanOptions(keep_all=True)  # with statistics and tags, for the files that are added again
    # Files by their keys: path and deletion vector.
    present_files = {file.key: file for file in transaction.scan(None, options=options).scan_files()}
    past_files = {file.key: file for file in plan_scan(past, None, None, options).scan_files()}
    restored_files = [file for key, file in past_files.items() if key not in present_files]
    removed_files = [file for key, file in present_files.items() if key not in past_files]
    missing_paths = _find_missing_data_files(store, restored_files, past.version, ignore_missing_files=ignore_missing_files)
    restored_files = [file for file in restored_files if file.path not in missing_paths]
    past_files = {key: file for key, file in past_files.items() if key in present_files or file.path not in missing_paths}
    past_row_id = highest_assigned_row_id(past)
    _set_definition(transaction, current, past, past_row_id)
    now_ms = time.time_ns() // 1_000_000
    readded = (
        add_action_of(file, data_change=False)
        for file in files_to_renumber(past_files, present_files, transaction.config, past_row_id)
    )
    adds = (*(add_action_of(file) for file in restored_files), *readded)
    transaction.add(WrittenFiles(adds=adds, removes=tuple(remove_action_of(file, now_ms=now_ms) for file in removed_files)))
    result = Restored(
        version=-1,
        table_size_after_restore=_total_bytes(past_files.values()),
        num_of_files_after_restore=len(past_files),
        num_removed_files=len(removed_files),
        num_restored_files=len(restored_files),
        removed_files_size=_total_bytes(removed_files),
        restored_files_size=_total_bytes(restored_files),
        num_missing_files=len(missing_paths),
    )
    parameters = {"version": None if timestamp is not None else past.version, "timestamp": timestamp}
    with leaving_clone_notes(store, current.version, None, past.version, paths_named_by(restored_files)):
        committed_version = transaction.commit("RESTORE", parameters, metrics=result.metrics())
    _check_not_deleted_meanwhile(store, restored_files, committed_version)
    return replace(result, version=committed_version)


@progress("RESTORE", "files")
def restore_faults(store: ObjectStore, *, version: int | None = None, timestamp_ms: int | None = None) -> pa.Table:
    """The files that prevent an earlier version from being restored or read: FAULT_SCHEMA (file_check.py) of its files that are
    missing or damaged. Nothing is changed. Raises as restore, except for such files.
    """
    return file_faults(_past_snapshot(store, Snapshot.load(store), version, timestamp_ms))


def _past_snapshot(store: ObjectStore, current: Snapshot, version: int | None, timestamp_ms: int | None) -> Snapshot:
    """The snapshot to restore: that of the version, or of the time. A time after the newest commit means the newest version.
    Raises as restore, for a version or a time that cannot be read.
    """
    try:
        if timestamp_ms is not None:
            version = version_at_timestamp(store, timestamp_ms, current.config, or_last=True)
        return Snapshot.load(store, version=version)
    except VersionNotFoundError as error:
        raise VersionNotFoundError(
            error.message, error_class="DELTA_CANNOT_RESTORE_TABLE_VERSION", **error.message_parameters
        ) from error
    except TimestampOutOfRangeError as error:
        raise TimestampOutOfRangeError(
            error.message, error_class="DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER", **error.message_parameters
        ) from error


def _total_bytes(files: Iterable[ScanFile]) -> int:
    return sum(file.size_bytes for file in files)


def _check_not_deleted_meanwhile(store: ObjectStore, files: Sequence[ScanFile], version: int) -> None:
    """Raises DataFileError if restored files were deleted in the meantime, by a VACUUM that had read the leases before the lease
    of this RESTORE existed. The commit remains, and the error names its version. files: those that were added again.
    """
    missing: list[str] = []
    with logging_failures(store, version, "whether all files are still there was not seen"):
        missing = find_absent(store, paths_named_by(files))
    if missing:
        raise DataFileError(
            f"Version {version} of the table at {store.root} restores an earlier one, but {len(missing)} of its files were "
            f"deleted meanwhile, such as {missing[0]}, by a VACUUM that had started before. Restore version {version - 1}, the "
            "state before; or, where VACUUM has moved the files into quarantine, bring them back (restore_quarantined).",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            version=version,
            files=missing[:10],
        )


def _find_missing_data_files(
    store: ObjectStore, files: Sequence[ScanFile], version: int, *, ignore_missing_files: bool
) -> frozenset[str]:
    """The paths of the data files that storage no longer has.

    Raises DataFileError if there are any and ignore_missing_files is false, or if they are in quarantine; DeletionVectorError for
    a missing deletion vector of an existing data file.
    """
    missing = find_absent(store, paths_named_by(files))
    if not missing:
        return frozenset()
    if not ignore_missing_files:
        raise DataFileError(
            f"Version {version} of the table at {store.root} cannot be restored: {len(missing)} of its files are gone, such as "
            f"{missing[0]}. VACUUM or another program deleted them. Nothing was changed. Restore a later version; or, where "
            "VACUUM has moved them into quarantine, bring them back first (restore_quarantined). To restore the files that are "
            "left, ignore the missing ones: ignore_missing_files in Python, ignoreMissingFiles or the setting "
            "spark.sql.files.ignoreMissingFiles in Spark.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            version=version,
            files=missing[:10],
        )
    missing_paths = frozenset(missing)
    _check_can_be_ignored(store, files, missing_paths, version)
    data_paths = sorted({file.path for file in files} & missing_paths)
    _log.warning(
        "Version %d of the table at %s is restored without %d data files that are gone, such as %s. Their rows are lost.",
        version,
        store.root,
        len(data_paths),
        data_paths[0],
    )
    return frozenset(data_paths)


def _check_can_be_ignored(store: ObjectStore, files: Sequence[ScanFile], missing_paths: frozenset[str], version: int) -> None:
    """Raises DataFileError if VACUUM has moved missing files into quarantine, and DeletionVectorError if the deletion vector of
    an existing data file is missing.
    """
    refusal = f"Version {version} of the table at {store.root} cannot be restored, not even without the missing files"
    quarantined = sorted(missing_paths.intersection(list_quarantine(store)["path"].to_pylist()))
    if quarantined:
        raise DataFileError(
            f"{refusal}: VACUUM has moved {len(quarantined)} of its files into quarantine, such as {quarantined[0]}, so their "
            "rows are not lost. Nothing was changed. Bring the files back (restore_quarantined), then restore the version.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            version=version,
            files=quarantined[:10],
        )
    for file in files:
        vector = None if file.deletion_vector is None else file.deletion_vector.path
        if vector in missing_paths and file.path not in missing_paths:
            raise DeletionVectorError(
                f"{refusal}: the deletion vector {vector} of data file {file.path} is gone. Without it the deleted rows of the "
                "data file would come back. Nothing was changed. Restore the deletion vector from a backup, or restore a later "
                "version of the table.",
                error_class="DELTA_DELETION_VECTOR_FILE_NOT_FOUND",
                path=file.path,
                deletion_vector=vector,
            )


# ---------------------------------------------------------------- metadata, protocol, domains


def _set_definition(transaction: Transaction, current: Snapshot, past: Snapshot, past_row_id: int) -> None:
    """Add metadata, protocol and domains of the restored state to the transaction. past_row_id: the highest row id that the past
    version has assigned."""
    metadata = _restored_metadata(current, past)
    if metadata != current.metadata:
        transaction.set_metadata(metadata)
    # The protocol loses no feature. It gets features that were dropped since then, except those that describe the log.
    protocol = with_features(current.protocol, set(past.config.features) - LOG_FEATURES)
    if protocol != current.protocol:
        transaction.set_protocol(protocol)
    for domain in _restored_domains(current.domain_metadata(), past.domain_metadata()):
        transaction.set_domain(domain)
    row_id_mark = max(highest_assigned_row_id(current), past_row_id)
    if row_id_mark > row_id_high_water_mark(current.domain_metadata().get(ROW_TRACKING_DOMAIN)):
        transaction.set_domain(row_tracking_domain(row_id_mark))


def _restored_metadata(current: Snapshot, past: Snapshot) -> Metadata:
    """The past metadata, with counters that never decrease. If the past version has no highest column id, none is set: then it
    had no column mapping, and its files have no column ids.
    """
    properties = with_log_of(current, past.metadata.configuration, TIMESTAMPS)
    past_id, present_id = (snapshot.config.properties.integer(column_mapping.MAX_ID_PROPERTY, 0) for snapshot in (past, current))
    if past_id:
        properties[column_mapping.MAX_ID_PROPERTY] = str(max(past_id, present_id))
    metadata = replace(past.metadata, id=current.metadata.id, configuration=properties)
    return with_marks_of(current.schema, metadata)


def _restored_domains(current: Mapping[str, DomainMetadata], past: Mapping[str, DomainMetadata]) -> Iterator[DomainMetadata]:
    """The domain actions that restore the past domains, except that of row tracking. Domains that did not exist then are
    removed."""
    for name in sorted((current.keys() | past.keys()) - {ROW_TRACKING_DOMAIN}):
        if name not in past:
            yield replace(current[name], removed=True)
        elif past[name] != current.get(name):
            yield past[name]
