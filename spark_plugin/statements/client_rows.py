"""DELETE, UPDATE and MERGE INTO over Spark Connect: DeltaTable's methods get the texts of the clauses.

A client has no parser. Values of parameters are inserted into the texts of the clauses. A statement with a leading WITH goes to
the server, which refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_py.row_changes.merge_clauses import Clause
from spark_plugin.dml import delete_update
from spark_plugin.dml.target_names import Alias
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.sql.clauses import Assignments, Change, DeleteRows, MergeRows, UpdateRows, change_of
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_router import Statement
from spark_plugin.statements.row_change_statements import by_name, counted, short_alias
from spark_plugin.table_api.arguments import as_assignments, as_condition
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class WrittenChange:
    """A DELETE, UPDATE or MERGE of a Delta table, split into the texts of its clauses. alias: the names that its conditions and
    values may use for the table."""

    statement: Change
    target: Target
    alias: Alias

    @classmethod
    def of(cls, spark: SparkSession, words: Words) -> WrittenChange | None:
        """Parse the remaining words. Returns None for another statement, for one about a table that pydelta does not handle, and
        for one that cannot be read: the server reports the error."""
        try:
            parsed_change = change_of(words)
        except SyntaxFault:
            return None
        target = None if parsed_change is None else find_target(spark, parsed_change.table.parts)
        if parsed_change is None or target is None:
            return None
        return cls(parsed_change, target, short_alias(parsed_change.alias, parsed_change.table.parts, target))


def change_rows(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run a DELETE, UPDATE or MERGE. Returns one row with the numbers of changed rows, as dml_statements.change_rows does in a
    classic session; None, without doing anything, for a statement that the server gets: it cannot be read, or pydelta does not
    handle the table."""
    try:
        words = Words(statement.text, statement.args, binds=True)
    except SyntaxFault:
        return None
    change = WrittenChange.of(spark, words)
    if change is None:
        return None
    place, alias = change.target.place, change.alias
    match change.statement:
        case DeleteRows(where=where):
            result = delete_update.delete(spark, place, as_condition(where), alias=alias)
            return counted(spark, result.metrics.get("numDeletedRows", 0))
        case UpdateRows(assignments=assignments, where=where):
            result = delete_update.update(spark, place, as_condition(where), values_of(assignments), alias=alias)
            return counted(spark, result.metrics.get("numUpdatedRows", 0))
        case MergeRows() as merge:
            return merge_builder(spark, merge, change).execute()


def merge_builder(spark: SparkSession, merge: MergeRows, change: WrittenChange) -> DeltaMergeBuilder:
    """Return the builder of the MERGE in a text."""
    clauses = tuple(
        Clause(
            clause.kind,
            clause.action,
            as_condition(clause.condition),
            None if clause.assignments is None else values_of(clause.assignments, clause.action.upper()),
        )
        for clause in merge.clauses
    )
    source, condition = spark_sql(spark, f"SELECT * FROM {merge.source}"), as_condition(merge.condition)
    assert condition is not None
    return DeltaMergeBuilder(spark, change.target.place, change.alias, source, condition, clauses, merge.evolves)


def values_of(assignments: Assignments, action: str = "UPDATE") -> dict[str, Column]:
    """Return the values of SET, by the names of columns."""
    return as_assignments(by_name(assignments, action), "SET")
