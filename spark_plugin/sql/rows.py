"""DELETE, UPDATE and MERGE INTO as Spark's own parser reads them, with a WITH in front too, carried out by spark_plugin.dml.

DELETE FROM pydelta.`/data/events` WHERE id = 3             -- num_affected_rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_py.commands.new_values import assigned_twice
from delta_py.protocol.names import quoted
from spark_plugin.dml import delete_update
from spark_plugin.dml.merge_clauses import Clause
from spark_plugin.spark_internals import is_connect
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_internals import Assignments, ParsedPlan, ParsedTarget, SqlInternals
from spark_plugin.sql_router import Statement
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_RESULT = "num_affected_rows bigint"


def change_rows(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Returns one row: num_affected_rows, and of a MERGE also num_updated_rows, num_deleted_rows and num_inserted_rows.

    Raises what the methods of DeltaTable raise.
    """
    if is_connect(spark):
        return None
    plan = SqlInternals(spark).parsed(statement.text, statement.args)
    named = None if plan is None else plan.target()
    target = None if named is None else find_target(spark, named.parts)
    if plan is None or named is None or target is None:
        return None
    match plan.kind:
        case "DeleteFromTable":
            return _delete(spark, plan, target, _alias(named, target))
        case "UpdateTable":
            return _update(spark, plan, target, _alias(named, target))
        case _:
            return _merge(spark, plan, target, _alias(named, target))


def _alias(named: ParsedTarget, target: Target) -> str | None:
    """By what conditions may call the table: a table of the catalog by its name too."""
    return named.alias if named.alias is not None or target.name is None else named.parts[-1]


def _delete(spark: SparkSession, plan: ParsedPlan, target: Target, alias: str | None) -> DataFrame:
    done = delete_update.delete(spark, target.place, plan.deleted().condition, alias=alias)
    return _counted(spark, done.metrics.get("numDeletedRows", 0))


def _update(spark: SparkSession, plan: ParsedPlan, target: Target, alias: str | None) -> DataFrame:
    change = plan.updated()
    done = delete_update.update(spark, target.place, change.condition, _by_name(change.assignments), alias=alias)
    return _counted(spark, done.metrics.get("numUpdatedRows", 0))


def _merge(spark: SparkSession, plan: ParsedPlan, target: Target, alias: str | None) -> DataFrame:
    merge = plan.merged()
    clauses = tuple(
        Clause(
            one.kind,
            one.action,
            one.condition,
            None if one.assignments is None else _by_name(one.assignments, one.action.upper()),
        )
        for one in merge.clauses
    )
    builder = DeltaMergeBuilder(spark, target.place, alias, merge.source, merge.condition, clauses, merge.evolves)
    return builder.execute()


def _by_name(assignments: Assignments, action: str = "UPDATE") -> dict[str, Column]:
    """Raises for a column that is named twice; who resolves the names finds those that are spelled differently."""
    values: dict[str, Column] = {}
    for parts, value in assignments:
        name = ".".join(map(quoted, parts))
        if name in values:
            raise assigned_twice(action, parts, parts)
        values[name] = value
    return values


def _counted(spark: SparkSession, rows: int) -> DataFrame:
    return spark.createDataFrame([(rows,)], _RESULT)
