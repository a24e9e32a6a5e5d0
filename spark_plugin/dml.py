"""DELETE and UPDATE.

Conditions and values are Spark's: any function, and subqueries, which Spark makes joins of. A row goes, or changes, only if
the condition is true of it, not null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from delta_py.errors import UnsupportedOperationError
from delta_py.write.row_changes import DELETED, UPDATED
from spark_plugin.assignments import assigned_paths, new_row
from spark_plugin.jobs import DmlResult, Target, open_target, run_changes


def delete(spark: SparkSession, path: str, condition: Column | None = None, *, alias: str | None = None) -> DmlResult:
    """Delete the rows for which the condition is true; None: all.

    Files of which all rows go are removed without being read, where partition values and statistics tell. Raises Spark's
    AnalysisException for a condition that is none; UnsupportedOperationError (DELTA_CANNOT_MODIFY_APPEND_ONLY,
    DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED); conflicts as Transaction.commit.
    """
    with open_target(spark, path, "DELETE", alias=alias) as target:
        if condition is None:
            target.dml.transaction.only_taken_rows_matter()
            target.choose_files(None, whole=True)
            return run_changes(target, None, _parameters(None))
        matched = target.frame.where(condition)
        asked = _analysed(target, matched)
        _note_what_is_read(target, matched)
        wanted = target.wanted(matched)
        count = 0 if wanted.none else target.choose_files(wanted.predicate, whole=wanted.exact)
        return run_changes(target, matched.select(*target.address(DELETED)) if count else None, _parameters(asked))


def update(
    spark: SparkSession, path: str, condition: Column | None, assignments: Mapping[str, Column], *, alias: str | None = None
) -> DmlResult:
    """Give columns of the rows for which the condition is true (None: of all rows) new values.

    assignments: by column name; fields of structs by their path. Values may use the row's old ones. Raises as `delete`, and
    what assigned_paths and the gate (write/conform.py) raise.
    """
    with open_target(spark, path, "UPDATE", alias=alias) as target:
        schema = target.dml.config.schema
        matched = target.frame if condition is None else target.frame.where(condition)
        asked = None if condition is None else _analysed(target, matched)
        row = new_row(schema, matched, assigned_paths(target.frame, schema, assignments))
        changed = matched.select(*target.address(UPDATED), row)
        _note_what_is_read(target, changed)
        wanted = target.wanted(matched)
        count = 0 if wanted.none or not assignments else target.choose_files(wanted.predicate)
        return run_changes(target, changed if count else None, _parameters(asked))


def _analysed(target: Target, matched: DataFrame) -> Any:
    """The condition of a filter as Spark has understood it."""
    condition = matched._jdf.queryExecution().analyzed().condition()
    if not condition.deterministic():
        raise UnsupportedOperationError(
            f"Non-deterministic functions are not supported in the {target.dml.operation} (condition = {condition.sql()}): a "
            "task that Spark repeats would find other rows. Write the values of the function into a column first.",
            error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            sql_state="0AKDC",
            condition=condition.sql(),
        )
    return condition


def _note_what_is_read(target: Target, frame: DataFrame) -> None:
    """What the commit depends on beside the rows that it changes: all rows of the table where there is a subquery, which may
    have read any of them."""
    if frame._jdf.queryExecution().analyzed().subqueriesAll().isEmpty():
        target.dml.transaction.only_taken_rows_matter()
    else:
        target.dml.transaction.read_rows(None)


def _parameters(condition: Any | None) -> dict[str, Any]:
    return {"predicate": [] if condition is None else [condition.sql()]}
