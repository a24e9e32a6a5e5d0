"""Methods of DeltaTable that maintain a table: OPTIMIZE, VACUUM, FSCK, indexes, the report, manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_py.vacuum.vacuum import VacuumRequest
from spark_plugin.maintenance.fsck_job import run_fsck
from spark_plugin.maintenance.layout import run_layout
from spark_plugin.maintenance.report_job import run_report
from spark_plugin.maintenance.vacuum_job import run_restore_quarantined, run_vacuum
from spark_plugin.options.settings import TablePath
from spark_plugin.run_command import run_command
from spark_plugin.table_api.arguments import check_flag, check_integer, check_text, names_of
from spark_plugin.table_api.builders import DeltaOptimizeBuilder, DeltaReorgBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_py.report.report import Report


class MaintenanceMethods:
    """The methods of DeltaTable that maintain a table."""

    _spark: SparkSession
    _table: TablePath

    def optimize(self) -> DeltaOptimizeBuilder:
        return DeltaOptimizeBuilder(self._spark, self._table)

    def reorg(self) -> DeltaReorgBuilder:
        """`reorg().where(...).executePurge()` is REORG TABLE ... WHERE ... APPLY (PURGE)."""
        return DeltaReorgBuilder(self._spark, self._table)

    def layout(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Return how well each column lets queries skip files: column, type, files, with_bounds (files with a minimum and a
        maximum), point_share and range_share (the share of files that a query for one value, or for a tenth of the values, reads
        on average; null if unknown), queries (of this session, classic only, that filtered by it), advice (or null).

        cols: names, with dots for nested columns; without arguments all columns that may have statistics. Raises
        SchemaMismatchError.
        """
        return run_layout(self._spark, self._table, names_of(cols, "Column"))

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = False,
        keepVersions: Sequence[int] = (),
        lite: bool | None = None,
        inventory: DataFrame | None = None,
        quarantine: bool = False,
        quarantineHours: float | None = None,
        keepClones: bool | None = None,
    ) -> DataFrame:
        """Delete the files that no retained version references; returns a frame without columns and rows.

        retentionHours: how long removed files stay; None for the table's delta.deletedFileRetentionDuration (a week).
        dryRun: delete nothing; the frame lists the files that would be deleted: path, size (bytes), modification_time, reason.
        keepVersions: versions that stay readable whatever their age.
        lite: list no directory, but use the files that commits since the last VACUUM removed, according to the log; None for the
        value of spark.databricks.delta.vacuum.lite.enabled, whose default is false.
        inventory: list no directory, but use the files of this frame: path (whole), length (bytes), isDir, modificationTime
        (ms). Its rows come to the driver.
        quarantine: move the files to quarantine instead of deleting them, so that restoreQuarantined can bring them back.
        quarantineHours: delete files that have been in quarantine for longer; None for the table's
        delta.deletedFileRetentionDuration.
        keepClones: leave the files that shallow clones of this table read, or may read if the clones cannot be opened; None for
        the value of spark.pydelta.vacuum.keepClones, whose default is true.
        Raises InvalidOptionError (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT) for a shorter time than the table's, unless
        spark.databricks.delta.retentionDurationCheck.enabled is false; UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) if
        commits that lite must read no longer exist.
        """
        hours, quarantine_hours = (None if value is None else float(value) for value in (retentionHours, quarantineHours))
        check_flag(dryRun, "dryRun")
        check_flag(quarantine, "quarantine")
        for version in keepVersions:
            check_integer(version, "Each of keepVersions", "an integer")
        for flag, name in ((lite, "lite"), (keepClones, "keepClones")):
            if flag is not None:
                check_flag(flag, name)
        request = VacuumRequest(
            hours, keep_versions=tuple(keepVersions), quarantine=quarantine, quarantine_hours=quarantine_hours
        )
        return run_vacuum(
            self._spark, self._table, request, dry_run=dryRun, lite=lite, keep_clones=keepClones, inventory=inventory
        )

    def restoreQuarantined(self, *, dryRun: bool = False) -> DataFrame:
        """Move the files that vacuum quarantined back to their places. Returns path, size (bytes), quarantined (since when),
        restored (false if another file is at the place; that file stays). dryRun: only list the files."""
        check_flag(dryRun, "dryRun")
        return run_restore_quarantined(self._spark, self._table, dry_run=dryRun)

    def fsck(self, *, dryRun: bool = True, allowDataLoss: bool = False, checkData: bool = False) -> DataFrame:
        """Find missing or damaged parts of the table, in files and log, and repair them: FSCK REPAIR TABLE ... [DRY RUN].

        dryRun: change nothing. allowDataLoss: remove files from the table even if their rows are then lost. checkData: read every
        page of every live file, and compare it with its checksum; damaged files are reported, and never removed from the table.
        Returns one row per fault: kind, path, data_file, version, size (bytes), reason, can_repair, rows_lost.
        Raises DataFileError (DELTA_FILE_NOT_FOUND_DETAILED) for a repair that would lose rows without allowDataLoss, and
        CorruptTableError for a table that cannot be rebuilt. In both cases nothing is changed.
        """
        check_flag(dryRun, "dryRun")
        check_flag(allowDataLoss, "allowDataLoss")
        check_flag(checkData, "checkData")
        return run_fsck(self._spark, self._table, dry_run=dryRun, allow_data_loss=allowDataLoss, check_data=checkData)

    def report(self, *, vacuum: bool = False, checkLog: bool = True) -> Report:
        """Return a report on the table's newest version: commits, files, skipping, partitions, deleted rows, log, and what to do.
        `.write(path)` writes it as one HTML page, on the machine of this process; `.facts` are the numbers; a notebook displays
        it. delta.tables has no such method.

        vacuum: also find what VACUUM would delete, which lists the table's directories. checkLog: look for faults in the log as
        FSCK does, which reads every checkpoint.
        """
        check_flag(vacuum, "vacuum")
        check_flag(checkLog, "checkLog")
        return run_report(self._spark, self._table, vacuum=vacuum, check_log=checkLog)

    def createIndex(self, column: str, name: str | None = None) -> None:
        """Index the values of a column, dotted for one in a struct, so that lookups of single values open few files. Raises the
        same as delta_py's TableIndexes.create. delta.tables has no indexes."""
        check_text(column, "column")
        if name is not None:
            check_text(name, "name")
        run_command(self._spark, self._table, "createIndex", {"column": column, "name": name})

    def dropIndex(self, name: str) -> None:
        """Delete an index and its files. Raises UnsupportedOperationError (INDEX_NOT_FOUND)."""
        check_text(name, "name")
        run_command(self._spark, self._table, "dropIndex", {"name": name})

    def refreshIndex(self, name: str | None = None) -> None:
        """Extend one index, or each index, to all files of the table. Raises UnsupportedOperationError (INDEX_NOT_FOUND)."""
        if name is not None:
            check_text(name, "name")
        run_command(self._spark, self._table, "refreshIndex", {"name": name})

    def generate(self, mode: str) -> None:
        """Write symlink manifests, which engines that read Hive tables use to find the table's files. mode:
        symlink_format_manifest.

        Raises InvalidOptionError (DELTA_MODE_NOT_SUPPORTED) for another mode; UnsupportedOperationError for a table with deletion
        vectors (DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS) or column mapping
        (DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING).
        """
        check_text(mode, "mode")
        run_command(self._spark, self._table, "generate", {"mode": mode})
