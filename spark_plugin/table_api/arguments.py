"""Checks of the arguments of delta.tables: a wrong type is a TypeError or ValueError before the table is looked at.

Code written against delta-spark relies on which of the two it is, and on how the messages begin. `name` is always what the
message calls the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from pyspark.sql import Column
from pyspark.sql.types import StructField

from delta_py.row_rules.row_constraints import CHECK_PREFIX
from delta_py.types.column_rules import DEFAULT, GENERATION
from spark_plugin.options.settings import check_rule_text


def check_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} needs to be a string but got '{type(value)}'.")


def check_flag(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} needs to be a boolean but got '{type(value)}'.")


def check_integer(value: Any, name: str, expected: str = "an int") -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} needs to be {expected} but got '{type(value)}'.")


def check_properties(value: Any) -> None:
    """Raise an error for anything but a dict of text to text."""
    if not isinstance(value, dict):
        raise ValueError(f"properties needs to be a dict but got '{type(value)}'.")
    for key, item in value.items():
        check_text(key, f"All property keys including {key}")
        check_text(item, f"All property values including {item}")


def check_rules(spark: Any, columns: Iterable[StructField], properties: Mapping[str, str]) -> None:
    """Check the rules of a new table. Raises InvalidOptionError for a rule that the session's parser would read differently."""
    for field in columns:
        for key, what in ((GENERATION, "The generation expression"), (DEFAULT, "The default")):
            if key in (field.metadata or {}):
                check_rule_text(spark, f"{what} of column {field.name}", str(field.metadata[key]))
    for name, text in properties.items():
        if name.lower().startswith(CHECK_PREFIX):
            check_rule_text(spark, f"The constraint {name[len(CHECK_PREFIX) :]}", text)


def wrong_type(message: str, values: Iterable[Any]) -> NoReturn:
    """Raise a TypeError that names the values and their types."""
    raise TypeError(message + "".join(f" Found {item!r} of type {type(item)}." for item in values))


def as_condition(condition: Any, name: str = "'condition'") -> Column | None:
    """Return a condition as a Column; None if it is None. SQL text is parsed, so that wrong SQL is an error here."""
    from pyspark.sql import functions as F

    if condition is None or isinstance(condition, Column):
        return condition
    if not isinstance(condition, str):
        raise TypeError(f"{name} must be a Spark SQL Column or a string (an expression in SQL), found to be of {type(condition)}")
    return F.expr(condition)


def as_assignments(new_values: Any, name: str) -> dict[str, Column]:
    """Return the new values as Columns, by column name. new_values: a dict of names to Columns or SQL. name: of the argument, for
    messages."""
    if new_values is None:
        raise ValueError(f"{name} cannot be None")
    if not isinstance(new_values, dict):
        raise TypeError(f"{name} must be a dict, found to be {type(new_values)}")
    assignments = {}
    for column, value in new_values.items():
        if not isinstance(column, str):
            raise TypeError(f"Keys of dict in {name} must contain only strings with column names, found {column!r}")
        if value is None or not isinstance(value, str | Column):
            raise TypeError(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings (expressions in SQL), found {value!r} "
                f"of {type(value)}"
            )
        expression = as_condition(value)
        assert expression is not None
        assignments[column] = expression
    return assignments


def names_of(columns: tuple[Any, ...], what: str) -> list[str]:
    """Return names that were passed one by one, or as one list or tuple. what: the kind of name, for the error about a name that
    is no text."""
    names = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    for name in names:
        if not isinstance(name, str):
            wrong_type(f"{what} must be str.", [name])
    return list(names)
