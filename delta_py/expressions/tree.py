"""Predicates and expressions over rows, as frozen values.

They come from SQL text (`parse.py`) or from the filters that Spark passes (`spark_plugin/schema_conversion.py`).
`skipping_conditions.py` converts them to "may this file match", and `evaluate.py` to Arrow arrays. Columns are named by their
logical path from the table's top, as in the schema (with the schema's case if a schema was available).

Logic is SQL's, three-valued: null is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from delta_py.types.schema import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field nested in structs. path: the names from the top-level column on."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. value: None for null, else int, float, bool, str, bytes, decimal.Decimal, datetime.date, or
    datetime.datetime (aware and in UTC for `timestamp`, naive for `timestamp_ntz`)."""

    value: Any
    data_type: DataType


@dataclass(frozen=True, slots=True)
class Comparison:
    """op: one of = <=> < <= > >= (not-equal is Not over =)."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (options)`; a null option makes a non-match unknown, as in SQL."""

    operand: Expression
    options: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression


@dataclass(frozen=True, slots=True)
class StringMatch:
    """kind: one of startswith, endswith, contains, like (SQL pattern with % and _, escape backslash)."""

    kind: str
    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """operands: any number; true without any."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """operands: any number; false without any."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(operand AS data_type) under ANSI rules."""

    operand: Expression
    data_type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of Spark SQL by its lower-case name (`+`, `-`, `year`, `coalesce`, `if`, `case`, ...)."""

    name: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Column | Literal | Comparison | In | IsNull | StringMatch | Not | And | Or | Cast | Call

TRUE: And = And(())
FALSE: Or = Or(())


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of the expression, in order. The options of IN are among them."""
    match expression:
        case Column() | Literal():
            return ()
        case Comparison(_, left, right):
            return (left, right)
        case In(operand, options):
            return (operand, *options)
        case IsNull(operand) | Not(operand) | Cast(operand, _) | StringMatch(_, operand, _):
            return (operand,)
        case And(operands) | Or(operands) | Call(_, operands):
            return operands


def columns_of(expression: Expression) -> frozenset[tuple[str, ...]]:
    """The paths of all columns that the expression names."""
    paths: set[tuple[str, ...]] = set()
    visited: dict[int, Expression] = {}  # an operand may occur in exponentially many places
    pending: list[Expression] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Column):
            paths.add(node.path)
        elif id(node) not in visited:
            visited[id(node)] = node
            # The options of IN are literals, perhaps very many.
            pending.extend((node.operand,) if isinstance(node, In) else children(node))
    return frozenset(paths)


def nodes_of(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts."""
    yield expression
    for child in children(expression):
        yield from nodes_of(child)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The expression as operands of one flat AND; () for TRUE."""
    if not isinstance(expression, And):
        return (expression,)
    return tuple(part for operand in expression.operands for part in conjuncts(operand))


def conjunction(parts: tuple[Expression, ...]) -> Expression:
    """AND of the parts, without needless nesting; TRUE if there are none."""
    return parts[0] if len(parts) == 1 else And(parts)


def transform_columns(expression: Expression, change: Callable[[tuple[str, ...]], Expression]) -> Expression:
    """The expression with every column replaced by the result of `change` for its path."""
    if isinstance(expression, Column):
        return change(expression.path)
    return map_children(expression, lambda child: transform_columns(child, change))


def map_children(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same node with changed children; the options of IN, which are constants, do not change."""
    match expression:
        case Column() | Literal():
            return expression
        case Comparison(op, left, right):
            return Comparison(op, change(left), change(right))
        case In(operand, options):
            return In(change(operand), options)
        case IsNull(operand):
            return IsNull(change(operand))
        case Not(operand):
            return Not(change(operand))
        case StringMatch(kind, operand, pattern):
            return StringMatch(kind, change(operand), pattern)
        case Cast(operand, data_type):
            return Cast(change(operand), data_type)
        case And(operands):
            return And(tuple(change(part) for part in operands))
        case Or(operands):
            return Or(tuple(change(part) for part in operands))
        case Call(name, arguments):
            return Call(name, tuple(change(part) for part in arguments))
