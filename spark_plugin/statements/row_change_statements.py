"""What the statements that change rows share, however they were read: values by columns, names of the table, and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from delta_py.row_changes.assigned_rows import assigned_twice
from delta_py.types.names import quoted
from spark_plugin.dml.target_names import Alias
from spark_plugin.sql.targets import Target
from spark_plugin.sql_internals import ParsedTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_CATALOG = "spark_catalog"


def by_name(assignments: Iterable[tuple[tuple[str, ...], T]], action: str = "UPDATE") -> dict[str, T]:
    """The values by names as SQL takes them. action: UPDATE or INSERT.

    Raises UnsupportedOperationError for a column that is named twice; whoever resolves the names finds those that are spelled
    differently.
    """
    values: dict[str, T] = {}
    for parts, value in assignments:
        name = ".".join(map(quoted, parts))
        if name in values:
            raise assigned_twice(action, parts, parts)
        values[name] = value
    return values


def counted(spark: SparkSession, rows: int) -> DataFrame:
    """What DELETE and UPDATE give."""
    return spark.createDataFrame([(rows,)], "num_affected_rows bigint")


def alias_of(spark: SparkSession, named: ParsedTarget, target: Target, text: str) -> Alias:
    """By what name the statement's conditions and values may call the table: its alias, or its own where the catalog has it. All
    parts of that only where columns may have several in front: the history tells conditions with names as they stand in the plan.
    text: of the statement."""
    if named.alias is None:
        whole = named.parts if target.name is None else _whole_name(spark, named.parts)
        if _has_qualifiers(text, whole):
            return whole
    return short_alias(named.alias, named.parts, target)


def short_alias(alias: str | None, parts: tuple[str, ...], target: Target) -> Alias:
    """The alias that a statement gives a table, or the last part of the name that the catalog has."""
    if alias is not None:
        return (alias,)
    return () if target.name is None else parts[-1:]


def _whole_name(spark: SparkSession, parts: tuple[str, ...]) -> tuple[str, ...]:
    """With the catalog and the database, which names of the session catalog may leave out."""
    whole = parts if len(parts) > 1 else (spark.catalog.currentDatabase(), *parts)
    return whole if len(whole) > 2 else (_CATALOG, *whole)


def _has_qualifiers(text: str, parts: tuple[str, ...]) -> bool:
    """Whether a column may be qualified by the last two parts of a name, db.t.id: quick, and rarely so."""
    written = r"`?\s*\.\s*`?".join(re.escape(part.replace("`", "``")) for part in parts[-2:])
    return re.search(rf"{written}`?\s*\.", text, re.IGNORECASE) is not None


def among(known: Iterable[str], *, case_sensitive: bool) -> Callable[[str], bool]:
    """Tells whether a statement's name is one of those."""
    names = frozenset(known if case_sensitive else (name.lower() for name in known))
    return lambda name: (name if case_sensitive else name.lower()) in names
