"""MERGE: a join of the source and the target. The first clause that applies to a row of the join makes the changed row.

    result = merge(spark, table, source, condition, clauses, alias=("t",))

The source decides first which files of the target can matter (merge_source.py); only those are read. jobs.py processes the
changed rows, as for DELETE and UPDATE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py.definition.evolve import DefinitionChanges, changed_definition
from delta_py.definition.request import WriteRequest
from delta_py.errors import DeltaError, SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.coercion import DATETIME, is_numeric
from delta_py.row_changes.dml import MetricNames
from delta_py.row_changes.merge_clauses import (
    Clause,
    changes_every_match,
    deletes_all_matches,
    effective_clauses,
    only_inserts,
    recorded_parameters,
)
from delta_py.row_changes.merge_metrics import merge_metrics
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.snapshot import Snapshot
from delta_py.types.schema import BINARY, STRING, StructType
from delta_py.write.rewrite import Repeats, multiple_matches
from delta_py.write.task_changes import CHANGE, CLAUSE, DELETED, FILE, INSERTED, NEW, ROW, ROW_ID, UPDATED
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.jobs import DmlResult, PlannedChange, Target, open_target, run_changes
from spark_plugin.dml.store_assignment import StoreAssignment
from spark_plugin.dml.target_names import Alias, alias_frame
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.merge.merge_job_join import FROM_SOURCE, broadcast_limit, join
from spark_plugin.merge.merge_rows import PARTITION_VALUE, MergeRows
from spark_plugin.merge.merge_scopes import MergeScopes, evaluated_in_place, first_clause
from spark_plugin.merge.merge_source import (
    Source,
    SourceFacts,
    cached_source,
    facts_without_rows,
    reads_table,
    source_facts,
    unread_source,
)
from spark_plugin.options.settings import TablePath, conf
from spark_plugin.schema_conversion import from_spark_schema, to_spark_schema

AUTO_MERGE_CONF = "spark.databricks.delta.schema.autoMerge.enabled"
_REPARTITION_CONF = "spark.databricks.delta.merge.repartitionBeforeWrite.enabled"

# By the action of a clause, the value of the column CHANGE, which tells tasks what happens to a row (task_changes.py).
_CHANGES_BY_ACTION = {"delete": DELETED, "update": UPDATED, "insert": INSERTED}
# Where the rows of the source are cached in each attempt. After rows were lost, the next attempts keep a second copy of each.
_LEVELS = (StorageLevel.MEMORY_AND_DISK, StorageLevel.MEMORY_AND_DISK_2, StorageLevel.MEMORY_AND_DISK_2)
# Spark's messages for cached rows of the source that are lost, by condition or by text.
_LOST_ROWS = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")


def merge(
    spark: SparkSession,
    table: TablePath,
    source: DataFrame,
    condition: Column,
    clauses: Sequence[Clause[Column]],
    *,
    alias: Alias = (),
    evolves: bool = False,
) -> DmlResult:
    """Run a MERGE in one commit, or in none if nothing changes.

    alias: the target's name in conditions and values. evolves: columns that only the source has are added to the table; the
    session's setting AUTO_MERGE_CONF does the same.

    Raises the errors of effective_clauses, ResolvedMerge.of and StoreAssignment before anything runs; MultipleMatchesError
    (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE) if several rows of the source match one of the target, unless
    matched rows are only deleted, or there are only inserts; conflicts as Transaction.commit. In these cases nothing is
    committed and no file remains.
    """
    return run_with_cached_source(MergeRequest.of(spark, table, alias, source, condition, clauses, evolves).run)


def run_with_cached_source(run: Callable[[StorageLevel], DmlResult]) -> DmlResult:
    """Run the function, which caches the rows of a source at a storage level. If the executors lose these rows, run it again at a
    safer level.

    Raises UnsupportedOperationError (DELTA_MERGE_MATERIALIZE_SOURCE_FAILED_REPEATEDLY) if the rows are lost at every level.
    """
    for level in _LEVELS:
        try:
            return run(level)
        except (PySparkException, Py4JJavaError) as error:
            # An error of pydelta can be a PySparkException too (exceptions.py), and is not about lost rows.
            if isinstance(error, DeltaError) or not _LOST_ROWS.search(str(error)):
                raise
            last_error = error
    raise UnsupportedOperationError(
        f"The rows of the source, which the executors keep meanwhile, were lost {len(_LEVELS)} times. Nothing was changed. "
        "Write the source to a table, and take it from that.",
        error_class="DELTA_MERGE_MATERIALIZE_SOURCE_FAILED_REPEATEDLY",
        sql_state="25000",
    ) from last_error


@dataclass(frozen=True)
class MergeRequest:
    """A MERGE as the caller requested it. alias: the target's name in conditions and values. evolves: columns that only the
    source has are added to the table."""

    spark: SparkSession
    table: TablePath
    alias: Alias
    source: DataFrame
    condition: Column
    clauses: tuple[Clause[Column], ...]
    evolves: bool

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        table: TablePath,
        alias: Alias,
        source: DataFrame,
        condition: Column,
        clauses: Sequence[Clause[Column]],
        evolves: bool,
    ) -> MergeRequest:
        """Make the request from the arguments and the session's settings."""
        clauses = effective_clauses(clauses)
        evolves = evolves or (conf(spark, AUTO_MERGE_CONF) or "false").lower() == "true"
        return cls(spark, table, alias, source, condition, clauses, evolves)

    def run(self, level: StorageLevel) -> DmlResult:
        """Run the MERGE. level: where Spark caches the source."""
        with self._open() as (target, resolved, row_maker), cached_source(resolved, level) as source:
            return MergeRun(target, resolved, row_maker, source).run()

    @contextmanager
    def open_plan(self) -> Iterator[tuple[Target, PlannedChange]]:
        """Yield the target, while it is open, and the plan of the MERGE, without reading the source. A real MERGE knows more
        after it has read the source, and then reads fewer files. Raises the same as `merge` before anything runs."""
        with self._open() as (target, resolved, row_maker):
            yield target, MergeRun(target, resolved, row_maker, unread_source(resolved)).plan()

    @contextmanager
    def _open(self) -> Iterator[tuple[Target, ResolvedMerge, MergeRows]]:
        """Open the target, and resolve the condition and the clauses for it. Yields the target, the resolved MERGE, and the maker
        of its new rows."""
        with open_target(self.spark, self.table, "MERGE", alias=self.alias, evolve=self._definition_changes) as target:
            resolved = self._resolve(target.shape, target.dml.snapshot.schema.names)
            row_maker = MergeRows(target, resolved, StoreAssignment.of(self.spark, evolves=self.evolves))
            row_maker.check_assigned_columns()
            yield target, resolved, row_maker

    def _check_has_columns(self, snapshot: Snapshot) -> None:
        """Raise SchemaMismatchError if the table has no columns and the merge cannot add any, because it does not evolve."""
        if not snapshot.schema.fields and not self.evolves:
            raise SchemaMismatchError(
                "Cannot MERGE INTO a table without columns. Nothing was changed. Add columns first, or use schema evolution.",
                error_class="DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET",
                sql_state="428GU",
            )

    def _resolve(self, frame: DataFrame, columns: Sequence[str]) -> ResolvedMerge:
        """Resolve the condition and the clauses. frame: stands for the target. columns: the names of the table's columns."""
        return ResolvedMerge.of(frame, columns, self.source, self.condition, self.clauses, evolves=self.evolves, alias=self.alias)

    def _definition_changes(self, snapshot: Snapshot) -> DefinitionChanges:
        """Return how the merge changes the table's definition: it may add columns that clauses assign and the table lacks. Raises
        SchemaMismatchError for a table without columns that does not evolve."""
        self._check_has_columns(snapshot)
        if not self.evolves:
            return DefinitionChanges()
        # The target is not open yet, so the clauses are resolved for an empty frame with its schema.
        shape = self.spark.createDataFrame([], to_spark_schema(snapshot.schema))
        resolved = self._resolve(alias_frame(shape, self.alias), snapshot.schema.names)
        new_columns = resolved.evolved_columns()
        if not new_columns.fields:
            return DefinitionChanges()
        request = WriteRequest(mode="append", merge_schema=True, merge_casts=True)
        cast_columns = _with_texts_cast(from_spark_schema(new_columns.toNullable()), snapshot.schema)
        return changed_definition(snapshot, cast_columns, request)


def _with_texts_cast(source_columns: StructType, table_columns: StructType) -> StructType:
    """Return the source's columns with the types that their values have in the new rows. SET and VALUES cast a text if the
    table's column of this name has numbers, times or bytes; so the text column gets this type. Other columns are unchanged."""
    fields = []
    for f in source_columns.fields:
        table_column, kind = table_columns.find(f.name), f.data_type
        table_type = None if table_column is None else table_column.data_type
        if isinstance(kind, StructType) and isinstance(table_type, StructType):
            kind = _with_texts_cast(kind, table_type)
        elif kind == STRING and table_type is not None and (is_numeric(table_type) or table_type in (*DATETIME, BINARY)):
            kind = table_type
        fields.append(replace(f, data_type=kind))
    return StructType(tuple(fields))


# ---------------------------------------------------------------- the run


@dataclass(frozen=True)
class MergeRun:
    """One run of a MERGE. merge: the condition and the clauses, resolved. row_maker: makes the new rows. source: as it is
    cached."""

    target: Target
    merge: ResolvedMerge
    row_maker: MergeRows
    source: Source

    def run(self) -> DmlResult:
        """Run the MERGE with the cached source: choose the files that may matter, tell the commit on which rows it depends, and
        run the jobs that change rows."""
        # If a match may change nothing, only a query can find rows that match several times; see _check_matches.
        may_change_nothing = not only_inserts(self.merge.clauses) and not changes_every_match(self.merge.clauses)
        facts = source_facts(self.merge, self.source, check_unique=may_change_nothing)
        target_rows = self._choose_target_rows(facts)
        if target_rows is not None and may_change_nothing and not facts.is_unique:
            self._check_matches(target_rows)
        dml = self.target.dml
        dml.only_inserts = only_inserts(self.merge.clauses)
        if reads_table(self.merge.source, self.target.table):
            dml.transaction.read_rows()  # the source may have read any row of the table
        elif changes_every_match(self.merge.clauses) or not self.merge.of_kind("not matched"):
            # Rows that the MERGE does not change have no effect on it, so other writers may delete them in the meantime. In a
            # MERGE with inserts and unchanged matches they have: such a match is why the row of the source is not inserted.
            dml.transaction.only_deleted_rows_matter()
        # A row may reach the jobs several times, once for each match. That is an error unless the row is only deleted.
        dml.repeats = Repeats.IGNORED if deletes_all_matches(self.merge.clauses) else Repeats.AMBIGUOUS
        return run_changes(self.target, self._changed_rows(target_rows, facts), self._parameters(), self._metric_names(facts))

    def plan(self) -> PlannedChange:
        """Return the plan of the MERGE before the source's rows are read, when nothing is known about them. No job runs."""
        facts = facts_without_rows(self.merge, self.source)
        return PlannedChange(self._changed_rows(self._choose_target_rows(facts), facts), self._parameters())

    def _changed_rows(self, target_rows: DataFrame | None, facts: SourceFacts) -> DataFrame | None:
        """Return the rows that the MERGE writes or deletes, with the columns that write_changes takes in a task
        (task_changes.py); None if no row can change. target_rows: the target's rows that matter; None if there are none."""
        joined_rows = self._rows_to_change(target_rows, facts)
        if joined_rows is None:
            return None
        return self._grouped_by_partition(self.row_maker.with_generated(self._with_task_columns(joined_rows)), facts)

    def _rows_to_change(self, target_rows: DataFrame | None, facts: SourceFacts) -> DataFrame | None:
        """Return ROW_ADDRESS (unless `target_rows` is None), the number of the clause that applies, and NEW if clauses make rows;
        None if no row can change."""
        if target_rows is None and not self.merge.of_kind("not matched"):
            return None
        # Over Spark Connect resolved columns are only names, so MergeScopes gives each kind of clause its own projection.
        if not analyzer_of(self.target.spark).binds_columns:
            return MergeScopes(self.target, self.merge, self.row_maker, self.source).changed_rows(target_rows)
        joined = self._all_source_rows() if target_rows is None else join(self.merge, self.source, target_rows, facts)
        has_target = ROW_ADDRESS in joined.columns
        clause_number = evaluated_in_place(self.merge, self._clause_number(has_target))
        changing_rows = joined.select("*", clause_number.alias(CLAUSE)).where(F.col(CLAUSE).isNotNull())
        # Without rows of the target the other clauses have no rows to take values from.
        clauses = list(enumerate(self.merge.clauses)) if has_target else self.merge.of_kind("not matched")
        new_rows = [
            F.when(F.col(CLAUSE) == number, self.row_maker.new_row(clause))
            for number, clause in clauses
            if clause.action != "delete"
        ]
        address = [F.col(ROW_ADDRESS)] if has_target else []
        return changing_rows.select(*address, F.col(CLAUSE), *([F.coalesce(*new_rows).alias(NEW)] if new_rows else []))

    def _choose_target_rows(self, facts: SourceFacts) -> DataFrame | None:
        """Choose the files that may contain rows that matter, and return the target's rows that matter; None if there are none. A
        row matters if it may match, or if a clause for rows without a match may apply to it."""
        clauses = [clause for _, clause in self.merge.of_kind("not matched by source")]
        row_filter = facts.restriction
        if row_filter is not None and clauses:
            conditions = [clause.condition.column for clause in clauses if clause.condition is not None]
            # A clause without a condition applies to any row that has no match, so then every row matters.
            row_filter = reduce(or_, conditions, row_filter) if len(conditions) == len(clauses) else None
        frame = self.target.frame if row_filter is None else self.target.frame.where(row_filter)
        needed_rows = self.target.needed_rows(frame, row_filter)
        if needed_rows.none or not self.target.choose_files(needed_rows.predicate):
            return None
        return frame

    def _all_source_rows(self) -> DataFrame:
        """Return all rows of the source with FROM_SOURCE: the result of the join if no row of the target can matter."""
        return self.source.frame.select("*", F.lit(True).alias(FROM_SOURCE))

    def _check_matches(self, target_rows: DataFrame) -> None:
        """Raise MultipleMatchesError if a row of the target matches several rows of the source.

        If every match changes its row, the jobs detect this: they get the same row twice. A match that changes nothing does not
        reach the jobs, so this query counts the matches of each row."""
        pairs = self.source.frame.join(target_rows, self.merge.condition.column, "inner")
        row_address = [F.col(ROW_ADDRESS).getField(name) for name in ("file_number", "row_index")]
        if pairs.groupBy(*row_address).count().where("count > 1").limit(1).count():
            raise multiple_matches("a row of the target matches more than one row of the source")

    def _with_task_columns(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the columns that write_changes takes (task_changes.py), and the number of the clause that made
        each row."""
        kinds_of_change = [
            F.when(F.col(CLAUSE) == number, _CHANGES_BY_ACTION[clause.action]) for number, clause in enumerate(self.merge.clauses)
        ]
        change = F.coalesce(*kinds_of_change).cast("tinyint").alias(CHANGE)
        columns = [*self._address_columns(ROW_ADDRESS in rows.columns), F.col(CLAUSE), change]
        return rows.select(*columns, *([F.col(NEW)] if NEW in rows.columns else []))

    def _grouped_by_partition(self, changed: DataFrame, facts: SourceFacts) -> DataFrame:
        """Put the new rows of a partition into one task, or into several if they are many (Spark's hint `rebalance`), so that
        they make few files: after a join every task has some rows of each partition. A source that is small enough to broadcast
        makes few files without this."""
        names = self.target.dml.config.partition_columns
        repartitions = (conf(self.target.spark, _REPARTITION_CONF) or "true").lower() == "true"
        if not names or not repartitions or NEW not in changed.columns or facts.source_bytes <= broadcast_limit(changed):
            return changed
        rows_with_partitions = self.row_maker.with_partition_values(changed)
        keys = [F.col(f"{PARTITION_VALUE}{number}") for number in range(len(names))]
        return rows_with_partitions.hint("rebalance", *keys).select(*changed.columns)

    def _address_columns(self, has_target: bool) -> list[Column]:
        """Return the columns FILE, ROW and, if the table tracks rows, ROW_ID, from the struct ROW_ADDRESS. has_target: the rows
        have this struct; otherwise they are only inserted, and the columns are null."""
        fields_and_types = {FILE: ("file_number", "int"), ROW: ("row_index", "bigint")}
        if self.target.dml.row_ids is not None:
            fields_and_types[ROW_ID] = ("row_id", "bigint")
        if not has_target:
            return [F.lit(None).cast(kind).alias(column) for column, (_, kind) in fields_and_types.items()]
        return [F.col(ROW_ADDRESS).getField(name).alias(column) for column, (name, _) in fields_and_types.items()]

    def _clause_number(self, has_target: bool) -> Column:
        """Return the number of the clause that applies to a row of the join: the first of its kind whose condition is true.
        has_target: the join has the columns of the target; otherwise no row has a match."""
        if not has_target:
            return first_clause(self.merge, "not matched")
        is_of_target = F.col(ROW_ADDRESS).getField("file_number").isNotNull()
        is_of_source = F.col(FROM_SOURCE).isNotNull()
        clause = F.when(is_of_target & is_of_source, first_clause(self.merge, "matched"))
        return clause.when(is_of_source, first_clause(self.merge, "not matched")).otherwise(
            first_clause(self.merge, "not matched by source")
        )

    # ------------------------------------------------------------ for the history

    def _metric_names(self, facts: SourceFacts) -> MetricNames:
        """Return the function that makes the operation's metrics for the history from the metrics of the jobs."""
        clauses = tuple((clause.kind, clause.action) for clause in self.merge.clauses)
        return partial(merge_metrics, clauses, facts.row_count, self.source.elapsed_ms)

    def _parameters(self) -> dict[str, Any]:
        """Return the operation's parameters for the history: the condition and the clauses, as SQL text."""
        conditions = [None if clause.condition is None else clause.condition.sql for clause in self.merge.clauses]
        return recorded_parameters(self.merge.condition.sql, self.merge.clauses, conditions)
