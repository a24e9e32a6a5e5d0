"""The names that conditions and values may use for the table that a statement changes.

    called(frame, ("s",))                                 # s.id
    called(frame, ("spark_catalog", "shop", "sales"))     # spark_catalog.shop.sales.id, shop.sales.id and sales.id
    counts_of_qualifiers(("shop", "sales", "id"), alias, same)       # [2]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import DataFrame

from spark_plugin.internals.session_adapter import adapter_of

Alias: TypeAlias = tuple[str, ...]
"""The parts of a name. The last part, or the last parts, can stand before a column's name. Empty if there is none. Over Spark
Connect only the last part can."""


def called(frame: DataFrame, alias: Alias) -> DataFrame:
    """Return the frame under this name."""
    if len(alias) < 2:
        return frame.alias(alias[0]) if alias else frame
    return adapter_of(frame.sparkSession).alias_frame(frame, alias)


def without_alias(path: tuple[str, ...], alias: Alias) -> tuple[str, ...]:
    """Return a column's name without the leading table name, in any case."""
    counts = counts_of_qualifiers(path, alias, lambda one, other: one.lower() == other.lower())
    return path[max(counts, default=0) :]


def counts_of_qualifiers(path: tuple[str, ...], alias: Alias, same: Callable[[str, str], bool]) -> list[int]:
    """Return how many leading parts of a column's name may be the table's name. path: of the column, or of a field in it. same:
    whether two parts are the same name."""
    counts = range(1, min(len(alias), len(path) - 1) + 1)
    return [count for count in counts if all(map(same, path[:count], alias[-count:]))]
