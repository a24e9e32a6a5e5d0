"""DELETE, UPDATE and MERGE INTO as Spark's own parser reads them, with a WITH in front too, carried out by spark_plugin.dml.

    DELETE FROM pydelta.`/data/events` WHERE id = 3             -- num_affected_rows

Names in conditions and values are resolved as in those of DeltaTable's methods, which take the same Columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_py.errors import UnsupportedOperationError
from spark_plugin.dml import delete_update
from spark_plugin.dml.merge_clauses import Clause
from spark_plugin.sql.changes import by_name, call_target, counted
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql.views import viewed_target
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def change_rows(spark: SparkSession, plan: ParsedPlan, text: str) -> DataFrame | None:
    """Returns one row: num_affected_rows, and of a MERGE also num_updated_rows, num_deleted_rows and num_inserted_rows.

    Raises what the methods of DeltaTable raise.
    """
    named = plan.target()
    if named is None:
        return None
    target, shown = find_target(spark, named.parts), None
    if target is not None:
        alias = call_target(plan, named, target, text)
    else:
        viewed = viewed_target(spark, named.parts, _STATEMENTS[plan.kind])
        if viewed is None:
            return None
        target, shown, alias = viewed.table, viewed.shown, named.alias or named.parts[-1]
    match plan.kind:
        case "DeleteFromTable":
            done = delete_update.delete(spark, target.place, plan.deleted().condition, alias=alias, shown=shown)
            return counted(spark, done.metrics.get("numDeletedRows", 0))
        case "UpdateTable":
            return _update(spark, plan, target, alias)
        case _:
            return _merge(spark, plan, target, alias)


def explain_change(spark: SparkSession, plan: ParsedPlan, _text: str) -> None:
    """EXPLAIN of one of these: there is no plan of Spark's for it. Raises UnsupportedOperationError for a table of ours."""
    explained = plan.explained()
    named = explained.target()
    target = None if named is None else find_target(spark, named.parts)
    if target is None:
        return
    statement = _STATEMENTS[explained.kind]
    raise UnsupportedOperationError(
        f"EXPLAIN {statement} of {target.label}: pydelta carries it out in several jobs of Spark, and there is no plan before "
        "they run. Nothing was changed. EXPLAIN a SELECT with the same condition shows which files are read; the history "
        "tells what was done.",
        operation=f"EXPLAIN {statement}",
    )


_STATEMENTS = {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE", "MergeIntoTable": "MERGE"}


def _update(spark: SparkSession, plan: ParsedPlan, target: Target, alias: str | None) -> DataFrame:
    change = plan.updated()
    done = delete_update.update(spark, target.place, change.condition, by_name(change.assignments), alias=alias)
    return counted(spark, done.metrics.get("numUpdatedRows", 0))


def _merge(spark: SparkSession, plan: ParsedPlan, target: Target, alias: str | None) -> DataFrame:
    merge = plan.merged()
    clauses = tuple(
        Clause(
            one.kind,
            one.action,
            one.condition,
            None if one.assignments is None else by_name(one.assignments, one.action.upper()),
        )
        for one in merge.clauses
    )
    builder = DeltaMergeBuilder(spark, target.place, alias, merge.source, merge.condition, clauses, merge.evolves)
    return builder.execute()
