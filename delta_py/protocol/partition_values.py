"""Partition values: the text in the log <-> a typed value.

Null and the empty text are both null. Timestamps are written as `yyyy-MM-dd HH:mm:ss[.SSSSSS]` in the session's time zone, or as
ISO 8601 with `T` and `Z` (UTC). Binary is written as the text whose UTF-8 bytes are the value. Texts are read as Spark casts
them without ANSI mode, so texts of older and other writers have the same meaning as in Spark. Examples are `2021.0` for an
integer, and a date without a time for a timestamp column that was widened from date. Casts in expressions are in ANSI mode
(expressions/text_casts.py).
Protocol: Partition Value Serialization.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, ExpressionError, InvalidOptionError, UnsupportedOperationError
from delta_py.time_zones import offset_seconds
from delta_py.types.arrow_values import EMPTY, FALSE, all_false, scalar
from delta_py.types.schema import DataType, DecimalType, PrimitiveType, to_arrow_type, type_name
from delta_py.types.zones import to_instants

_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_INTEGER = re.compile(r"([+-]?\d+)(?:\.\d*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# Texts of numbers that are not finite, in lower case, and the texts that Python's float takes.
_NAMED_FLOATS = {
    "nan": "nan",
    "infinity": "inf",
    "+infinity": "inf",
    "-infinity": "-inf",
    "inf": "inf",
    "+inf": "inf",
    "-inf": "-inf",
}
_BOOLEANS = {**dict.fromkeys(("true", "t", "yes", "y", "1"), True), **dict.fromkeys(("false", "f", "no", "n", "0"), False)}
# Groups of _DAY: year, month, day. Further groups of _TIMESTAMP: hour, minute, second, fraction, zone.
_DAY = r"([+-]?\d{4,7})(?:-(\d\d?)(?:-(\d\d?))?)?"
_DATE = re.compile(rf"{_DAY}(?:[ T].*)?", re.ASCII)
_TIMESTAMP = re.compile(rf"{_DAY}(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d*))?)?\s*(Z|UTC|GMT|[+-]\d\d?(?::?\d\d)?)?)?", re.ASCII)
_USUAL_TIMESTAMP = r"^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-](?:0\d|1[0-7]):[0-5]\d)?)?$"
_SECOND = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
_DAY_MICROS = 86_400 * _SECOND
_MAX_DECIMAL_DIGITS = 76
_EPOCH = datetime(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats: years beyond datetime's range are computed from years within it
_SHORT_DECIMAL = 38  # characters; such a text fits into _MAX_DECIMAL_DIGITS at any scale


def parse_partition_values(
    texts: pa.Array | pa.ChunkedArray, data_type: DataType, *, timezone: str = "UTC", errors: Literal["raise", "null"] = "raise"
) -> pa.Array:
    """Texts of one partition column -> typed values. Each distinct text is parsed once.

    texts: strings, one per file. timezone: the zone of timestamps without an offset. errors: the result for a text that is not a
    value of the type; a caller who uses "null" can find these texts with `find_malformed`.
    Raises CorruptTableError with the first such text, UnsupportedOperationError for a type that cannot be a partition column, and
    InvalidOptionError for an unknown time zone.
    """
    flat = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.string())
    non_empty_texts = pc.if_else(pc.equal(distinct, EMPTY), scalar(None, pa.string()), distinct)
    values = _parse_distinct(non_empty_texts, data_type, timezone)
    if errors == "raise" and pc.any(is_malformed := find_malformed(non_empty_texts, values)).as_py():
        text = non_empty_texts.filter(is_malformed)[0].as_py()
        raise CorruptTableError(f"Partition value {text!r} is no {type_name(data_type)}. The log is damaged.", value=text)
    return values.take(encoded.indices)


def find_malformed(texts: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Which texts are not values of their column's type. values: the result of parse_partition_values with nulls."""
    if pa.types.is_null(values.type):
        return all_false(len(texts))
    return pc.and_(pc.fill_null(pc.not_equal(texts, EMPTY), FALSE), pc.is_null(values))


def malformed_value_error(path: str, column: str, text: str, data_type: DataType) -> CorruptTableError:
    """The error for a caller who needs the partition value of a file, if the text in the log is not a valid value."""
    return CorruptTableError(
        f"The partition value of the file {path} in the log is {text!r}, which is no value of column {column} of type "
        f"{type_name(data_type)}. Correct partitionValues in the log, or leave the column out of columns and conditions.",
        error_class="CAST_INVALID_INPUT",
        sql_state="22018",
        path=path,
        column=column,
        value=text,
    )


def parse_partition_value(
    text: str | None, data_type: DataType, *, timezone: str = "UTC", errors: Literal["raise", "null"] = "raise"
) -> Any:
    """One text -> a Python value (for `timestamp`, an aware datetime in UTC); None for null and for the empty text."""
    return parse_partition_values(pa.array([text], pa.string()), data_type, timezone=timezone, errors=errors)[0].as_py()


def _parse_distinct(texts: pa.StringArray, data_type: DataType, timezone: str) -> pa.Array:
    """The texts as values of the type; null where the text is null or not a value of the type. timezone: as in
    parse_partition_values. Raises UnsupportedOperationError for a type that cannot be a partition column."""
    target = to_arrow_type(data_type)
    match data_type:
        case PrimitiveType("string"):
            return texts
        case PrimitiveType("binary"):
            return texts.cast(target)
        case PrimitiveType("boolean"):
            return _parse_texts(texts, lambda text: _BOOLEANS.get(text.lower()), target)
        case PrimitiveType(name) if name in _INTEGER_BITS:
            return _parse_texts(texts, lambda text: _parse_integer(text, _INTEGER_BITS[name]), target)
        case PrimitiveType("float"):
            return _parse_texts(texts, _parse_float, pa.float64()).cast(target, safe=False)
        case PrimitiveType("double"):
            return _parse_texts(texts, _parse_float, target)
        case DecimalType(precision, scale):
            arrow_values = _cast_decimals(texts, target)
            if arrow_values is not None:
                return arrow_values
            return _parse_one_by_one(texts, lambda text: _parse_decimal(text, precision, scale), target)
        case PrimitiveType("date"):
            arrow_values = _cast_usual_texts(texts, target)
            return _parse_one_by_one(texts, _parse_date, pa.int32()).cast(target) if arrow_values is None else arrow_values
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return _parse_timestamps(texts, target, timezone)
        case PrimitiveType("void"):
            return pa.nulls(len(texts))
    raise _cannot_partition_error(data_type)


def _parse_texts(texts: pa.StringArray, parse: Callable[[str], Any], target: pa.DataType) -> pa.Array:
    """Parse the texts to values of the type `target`: by Arrow if every text has the usual form, because that is much faster;
    otherwise one by one with `parse`."""
    arrow_values = _cast_usual_texts(texts, target)
    return _parse_one_by_one(texts, parse, target) if arrow_values is None else arrow_values


def _parse_one_by_one(texts: pa.StringArray, parse: Callable[[str], Any], target: pa.DataType) -> pa.Array:
    """Parse each text with `parse`, which returns None for a text that is no value of the type."""
    return pa.array([None if text is None else parse(text.strip()) for text in texts.to_pylist()], target)


def _cast_usual_texts(texts: pa.StringArray, target: pa.DataType) -> pa.Array | None:
    """The result of Arrow's parser for texts that it parses as Spark does; None if any text does not have the usual form."""
    shape = _USUAL_TIMESTAMP if pa.types.is_timestamp(target) else r"^[^xX]*$"  # Arrow reads hexadecimal integers too
    if pa.types.is_boolean(target) or not pc.all(pc.match_substring_regex(texts, shape)).as_py():
        return None
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        return None


def _cast_decimals(texts: pa.StringArray, target: pa.DataType) -> pa.Array | None:
    """The result of Arrow's parser for texts that it parses as Spark does; None if any text is too long, has an exponent, or does
    not fit into the type.

    The texts are first cast to a type that can hold every short text at the column's scale. Arrow's direct cast to a type that is
    too small may wrap around and return another number ('7' as decimal(38,38)).
    """
    usual = pc.match_substring_regex(texts, rf"^[-+0-9.]{{1,{_SHORT_DECIMAL}}}$")
    wide_values = _cast_usual_texts(texts, pa.decimal256(_MAX_DECIMAL_DIGITS, target.scale)) if pc.all(usual).as_py() else None
    try:
        return None if wide_values is None else wide_values.cast(target)
    except pa.ArrowInvalid:
        return None


def _parse_integer(text: str, bits: int) -> int | None:
    """The whole number in a text, without a fraction that it may have; None if it is no number, or has more bits."""
    digits = _INTEGER.fullmatch(text)
    if digits is None or len(text) > 400:  # int() refuses very long texts
        return None
    value = int(digits[1])
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _parse_float(text: str) -> float | None:
    """The number in a text; None if it is no number."""
    special = _NAMED_FLOATS.get(text.lower())
    if special is not None:
        return float(special)
    return float(text) if _NUMBER.fullmatch(text) else None


def _parse_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """The number at the column's scale, rounded half up; None if it has too many digits before the point."""
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        value = Decimal(text)
    except ArithmeticError:  # an exponent beyond the range of Decimal
        return None
    if value.adjusted() >= precision - scale and value != 0:  # too large even before it is rounded
        return None
    with localcontext(prec=_MAX_DECIMAL_DIGITS):
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return rounded if rounded.adjusted() < precision - scale or rounded == 0 else None


def _parse_date(text: str) -> int | None:
    """The day in a text, as days since 1970; None if it is no day, or does not fit into 32 bits. A time after the day is
    ignored."""
    day_text = _DATE.fullmatch(text)
    days = None if day_text is None else _civil_days(day_text)
    return None if days is None or not -(2**31) <= days < 2**31 else days


def _civil_days(parts: re.Match[str]) -> int | None:
    """Days since 1970 of the year, month and day in groups 1 to 3; None for a day that does not exist."""
    year, month, day = int(parts[1]), int(parts[2] or 1), int(parts[3] or 1)
    try:
        # Years that Python's dates do not have are moved by cycles of 400 years, which have equal calendars.
        cycles = 0 if 1 <= year <= 9999 else (year - 2000) // _CYCLE_YEARS
        return date(year - _CYCLE_YEARS * cycles, month, day).toordinal() - _EPOCH_ORDINAL + _CYCLE_DAYS * cycles
    except ValueError:
        return None


def _parse_timestamps(texts: pa.StringArray, target: pa.DataType, timezone: str) -> pa.Array:
    """The texts as timestamps, or as wall clocks if the target has no zone. Arrow parses the texts if all of them have the usual
    form; otherwise they are parsed one by one."""
    arrow_values = _cast_usual_texts(texts, target)  # for instants, Arrow's parser requires an offset in every text
    if arrow_values is not None:
        return arrow_values
    # walls: the texts as wall clocks, if none of them has an offset.
    walls = None if target.tz is None else _cast_usual_texts(texts, pa.timestamp("us"))
    if walls is not None:
        return _instants_in_zone(walls, timezone).cast(target)
    # (wall clock, offset) of each text. For instants, a text without an offset is in the zone `timezone`.
    parsed = [None if text is None else _parse_timestamp(text.strip()) for text in texts.to_pylist()]
    if target.tz is None:  # a wall clock: an offset has no meaning
        return pa.array([None if item is None else _fit_or_none(item[0]) for item in parsed], pa.int64()).cast(target)
    # A day of room, so that the instant still fits after the zone's offset is applied.
    without_offset = [None if item is None or item[1] is not None else _fit_or_none(item[0], _DAY_MICROS) for item in parsed]
    walls = pa.array(without_offset, pa.timestamp("us"))
    instants = pa.array(
        [None if item is None or item[1] is None else _fit_or_none(item[0] - item[1]) for item in parsed],
        pa.int64(),
    )
    return pc.coalesce(instants, _instants_in_zone(walls, timezone)).cast(target)


def _parse_timestamp(text: str) -> tuple[int, int | None] | None:
    """The wall clock since 1970, and the offset written with it, in microseconds; None if the text is not a timestamp."""
    timestamp = _TIMESTAMP.fullmatch(text)
    days = None if timestamp is None else _civil_days(timestamp)
    if timestamp is None or days is None:
        return None
    hour, minute, second = (int(timestamp[group] or 0) for group in (4, 5, 6))
    fraction = int((timestamp[7] or "")[:6].ljust(6, "0"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    wall = days * _DAY_MICROS + ((hour * 60 + minute) * 60 + second) * _SECOND + fraction
    if timestamp[8] is None:
        return wall, None
    offset = offset_seconds(timestamp[8])
    return None if offset is None else (wall, offset * _SECOND)


def _fit_or_none(micros: int, room: int = 0) -> int | None:
    """The value; None if it does not fit into 64 bits with `room` microseconds left on both sides."""
    return micros if -(2**63) + room <= micros < 2**63 - room else None


def _instants_in_zone(walls: pa.Array, timezone: str) -> pa.Array:
    """Wall clocks in a zone -> instants, as microseconds."""
    try:
        return to_instants(walls, timezone).cast(pa.int64())
    except ExpressionError as error:
        raise InvalidOptionError(error.message, timezone=timezone) from error


# ---------------------------------------------------------------- writing


def format_partition_value(value: Any, data_type: DataType) -> str | None:
    """A Python value -> the text for the log; timestamps in UTC as ISO 8601 with Z. None for null and for the empty text.

    A datetime without an offset is UTC. Raises UnsupportedOperationError for a type that cannot be a partition column, and for
    binary that is not UTF-8 text.
    """
    if value is None:
        return None
    match data_type:
        case PrimitiveType("string"):
            return str(value) or None
        case PrimitiveType("binary"):
            return _binary_text(value)
        case PrimitiveType("boolean"):
            return "true" if value else "false"
        case PrimitiveType(name) if name in _INTEGER_BITS:
            return str(int(value))
        case PrimitiveType("float"):
            return _float_text(np.float32(value))
        case PrimitiveType("double"):
            return _float_text(np.float64(value))
        case DecimalType(_, scale):
            with localcontext(prec=_MAX_DECIMAL_DIGITS):
                return format(Decimal(value).quantize(Decimal(1).scaleb(-scale)), "f")
        case PrimitiveType("date"):
            return _date_text(value.toordinal() - _EPOCH_ORDINAL)
        case PrimitiveType("timestamp"):
            return _timestamp_text((_in_utc(value) - _EPOCH) // _MICROSECOND)
        case PrimitiveType("timestamp_ntz"):
            return _wall_clock_text((value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
    raise _cannot_partition_error(data_type)


def format_partition_values(values: pa.Array, data_type: DataType) -> list[str | None]:
    """The texts of an array in the column's type, as format_partition_value. All years of the type are possible: years before 0
    have `-` and years after 9999 have `+`, as in Spark's casts to text."""
    match data_type:
        case PrimitiveType("date"):
            numbers, text = values.cast(pa.int32()), _date_text
        case PrimitiveType("timestamp"):
            numbers, text = values.cast(pa.int64()), _timestamp_text
        case PrimitiveType("timestamp_ntz"):
            numbers, text = values.cast(pa.int64()), _wall_clock_text
        case _:
            return [format_partition_value(value, data_type) for value in values.to_pylist()]
    return [None if number is None else text(number) for number in numbers.to_pylist()]


def _date_text(number: int) -> str:
    """The day in ISO form. number: days since 1970. Years beyond those of Python's dates are moved by cycles, as in
    _civil_days."""
    ordinal = number + _EPOCH_ORDINAL
    cycles = 0 if date.min.toordinal() <= ordinal <= date.max.toordinal() else (ordinal - _EPOCH_ORDINAL) // _CYCLE_DAYS
    day = date.fromordinal(ordinal - _CYCLE_DAYS * cycles)
    year = day.year + _CYCLE_YEARS * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{day:%m-%d}"


def _timestamp_text(number: int) -> str:
    """`2024-05-01T10:20:30.500000Z`. number: microseconds since 1970."""
    days, in_day = divmod(number, _DAY_MICROS)
    time, fraction = _time_text(in_day)
    return f"{_date_text(days)}T{time}.{fraction:06d}Z"


def _wall_clock_text(number: int) -> str:
    """`2024-05-01 10:20:30.5`, without a fraction of 0. number: microseconds since 1970."""
    days, in_day = divmod(number, _DAY_MICROS)
    time, fraction = _time_text(in_day)
    return f"{_date_text(days)} {time}" + (f".{fraction:06d}".rstrip("0") if fraction else "")


def _time_text(micros: int) -> tuple[str, int]:
    """hh:mm:ss, and the remaining microseconds."""
    seconds, fraction = divmod(micros, _SECOND)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}", fraction


def _in_utc(value: datetime) -> datetime:
    """The datetime in UTC, without its zone. A datetime without a zone is in UTC already."""
    return (value if value.tzinfo is None else value.astimezone(UTC)).replace(tzinfo=None)


def _binary_text(value: bytes) -> str | None:
    """The text whose UTF-8 bytes are the value; None for no bytes. Raises UnsupportedOperationError if there is no such text."""
    try:
        return value.decode() or None
    except UnicodeDecodeError as error:
        raise UnsupportedOperationError(
            f"The binary partition value {value[:32]!r} is not UTF-8 text, so the log cannot store it. Nothing was written."
        ) from error


def _float_text(value: np.floating[Any]) -> str:
    """The text that Java (from version 19; older versions sometimes have too many digits) and Spark write: the shortest text, of
    at least two digits, that parses as the same float of its width.

    The two zeros keep different texts, `0.0` and `-0.0`, and so different directories, as in a partitioned write of Spark: values
    are not changed. Readers and overwrites of partitions compare values, and both zeros are equal.
    """
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:  # Java writes these without an exponent
        return np.format_float_positional(value, trim="0")
    mantissa, _, exponent = np.format_float_scientific(value, trim="-").partition("e")
    if "." not in mantissa:  # use the nearest text with two digits
        mantissa, _, exponent = f"{float(value):.1e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def _cannot_partition_error(data_type: DataType) -> UnsupportedOperationError:
    """The error for a type that partition columns cannot have."""
    name = type_name(data_type)
    return UnsupportedOperationError(f"A column of type {name} cannot partition a table.", type=name)
