"""DELETE, UPDATE and MERGE INTO as Spark's own parser reads them, also with a leading WITH, run by spark_plugin.dml.

    DELETE FROM pydelta.`/data/events` WHERE id = 3             -- num_affected_rows

Names in conditions and values are resolved as in DeltaTable's methods, which take the same Columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_py.row_changes.merge_clauses import Clause
from spark_plugin.dml import delete_update
from spark_plugin.dml.jobs import ToViewRows
from spark_plugin.dml.target_names import Alias
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.statements.row_change_statements import alias_of, by_name, counted
from spark_plugin.statements.view_targets import viewed_target
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """The table that a statement changes. alias: the names that its conditions and values may use. to_view_rows: makes the
    columns of the view that the statement names (ViewedTarget); None if it names a table, or a view with the table's own
    columns."""

    target: Target
    alias: Alias
    to_view_rows: ToViewRows | None


def changed_table(spark: SparkSession, plan: ParsedPlan, text: str) -> ChangedTable | None:
    """Return the table of a DELETE, UPDATE or MERGE; None if pydelta does not handle it. Raises the errors of find_target and
    viewed_target."""
    parsed_target = plan.target()
    if parsed_target is None:
        return None
    target = find_target(spark, parsed_target.parts)
    if target is not None:
        return ChangedTable(target, alias_of(spark, parsed_target, target, text), None)
    viewed = viewed_target(spark, parsed_target.parts, STATEMENTS[plan.kind])
    if viewed is None:
        return None
    return ChangedTable(viewed.table, (parsed_target.alias or parsed_target.parts[-1],), viewed.to_view_rows)


# The statements by the kind of their plan's root node.
STATEMENTS = {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE", "MergeIntoTable": "MERGE"}


def change_rows(spark: SparkSession, plan: ParsedPlan, text: str) -> DataFrame | None:
    """Run a DELETE, UPDATE or MERGE. Returns None, without doing anything, if pydelta does not handle the table. Otherwise
    returns one row: num_affected_rows, and for a MERGE also num_updated_rows, num_deleted_rows and num_inserted_rows.

    Raises the errors of DeltaTable's methods.
    """
    table = changed_table(spark, plan, text)
    if table is None:
        return None
    place, alias = table.target.place, table.alias
    match plan.kind:
        case "DeleteFromTable":
            result = delete_update.delete(spark, place, plan.as_delete().condition, alias=alias, to_view_rows=table.to_view_rows)
            return counted(spark, result.metrics.get("numDeletedRows", 0))
        case "UpdateTable":
            change = plan.as_update()
            result = delete_update.update(spark, place, change.condition, by_name(change.assignments), alias=alias)
            return counted(spark, result.metrics.get("numUpdatedRows", 0))
    return merge_builder(spark, plan, table).execute()


def merge_builder(spark: SparkSession, plan: ParsedPlan, table: ChangedTable) -> DeltaMergeBuilder:
    """Return the builder of the MERGE in a plan."""
    merge = plan.as_merge()
    clauses = tuple(
        Clause(
            clause.kind,
            clause.action,
            clause.condition,
            None if clause.assignments is None else by_name(clause.assignments, clause.action.upper()),
        )
        for clause in merge.clauses
    )
    return DeltaMergeBuilder(spark, table.target.place, table.alias, merge.source, merge.condition, clauses, merge.evolves)
