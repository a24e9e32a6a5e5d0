"""What the statements that change rows share, however they were read: values by columns, names of the table, and results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from delta_py.commands.new_values import assigned_twice
from delta_py.protocol.names import quoted
from spark_plugin.sql.targets import Target
from spark_plugin.sql_internals import ParsedPlan, ParsedTarget

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


def call_target(plan: ParsedPlan, named: ParsedTarget, target: Target, text: str) -> str | None:
    """By what the statement's conditions and values may call the table: its alias, or its name where the catalog has it; one of
    several parts (db.t.id), too, which the plan's Columns have as the alias from now on. text: of the statement."""
    if named.alias is not None:
        return named.alias
    alias = None if target.name is None else named.parts[-1]
    if _has_qualifiers(text, named.parts):
        alias = named.parts[-1]
        plan.call_target(named.parts if len(named.parts) != 2 or target.name is None else (_CATALOG, *named.parts), alias)
    return alias


def _has_qualifiers(text: str, parts: tuple[str, ...]) -> bool:
    """Whether a column may be qualified by a name of several parts, db.t.id: quick, and rarely so."""
    written = r"`?\s*\.\s*`?".join(re.escape(part.replace("`", "``")) for part in parts[-2:])
    return len(parts) > 1 and re.search(rf"{written}`?\s*\.", text, re.IGNORECASE) is not None
