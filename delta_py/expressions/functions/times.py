"""Functions on dates and timestamps, in UTC: for other time zones resolve.py converts instants to wall clocks.

Wall clocks in a zone are stored as timestamps whose UTC fields are the zone's fields, like the result of Spark's
from_utc_timestamp.

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

from delta_py.expressions import text_casts
from delta_py.expressions.coercion import is_integral
from delta_py.expressions.evaluation_errors import mismatch, not_supported
from delta_py.expressions.functions.function_types import Function, Operand, Signature, accepts, check_count, fixed
from delta_py.expressions.value_casts import with_validity_of
from delta_py.types.schema import DATE, INTEGER, LONG, STRING, TIMESTAMP, DataType
from delta_py.types.zones import INSTANT, WALL_CLOCK, check_zone, to_instants, to_wall_clock

# Days since 1970-01-01, well within the years -32768 to 32767: Arrow's calendar kernels store years in 16 bits.
_FIRST_DAY, _LAST_DAY = -12_000_000 + 719_468, 11_000_000 - 719_468

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
_DATE_UNITS = frozenset({"year", "quarter", "month", "week"})


def unit_of(text: str | None) -> str | None:
    """The unit in date_trunc's first argument; None for text that is not a unit (the result is null)."""
    return None if text is None else _UNITS.get(text.upper())


def _within_calendar(values: Any) -> Any:
    """The values, unchanged. Raises ExpressionError if one of them is too far from now for Arrow's calendar functions."""
    days = values.cast(pa.date32(), safe=False) if pa.types.is_timestamp(values.type) else values
    ends = pc.min_max(days.cast(pa.int32()))
    if ends["min"].is_valid and (ends["min"].as_py() < _FIRST_DAY or ends["max"].as_py() > _LAST_DAY):
        raise not_supported("A date more than 30,000 years from now")
    return values


def _date_field(kernel: Callable[[Any], Any], increasing: bool = False) -> Function:
    """A calendar field of a date."""

    def run(arguments: list[Any], result: DataType) -> Any:
        return kernel(_within_calendar(arguments[0])).cast(pa.int32())

    return Function(fixed(INTEGER, DATE), run, increasing=increasing)


def _clock_field(kernel: Callable[[Any], Any]) -> Function:
    """A field of the time of day, of a timestamp."""

    def run(arguments: list[Any], result: DataType) -> Any:
        return kernel(arguments[0]).cast(pa.int32())

    return Function(fixed(INTEGER, TIMESTAMP), run)


def _date_trunc(arguments: list[Any], result: DataType) -> Any:
    """The beginning of the unit of time; null for text that is not a unit."""
    unit, values = unit_of(arguments[0]), arguments[1]
    if unit is None:
        return pa.nulls(len(values), INSTANT)
    return pc.floor_temporal(_within_calendar(values), unit=unit, week_starts_monday=True)


def _trunc(arguments: list[Any], result: DataType) -> Any:
    """The first day of the year, quarter, month or week; null for other units."""
    values, unit = arguments[0], unit_of(arguments[1])
    if unit not in _DATE_UNITS:
        return pa.nulls(len(values), pa.date32())
    return pc.floor_temporal(_within_calendar(values), unit=unit, week_starts_monday=True)


def _last_day(arguments: list[Any], result: DataType) -> Any:
    """The last day of each date's month."""
    first_days = pc.floor_temporal(_within_calendar(arguments[0]), unit="month").cast(pa.int32())
    # 31 days after the first day is some day of the next month.
    days_of_next_month = pc.add(first_days, pa.scalar(31, pa.int32())).cast(pa.date32())
    next_first_days = pc.floor_temporal(days_of_next_month, unit="month").cast(pa.int32())
    return pc.subtract(next_first_days, pa.scalar(1, pa.int32())).cast(pa.date32())


# ---------------------------------------------------------------- days


def _add_days_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 2, 2)
    date, days = operands
    if not accepts(date.data_type, DATE) or not accepts(days.data_type, INTEGER):
        raise mismatch(name, date.data_type, days.data_type)
    if is_integral(days.data_type) and days.data_type == LONG:
        raise mismatch(name, date.data_type, days.data_type)
    return Signature((DATE, INTEGER), DATE)


def _date_add(arguments: list[Any], result: DataType) -> Any:
    """Days are counted in 32 bits and wrap, as in Spark."""
    date, days = (argument.cast(pa.int32()) for argument in arguments)
    return pc.add(date, days).cast(pa.date32())


def _date_sub(arguments: list[Any], result: DataType) -> Any:
    date, days = (argument.cast(pa.int32()) for argument in arguments)
    return pc.subtract(date, days).cast(pa.date32())


def _date_diff(arguments: list[Any], result: DataType) -> Any:
    end, start = (argument.cast(pa.int32()) for argument in arguments)
    return pc.subtract(end, start)


# ---------------------------------------------------------------- zones


def _zone_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """The signature of a time and a zone. A constant zone is checked at once."""
    argument_type = STRING if name == "timestamp_in_zone" else TIMESTAMP
    signature = fixed(TIMESTAMP, argument_type, STRING)(name, operands)
    zone = operands[1]
    if zone.is_literal and isinstance(zone.value, str):
        check_zone(zone.value)
    return signature


def _from_utc_timestamp(arguments: list[Any], result: DataType) -> Any:
    """The wall clocks of instants in a zone."""
    values, zone = arguments
    if zone is None:
        return pa.nulls(len(values), INSTANT)
    return to_wall_clock(values, zone).cast(pa.int64()).cast(INSTANT)


def _to_utc_timestamp(arguments: list[Any], result: DataType) -> Any:
    """The instants of wall clocks in a zone."""
    values, zone = arguments
    if zone is None:
        return pa.nulls(len(values), INSTANT)
    return to_instants(values.cast(pa.int64()).cast(WALL_CLOCK), zone).cast(INSTANT)


def _timestamp_in_zone(arguments: list[Any], result: DataType) -> Any:
    """The instants in texts. A text without a zone of its own is read in the zone of the second argument."""
    return text_casts.to_timestamp(arguments[0], arguments[1])


def _day_of_week_from_monday(values: Any) -> Any:
    """0 for Monday to 6 for Sunday."""
    return pc.day_of_week(values, count_from_zero=True, week_start=1)


def _day_of_week_from_sunday(values: Any) -> Any:
    """1 for Sunday to 7 for Saturday."""
    return pc.day_of_week(values, count_from_zero=False, week_start=7)


def _unix_micros(arguments: list[Any], result: DataType) -> Any:
    return arguments[0].cast(pa.int64())


def _unix_date(arguments: list[Any], result: DataType) -> Any:
    return arguments[0].cast(pa.int32())


def _unix_timestamp(arguments: list[Any], result: DataType) -> Any:
    """Seconds truncated towards 1970, while unix_seconds rounds down to the seconds that have begun."""
    micros = arguments[0].cast(pa.int64())
    return pc.divide(micros, pa.scalar(1_000_000, pa.int64()))


def _micros_divided_by(divisor: int) -> Callable[[list[Any], DataType], Any]:
    """The microseconds since 1970-01-01 divided by `divisor`, rounded down."""

    def run(arguments: list[Any], result: DataType) -> Any:
        micros = arguments[0].cast(pa.int64())
        return with_validity_of(pa.array(np.floor_divide(micros.fill_null(0).to_numpy(), divisor)), micros)

    return run


_SECOND_ARGUMENT = frozenset({1})

TIMES: dict[str, Function] = {
    "year": _date_field(pc.year, increasing=True),
    "quarter": _date_field(pc.quarter),
    "month": _date_field(pc.month),
    "day": _date_field(pc.day),
    "dayofmonth": _date_field(pc.day),
    "dayofweek": _date_field(_day_of_week_from_sunday),
    "weekday": _date_field(_day_of_week_from_monday),
    "dayofyear": _date_field(pc.day_of_year),
    "weekofyear": _date_field(pc.iso_week),
    "hour": _clock_field(pc.hour),
    "minute": _clock_field(pc.minute),
    "second": _clock_field(pc.second),
    "date_trunc": Function(fixed(TIMESTAMP, STRING, TIMESTAMP), _date_trunc, constants=frozenset({0}), increasing=True),
    "trunc": Function(fixed(DATE, DATE, STRING), _trunc, constants=_SECOND_ARGUMENT, increasing=True),
    "last_day": Function(fixed(DATE, DATE), _last_day, increasing=True),
    "date_add": Function(_add_days_signature, _date_add),
    "date_sub": Function(_add_days_signature, _date_sub),
    "datediff": Function(fixed(INTEGER, DATE, DATE), _date_diff),
    "unix_timestamp": Function(fixed(LONG, TIMESTAMP), _unix_timestamp, increasing=True),
    "unix_date": Function(fixed(INTEGER, DATE), _unix_date, increasing=True),
    "unix_micros": Function(fixed(LONG, TIMESTAMP), _unix_micros, increasing=True),
    "unix_millis": Function(fixed(LONG, TIMESTAMP), _micros_divided_by(1_000), increasing=True),
    "unix_seconds": Function(fixed(LONG, TIMESTAMP), _micros_divided_by(1_000_000), increasing=True),
    "from_utc_timestamp": Function(_zone_signature, _from_utc_timestamp, constants=_SECOND_ARGUMENT),
    "to_utc_timestamp": Function(_zone_signature, _to_utc_timestamp, constants=_SECOND_ARGUMENT),
    "timestamp_in_zone": Function(_zone_signature, _timestamp_in_zone, constants=_SECOND_ARGUMENT, can_fail=True),
}
