"""Functions that compute with months and days, and between times and numbers. Wall clocks have the form described in times.py.

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
from delta_py.expressions.coercion import INTEGRAL_RANGE, is_integral
from delta_py.expressions.evaluation_errors import mismatch, not_supported, overflow
from delta_py.expressions.functions.function_types import Function, Operand, Signature, accepts, check_count, fixed
from delta_py.expressions.text_casts import days_of
from delta_py.expressions.value_casts import raise_first, with_validity_of_all
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    DataType,
    DecimalType,
)
from delta_py.types.zones import INSTANT, WALL_CLOCK, to_instants, to_wall_clock

_Int64 = np.ndarray[Any, np.dtype[np.int64]]

_DAY_MICROS = 86_400_000_000
_MONTH_SECONDS = 31 * 86_400
_WEEKDAYS = {  # as days after Thursday, the weekday of 1970-01-01
    **dict.fromkeys(("TH", "THU", "THURSDAY"), 0),
    **dict.fromkeys(("FR", "FRI", "FRIDAY"), 1),
    **dict.fromkeys(("SA", "SAT", "SATURDAY"), 2),
    **dict.fromkeys(("SU", "SUN", "SUNDAY"), 3),
    **dict.fromkeys(("MO", "MON", "MONDAY"), 4),
    **dict.fromkeys(("TU", "TUE", "TUESDAY"), 5),
    **dict.fromkeys(("WE", "WED", "WEDNESDAY"), 6),
}
MONTH_NAMES: tuple[str, ...] = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def year_month_day(days: _Int64) -> tuple[_Int64, _Int64, _Int64]:
    """Year, month and day of days since 1970-01-01, in the proleptic Gregorian calendar.

    Howard Hinnant's algorithm civil_from_days: eras of 400 years, and years that begin in March, so the leap day comes last.
    """
    days_since_year_0 = days + 719_468  # from 0000-03-01
    era = days_since_year_0 // 146_097
    day_of_era = days_since_year_0 - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * march_month + 2) // 5 + 1
    month = np.where(march_month < 10, march_month + 3, march_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def _month_length(year: _Int64, month: _Int64) -> _Int64:
    """The number of days of each month. month: 1 to 12."""
    is_leap_year = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    usual_lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[month - 1]
    return np.asarray(usual_lengths + (is_leap_year & (month == 2)))


def _integers(values: Any, arguments: list[Any]) -> _Int64:
    """The numbers, days or microseconds of an argument as integers, 0 if null. arguments: all arguments of the call: the
    length of an Array among them is the number of rows."""
    count = next((len(a) for a in arguments if isinstance(a, pa.Array)), 1)
    array = pa.repeat(values, count) if isinstance(values, pa.Scalar) else values
    # Arrow casts a date only to the integer of its own width.
    numeric = array.cast(pa.int32()) if pa.types.is_date(array.type) else array
    numbers: _Int64 = numeric.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers


def _dates(days: _Int64, arguments: list[Any]) -> Any:
    """Dates from days since 1970-01-01, null where an argument is null. Raises for days out of the range of 32 bits."""
    day_numbers = with_validity_of_all(pa.array(days), arguments)
    low, high = INTEGRAL_RANGE[INTEGER]
    is_outside = pc.or_(pc.less(day_numbers, low), pc.greater(day_numbers, high))
    raise_first(is_outside, day_numbers, lambda value: overflow(f"The date of day {value}"))
    return day_numbers.cast(pa.int32()).cast(pa.date32())


# ---------------------------------------------------------------- months and weeks


def _add_months_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 2, 2)
    date, months = operands[0].data_type, operands[1].data_type
    if not accepts(date, DATE) or not accepts(months, INTEGER):
        raise mismatch(name, date, months)
    return Signature((DATE, INTEGER), DATE)


def _add_months(arguments: list[Any], result: DataType) -> Any:
    """The same day of another month, or that month's last day if it has no such day."""
    days, months = (_integers(argument, arguments) for argument in arguments)
    year, month, day = year_month_day(days)
    months = year * 12 + month - 1 + months
    year, month = months // 12, months % 12 + 1
    return _dates(days_of(year, month, np.minimum(day, _month_length(year, month))), arguments)


def _months_between_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """(end, start[, whether to round to 8 digits[, time zone]]); resolve.py sets the zone."""
    signature = fixed(DOUBLE, TIMESTAMP, TIMESTAMP, BOOLEAN, STRING, optional=2)(name, operands)
    if len(operands) > 2 and not operands[2].is_literal:
        raise not_supported(f"{name} with an argument 3 that is not a constant", "Give it a constant.")
    return signature


def _months_between(arguments: list[Any], result: DataType) -> Any:
    """(end, start): whole months between equal days of the month or between last days. Otherwise the remainder is in months of 31
    days, and the result is rounded to 8 digits unless the third argument is false."""
    times, is_rounded = arguments[:2], arguments[2] if len(arguments) > 2 else True
    zone = arguments[3] if len(arguments) > 3 else "UTC"
    (days1, seconds1), (days2, seconds2) = (_day_and_second(time, times, zone) for time in times)
    (year1, month1, day1), (year2, month2, day2) = year_month_day(days1), year_month_day(days2)
    months = ((year1 * 12 + month1) - (year2 * 12 + month2)).astype(np.float64)
    are_both_last_days = (day1 == _month_length(year1, month1)) & (day2 == _month_length(year2, month2))
    difference = months + ((day1 - day2) * 86_400 + seconds1 - seconds2) / _MONTH_SECONDS
    if is_rounded:
        difference = np.floor(difference * 1e8 + 0.5) / 1e8
    distances = pa.array(np.where((day1 == day2) | are_both_last_days, months, difference))
    return pa.nulls(len(distances), pa.float64()) if is_rounded is None else with_validity_of_all(distances, times)


def _day_and_second(time: Any, times: list[Any], zone: str) -> tuple[_Int64, _Int64]:
    """The day in the zone (days since 1970-01-01), and the seconds that have passed since it began (not the time on the clock).

    time: one of `times`, which are two arguments of the call.
    """
    instant_micros = _integers(time, times)
    local_micros = to_wall_clock(pa.array(instant_micros).cast(INSTANT), zone).cast(pa.int64()).to_numpy(zero_copy_only=False)
    days = local_micros // _DAY_MICROS
    midnights = to_instants(pa.array(days * _DAY_MICROS).cast(WALL_CLOCK), zone)
    return days, (instant_micros - midnights.cast(pa.int64()).to_numpy(zero_copy_only=False)) // 1_000_000


def _next_day(arguments: list[Any], result: DataType) -> Any:
    """The first day after the date that is the weekday. Its name may not have blanks around it."""
    values, name = arguments
    if name is None:
        return pa.nulls(len(values), pa.date32())
    weekday = _WEEKDAYS.get(name.strip().upper() if name.strip() == name else "")
    if weekday is None:
        raise ExpressionError(
            f"{name[:40]!r} is no day of the week. Write MO, MON or MONDAY, and so on.",
            error_class="ILLEGAL_DAY_OF_WEEK",
            sql_state="22009",
        )
    # Counts from the day after, because the result is 1 to 7 days later.
    days = _integers(values, arguments[:1])
    return _dates(days + 1 + (weekday - 1 - days) % 7, arguments[:1])


# ---------------------------------------------------------------- from parts


def _make_date(arguments: list[Any], result: DataType) -> Any:
    """The date of a year, month and day. Raises for a date that does not exist."""
    year, month, day = (_integers(argument, arguments) for argument in arguments)
    is_month = (month >= 1) & (month <= 12)
    exists = is_month & (day >= 1) & (day <= _month_length(year, np.where(is_month, month, 1)))
    # A row with a null argument gives null and is not checked.
    years_to_check = with_validity_of_all(pa.array(year), arguments)
    raise_first(pa.array(~exists), years_to_check, lambda value: _no_such_day("make_date"))
    return _dates(np.where(exists, days_of(year, np.where(is_month, month, 1), day), 0), arguments)


def _no_such_day(name: str) -> ExpressionError:
    return ExpressionError(
        f"{name} was given a year, month and day that are no date.",
        error_class="DATETIME_FIELD_OUT_OF_BOUNDS",
        sql_state="22023",
    )


# ---------------------------------------------------------------- numbers and times


def _units_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """timestamp_seconds and similar functions: one whole number, or null."""
    check_count(name, operands, 1, 1)
    data_type = operands[0].data_type
    if data_type == VOID:
        return Signature((LONG,), TIMESTAMP)
    if isinstance(data_type, DecimalType) or not is_integral(data_type):
        raise not_supported(f"{name} of numbers that are not whole")
    return Signature((LONG,), TIMESTAMP)


def _timestamp_from_units(factor: int) -> Callable[[list[Any], DataType], Any]:
    """The timestamp of a number of units since 1970-01-01. factor: the microseconds of a unit."""

    def run(arguments: list[Any], result: DataType) -> Any:
        try:
            return pc.multiply_checked(arguments[0], pa.scalar(factor, pa.int64())).cast(INSTANT)
        except pa.ArrowInvalid as error:
            raise overflow("The timestamp of a number") from error

    return run


def _from_unix_date(arguments: list[Any], result: DataType) -> Any:
    return arguments[0].cast(pa.date32())


def _short_name(names: tuple[str, ...], field: Callable[[Any], Any]) -> Callable[[list[Any], DataType], Any]:
    """The first three letters of a name. field: the position of the name for each date."""

    def run(arguments: list[Any], result: DataType) -> Any:
        return pa.array([name[:3] for name in names]).take(field(arguments[0]))

    return run


MONTHS: dict[str, Function] = {
    "add_months": Function(_add_months_signature, _add_months, can_fail=True),
    "months_between": Function(_months_between_signature, _months_between, constants=frozenset({2, 3})),
    "next_day": Function(fixed(DATE, DATE, STRING), _next_day, constants=frozenset({1}), can_fail=True),
    "make_date": Function(fixed(DATE, INTEGER, INTEGER, INTEGER), _make_date, can_fail=True),
    "timestamp_seconds": Function(_units_signature, _timestamp_from_units(1_000_000), can_fail=True, increasing=True),
    "timestamp_millis": Function(_units_signature, _timestamp_from_units(1_000), can_fail=True, increasing=True),
    "timestamp_micros": Function(_units_signature, _timestamp_from_units(1), increasing=True),
    "date_from_unix_date": Function(fixed(DATE, INTEGER), _from_unix_date, increasing=True),
    "monthname": Function(fixed(STRING, DATE), _short_name(MONTH_NAMES, lambda d: pc.subtract(pc.month(d), 1))),
    "dayname": Function(fixed(STRING, DATE), _short_name(DAY_NAMES, lambda d: pc.day_of_week(d))),
}
