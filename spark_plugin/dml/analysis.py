"""The results of an analyzer (analyzer.py): resolved values, the parts of a MERGE's condition, and errors in the words of a
DML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType

from delta_py.errors import DeltaError, SchemaMismatchError, UnsupportedOperationError
from delta_py.scan.planning import METADATA_COLUMN
from delta_py.types.names import quoted
from spark_plugin.dml.connect_conditions import condition_text
from spark_plugin.internals.jvm_plans import expression_sql

# Error conditions of Spark's analyzer; the constants with several are beginnings of conditions.
GENERATOR = "UNSUPPORTED_GENERATOR"
_UNRESOLVED = "UNRESOLVED_COLUMN"
_OF_ANOTHER_FRAME = ("MISSING_ATTRIBUTES", "CANNOT_RESOLVE_DATAFRAME_COLUMN")
_AGGREGATES = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "GROUP_BY_AGGREGATE")

_ListColumns: TypeAlias = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """One value per row. column: usable in every frame that has the columns that it names. expression: Catalyst's; None over
    Spark Connect."""

    column: Column
    data_type: DataType
    expression: Any

    @property
    def sql(self) -> str:
        return condition_text(self.column) if self.expression is None else expression_sql(self.expression)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A part of a MERGE's condition: target <operator> source. data_type: of the source's value. is_ordered: whether the smallest
    and largest values of the source limit the target's values that match."""

    target: Column
    operator: str
    source: Column
    data_type: DataType
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class ConditionParts:
    """The parts of a MERGE's condition, as far as they are known; all of them must be true. of_target, of_source: parts that name
    only the columns of one side."""

    of_target: tuple[Column, ...]
    of_source: tuple[Column, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def has_equal_keys(self) -> bool:
        """Whether some part requires equal values in target and source."""
        return any(part.operator in ("=", "<=>") for part in self.comparisons)


SWAPPED_OPERATORS = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The same comparison with its sides swapped."""


# ---------------------------------------------------------------- analysis


def select_columns(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return a frame of only these columns, in their order, after Spark has analysed it. The frame gives each a name of its
    own, so that the columns may have equal names or none. Raises Spark's AnalysisException."""
    projection = frame.select(*(column.alias(f"__pydelta_value_{number}") for number, column in enumerate(columns)))
    projection.schema  # noqa: B018 - over Spark Connect the server analyses the frame when a client reads its schema
    return projection


def select_for_merge(frame: DataFrame, columns: Sequence[Column], where: str, list_columns: _ListColumns) -> DataFrame:
    """Do the same as `select_columns`, with the errors that delta-spark raises for a MERGE. where: the clause that contains the
    columns, for messages. list_columns: returns the names of the frame's columns, for messages."""
    try:
        return select_columns(frame, columns)
    except AnalysisException as error:
        merge_error = _merge_error(error, where, list_columns)
        if merge_error is None:
            raise
        raise merge_error from error


def select_row_values(frame: DataFrame, columns: Sequence[Column], where: str) -> DataFrame:
    """Do the same as `select_columns` for the values of an UPDATE, where Spark's own errors are clear, except for aggregates.
    where: for messages."""
    try:
        return select_columns(frame, columns)
    except AnalysisException as error:
        if (error.getCondition() or "").startswith(_AGGREGATES):
            raise aggregate_error(where) from error
        raise


def check_filters(frame: DataFrame, conditions: Sequence[Column]) -> None:
    """Raise Spark's AnalysisException if Spark does not accept one of the columns as a filter of the frame. No job runs."""
    filtered = reduce(lambda rows, condition: rows.where(condition), conditions, frame)
    # A Spark Connect client assumes that a filter has the schema of its frame, which it may know; a select makes it call the
    # server.
    filtered.select(F.lit(1)).schema  # noqa: B018 - this analyses all of it


# ---------------------------------------------------------------- unsupported expressions


def check_boolean(frame: DataFrame, condition: Resolved, where: str) -> None:
    """Raise Spark's AnalysisException, or UnsupportedOperationError if Spark accepts the condition as a filter although it is not
    boolean. where: the clause of the condition, for messages."""
    if not isinstance(condition.data_type, BooleanType):
        check_filters(frame, [condition.column])  # Spark's own error is the clearest
        raise UnsupportedOperationError(
            f"The {where} ({condition.sql}) is a {condition.data_type.simpleString()}, not a boolean."
        )


def refuse_subquery(where: str, condition: str) -> NoReturn:
    raise UnsupportedOperationError(
        f"Subqueries are not supported in the {where} (condition = {condition}). Join what the subquery reads to the "
        "source first.",
        error_class="DELTA_UNSUPPORTED_SUBQUERY",
        sql_state="0AKDC",
        condition=condition,
    )


def refuse_non_deterministic(where: str, condition: str) -> NoReturn:
    raise UnsupportedOperationError(
        f"Non-deterministic functions are not supported in the {where} (condition = {condition}): a task that Spark repeats "
        "would find other rows. Write the values of the function into a column first.",
        error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        sql_state="0AKDC",
        condition=condition,
    )


def row_by_row_error(where: str, *, generator: bool) -> UnsupportedOperationError:
    """Return the error for an expression without exactly one value per row. generator: it is a function such as explode;
    otherwise it has a window."""
    return UnsupportedOperationError(
        f"The {where} uses a window or a function that makes rows, and sees one row at a time. Make the value before, as a "
        "column of the source of a MERGE.",
        error_class=f"{GENERATOR}.OUTSIDE_SELECT" if generator else "UNSUPPORTED_EXPR_FOR_OPERATOR",
        sql_state="42K0E",
    )


def aggregate_error(where: str) -> UnsupportedOperationError:
    """Return the error for an aggregate function. For a condition delta-spark has its own error, and for a value it raises
    Spark's error; so does pydelta."""
    is_condition = where.endswith("condition")
    return UnsupportedOperationError(
        f"Aggregate functions are not supported in the {where}, which sees one row at a time. Aggregate before, as a column of "
        "the source of a MERGE.",
        error_class="DELTA_AGGREGATION_NOT_SUPPORTED" if is_condition else "UNSUPPORTED_EXPR_FOR_OPERATOR",
        sql_state="42903" if is_condition else "42K0E",
    )


def unresolved_name_error(name: str, where: str, column_names: Sequence[str]) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Cannot resolve {name} in {where} given columns {', '.join(column_names)}. Nothing was changed. Correct the name or its "
        "alias.",
        error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        sql_state="42601",
        name=name,
        clause=where,
    )


def metadata_column_error(where: str) -> SchemaMismatchError:
    """Return the error for `_metadata`, the hidden column with facts about each row's file."""
    return SchemaMismatchError(
        f"The {where} names {METADATA_COLUMN}, which the rows of a MERGE do not have. Nothing was changed. Make it a column of "
        f"the source first: (SELECT *, {METADATA_COLUMN}.file_name AS name FROM ...). DELETE and UPDATE know it of the table.",
        error_class="DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT",
        sql_state="42601",
    )


def no_field_error(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{name} cannot be assigned: nested updates are only supported for fields of structs, not for elements of arrays and "
        "maps. Assign the whole column.",
        error_class="DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
        sql_state="0A000",
        column=name,
    )


def _merge_error(error: AnalysisException, where: str, list_columns: _ListColumns) -> DeltaError | None:
    """Return Delta's error for a MERGE in which Spark refuses an expression; None if Spark's own error is clear enough."""
    condition = error.getCondition() or ""
    if condition.startswith(_UNRESOLVED):
        name = (error.getMessageParameters() or {}).get("objectName", "a column")
        if quoted(METADATA_COLUMN) in name:
            return metadata_column_error(where)
        return unresolved_name_error(name, where, list_columns())
    if condition.startswith(_OF_ANOTHER_FRAME):
        return SchemaMismatchError(
            f"The {where} names a column of a DataFrame that is neither the source nor the target: {first_line(error)} Name "
            "columns by text, with the aliases of target and source, or take them from the very DataFrame that is the source.",
            error_class="DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT",
            sql_state="42601",
        )
    return aggregate_error(where) if condition.startswith(_AGGREGATES) else None


def first_line(error: AnalysisException) -> str:
    return str(error).partition("\n")[0]
