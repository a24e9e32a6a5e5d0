"""DeltaTable: names, arguments and results of delta.tables.

It reads facts about a table through the data source, and changes a table through run_command. Both work wherever `spark.read`
works: over Spark Connect the table is on the server's side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_py.errors import InvalidOptionError, TableNotFoundError
from delta_py.row_changes.merge_clauses import Clause
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api.catalog import full_name, path_in_name
from spark_plugin.dml.target_names import Alias
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.maintenance.fsck_job import run_restore_check
from spark_plugin.maintenance.summary_job import run_summary
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from spark_plugin.options.common import VIEW, VIEW_LIMIT
from spark_plugin.options.settings import TablePath, conf, is_on
from spark_plugin.options.storage import of_hadoop
from spark_plugin.run_command import run_command
from spark_plugin.session import register
from spark_plugin.session_source import private
from spark_plugin.table_api.arguments import (
    as_assignments,
    as_condition,
    check_flag,
    check_integer,
    check_properties,
    check_rules,
    check_text,
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
from spark_plugin.table_api.definition_methods import DefinitionMethods
from spark_plugin.table_api.maintenance_methods import MaintenanceMethods
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder
from spark_plugin.table_api.retries import run_with_retries
from spark_plugin.table_api.table_names import build_table, clone_table, find_table, refresh_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

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


class DeltaTable(DefinitionMethods, MaintenanceMethods):
    """A table, always at its newest version. Made by forPath, forName and the builders."""

    def __init__(self, spark: SparkSession, table: TablePath, alias: str | None = None) -> None:
        self._spark = spark
        self._table = table
        self._alias: Alias = () if alias is None else (alias,)

    def __repr__(self) -> str:
        """The newest version, from its log: opens no data file, and says what is wrong with a broken table."""
        return run_summary(self._spark, self._table).text()

    def _repr_html_(self) -> str:
        """For notebooks, as __repr__."""
        return run_summary(self._spark, self._table).html()

    # ------------------------------------------------------------ finding and making tables

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None) -> DeltaTable:
        """Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE) when there is no table.

        hadoopConf: settings of Hadoop's file systems (`fs.`, `dfs.`), which take precedence over the session's in every operation
        on this table; others are refused (DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF). Those of S3, Google Cloud Storage and
        Azure say how to reach the table's store.
        """
        other_settings = [key for key in hadoopConf or {} if not key.startswith(_HADOOP_PREFIXES)]
        if other_settings:
            raise InvalidOptionError(
                f"hadoopConf can hold settings of file systems only, whose names begin with {' or '.join(_HADOOP_PREFIXES)}; "
                f"{', '.join(other_settings)} is none.",
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
        return cls._open_at(sparkSession, place.path, place.name)

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
        return cls._open_at(sparkSession, place.path, place.name)

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
        return DeltaTableBuilder(spark, mode, cls._build)

    @classmethod
    def _build(cls, spark: SparkSession, request: TableRequest) -> DeltaTable:
        """Make the table that a builder describes, and open it. The builders call this in execute()."""
        check_rules(spark, request.columns, request.properties or {})
        place = build_table(spark, request)
        return cls._open_at(spark, place.path, place.name)

    @classmethod
    def _open_at(cls, spark: SparkSession, path: str, name: str | None) -> DeltaTable:
        """Return the table at a path. name: in the catalog; None if it was named by its path."""
        cls.forPath(spark, path)  # raises the error of a path without a table
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

        # F.when without `otherwise` makes a nullable column, as the view itself has it.
        return frame.withColumn("name", F.when(F.lit(True), F.lit(full_name(self._spark, self._table.name))))

    def _view(self, name: str, limit: int | None = None) -> DataFrame:
        """Return facts about the table that the data source makes: history or detail. limit: of rows."""
        options = {VIEW: name}
        if limit is not None:
            check_integer(limit, "limit")
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

    # ------------------------------------------------------------ restoring and copying

    def restoreToVersion(self, version: int, *, dryRun: bool = False, ignoreMissingFiles: bool | None = None) -> DataFrame:
        """Restore the table to an older version, by committing a new version; returns one row of metrics.

        dryRun: change nothing; the frame lists the missing or damaged files of that version, with the columns of fsck.
        ignoreMissingFiles: restore the data files that still exist, without the missing ones; None for the value of the setting
        spark.sql.files.ignoreMissingFiles.
        Raises VersionNotFoundError (DELTA_CANNOT_RESTORE_TABLE_VERSION), DataFileError when files of that version are missing.
        """
        check_integer(version, "version")
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
        """Restore the table to a version or to a time, whichever is not None, and return one row of metrics."""
        if ignore_missing_files is None:
            ignore_missing_files = is_on(self._spark, IGNORE_MISSING_FILES, default=False)
        check_flag(ignore_missing_files, "ignoreMissingFiles")
        arguments = {
            "version": version,
            "timestamp": timestamp,
            "time_zone": self._time_zone(),
            "ignore_missing_files": ignore_missing_files,
        }
        # Over Spark Connect the command returns nothing: only a new RESTORE in the history shows that it has committed a version.
        previous_restore = None if adapter_of(self._spark).is_driver else self._newest_restore()
        result = run_command(self._spark, self._table, "restore", arguments)
        with as_spark_raises():
            refresh_name(self._spark, self._table.name)
        if result is None:  # over Spark Connect the table's history has the numbers
            row = self._newest_restore()
            if row is None or row == previous_restore:  # the table is at that version, and nothing was committed
                current_detail = self.detail().first()
                assert current_detail is not None
                metrics = {
                    "tableSizeAfterRestore": current_detail["sizeInBytes"],
                    "numOfFilesAfterRestore": current_detail["numFiles"],
                }
            else:
                metrics = row["operationMetrics"]
        else:
            metrics = result.metrics()
        numbers = [int(metrics.get(metric, 0)) for metric in _RESTORE_METRICS.values()]
        return self._spark.createDataFrame([tuple(numbers)], ", ".join(f"{name} bigint" for name in _RESTORE_METRICS))

    def _newest_restore(self) -> Row | None:
        """Return the version and the metrics of the newest RESTORE in the history; None if there is none."""
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
        check_integer(version, "version")
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
        return self._open_at(self._spark, place.path, place.name)

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
