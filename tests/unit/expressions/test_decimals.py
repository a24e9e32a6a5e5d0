"""Decimal arithmetic and casts compared with Python's decimal module: exact results, rounded half up once, in Spark's types."""

from __future__ import annotations

import decimal
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import decimal_result
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.tree import Call, Cast, Column, Expression
from delta_py.types.schema import DOUBLE, LONG, STRING, DataType, DecimalType

EXACT = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)
TYPES = [(5, 2), (10, 0), (18, 6), (20, 0), (20, 10), (28, 3), (38, 10), (38, 0)]


def numbers(chance: random.Random, precision: int, scale: int, count: int) -> list[Decimal | None]:
    """Of every length, some zero, some null, some of them ties."""
    numbers_list: list[Decimal | None] = [
        None,
        Decimal(0),
        Decimal(5).scaleb(-scale),
        Decimal(10**precision - 1).scaleb(-scale, EXACT),
    ]
    for _ in range(count):
        digits = chance.randrange(10 ** chance.randint(1, min(precision, 16)))
        numbers_list.append(Decimal(digits * chance.choice((1, -1))).scaleb(-scale))
    return numbers_list


def column(values: list[Decimal | None], precision: int, scale: int) -> pa.Array:
    return pa.array(values, pa.decimal128(precision, scale))


def rounded(value: Decimal, target: DecimalType) -> Decimal | None:
    """None: it does not fit."""
    result = value.quantize(Decimal(1).scaleb(-target.scale), context=EXACT)
    return result if result.copy_abs() < 10 ** (target.precision - target.scale) else None


def exactly(op: str, a: Decimal, b: Decimal) -> Decimal:
    match op:
        case "+":
            return EXACT.add(a, b)
        case "-":
            return EXACT.subtract(a, b)
        case "*":
            return EXACT.multiply(a, b)
        case "/":
            return EXACT.divide(a, b)
    return EXACT.remainder(a, b)


def run(expression: Expression, **columns: pa.Array) -> Any:
    return evaluate(expression, pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_operator_gives_the_exact_result_rounded_once(op: str, left: tuple[int, int], right: tuple[int, int]) -> None:
    chance = random.Random(f"{op}{left}{right}")
    pairs = list(zip(numbers(chance, *left, 30), reversed(numbers(chance, *right, 30)), strict=True))
    target = decimal_result(op, DecimalType(*left), DecimalType(*right))
    operands, expected = [], []
    for a, b in pairs:
        if op in "/%" and b == 0 and a is not None:
            continue
        value = None if a is None or b is None else rounded(exactly(op, a, b), target)
        if value is not None or a is None or b is None:
            operands.append((a, b))
            expected.append(value)
    tree = Call(op, (Column(("a",)), Column(("b",))))
    try:
        results = run(tree, a=column([a for a, _ in operands], *left), b=column([b for _, b in operands], *right))
    except ExpressionError as error:
        # Arrow cannot compute with this many digits: refused by name, never wrong.
        assert error.error_class == "DELTA_UNSUPPORTED_EXPRESSION"
        assert left[0] + right[0] >= 38
        return
    assert results.type == pa.decimal128(target.precision, target.scale)
    assert results.to_pylist() == expected


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_cast_between_decimals_rounds_half_up_or_raises(source: tuple[int, int], target: tuple[int, int]) -> None:
    values = numbers(random.Random(f"{source}{target}"), *source, 30)
    goal = DecimalType(*target)
    fitting = [v for v in values if v is None or rounded(v, goal) is not None]
    results = run(Cast(Column(("a",)), goal), a=column(fitting, *source))
    assert results.to_pylist() == [None if v is None else rounded(v, goal) for v in fitting]
    for value in values:
        if value not in fitting:
            with pytest.raises(ExpressionError) as caught:
                run(Cast(Column(("a",)), goal), a=column([value], *source))
            assert caught.value.error_class == "NUMERIC_VALUE_OUT_OF_RANGE"


@pytest.mark.parametrize("source", TYPES)
def test_decimal_as_double_long_and_text(source: tuple[int, int]) -> None:
    values = numbers(random.Random(str(source)), *source, 30)

    def cast(target: DataType, decimals: list[Decimal | None]) -> list[Any]:
        result: list[Any] = run(Cast(Column(("a",)), target), a=column(decimals, *source)).to_pylist()
        return result

    small = [v for v in values if v is None or v.copy_abs() < 2**63]
    assert cast(DOUBLE, values) == [None if v is None else float(v) for v in values]
    assert cast(LONG, small) == [None if v is None else int(v) for v in small]
    shown = [None if v is None else f"{v.quantize(Decimal(1).scaleb(-source[1]), context=EXACT):f}" for v in values]
    assert cast(STRING, values) == shown
