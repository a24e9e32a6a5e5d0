"""Values of a Parquet file in a column's type: widening, units, legacy calendar, binary without the UTF8 mark.

These are not casts: only conversions that keep every value are allowed. All others are refused by name, and a value that does not
fit is an error, never another value. Times finer than a microsecond are rounded down toward the past.
Protocol: Type Widening.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.parquet.values.buffers import fixed_values, from_values
from delta_py.parquet.values.rebase import LegacyCalendar, rebase_dates, rebase_timestamps
from delta_py.types.schema import DataType, DecimalType, PrimitiveType, to_arrow_type, type_name

Convert: TypeAlias = Callable[[pa.Array], pa.Array]

_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1_000}


class CannotRead(Exception):
    """A column's data in a file do not match the table; the message follows the file's name."""


def value_converter(
    path: str, data_type: DataType, arrow: pa.DataType, calendar: LegacyCalendar, *, int96: bool
) -> Convert | None:
    """A function from decoded arrays of `arrow` to arrays of the type; None if they are the same.

    Raises CannotRead for types that do not match.
    """
    if pa.types.is_dictionary(arrow):
        inner = value_converter(path, data_type, arrow.value_type, calendar, int96=int96)
        return _chain(lambda array: array.dictionary_decode(), inner)
    target = to_arrow_type(data_type)
    if pa.types.is_null(arrow):
        return lambda array: pa.nulls(len(array), target)
    if pa.types.is_date(arrow) or pa.types.is_timestamp(arrow) or (arrow == pa.int32() and pa.types.is_date(target)):
        steps = _temporal_steps(data_type, arrow, target, calendar, int96)
    elif arrow == target:
        return None
    else:
        steps = _plain_steps(data_type, arrow, target)
    if steps is None:
        raise CannotRead(f"column {path} is {type_name(data_type)} in the table, and {arrow} in the file")
    return _chain(*steps)


def _chain(*steps: Convert | None) -> Convert | None:
    """All steps as one conversion; None if there is none."""
    needed_steps = [step for step in steps if step is not None]
    if len(needed_steps) < 2:
        return needed_steps[0] if needed_steps else None

    def convert(array: pa.Array) -> pa.Array:
        for step in needed_steps:
            array = step(array)
        return array

    return convert


# Conversions in the order in which they are applied; a step that is None is not needed. None instead of the tuple: the conversion
# is not allowed.
Steps: TypeAlias = tuple[Convert | None, ...] | None


# ---------------------------------------------------------------- numbers and text


def _plain_steps(data_type: DataType, arrow: pa.DataType, target: pa.DataType) -> Steps:
    """The conversion of numbers, texts and bytes. Arrow's casts raise an error for a value that does not fit."""
    types = pa.types
    if isinstance(data_type, DecimalType):
        return _decimal_steps(arrow, target)
    if types.is_integer(target) and types.is_integer(arrow):
        return (_cast_step(target),)
    if types.is_floating(target) and _widens_to_float(arrow, target):
        return (_cast_step(target),)
    if types.is_string(target) or types.is_binary(target):
        return _binary_steps(arrow, target)
    return None


def _cast_step(target: pa.DataType) -> Convert:
    return lambda array: pc.cast(array, target)


def _widens_to_float(arrow: pa.DataType, target: pa.DataType) -> bool:
    """Whether a floating-point type keeps every value. A double has 53 bits for the digits, enough for integers of 32 bits."""
    if pa.types.is_floating(arrow):
        return bool(arrow.bit_width <= target.bit_width)
    return bool(pa.types.is_integer(arrow) and arrow.bit_width <= 32 and pa.types.is_float64(target))


def _decimal_steps(arrow: pa.DataType, target: pa.DataType) -> Steps:
    """The conversion to a decimal; a value with too many digits raises an error when it is converted."""
    if pa.types.is_decimal(arrow):
        return (_cast_step(target),)
    if not pa.types.is_integer(arrow):
        return None
    # Arrow casts an integer only to a decimal that holds all integers of its width; the second step checks the values.
    digits = 20 + target.scale  # an integer of 64 bits has up to 20 digits
    wide_decimal = pa.decimal128(digits, target.scale) if digits <= 38 else pa.decimal256(digits, target.scale)
    return (_cast_step(wide_decimal), _cast_step(target))


def _binary_steps(arrow: pa.DataType, target: pa.DataType) -> Steps:
    """The conversion between text and bytes, of any layout: a cast to the plain layout of the same kind, then a view as the other
    kind. A cast would refuse bytes that are not UTF-8; a view leaves them as they are, as Spark does."""
    types = pa.types
    if arrow in (pa.string(), pa.binary()):
        return (lambda array: array.view(target),)
    if types.is_large_binary(arrow) or types.is_binary_view(arrow) or types.is_fixed_size_binary(arrow):
        return (_cast_step(pa.binary()), None if types.is_binary(target) else lambda array: array.view(target))
    if types.is_large_string(arrow) or types.is_string_view(arrow):
        return (_cast_step(pa.string()), None if types.is_string(target) else lambda array: array.view(target))
    return None


# ---------------------------------------------------------------- dates and times


def _temporal_steps(data_type: DataType, arrow: pa.DataType, target: pa.DataType, calendar: LegacyCalendar, int96: bool) -> Steps:
    """The conversion to dates and timestamps. int96: the file stores the column as INT96, which has its own calendar mark."""
    if pa.types.is_timestamp(arrow):
        return _timestamp_steps(arrow, target, calendar, int96) if pa.types.is_timestamp(target) else None
    as_date: Convert | None = None
    if arrow == pa.int32():
        as_date = lambda array: array.view(pa.date32())  # noqa: E731
    elif arrow != pa.date32():
        as_date = _cast_step(pa.date32())
    rebase = rebase_dates if calendar.datetime else None
    if pa.types.is_date32(target):
        return (as_date, rebase)
    if data_type == PrimitiveType("timestamp_ntz"):  # type widening allows it: a date becomes its midnight
        return (as_date, rebase, _cast_step(target))
    return None


def _timestamp_steps(arrow: pa.TimestampType, target: pa.TimestampType, calendar: LegacyCalendar, int96: bool) -> Steps:
    """To microseconds, and then from the hybrid calendar if an older writer used it."""
    to_micros: Convert | None
    if arrow.unit == "us":
        to_micros = None if arrow == target else lambda array: array.view(target)
    elif arrow.unit == "ns":
        to_micros = lambda array: floor_nanoseconds(array, target)  # noqa: E731
    else:
        factor = _MICROS_PER_UNIT[arrow.unit]
        to_micros = lambda array: pc.multiply_checked(array.view(pa.int64()), factor).view(target)  # noqa: E731
    is_legacy = target.tz is not None and (calendar.int96 if int96 else calendar.datetime)
    zone = calendar.zone
    return (to_micros, (lambda array: rebase_timestamps(array, zone)) if is_legacy else None)


def floor_nanoseconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Times in nanoseconds rounded down to microseconds, toward the past. target: a timestamp type of this unit."""
    return from_values(target, fixed_values(array, np.int64) // 1_000, nulls_of=array)
