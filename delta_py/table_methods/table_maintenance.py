"""The maintenance of a table, as methods of DeltaTable: OPTIMIZE, indexes, VACUUM, RESTORE, FSCK, the log's upkeep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import pyarrow as pa

from delta_py.scan.time_travel import to_timestamp_ms
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors

if TYPE_CHECKING:
    from delta_py.checkpoint.leases import HeldLease
    from delta_py.index_commands.index import TableIndexes
    from delta_py.optimize.optimize import TableOptimizer
    from delta_py.optimize.reorg import TableReorg


@raises_storage_errors(lambda table: table._snapshot.table_root)
class MaintenanceMethods:
    """The base class that gives DeltaTable its methods for maintenance. Each method imports what it needs, as DeltaTable's
    methods do."""

    _snapshot: Snapshot
    _session_timezone: str

    @property
    def optimize(self) -> TableOptimizer:
        """`optimize.compact()` writes the rows of small files into larger ones. This object stays at its version."""
        from delta_py.optimize.optimize import TableOptimizer  # only this method needs it

        return TableOptimizer(self._snapshot.store, self._session_timezone)

    @property
    def index(self) -> TableIndexes:
        """`index.create("user.id")` makes lookups of single values fast. This object stays at its version."""
        from delta_py.index_commands.index import TableIndexes  # only this method needs it

        return TableIndexes(self._snapshot.store)

    @property
    def reorg(self) -> TableReorg:
        """`reorg.purge()` rewrites the newest version's files without deleted rows and dropped columns."""
        from delta_py.optimize.reorg import TableReorg  # only this method needs it

        return TableReorg(self._snapshot.store, self._session_timezone)

    def cluster_by(self, columns: Sequence[str]) -> int:
        """Cluster the table by other columns, nested ones dotted, or by none; returns the version. Files do not change until
        `optimize.cluster()`. Files that were clustered by other columns do not change until `optimize.cluster(full=True)`. Raises
        as definition/cluster_by.py."""
        from delta_py.definition.cluster_by import cluster_by  # only this method needs it

        return cluster_by(self._snapshot.store, columns)

    def layout(self, columns: Sequence[str] | None = None) -> pa.Table:
        """How well each column lets queries skip files, by the statistics of this version.

        columns: names, nested ones dotted; None for all that may have statistics. Returns column, type, files, with_bounds (files
        with a minimum and a maximum), point_share and range_share (of the files that a query for one value, or for a tenth of the
        values, reads on average; null if it is not known), queries (scans of this process that compared it), advice (or
        null).
        Raises SchemaMismatchError for a column that does not exist.
        """
        from delta_py.layout.skipping_report import table_layout  # only this method needs it

        return table_layout(self._snapshot, columns)

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        keep_versions: Sequence[int] = (),
        lite: bool = False,
        inventory: Any = None,
        quarantine: bool = False,
        quarantine_hours: float | None = None,
        keep_clones: bool = True,
    ) -> pa.Table:
        """Delete the files that no retained version references, by the newest version of the table.

        retention_hours: how long removed files are retained; None for the table's delta.deletedFileRetentionDuration (a week).
        dry_run: delete nothing, only return the files. keep_versions: versions that stay readable whatever their age.
        lite: do not list directories, but use the files that commits since the last VACUUM removed, from the log.
        inventory: do not list directories either, but use this list of files: an Arrow table, or any other object with an Arrow
        stream, with the columns path (with the table's root), length (bytes), isDir, modificationTime (ms).
        quarantine: move the files aside instead, so that restore_quarantined can bring them back. quarantine_hours: files in
        quarantine for longer are deleted; None for the table's delta.deletedFileRetentionDuration.
        keep_clones: retain the files that shallow clones of this table read, or may read if a clone cannot be read.
        Returns the files: path, size (bytes), modification_time (ms), reason. Raises as vacuum/vacuum.py.
        """
        from delta_py.vacuum.vacuum import Vacuum, VacuumKind, VacuumRequest, vacuum  # only this method needs it

        kind = VacuumKind.LITE if lite else VacuumKind.FULL
        request = VacuumRequest(
            retention_hours,
            enforce_retention_duration,
            tuple(keep_versions),
            kind=kind,
            inventory=inventory,
            quarantine=quarantine,
            quarantine_hours=quarantine_hours,
            keep_clones=keep_clones,
        )
        store = self._snapshot.store
        return Vacuum.begin(store, request).find() if dry_run else vacuum(store, request).found

    def restore_quarantined(self, *, dry_run: bool = False) -> pa.Table:
        """Move the files that vacuum has moved aside back to their paths. dry_run: only return them.

        Returns path, size (bytes), quarantined (since when, ms), restored (false if another file is at the path, which
        is not replaced). Raises as vacuum/quarantine.py.
        """
        from delta_py.vacuum.quarantine import restore_quarantined  # only this method needs it

        return restore_quarantined(self._snapshot.store, dry_run=dry_run)

    def restore(self, target: SupportsIndex | str | date, *, ignore_missing_files: bool = False) -> dict[str, int]:
        """Commit the table's state at a version (a number) or at a time (a text, date or datetime) as the newest version. This
        object stays at its version.

        ignore_missing_files: leave out data files of that state that are missing, with a warning; their rows are lost.
        Returns metrics by delta-spark's names. Raises as copies/restore.py.
        """
        from delta_py.copies.restore import restore  # only this method needs it

        store = self._snapshot.store
        if isinstance(target, SupportsIndex):
            return restore(store, version=index(target), ignore_missing_files=ignore_missing_files).metrics()
        return restore(
            store,
            timestamp_ms=self._timestamp_ms(target),
            timestamp=str(target),
            ignore_missing_files=ignore_missing_files,
        ).metrics()

    def lease(self, seconds: int = 3_600) -> HeldLease:
        """Keep this version readable while it is read: `with table.lease(): ...`. Until the end, or until `seconds` after this
        process was killed, pydelta's VACUUM in any process deletes no file of the version. Writes a small file next to the
        table's log, again after each third of this time. If it may not write there, it logs a warning, and the version is not
        protected."""
        from delta_py.checkpoint.leases import HeldLease, Lease  # few readers hold a lease

        return HeldLease(Lease(self._snapshot.store, self._snapshot.version, seconds))

    def generate(self, mode: str = "symlink_format_manifest") -> int:
        """Write symlink manifests (`_symlink_format_manifest`) for the newest version of the table, for engines that read Hive
        tables; returns their number. With the table property delta.compatibility.symlinkFormatManifest.enabled commits write them
        automatically.

        Raises InvalidOptionError for another mode; UnsupportedOperationError for a table with deletion vectors or column mapping.
        """
        from delta_py.copies.generate import generate  # only this method needs it

        return generate(self._snapshot.store, mode)

    def fsck(self, *, dry_run: bool = True, allow_data_loss: bool = False, check_data: bool = False) -> pa.Table:
        """Missing or damaged parts of the newest version, files and log, and their repair.

        dry_run: change nothing. allow_data_loss: also remove files from the table whose rows are then lost. check_data: read
        every page of every live file, and compare it with its checksum; damaged files are reported, and stay in the table.
        Returns one row per fault: kind, path, data_file, version, size (bytes), reason, can_repair, rows_lost. Raises as
        repair/fsck.py.
        """
        from delta_py.repair.fsck import fsck  # only this method needs it

        return fsck(self._snapshot.store, dry_run=dry_run, allow_data_loss=allow_data_loss, check_data=check_data)

    def checkpoint(self) -> int:
        """Write a checkpoint of this version, so that it and later ones load without the commits before it; returns the number
        of files in it. Commits write checkpoints automatically every delta.checkpointInterval versions."""
        from delta_py.commit.post_commit import checkpoint  # readers do not need the writing side

        return checkpoint(self._snapshot)

    def write_checksum(self) -> bool:
        """Write the version checksum of this version, if it has none; commits write theirs automatically. Returns
        whether it was written. Raises as repair/log_upkeep.py; compact_log and clean_log do so too."""
        from delta_py.repair.log_upkeep import write_checksum  # only this method needs it

        return write_checksum(self._snapshot)

    def compact_log(self, start_version: int | None = None, end_version: int | None = None) -> tuple[int, int] | None:
        """Write several commits as one file, so that loading a version opens fewer files: those of a range, both inclusive, or
        all since the last checkpoint. Returns the range; None if there is nothing to gain."""
        from delta_py.repair.log_upkeep import compact_log  # only this method needs it

        return compact_log(self._snapshot, start_version, end_version)

    def clean_log(self) -> int:
        """Delete the log files that no version within delta.logRetentionDuration (30 days) needs; returns the number
        of files. Commits that write a checkpoint do it automatically, for a few seconds."""
        from delta_py.repair.log_upkeep import clean_log  # only this method needs it

        return clean_log(self._snapshot.store)

    # ------------------------------------------------------------ helpers

    def _timestamp_ms(self, value: str | date | int | None) -> int | None:
        return None if value is None else to_timestamp_ms(value, self._session_timezone)
