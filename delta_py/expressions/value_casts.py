"""CAST on Arrow arrays, as Spark does it under ANSI rules.

In: an array of `to_arrow_type(source)`. Out: an array of `to_arrow_type(target)`, null where the input is null. A value
that does not fit raises an ExpressionError that names it. Timestamps are read and written in UTC. text_casts.py reads and writes
text.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions import text_casts
from delta_py.expressions.coercion import INTEGRAL, INTEGRAL_RANGE, decimal_of, is_fractional, is_integral
from delta_py.expressions.evaluation_errors import BadRows, does_not_fit, mismatch, not_supported, overflow
from delta_py.types.nested_arrays import struct_children, with_elements, with_entries
from delta_py.types.schema import (
    DOUBLE,
    LONG,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    to_arrow_type,
    type_name,
)
from delta_py.types.zones import INSTANT, WALL_CLOCK

# (values, source type, target type) -> values of the target type
_Cast = Callable[[Any, DataType, DataType], Any]
_Pairs = tuple[tuple[DataType, DataType], ...]

_EXACT_DOUBLE_DIGITS = 15  # each integer of at most so many digits is exactly a double
_MICROS = 1_000_000
# From 2^53 on every double is a whole number. A double below this limit has at most 18 digits before the point, which leaves 57
# of the 76 digits of an Arrow decimal for its fraction.
_FIRST_WHOLE_DOUBLE = 1e18
_FRACTION_DIGITS = 57
_LEAST_NONZERO = 1e-40  # rounds to zero at every scale that a decimal can have


def type_family(data_type: DataType) -> str:
    """The family that decides how a cast works; '' for nested types, which are cast part by part, and for types without casts."""
    if is_integral(data_type):
        return "integral"
    if is_fractional(data_type):
        return "fractional"
    if isinstance(data_type, DecimalType):
        return "decimal"
    name = type_name(data_type)
    return name if name in ("string", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "void") else ""


def check_cast(source: DataType, target: DataType) -> None:
    """Raises ExpressionError if SQL does not have the cast (DATATYPE_MISMATCH) or it cannot be done exactly as in Spark."""
    if source == target:
        return
    # Null can be cast to every type that has casts.
    if type_family(source) == "void" and (type_family(target) or isinstance(target, StructType | ArrayType | MapType)):
        return
    parts = nested_pairs(source, target)
    if parts is not None:
        for part in parts:
            check_cast(*part)
        return
    pair = (type_family(source), type_family(target))
    if pair in _CASTS:
        return
    if pair in _KNOWN_TO_SPARK:
        raise not_supported(f"cast({type_name(source)} as {type_name(target)})")
    raise mismatch("CAST", source, target)


def nested_pairs(source: DataType, target: DataType) -> _Pairs | None:
    """The (source, target) pairs of the types inside: of fields by position, of elements, or of keys and values. None for types
    that are not nested in the same way."""
    match source, target:
        case StructType(), StructType() if len(source.fields) == len(target.fields):
            return tuple((s.data_type, t.data_type) for s, t in zip(source.fields, target.fields, strict=True))
        case ArrayType(), ArrayType():
            return ((source.element_type, target.element_type),)
        case MapType(), MapType():
            return ((source.key_type, target.key_type), (source.value_type, target.value_type))
    return None


def needs_zone(source: DataType, target: DataType) -> bool:
    """Whether the cast converts between instants and times of the session's time zone."""
    parts = nested_pairs(source, target)
    if parts is None:
        return source != target and TIMESTAMP in (source, target) and "void" not in (type_family(source), type_family(target))
    return any(needs_zone(*part) for part in parts)


def cast_can_fail(source: DataType, target: DataType) -> bool:
    """Whether some value of the source type raises; a cast that cannot fail may be evaluated for rows that do not need it."""
    parts = nested_pairs(source, target)
    if parts is not None:
        return any(cast_can_fail(*part) for part in parts)
    match type_family(source), type_family(target):
        case ("integral", "integral"):
            return INTEGRAL.index(source) > INTEGRAL.index(target)
        case ("integral" | "decimal", "decimal"):
            return not holds_all(source, target)
        case (
            ("integral" | "fractional" | "decimal" | "boolean", "fractional" | "boolean")
            | ("boolean", "integral")
            | (_, "binary")
            | ("void", _)
            | ("integral" | "boolean" | "decimal", "string")
            | ("timestamp" | "timestamp_ntz", "date" | "timestamp" | "timestamp_ntz")
            | ("integral", "timestamp")
        ):
            return False
        case ("timestamp", "integral"):
            # The seconds of each timestamp fit a long.
            return INTEGRAL.index(target) < len(INTEGRAL) - 1
        case _:
            return source != target


def holds_all(source: DataType, target: DataType) -> bool:
    """Whether a decimal target holds every value of an integral or decimal source without rounding."""
    source_decimal = decimal_of(source)
    if source_decimal is None or not isinstance(target, DecimalType):
        return False
    return (
        source_decimal.scale <= target.scale
        and source_decimal.precision - source_decimal.scale <= target.precision - target.scale
    )


def cast_values(values: Any, source: DataType, target: DataType) -> Any:
    """CAST(values AS target) for an Array of the source type."""
    if source == target:
        return values
    check_cast(source, target)
    if type_family(source) == "void":
        return pa.nulls(len(values), to_arrow_type(target))
    match source, target:
        case StructType(), StructType():
            return _cast_struct(values, source, target)
        case ArrayType(), ArrayType():
            return _cast_array(values, source, target)
        case MapType(), MapType():
            return _cast_map(values, source, target)
    return _CASTS[type_family(source), type_family(target)](values, source, target)


def try_cast_values(values: Any, source: DataType, target: DataType) -> Any:
    """TRY_CAST(values AS target): null if the cast would raise."""
    return without_failures(lambda array: cast_values(array, source, target), values)


def without_failures(run: Callable[[Any], Any], values: Any) -> Any:
    """run(values), with null for each value for which `run` would raise. `run` works value by value, and its errors have BadRows
    as their cause."""
    while True:
        try:
            return run(values)
        except ExpressionError as error:
            if not isinstance(error.__cause__, BadRows):
                raise
            # These rows fail in one way. The next call may name rows that fail in another way.
            values = pc.if_else(error.__cause__.rows, pa.scalar(None, values.type), values)


# ---------------------------------------------------------------- nested


def _cast_struct(values: Any, source: StructType, target: StructType) -> Any:
    """Fields by position. Values below a null struct become null, so that they cannot fail."""
    pairs = zip(struct_children(values), source.fields, target.fields, strict=True)
    children = [cast_values(child, s.data_type, t.data_type) for child, s, t in pairs]
    return pa.StructArray.from_arrays(children, fields=list(to_arrow_type(target)), mask=values.is_null())


def _cast_array(values: Any, source: ArrayType, target: ArrayType) -> Any:
    to_element = partial(cast_values, source=source.element_type, target=target.element_type)
    return with_elements(values, to_element, to_arrow_type(target))


def _cast_map(values: Any, source: MapType, target: MapType) -> Any:
    to_key = partial(cast_values, source=source.key_type, target=target.key_type)
    to_value = partial(cast_values, source=source.value_type, target=target.value_type)
    return with_entries(values, to_key, to_value, to_arrow_type(target))


# ---------------------------------------------------------------- numbers


def _integral_to_integral(values: Any, source: DataType, target: DataType) -> Any:
    if INTEGRAL.index(source) > INTEGRAL.index(target):
        low, high = INTEGRAL_RANGE[target]
        is_outside = pc.or_(pc.less(values, low), pc.greater(values, high))
        raise_first(is_outside, values, lambda value: does_not_fit(value, target))
    return values.cast(to_arrow_type(target))


def _number_to_fractional(values: Any, source: DataType, target: DataType) -> Any:
    return values.cast(to_arrow_type(target), safe=False)


def _fractional_to_integral(values: Any, source: DataType, target: DataType) -> Any:
    """Rounds towards zero. The bounds are compared as doubles, so that 2^63 itself becomes the largest long, as in Spark."""
    low, high = INTEGRAL_RANGE[target]
    numbers = values.cast(pa.float64()).fill_null(0).to_numpy()
    with np.errstate(invalid="ignore"):
        # The test of Spark: 127.9 becomes the byte 127.
        is_inside = (np.floor(numbers) <= float(high)) & (np.ceil(numbers) >= float(low))
    raise_first(pa.array(~is_inside), values, lambda value: does_not_fit(value, target))
    # float(high) is 2^63 for a long, which numpy cannot convert to 64 bits.
    is_too_large = numbers >= float(high)
    integers = np.where(is_too_large, 0.0, np.trunc(numbers)).astype(np.int64)
    integers[is_too_large] = high
    return with_validity_of(pa.array(integers).cast(to_arrow_type(target)), values)


def _number_to_boolean(values: Any, source: DataType, target: DataType) -> Any:
    return pc.not_equal(values, zero_of(values.type))


def _boolean_to_number(values: Any, source: DataType, target: DataType) -> Any:
    integers = values.cast(pa.int64())
    return fit_decimal(integers, target) if isinstance(target, DecimalType) else integers.cast(to_arrow_type(target))


# ---------------------------------------------------------------- decimals


def wide_decimal(values: Any) -> Any:
    """Integers or decimals with the maximum number of digits in Arrow, scale unchanged."""
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64()).cast(pa.decimal256(76, 0))
    return values.cast(pa.decimal256(76, values.type.scale))


def fit_decimal(values: Any, target: DecimalType) -> Any:
    """Integers or decimals (also decimal256) rounded half up to the target's scale; raises for a value that does not fit."""
    wide = wide_decimal(values)
    try:
        if wide.type.scale > target.scale:
            wide = pc.round(wide, target.scale, "half_towards_infinity")
        return wide.cast(to_arrow_type(target))
    except pa.ArrowInvalid:
        _raise_decimal_overflow(wide, target)
        raise


def _raise_decimal_overflow(wide: Any, target: DecimalType) -> None:
    """Raises the overflow. The message names the first value that is too large, or the largest value if Arrow has no decimal
    type in which the limit can be compared with the values."""
    whole_digits = target.precision - target.scale
    if whole_digits + wide.type.scale < 76:
        limit = pa.scalar(decimal.Decimal(10) ** whole_digits, pa.decimal256(whole_digits + 1, 0)).cast(wide.type)
        is_outside = pc.greater_equal(pc.abs(wide), limit)
        raise_first(is_outside, wide, lambda value: _decimal_overflow(value, target))
    raise _decimal_overflow(pc.max(pc.abs(wide)).as_py(), target)


def _decimal_overflow(value: object, target: DecimalType) -> ExpressionError:
    """The error of does_not_fit, with the name that Spark gives it for decimals."""
    error = does_not_fit(value, target)
    return ExpressionError(error.message, error_class="NUMERIC_VALUE_OUT_OF_RANGE", sql_state="22003", **error.message_parameters)


def _number_to_decimal(values: Any, source: DataType, target: DataType) -> Any:
    assert isinstance(target, DecimalType)
    source_decimal = decimal_of(source)
    if source_decimal is not None and holds_all(source, target):  # nothing is rounded, and no value can fail
        return values.cast(to_arrow_type(target))
    return fit_decimal(values, target)


def _decimal_to_integral(values: Any, source: DataType, target: DataType) -> Any:
    """Drops the digits after the point. Raises for a number that is then out of the range of the target."""
    low, high = INTEGRAL_RANGE[target]
    integers = pc.trunc(wide_decimal(values)).cast(pa.decimal256(76, 0))
    bounds = pa.array([low, high], pa.int64()).cast(pa.decimal256(76, 0))
    is_outside = pc.or_(pc.less(integers, bounds[0]), pc.greater(integers, bounds[1]))
    raise_first(is_outside, values, lambda value: does_not_fit(value, target))
    return integers.cast(to_arrow_type(target))


def _decimal_to_fractional(values: Any, source: DataType, target: DataType) -> Any:
    """The nearest double: one division of exact doubles if the digits allow it, the decimal's text otherwise."""
    assert isinstance(source, DecimalType)
    if target == DOUBLE and source.precision <= _EXACT_DOUBLE_DIGITS:
        quotient = unscaled_int64(values).astype(np.float64) / 10.0**source.scale
        return with_validity_of(pa.array(quotient), values)
    return values.cast(pa.string()).cast(to_arrow_type(target))


def _fractional_to_decimal(values: Any, source: DataType, target: DataType) -> Any:
    """Cast the shortest text of each double, as java.math does; infinities and NaN become null, as in Spark."""
    assert isinstance(target, DecimalType)
    doubles = values.cast(pa.float64())
    doubles = pc.if_else(pc.is_finite(doubles), doubles, None)
    magnitude = pc.abs(doubles)
    # No decimal type has more than 38 digits.
    raise_first(pc.greater_equal(magnitude, 1e38), values, lambda value: _decimal_overflow(value, target))
    # Large doubles and fractions need decimals of different scales, so each group is cast with zeros in place of the other.
    is_large = pc.greater_equal(magnitude, _FIRST_WHOLE_DOUBLE)
    small_doubles = pc.if_else(pc.or_(is_large, pc.less(magnitude, _LEAST_NONZERO)), 0.0, doubles)
    fractions = fit_decimal(small_doubles.cast(pa.string()).cast(pa.decimal256(76, _FRACTION_DIGITS)), target)
    if not pc.any(is_large).as_py():
        return fractions
    integers = pc.if_else(is_large, doubles, 0.0).cast(pa.string()).cast(pa.decimal256(76, 0))
    return pc.if_else(is_large, fit_decimal(integers, target), fractions)


def _decimal_to_string(values: Any, source: DataType, target: DataType) -> Any:
    assert isinstance(source, DecimalType)
    return text_casts.decimal_text(values, source.scale)


def unscaled_int64(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The digits of decimals of at most 18 digits as integers, without the point: the lower half of their bytes. The result is
    arbitrary where a decimal is null."""
    halves = np.frombuffer(values.buffers()[1], np.int64)
    return halves[2 * values.offset : 2 * (values.offset + len(values)) : 2]


# ---------------------------------------------------------------- dates and times


def _timestamp_to_date(values: Any, source: DataType, target: DataType) -> Any:
    return values.cast(pa.date32(), safe=False)


def _time_to_time(values: Any, source: DataType, target: DataType) -> Any:
    """Between dates, wall clocks and instants, all in UTC. A date becomes its midnight; the microseconds of a timestamp do not
    change."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64()).cast(to_arrow_type(target))
    try:
        return values.cast(WALL_CLOCK).cast(pa.int64()).cast(to_arrow_type(target))
    except pa.ArrowInvalid as error:  # 64 bits of microseconds reach fewer years than 32 bits of days
        raise overflow(f"cast(date as {type_name(target)})") from error


def _seconds_to_instant(values: Any, source: DataType, target: DataType) -> Any:
    """The instants; the first or the last one for seconds out of range, as in Spark."""
    seconds = values.cast(pa.int64()).fill_null(0).to_numpy()
    lowest, highest = INTEGRAL_RANGE[LONG]  # an instant is a long of microseconds
    max_seconds = highest // _MICROS
    micros = np.clip(seconds, -max_seconds, max_seconds) * _MICROS
    micros[seconds > max_seconds] = highest
    micros[seconds < -max_seconds] = lowest
    return with_validity_of(pa.array(micros).cast(INSTANT), values)


def _instant_to_seconds(values: Any, source: DataType, target: DataType) -> Any:
    seconds = values.cast(pa.int64()).fill_null(0).to_numpy() // _MICROS
    return _integral_to_integral(with_validity_of(pa.array(seconds), values), LONG, target)


# ---------------------------------------------------------------- text and bytes


def _from_string(values: Any, source: DataType, target: DataType) -> Any:
    match type_family(target):
        case "integral":
            return text_casts.to_integral(values, target)
        case "fractional":
            return text_casts.to_fractional(values, target)
        case "boolean":
            return text_casts.to_boolean(values)
        case "date":
            return text_casts.to_date(values)
        case "timestamp":
            return text_casts.to_timestamp(values, "UTC")
        case "timestamp_ntz":
            return text_casts.to_timestamp_ntz(values)
        case _:
            assert isinstance(target, DecimalType)
            return fit_decimal(text_casts.to_wide_decimal(values, target), target)


def _arrow_text(values: Any, source: DataType, target: DataType) -> Any:
    return values.cast(pa.string())


def _bytes_to_string(values: Any, source: DataType, target: DataType) -> Any:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise not_supported("cast(binary as string)", "The bytes are not UTF-8.") from error


def _datetime_to_string(values: Any, source: DataType, target: DataType) -> Any:
    return text_casts.date_text(values) if pa.types.is_date(values.type) else text_casts.timestamp_text(values)


_CASTS: dict[tuple[str, str], _Cast] = {
    ("integral", "integral"): _integral_to_integral,
    ("integral", "fractional"): _number_to_fractional,
    ("integral", "decimal"): _number_to_decimal,
    ("integral", "boolean"): _number_to_boolean,
    ("integral", "string"): _arrow_text,
    ("integral", "timestamp"): _seconds_to_instant,
    ("fractional", "fractional"): _number_to_fractional,
    ("fractional", "integral"): _fractional_to_integral,
    ("fractional", "decimal"): _fractional_to_decimal,
    ("fractional", "boolean"): _number_to_boolean,
    ("decimal", "decimal"): _number_to_decimal,
    ("decimal", "integral"): _decimal_to_integral,
    ("decimal", "fractional"): _decimal_to_fractional,
    ("decimal", "boolean"): _number_to_boolean,
    ("decimal", "string"): _decimal_to_string,
    ("boolean", "integral"): _boolean_to_number,
    ("boolean", "fractional"): _boolean_to_number,
    ("boolean", "decimal"): _boolean_to_number,
    ("boolean", "string"): _arrow_text,
    ("string", "integral"): _from_string,
    ("string", "fractional"): _from_string,
    ("string", "decimal"): _from_string,
    ("string", "boolean"): _from_string,
    ("string", "date"): _from_string,
    ("string", "timestamp"): _from_string,
    ("string", "timestamp_ntz"): _from_string,
    ("string", "binary"): lambda values, source, target: values.cast(pa.binary()),
    ("binary", "string"): _bytes_to_string,
    ("date", "timestamp"): _time_to_time,
    ("date", "timestamp_ntz"): _time_to_time,
    ("date", "string"): _datetime_to_string,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "timestamp_ntz"): _time_to_time,
    ("timestamp", "integral"): _instant_to_seconds,
    ("timestamp", "string"): _datetime_to_string,
    ("timestamp_ntz", "date"): _timestamp_to_date,
    ("timestamp_ntz", "timestamp"): _time_to_time,
    ("timestamp_ntz", "string"): _datetime_to_string,
}
# Casts that Spark has and this library does not: Java's text of a double depends on the Java version; the others are rare.
_KNOWN_TO_SPARK = frozenset(
    {
        ("fractional", "string"),
        ("fractional", "timestamp"),
        ("decimal", "timestamp"),
        ("timestamp", "fractional"),
        ("timestamp", "decimal"),
    }
)

# ---------------------------------------------------------------- shared with the function files


def zero_of(arrow_type: pa.DataType) -> Any:
    """0 as a scalar of a numeric type (decimals of few digits included)."""
    return pa.scalar(decimal.Decimal(0) if pa.types.is_decimal(arrow_type) else 0, arrow_type)


def raise_first(is_bad: Any, values: Any, failure: Callable[[object], ExpressionError]) -> None:
    """Raise `failure(value)` for the first value for which `is_bad` is true and that is not null; return if there is none."""
    is_refused = pc.and_(is_bad, pc.is_valid(values)).fill_null(False)
    if not is_refused.true_count:
        return
    value = values.filter(is_refused)[0]
    try:
        shown_value: object = value.as_py()
    except (ValueError, OverflowError):  # a date outside the range of Python's types
        shown_value = str(value.cast(pa.int64()))
    raise failure(shown_value) from BadRows(is_refused)


def with_validity_of(values: Any, source: Any) -> Any:
    """The values, null where the source is null."""
    return values if source.null_count == 0 else pc.if_else(pc.is_valid(source), values, None)


def with_validity_of_all(values: Any, arguments: Iterable[Any]) -> Any:
    """The values, null where any of the arguments is null. arguments: arrays, or scalars for all values."""
    for argument in arguments:
        if isinstance(argument, pa.Array):
            values = with_validity_of(values, argument)
        elif not argument.is_valid:
            return pa.nulls(len(values), values.type)
    return values
