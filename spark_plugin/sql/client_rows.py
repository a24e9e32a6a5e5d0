"""DELETE, UPDATE and MERGE INTO over Spark Connect, where the methods of DeltaTable get the texts of their clauses.

A client has no parser. Values of parameters are put into the texts of the clauses. A statement with a WITH in front goes to the
server, which refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_plugin.dml import delete_update
from spark_plugin.dml.merge_clauses import Clause
from spark_plugin.sql.changes import by_name, counted
from spark_plugin.sql.clauses import Assignments, DeleteRows, MergeRows, UpdateRows, parse_change
from spark_plugin.sql.syntax import SyntaxFault
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_router import Statement
from spark_plugin.table_api.arguments import as_assignments, as_condition
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder
from spark_plugin.wrapping import spark_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def change_rows(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """As rows.change_rows, of the text."""
    try:
        change = parse_change(statement.text, statement.args)
    except SyntaxFault:
        return None  # the server says what is wrong
    target = None if change is None else find_target(spark, change.table.parts)
    if change is None or target is None:
        return None
    alias = change.alias if change.alias is not None or target.name is None else change.table.parts[-1]
    match change:
        case DeleteRows():
            done = delete_update.delete(spark, target.place, as_condition(change.where), alias=alias)
            return counted(spark, done.metrics.get("numDeletedRows", 0))
        case UpdateRows():
            done = delete_update.update(spark, target.place, as_condition(change.where), _values(change.assignments), alias=alias)
            return counted(spark, done.metrics.get("numUpdatedRows", 0))
        case MergeRows():
            return _merge(spark, change, target, alias)


def _merge(spark: SparkSession, change: MergeRows, target: Target, alias: str | None) -> DataFrame:
    clauses = tuple(
        Clause(
            one.kind,
            one.action,
            as_condition(one.condition),
            None if one.assignments is None else _values(one.assignments, one.action.upper()),
        )
        for one in change.clauses
    )
    source, condition = spark_sql(spark, f"SELECT * FROM {change.source}"), as_condition(change.condition)
    assert condition is not None
    return DeltaMergeBuilder(spark, target.place, alias, source, condition, clauses, change.evolves).execute()


def _values(assignments: Assignments, action: str = "UPDATE") -> dict[str, Column]:
    return as_assignments(by_name(assignments, action), "SET")

