"""Casts from text to numbers, booleans, dates and timestamps and back, by Spark's rules under ANSI.

Arrays in, arrays out, null for null. Text that is not a value of the type raises an ExpressionError (CAST_INVALID_INPUT) that
names it. All work is done on whole arrays; only time zone names are looked up one by one, because a column has few. Partition
values have rules of their own (protocol/partition_values.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.coercion import INTEGRAL_RANGE
from delta_py.expressions.evaluation_errors import BadRows, invalid_input, not_supported
from delta_py.time_zones import offset_seconds
from delta_py.types.schema import BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, to_arrow_type
from delta_py.types.zones import INSTANT, WALL_CLOCK, region, to_instants

_Int64 = np.ndarray[Any, np.dtype[np.int64]]

_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"  # the characters that Spark trims: white space and control characters of ASCII
_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_JAVA_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_JAVA_HEX = r"^[+-]?0[xX]"
_INFINITY = r"^[+-]?(?i:inf|infinity)$"
_DATE = r"^(?P<sign>[+-]?)(?P<year>[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[ T](?s:.*))?)?)?$"
_TIMESTAMP = (
    r"^(?P<sign>[+-]?)(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>(?s:[^0-9.].*))?)?)?)?)?)?$"
)
_TIME_ONLY = r"^(T[0-9]|[0-9]{1,2}:)"
_MAX_LONG_DIGITS = 19
_DAY_SECONDS = 86_400


def trim_blanks(texts: Any) -> Any:
    """The texts without the characters at both ends that Spark trims before a cast."""
    return pc.utf8_trim(texts, characters=_BLANKS)


def _raise_invalid(is_bad: Any, texts: Any, target: DataType) -> None:
    """Raises CAST_INVALID_INPUT for the first text that is not null and for which `is_bad` is true."""
    is_refused = pc.and_(is_bad, pc.is_valid(texts)).fill_null(False)
    if is_refused.true_count:
        raise invalid_input(texts.filter(is_refused)[0].as_py(), target) from BadRows(is_refused)


def _raise_unless_matches(pattern: str, stripped: Any, texts: Any, target: DataType) -> None:
    """Raises CAST_INVALID_INPUT for the first of the texts whose stripped form does not match the pattern. Null texts match."""
    _raise_invalid(pc.invert(pc.match_substring_regex(stripped, pattern)), texts, target)


# ---------------------------------------------------------------- numbers and booleans


def to_integral(texts: Any, target: DataType) -> Any:
    """The whole numbers in texts. Raises CAST_INVALID_INPUT for other texts, and for numbers out of the type's range."""
    stripped = trim_blanks(texts)
    _raise_unless_matches(_INTEGER, stripped, texts, target)
    # Removes a plus sign and leading zeros.
    digits = pc.replace_substring_regex(stripped, r"^\+?(-?)0*([0-9])", r"\1\2")
    _raise_invalid(pc.greater(pc.utf8_length(digits), _MAX_LONG_DIGITS + 1), texts, target)  # one more for the sign
    wide_numbers = digits.cast(pa.decimal128(_MAX_LONG_DIGITS + 1, 0))
    low, high = pa.array(INTEGRAL_RANGE[target], pa.int64()).cast(wide_numbers.type)
    _raise_invalid(pc.or_(pc.less(wide_numbers, low), pc.greater(wide_numbers, high)), texts, target)
    return wide_numbers.cast(to_arrow_type(target))


def to_fractional(texts: Any, target: DataType) -> Any:
    """The floats or doubles in texts: numbers as Java reads them (also 1e3, 1.5f, 2D), infinities and NaN in upper or lower case.
    Raises CAST_INVALID_INPUT for other texts."""
    stripped = trim_blanks(texts)
    if pc.any(pc.match_substring_regex(stripped, _JAVA_HEX)).as_py():
        raise not_supported("A hexadecimal floating point number in text")
    is_infinite = pc.match_substring_regex(stripped, _INFINITY)
    is_nan = pc.equal(pc.utf8_lower(stripped), "nan")
    is_special = pc.or_(is_infinite, is_nan)
    _raise_invalid(pc.invert(pc.or_(is_special, pc.match_substring_regex(stripped, _JAVA_NUMBER))), texts, target)
    # Infinities and NaN are cast as 0, and get their values below.
    plain_texts = pc.replace_substring_regex(pc.if_else(is_special, "0", stripped), r"^\+|[dDfF]$", "")
    numbers = plain_texts.cast(to_arrow_type(target))
    if not pc.any(is_special).as_py():
        return numbers
    infinities = pc.if_else(pc.starts_with(stripped, "-"), pa.scalar(float("-inf")), pa.scalar(float("inf")))
    special_values = pc.if_else(is_nan, float("nan"), infinities).cast(numbers.type)
    return pc.if_else(is_special, special_values, numbers)


def to_wide_decimal(texts: Any, target: DataType) -> Any:
    """Decimals with 38 digits after the point, before they are rounded and fitted to the target."""
    stripped = trim_blanks(texts)
    _raise_unless_matches(_NUMBER, stripped, texts, target)
    try:
        return pc.replace_substring_regex(stripped, r"^\+", "").cast(pa.decimal256(76, 38))
    except pa.ArrowInvalid as error:
        raise not_supported(
            "Text with more than 38 digits before or after the decimal point", "Shorten it, or cast it to double."
        ) from error


def to_boolean(texts: Any) -> Any:
    """The booleans in texts: t, true, y, yes, 1 and their opposites, ignoring case. Raises CAST_INVALID_INPUT for other texts."""
    words = pc.utf8_lower(trim_blanks(texts))
    is_true = pc.is_in(words, value_set=pa.array(["t", "true", "y", "yes", "1"]))
    is_false = pc.is_in(words, value_set=pa.array(["f", "false", "n", "no", "0"]))
    _raise_invalid(pc.invert(pc.or_(is_true, is_false)), texts, BOOLEAN)
    return pc.if_else(pc.is_valid(texts), is_true, None)


# ---------------------------------------------------------------- dates and timestamps


def to_date(texts: Any) -> Any:
    """The dates in texts (2024, 2024-1, 2024-01-01). Text after the day and a blank or T is ignored, as in Spark."""
    stripped = trim_blanks(texts)
    _raise_unless_matches(_DATE, stripped, texts, DATE)
    parts = pc.extract_regex(stripped, _DATE)
    days, is_valid = _parse_days(parts)
    _raise_invalid(pa.array(~is_valid | (np.abs(days) > 2**31 - 1)), texts, DATE)  # a date has 32 bits
    return _with_nulls_of(days, texts).cast(pa.int32()).cast(pa.date32())


def to_timestamp(texts: Any, zone: str) -> Any:
    """Instants. Text without a zone of its own is read in `zone`."""
    wall_clocks, zones = _wall_clocks(texts, TIMESTAMP)
    is_zoneless = pc.is_in(zones, value_set=pa.array([""]), skip_nulls=True)
    if is_zoneless.true_count == len(is_zoneless) - zones.null_count:  # no text has a zone of its own
        return to_instants(wall_clocks, zone)
    instants = to_instants(wall_clocks, zone)
    for name in pc.unique(zones).to_pylist():  # distinct zones, not rows
        if name:
            instants = pc.if_else(pc.equal(zones, name), to_instants(wall_clocks, name), instants)
    return instants.cast(INSTANT)


def to_timestamp_ntz(texts: Any) -> Any:
    """Wall clocks; a zone in the text is checked and ignored."""
    return _wall_clocks(texts, TIMESTAMP_NTZ)[0]


def _wall_clocks(texts: Any, target: DataType) -> tuple[Any, Any]:
    """The wall clock in each text, and the zone's name in it ('' if it has none); both are null for null.

    Raises CAST_INVALID_INPUT for text that is no timestamp, or names a day, time or zone that does not exist.
    """
    stripped = trim_blanks(texts)
    if pc.any(pc.match_substring_regex(stripped, _TIME_ONLY)).as_py():
        raise not_supported("A time of day without a date in text")
    _raise_unless_matches(_TIMESTAMP, stripped, texts, target)
    parts = pc.extract_regex(stripped, _TIMESTAMP)
    days, is_valid = _parse_days(parts)
    hour, minute, second = (_group_number(parts, name, 0) for name in ("hour", "minute", "second"))
    is_valid &= (hour <= 23) & (minute <= 59) & (second <= 59)
    # The first six digits after the point are microseconds: .5 is 500000.
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(_group_text(parts, "fraction"), 0, 6), 6, "0").cast(pa.int64())
    # The microseconds must fit 64 bits.
    is_valid &= np.abs(days) < 2**63 // (_DAY_SECONDS * 1_000_000)
    zones = pc.utf8_trim(_group_text(parts, "zone"), characters=_BLANKS)
    zones = pc.if_else(pc.is_valid(texts), zones, None)
    _raise_invalid(pc.or_(pa.array(~is_valid), _has_unknown_zone(zones)), texts, target)
    seconds = np.where(is_valid, days, 0) * _DAY_SECONDS + hour * 3600 + minute * 60 + second
    micros = seconds * 1_000_000 + fraction.to_numpy(zero_copy_only=False)
    return _with_nulls_of(micros, texts).cast(WALL_CLOCK), zones


def _has_unknown_zone(zones: Any) -> Any:
    """For each row, whether it names a zone that does not exist; false for '' and null."""
    unknown_names = [name for name in pc.unique(zones).to_pylist() if name and not _is_zone(name)]
    return pc.is_in(zones, value_set=pa.array(unknown_names, pa.string()))


def _is_zone(name: str) -> bool:
    """Whether the name is that of an offset or a region."""
    if offset_seconds(name) is not None:
        return True
    try:
        region(name)
    except Exception as error:  # only an unknown name is the fault of the text; every other error goes on
        if getattr(error, "error_class", "") == "INVALID_TIMEZONE":
            return False
        raise
    return True


def _group_text(parts: Any, name: str) -> Any:
    """One group of a match (parts: from extract_regex) in each row; '' if the group is not in the text or the row is null."""
    return pc.struct_field(parts, name).fill_null("")


def _group_number(parts: Any, name: str, otherwise: int) -> _Int64:
    """One group of a match (parts: from extract_regex) as integers; `otherwise` if it is not in the text or the row is null."""
    text = _group_text(parts, name)
    numbers: _Int64 = pc.if_else(pc.equal(text, ""), str(otherwise), text).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _parse_days(parts: Any) -> tuple[_Int64, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Days since 1970-01-01 of year, month, day in the proleptic Gregorian calendar, and whether that day exists."""
    year, month, day = (_group_number(parts, name, 1) for name in ("year", "month", "day"))
    year = np.where(pc.equal(_group_text(parts, "sign"), "-").to_numpy(zero_copy_only=False), -year, year)
    is_leap_year = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    month_lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    month_exists = (month >= 1) & (month <= 12)
    month_length = month_lengths[np.where(month_exists, month, 0)] + (is_leap_year & (month == 2))
    is_valid = month_exists & (day >= 1) & (day <= month_length)
    return days_of(year, month, day), is_valid


def days_of(year: _Int64, month: _Int64, day: _Int64) -> _Int64:
    """Days since 1970-01-01 of days that exist."""
    # Here years begin in March, so that the leap day is the last day of a year.
    # 719,468 days are between 0000-03-01 and 1970-01-01.
    # (153 * m + 2) // 5 is the number of days before month m, counted from March (0).
    march_year = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: _Int64 = march_year * 365 + march_year // 4 - march_year // 100 + march_year // 400 + day_of_year - 719_468
    return days


def _with_nulls_of(numbers: _Int64, texts: Any) -> Any:
    """The numbers as an array, with null where the text is null."""
    return pa.array(numbers, pa.int64(), mask=pc.is_null(texts).to_numpy(zero_copy_only=False))


# ---------------------------------------------------------------- to text


def decimal_text(values: Any, scale: int) -> Any:
    """Plain digits with `scale` digits after the point, never an exponent."""
    # The same bytes as a decimal of scale 0: its text is the digits without a point.
    digits_type = pa.decimal128(values.type.precision, 0)
    digits = pa.Array.from_buffers(digits_type, len(values), values.buffers(), values.null_count, values.offset).cast(pa.string())
    if scale == 0:
        return digits
    is_negative = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, characters="-"), scale + 1, "0")
    text_with_point = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale), "."
    )
    return pc.if_else(is_negative, pc.binary_join_element_wise("-", text_with_point, ""), text_with_point)


def date_text(values: Any) -> Any:
    """`yyyy-MM-dd`."""
    _raise_for_far_years(values)
    return values.cast(pa.string())


def timestamp_text(values: Any) -> Any:
    """`yyyy-MM-dd HH:mm:ss`, and the fraction's digits up to the last non-zero one."""
    wall_clocks = values.cast(pa.int64()).cast(WALL_CLOCK)
    _raise_for_far_years(wall_clocks)
    return pc.replace_substring_regex(wall_clocks.cast(pa.string()), r"\.?0*$", "")


def _raise_for_far_years(values: Any) -> None:
    """Raises ExpressionError for a date outside of the years 0 to 9999, which Spark writes with a sign before the year."""
    years = pc.min_max(pc.year(values))
    if years["min"].is_valid and (years["min"].as_py() < 0 or years["max"].as_py() > 9999):
        raise not_supported("The text of a date before year 0 or after 9999")
