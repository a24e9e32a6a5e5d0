"""DELETE, TRUNCATE and UPDATE.

Spark evaluates conditions and values: any function, and subqueries, which Spark turns into joins. A row is deleted or changed
only if the condition is true for it, not null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, SparkSession

from delta_py.write.task_changes import DELETED, UPDATED
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.assignments import assigned_paths, new_row, with_defaults
from spark_plugin.dml.jobs import DmlResult, PlannedChange, Target, ToViewRows, open_target, run_changes
from spark_plugin.dml.target_names import Alias
from spark_plugin.options.settings import TablePath


def delete(
    spark: SparkSession,
    table: TablePath,
    condition: Column | None = None,
    *,
    alias: Alias = (),
    to_view_rows: ToViewRows | None = None,
) -> DmlResult:
    """Delete the rows for which the condition is true, or all rows if it is None. to_view_rows: gives
    the rows the columns of the view that the condition names; None if it names the table's columns.

    A file is removed without being read if partition values or statistics show that all its rows are deleted. Raises Spark's
    AnalysisException for a value that is no condition; UnsupportedOperationError (DELTA_CANNOT_MODIFY_APPEND_ONLY,
    DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED); conflicts as Transaction.commit.
    """
    with open_target(spark, table, "DELETE", alias=alias, to_view_rows=to_view_rows) as target:
        planned = plan_delete(target, condition)
        return run_changes(target, planned.changed_rows, planned.parameters)


def plan_delete(target: Target, condition: Column | None) -> PlannedChange:
    """Plan the `delete` of the target and choose the files that it reads. Raises the same as `delete` before anything runs."""
    if condition is None:
        target.dml.transaction.only_deleted_rows_matter()
        target.choose_files(None, is_exact=True)  # the commit removes whole files, so no row has to be read
        return PlannedChange(None, _history_parameters(None))
    target.include_metadata_if_named([condition])
    condition_text = analyzer_of(target.spark).filter_text(target.shape, condition, "DELETE")
    _record_reads(target, [condition])
    matching_rows = target.frame.where(condition)
    needed_rows = target.needed_rows(matching_rows, condition)
    file_count = 0 if needed_rows.none else target.choose_files(needed_rows.predicate, is_exact=needed_rows.exact)
    changed_rows = matching_rows.select(*target.address_columns(DELETED)) if file_count else None
    return PlannedChange(changed_rows, _history_parameters(condition_text))


def truncate(spark: SparkSession, table: TablePath) -> DmlResult:
    """Delete all rows; the history calls it TRUNCATE. Raises the same as `delete`."""
    with open_target(spark, table, "DELETE") as target:
        target.dml.recorded_operation = "TRUNCATE"
        return run_changes(target, plan_delete(target, None).changed_rows, {})


def update(
    spark: SparkSession,
    table: TablePath,
    condition: Column | None,
    assignments: Mapping[str, Column],
    *,
    alias: Alias = (),
) -> DmlResult:
    """Give columns new values in the rows for which the condition is true, or in all rows if it is None.

    assignments: by column name; fields of structs by their path. Values may use the row's old values; DEFAULT is
    the column's default. Raises the same as `delete`, and the errors of assigned_paths, Analyzer.check_values, new_row and
    row_rules/conform.py.
    """
    with open_target(spark, table, "UPDATE", alias=alias) as target:
        planned = plan_update(target, condition, assignments)
        return run_changes(target, planned.changed_rows, planned.parameters)


def plan_update(target: Target, condition: Column | None, assignments: Mapping[str, Column]) -> PlannedChange:
    """Plan the `update` of the target and choose the files that it reads. Raises the same as `update` before anything runs."""
    schema, analyzer = target.dml.config.schema, analyzer_of(target.spark)
    columns_of_statement = [*assignments.values(), *([] if condition is None else [condition])]
    target.include_metadata_if_named(columns_of_statement)
    condition_text = None if condition is None else analyzer.filter_text(target.shape, condition, "UPDATE")
    values_by_path = with_defaults(target.shape, schema, assigned_paths(target.shape, schema, assignments, alias=target.alias))
    if values_by_path:
        analyzer.check_values(target.shape, list(values_by_path.values()), "UPDATE")
    matching_rows = target.frame if condition is None else target.frame.where(condition)
    new_row_column = new_row(schema, matching_rows, values_by_path)
    _record_reads(target, [*values_by_path.values(), *([] if condition is None else [condition])])
    needed_rows = target.needed_rows(matching_rows, condition)
    # Without assignments no row changes, so no file has to be read.
    file_count = 0 if needed_rows.none or not assignments else target.choose_files(needed_rows.predicate)
    changed_rows = matching_rows.select(*target.address_columns(UPDATED), new_row_column)
    return PlannedChange(changed_rows if file_count else None, _history_parameters(condition_text))


def _record_reads(target: Target, columns: Sequence[Column]) -> None:
    """Record what the commit depends on in addition to the rows that it changes: all rows of the table if there is a subquery,
    because the subquery may have read any of them."""
    if analyzer_of(target.spark).reads_tables(target.shape, columns):
        target.dml.transaction.read_rows(None)
    else:
        target.dml.transaction.only_deleted_rows_matter()


def _history_parameters(condition: str | None) -> dict[str, Any]:
    """Return the operation's parameters for the commit's commitInfo. condition: SQL text; None for all rows."""
    return {"predicate": [] if condition is None else [condition]}
