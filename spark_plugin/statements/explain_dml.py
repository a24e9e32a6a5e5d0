"""EXPLAIN of DELETE, UPDATE and MERGE INTO: what they would do, and Spark's plan of the changed rows. Nothing is changed.

    EXPLAIN FORMATTED DELETE FROM pydelta.`/data/events` WHERE id = 3       -- plan

The log decides which files matter, as when the statement runs. The source of a MERGE is not read: when the statement runs, the
source's keys and its size may make it read fewer files and join in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from spark_plugin.dml.delete_update import plan_delete, plan_update
from spark_plugin.dml.jobs import PlannedChange, Target, open_target
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.merge.merge_job import MergeRequest
from spark_plugin.sql.clauses import DeleteRows, MergeRows, UpdateRows
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.sql_router import Statement
from spark_plugin.statements import client_rows
from spark_plugin.statements.client_rows import WrittenChange
from spark_plugin.statements.dml_statements import STATEMENTS, ChangedTable, changed_table, merge_builder
from spark_plugin.statements.row_change_statements import by_name
from spark_plugin.table_api.arguments import as_condition
from spark_plugin.table_api.merge_builder import DeltaMergeBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MODES = ("FORMATTED", "EXTENDED", "CODEGEN", "COST")
# A Spark Connect server may append its stack to the message of an error, after this text.
_STACK_OF_SERVER = "\n\nJVM stacktrace:"
_NO_ROWS = "== Physical Plan ==\nNo row has to be read.\n"


def explain_change(spark: SparkSession, plan: ParsedPlan, text: str) -> DataFrame | None:
    """Explain a statement of a Delta table. Returns one row with the text; None for a statement that Spark must explain. As in
    Spark, an error that the statement raises before it runs is also returned as text."""
    explained, mode = plan.explained_plan()
    if explained.kind not in STATEMENTS:
        return None
    with _error_as_lines() as lines:
        table = changed_table(spark, explained, text)
        if table is None:
            return None
        with _planned_change(spark, explained, table) as (target, planned):
            lines.append(_explanation(target, planned, mode))
    return _plan_frame(spark, lines)


def explain_of_client(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Do the same as explain_change over Spark Connect, where pydelta itself splits the text into clauses."""
    try:
        words = Words(statement.text, statement.args, binds=True)
    except SyntaxFault:
        return None
    words.take("EXPLAIN")
    mode = next((mode for mode in _MODES if words.take(mode)), "SIMPLE").lower()
    with _error_as_lines() as lines:
        change = WrittenChange.of(spark, words)
        if change is None:
            return None
        with _planned_by_text(spark, change) as (target, planned):
            lines.append(_explanation(target, planned, mode))
    return _plan_frame(spark, lines)


@contextmanager
def _error_as_lines() -> Iterator[list[str]]:
    """Yield a list for the lines of an explanation. If the block raises an error of Spark, the list gets the error's lines in
    their place, and the block ends without an error."""
    lines: list[str] = []
    try:
        yield lines
    except PySparkException as error:
        lines[:] = f"Error occurred during query planning: \n{str(error).partition(_STACK_OF_SERVER)[0]}".split("\n")


def _plan_frame(spark: SparkSession, lines: Sequence[str]) -> DataFrame:
    """Return the result of an EXPLAIN: one row for each text. A text may have several lines."""
    return spark.createDataFrame([(line,) for line in lines], "plan string")


@contextmanager
def _planned_change(spark: SparkSession, plan: ParsedPlan, table: ChangedTable) -> Iterator[tuple[Target, PlannedChange]]:
    """Yield the target and what the statement would do to it, while the target is open."""
    if plan.kind == "MergeIntoTable":
        with _planned_merge(merge_builder(spark, plan, table)) as planned:
            yield planned
        return
    with open_target(
        spark, table.target.place, STATEMENTS[plan.kind], alias=table.alias, to_view_rows=table.to_view_rows
    ) as target:
        if plan.kind == "DeleteFromTable":
            yield target, plan_delete(target, plan.as_delete().condition)
        else:
            change = plan.as_update()
            yield target, plan_update(target, change.condition, by_name(change.assignments))


@contextmanager
def _planned_by_text(spark: SparkSession, change: WrittenChange) -> Iterator[tuple[Target, PlannedChange]]:
    """Do the same as _planned_change for the clauses of a Spark Connect client."""
    place, alias = change.target.place, change.alias
    match change.statement:
        case DeleteRows(where=where):
            with open_target(spark, place, "DELETE", alias=alias) as target:
                yield target, plan_delete(target, as_condition(where))
        case UpdateRows(assignments=assignments, where=where):
            with open_target(spark, place, "UPDATE", alias=alias) as target:
                yield target, plan_update(target, as_condition(where), client_rows.values_of(assignments))
        case MergeRows() as merge:
            with _planned_merge(client_rows.merge_builder(spark, merge, change)) as planned:
                yield planned


@contextmanager
def _planned_merge(merge: DeltaMergeBuilder) -> Iterator[tuple[Target, PlannedChange]]:
    """Do the same as _planned_change for a MERGE. merge: describes it."""
    request = (merge.spark, merge.table, merge.alias, merge.source, merge.condition, merge.clauses, merge.schema_evolution)
    with MergeRequest.of(*request).open_plan() as planned:
        yield planned


def _explanation(target: Target, planned: PlannedChange, mode: str) -> str:
    """Return the text of the explanation: Spark's plan of the changed rows, the parameters that the history would record, and how
    many files are read or removed. mode: as ParsedPlan.explained_plan returns it."""
    dml, chosen = target.dml, target.dml.chosen
    rows = _NO_ROWS if planned.changed_rows is None else adapter_of(target.spark).explain(planned.changed_rows, mode)
    files = f"{chosen.candidates.num_rows} of {dml.snapshot.num_files} are read"
    if chosen.whole_files:
        files += f", {len(chosen.whole_files)} are removed without being read"
    facts = {
        "Table": f"{target.table.url}, version {dml.snapshot.version}",
        **{name: _parameter_text(value) for name, value in planned.parameters.items() if value},
        "Files": files,
    }
    lines = [f"{name}: {value}" for name, value in facts.items()]
    return "\n".join((rows.rstrip("\n"), "", f"== {dml.operation} ==", *lines, ""))


def _parameter_text(value: Any) -> str:
    """Format a parameter of the history. value: a text, or a list of texts, or of a MERGE's clauses, each as a mapping."""
    parts = [value] if isinstance(value, str) else value
    return "; ".join(_clause_text(part) if isinstance(part, Mapping) else str(part) for part in parts)


def _clause_text(clause: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text}" for name, text in clause.items())
