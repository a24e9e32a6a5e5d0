"""Arithmetic and numeric functions under ANSI rules: overflow and division by zero raise. They never wrap or return null.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.coercion import (
    INTEGRAL_RANGE,
    MAX_PRECISION,
    common_type,
    decimal_of,
    decimal_of_value,
    decimal_result,
    is_fractional,
    is_integral,
    is_numeric,
)
from delta_py.expressions.evaluation_errors import division_by_zero, mismatch, not_supported, overflow, wrong_argument_count
from delta_py.expressions.functions.function_types import (
    Function,
    Operand,
    Signature,
    check_count,
    constant_integer,
    fixed,
    numeric_argument,
)
from delta_py.expressions.value_casts import (
    fit_decimal,
    raise_first,
    wide_decimal,
    with_validity_of,
    with_validity_of_all,
    zero_of,
)
from delta_py.types.schema import BOOLEAN, BYTE, DOUBLE, FLOAT, LONG, SHORT, STRING, VOID, DataType, DecimalType, to_arrow_type

_ARROW_DIGITS = 76  # the maximum number of digits of a decimal256
_OPERATION_NAMES = {
    "+": "Addition",
    "-": "Subtraction",
    "*": "Multiplication",
    "/": "Division",
    "%": "Remainder",
    "div": "Division",
}

# ---------------------------------------------------------------- signatures


def operand_types(name: str, first: Operand, second: Operand) -> tuple[DataType, DataType]:
    """The types to which the operands of an arithmetic operator are cast: one type for both, or two decimals with their own
    digits."""
    left, right = first.data_type, second.data_type
    if VOID in (left, right):  # null gets the type of the other operand; two nulls are doubles
        other_type = right if left == VOID else left
        left = right = DOUBLE if other_type == VOID else other_type
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        decimal_types = _as_decimal(first, left), _as_decimal(second, right)
        if decimal_types[0] is not None and decimal_types[1] is not None:
            return decimal_types[0], decimal_types[1]
    common = common_type(left, right)
    if common is None or not is_numeric(common):
        raise mismatch(name, first.data_type, second.data_type)
    return common, common


def _as_decimal(operand: Operand, data_type: DataType) -> DecimalType | None:
    """The operand's type next to a decimal: a literal has only its own digits. None for types that are no decimal then."""
    if operand.is_literal and is_integral(data_type) and isinstance(operand.value, int):
        return decimal_of_value(operand.value)
    return decimal_of(data_type)


def _arithmetic_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """+, -, * and % of two numbers, and - as the sign of one. Without decimals, operands and result have one type."""
    if len(operands) == 1 and name == "-":
        data_type = numeric_argument(name, operands[0].data_type)
        return Signature((data_type,), data_type)
    check_count(name, operands, 2, 2)
    left, right = operand_types(name, *operands)
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        return Signature((left, right), decimal_result(name, left, right))
    return Signature((left, right), left)


def _division_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """/: decimals are divided as decimals, all other numbers as doubles."""
    signature = _arithmetic_signature(name, operands)
    if isinstance(signature.result, DecimalType):
        return signature
    return Signature((DOUBLE, DOUBLE), DOUBLE)


def _integral_division_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """div: whole numbers, which are divided as longs."""
    check_count(name, operands, 2, 2)
    left, right = operand_types(name, *operands)
    if isinstance(left, DecimalType):
        raise not_supported("div on decimals")
    if not is_integral(left):
        raise mismatch(name, left, right)
    return Signature((LONG, LONG), LONG)


def _one_number_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, 1)
    data_type = numeric_argument(name, operands[0].data_type)
    return Signature((data_type,), data_type)


def _integral_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """floor and ceil: the result is a decimal without a fraction for a decimal, and a long for all other numbers."""
    if len(operands) == 2:
        raise not_supported(f"{name} with a scale", "Use round, or leave the scale out.")
    check_count(name, operands, 1, 1)
    data_type = numeric_argument(name, operands[0].data_type)
    if operands[0].data_type == VOID or is_integral(data_type):
        return Signature((LONG,), LONG)
    if isinstance(data_type, DecimalType):
        # With a fraction, the result may have one digit more: 9.5 becomes 10.
        digits = data_type.precision if data_type.scale == 0 else min(data_type.precision - data_type.scale + 1, MAX_PRECISION)
        return Signature((data_type,), DecimalType(digits, 0))
    return Signature((DOUBLE,), LONG)


def _round_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """round and bround: the type of a decimal gets the scale that it is rounded to; other numbers keep their type."""
    if len(operands) not in (1, 2):
        raise wrong_argument_count(name, len(operands), "1 to 2")
    data_type = numeric_argument(name, operands[0].data_type)
    digits = constant_integer(name, operands[1]) if len(operands) == 2 else 0
    other_types = tuple(operand.data_type for operand in operands[1:])
    if not isinstance(data_type, DecimalType):
        return Signature((data_type, *other_types), data_type)
    whole_digits = data_type.precision - data_type.scale + 1  # a carry may add a digit: 9.9 becomes 10
    scale = min(digits or 0, data_type.scale)  # digits: None for NULL, which makes every result null
    if scale < 0:  # rounded to tens, hundreds, ...: 50 becomes 100, which needs 1 - scale digits
        return Signature((data_type, *other_types), DecimalType(min(max(whole_digits, 1 - scale), MAX_PRECISION), 0))
    return Signature((data_type, *other_types), DecimalType(min(whole_digits + scale, MAX_PRECISION), scale))


# ---------------------------------------------------------------- + - * on all numbers


def _add(arguments: list[Any], result: DataType) -> Any:
    return _calculate("+", pc.add_checked if is_integral(result) else pc.add, arguments, result)


def _subtract(arguments: list[Any], result: DataType) -> Any:
    if len(arguments) == 1:  # a sign
        return _negate(arguments[0], result)
    return _calculate("-", pc.subtract_checked if is_integral(result) else pc.subtract, arguments, result)


def _multiply(arguments: list[Any], result: DataType) -> Any:
    return _calculate("*", pc.multiply_checked if is_integral(result) else pc.multiply, arguments, result)


def _calculate(name: str, kernel: Any, arguments: list[Any], result: DataType) -> Any:
    """The kernel's result. Raises ExpressionError (an overflow) if it does not fit. name: the operator, for the message."""
    if isinstance(result, DecimalType):
        return _calculate_decimals(name, kernel, arguments, result)
    try:
        return kernel(*arguments)
    except pa.ArrowInvalid as error:
        raise overflow(_OPERATION_NAMES[name], small=result in (BYTE, SHORT)) from error


def _calculate_decimals(name: str, kernel: Any, arguments: list[Any], result: DecimalType) -> Any:
    """Compute in 256 bits, and then round to the result type. Where Arrow's type is the same as Spark's, Arrow's kernel is
    enough.
    """
    # needed_digits: the number of digits that Arrow's kernel needs for every result.
    left, right = (DecimalType(a.type.precision, a.type.scale) for a in arguments)
    needed_digits = left.precision + right.precision + 1 if name == "*" else result.precision
    if needed_digits <= MAX_PRECISION and decimal_result(name, left, right) == result and result.precision < MAX_PRECISION:
        return kernel(*arguments)  # Arrow's result has the same type as Spark's, and room for every value
    if name == "*" and needed_digits > _ARROW_DIGITS:
        arguments = [_cast_to_37_digits(a) for a in arguments]
    wide_arguments = [a.cast(pa.decimal256(a.type.precision, a.type.scale)) for a in arguments]
    return fit_decimal(kernel(*wide_arguments), result)


def _cast_to_37_digits(values: Any) -> Any:
    """Decimals of 38 digits as decimals of 37, the maximum for factors in Arrow."""
    try:
        return values.cast(pa.decimal128(MAX_PRECISION - 1, values.type.scale))
    except pa.ArrowInvalid as error:
        raise not_supported("The product of two decimals of 38 digits each") from error


def _negate(values: Any, result: DataType) -> Any:
    try:
        return pc.negate_checked(values) if is_integral(result) else pc.negate(values)
    except pa.ArrowInvalid as error:
        raise overflow("Negation") from error


def _abs(arguments: list[Any], result: DataType) -> Any:
    try:
        return pc.abs_checked(arguments[0]) if is_integral(result) else pc.abs(arguments[0])
    except pa.ArrowInvalid as error:
        raise overflow("abs") from error


# ---------------------------------------------------------------- / % div


def _raise_for_zero(name: str, dividend: Any, divisor: Any) -> None:
    """Raises division_by_zero for a divisor 0, except for a null dividend, which gives null."""
    is_zero = pc.and_(pc.equal(divisor, zero_of(divisor.type)), pc.is_valid(dividend))
    if pc.any(is_zero).as_py():
        raise division_by_zero(_OPERATION_NAMES[name])


def _divide(arguments: list[Any], result: DataType) -> Any:
    """The quotient. Raises for a divisor 0."""
    dividend, divisor = arguments
    _raise_for_zero("/", dividend, divisor)
    if isinstance(result, DecimalType):
        return _divide_decimals(dividend, divisor, result)
    return pc.divide(dividend, divisor)


def _divide_decimals(dividend: Any, divisor: Any, result: DecimalType) -> Any:
    """Rounded half up at the result's scale: the quotient is truncated (towards zero) at least one digit later."""
    # Arrow truncates a quotient of scales (s, 0) at scale s + the divisor's digits + 1 or more. The divisor becomes an integer,
    # and the dividend gets the scale `wide_scale`, after a multiplication by the same power of ten.
    wide_scale = max(dividend.type.scale, result.scale - _digit_count(divisor) + 1)
    divisor_scale = divisor.type.scale
    numerator_digits = _digit_count(dividend) + wide_scale - dividend.type.scale + divisor_scale
    # Arrow's quotient has the digits of both and one more.
    if numerator_digits + _digit_count(divisor) + 1 > _ARROW_DIGITS:
        raise not_supported("The quotient of decimals of so many digits", "Cast them to decimals of fewer digits.")
    numerator = _rescale(dividend, numerator_digits, wide_scale + divisor_scale, wide_scale)
    denominator = _rescale(divisor, _digit_count(divisor), divisor_scale, 0)
    return fit_decimal(_divide_valid(numerator, denominator), result)


def _divide_valid(numerator: Any, denominator: Any) -> Any:
    """Quotients of rows where both values are valid; a zero divisor of a null must not raise."""
    if pc.any(pc.equal(denominator, zero_of(denominator.type))).as_py():
        denominator = pc.if_else(pc.is_valid(numerator), denominator, None)
    return pc.divide(numerator, denominator)


def _digit_count(values: Any) -> int:
    """The number of digits of the largest decimal, at least the digits after the point."""
    array = values if isinstance(values, pa.Array) else pa.array([values.as_py()], values.type)
    low_high = pc.min_max(array)
    largest = max((end.as_py().copy_abs() for end in low_high.values() if end.is_valid), default=0)
    digits: int = len(str(int(largest))) + array.type.scale
    return digits


def _rescale(values: Any, precision: int, scale: int, result_scale: int) -> Any:
    """The decimals cast to `scale`, and then the same digits with another scale: 1.5 at scale 2 is 1.50, its digits 150 at
    result_scale 0 are 150. Both operands of a quotient are multiplied by the same power of ten, so the quotient is the same."""
    array = values if isinstance(values, pa.Array) else pa.array([values.as_py()], values.type)
    scaled = wide_decimal(array).cast(pa.decimal256(_ARROW_DIGITS, scale)).cast(pa.decimal256(precision, scale))
    new_type = pa.decimal256(precision, result_scale)
    reinterpreted = pa.Array.from_buffers(new_type, len(scaled), scaled.buffers(), scaled.null_count, scaled.offset)
    return reinterpreted if isinstance(values, pa.Array) else reinterpreted[0]


def _remainder(arguments: list[Any], result: DataType) -> Any:
    """With the dividend's sign, as in Java."""
    dividend, divisor = arguments
    _raise_for_zero("%", dividend, divisor)
    if isinstance(result, DecimalType):
        return _remainder_of_decimals(dividend, divisor, result)
    dividends, divisors = _to_numpy(dividend), _to_numpy(divisor)
    if is_integral(result):
        divisors = np.where(np.isin(divisors, (0, -1)), 1, divisors)  # x % -1 is 0, and overflows in the machine
    with np.errstate(invalid="ignore"):
        remainders = np.fmod(dividends, divisors)
    return with_validity_of_all(pa.array(np.atleast_1d(remainders)).cast(to_arrow_type(result)), arguments)


def _remainder_of_decimals(dividend: Any, divisor: Any, result: DecimalType) -> Any:
    """dividend - trunc(dividend / divisor) * divisor, computed with integers: both operands in units of the smaller scale
    step.
    """
    scale = max(dividend.type.scale, divisor.type.scale)
    dividend_digits = _digit_count(dividend) + scale - dividend.type.scale
    divisor_digits = _digit_count(divisor) + scale - divisor.type.scale
    if dividend_digits + divisor_digits + 1 > _ARROW_DIGITS:
        raise not_supported("The remainder of decimals of so many digits", "Cast them to decimals of fewer digits.")
    dividends, divisors = _rescale(dividend, dividend_digits, scale, 0), _rescale(divisor, divisor_digits, scale, 0)
    quotient = pc.trunc(_divide_valid(dividends, divisors))
    quotient = quotient.cast(pa.decimal256(_ARROW_DIGITS, quotient.type.scale)).cast(pa.decimal256(dividend_digits, 0))
    remainders = pc.subtract(dividends.cast(pa.decimal256(_ARROW_DIGITS - 1, 0)), _multiply_wide(quotient, divisors))
    return fit_decimal(_rescale(remainders.cast(pa.decimal256(_ARROW_DIGITS, 0)), _ARROW_DIGITS, 0, scale), result)


def _multiply_wide(left: Any, right: Any) -> Any:
    """The product of decimals without a fraction, with as many digits as a difference of them may have in Arrow."""
    return pc.multiply(left, right).cast(pa.decimal256(_ARROW_DIGITS - 1, 0))


def _divide_integers(arguments: list[Any], result: DataType) -> Any:
    """The whole part of the quotient. Raises for a divisor 0, and if the lowest long is divided by -1."""
    dividend, divisor = arguments
    _raise_for_zero("div", dividend, divisor)
    dividends, divisors = _to_numpy(dividend), _to_numpy(divisor)
    lowest = INTEGRAL_RANGE[LONG][0]
    overflows = pa.array(np.atleast_1d((dividends == lowest) & (divisors == -1)))
    if with_validity_of_all(overflows, arguments).true_count:
        raise overflow(_OPERATION_NAMES["div"])
    safe_divisors = np.where(divisors == 0, 1, divisors)
    safe_divisors = np.where((dividends == lowest) & (safe_divisors == -1), 1, safe_divisors)
    # The difference is a multiple of the divisor, so // does not round down here.
    quotient = (dividends - np.fmod(dividends, safe_divisors)) // safe_divisors
    return with_validity_of_all(pa.array(np.atleast_1d(quotient)), arguments)


def _to_numpy(values: Any) -> Any:
    """An array of numpy, or a number for a Scalar, with 0 for null: the caller must make these results null."""
    zero = zero_of(values.type)
    if isinstance(values, pa.Array):
        return values.fill_null(zero).to_numpy()
    return values.type.to_pandas_dtype()(values.as_py() if values.is_valid else 0)


# ---------------------------------------------------------------- whole numbers and rounding


def _floor(arguments: list[Any], result: DataType) -> Any:
    return _to_whole("floor", arguments[0], result, np.floor, pc.floor)


def _ceil(arguments: list[Any], result: DataType) -> Any:
    return _to_whole("ceil", arguments[0], result, np.ceil, pc.ceil)


def _to_whole(name: str, values: Any, result: DataType, on_doubles: Any, on_decimals: Any) -> Any:
    """floor or ceil of the numbers, in the type of the result. on_doubles, on_decimals: numpy's and Arrow's function for it."""
    if isinstance(result, DecimalType):
        return fit_decimal(on_decimals(wide_decimal(values)), result)
    if pa.types.is_integer(values.type):
        return values
    rounded = on_doubles(values.fill_null(0.0).to_numpy())
    with np.errstate(invalid="ignore"):
        is_outside = (rounded >= 2.0**63) | (rounded < -(2.0**63))
        raise_first(pa.array(is_outside), values, lambda value: overflow(f"{name} of {value}"))
        numbers = np.where(np.isnan(rounded) | is_outside, 0.0, rounded).astype(np.int64)  # NaN becomes 0, as in Java
    return with_validity_of(pa.array(numbers), values)


def _round(arguments: list[Any], result: DataType) -> Any:
    return _round_numbers(arguments, result, "half_towards_infinity")


def _bround(arguments: list[Any], result: DataType) -> Any:
    return _round_numbers(arguments, result, "half_to_even")


def _round_numbers(arguments: list[Any], result: DataType, tie: str) -> Any:
    """round and bround: the numbers rounded to a number of digits after the point (the second argument, 0 without it).

    tie: how a half is rounded: half_towards_infinity (half up, that is away from zero) or half_to_even.
    """
    values = arguments[0]
    digits = arguments[1] if len(arguments) == 2 else 0
    if digits is None:
        return pa.nulls(len(values), to_arrow_type(result))
    if isinstance(result, DecimalType):
        return _round_decimals(values, digits, result, tie)
    if is_fractional(result):
        return _round_doubles(values.cast(pa.float64()), digits, tie).cast(to_arrow_type(result), safe=False)
    if digits >= 0:  # an integer has no digits after the point
        return values
    rounded = _round_decimals(values, digits, DecimalType(MAX_PRECISION, 0), tie)
    low, high = pa.array(INTEGRAL_RANGE[result], pa.int64()).cast(rounded.type)
    is_outside = pc.or_(pc.less(rounded, low), pc.greater(rounded, high))
    raise_first(is_outside, values, lambda value: overflow(f"round of {value}"))
    return rounded.cast(to_arrow_type(result))


def _round_decimals(values: Any, digits: int, result: DecimalType, tie: str) -> Any:
    """The decimals rounded to so many digits after the point, in the type of the result. tie: what becomes of a half."""
    wide = wide_decimal(values)
    if digits < -MAX_PRECISION:  # every value rounds to 0; nulls stay null
        wide = pc.multiply(wide.cast(pa.decimal256(40, wide.type.scale)), zero_of(pa.decimal256(1, 0)))
    elif digits < wide.type.scale:
        wide = pc.round(wide, digits, tie)
    return fit_decimal(wide, result)


_ROUND_DIGITS = 18  # a double below 1e18 with 57 digits after the point fits Arrow's 76


def _round_doubles(values: Any, digits: int, tie: str) -> Any:
    """Round the shortest text of each double, as java.math.BigDecimal does, so that 2.675 becomes 2.68."""
    if not -_ROUND_DIGITS <= digits <= _ROUND_DIGITS:
        raise not_supported(f"round to {digits} digits on a double")
    magnitude = pc.abs(values)
    # Infinities, NaN, and doubles from 1e18 on, which have no fraction, do not change.
    is_unchanged = pc.or_(pc.invert(pc.is_finite(values)), pc.greater_equal(magnitude, 1e18))
    if digits < 0 and pc.any(pc.and_(is_unchanged, pc.is_finite(values))).as_py():
        raise not_supported("round to tens of a double of 1e18 or more")
    is_tiny = pc.less(magnitude, 1e-40)  # rounds to 0 at every number of digits that is allowed
    text = pc.if_else(pc.or_(is_unchanged, is_tiny), 0.0, values).cast(pa.string())
    rounded = pc.round(text.cast(pa.decimal256(_ARROW_DIGITS, 57)), digits, tie)
    return pc.if_else(is_unchanged, values, rounded.cast(pa.string()).cast(pa.float64()))


def _is_nan(arguments: list[Any], result: DataType) -> Any:
    return pc.is_nan(arguments[0]).fill_null(False)


def _is_nan_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """isnan: a float is not cast, all other numbers and text become double."""
    check_count(name, operands, 1, 1)
    data_type = operands[0].data_type
    if data_type != FLOAT:
        data_type = DOUBLE
        if not (is_numeric(operands[0].data_type) or operands[0].data_type in (STRING, VOID)):
            raise mismatch(name, operands[0].data_type)
    return Signature((data_type,), BOOLEAN)


NUMBERS: dict[str, Function] = {
    "+": Function(_arithmetic_signature, _add, can_fail=True),
    "-": Function(_arithmetic_signature, _subtract, can_fail=True),
    "*": Function(_arithmetic_signature, _multiply, can_fail=True),
    "/": Function(_division_signature, _divide, can_fail=True),
    "%": Function(_arithmetic_signature, _remainder, can_fail=True),
    "div": Function(_integral_division_signature, _divide_integers, can_fail=True),
    "positive": Function(_one_number_signature, lambda arguments, result: arguments[0], increasing=True),
    "abs": Function(_one_number_signature, _abs, can_fail=True),
    "round": Function(_round_signature, _round, constants=frozenset({1}), can_fail=True, increasing=True),
    "bround": Function(_round_signature, _bround, constants=frozenset({1}), can_fail=True, increasing=True),
    "floor": Function(_integral_signature, _floor, can_fail=True, increasing=True),
    "ceil": Function(_integral_signature, _ceil, can_fail=True, increasing=True),
    "isnan": Function(_is_nan_signature, _is_nan),
    "sqrt": Function(fixed(DOUBLE, DOUBLE), lambda arguments, result: pc.sqrt(arguments[0]), can_fail=False),
}
