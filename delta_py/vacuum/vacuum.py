"""VACUUM: delete the files below a table's root that no retained version references.

    found = Vacuum.begin(store, VacuumRequest(retention_hours=200)).find()      # the files that would be deleted, and why
    done = vacuum(store, VacuumRequest())
    done = vacuum(store, VacuumRequest(kind=VacuumKind.LITE))                   # reads only the log
    done = vacuum(store, VacuumRequest(inventory=table))                        # uses a listing that the caller made

VACUUM retains a file if the newest version has it, if a version of `keep_versions` has it, if it was removed within the retention
time, or if it is younger than that: a writer may be about to commit it. The deletion vectors of these files are retained too.
VACUUM also retains what it cannot judge: hidden files and directories (names that begin with `_` or `.`), everything in a
directory that is a table itself, names that are not valid text, links to directories and the files in them, and files and
directories below the root that are targets of links.

LITE lists nothing. It deletes files that were removed before the retention time, by commits after the one that the last VACUUM
reached. It skips names that the log does not spell plainly below the table's root. A full VACUUM deletes the files that LITE
skips.

With `quarantine`, files are moved to quarantine instead of deleted (vacuum/quarantine.py). Any later run deletes the files that
were in quarantine long enough, unless a version references them after all.

Readers that hold leases (checkpoint/leases.py) retain the files that were removed since the version that they read. Shallow
clones of the table retain the files that they read (vacuum/vacuum_clones.py), unless the request says otherwise.

VACUUM reads the referenced files from the log at the beginning, and again after the files are listed: a RESTORE that was
committed between may reference files that were removed long ago. It reads the leases and the clones twice as well.
Protocol: Add File and Remove File; VACUUM Protocol Check.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.clone_notes import delete_notes
from delta_py.checkpoint.leases import Leases, delete_expired
from delta_py.checkpoint.tombstones import tombstones_of_commit
from delta_py.commit.transaction import Transaction
from delta_py.errors import DeltaError, InvalidOptionError, LogFileNotFoundError, StorageError, UnsupportedOperationError
from delta_py.log.catalog_contract import Maintenance, refuse_forbidden
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import CommitClock, commit_at_timestamp
from delta_py.log.last_vacuum import read_last_vacuum
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import list_log
from delta_py.object_stores.open_store import coordination_of, refuse_in_transaction
from delta_py.progress import count_listed_files, progress
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, retention_ms
from delta_py.protocol.paths import CHANGE_DATA_DIRECTORY, are_plain
from delta_py.protocol.table_config import Operation
from delta_py.snapshot import Snapshot
from delta_py.storage.parallel_files import for_each_file
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import Quarantine, are_quarantined, list_quarantine, original_paths
from delta_py.vacuum.vacuum_candidates import (
    CHANGE_DATA,
    FOUND_SCHEMA,
    QUARANTINED,
    REMOVED,
    UNKNOWN,
    RemovedFiles,
    list_files,
    newest_version_before,
    read_inventory,
    removed_since,
)
from delta_py.vacuum.vacuum_clones import Clones
from delta_py.vacuum.vacuum_paths import (
    HiddenNames,
    NeededFiles,
    PathSet,
    are_linked,
    find_tables_above,
    paths_of,
    table_above,
    vector_files,
)
from delta_py.vacuum.vacuum_request import VacuumKind, VacuumRequest, quarantine_ms_of, retention_ms_of

__all__ = [
    "CHANGE_DATA",
    "FOUND_SCHEMA",
    "QUARANTINED",
    "REMOVED",
    "UNKNOWN",
    "Vacuum",
    "VacuumKind",
    "VacuumRequest",
    "Vacuumed",
    "vacuum",
]

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a VACUUM. found: FOUND_SCHEMA, the files that were to be deleted. deleted: how many were deleted.
    quarantined: how many were moved to quarantine."""

    table_root: str
    found: pa.Table
    deleted: int = 0
    quarantined: int = 0


@progress("VACUUM", "files")
def vacuum(store: ObjectStore, request: VacuumRequest, clock_ms: Callable[[], int] | None = None) -> Vacuumed:
    """Delete the files that no retained version references; returns them.

    clock_ms: ms since 1970, for tests. Raises InvalidOptionError (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT) for a retention below
    the table's; LogIntegrityError for a log that contradicts itself; UnsupportedTableFeatureError for a table that may not be
    written; VersionNotFoundError for a version of keep_versions; UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) when LITE
    would have to read commits that are gone; InvalidOptionError (DELTA_INVALID_INVENTORY_SCHEMA) for an inventory that lacks
    columns; UnsupportedOperationError (DELTA_CANNOT_VACUUM_LEASED) when the log does not tell which files a lease retains;
    CorruptTableError if the table has commits that its coordinator does not know; StorageError when files could not be
    deleted, after all others are.
    """
    # A transaction sees an older version, and does not see which files newer versions reference.
    refuse_in_transaction(store, "VACUUM of", "Nothing was deleted.")
    vacuum_run = Vacuum.begin(store, request, clock_ms)
    files = vacuum_run.find()
    start_version = vacuum_run.commit_start(files)
    try:
        files = vacuum_run.drop_needed_now(files, start_version)
        errors = vacuum_run.delete_or_quarantine(files["path"])
    except BaseException:
        vacuum_run.commit_end(start_version, "FAILED")
        raise
    is_gone = pc.invert(pc.is_in(files["path"], pa.array(errors, pa.string())))
    # With `quarantine`, only files that were already in quarantine are deleted; the others are moved.
    is_deleted = are_quarantined(files["path"]) if request.quarantine else pa.chunked_array([pa.repeat(True, files.num_rows)])
    deleted = pc.sum(pc.and_(is_gone, is_deleted)).as_py() or 0
    result = Vacuumed(store.root, files, deleted, files.num_rows - len(errors) - deleted)
    vacuum_run.commit_end(start_version, "FAILED" if errors else "COMPLETED", result)
    if errors:
        path, error = next(iter(errors.items()))
        moved = f"moved {result.quarantined} into quarantine, " if request.quarantine else ""
        raise StorageError(
            f"VACUUM of the table at {store.root} deleted {result.deleted} files, {moved}and could not delete {len(errors)} "
            f"more, such as {path}: {error}. The table is intact: no version within the retention time references these files. "
            "Give this user the right to delete them, and run it again."
        ) from error
    vacuum_run.record_progress()
    return result


class Vacuum:
    """One run of VACUUM: decides which files may be deleted. cutoff_ms: the beginning of the retention time, ms since 1970: files
    that were written or removed since then are retained.
    """

    def __init__(self, snapshot: Snapshot, request: VacuumRequest, cutoff_ms: int, retention_time_ms: int) -> None:
        self._snapshot, self._store, self._request = snapshot, snapshot.store, request
        self._cutoff_ms, self._retention_ms = cutoff_ms, retention_time_ms
        self._now_ms, self._quarantine_ms = cutoff_ms + retention_time_ms, quarantine_ms_of(request, snapshot)
        self._leased_versions: list[int] = []  # versions that readers hold by leases: files removed after them are retained
        self._leases = self._read_leases()
        self._clones = Clones.read(self._store, self._now_ms)
        self._hidden = HiddenNames.of(snapshot.config)
        # All files that commits up to this version removed were found, so the next LITE run starts after it. None: not all files
        # were found, or no version is old enough; then nothing is recorded.
        self._handled_version: int | None = None

    @classmethod
    def begin(cls, store: ObjectStore, request: VacuumRequest, clock_ms: Callable[[], int] | None = None) -> Vacuum:
        """Load the table's newest version and check that VACUUM may run on it. Raises as vacuum."""
        if request.inventory is not None and request.kind is VacuumKind.LITE:
            raise InvalidOptionError(
                "VACUUM LITE looks into the log alone: leave out the inventory, or LITE. Nothing was deleted.", option="inventory"
            )
        snapshot = Snapshot.load(store)
        snapshot.config.require(Operation.WRITE)
        refuse_forbidden(store, Maintenance.CLEANUP, "VACUUM of", "Nothing was deleted.")
        coordinated = coordination_of(store)
        if coordinated is not None and coordinated.last_tail is not None:
            coordinated.check_version_is_free(snapshot.version + 1)
        table_retention_ms = retention_ms(snapshot.config.properties, DELETED_FILE_RETENTION)
        retention = table_retention_ms if request.retention_hours is None else retention_ms_of(request, table_retention_ms)
        now_ms = time.time_ns() // 1_000_000 if clock_ms is None else clock_ms()
        return cls(snapshot, request, now_ms - retention, retention)

    def _read_leases(self) -> Leases:
        """Read the leases of the table's readers, and remember the version that they retain."""
        leases = Leases.read(self._store, self._now_ms)
        self._leased_versions += [] if leases.version is None else [leases.version]
        return leases

    @progress("VACUUM", "files")
    def find(self) -> pa.Table:
        """Find the files that may be deleted: FOUND_SCHEMA, by path. Memory: eight bytes for each referenced file, and the names
        of the files that may be deleted. Raises as vacuum.
        """
        tombstones = self._snapshot.tombstones()
        needed = self._read_needed(self._snapshot, tombstones)
        self._check_log_reaches_back()  # a cleanup may have deleted log files until now
        self._snapshot.check_integrity()  # readers only log a warning; here files would be lost
        if self._request.kind is VacuumKind.LITE:
            candidates = self._find_removed(needed)
        elif self._request.inventory is not None:
            candidates = self._find_inventoried(needed, tombstones)
        else:
            candidates = self._find_listed(needed, tombstones)
        candidates = self._without_linked(pa.concat_tables([candidates, self._find_expired_quarantined(needed)]).sort_by("path"))
        return self._without_clones(candidates) if self._request.keep_clones else self._clones.mark_referenced(candidates)

    def _without_linked(self, candidates: pa.Table) -> pa.Table:
        """Drop the files that are targets of links: a version may reference them by the links' names."""
        are_targets = are_linked(self._store, candidates["path"])
        if count := pc.sum(are_targets).as_py():
            advice = "stay, because links lead to them"
            _log.warning("%s: %d files that no version of this table needs %s", self._store.root, count, advice)
            if self._request.kind is VacuumKind.LITE:
                self._handled_version = None  # the next LITE must look at the retained files again
        return candidates.filter(pc.invert(are_targets))

    def _without_clones(self, candidates: pa.Table) -> pa.Table:
        """Drop the files that clones reference."""
        is_lite = self._request.kind is VacuumKind.LITE
        if is_lite and self._clones.unknown:
            self._handled_version = None  # the next LITE must look at the retained files again
        return self._clones.drop_referenced(candidates, is_lite=is_lite)

    def _find_expired_quarantined(self, needed: NeededFiles) -> pa.Table:
        """The files that were in quarantine long enough and that no version references."""
        quarantined = list_quarantine(self._store)
        quarantined = quarantined.filter(pc.less(quarantined["quarantined"], self._now_ms - self._quarantine_ms))
        is_needed = needed.contains(quarantined["path"])
        if names := quarantined["path"].filter(is_needed).to_pylist():
            advice = "are needed and stay; restore_quarantined brings them back"
            _log.warning("%s: %d files in quarantine, such as %s, %s", self._store.root, len(names), names[0], advice)
        quarantined = quarantined.filter(pc.invert(is_needed))
        reasons = pa.repeat(QUARANTINED, quarantined.num_rows)
        return pa.table([quarantined["held_at"], quarantined["size"], quarantined["quarantined"], reasons], FOUND_SCHEMA)

    def delete_or_quarantine(self, paths: pa.ChunkedArray) -> dict[str, OSError | StorageError]:
        """Delete the files, or move them to quarantine if requested. Returns the errors by path, for the files where this failed.
        Files that are already in quarantine are deleted in any case.
        """
        if not self._request.quarantine:
            return for_each_file(self._store, paths, self._store.delete, "VACUUM could not delete")
        is_quarantined = are_quarantined(paths)
        quarantine = Quarantine(self._store, self._now_ms)
        errors = for_each_file(self._store, paths.filter(is_quarantined), self._store.delete, "VACUUM could not delete")
        unquarantined_paths = paths.filter(pc.invert(is_quarantined))
        return errors | for_each_file(self._store, unquarantined_paths, quarantine.add, "VACUUM could not move aside")

    def _find_listed(self, needed: NeededFiles, tombstones: pa.Table) -> pa.Table:
        """List the table's directories, and choose the files that may be deleted. Files of tables inside are not among them."""
        tables: set[str] = set()

        def batches() -> Iterator[pa.RecordBatch]:
            """The listed files that are old enough. Notes the other tables that lie in the directory."""
            for batch in list_files(self._store):
                count_listed_files(batch.num_rows)
                in_logs = batch["path"].filter(pc.match_substring(batch["path"], "/_delta_log/")).to_pylist()
                tables.update(table for path in in_logs if (table := table_above(path)) is not None)
                yield batch.filter(self._are_old(batch))

        candidates = self._with_reasons(batches(), needed, tombstones)
        self._handled_version = newest_version_before(self._snapshot, self._cutoff_ms)
        return self._drop_other_tables(tables, candidates)

    def _find_inventoried(self, needed: NeededFiles, tombstones: pa.Table) -> pa.Table:
        """As _find_listed, for the files in the caller's inventory."""
        young_paths: list[pa.Array] = []  # an inventory may name a file twice, with different times: the younger one counts

        def batches() -> Iterator[pa.RecordBatch]:
            """The files that are old enough. Notes the paths of the others."""
            for batch in read_inventory(self._store, self._request.inventory):
                is_old = self._are_old(batch)
                young_paths.append(batch["path"].filter(pc.invert(is_old)))
                yield batch.filter(is_old)

        candidates = self._with_reasons(batches(), needed, tombstones)
        candidates = _deduplicate(candidates.filter(pc.invert(PathSet(young_paths).contains(candidates["path"]))))
        return self._drop_other_tables(find_tables_above(self._store, candidates["path"], self._hidden), candidates)

    def _find_removed(self, needed: NeededFiles) -> pa.Table:
        """The unneeded files among those that commits since the last VACUUM removed."""
        removed = RemovedFiles.begin(self._snapshot, self._cutoff_ms)
        parts = (batch.filter(are_plain(batch["path"])) for batch in removed.batches())
        candidates = _deduplicate(pa.Table.from_batches((self._drop_needed(part, needed) for part in parts), FOUND_SCHEMA))
        self._handled_version = removed.last_read_version
        return self._drop_other_tables(find_tables_above(self._store, candidates["path"], self._hidden), candidates)

    def _are_old(self, files: pa.RecordBatch) -> pa.Array:
        """Whether each file was written before the retention time. A file without a time is not old."""
        return pc.fill_null(pc.less(files["modification_time"], self._cutoff_ms), False)

    def _with_reasons(self, batches: Iterator[pa.RecordBatch], needed: NeededFiles, tombstones: pa.Table) -> pa.Table:
        """Drop the hidden and the referenced files, and set the reasons of the others: FOUND_SCHEMA."""
        removed_paths = PathSet([tombstones["path"], vector_files(tombstones)])
        parts: list[pa.RecordBatch] = []
        for batch in batches:
            unneeded_files = self._drop_needed(batch, needed)
            is_change = pc.starts_with(unneeded_files["path"], f"{CHANGE_DATA_DIRECTORY}/")
            is_removed = removed_paths.contains(unneeded_files["path"])
            reason = pc.if_else(is_change, CHANGE_DATA, pc.if_else(is_removed, REMOVED, UNKNOWN))
            parts.append(pa.RecordBatch.from_arrays([*unneeded_files.columns[:3], reason], schema=FOUND_SCHEMA))
        return pa.Table.from_batches(parts, FOUND_SCHEMA)

    def _drop_needed(self, files: pa.RecordBatch, needed: NeededFiles) -> pa.RecordBatch:
        """Drop the hidden and the referenced files."""
        files = files.filter(pc.invert(self._hidden.are_hidden(files["path"])))
        return files.filter(pc.invert(needed.contains(files["path"])))

    def _drop_other_tables(self, tables: set[str], candidates: pa.Table) -> pa.Table:
        """Drop the files in these directories, which are tables themselves, with a warning."""
        for table in sorted(tables):
            _log.warning("%s: %s is a table of its own; its files are left alone", self._store.root, table)
            candidates = candidates.filter(pc.invert(pc.starts_with(candidates["path"], f"{table}/")))
        return candidates

    def drop_needed_now(self, candidates: pa.Table, start_version: int | None = None) -> pa.Table:
        """Drop the files that a newer version references again, and those that a new lease or clone retains. start_version: the
        version of our own VACUUM START commit, which changes no file; None if there is no such commit.
        """
        if self._request.keep_clones:  # first, as it may take long
            self._clones = Clones.read(self._store, self._now_ms)
            candidates = self._without_clones(candidates)
        previous_lease = self._leases.version
        self._leases = self._read_leases()
        newest = Snapshot.load(self._store)  # after the leases: a RESTORE holds a lease until its commit is written
        is_newest = newest.version == self._snapshot.version + (start_version is not None)  # no other writer has committed
        current_lease = self._leases.version
        # In this case no version is new, and no reader needs more files than the readers did at the beginning.
        if is_newest and (current_lease is None or (previous_lease is not None and previous_lease <= current_lease)):
            return candidates
        needed = self._read_needed(newest, newest.tombstones())
        return candidates.filter(pc.invert(needed.contains(original_paths(candidates["path"]))))

    def _read_needed(self, snapshot: Snapshot, tombstones: pa.Table) -> NeededFiles:
        """The names of the files that VACUUM must not delete. tombstones: the files that the snapshot's log records as
        removed."""
        return NeededFiles(paths_of(self._needed_files(snapshot, tombstones)))

    def _needed_files(self, snapshot: Snapshot, tombstones: pa.Table) -> Iterator[pa.Table]:
        """Tables with the columns path and deletion_vector: the live files, the files that were removed within the retention
        time, and the files that leases retain."""
        retained_snapshots = [Snapshot.load(self._store, version=version) for version in self._request.keep_versions]
        for version in (snapshot, *retained_snapshots):
            yield from (pa.Table.from_batches([batch.files]) for batch in version.file_batches())
        yield self._select_recent(tombstones)
        yield from self._leased_files(snapshot.version)
        if self._may_lack_tombstones(snapshot):  # the commits of the retention time still have the tombstones
            commits = CommitReader(self._store, uses_cache=False)
            for file in list_log(self._store, 0, snapshot.version).commits.values():
                if file.info.modification_time_ms >= self._cutoff_ms:
                    yield self._select_recent(pa.Table.from_batches(tombstones_of_commit(commits, file)))

    def _may_lack_tombstones(self, snapshot: Snapshot) -> bool:
        """Whether the checkpoint may lack tombstones of the retention time. This is so if the requested time is longer than the
        table's current retention, or than the table's retention at the beginning of that time, or if the latter cannot be read.
        """
        if snapshot.segment.checkpoint is None:
            return False
        if self._is_longer_than_the_tables(snapshot):
            return True
        try:
            version = commit_at_timestamp(self._store, self._cutoff_ms, snapshot.config).version
            snapshot_at_cutoff = snapshot if version >= snapshot.version else Snapshot.load(self._store, version=version)
        except DeltaError:
            return True
        return self._is_longer_than_the_tables(snapshot_at_cutoff)

    def _is_longer_than_the_tables(self, snapshot: Snapshot) -> bool:
        """Whether the retention time of this run is longer than that of the table in the snapshot."""
        return self._retention_ms > retention_ms(snapshot.config.properties, DELETED_FILE_RETENTION)

    def _leased_files(self, newest: int) -> Iterator[pa.Table]:
        """The files that commits since the earliest leased version removed, and their change data. Raises
        UnsupportedOperationError.
        """
        version = self._leases.version
        if version is None or version >= newest:
            return
        try:
            yield from removed_since(self._store, version, newest)
        except LogFileNotFoundError as error:
            raise self._lease_error(version, error.message_parameters["version"]) from error

    def _lease_error(self, version: int, missing_version: int) -> UnsupportedOperationError:
        """The error for a lease whose files cannot be found. version: the leased one. missing_version: of the commit that is not
        in the log any more."""
        path = min(path for path, leased in self._leases.live.items() if leased == version)
        return UnsupportedOperationError(
            f"{path} says that somebody reads version {version} of the table at {self._store.root}, and commit "
            f"{missing_version}, which may have removed files of it, is not in the log any more. Nothing was deleted. End the "
            "reader, or wait until its lease has run out; if you know that there is no reader, delete the file.",
            error_class="DELTA_CANNOT_VACUUM_LEASED",
            sql_state="55000",
            path=path,
            version=missing_version,
        )

    def _select_recent(self, tombstones: pa.Table) -> pa.Table:
        """Select the tombstones of files that were removed after the cutoff. A tombstone without a time counts as old, as in
        delta-spark."""
        return tombstones.filter(pc.fill_null(pc.greater_equal(tombstones["deletion_timestamp"], self._cutoff_ms), False))

    def _check_log_reaches_back(self) -> None:
        """Check that the log covers the retention time. Raises InvalidOptionError if the log does not tell which files were
        removed since the cutoff."""
        if not self._is_longer_than_the_tables(self._snapshot):
            return
        listing = list_log(self._store, 0, self._snapshot.version)
        first = min(listing.commits)
        clock = CommitClock(self._store, self._snapshot.config)
        if first > 0 and clock.time_of_next(listing.commits[first]) > self._cutoff_ms:
            raise InvalidOptionError(
                f"The log of the table at {self._store.root} begins with version {first}, which is younger than the retention of "
                f"{self._request.retention_hours} hours. It does not tell which files were removed before. Nothing was deleted. "
                "Give a shorter retention, or set delta.deletedFileRetentionDuration to it for the future.",
                option="retentionHours",
            )

    def record_progress(self) -> None:
        """Record for the next VACUUM LITE how far this run came: all files that `find` returned are deleted. A failure is only
        logged, because the next run then reads the same commits again.
        """
        delete_expired(self._store, self._leases, self._now_ms)
        delete_notes(self._store, self._clones.ended)
        if self._handled_version is None:
            return
        # Files that commits after a leased version removed were retained: the next LITE must look at these commits again.
        version = min([self._handled_version, *self._leased_versions])
        try:
            # The record never goes back, unless it names a version that the table does not have.
            recorded_version = read_last_vacuum(self._store)
            if recorded_version is None or not version <= recorded_version <= self._snapshot.version:
                LogWriter(self._store, self._snapshot.config).put_last_vacuum(version)
        except (OSError, StorageError) as error:
            _log.warning("%s: how far VACUUM came is not noted: %s", self._store.root, error)

    # ------------------------------------------------------------ the history

    def commit_start(self, candidates: pa.Table) -> int | None:
        """Commit VACUUM START, which is only for the history. Returns the version; None if the request asks for no commits."""
        if not self._request.logs:
            return None
        hours = self._request.retention_hours
        parameters: dict[str, Any] = {
            "retentionCheckEnabled": self._request.check_retention,
            "defaultRetentionMillis": retention_ms(self._snapshot.config.properties, DELETED_FILE_RETENTION),
        }
        if hours is not None:
            parameters["specifiedRetentionMillis"] = self._retention_ms
        if self._request.quarantine:
            parameters["quarantine"] = True
        metrics = {"numFilesToDelete": candidates.num_rows, "sizeOfDataToDelete": pc.sum(candidates["size"]).as_py() or 0}
        return Transaction(self._snapshot).commit("VACUUM START", parameters, metrics=metrics)

    def commit_end(self, start_version: int | None, status: str, result: Vacuumed | None = None) -> None:
        """Commit VACUUM END, unless there was no start. This also runs after an error. That error must not be lost, so a failure
        of this commit is only logged."""
        if start_version is None:
            return
        try:
            transaction = Transaction(Snapshot.load(self._store))
            metrics = {"numDeletedFiles": 0 if result is None else result.deleted}
            if self._request.quarantine:
                metrics["numQuarantinedFiles"] = 0 if result is None else result.quarantined
            transaction.commit("VACUUM END", {"status": status}, metrics=metrics)
        except (DeltaError, OSError) as error:
            _log.warning("%s: the end of VACUUM is not in the history: %s", self._store.root, error)


def _deduplicate(candidates: pa.Table) -> pa.Table:
    """Keep one row per file; a file may come more than once."""
    unique_files = candidates.group_by("path").aggregate([("size", "max"), ("modification_time", "max"), ("reason", "min")])
    return unique_files.select(["path", "size_max", "modification_time_max", "reason_min"]).rename_columns(FOUND_SCHEMA.names)
