"""An overwrite of the rows that match some row of the source.

    replace_matching(spark, table, frame, Matching.using(("id",)), request)
    replace_matching(spark, table, frame.alias("s"), Matching.on("t.id = s.id", "t"), request)

A row of the table is deleted if the condition is true for it and at least one row of the source. All rows of the source are added
in the same commit. It runs like a MERGE: the source is computed once, its keys decide which files are read, and the two jobs of
jobs.py do the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from delta_py.definition.evolve import DefinitionChanges
from delta_py.definition.request import WriteRequest
from delta_py.errors import DeltaError, InvariantViolationError, SchemaMismatchError
from delta_py.expressions.tree import FALSE
from delta_py.row_changes.dml import MetricNames
from delta_py.row_changes.merge_clauses import Clause
from delta_py.row_changes.write_plans import plan_change
from delta_py.row_rules.evolution import check_same_types
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.snapshot import Snapshot
from delta_py.types.names import quoted
from delta_py.types.schema import StructType as DeltaSchema
from delta_py.write.task_changes import CLAUSE, NEW
from spark_plugin.dml.jobs import DmlResult, open_target
from spark_plugin.dml.store_assignment import StoreAssignment
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.merge.matching import Matching
from spark_plugin.merge.merge_job import MergeRun, run_with_cached_source
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.merge.merge_job_join import broadcast_limit
from spark_plugin.merge.merge_rows import MergeRows
from spark_plugin.merge.merge_source import SourceFacts, cached_source
from spark_plugin.options.settings import TablePath, is_case_sensitive
from spark_plugin.schema_conversion import from_spark_schema
from spark_plugin.tasks.run_near_table import at_table


def replace_matching(
    spark: SparkSession,
    table: TablePath,
    source: DataFrame,
    matching: Matching,
    request: WriteRequest,
    *,
    requires_same_types: bool = False,
) -> DmlResult:
    """Run the overwrite, and return the version and the metrics of the commit.

    request: that of an overwrite of the whole table, whose checks apply here too. requires_same_types: the source's columns must
    have the table's types. The reason is that rows match by their values before the cast: 1.5 does not match 1, but would be
    written as 1.

    Raises the errors of such an overwrite, UnsupportedOperationError (DELTA_CANNOT_MODIFY_APPEND_ONLY); SchemaMismatchError for
    a type other than the table's (DELTA_FAILED_TO_MERGE_FIELDS), and for columns of the condition that neither side has, or both
    (DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION, DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION);
    InvariantViolationError (DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION) for a row that breaks a rule of the table.
    In these cases nothing is committed, and no file is left.
    """
    try:
        return run_with_cached_source(_Request(spark, table, source, matching, request, requires_same_types).run)
    except InvariantViolationError as error:
        with as_spark_raises():  # makes the new error a Spark error too, as errors inside open_target are
            raise InvariantViolationError(
                f"A row in the place of others breaks a rule of the table: {error.message}",
                error_class="DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION",
                sql_state="44000",
            ) from error


@dataclass(frozen=True)
class _Request:
    """The arguments of replace_matching."""

    spark: SparkSession
    table: TablePath
    source: DataFrame
    matching: Matching
    request: WriteRequest
    requires_same_types: bool

    def run(self, level: StorageLevel) -> DmlResult:
        """Run the overwrite. level: where Spark caches the source."""
        alias, request, evolves = self.matching.alias, self.request, self.request.merge_schema
        evolve = self._definition_changes
        with open_target(self.spark, self.table, "WRITE", alias=alias, evolve=evolve, request=request) as target:
            resolved = self._as_merge(target.shape, target.dml.snapshot.schema.names)
            row_maker = MergeRows(target, resolved, StoreAssignment.of(self.spark, evolves=evolves))
            row_maker.check_assigned_columns()
            with cached_source(resolved, level) as source:
                return _ReplaceRun(target, resolved, row_maker, source, self.matching, request).run()

    def _definition_changes(self, snapshot: Snapshot) -> DefinitionChanges:
        """Return the changes that an overwrite with the same options would make, after its checks."""
        source_schema = self.source.schema.toNullable()
        fields = [StructField(name, source_schema[column].dataType) for name, column in self._source_columns().items()]
        schema = from_spark_schema(StructType(fields))
        return at_table(self.spark, partial(_checked_changes, snapshot, schema, self.request, self.requires_same_types))

    def _source_columns(self) -> Mapping[str, str]:
        """Return for each column of the new rows the name of the source's column that has its values."""
        names = self.matching.source_columns
        return {name: name for name in self.source.columns} if names is None else names

    def _as_merge(self, frame: DataFrame, columns: Sequence[str]) -> ResolvedMerge:
        """Return the overwrite as a MERGE that deletes matches and inserts the other rows of the source; _ReplaceRun also inserts
        the rows of the source that match. frame: stands for the target. columns: the names of the table's columns."""
        case_sensitive = is_case_sensitive(self.spark)
        source, condition = self.matching.join_inputs(columns, self.source, case_sensitive=case_sensitive)
        values = {quoted(name): F.col(quoted(column)) for name, column in self._source_columns().items()}
        clauses: tuple[Clause[Column], ...] = (Clause("matched", "delete"), Clause("not matched", "insert", assignments=values))
        try:
            return ResolvedMerge.of(
                frame, columns, source, condition, clauses, evolves=self.request.merge_schema, alias=self.matching.alias
            )
        except (AnalysisException, DeltaError) as error:
            clearer_error = _clearer_error(error)
            if clearer_error is None:
                raise
            raise clearer_error from error


def _checked_changes(
    snapshot: Snapshot, schema: DeltaSchema, request: WriteRequest, requires_same_types: bool
) -> DefinitionChanges:
    """Return the changes of the table's definition that an overwrite makes. Raises the errors of its checks, and with
    requires_same_types SchemaMismatchError for a column of another type than the table's."""
    if requires_same_types and not request.merge_schema:
        check_same_types(snapshot.schema, schema)
    return plan_change(snapshot, schema, request).changes


def _clearer_error(error: AnalysisException | DeltaError) -> DeltaError | None:
    """Return an error that speaks of the options replaceOn and targetAlias instead of a MERGE; None if `error` is clear
    enough."""
    condition = (error.error_class if isinstance(error, DeltaError) else error.getCondition()) or ""
    if condition == "DELTA_MERGE_UNRESOLVED_EXPRESSION" and isinstance(error, DeltaError):
        name = error.message_parameters["name"]
        return SchemaMismatchError(
            f"The condition of replaceOn names {name}, which is neither a column of the table nor of the source. Nothing was "
            "written. Correct the name; targetAlias calls the table, and DataFrame.alias the source.",
            error_class="DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
            sql_state="42703",
            column=name,
        )
    if condition == "AMBIGUOUS_REFERENCE" and not isinstance(error, DeltaError):
        name = (error.getMessageParameters() or {}).get("name", "a column")
        return SchemaMismatchError(
            f"The condition of replaceOn names {name}, which both the table and the source have. Nothing was written. Call the "
            "table by the option targetAlias, and the source by DataFrame.alias.",
            error_class="DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
            sql_state="42702",
            column=name,
        )
    return None


@dataclass(frozen=True)
class _ReplaceRun(MergeRun):
    """One run of the overwrite, as the MERGE that _as_merge makes of it."""

    matching: Matching
    request: WriteRequest

    def _rows_to_change(self, target_rows: DataFrame | None, facts: SourceFacts) -> DataFrame:
        """Return the rows that the two clauses of _as_merge delete and insert. Unlike in a MERGE, the rows of the source that
        match are inserted too."""
        (delete_number, _), (insert_number, insert_clause) = enumerate(self.merge.clauses)
        inserted_rows = self.source.frame.select(
            F.lit(insert_number).alias(CLAUSE), self.row_maker.new_row(insert_clause).alias(NEW)
        )
        if target_rows is None:
            self.target.dml.transaction.read_rows(FALSE)  # otherwise it would count as a blind append
            return inserted_rows
        is_small = facts.key_bytes <= broadcast_limit(target_rows)
        source = F.broadcast(self.source.frame) if is_small else self.source.frame
        matching_rows = target_rows.join(source, self.merge.condition.column, "left_semi")
        no_new_row = F.lit(None).cast(inserted_rows.schema[NEW].dataType)
        deleted_rows = matching_rows.select(F.col(ROW_ADDRESS), F.lit(delete_number).alias(CLAUSE), no_new_row.alias(NEW))
        no_address = F.lit(None).cast(deleted_rows.schema[ROW_ADDRESS].dataType)
        return deleted_rows.unionAll(inserted_rows.select(no_address.alias(ROW_ADDRESS), CLAUSE, NEW))

    def _parameters(self) -> dict[str, Any]:
        """Return the operation's parameters for the history, which are those of an overwrite."""
        schema_parameters = {"canMergeSchema": True} if self.request.merge_schema else {}
        if self.request.partition_overwrite_mode == "dynamic":  # from the session, and without effect here
            schema_parameters["isDynamicPartitionOverwrite"] = True
        partitions = list(self.request.partition_by or ())
        return {"mode": "Overwrite", "partitionBy": partitions, **schema_parameters, **self.matching.history_parameter()}

    def _metric_names(self, facts: SourceFacts) -> MetricNames:
        return _write_metrics


def _write_metrics(metrics: Mapping[str, int], by_clause: Mapping[int, int]) -> dict[str, int]:
    """Return the metrics without the times, which the history of an overwrite does not have. by_clause: the row counts of
    clauses, which every function of type MetricNames gets; not used here."""
    return {name: value for name, value in metrics.items() if not name.endswith("Ms")}
