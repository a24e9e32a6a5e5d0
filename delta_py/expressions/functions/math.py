"""Functions of doubles, operators on bits, and arithmetic that returns null where it would fail.

Doubles are computed by the platform's mathematical library: results may differ from Java's in the last binary digit.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import INTEGRAL_RANGE, common_type, is_integral
from delta_py.expressions.evaluation_errors import mismatch, not_supported
from delta_py.expressions.functions.function_types import (
    Function,
    Operand,
    Signature,
    accepts,
    check_count,
    fixed,
    numeric_argument,
)
from delta_py.expressions.functions.numbers import NUMBERS
from delta_py.expressions.value_casts import with_validity_of, with_validity_of_all, zero_of
from delta_py.types.schema import DOUBLE, INTEGER, LONG, DataType, DecimalType, to_arrow_type

# ---------------------------------------------------------------- doubles


def _double_function(kernel: Callable[[Any], Any], *, null_from: float | None = None, increasing: bool = False) -> Function:
    """A function of one double. kernel: works on an array of numpy. null_from: this number and all below it give null, as in
    logarithms; None for no limit."""

    def run(arguments: list[Any], result: DataType) -> Any:
        values = arguments[0]
        numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)  # any number does: nulls are restored below
        with np.errstate(all="ignore"):
            results = with_validity_of(pa.array(np.asarray(kernel(numbers), np.float64), from_pandas=False), values)
        return results if null_from is None else pc.if_else(pc.less_equal(values, null_from), None, results)

    return Function(fixed(DOUBLE, DOUBLE), run, increasing=increasing)


def _two_doubles_function(kernel: Callable[[Any, Any], Any]) -> Function:
    """A function of two doubles. kernel: works on arrays of numpy."""

    def run(arguments: list[Any], result: DataType) -> Any:
        count = max(len(a) for a in arguments if isinstance(a, pa.Array))
        left, right = (pa.repeat(a, count) if isinstance(a, pa.Scalar) else a for a in arguments)
        with np.errstate(all="ignore"):
            results = kernel(*(a.fill_null(1.0).to_numpy(zero_copy_only=False) for a in (left, right)))
        return with_validity_of(with_validity_of(pa.array(results), left), right)

    return Function(fixed(DOUBLE, DOUBLE, DOUBLE), run)


def _power(base: Any, exponent: Any) -> Any:
    """base to the power of exponent. As in Java, 1 to the power of NaN, and 1 or -1 to an infinite power, are NaN."""
    is_nan = np.isnan(exponent) | ((np.abs(base) == 1.0) & np.isinf(exponent))
    return np.where(is_nan, np.nan, np.power(base, exponent))


def _log_signature(name: str, operands: Sequence[Operand]) -> Signature:
    return fixed(DOUBLE, DOUBLE, DOUBLE, optional=1)(name, operands)


def _log(arguments: list[Any], result: DataType) -> Any:
    """ln(x), or the logarithm of the second argument to the base of the first; null unless both are above 0."""
    # A Scalar becomes an Array of one value, because _LN needs an Array, and a Scalar again below. _LN.run is never None.
    logs = [_LN.run([a if isinstance(a, pa.Array) else pa.array([a.as_py()], a.type)], DOUBLE) for a in arguments if _LN.run]
    if len(logs) == 1:
        return logs[0]
    base, value = (log if isinstance(a, pa.Array) else log[0] for log, a in zip(logs, arguments, strict=True))
    return pc.divide(value, base)


def _round_to_even(values: Any) -> Any:
    return np.rint(values)


_LN = _double_function(np.log, null_from=0.0)


def _java_sign(values: Any) -> Any:
    """-1.0 or 1.0; NaN, 0.0 and -0.0 do not change."""
    return np.where(np.isnan(values) | (values == 0), values, np.sign(values))


# ---------------------------------------------------------------- bits


def _bitwise_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 2, 2)
    common = common_type(operands[0].data_type, operands[1].data_type)
    if common is None or not is_integral(common):
        raise mismatch(name, *(operand.data_type for operand in operands))
    return Signature((common, common), common)


def _bitwise_not_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, 1)
    if not is_integral(operands[0].data_type):
        raise mismatch(name, operands[0].data_type)
    return Signature((operands[0].data_type,), operands[0].data_type)


def _shift_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """(value, number of bits). A byte or short is cast to int."""
    check_count(name, operands, 2, 2)
    value_type, count_type = operands[0].data_type, operands[1].data_type
    if not is_integral(value_type) or not accepts(count_type, INTEGER):
        raise mismatch(name, value_type, count_type)
    return Signature((LONG if value_type == LONG else INTEGER, INTEGER), LONG if value_type == LONG else INTEGER)


def _shift(name: str) -> Callable[[list[Any], DataType], Any]:
    """Shifts to the left or right. Only the lowest 5 bits of the shift count (6 for long) matter, as in Java.

    name: shiftleft, shiftright or shiftrightunsigned.
    """

    def run(arguments: list[Any], result: DataType) -> Any:
        bits = 64 if result == LONG else 32
        values, shift_counts = (_numbers(a, arguments) for a in arguments)
        shift_counts = (shift_counts & (bits - 1)).astype(values.dtype)
        if name == "shiftrightunsigned":
            unsigned = values.view(np.uint64 if bits == 64 else np.uint32)
            results = np.right_shift(unsigned, shift_counts.astype(unsigned.dtype)).view(values.dtype)
        else:
            results = np.left_shift(values, shift_counts) if name == "shiftleft" else np.right_shift(values, shift_counts)
        return with_validity_of_all(pa.array(results), arguments)

    return run


def _numbers(argument: Any, arguments: list[Any]) -> Any:
    """The argument as numpy values for each row, 0 for null. arguments: all arguments of the call, one of them an Array."""
    count = next(len(a) for a in arguments if isinstance(a, pa.Array))
    values = pa.repeat(argument, count) if isinstance(argument, pa.Scalar) else argument
    return values.fill_null(zero_of(values.type)).to_numpy(zero_copy_only=False)


def _bit_count(arguments: list[Any], result: DataType) -> Any:
    """How many bits of each number are 1, in its form as a long: -1 has 64 such bits."""
    values = arguments[0]
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    bit_counts = np.unpackbits(numbers.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1, dtype=np.int32)
    return with_validity_of(pa.array(bit_counts), values)


def _bit_count_signature(name: str, operands: Sequence[Operand]) -> Signature:
    return Signature(_bitwise_not_signature(name, operands).arguments, INTEGER)


# ---------------------------------------------------------------- pmod, and functions that return null instead of an error


def _pmod(arguments: list[Any], result: DataType) -> Any:
    """The remainder, which is not negative for a positive divisor."""
    signed_remainders = _operator_run("%")(arguments, result)
    if isinstance(result, DecimalType):
        raise not_supported("pmod on decimals")
    divisor = _numbers(arguments[1], arguments)
    numbers = signed_remainders.fill_null(zero_of(signed_remainders.type)).to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        # The sum wraps in the machine's width, as it does in Java before Java's remainder.
        nonzero_divisor = np.where(divisor == 0, 1, divisor)
        remainders = np.where(numbers < 0, np.fmod(numbers + nonzero_divisor, nonzero_divisor), numbers)
    return with_validity_of(pa.array(remainders).cast(signed_remainders.type, safe=False), signed_remainders)


def _pmod_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """The signature of the operator %, without decimals."""
    signature = NUMBERS["%"].signature("%", operands)
    if isinstance(signature.result, DecimalType):
        raise not_supported("pmod on decimals")
    return signature


def _operator_run(name: str) -> Callable[[list[Any], DataType], Any]:
    """The function that computes an operator such as `+`."""
    run = NUMBERS[name].run
    assert run is not None
    return run


def _try_divide(name: str) -> Callable[[list[Any], DataType], Any]:
    """The operator `name` (/ or %), with null for a divisor 0, which would raise."""

    def run(arguments: list[Any], result: DataType) -> Any:
        dividend, divisor = arguments
        if isinstance(divisor, pa.Scalar):
            if divisor.is_valid and divisor == zero_of(divisor.type).cast(divisor.type):
                return pa.nulls(len(dividend), to_arrow_type(result))
        else:
            divisor = pc.if_else(pc.equal(divisor, zero_of(divisor.type)), pa.scalar(None, divisor.type), divisor)
        return _operator_run(name)([dividend, divisor], result)

    return run


def _try_arithmetic(name: str) -> Callable[[list[Any], DataType], Any]:
    """+, - and *, with null for results that do not fit. Integers are computed in a wider type."""

    def run(arguments: list[Any], result: DataType) -> Any:
        try:
            return _operator_run(name)(arguments, result)
        except ExpressionError as error:
            if error.error_class not in ("ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW"):
                raise
        # Some result does not fit. 19 digits hold every long, so the results in 256 bits are exact.
        wide_arguments = [a.cast(pa.decimal256(19, 0)) for a in (x.cast(pa.int64()) for x in arguments)]
        exact_results = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name](*wide_arguments)
        low, high = (pa.scalar(end, pa.int64()).cast(exact_results.type) for end in INTEGRAL_RANGE[result])
        fits = pc.and_(pc.greater_equal(exact_results, low), pc.less_equal(exact_results, high))
        return pc.if_else(fits, exact_results, None).cast(to_arrow_type(result))

    return run


def _try_signature(name: str) -> Callable[[str, Sequence[Operand]], Signature]:
    """The signature of the operator `name`, without decimals."""

    def signature(function_name: str, operands: Sequence[Operand]) -> Signature:
        check_count(function_name, operands, 2, 2)
        resolved = NUMBERS[name].signature(name, operands)
        if isinstance(resolved.result, DecimalType):
            raise not_supported(f"{function_name} on decimals")
        return resolved

    return signature


def _negative_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, 1)
    data_type = numeric_argument(name, operands[0].data_type)
    return Signature((data_type,), data_type)


def _factorial(arguments: list[Any], result: DataType) -> Any:
    """Null outside the range 0 to 20: 21! does not fit a long."""
    values = arguments[0].cast(pa.int64())
    table = [1]
    for n in range(1, 21):
        table.append(table[-1] * n)
    is_in_range = pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, 20))
    return pa.array(table, pa.int64()).take(pc.if_else(is_in_range, values, None))


MATH: dict[str, Function] = {
    "cbrt": _double_function(np.cbrt),
    "exp": _double_function(np.exp),
    "expm1": _double_function(np.expm1),
    "ln": _LN,
    "log": Function(_log_signature, _log),
    "log2": _double_function(np.log2, null_from=0.0),
    "log10": _double_function(np.log10, null_from=0.0),
    "log1p": _double_function(np.log1p, null_from=-1.0),
    "pow": _two_doubles_function(_power),
    "sign": _double_function(_java_sign),
    "rint": _double_function(_round_to_even),
    "degrees": _double_function(np.degrees),
    "radians": _double_function(np.radians),
    "sin": _double_function(np.sin),
    "cos": _double_function(np.cos),
    "tan": _double_function(np.tan),
    "asin": _double_function(np.arcsin),
    "acos": _double_function(np.arccos),
    "atan": _double_function(np.arctan),
    # Adding 0.0 makes 0.0 of -0.0, as Spark does.
    "atan2": _two_doubles_function(lambda y, x: np.arctan2(y + 0.0, x + 0.0)),
    "hypot": _two_doubles_function(np.hypot),
    "&": Function(_bitwise_signature, lambda arguments, result: pc.bit_wise_and(*arguments)),
    "|": Function(_bitwise_signature, lambda arguments, result: pc.bit_wise_or(*arguments)),
    "^": Function(_bitwise_signature, lambda arguments, result: pc.bit_wise_xor(*arguments)),
    "~": Function(_bitwise_not_signature, lambda arguments, result: pc.bit_wise_not(arguments[0])),
    "shiftleft": Function(_shift_signature, _shift("shiftleft")),
    "shiftright": Function(_shift_signature, _shift("shiftright")),
    "shiftrightunsigned": Function(_shift_signature, _shift("shiftrightunsigned")),
    "bit_count": Function(_bit_count_signature, _bit_count),
    "pmod": Function(_pmod_signature, _pmod, can_fail=True),
    "negative": Function(_negative_signature, _operator_run("-"), can_fail=True),
    "factorial": Function(fixed(LONG, INTEGER), _factorial),
    "try_add": Function(_try_signature("+"), _try_arithmetic("+")),
    "try_subtract": Function(_try_signature("-"), _try_arithmetic("-")),
    "try_multiply": Function(_try_signature("*"), _try_arithmetic("*")),
    "try_divide": Function(lambda name, operands: _division_signature(name, operands), _try_divide("/")),
    "try_mod": Function(_try_signature("%"), _try_divide("%")),
}


def _division_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 2, 2)
    signature = NUMBERS["/"].signature("/", operands)
    if isinstance(signature.result, DecimalType):
        raise not_supported(f"{name} on decimals")
    return signature
