"""The type rules of Spark's analyzer under ANSI: the common type of operands, the types of decimal results.

Types in, types out; None if Spark refuses the combination.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from typing import Any

from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    GeospatialType,
    MapType,
    StructType,
)

MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6  # Spark does not reduce the scale of a result below this

# INTEGRAL and DATETIME are in the order of Spark's common type: of two types it is the later one.
INTEGRAL: tuple[DataType, ...] = (BYTE, SHORT, INTEGER, LONG)
FRACTIONAL: tuple[DataType, ...] = (FLOAT, DOUBLE)
DATETIME: tuple[DataType, ...] = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
ATOMIC: tuple[DataType, ...] = (*INTEGRAL, *FRACTIONAL, *DATETIME, STRING, BINARY, BOOLEAN)

INTEGRAL_RANGE: dict[DataType, tuple[int, int]] = {
    BYTE: (-(2**7), 2**7 - 1),
    SHORT: (-(2**15), 2**15 - 1),
    INTEGER: (-(2**31), 2**31 - 1),
    LONG: (-(2**63), 2**63 - 1),
}
_INTEGRAL_AS_DECIMAL: dict[DataType, DecimalType] = {
    BYTE: DecimalType(3, 0),
    SHORT: DecimalType(5, 0),
    INTEGER: DecimalType(10, 0),
    LONG: DecimalType(20, 0),
}


def is_integral(data_type: DataType) -> bool:
    return data_type in INTEGRAL


def is_fractional(data_type: DataType) -> bool:
    """float or double."""
    return data_type in FRACTIONAL


def is_decimal(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType)


def is_numeric(data_type: DataType) -> bool:
    return is_integral(data_type) or is_fractional(data_type) or is_decimal(data_type)


def is_atomic(data_type: DataType) -> bool:
    """Whether the type has an order that `=` and `<` follow here (no struct, array, map, variant, interval)."""
    return is_decimal(data_type) or data_type in ATOMIC


def decimal_of(data_type: DataType) -> DecimalType | None:
    """The decimal that holds every value of an integral type; a decimal is returned unchanged."""
    return data_type if isinstance(data_type, DecimalType) else _INTEGRAL_AS_DECIMAL.get(data_type)


def decimal_of_value(value: int) -> DecimalType:
    """The smallest decimal that holds an integer, as Spark types integer literals next to decimals."""
    return DecimalType(max(1, len(str(abs(value)))), 0)


def decimal_of_number(number: decimal.Decimal) -> DecimalType | None:
    """The decimal type with exactly the digits of a literal; None if it has more than 38 digits."""
    exponent: Any = number.as_tuple().exponent
    scale = max(0, -exponent)
    precision = max(len(number.as_tuple().digits) + max(0, exponent), scale, 1)
    return DecimalType(precision, scale) if precision <= MAX_PRECISION else None


# ---------------------------------------------------------------- common types


def common_type(first: DataType, second: DataType) -> DataType | None:
    """The type to which comparisons, IN, COALESCE, IF, CASE, GREATEST cast both operands; None if Spark refuses the two."""
    if first == second or second == VOID:
        return first
    if first == VOID:
        return second
    if is_numeric(first) and is_numeric(second):
        return _common_number(first, second)
    if first in DATETIME and second in DATETIME:
        return max(first, second, key=DATETIME.index)
    if STRING in (first, second):
        return _common_with_text(second if first == STRING else first)
    return None


def common_type_of_all(types: Iterable[DataType]) -> DataType | None:
    """The type to which Spark casts all operands; None if there is none. VOID without types, or if all are VOID."""
    common: DataType = VOID  # the type of null: the common type of VOID and another type is the other type
    type_list = list(types)
    # There may be very many items of few types, so each type is compared once. Structs have no hash, and arrays and maps may
    # contain structs: such lists keep their duplicates.
    are_hashable = not any(isinstance(item, StructType | ArrayType | MapType) for item in type_list)
    for item in dict.fromkeys(type_list) if are_hashable else type_list:
        wider = common_type(common, item)
        if wider is None:
            return None
        common = wider
    return common


def _common_number(first: DataType, second: DataType) -> DataType:
    """The common type of two numbers of different types, as in Spark."""
    if is_fractional(first) or is_fractional(second):
        return DOUBLE  # two floats have equal types and are handled before
    if is_integral(first) and is_integral(second):
        return max(first, second, key=INTEGRAL.index)
    left, right = decimal_of(first), decimal_of(second)
    assert left is not None and right is not None
    return wider_decimal(left, right)


def _common_with_text(other_type: DataType) -> DataType | None:
    """The common type of text and another type: long or double for numbers, otherwise the other type. None for nested types."""
    if is_integral(other_type):
        return LONG
    if is_numeric(other_type):
        return DOUBLE
    return other_type if is_atomic(other_type) else None


def wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    """The decimal type that holds the values of both types. If it would need more than 38 digits, all digits before the point
    remain and the scale is reduced."""
    scale = max(left.scale, right.scale)
    integral_digits = max(left.precision - left.scale, right.precision - right.scale)
    if integral_digits + scale <= MAX_PRECISION:
        return DecimalType(integral_digits + scale, scale)
    return DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - integral_digits))


# ---------------------------------------------------------------- casts without the word CAST


def is_up_cast(source: DataType, target: DataType) -> bool:
    """Whether Spark implicitly converts each value of one type to another without loss (its "up-cast"). Fields of structs are
    matched by position."""
    match source, target:
        case StructType(), StructType():
            pairs = zip(source.fields, target.fields, strict=False)
            return len(source.fields) == len(target.fields) and all(is_up_cast(s.data_type, t.data_type) for s, t in pairs)
        case ArrayType(), ArrayType():
            return is_up_cast(source.element_type, target.element_type)
        case MapType(), MapType():
            return is_up_cast(source.key_type, target.key_type) and is_up_cast(source.value_type, target.value_type)
    if source in (target, VOID) or (target == STRING and is_atomic(source)):
        return True
    if is_decimal(target) and (source_decimal := decimal_of(source)) is not None:
        return wider_decimal(source_decimal, target) == target  # type: ignore[arg-type]
    if is_decimal(source):
        return False
    if is_numeric(source) and is_numeric(target):
        order = (*INTEGRAL, *FRACTIONAL)
        return order.index(source) <= order.index(target)
    return source in DATETIME and target in DATETIME and target != DATE


def may_assign(source: DataType, target: DataType) -> bool:
    """Whether Spark's store assignment (ANSI) accepts values of one simple type for a column of another. A value that the column
    cannot hold is an error of its row."""
    if source in (target, VOID):
        return True
    if isinstance(target, GeospatialType):
        return source == BINARY
    if target == STRING:
        return is_atomic(source)
    return (is_numeric(source) and is_numeric(target)) or (source in DATETIME and target in DATETIME)


# ---------------------------------------------------------------- decimal results


def decimal_result(op: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """The type of `left op right` for op of + - * / %, by the formulas of Spark. p is a precision, s a scale."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match op:
        case "+" | "-":
            scale = max(s1, s2)
            return _limit_precision(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return _limit_precision(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return _limit_precision(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return _limit_precision(min(p1 - s1, p2 - s2) + scale, scale)
        case _:
            raise AssertionError(op)


def _limit_precision(precision: int, scale: int) -> DecimalType:
    """Spark's `allowPrecisionLoss`: above 38 digits the scale is reduced, but not below 6. A scale up to 6 does not change."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    reduced_scale = max(MAX_PRECISION - (precision - scale), min(scale, _MIN_ADJUSTED_SCALE))
    return DecimalType(MAX_PRECISION, reduced_scale)
