"""Find the rules of a table that name a column: a change of the column may change their meaning, or make them invalid.

    for rule in rules_naming(config, ("a", "b")): ...

Protocol: CHECK Constraints; Column Invariants; Generated Columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_py.errors import DeltaError
from delta_py.expressions.parse import parse_expression
from delta_py.expressions.tree import columns_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.row_constraints import RowRule, generation_rule, table_rules
from delta_py.types.column_rules import GENERATION
from delta_py.types.schema import Path, StructType


def rules_naming(table: TableConfig, path: Path) -> tuple[RowRule, ...]:
    """The invariants, CHECK constraints and generation expressions that name the column at a path, a field inside it, or a struct
    that contains it. A rule that cannot be parsed may name any column."""
    generated = (generation_rule(f) for f in table.schema.fields if GENERATION in f.metadata)
    rules = (*table_rules(table), *generated)
    return tuple(rule for rule in rules if any(_overlap(path, rule_path) for rule_path in _columns_named(rule.sql, table.schema)))


def _columns_named(sql: str, schema: StructType) -> Iterable[Path]:
    """The paths of the columns and fields that a rule names; all columns of the schema if its SQL cannot be read."""
    try:
        return columns_of(parse_expression(sql, schema))
    except DeltaError:
        from delta_py.expressions.sql_text.spark_rules import checked_sql  # few rules need it

        try:
            return checked_sql(sql, schema).columns  # Spark may compute more than pydelta can
        except DeltaError:
            return [(name,) for name in schema.names]


def _overlap(path: Path, other_path: Path) -> bool:
    """Whether the paths are equal, or one of them begins with the other, ignoring case."""
    return all(a.lower() == b.lower() for a, b in zip(path, other_path, strict=False))
