"""Removes the cast of an operand that is compared with constants, if the operand's own type can express the constants exactly.

`cast(i as bigint) = 5L` becomes `i = 5`. Statistics describe a column without a cast, so they can now rule out files, and no row
needs to be cast.
"""

from __future__ import annotations

import decimal
import math
import struct
from typing import Any

from delta_py.expressions.coercion import INTEGRAL_RANGE, is_integral
from delta_py.expressions.nodes import Node, literal_node
from delta_py.expressions.tree import Cast, Literal
from delta_py.expressions.value_casts import cast_can_fail, holds_all
from delta_py.types.schema import DOUBLE, FLOAT, INTEGER, DataType, DecimalType

_WIDE = decimal.Context(prec=200)  # exact for decimals of 38 digits at any scale


def remove_cast(left: Node, right: Node) -> tuple[Node, Node]:
    """Both operands, without the cast of the left one if the type inside of the cast can express the constant on the right.
    Otherwise, and if the right operand is no constant, both are returned unchanged."""
    if not isinstance(right.expression, Literal):
        return left, right
    operand, literals = remove_casts(left, [right.expression])
    return operand, literal_node(literals[0])


def remove_casts(node: Node, literals: list[Literal]) -> tuple[Node, list[Literal]]:
    """The node without the outer casts that are not needed, and the literals in the type of the remaining node.

    A cast is removed if it is lossless and the type inside of it expresses every literal exactly.
    """
    while isinstance(node.expression, Cast) and _is_lossless(node.children[0].data_type, node.data_type):
        operand = node.children[0]
        narrow_literals = [_narrow_literal(literal, operand.data_type) for literal in literals]
        if any(literal is None for literal in narrow_literals):
            break
        node, literals = operand, [literal for literal in narrow_literals if literal is not None]
    return node, literals


def _is_lossless(source: DataType, target: DataType) -> bool:
    """Whether different values stay different and in order, and every value can be cast."""
    if is_integral(source):  # a double holds every int exactly, but not every long
        if is_integral(target):
            return not cast_can_fail(source, target)
        return holds_all(source, target) or (target == DOUBLE and INTEGRAL_RANGE[source][1] <= INTEGRAL_RANGE[INTEGER][1])
    return holds_all(source, target) or (source, target) == (FLOAT, DOUBLE)


def _narrow_literal(literal: Literal, target: DataType) -> Literal | None:
    """The same value in a narrower type; None if that type cannot express it."""
    value = literal.value
    if value is None:
        return Literal(None, target)
    if is_integral(target):
        return _narrow_to_integral(value, target)
    if isinstance(target, DecimalType):
        return _narrow_to_decimal(value, target)
    if math.isnan(value) or math.isinf(value):
        return Literal(value, target)
    # The only other narrower type is float: the constant must survive its 32 bits. pack raises if it is too large.
    try:
        is_same = struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return None
    return Literal(value, target) if is_same else None


def _narrow_to_decimal(value: Any, target: DecimalType) -> Literal | None:
    """The number as a constant of the decimal type; None if it does not fit exactly."""
    number = decimal.Decimal(value)
    rounded = number.quantize(decimal.Decimal(1).scaleb(-target.scale), context=_WIDE)
    if rounded != number or number.copy_abs() >= 10 ** (target.precision - target.scale):
        return None
    return Literal(rounded, target)


def _narrow_to_integral(value: Any, target: DataType) -> Literal | None:
    """The number as a constant of the integral type; None if it does not fit exactly."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    low, high = INTEGRAL_RANGE[target]
    integer = int(value)
    return Literal(integer, target) if integer == value and low <= integer <= high else None
