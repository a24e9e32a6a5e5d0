"""Resolved expressions: a tree of nodes with types, and functions that make nodes of each kind."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import is_fractional
from delta_py.expressions.evaluation_errors import MAX_NODES, not_supported, too_large
from delta_py.expressions.functions.function_table import FUNCTIONS, call_values
from delta_py.expressions.functions.function_types import Operand
from delta_py.expressions.functions.text_growth import growth_limit
from delta_py.expressions.tree import Call, Cast, Expression, IsNull, Literal, Not
from delta_py.expressions.value_casts import cast_can_fail, cast_values
from delta_py.types.arrow_values import array
from delta_py.types.schema import BOOLEAN, DataType, to_arrow_type, type_name

# The maximum number of bytes of text that functions may produce to compute one constant.
_MOST_CONSTANT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Node:
    """A resolved expression with its type.

    children: the nodes of the expression's operands. can_fail: evaluation may raise an error for some row. size: the number of
    nodes in this tree; a node that occurs in several places counts in each.

    Raises ExpressionError if the size exceeds MAX_NODES.
    """

    expression: Expression
    data_type: DataType
    children: tuple[Node, ...] = ()
    can_fail: bool = False
    size: int = field(init=False, compare=False, default=1)

    def __post_init__(self) -> None:
        if self.children:
            object.__setattr__(self, "size", 1 + sum(child.size for child in self.children))
            if self.size > MAX_NODES:
                raise too_large()


class Cases(NamedTuple):
    """conditions, values: the branches in order, one value for each condition. otherwise: ELSE's value; None without ELSE."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]
    otherwise: Node | None


def cases_of(node: Node) -> Cases:
    """The branches of a call of `if` or `case`."""
    parts = node.children  # condition, value, condition, value, ..., and ELSE's value if their number is odd
    branch_count = len(parts) // 2
    return Cases(parts[0 : 2 * branch_count : 2], parts[1 : 2 * branch_count : 2], parts[-1] if len(parts) % 2 else None)


# ---------------------------------------------------------------- making nodes


def literal_node(literal: Literal) -> Node:
    return Node(literal, literal.data_type)


def null_test_node(child: Node) -> Node:
    return Node(IsNull(child.expression), BOOLEAN, (child,), child.can_fail)


def not_node(child: Node) -> Node:
    return Node(Not(child.expression), BOOLEAN, (child,), child.can_fail)


def cast_node(node: Node, target: DataType) -> Node:
    """CAST(node AS target), in UTC."""
    can_fail = node.can_fail or cast_can_fail(node.data_type, target)
    return Node(Cast(node.expression, target), target, (node,), can_fail)


def call_node(name: str, result: DataType, children: tuple[Node, ...]) -> Node:
    """A call whose arguments already have the types that the function needs. result: the type of the result."""
    function = FUNCTIONS.get(name)
    # With floats, +, - and * give infinity or NaN, not an error.
    fails = function is not None and function.can_fail and not (name in ("+", "-", "*") and is_fractional(result))
    expression = Call(name, tuple(child.expression for child in children))
    return Node(expression, result, children, fails or any(child.can_fail for child in children))


def is_constant(node: Node) -> bool:
    return isinstance(node.expression, Literal)


def constant_value(node: Node) -> Any:
    assert isinstance(node.expression, Literal)
    return node.expression.value


def operand_of(node: Node) -> Operand:
    """The argument as a function's signature needs it: its type, and its value if it is a constant."""
    if isinstance(node.expression, Literal):
        return Operand(node.data_type, True, node.expression.value)
    return Operand(node.data_type)


# ---------------------------------------------------------------- constants


def literal_scalar(literal: Literal) -> Any:
    """The constant as an Arrow scalar of its type. Raises ExpressionError if the value is not of that type."""
    return literal_array([literal], literal.data_type)[0]


def literal_array(literals: Sequence[Literal], data_type: DataType) -> Any:
    """Constants of one type as an Arrow array. Raises ExpressionError if a value is not of the type."""
    try:
        return array([literal.value for literal in literals], to_arrow_type(data_type))
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        shown_values = ", ".join(repr(literal.value) for literal in literals[:3])
        raise ExpressionError(
            f"{shown_values} is not a value of {type_name(data_type)}: {error}.",
            error_class="DATATYPE_MISMATCH",
            sql_state="42K09",
        ) from error


def compute_constant(node: Node) -> Any:
    """The value of a cast or call whose children are literals, in the form of Literal.value.

    Raises ExpressionError if there is no value. Raises it too if functions produce much text: a long text is better computed for
    each batch of rows than stored in the tree.
    """
    scalars = [literal_scalar(child.expression) for child in node.children if isinstance(child.expression, Literal)]
    arguments = [pa.repeat(argument, 1) for argument in scalars]
    if isinstance(node.expression, Cast):
        return python_value(cast_values(arguments[0], node.children[0].data_type, node.data_type)[0])
    assert isinstance(node.expression, Call)
    name = node.expression.name
    if name not in FUNCTIONS:  # evaluation computes conditionals
        raise not_supported(name)
    constants = [constant_value(child) for child in node.children]
    with growth_limit(_MOST_CONSTANT_BYTES):
        return python_value(call_values(name, [*arguments], constants, node.data_type)[0])


def python_value(scalar: Any) -> Any:
    """An Arrow scalar as a Literal's value."""
    value = scalar.as_py()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return value
