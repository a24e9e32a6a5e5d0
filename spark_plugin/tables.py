"""DeltaTable: names, arguments and results of delta.tables.

It reads facts about a table through the data source, and changes a table through run_command. Both work wherever `spark.read`
works: over Spark Connect the table is on the server's side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_py.errors import InvalidOptionError, TableNotFoundError
from delta_py.row_changes.merge_clauses import Clause
from delta_py.vacuum.vacuum import VacuumRequest
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api.catalog import full_name, path_in_name
from spark_plugin.dml.target_names import Alias
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.maintenance.fsck_job import run_fsck, run_restore_check
from spark_plugin.maintenance.layout import run_layout
from spark_plugin.maintenance.report_job import run_report
from spark_plugin.maintenance.vacuum_job import run_restore_quarantined, run_vacuum
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from spark_plugin.options.common import VIEW, VIEW_LIMIT
from spark_plugin.options.settings import TablePath, conf, is_on
from spark_plugin.options.storage import of_hadoop
from spark_plugin.run_command import run_command
from spark_plugin.session import register
from spark_plugin.session_source import private
from spark_plugin.table_api.alter_methods import (
    add_constraint,
    check_defaults,
    column_changes,
    new_columns,
    replaced_columns,
)
from spark_plugin.table_api.arguments import (
    as_assignments,
    as_condition,
    check_flag,
    check_number,
    check_properties,
    check_rules,
    check_text,
    names_of,
)
from spark_plugin.table_api.builders import (
    DeltaColumnBuilder,
    DeltaOptimizeBuilder,
    DeltaReorgBuilder,
    DeltaTableBuilder,
    IdentityGenerator,
    TableRequest,
)
from spark_plugin.table_api.conversions import convert_identifier
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder
from spark_plugin.table_api.retries import run_with_retries
from spark_plugin.table_api.table_names import build_table, clone_table, find_table, refresh_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

    from delta_py.report.report import Report

__all__ = [
    "Clause",
    "DeltaColumnBuilder",
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaReorgBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]

_HADOOP_PREFIXES = ("fs.", "dfs.")


class DeltaTable:
    """A table, always at its newest version. Made by forPath, forName and the builders."""

    def __init__(self, spark: SparkSession, table: TablePath, alias: str | None = None) -> None:
        self._spark = spark
        self._table = table
        self._alias: Alias = () if alias is None else (alias,)

    # ------------------------------------------------------------ finding and making tables

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None) -> DeltaTable:
        """Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE) when there is no table.

        hadoopConf: settings of Hadoop's file systems (`fs.`, `dfs.`), which take precedence over the session's in every operation
        on this table; others are refused (DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF). Those of S3, Google Cloud Storage and
        Azure say how to reach the table's store.
        """
        strange = [key for key in hadoopConf or {} if not key.startswith(_HADOOP_PREFIXES)]
        if strange:
            raise InvalidOptionError(
                f"hadoopConf can hold settings of file systems only, whose names begin with {' or '.join(_HADOOP_PREFIXES)}; "
                f"{', '.join(strange)} is none.",
                error_class="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
                sql_state="0AKDC",
            )
        register(sparkSession)
        table = cls(sparkSession, TablePath(path, of_hadoop(hadoopConf or {}, path)))
        try:
            table._view("detail").schema  # noqa: B018 - reading the schema makes the source look at the table
        except TableNotFoundError as error:
            with as_spark_raises():
                raise TableNotFoundError(f"{path} is not a Delta table. {error.message}", path=path) from error
        return table

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """A table of Spark's catalog, or delta.`/path`. Raises TableNotFoundError when there is none."""
        register(sparkSession)
        with as_spark_raises():
            place = find_table(sparkSession, tableOrViewName)
        return cls._opened(sparkSession, place.path, place.name)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a table at the path, or at that of delta.`/path`."""
        try:
            cls.forPath(sparkSession, path_in_name(identifier) or identifier)
        except TableNotFoundError:
            return False
        return True

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        *,
        collectStats: bool = True,
    ) -> DeltaTable:
        """Make a Delta table of Parquet files by writing a log next to them; the files are not changed. A path that already is a
        Delta table is returned unchanged.

        identifier: parquet.`/path`, or the name of an external parquet table of Spark's catalog, which becomes a Delta table.
        partitionSchema: the columns that the directory names stand for, in their order, as DDL or StructType; the catalog knows
        those of its tables. Nobody should change the directory during the conversion. collectStats: read statistics from the
        files' footers, unless spark.databricks.delta.stats.collect is false.
        Raises InvalidOptionError (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME, DELTA_FAILED_CAST_PARTITION_VALUE, ...),
        SchemaMismatchError (DELTA_FAILED_MERGE_SCHEMA_FILE), DataFileError (DELTA_FAILED_READ_FILE_FOOTER), TableNotFoundError
        (DELTA_EMPTY_DIRECTORY), UnsupportedOperationError (DELTA_CONVERT_NON_PARQUET_TABLE, DELTA_UNSUPPORTED_DATA_TYPES).
        """
        check_text(identifier, "identifier")
        check_flag(collectStats, "collectStats")
        register(sparkSession)
        with as_spark_raises():
            place = convert_identifier(sparkSession, identifier, partitionSchema, collect_stats=collectStats)
        return cls._opened(sparkSession, place.path, place.name)

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder whose execute() raises TableAlreadyExistsError when there is a table. Without a session the active one."""
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder whose execute() leaves an existing table as it is."""
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder whose execute() removes all rows and gives the table the new columns; the table must exist."""
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder whose execute() creates the table, or replaces it as `replace` does."""
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def columnBuilder(cls, sparkSession: SparkSession, colName: str) -> DeltaColumnBuilder:
        """A column for addColumns([...])."""
        register(sparkSession)
        return DeltaColumnBuilder(sparkSession, colName)

    @classmethod
    def _builder(cls, spark: SparkSession | None, mode: str) -> DeltaTableBuilder:
        from pyspark.sql import SparkSession

        spark = SparkSession.getActiveSession() if spark is None else spark
        assert spark is not None, "there is no active SparkSession: pass one"
        register(spark)
        return DeltaTableBuilder(spark, mode, cls._built)

    @classmethod
    def _built(cls, spark: SparkSession, request: TableRequest) -> DeltaTable:
        check_rules(spark, request.columns, request.properties or {})
        place = build_table(spark, request)
        return cls._opened(spark, place.path, place.name)

    @classmethod
    def _opened(cls, spark: SparkSession, path: str, name: str | None) -> DeltaTable:
        cls.forPath(spark, path)
        return cls(spark, TablePath(path, name=name))

    # ------------------------------------------------------------ rows and history

    def toDF(self) -> DataFrame:
        """The rows of the version that is newest at the time of the call."""
        frame = self._spark.read.format(FORMAT).options(**self._table.storage).load(self._table.url)
        return frame.alias(*self._alias) if self._alias else frame

    def alias(self, aliasName: str) -> DeltaTable:
        return DeltaTable(self._spark, self._table, aliasName)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits that the log still contains, newest first: the columns of DESCRIBE HISTORY."""
        return self._view("history") if limit is None else self._view("history", limit)

    def detail(self) -> DataFrame:
        """One row with the columns of DESCRIBE DETAIL. name: the table's name in the catalog, if it was opened by name."""
        frame = self._view("detail")
        if self._table.name is None:
            return frame
        from pyspark.sql import functions as F

        return frame.withColumn("name", F.when(F.lit(True), F.lit(full_name(self._spark, self._table.name))))

    def _view(self, name: str, limit: int | None = None) -> DataFrame:
        options = {VIEW: name}
        if limit is not None:
            check_number(limit, "limit")
            options[VIEW_LIMIT] = str(limit)
        reader = self._spark.read.format(FORMAT).options(**self._table.storage)
        return reader.options(**private(self._spark, options)).load(self._table.url)

    # ------------------------------------------------------------ rows

    def delete(self, condition: Any = None, *, retries: int = 0) -> None:
        """Delete the rows for which the condition is true, or all rows without one. condition: Column or SQL text, also
        subqueries.

        retries: how often to run again when another writer's commit conflicts.
        Raises TypeError for a value that is no condition, Spark's AnalysisException for one that does not fit the table.
        """
        from spark_plugin.dml import delete_update

        where = as_condition(condition)
        run_with_retries(lambda: delete_update.delete(self._spark, self._table, where, alias=self._alias), retries)

    def update(self, condition: Any = None, set: Any = None, *, retries: int = 0) -> None:
        """Give columns new values in the rows for which the condition is true, or in all rows without one.

        condition: Column or SQL text. set: by column name, or path of a field, the new value as Column or SQL text.
        retries: as in delete. Raises TypeError and ValueError for invalid arguments, otherwise the same as delete.
        """
        from spark_plugin.dml import delete_update

        assignments, where = as_assignments(set, "'set'"), as_condition(condition)
        run_with_retries(lambda: delete_update.update(self._spark, self._table, where, assignments, alias=self._alias), retries)

    def merge(self, source: DataFrame, condition: Any) -> DeltaMergeBuilder:
        """source: rows to merge. condition: Column or SQL text that says which source rows match which rows of the table.

        Raises ValueError for None, TypeError for other types.
        """
        from pyspark.sql import DataFrame

        if source is None:
            raise ValueError("'source' in merge cannot be None")
        if not isinstance(source, DataFrame):
            raise TypeError("Type of 'source' in merge must be DataFrame.")
        matches = as_condition(condition)
        if matches is None:
            raise ValueError("'condition' in merge cannot be None")
        return DeltaMergeBuilder(self._spark, self._table, self._alias, source, matches)

    # ------------------------------------------------------------ what the table is

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, Delta's and others. A property also enables the table feature that it needs.

        Raises InvalidOptionError for an invalid name or value; UnsupportedOperationError and
        UnsupportedTableFeatureError for a property that this table cannot have.
        """
        check_properties(properties)
        run_command(self._spark, self._table, "setProperties", {"properties": dict(properties)})

    def unsetProperties(self, names: Sequence[str], ifExists: bool = False) -> None:
        """Remove properties. Raises InvalidOptionError for one that the table does not have, unless ifExists."""
        check_flag(ifExists, "ifExists")
        for name in names:
            check_text(name, "Each name of a property")
        run_command(self._spark, self._table, "unsetProperties", {"names": list(names), "if_exists": ifExists})

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol's versions. Lower ones than the table's change nothing."""
        check_number(readerVersion, "The readerVersion", "an integer")
        check_number(writerVersion, "The writerVersion", "an integer")
        versions = {"reader_version": readerVersion, "writer_version": writerVersion}
        run_command(self._spark, self._table, "upgradeProtocol", versions)

    def addFeatureSupport(self, featureName: str) -> None:
        """Let the table support a feature, and those that it needs. Raises InvalidOptionError for an unknown feature name."""
        check_text(featureName, "featureName")
        run_command(self._spark, self._table, "addFeature", {"name": featureName})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Remove a feature from the protocol, after everything that uses it: ALTER TABLE ... DROP FEATURE ... [TRUNCATE HISTORY].

        truncateHistory: delete the versions that use it, once they are old enough (delta.dropFeatureTruncateHistory.
        retentionDuration), instead of protecting their checkpoints. Raises the same as delta_py's drop_feature.
        """
        check_text(featureName, "featureName")
        if truncateHistory is not None:
            check_flag(truncateHistory, "truncateHistory")
        self._alter("dropFeature", {"name": featureName, "truncate_history": bool(truncateHistory)})

    # ------------------------------------------------------------ columns and constraints

    def addColumns(self, columns: str | StructType | list[Any]) -> None:
        """Add columns, or fields of structs: DDL, a StructType, or a list of StructFields and dicts with name, dataType and
        optional entries (comment, first, after). In lists names may be dotted, with backticks around names that contain dots.

        Existing rows have null. Raises the same as delta_py's add_columns. delta.tables has neither this method nor those below.
        """
        self._alter("addColumns", {"columns": check_defaults(self._spark, new_columns(columns))})

    def renameColumn(self, name: str, newName: str) -> None:
        """Give a column, or a field of a struct (dotted), another name; needs column mapping."""
        check_text(name, "name")
        check_text(newName, "newName")
        self._alter("renameColumn", {"name": name, "new_name": newName})

    def dropColumns(self, *names: str | list[str] | tuple[str, ...], ifExists: bool = False) -> None:
        """Remove columns, or fields of structs (dotted), from the schema; needs column mapping."""
        check_flag(ifExists, "ifExists")
        self._alter("dropColumns", {"names": names_of(names, "Column"), "if_exists": ifExists})

    def alterColumn(
        self,
        name: str,
        *,
        dataType: str | DataType | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        dropDefault: bool = False,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Change a column, a field of a struct, or an array's or map's part (`a.element`, `m.key`): ALTER COLUMN.

        dataType: a wider one, where delta.enableTypeWidening is true. default: SQL. first, after: its new position.
        Raises the same as delta_py's change_columns.
        """
        change = {"dataType": dataType, "nullable": nullable, "comment": comment, "default": default, "dropDefault": dropDefault}
        self.alterColumns({name: {**change, "first": first, "after": after}})

    def alterColumns(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Do the same as alterColumn for several columns in one commit. changes: by name, the arguments of alterColumn."""
        self._alter("changeColumns", {"changes": check_defaults(self._spark, column_changes(changes))})

    def replaceColumns(self, columns: str | StructType | list[StructField]) -> None:
        """Give the table these columns, in this order: REPLACE COLUMNS. Raises the same as delta_py's replace_columns."""
        self._alter("replaceColumns", {"schema": replaced_columns(columns)})

    def syncIdentity(self, name: str) -> None:
        """Move the next number of an identity column past the existing values: ALTER COLUMN ... SYNC IDENTITY."""
        check_text(name, "name")
        self._alter("syncIdentity", {"name": name})

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint, if it is true for every row: ADD CONSTRAINT ... CHECK (...). Spark checks the rows.

        Raises the same as delta_py's add_constraint.
        """
        check_text(name, "name")
        check_text(expression, "expression")
        add_constraint(self._spark, self._table, name, expression)
        refresh_name(self._spark, self._table.name)

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> None:
        """Drop a CHECK constraint. Raises InvalidOptionError (DELTA_CONSTRAINT_DOES_NOT_EXIST) unless ifExists."""
        check_text(name, "name")
        check_flag(ifExists, "ifExists")
        self._alter("dropConstraint", {"name": name, "if_exists": ifExists})

    def _alter(self, command: str, arguments: Mapping[str, Any]) -> None:
        run_command(self._spark, self._table, command, arguments)
        refresh_name(self._spark, self._table.name)

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> None:
        """ALTER TABLE ... CLUSTER BY (cols), with dots in nested names; without arguments CLUSTER BY NONE. No file changes:
        optimize() clusters new files, and executeCompaction(full=True) also those that were clustered by other columns. Raises
        the same as delta_py/definition/cluster_by.py."""
        run_command(self._spark, self._table, "clusterBy", {"columns": names_of(cols, "Column")})

    # ------------------------------------------------------------ maintenance

    def optimize(self) -> DeltaOptimizeBuilder:
        return DeltaOptimizeBuilder(self._spark, self._table)

    def reorg(self) -> DeltaReorgBuilder:
        """`reorg().where(...).executePurge()` is REORG TABLE ... WHERE ... APPLY (PURGE)."""
        return DeltaReorgBuilder(self._spark, self._table)

    def layout(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """How well each column lets queries skip files: column, type, files, with_bounds (files with a minimum and a maximum),
        point_share and range_share (the share of files that a query for one value, or for a tenth of the values, reads on
        average; null if unknown), queries (of this session, classic only, that filtered by it), advice (or null).

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
        hours, aside_hours = (None if value is None else float(value) for value in (retentionHours, quarantineHours))
        check_flag(dryRun, "dryRun")
        check_flag(quarantine, "quarantine")
        for version in keepVersions:
            check_number(version, "Each of keepVersions", "an integer")
        for flag, name in ((lite, "lite"), (keepClones, "keepClones")):
            if flag is not None:
                check_flag(flag, name)
        request = VacuumRequest(hours, keep_versions=tuple(keepVersions), quarantine=quarantine, quarantine_hours=aside_hours)
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
        """A report on the table's newest version: commits, files, skipping, partitions, deleted rows, log, and what to do.
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

    def restoreToVersion(self, version: int, *, dryRun: bool = False, ignoreMissingFiles: bool | None = None) -> DataFrame:
        """Restore the table to an older version, by committing a new version; returns one row of metrics.

        dryRun: change nothing; the frame lists the missing or damaged files of that version, with the columns of fsck.
        ignoreMissingFiles: restore the data files that still exist, without the missing ones; None for the value of the setting
        spark.sql.files.ignoreMissingFiles.
        Raises VersionNotFoundError (DELTA_CANNOT_RESTORE_TABLE_VERSION), DataFileError when files of that version are missing.
        """
        check_number(version, "version")
        check_flag(dryRun, "dryRun")
        if dryRun:
            return run_restore_check(self._spark, self._table, version)
        return self._restore(ignoreMissingFiles, version=version)

    def restoreToTimestamp(self, timestamp: str, *, dryRun: bool = False, ignoreMissingFiles: bool | None = None) -> DataFrame:
        """Do the same as restoreToVersion, with the newest version at or before a time in the session's time zone."""
        check_text(timestamp, "timestamp")
        check_flag(dryRun, "dryRun")
        if dryRun:
            return run_restore_check(self._spark, self._table, timestamp)
        return self._restore(ignoreMissingFiles, timestamp=timestamp)

    def _restore(self, ignore_missing_files: Any, version: int | None = None, timestamp: str | None = None) -> DataFrame:
        if ignore_missing_files is None:
            ignore_missing_files = is_on(self._spark, IGNORE_MISSING_FILES, default=False)
        check_flag(ignore_missing_files, "ignoreMissingFiles")
        arguments = {
            "version": version,
            "timestamp": timestamp,
            "time_zone": self._time_zone(),
            "ignore_missing_files": ignore_missing_files,
        }
        previous_restore = None if adapter_of(self._spark).is_driver else self._newest_restore()
        result = run_command(self._spark, self._table, "restore", arguments)
        with as_spark_raises():
            refresh_name(self._spark, self._table.name)
        if result is None:  # over Spark Connect the table's history has the numbers
            row = self._newest_restore()
            if row is None or row == previous_restore:  # the table is at that version, and nothing was committed
                now = self.detail().first()
                assert now is not None
                metrics = {"tableSizeAfterRestore": now["sizeInBytes"], "numOfFilesAfterRestore": now["numFiles"]}
            else:
                metrics = row["operationMetrics"]
        else:
            metrics = result.metrics()
        numbers = [int(metrics.get(metric, 0)) for metric in _RESTORE_METRICS.values()]
        return self._spark.createDataFrame([tuple(numbers)], ", ".join(f"{name} bigint" for name in _RESTORE_METRICS))

    def _newest_restore(self) -> Row | None:
        return self.history().filter("operation = 'RESTORE'").select("version", "operationMetrics").first()

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """Make a table with this one's rows, at a path or under a name.

        isShallow: use this table's files; otherwise copy them. A repeated deep clone, with replace, copies only new files; an
        interrupted one continues. replace: an existing table loses its rows. properties: set in addition to this table's.
        Raises TableAlreadyExistsError; DataFileError for files that cannot be copied, and then nothing is changed.
        """
        return self._clone(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Do the same as clone, for a version."""
        check_number(version, "version")
        return self._clone(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Do the same as clone, for the newest version at or before a time."""
        check_text(timestamp, "timestamp")
        return self._clone(target, isShallow, replace, properties, timestamp=timestamp)

    def _clone(
        self,
        target: Any,
        is_shallow: Any,
        replace: Any,
        properties: Any,
        version: int | None = None,
        timestamp: str | None = None,
    ) -> DeltaTable:
        _check_clone(target, is_shallow, replace, properties)
        arguments = {
            "version": version,
            "timestamp": timestamp,
            "time_zone": self._time_zone(),
            "replace_table": replace,
            "properties": dict(properties or {}),
        }
        with as_spark_raises():
            place = clone_table(self._spark, self._table, target, arguments, is_shallow=is_shallow).place
        return self._opened(self._spark, place.path, place.name)

    def _time_zone(self) -> str:
        return conf(self._spark, "spark.sql.session.timeZone") or "UTC"


# The columns that RESTORE returns, and the metrics of the commit that contain their numbers.
_RESTORE_METRICS = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}


def _check_clone(target: Any, is_shallow: Any, replace: Any, properties: Any) -> None:
    check_text(target, "target")
    check_flag(is_shallow, "isShallow")
    check_flag(replace, "replace")
    if properties is not None:
        check_properties(properties)
