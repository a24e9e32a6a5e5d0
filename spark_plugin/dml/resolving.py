"""Columns as Spark's analyzer understands them: whose names are resolved, with their types.

    (condition,) = resolve(frame, [F.expr("t.a = s.b")], "UPDATE condition")

What is resolved in one frame may be used in every other that carries the same columns, such as a join of it. Over Spark Connect
it stays a name, and means what it means in the frame where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType

from delta_py.errors import DeltaError, SchemaMismatchError, UnsupportedOperationError
from delta_py.protocol.names import quoted
from spark_plugin.dml.conditions import check_filters, is_deterministic, reads_tables, refuse_non_deterministic
from spark_plugin.dml.connect_conditions import condition_text, is_plain
from spark_plugin.spark_internals import (
    NotRowByRow,
    SparkInternals,
    aliased,
    data_type_of,
    expression_sql,
    is_connect,
    is_deterministic_expression,
)

_UNRESOLVED = "UNRESOLVED_COLUMN"
_OF_ANOTHER_FRAME = ("MISSING_ATTRIBUTES", "CANNOT_RESOLVE_DATAFRAME_COLUMN")
_GENERATOR = "UNSUPPORTED_GENERATOR"
_NO_AGGREGATES, _NOT_IN_FILTERS = "INVALID_WHERE_CONDITION", ("WINDOW_FUNCTION_NOT_ALLOWED", _GENERATOR)
_AGGREGATES = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "GROUP_BY_AGGREGATE")


@dataclass(frozen=True, slots=True)
class Resolved:
    """One value a row. column: usable in every frame that carries the columns that it names. expression: Catalyst's; None over
    Spark Connect."""

    column: Column
    data_type: DataType
    expression: Any

    @property
    def sql(self) -> str:
        return condition_text(self.column) if self.expression is None else expression_sql(self.expression)


def resolve(frame: DataFrame, columns: Sequence[Column], where: str) -> list[Resolved]:
    """The columns, resolved in the frame by one analysis. No job runs.

    where: what they are part of, for messages. Raises SchemaMismatchError for a name that is not there
    (DELTA_MERGE_UNRESOLVED_EXPRESSION) and for a column of another frame
    (DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT); UnsupportedOperationError for what is not one value a row: aggregates
    (DELTA_AGGREGATION_NOT_SUPPORTED), windows, generators; Spark's AnalysisException for all else, such as an ambiguous name.
    """
    if not columns:
        return []
    try:
        made = _selected(frame, columns)
    except AnalysisException as error:
        known = _explained(error, frame, where)
        if known is None:
            raise
        raise known from error
    _check_one_a_row(made, frame, columns, where)
    if is_connect(frame.sparkSession):
        return [Resolved(column, own.dataType, None) for column, own in zip(columns, made.schema.fields, strict=True)]
    found = SparkInternals(frame.sparkSession).projected(made, len(columns))
    return [_resolved(frame, aliased(expression)) for expression in found]


def check_values(frame: DataFrame, columns: Sequence[Column], where: str) -> None:
    """Raises UnsupportedOperationError for values that are not one a row: aggregates and windows (UNSUPPORTED_EXPR_FOR_OPERATOR),
    generators (UNSUPPORTED_GENERATOR.OUTSIDE_SELECT); Spark's AnalysisException for all else."""
    try:
        made = _selected(frame, columns)
    except AnalysisException as error:
        if (error.getCondition() or "").startswith(_AGGREGATES):
            raise _aggregates(where) from error
        raise
    _check_one_a_row(made, frame, columns, where)


def _selected(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The columns alone. Raises AnalysisException."""
    made = frame.select(*(column.alias(f"__pydelta_value_{number}") for number, column in enumerate(columns)))
    made.schema  # noqa: B018 - over Spark Connect the server analyses it when it is asked
    return made


def _resolved(frame: DataFrame, expression: Any) -> Resolved:
    return Resolved(as_column(frame, expression), data_type_of(expression), expression)


def as_column(frame: DataFrame, expression: Any) -> Column:
    """A Catalyst expression as a Column. frame: any of the session."""
    return SparkInternals(frame.sparkSession).column(expression)


def by_names(frame: DataFrame, names: Sequence[str], where: str) -> list[Resolved]:
    """Columns of the frame, as `resolve`. Over Spark Connect they are bound to the frame: names alone might be those of others
    in a join."""
    found = resolve(frame, [F.col(quoted(name)) for name in names], where)
    if not is_connect(frame.sparkSession):
        return found
    return [replace(value, column=frame[quoted(name)]) for value, name in zip(found, names, strict=True)]


def outputs(frame: DataFrame) -> list[Any]:
    """The attributes that a frame has: Catalyst's."""
    return SparkInternals(frame.sparkSession).attributes(frame)


def has_subquery(frame: DataFrame, value: Resolved) -> bool:
    if value.expression is None:
        return reads_tables(frame, [value.column])
    return SparkInternals(frame.sparkSession).has_subquery(value.expression)


def check_condition(frame: DataFrame, condition: Resolved, where: str) -> None:
    """Raises UnsupportedOperationError for a condition that is not deterministic, or has a subquery;
    Spark's AnalysisException for one that is not boolean."""
    if not isinstance(condition.data_type, BooleanType):
        check_filters(frame, [condition.column])  # Spark's own error says it best
        raise UnsupportedOperationError(
            f"The {where} ({condition.sql}) is a {condition.data_type.simpleString()}, not a boolean."
        )
    if has_subquery(frame, condition):
        raise UnsupportedOperationError(
            f"Subqueries are not supported in the {where} (condition = {condition.sql}). Join what the subquery reads to the "
            "source first.",
            error_class="DELTA_UNSUPPORTED_SUBQUERY",
            sql_state="0AKDC",
            condition=condition.sql,
        )
    if not _is_deterministic(frame, condition):
        refuse_non_deterministic(where, condition.sql)


def _is_deterministic(frame: DataFrame, condition: Resolved) -> bool:
    found = condition.expression
    return is_deterministic(frame, condition.column) if found is None else is_deterministic_expression(found)


# ---------------------------------------------------------------- what cannot be used


def _check_one_a_row(made: DataFrame, frame: DataFrame, columns: Sequence[Column], where: str) -> None:
    """made: the columns, selected from the frame."""
    if is_connect(frame.sparkSession):
        _check_filters(frame, columns, where)
    else:
        _check_row_by_row(made, frame, where)


def _check_filters(frame: DataFrame, columns: Sequence[Column], where: str) -> None:
    """Over Spark Connect: what a filter does not take is not one value a row."""
    asked = [column for column in columns if not is_plain(column)]
    try:
        check_filters(frame, [column.isNull() for column in asked])
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition == _NO_AGGREGATES:
            raise _aggregates(where) from error
        if condition.startswith(_NOT_IN_FILTERS):
            raise _not_row_by_row(where, generator=condition.startswith(_GENERATOR)) from error
        raise


def _check_row_by_row(made: DataFrame, frame: DataFrame, where: str) -> None:
    """A projection of the frame's own rows is all that is wanted."""
    match SparkInternals(frame.sparkSession).not_row_by_row(made, frame):
        case None:
            return
        case NotRowByRow.AGGREGATE:
            raise _aggregates(where)
        case fault:
            raise _not_row_by_row(where, generator=fault is NotRowByRow.GENERATOR)


def _not_row_by_row(where: str, *, generator: bool) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The {where} uses a window or a function that makes rows, and sees one row at a time. Make the value before, as a "
        "column of the source of a MERGE.",
        error_class=f"{_GENERATOR}.OUTSIDE_SELECT" if generator else "UNSUPPORTED_EXPR_FOR_OPERATOR",
        sql_state="42K0E",
    )


def _explained(error: AnalysisException, frame: DataFrame, where: str) -> DeltaError | None:
    """Spark's error in the words of a MERGE; None for one that says enough."""
    condition = error.getCondition() or ""
    if condition.startswith(_UNRESOLVED):
        name = (error.getMessageParameters() or {}).get("objectName", "a column")
        return unresolved(name, where, _sql_names(frame))
    if condition.startswith(_OF_ANOTHER_FRAME):
        return SchemaMismatchError(
            f"The {where} names a column of a DataFrame that is neither the source nor the target: {_first_line(error)} Name "
            "columns by text, with the aliases of target and source, or take them from the very DataFrame that is the source.",
            error_class="DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT",
            sql_state="42601",
        )
    return _aggregates(where) if condition.startswith(_AGGREGATES) else None


def unresolved(name: str, where: str, known: Sequence[str]) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Cannot resolve {name} in {where} given columns {', '.join(known)}. Nothing was changed. Correct the name or its alias.",
        error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        sql_state="42601",
        name=name,
        clause=where,
    )


def _aggregates(where: str) -> UnsupportedOperationError:
    condition = where.endswith("condition")
    return UnsupportedOperationError(
        f"Aggregate functions are not supported in the {where}, which sees one row at a time. Aggregate before, as a column of "
        "the source of a MERGE.",
        error_class="DELTA_AGGREGATION_NOT_SUPPORTED" if condition else "UNSUPPORTED_EXPR_FOR_OPERATOR",
        sql_state="42903" if condition else "42K0E",
    )


def _sql_names(frame: DataFrame) -> list[str]:
    if is_connect(frame.sparkSession):
        return list(frame.columns)
    return [expression_sql(attribute) for attribute in outputs(frame)]


def _first_line(error: AnalysisException) -> str:
    return str(error).partition("\n")[0]
