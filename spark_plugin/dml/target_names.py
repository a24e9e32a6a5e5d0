"""The names that conditions and values may use for the table that a statement changes.

    alias_frame(frame, ("s",))                                 # s.id
    alias_frame(frame, ("spark_catalog", "shop", "sales"))     # spark_catalog.shop.sales.id, shop.sales.id and sales.id
    counts_of_qualifiers(("shop", "sales", "id"), alias, is_same)       # [2]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import DataFrame

from spark_plugin.internals.session_adapter import adapter_of

Alias: TypeAlias = tuple[str, ...]
"""The parts of a table's name, such as (catalog, database, table); empty if the table has no name. Conditions may put the last
part, or the last parts, before a column's name; over Spark Connect only the last part."""


def alias_frame(frame: DataFrame, alias: Alias) -> DataFrame:
    """Return the frame with the alias as its name; the same frame if the alias is empty."""
    if len(alias) < 2:
        return frame.alias(alias[0]) if alias else frame
    return adapter_of(frame.sparkSession).alias_frame(frame, alias)


def without_alias(path: tuple[str, ...], alias: Alias) -> tuple[str, ...]:
    """Return a column's name without the leading parts that name the table. Upper and lower case do not matter."""
    counts = counts_of_qualifiers(path, alias, lambda first, second: first.lower() == second.lower())
    return path[max(counts, default=0) :]


def counts_of_qualifiers(path: tuple[str, ...], alias: Alias, is_same: Callable[[str, str], bool]) -> list[int]:
    """Return each number of leading parts of a column's name that may be the table's name; an empty list if the first part is
    already a column. path: the name's parts, of the column or of a field in it; the last part is never the table's name. is_same:
    whether two parts are the same name."""
    counts = range(1, min(len(alias), len(path) - 1) + 1)
    return [count for count in counts if all(map(is_same, path[:count], alias[-count:]))]
