"""Filters on partition columns as deltalake takes them: a list of (column, operator, value), combined with AND.

    partition_condition(schema, ["day"], [("day", ">=", date(2024, 5, 1)), ("hour", "in", [1, 2])])    # SQL

Values are texts, numbers, booleans, dates or times. An empty text stands for null, as in the log, unless it is in a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from delta_py.errors import InvalidOptionError, SchemaMismatchError
from delta_py.types.names import quoted
from delta_py.types.schema import StructType

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_LISTS = {"in": "IN", "not in": "NOT IN"}


def partition_condition(schema: StructType, partition_columns: Sequence[str], filters: Sequence[Sequence[Any]]) -> str | None:
    """SQL for the filters; None if there are none.

    Raises SchemaMismatchError for a column that the table lacks or that is no partition column; InvalidOptionError for a filter
    of another form; ValueError for a value that no partition can have.
    """
    conditions = [_filter_condition(schema, partition_columns, partition_filter) for partition_filter in filters]
    return " AND ".join(f"({condition})" for condition in conditions) or None


def _filter_condition(schema: StructType, partition_columns: Sequence[str], partition_filter: Sequence[Any]) -> str:
    """One filter (column, operator, value) as SQL. Raises as partition_condition.

    As with deltalake, an empty text as value means null, and no partition is smaller or greater than null. In a list an empty
    text is an empty text.
    """
    if len(partition_filter) != 3:
        raise _invalid_filter_error(partition_filter)
    column, operator, value = partition_filter
    is_list = isinstance(value, list | tuple | set)
    fits = operator in (_LISTS if is_list else _COMPARISONS)
    if not fits:
        raise _invalid_filter_error(partition_filter)
    if column not in partition_columns:
        what = "is no partition column of the table" if schema.find(column) else "is not in the table"
        raise SchemaMismatchError(
            f"Column {column} {what}; its partition columns are ({', '.join(partition_columns)}). Filter the rows instead.",
            error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            sql_state="42703",
            column=column,
        )
    name = quoted(column)
    if is_list:
        return f"{name} {_LISTS[operator]} ({', '.join(_text_literal(item) for item in value)})"
    if value == "" or value is None:
        null_conditions = {"=": f"{name} IS NULL", "!=": f"{name} IS NOT NULL"}
        return null_conditions.get(operator, "false")
    return f"{name} {operator} {_text_literal(value)}"


def partition_text(value: Any) -> str:
    """A value as the text of a partition. Raises ValueError for a value of another type."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value
        case int() | float():
            return str(value)
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case bytes():
            return value.decode("unicode_escape", "backslashreplace")  # as deltalake encodes bytes
        case _:
            raise ValueError(
                f"A partition cannot have the value {value!r} of type {type(value).__name__}. Could not encode partition "
                f"value for type: {type(value).__name__}."
            )


def _text_literal(value: Any) -> str:
    """A value as a text in SQL, with quotes around it."""
    escaped = partition_text(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _invalid_filter_error(partition_filter: Sequence[Any]) -> InvalidOptionError:
    """The error for a filter that is not (column, operator, value), or has another operator."""
    return InvalidOptionError(
        f"{tuple(partition_filter)!r} is no filter on partitions. Give (column, operator, value) with one of "
        f"{', '.join(_COMPARISONS)}, or (column, 'in' or 'not in', [values]).",
        option="partition_filters",
    )
