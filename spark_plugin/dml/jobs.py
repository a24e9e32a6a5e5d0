"""The two Spark jobs of a DELETE, UPDATE or MERGE.

    with open_target(spark, table, "UPDATE") as target:
        changed_rows = ...                             # a DataFrame made from target.frame, with the columns of task_changes.py
        target.choose_files(predicate)                 # which files can matter
        result = run_changes(target, changed_rows, parameters)

Job 1 makes the changed rows; its tasks write the new rows and return the positions of the old ones. Job 2 deletes the old rows
from their files, with Arrow only. One commit at the end adds the files of both jobs to the table; otherwise they are deleted.
Over Spark Connect everything that looks at the table between the jobs runs in tasks too (run_near_table.py), and the list of
files lies next to the table's own files until the end.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py.definition.evolve import DefinitionChanges
from delta_py.definition.request import WriteRequest
from delta_py.expressions.tree import Expression
from delta_py.progress import progress
from delta_py.row_changes.dml import ChosenFiles, Dml, MetricNames
from delta_py.scan.planning import METADATA_COLUMN, ROW_ADDRESS, metadata_scan_column
from delta_py.snapshot import Snapshot
from delta_py.types.schema import StructType
from delta_py.write.data_files import delete_files
from delta_py.write.rewrite import RemovedRows, TouchedFile, remove_rows
from delta_py.write.task_changes import CHANGE, FILE, ROW, ROW_ID, ChangeState, TaskChanges
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.data_source import FORMAT
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.dml_tasks import RESULT, file_rewriter, row_writer
from spark_plugin.dml.store_assignment import overflow_as_delta_error
from spark_plugin.dml.target_names import Alias, alias_frame
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.common import DISABLED, FILES, SESSION
from spark_plugin.options.roads import Road
from spark_plugin.options.settings import TablePath, active, conf, reset_transaction, write_settings
from spark_plugin.options.write_options import write_options
from spark_plugin.pruning.needed_rows import NeededRows
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.session_source import private
from spark_plugin.tasks.arrow_batches import unweighed
from spark_plugin.tasks.run_near_table import abandon, at_table, clean_up, in_tasks, tasks_worth_while
from spark_plugin.tasks.task_answers import from_text
from spark_plugin.tasks.task_progress import watched

Evolution: TypeAlias = Callable[[Snapshot], DefinitionChanges]
ToViewRows: TypeAlias = Callable[[DataFrame, str], DataFrame]
"""A function for a statement about a view of the table: it takes a frame of the table's rows and the name of one of its columns,
and returns the same rows with the view's columns and this one column."""


_DISABLED_ROADS = ",".join((Road.LOG, Road.DRIVER, Road.PARTIAL, Road.JOINS))
"""Ways of reading that are disabled for the jobs of a DML, because its tasks must read each row of the chosen files with the
row's address: its file and position."""


@dataclass
class Target:
    """The table that a DELETE, UPDATE, MERGE or overwrite changes, at the version that it read.

    listed: the path of the file with the list of the chosen files, which the process that plans the scan reads; an absolute path
    on this machine, or over Spark Connect one in the table's store. alias: the name that conditions may use for the table.
    follows_session: whether the change follows the session's settings for all writes, including its transaction (txnAppId,
    txnVersion). to_view_rows: gives the rows the columns of the view that the statement names; None if they have the table's
    columns. has_metadata: whether the frame has the column `_metadata`."""

    spark: SparkSession
    dml: Dml
    table: TablePath
    listed: str
    alias: Alias = ()
    follows_session: bool = True
    to_view_rows: ToViewRows | None = None
    has_metadata: bool = False

    def include_metadata_if_named(self, columns: Sequence[Column]) -> None:
        """Give `frame` the column `_metadata` too, if one of the columns may name it and the table has no column of this name.
        Call this method before `frame` is first used."""
        # `frame` is in __dict__ as soon as it was computed, because it is a cached property.
        assert "frame" not in self.__dict__, "the frame has its columns already"
        if self.dml.snapshot.schema.find(METADATA_COLUMN) is None:
            texts = (analyzer_of(self.spark).written_text(column) for column in columns)
            self.has_metadata = any(METADATA_COLUMN in text.lower() for text in texts)

    @cached_property
    def frame(self) -> DataFrame:
        """The table's columns, or those of the view, `_metadata` if `has_metadata`, and the struct ROW_ADDRESS. A job can read
        the frame after choose_files has chosen the files."""
        reader = self.spark.read.format(FORMAT).option("versionAsOf", self.dml.snapshot.version)
        reader = reader.options(**private(self.spark, {FILES: self.listed, DISABLED: _DISABLED_ROADS}))
        reader = reader.option("metadataColumn", str(self.has_metadata).lower())
        rows = reader.options(**self.table.storage).load(self.table.url)
        rows = rows if self.to_view_rows is None else self.to_view_rows(rows, ROW_ADDRESS)
        return alias_frame(rows, self.alias)

    @cached_property
    def shape(self) -> DataFrame:
        """A frame with the same columns as `frame`, but without ROW_ADDRESS, for the analyzer: names mean the same in it, and no
        error should list ROW_ADDRESS. Over Spark Connect it has no rows: otherwise the server would look at the table, and plan a
        read, for each call of the analyzer."""
        if analyzer_of(self.spark).binds_columns:
            return self.frame.drop(ROW_ADDRESS)
        columns = self.dml.snapshot.schema.fields
        metadata = (metadata_scan_column().logical,) if self.has_metadata else ()
        empty_frame = self.spark.createDataFrame([], to_spark_schema(StructType((*columns, *metadata))))
        return alias_frame(empty_frame, self.alias)

    def address_columns(self, change: int) -> list[Column]:
        """Return the columns that say which row of the table a changed row deletes or replaces: file, position, the row's id if
        the table tracks rows, and the kind of change. change: DELETED or UPDATED of task_changes.py."""
        address_fields = {FILE: "file_number", ROW: "row_index"}
        if self.dml.row_ids is not None:
            address_fields[ROW_ID] = "row_id"
        columns = [F.col(ROW_ADDRESS).getField(name).alias(column) for column, name in address_fields.items()]
        return [*columns, F.lit(change).cast("tinyint").alias(CHANGE)]

    def needed_rows(self, frame: DataFrame, condition: Column | None = None) -> NeededRows:
        """Return which of the target's rows a frame over `frame` needs, as far as that is known. condition: the condition of the
        frame, if the frame is only a filter. No job runs."""
        schema = self.dml.snapshot.schema
        needed_rows = analyzer_of(self.spark).needed_rows(
            frame, condition, file_list_path=self.listed, schema=schema, alias=self.alias
        )
        return needed_rows.without(METADATA_COLUMN) if self.has_metadata else needed_rows

    def choose_files(self, predicate: Expression | None, *, is_exact: bool = False) -> int:
        """Choose the files to read: those that may contain rows for which the predicate is true. is_exact: the predicate is true
        for exactly the rows to delete, so files in which it is true for all rows need not be read. Returns the number of files to
        read."""
        chosen = at_table(self.spark, partial(_choose_files, self.dml, predicate, is_exact, self.listed))
        if not adapter_of(self.spark).is_driver:  # a copy of the DML chose the files
            self.dml.apply_chosen_files(predicate, chosen)
        return int(chosen.candidates.num_rows)


def _choose_files(dml: Dml, predicate: Expression | None, is_exact: bool, listed: str) -> ChosenFiles:
    """Choose the files that a change reads, and write their list for the process that plans the scan. listed: the path of the
    list: an absolute one on this machine, or one among the table's files."""
    candidates = dml.find_candidates(predicate)
    if is_exact:
        candidates = dml.split_off_whole_files(predicate)
    with pa.OSFile(listed, "wb") if os.path.isabs(listed) else dml.store.open_output(listed) as sink:
        candidates.write_stream(sink)
    return dml.chosen


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The input of run_changes. changed_rows: the frame of changed rows, with the columns of task_changes.py; None if no row has
    to be read. parameters: of the operation, for the history."""

    changed_rows: DataFrame | None
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DmlResult:
    """The result of a DELETE, UPDATE, MERGE or overwrite. version: of the commit, or the version that was read if there was
    nothing to change. metrics: by delta-spark's names."""

    version: int
    metrics: Mapping[str, int]


def load_newest(spark: SparkSession, table: TablePath) -> Snapshot:
    """Load the newest version: over Spark Connect in a task, which can read the table. Raises the same as Snapshot.load."""
    store = table.open_store(spark)
    # A snapshot that a task has loaded refers to the task's copy of the store; let it use this store.
    return at_table(spark, partial(Snapshot.load, store)).through(store)


@contextmanager
def open_target(
    spark: SparkSession,
    table: TablePath,
    operation: str,
    *,
    alias: Alias = (),
    evolve: Evolution | None = None,
    request: WriteRequest | None = None,
    to_view_rows: ToViewRows | None = None,
) -> Iterator[Target]:
    """Open the newest version of a table to change it. operation: its name in the history. evolve: returns how the operation
    changes the definition of the table at this version, such as new columns of a MERGE; None if it does not. request: the write
    settings to follow; None for the session's settings for all writes. alias, to_view_rows: as in Target.

    Errors of delta_py that are raised inside become Spark errors too.
    """
    with as_spark_raises(), active(spark), progress(operation, "tasks"), watched(spark):
        time_zone = conf(spark, "spark.sql.session.timeZone") or "UTC"
        snapshot = load_newest(spark, table)
        follows_session = request is None
        if request is None:
            request = write_options({"path": table.url, SESSION: write_settings(spark, table.url)}, overwrite=False).request
        changes = DefinitionChanges() if evolve is None else evolve(snapshot)
        dml = Dml.on(snapshot, operation, replace(request, time_zone=time_zone), changes)
        with _open_file_list_path(spark, dml) as file_list_path:
            yield Target(spark, dml, table, file_list_path, alias, follows_session, to_view_rows)


@contextmanager
def _open_file_list_path(spark: SparkSession, dml: Dml) -> Iterator[str]:
    """Yield a path for the list of the chosen files: an absolute one on this machine; over Spark Connect a path in dml.store. The
    file at this path is deleted at the end."""
    if adapter_of(spark).is_driver:
        with tempfile.TemporaryDirectory(prefix="pydelta-") as folder:
            yield f"{folder}/files.arrow"
        return
    file_list_path = f"{dml.state.write_id}-files.arrow"
    try:
        yield file_list_path
    finally:
        clean_up(spark, partial(delete_files, dml.store, [file_list_path]))


def run_changes(
    target: Target, changed_rows: DataFrame | None, parameters: Mapping[str, Any], name_metrics: MetricNames | None = None
) -> DmlResult:
    """Write the new rows, delete the old ones from their files, and commit.

    changed_rows: the frame of changed rows, with the columns of task_changes.py; None if no row has to be read. parameters: of
    the operation, for the history. name_metrics: makes the operation's metrics from all metrics and from the row count of each
    clause of a MERGE; None: all metrics stay. If a job fails, all written files are deleted and nothing is committed. Nothing is
    done if the table has already recorded the session's transaction (txnAppId, txnVersion): then the metrics are empty."""
    dml, started_at = target.dml, time.monotonic()
    if dml.transaction.is_named and at_table(target.spark, lambda: dml.transaction.is_recorded):
        if target.follows_session:
            reset_transaction(target.spark)
        return DmlResult(dml.snapshot.version, {})
    changes: list[TaskChanges] = []
    try:
        if changed_rows is not None:
            changes = _write_changed_rows(target.spark, changed_rows, dml.change_state())
        scanned_at = time.monotonic()
        removals = _remove_old_rows(target.spark, dml, dml.touched_files(changes))
    except BaseException:
        abandon(target.spark, target.dml.abort)
        raise
    times = {
        "scanTimeMs": round((scanned_at - started_at) * 1000),
        "rewriteTimeMs": round((time.monotonic() - scanned_at) * 1000),
    }
    try:
        commit = partial(dml.commit, parameters, changes, removals, times, name_metrics=name_metrics)
        version, metrics = at_table(target.spark, commit, once=True)
    finally:
        # Tasks put long lists of row positions into files, which only this operation reads.
        if any(part.scratch for part in changes):
            clean_up(target.spark, partial(dml.close, changes))
    if target.follows_session:
        reset_transaction(target.spark)
    refresh_cached(target.spark, target.table.name, target.table.url)
    return DmlResult(version, metrics)


# ---------------------------------------------------------------- job 1: the changed rows


def _write_changed_rows(spark: SparkSession, changed_rows: DataFrame, state: ChangeState) -> list[TaskChanges]:
    """Run job 1, whose tasks write the new rows. Returns one value for each task that had rows."""
    with overflow_as_delta_error(), unweighed(spark, changed_rows.schema):
        rows = changed_rows.mapInArrow(row_writer(state), f"{RESULT} string").collect()
    return [from_text(row[RESULT]) for row in rows]


# ---------------------------------------------------------------- job 2: files without the old rows


def _remove_old_rows(spark: SparkSession, dml: Dml, files: Sequence[TouchedFile]) -> RemovedRows:
    """Remove the old rows from the files that have them: in job 2, or without a Spark job if that is little work."""
    if not files:
        return RemovedRows()
    if dml.is_light(files):
        return at_table(spark, partial(remove_rows, files, dml.rewrite))
    groups = dml.group_for_tasks(files, tasks_worth_while(spark))
    return RemovedRows.of_all(in_tasks(spark, groups, file_rewriter(dml.rewrite)))
