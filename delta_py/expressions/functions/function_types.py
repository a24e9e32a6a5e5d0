"""The rows of the function table, and the signatures that many functions share.

A function is identified by its lower-case name. `signature` takes the operands' types and decides the types to which its
arguments are cast, and the result type; `run` computes it on Arrow values. The rows are in tables of one kind of function each
(NUMBERS, TEXTS, TIMES, ...), which function_table.py joins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from delta_py.expressions.coercion import (
    DATETIME,
    INTEGRAL,
    common_type_of_all,
    is_atomic,
    is_fractional,
    is_integral,
    is_numeric,
)
from delta_py.expressions.evaluation_errors import mismatch, not_supported, wrong_argument_count
from delta_py.types.schema import DOUBLE, STRING, VOID, DataType


@dataclass(frozen=True, slots=True)
class Operand:
    """The facts about an argument for a signature. value: the constant, if is_literal (None is SQL's null)."""

    data_type: DataType
    is_literal: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class Signature:
    """arguments: the types to cast the arguments to, one each. result: the result type."""

    arguments: tuple[DataType, ...]
    result: DataType


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table.

    signature: (name, operands) -> Signature; raises ExpressionError where Spark's analyzer does.
    run: (arguments, result type) -> Array. The arguments are Arrays, or Scalars for constants (at least one Array), and
        Python values at the positions in `constants`. None: Spark has it, this library does not evaluate it.
    constants: positions that must be literals.
    can_fail: whether a value may raise, so that it must not be evaluated for rows that do not need it.
    increasing: if one argument varies and the others are constants, a <= b means f(a) <= f(b), and only null gives null. So the
        bounds of this argument give bounds of the result.
    """

    signature: Callable[[str, Sequence[Operand]], Signature]
    run: Callable[[list[Any], DataType], Any] | None
    constants: frozenset[int] = frozenset()
    can_fail: bool = False
    increasing: bool = False


def accepts(operand: DataType, target: DataType) -> bool:
    """Whether Spark implicitly casts an argument of one type to another (ANSI implicit cast)."""
    if operand in (target, VOID):
        return True
    if target == STRING:
        return is_atomic(operand)
    if operand == STRING:
        return is_atomic(target)
    if operand in DATETIME and target in DATETIME:
        return True
    if is_integral(operand) and is_integral(target):
        return INTEGRAL.index(operand) <= INTEGRAL.index(target)
    return is_numeric(operand) and is_fractional(target)


def check_count(name: str, operands: Sequence[Operand], min_count: int, max_count: int | None) -> None:
    """Raises ExpressionError unless there are min_count to max_count operands. max_count: None for any number."""
    if len(operands) < min_count or (max_count is not None and len(operands) > max_count):
        if max_count is None:
            expected = f"{min_count} or more"
        else:
            expected = str(min_count) if min_count == max_count else f"{min_count} to {max_count}"
        raise wrong_argument_count(name, len(operands), expected)


def fixed(result: DataType, *all_argument_types: DataType, optional: int = 0) -> Callable[[str, Sequence[Operand]], Signature]:
    """The signature of a function whose arguments are cast to fixed types. optional: how many of the last arguments may be
    omitted."""

    def signature(name: str, operands: Sequence[Operand]) -> Signature:
        check_count(name, operands, len(all_argument_types) - optional, len(all_argument_types))
        argument_types = all_argument_types[: len(operands)]
        for operand, target in zip(operands, argument_types, strict=True):
            if not accepts(operand.data_type, target):
                raise mismatch(name, operand.data_type)
        return Signature(argument_types, result)

    return signature


def numeric_argument(name: str, data_type: DataType) -> DataType:
    """The numeric type of an argument for a function of any number: text and null become double."""
    if data_type in (STRING, VOID):
        return DOUBLE
    if not is_numeric(data_type):
        raise mismatch(name, data_type)
    return data_type


def same_type(name: str, operands: Sequence[Operand]) -> Signature:
    """Any number (at least two) of operands with a common type, which is also the result type."""
    check_count(name, operands, 2, None)
    common = common_type_of_all(operand.data_type for operand in operands)
    if any(operand.data_type == STRING for operand in operands) and any(o.data_type not in (STRING, VOID) for o in operands):
        common = None  # these functions do not cast text next to other types
    if common is None or not (is_atomic(common) or common == VOID):
        raise mismatch(name, *(operand.data_type for operand in operands))
    return Signature((common,) * len(operands), common)


def constant_integer(name: str, operand: Operand) -> int | None:
    """The value of an argument that must be a literal integer; None for null."""
    if not operand.is_literal:
        raise not_supported(f"{name} with an argument that is not a constant", "Give it a constant.")
    if operand.value is None or (isinstance(operand.value, int) and not isinstance(operand.value, bool)):
        return operand.value
    raise mismatch(name, operand.data_type)


def not_evaluated(result: DataType) -> Function:
    """A function that Spark has and that is parsed, but not evaluated here."""
    return Function(lambda name, operands: Signature(tuple(o.data_type for o in operands), result), None)
