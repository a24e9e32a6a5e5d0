"""The condition that selects files, from what callers of deltalake pass: filters of partitions as tuples, or SQL over columns."""

from __future__ import annotations

from typing import Any

from delta_py.as_deltalake.sql_dialects import spark_sql
from delta_py.exchange.partition_filters import partition_condition
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.tree import Expression
from delta_py.snapshot import Snapshot


def condition_of(snapshot: Snapshot, filters: Any) -> Expression | None:
    """The condition of the filters; None if there are none.

    filters: SQL; a list of (column, operator, value), combined with AND; or a list of such lists, combined with OR.
    Raises as partition_condition and parse_predicate.
    """
    if filters is None or filters == []:
        return None
    if isinstance(filters, str):
        return parse_predicate(spark_sql(filters), snapshot.schema)
    config = snapshot.config
    conjunctions = filters if isinstance(filters[0], list) else [filters]
    conditions = [partition_condition(config.schema, config.partition_columns, conjunction) for conjunction in conjunctions]
    return parse_predicate(" OR ".join(f"({condition})" for condition in conditions), snapshot.schema)
