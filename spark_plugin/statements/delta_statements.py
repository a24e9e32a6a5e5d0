"""The statements of grammar.py, run by DeltaTable's methods; classic and over Spark Connect.

    OPTIMIZE pydelta.`/data/events` WHERE day = '2024-01-01'       -- path, metrics

A statement about something that pydelta does not handle goes to Spark if Spark, or delta-spark, can read the statement. Otherwise
other_tables.py answers it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from delta_py.errors import InvalidOptionError, TableNotFoundError, UnsupportedOperationError
from spark_plugin.dataframe_api import catalog
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.maintenance.convert_job import ParquetSource
from spark_plugin.options.settings import TablePath, conf
from spark_plugin.sql import grammar
from spark_plugin.sql.grammar import Utility, Version, parse_utility
from spark_plugin.sql.results import nothing
from spark_plugin.sql.syntax import SyntaxFault, TableName
from spark_plugin.sql.targets import Target, find_target, our_formats
from spark_plugin.sql_catalog.delta_names import has_delta_spark
from spark_plugin.sql_internals import parser_of
from spark_plugin.sql_router import Statement
from spark_plugin.statements.other_tables import answer_by_name, answer_by_path, name_text
from spark_plugin.table_api.conversions import parquet_source
from spark_plugin.table_api.table_names import Cloned, clone_table
from spark_plugin.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_utility(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run a statement of grammar.py. Returns None, and does nothing, for another statement, and for one that Spark or delta-spark
    must run. Raises SqlSyntaxError (PARSE_SYNTAX_ERROR), and the errors of DeltaTable's methods."""
    try:
        utility = parse_utility(statement.text, statement.args)
    except SyntaxFault as fault:
        if _is_read_by_others(spark, statement):
            return None
        raise fault.raised() from fault
    if utility is None or (isinstance(utility, grammar.Convert) and has_delta_spark(spark)):  # delta-spark makes its own tables
        return None
    try:
        return carry_out(spark, utility)
    except NotOurs as missing:
        if _is_read_by_others(spark, statement) and (has_delta_spark(spark) or _is_sensible_for_spark(spark, utility)):
            return None
        return answer_by_name(spark, utility, missing.table_name)


class NotOurs(Exception):
    """The statement is about a table that pydelta does not handle, and nothing was done. table_name: of this table."""

    def __init__(self, table_name: TableName) -> None:
        super().__init__()
        self.table_name = table_name


def carry_out(spark: SparkSession, utility: Utility) -> DataFrame:
    """Run the statement and return its result. Raises NotOurs, and the errors of DeltaTable's methods."""
    match utility:
        case grammar.Clone():
            return _clone(spark, utility)
        case grammar.Convert():
            return _convert(spark, utility)
    target = _target(spark, utility.table)
    if target is None:
        raise NotOurs(utility.table)
    try:
        return _RUNNERS[type(utility)](spark, target, utility)
    except TableNotFoundError as error:
        # Answer only for a path without a table. The error may also be about another table, such as an inventory.
        if target.name is not None or error.message_parameters.get("path") != target.place.url:
            raise
        return answer_by_path(spark, utility, utility.table, error)


def _target(spark: SparkSession, table_name: TableName) -> Target | None:
    """Return the table that a statement names; None if pydelta does not handle it. If delta-spark is loaded, it handles paths in
    quotes."""
    if table_name.path is None:
        return find_target(spark, table_name.parts)
    return None if has_delta_spark(spark) else Target(TablePath(table_name.path))


def _is_read_by_others(spark: SparkSession, statement: Statement) -> bool:
    """Return whether Spark's parser, or that of an extension, knows the statement."""
    if has_delta_spark(spark):
        return True
    parser = parser_of(spark)
    if parser is None:
        return statement.word in _WORDS_OF_SPARK
    return parser.parsed(statement.text, statement.args) is not None


_WORDS_OF_SPARK = ("DESCRIBE", "DESC", "ALTER", "CREATE", "DROP")
"""The first words of statements that a server may be able to read; for clients, which cannot call its parser."""


def _is_sensible_for_spark(spark: SparkSession, utility: Utility) -> bool:
    """Return whether Spark's own reading of the statement makes sense. Spark reads DESCRIBE HISTORY x as the column x of a table
    HISTORY, and DETAIL in the same way. So for these two statements there must be a table of this name."""
    if not isinstance(utility, grammar.History | grammar.Detail):
        return True
    return bool(spark.catalog.tableExists(type(utility).__name__.lower()))


# ---------------------------------------------------------------- on an existing table


def _optimize(spark: SparkSession, target: Target, request: grammar.Optimize) -> DataFrame:
    builder = target.delta_table(spark).optimize()
    if request.where is not None:
        builder = builder.where(request.where)
    return builder.executeZOrderBy(*request.z_order) if request.z_order else builder.executeCompaction(full=request.full)


def _vacuum(spark: SparkSession, target: Target, request: grammar.Vacuum) -> DataFrame:
    """Return the files that a dry run would delete; otherwise the table's path."""
    inventory = None if request.inventory is None else _inventory(spark, request.inventory)
    table = target.delta_table(spark)
    files = table.vacuum(request.hours, dryRun=request.dry_run, lite=request.lite, inventory=inventory)
    return files.select("path") if request.dry_run else table.detail().selectExpr("location AS path")


def _inventory(spark: SparkSession, source: TableName | str) -> DataFrame:
    """Return the inventory of a VACUUM, a list of the files below the table's directory. source: a table, or the text of a
    query."""
    if isinstance(source, str):
        frame: DataFrame = spark_sql(spark, source)
        return frame
    target = _target(spark, source)
    return spark.table(name_text(source)) if target is None else target.delta_table(spark).toDF()


def _history(spark: SparkSession, target: Target, request: grammar.History) -> DataFrame:
    return target.delta_table(spark).history(request.limit)


def _detail(spark: SparkSession, target: Target, request: grammar.Detail) -> DataFrame:
    return target.delta_table(spark).detail()


def _restore(spark: SparkSession, target: Target, request: grammar.Restore) -> DataFrame:
    table = target.delta_table(spark)
    if request.to.timestamp is not None:
        return table.restoreToTimestamp(request.to.timestamp, ignoreMissingFiles=request.ignores_missing_files)
    assert request.to.version is not None
    return table.restoreToVersion(request.to.version, ignoreMissingFiles=request.ignores_missing_files)


def _generate(spark: SparkSession, target: Target, request: grammar.Generate) -> DataFrame:
    target.delta_table(spark).generate(request.mode)
    return nothing(spark)


def _reorg(spark: SparkSession, target: Target, request: grammar.Reorg) -> DataFrame:
    if not request.purge:
        refuse(
            "REORG TABLE ... APPLY (UPGRADE UNIFORM ...)",
            "write Iceberg metadata, which this turns on",
            "For files that Iceberg may take as its own, create a table with delta.enableIcebergCompatV2 = true AS SELECT from "
            "this one. For the metadata use an engine that writes it.",
        )
    builder = target.delta_table(spark).reorg()
    return (builder if request.where is None else builder.where(request.where)).executePurge()


def _fsck(spark: SparkSession, target: Target, request: grammar.Fsck) -> DataFrame:
    return target.delta_table(spark).fsck(dryRun=request.dry_run, checkData=request.check_data)


# ---------------------------------------------------------------- the table's definition


def _add_constraint(spark: SparkSession, target: Target, request: grammar.AddConstraint) -> DataFrame:
    target.delta_table(spark).addConstraint(request.name, request.check)
    return nothing(spark)


def _drop_constraint(spark: SparkSession, target: Target, request: grammar.DropConstraint) -> DataFrame:
    target.delta_table(spark).dropConstraint(request.name, ifExists=request.if_exists)
    return nothing(spark)


def _add_feature(spark: SparkSession, target: Target, request: grammar.AddFeature) -> DataFrame:
    target.delta_table(spark).addFeatureSupport(request.feature)
    return nothing(spark)


def _drop_feature(spark: SparkSession, target: Target, request: grammar.DropFeature) -> DataFrame:
    target.delta_table(spark).dropFeatureSupport(request.feature, request.truncate_history or None)
    return nothing(spark)


def _cluster_by(spark: SparkSession, target: Target, request: grammar.ClusterBy) -> DataFrame:
    target.delta_table(spark).clusterBy(*request.columns)
    return nothing(spark)


def _sync_identity(spark: SparkSession, target: Target, request: grammar.SyncIdentity) -> DataFrame:
    target.delta_table(spark).syncIdentity(request.column)
    return nothing(spark)


def _create_index(spark: SparkSession, target: Target, request: grammar.CreateIndex) -> DataFrame:
    if len(request.columns) != 1 or request.if_not_exists:
        refuse("CREATE INDEX", "index several columns together, or look whether an index is there", "Index one column.")
    target.delta_table(spark).createIndex(request.columns[0], request.name)
    return nothing(spark)


def _drop_index(spark: SparkSession, target: Target, request: grammar.DropIndex) -> DataFrame:
    if request.if_exists:
        refuse("DROP INDEX IF EXISTS", "look whether an index is there", "Leave IF EXISTS out.")
    target.delta_table(spark).dropIndex(request.name)
    return nothing(spark)


def refuse(statement: str, what: str, instead: str) -> NoReturn:
    """Raise the error for a statement that no method of DeltaTable can run. what: what pydelta cannot do, and instead: what the
    user can do, both for the message."""
    raise UnsupportedOperationError(
        f"{statement}: this version of pydelta cannot {what}. Nothing was changed. {instead}", operation=statement
    )


_RUNNERS: dict[type[Any], Callable[[SparkSession, Target, Any], DataFrame]] = {
    grammar.Optimize: _optimize,
    grammar.Vacuum: _vacuum,
    grammar.History: _history,
    grammar.Detail: _detail,
    grammar.Restore: _restore,
    grammar.Generate: _generate,
    grammar.Reorg: _reorg,
    grammar.Fsck: _fsck,
    grammar.AddConstraint: _add_constraint,
    grammar.DropConstraint: _drop_constraint,
    grammar.AddFeature: _add_feature,
    grammar.DropFeature: _drop_feature,
    grammar.ClusterBy: _cluster_by,
    grammar.SyncIdentity: _sync_identity,
    grammar.CreateIndex: _create_index,
    grammar.DropIndex: _drop_index,
}


# ---------------------------------------------------------------- new Delta tables


def _convert(spark: SparkSession, request: grammar.Convert) -> DataFrame:
    DeltaTable.convertToDelta(spark, name_text(request.table), request.partitions, collectStats=request.statistics)
    return nothing(spark)


def _clone(spark: SparkSession, request: grammar.Clone) -> DataFrame:
    """Make a clone. Returns one row of metrics, or no row if the table exists and the statement says IF NOT EXISTS. Raises
    NotOurs if pydelta does not handle the source or the new table."""
    delta_source = _target(spark, request.source)
    name = name_text(request.table)
    format_and_path = catalog.format_and_path(name)
    if delta_source is None and not _is_clone_ours(spark, name, format_and_path):
        raise NotOurs(request.source)
    if format_and_path is not None and format_and_path[0] not in our_formats(spark):
        raise NotOurs(request.table)
    source = _parquet_source(spark, request) if delta_source is None else _table_source(delta_source, request)
    if format_and_path is None:
        exists = catalog.find_stored(spark, name) is not None
    else:
        exists = DeltaTable.isDeltaTable(spark, format_and_path[1])
    if exists and request.if_not_exists:
        return spark.createDataFrame([], _CLONE_RESULT)
    if not exists and not request.creates:
        raise TableNotFoundError(
            f"The table {name} cannot be replaced: it is not there. Nothing was changed. Use CREATE OR REPLACE TABLE.",
            error_class="TABLE_OR_VIEW_NOT_FOUND",
            sql_state="42P01",
            table=name,
        )
    arguments = {
        "version": request.of.version,
        "timestamp": request.of.timestamp,
        "time_zone": conf(spark, "spark.sql.session.timeZone") or "UTC",
        "replace_table": request.replaces,
        "properties": dict(request.properties),
    }
    clone = clone_table(spark, source, name, arguments, is_shallow=request.shallow, location=request.location)
    metrics = _clone_metrics(spark, clone) if clone.metrics is None else clone.metrics
    return spark.createDataFrame([tuple(metrics[name] for name in _CLONE_METRICS.values())], _CLONE_RESULT)


def _is_clone_ours(spark: SparkSession, name: str, format_and_path: tuple[str, str] | None) -> bool:
    """Return whether pydelta makes a clone of a source that is no Delta table. name: of the clone. format_and_path: of the clone;
    None if it has a name in the catalog. If delta-spark is loaded, it makes its own clones, except under names of pydelta."""
    if format_and_path is not None or not has_delta_spark(spark):
        return True
    entry = catalog.find_stored(spark, name)
    return entry is not None and entry.is_ours


def _table_source(source: Target, request: grammar.Clone) -> TablePath:
    """Return where the Delta table is that is cloned. Raises InvalidOptionError for PARTITIONED BY."""
    if request.partitions is not None:
        raise InvalidOptionError(
            f"{source.label} is a Delta table, and a clone is partitioned as its source is. Nothing was changed. Leave "
            "PARTITIONED BY out, which is for directories of Parquet files.",
            option="partitioned_by",
        )
    return source.place


def _parquet_source(spark: SparkSession, request: grammar.Clone) -> ParquetSource:
    """Return the Parquet files that a clone refers to. Raises NotOurs if the source is anything else; UnsupportedOperationError
    for time travel (UNSUPPORTED_FEATURE.TIME_TRAVEL) and for a deep clone (DELTA_UNSUPPORTED_DEEP_CLONE)."""
    source = None if request.source.path is not None else parquet_source(spark, name_text(request.source), request.partitions)
    if source is None:
        raise NotOurs(request.source)
    if request.of != Version():
        raise UnsupportedOperationError(
            f"Time travel on the relation {name_text(request.source)} is not supported: Parquet files have no versions. Nothing "
            "was changed. Leave VERSION AS OF and TIMESTAMP AS OF out.",
            error_class="UNSUPPORTED_FEATURE.TIME_TRAVEL",
            sql_state="0A000",
        )
    if not request.shallow:
        raise UnsupportedOperationError(
            f"Deep clones are made of Delta tables, and {name_text(request.source)} is Parquet files. Nothing was changed. Make "
            "a SHALLOW CLONE, of which a deep one can be made; or write the rows to a new table by CREATE TABLE ... AS SELECT.",
            error_class="DELTA_UNSUPPORTED_DEEP_CLONE",
            sql_state="0A000",
        )
    return source


# The columns of the result of a CLONE, and the metrics of the commit that they show.
_CLONE_METRICS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
_CLONE_RESULT = ", ".join(f"{name} bigint" for name in _CLONE_METRICS)


def _clone_metrics(spark: SparkSession, clone: Cloned) -> dict[str, int]:
    """Return the metrics of a clone that was made over Spark Connect, from the clone's history."""
    history = DeltaTable.forPath(spark, clone.place.path).history().filter("operation = 'CLONE'")
    row = history.select("operationMetrics").first()
    assert row is not None
    return {name: int(row["operationMetrics"][name]) for name in _CLONE_METRICS.values()}
