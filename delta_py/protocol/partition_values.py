"""Partition values: the text in the log <-> a typed value.

Null and the empty text are both null. Timestamps stand as `yyyy-MM-dd HH:mm:ss[.SSSSSS]` in the session's time zone or
as ISO 8601 with `T` and `Z` (UTC); binary stands as text whose characters are the bytes in UTF-8.
Protocol: Partition Value Serialization.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.protocol.schema import DataType, DecimalType, PrimitiveType, to_arrow_type, type_name

_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_INTEGER_TEXT = r"^[+-]?0*[0-9]{1,19}$"
_FLOAT_TEXT = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_DATE_TEXT = r"^\d{4}-\d\d-\d\d$"
_PLAIN_TIMESTAMP = r"^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?$"
_ZONED_TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)$"


def parse_partition_values(
    texts: pa.Array | pa.ChunkedArray, data_type: DataType, *, timezone: str = "UTC", errors: Literal["raise", "null"] = "raise"
) -> pa.Array:
    """Texts of one partition column -> typed values, vectorised over distinct texts.

    texts: strings, one a file. errors: what a text that is no value of the type gives; "null" is what readers do.
    Raises CorruptTableError naming the first such text; UnsupportedOperationError for a type that cannot partition.
    """
    flat = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = flat.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.string())
    present = pc.if_else(pc.equal(distinct, ""), pa.scalar(None, pa.string()), distinct)
    values = _parse_distinct(present, data_type, timezone)
    bad = pc.and_(pc.is_valid(present), pc.is_null(values))
    if errors == "raise" and pc.any(bad).as_py():
        text = present.filter(bad)[0].as_py()
        raise CorruptTableError(f"Partition value {text!r} is no {type_name(data_type)}. The log is damaged.", value=text)
    return values.take(encoded.indices)


def _parse_distinct(texts: pa.StringArray, data_type: DataType, timezone: str) -> pa.Array:
    """Typed values; null where the text is null or no value of the type."""
    target = to_arrow_type(data_type)
    match data_type:
        case PrimitiveType("string"):
            return texts
        case PrimitiveType("binary"):
            return texts.cast(target)
        case PrimitiveType("boolean"):
            lowered = pc.utf8_lower(texts)
            known = pc.is_in(lowered, value_set=pa.array(["true", "false"]))
            return pc.if_else(known, pc.equal(lowered, "true"), pa.scalar(None, target))
        case PrimitiveType(name) if name in _INTEGER_BITS:
            return _each(texts, _INTEGER_TEXT, target, lambda text: _integer(text, _INTEGER_BITS[name]))
        case PrimitiveType("float" | "double"):
            return _floats(texts).cast(target, safe=False)
        case DecimalType(precision, scale):
            return _each(texts, _FLOAT_TEXT, target, lambda text: _decimal(text, precision, scale))
        case PrimitiveType("date"):
            return _each(texts, _DATE_TEXT, target, date.fromisoformat)
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return _timestamps(texts, target, timezone if data_type == PrimitiveType("timestamp") else "UTC")
        case PrimitiveType("void"):
            return pa.nulls(len(texts))
    raise UnsupportedOperationError(f"A column of type {type_name(data_type)} cannot partition a table.", type=type_name(data_type))


def _each(texts: pa.StringArray, pattern: str, target: pa.DataType, parse: Any) -> pa.Array:
    """One call for each distinct text that has the right shape."""
    shaped = pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string())).to_pylist()
    values = []
    for text in shaped:
        try:
            values.append(None if text is None else parse(text))
        except (ValueError, ArithmeticError):
            values.append(None)
    return pa.array(values, target)


def _integer(text: str, bits: int) -> int | None:
    value = int(text)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """The number at the column's scale; null when it has too many digits for it."""
    value = Decimal(text)
    rounded = round(value, scale)
    return rounded if rounded == value and len(rounded.as_tuple().digits) <= precision else None


def _floats(texts: pa.StringArray) -> pa.Array:
    special = {"nan": math.nan, "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf}
    numbers = _each(texts, _FLOAT_TEXT, pa.float64(), float)
    named = pa.array([None if text is None else special.get(text.lower()) for text in texts.to_pylist()], pa.float64())
    return pc.coalesce(numbers, named)


def _timestamps(texts: pa.StringArray, target: pa.DataType, timezone: str) -> pa.Array:
    normal = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d)", r"\1T\2")
    normal = pc.replace_substring_regex(normal, r"(\.\d{6})\d+", r"\1")
    plain = _each(normal, _PLAIN_TIMESTAMP, pa.timestamp("us"), datetime.fromisoformat)
    zoned = _each(normal, _ZONED_TIMESTAMP, pa.timestamp("us", "UTC"), lambda text: datetime.fromisoformat(text).astimezone(UTC))
    wall = pc.assume_timezone(plain, timezone, ambiguous="earliest", nonexistent="latest") if target.tz else plain
    return pc.coalesce(zoned.cast(pa.int64()), wall.cast(pa.int64())).cast(target)


def parse_partition_value(text: str | None, data_type: DataType, *, timezone: str = "UTC", errors: Literal["raise", "null"] = "raise") -> Any:
    """One text -> a Python value (datetimes of `timestamp` aware, in UTC); None for null and for the empty text."""
    return parse_partition_values(pa.array([text], pa.string()), data_type, timezone=timezone, errors=errors)[0].as_py()


def format_partition_value(value: Any, data_type: DataType) -> str | None:
    """A Python value -> the text for the log; timestamps in UTC as ISO 8601 with Z. None for null and for the empty text.

    Raises UnsupportedOperationError for a type that cannot partition.
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
        case PrimitiveType("float" | "double"):
            return _float_text(float(value))
        case DecimalType(_, scale):
            return format(round(Decimal(value), scale), "f")
        case PrimitiveType("date"):
            return str(value.isoformat())
        case PrimitiveType("timestamp"):
            return str(value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")).rjust(27, "0")
        case PrimitiveType("timestamp_ntz"):
            return str(value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds"))
    raise UnsupportedOperationError(f"A column of type {type_name(data_type)} cannot partition a table.", type=type_name(data_type))


def _binary_text(value: bytes) -> str | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError as error:
        raise UnsupportedOperationError("A binary partition value that is not UTF-8 text has no form in the log.") from error


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
