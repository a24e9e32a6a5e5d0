"""The common part of statements that change rows, however they were read: values by columns, names of the table, and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from delta_py.row_changes.assigned_rows import assigned_twice
from delta_py.types.names import quoted
from spark_plugin.dml.target_names import Alias
from spark_plugin.sql.targets import Target
from spark_plugin.sql_catalog.unity_names import full_unity_name
from spark_plugin.sql_internals import ParsedTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_CATALOG = "spark_catalog"


def by_name(assignments: Iterable[tuple[tuple[str, ...], T]], action: str = "UPDATE") -> dict[str, T]:
    """Return the assigned values by the names of their columns, as SQL text. assignments: the parts of each name, and the value.
    action: UPDATE or INSERT, for the error.

    Raises UnsupportedOperationError for a column that is named twice in the same spelling; the code that resolves the names finds
    the others.
    """
    values: dict[str, T] = {}
    for parts, value in assignments:
        name = ".".join(map(quoted, parts))
        if name in values:
            raise assigned_twice(action, parts, parts)
        values[name] = value
    return values


def counted(spark: SparkSession, rows: int) -> DataFrame:
    """Return the result of DELETE and UPDATE: one row with the number of changed rows."""
    return spark.createDataFrame([(rows,)], "num_affected_rows bigint")


def alias_of(spark: SparkSession, parsed: ParsedTarget, target: Target, text: str) -> Alias:
    """Return the names that the statement's conditions and values may use for the table: its alias, or its name in the catalog.
    text: of the statement.

    The history records conditions with these names, so they should be short: only the last part of the name, unless the text has
    columns like `db.t.id`.
    """
    if parsed.alias is None:
        full_name = parsed.parts if target.name is None else _whole_name(spark, parsed.parts)
        if _has_qualifiers(text, full_name):
            return full_name
    return short_alias(parsed.alias, parsed.parts, target)


def short_alias(alias: str | None, parts: tuple[str, ...], target: Target) -> Alias:
    """Return the alias that a statement gives a table, or the last part of its name in the catalog."""
    if alias is not None:
        return (alias,)
    return () if target.name is None else parts[-1:]


def _whole_name(spark: SparkSession, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name with the catalog and the database, which a name may leave out."""
    unity_name = full_unity_name(spark, parts)
    if unity_name is not None:
        return unity_name
    full_name = parts if len(parts) > 1 else (spark.catalog.currentDatabase(), *parts)
    return full_name if len(full_name) > 2 else (_CATALOG, *full_name)


def _has_qualifiers(text: str, parts: tuple[str, ...]) -> bool:
    """Return whether a column may be qualified by the last two parts of a name, db.t.id: a fast check, and rarely true."""
    qualifiers = r"`?\s*\.\s*`?".join(re.escape(part.replace("`", "``")) for part in parts[-2:])
    return re.search(rf"{qualifiers}`?\s*\.", text, re.IGNORECASE) is not None


def among(known_names: Iterable[str], *, case_sensitive: bool) -> Callable[[str], bool]:
    """Return a function that tells whether a name in a statement is one of the known names."""
    names = frozenset(known_names if case_sensitive else (name.lower() for name in known_names))
    return lambda name: (name if case_sensitive else name.lower()) in names
