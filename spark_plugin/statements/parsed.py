"""Statements that Spark's own parser reads, each parsed once: the root node of the plan decides which module runs it.

    INSERT INTO shop.sales VALUES (3, 1.5)            -- InsertIntoStatement: insert.py

A Spark Connect client has no parser; the part that it supports is in client_rows.py and client_statements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from spark_plugin.definition_statements.alter_table import alter_table
from spark_plugin.definition_statements.create_like import create_like
from spark_plugin.definition_statements.create_table import define_table
from spark_plugin.definition_statements.drop_table import drop_table
from spark_plugin.definition_statements.set_location import check_location
from spark_plugin.definition_statements.show_create_table import show_create_table
from spark_plugin.definition_statements.show_partitions import show_partitions
from spark_plugin.sql_internals import ParsedPlan, parser_of
from spark_plugin.sql_router import Handler, Statement
from spark_plugin.statements import client_rows
from spark_plugin.statements.client_statements import run_of_client
from spark_plugin.statements.dml_statements import change_rows
from spark_plugin.statements.explain_dml import explain_change, explain_of_client
from spark_plugin.statements.insert import insert_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Runner: TypeAlias = "Callable[[SparkSession, ParsedPlan, str], DataFrame | None]"
"""Takes a plan and its text. Returns None, and does nothing, for a statement about a table that pydelta does not handle."""

_RUNNERS: Mapping[str, Runner] = {
    **dict.fromkeys(("DeleteFromTable", "UpdateTable", "MergeIntoTable"), change_rows),
    **dict.fromkeys(("InsertIntoStatement", "OverwriteByExpression"), insert_rows),
    **dict.fromkeys(("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"), define_table),
    **dict.fromkeys(("CreateTableLike", "CreateTableLikeCommand"), create_like),
    "DropTable": drop_table,
    "SetTableLocation": check_location,
    "ShowPartitions": show_partitions,
    "ShowCreateTable": show_create_table,
    "ExplainCommand": explain_change,
}
# For Spark Connect clients, by the first word of a statement; run_of_client handles the other words.
_CLIENT_HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("DELETE", "UPDATE", "MERGE"), client_rows.change_rows),
    "EXPLAIN": explain_of_client,
}


def run_parsed(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run a statement by the kind of its plan; alter_table takes the kinds that _RUNNERS does not have. Returns None for a
    statement that Spark must run: about a table that pydelta does not handle, or one that cannot be parsed. Raises the errors of
    DeltaTable's methods and of DataFrames' writers."""
    parser = parser_of(spark)
    if parser is None:
        return _CLIENT_HANDLERS.get(statement.word, run_of_client)(spark, statement)
    plan = parser.parsed(statement.text, statement.args)
    return None if plan is None else _RUNNERS.get(plan.kind, alter_table)(spark, plan, statement.text)
