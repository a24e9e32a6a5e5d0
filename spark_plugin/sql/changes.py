"""What the statements that change rows share, however they were read: values by columns, and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from delta_py.commands.new_values import assigned_twice
from delta_py.protocol.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


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
