"""SQL text in Spark's dialect -> a resolved tree: constraints, generated columns, `filter` options, replaceWhere.

sqlglot reads the text (`dialect.py`). It is imported only when there is text to read.
"""

from __future__ import annotations

from collections.abc import Callable

from delta_py.errors import ExpressionError
from delta_py.expressions.nodes import Node
from delta_py.expressions.resolve import resolve, resolve_condition
from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.expressions.tree import Expression, In, children, transform_columns
from delta_py.types.schema import DataType, Path, StructType

__all__ = ["parse_expression", "parse_named", "parse_predicate", "to_sql", "type_of"]

_MAX_DEPTH = 100  # keeps later recursion over the tree far from Python's recursion limit


def parse_predicate(sql: str, schema: StructType, *, session_timezone: str = "UTC") -> Expression:
    """The text as a condition on rows of the schema; its type is boolean.

    Columns get the schema's own spelling (found ignoring case), literals the type in which they are compared, and the casts
    that Spark inserts are in the tree. session_timezone: for text, dates and wall clocks compared with timestamps.
    Raises ExpressionError for text that is not a condition or needs something that is not supported (named), and
    SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for an unknown column.
    """
    return _parse_and_resolve(sql, schema, session_timezone, resolve_condition).expression


def parse_expression(sql: str, schema: StructType, *, session_timezone: str = "UTC") -> Expression:
    """The text as an expression of any type, for generated columns and defaults; type_of returns its type. Otherwise as
    parse_predicate."""
    return _parse_and_resolve(sql, schema, session_timezone, resolve).expression


def parse_named(
    sql: str,
    names: StructType,
    rows: StructType,
    find_column: Callable[[Path], Expression],
    *,
    condition: bool = False,
    session_timezone: str = "UTC",
) -> Expression:
    """The text as an expression whose names are not yet columns of the rows, for example `t.id` in MERGE.

    names: all columns that can be written by their name alone; such a name is never read as a word like current_date.
    rows: the schema of the rows. find_column: maps a name in the text to a column of `rows`, or raises an error.
    condition: whether the text must be a condition. Raises as parse_predicate.
    """

    def fold(part: Expression) -> Expression:
        """Resolves a part, which replaces constant operations by their values."""
        return resolve(transform_columns(part, find_column), rows, session_timezone).expression

    resolve_tree = resolve_condition if condition else resolve
    tree = _parse_tree(sql, names, fold)
    return resolve_tree(transform_columns(tree, find_column), rows, session_timezone).expression


def type_of(expression: Expression, schema: StructType) -> DataType:
    """The type of a tree that parse_expression made with the same schema."""
    return resolve(expression, schema).data_type


def _parse_and_resolve(
    sql: str, schema: StructType, zone: str, resolve_tree: Callable[[Expression, StructType, str], Node]
) -> Node:
    """The text as a resolved tree. zone: the session's. resolve_tree: resolve or resolve_condition."""
    return resolve_tree(_parse_tree(sql, schema, lambda part: resolve(part, schema, zone).expression), schema, zone)


def _parse_tree(sql: str, schema: StructType, fold: Callable[[Expression], Expression]) -> Expression:
    """The tree of the text, not yet resolved. fold: resolves a part of the tree, so that the parser can compute constants. Raises
    ExpressionError for text that is nested too deeply."""
    from delta_py.expressions.sql_text.from_sql import parse_sql  # importing sqlglot takes longer than a small read

    try:
        tree = parse_sql(sql, schema, fold)
    except RecursionError as error:
        raise _too_deep_error() from error
    _check_depth(tree)
    return tree


def _check_depth(tree: Expression) -> None:
    """Raises ExpressionError if the tree has more than _MAX_DEPTH levels. An operand that occurs in several places is checked
    once per level: there may be exponentially many places."""
    nodes_of_level: list[Expression] = [tree]
    for _ in range(_MAX_DEPTH):
        parts_by_id: dict[int, Expression] = {}
        for parent in nodes_of_level:
            # The options of IN are literals, perhaps very many.
            parts = (parent.operand,) if isinstance(parent, In) else children(parent)
            parts_by_id |= {id(part): part for part in parts}
        nodes_of_level = list(parts_by_id.values())
        if not nodes_of_level:
            return
    raise _too_deep_error()


def _too_deep_error() -> ExpressionError:
    return ExpressionError(
        f"The expression is nested more than {_MAX_DEPTH} levels deep. Split it, or use IN for many values.",
        error_class="PARSE_SYNTAX_ERROR",
        sql_state="42601",
    )
