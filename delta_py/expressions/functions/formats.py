"""Dates and times by patterns such as `yyyy-MM-dd HH:mm:ss`: to text and from text.

Supported are y yyyy yy, M MM MMM MMMM, d dd, H HH, h hh a, m mm, s ss, S.., D DDD, E EEE EEEE (for parsing only y M d H m s S),
text in single quotes, and all characters that are not letters. Every other letter is refused by name. Years are 1 to 9999.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluation_errors import not_supported, shown
from delta_py.expressions.functions.calendar import DAY_NAMES, MONTH_NAMES
from delta_py.expressions.functions.function_types import Function, Operand, Signature, fixed
from delta_py.expressions.functions.text_growth import spend
from delta_py.expressions.text_casts import days_of
from delta_py.expressions.value_casts import raise_first, without_failures
from delta_py.types.schema import DATE, STRING, TIMESTAMP, DataType
from delta_py.types.zones import INSTANT, WALL_CLOCK

# Group 1: a run of one letter. Group 2: quoted text. Neither: other characters.
_ITEM = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_RESERVED_CHARACTERS = frozenset("[]{}#")

# ---------------------------------------------------------------- to text


def _pad_zeros(values: Any, width: int) -> Any:
    return pc.utf8_lpad(values.cast(pa.string()), width, "0")


def _fraction(values: Any, digits: int) -> Any:
    """The first 1 to 9 digits of the fraction of a second. The digits after the microseconds are 0."""
    micros = pc.add(pc.multiply(pc.millisecond(values), 1000), pc.microsecond(values))
    return pc.utf8_slice_codeunits(pc.utf8_rpad(_pad_zeros(micros, 6), 9, "0"), 0, digits)


def _hour_of_12(values: Any) -> Any:
    """The hour on a clock of 12 hours: 1 to 12."""
    hour = pc.hour(values)
    hour_of_12 = pc.if_else(pc.greater(hour, 12), pc.subtract(hour, 12), hour)
    return pc.if_else(pc.equal(hour_of_12, 0), 12, hour_of_12)


def _name_lookup(names: tuple[str, ...], width: int | None) -> Callable[[Any], Any]:
    """A function from positions to names. width: the number of letters to return of each name; None for the whole name."""
    table = pa.array([name[:width] for name in names])
    return lambda positions: table.take(positions)


def _field_text(letters: str, values: Any) -> Any:
    """The texts of the times for one run of equal pattern letters, such as `yyyy`."""
    match letters[0], len(letters):
        case "y", 1 | 4:
            return _pad_zeros(pc.year(values), len(letters))
        case "y", 2:
            return pc.utf8_slice_codeunits(_pad_zeros(pc.year(values), 4), 2, 4)
        case "M", 3 | 4:
            return _name_lookup(MONTH_NAMES, 3 if len(letters) == 3 else None)(pc.subtract(pc.month(values), 1))
        case "E", 1 | 2 | 3 | 4:
            return _name_lookup(DAY_NAMES, None if len(letters) == 4 else 3)(pc.day_of_week(values))
        case "S", count if count <= 9:
            return _fraction(values, count)
        case "D", 1 | 3:
            return _pad_zeros(pc.day_of_year(values), len(letters))
        case "h", 1 | 2:
            return _pad_zeros(_hour_of_12(values), len(letters))
        case "a", 1:
            return pc.if_else(pc.less(pc.hour(values), 12), "AM", "PM")
        case letter, 1 | 2 if letter in _FIELD_KERNELS:
            return _pad_zeros(_FIELD_KERNELS[letter](values), len(letters))
    raise not_supported(f"The pattern letters {letters} of a date")


_FIELD_KERNELS: dict[str, Callable[[Any], Any]] = {"M": pc.month, "d": pc.day, "H": pc.hour, "m": pc.minute, "s": pc.second}


def _pattern_parts(pattern: str) -> list[tuple[str, str]]:
    """The parts of the pattern in order: each is (letters, '') or ('', literal text), so `yyyy-MM` has ('yyyy', ''), ('', '-')
    and ('MM', ''). Raises ExpressionError for a quote that is not closed."""
    parts, position = [], 0
    while position < len(pattern):
        part = _ITEM.match(pattern, position)
        is_plain_text = part is not None and part[1] is None and part[2] is None
        if part is None or (is_plain_text and _RESERVED_CHARACTERS & set(part.group())):
            raise not_supported(f"The date pattern {shown(pattern)}")
        if part[1]:
            parts.append((part.group(), ""))
        else:
            quoted = part[2]  # empty for two quotes alone, which mean one quote
            parts.append(("", part.group() if quoted is None else quoted.replace("''", "'") or "'"))
        position = part.end()
    return parts


def _date_format(arguments: list[Any], result: DataType) -> Any:
    """The times as texts in the pattern. Raises ExpressionError for letters that are not supported, and for far years."""
    values, pattern = arguments
    if pattern is None:
        return pa.nulls(len(values), pa.string())
    years = pc.min_max(pc.year(values))
    if years["min"].is_valid and (years["min"].as_py() < 1 or years["max"].as_py() > 9999):
        raise not_supported("The text of a date before year 1 or after 9999")
    texts = [_field_text(letters, values) if letters else text for letters, text in _pattern_parts(pattern)]
    spend("date_format", len(values) * len(pattern.encode()))
    # The last part makes the text null if the value is null.
    return pc.binary_join_element_wise(*texts, pc.if_else(pc.is_valid(values), "", None), "")


def _format_signature(name: str, operands: Sequence[Operand]) -> Signature:
    signature = fixed(STRING, TIMESTAMP, STRING)(name, operands)
    if isinstance(operands[1].value, str):
        # Refuses unsupported letters when the expression is resolved, before there are rows.
        _date_format([pa.array([0], INSTANT), operands[1].value], STRING)
    return signature


# ---------------------------------------------------------------- from text

# For each letter and each number of it, the regular expression for the text of the field.
_FIELD_REGEXES = {"y": {4: r"[0-9]{4}"}, "S": {n: f"[0-9]{{{n}}}" for n in range(1, 10)}}
_FIELD_REGEXES |= {letter: {1: r"[0-9]{1,2}", 2: r"[0-9]{2}"} for letter in "MdHms"}


def _pattern_regex(pattern: str) -> str:
    """The regular expression for texts in the pattern, with each field in a group named by its letter."""
    parts: list[str] = []
    letters_before = ""
    for letters, text in _pattern_parts(pattern):
        field = _FIELD_REGEXES.get(letters[:1], {}).get(len(letters))
        if letters and (field is None or f"(?P<{letters[0]}>" in "".join(parts)):
            raise not_supported(f"Reading the letters {letters} of the date pattern {shown(pattern)}")
        # A single letter stands for one or two digits: if another field follows at once, its end is not known.
        if letters and letters_before and 1 in (len(letters), len(letters_before)):
            raise not_supported(f"The date pattern {shown(pattern)}, where fields of open length touch")
        parts.append(f"(?P<{letters[0]}>{field})" if letters else re.escape(text))
        letters_before = letters
    return "^" + "".join(parts) + r"\z"


def _wall_clocks(values: Any, pattern: str) -> Any:
    """Microseconds since 1970-01-01 as integers. Raises CANNOT_PARSE_TIMESTAMP for text that does not match the pattern."""
    regex = _pattern_regex(pattern)
    parts = pc.extract_regex(values, regex)
    names = [parts.type.field(position).name for position in range(parts.type.num_fields)]

    def field(letter: str, otherwise: int) -> Any:
        """The numbers of a field; `otherwise` if the pattern has no such field, or for null."""
        if letter not in names:
            return np.full(len(values), otherwise, np.int64)
        texts = pc.struct_field(parts, names.index(letter)).fill_null(str(otherwise))
        return texts.cast(pa.int64()).to_numpy(zero_copy_only=False)

    year, month, day = field("y", 1970), field("M", 1), field("d", 1)
    hour, minute, second = field("H", 0), field("m", 0), field("s", 0)
    digits = next((len(letters) for letters, _ in _pattern_parts(pattern) if letters[:1] == "S"), 6)
    micros = field("S", 0) * 10**6 // 10**digits
    is_leap_year = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    month_exists = (month >= 1) & (month <= 12)
    month_lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[np.where(month_exists, month, 0)]
    exists = month_exists & (day >= 1) & (day <= month_lengths + (is_leap_year & (month == 2))) & (year >= 1)
    exists &= (hour <= 23) & (minute <= 59) & (second <= 59)
    is_refused = pc.or_(pc.is_null(parts), pa.array(~exists))
    raise_first(is_refused, values, lambda value: _cannot_parse(value, pattern))
    seconds = days_of(year, np.where(month_exists, month, 1), day) * 86_400 + hour * 3600 + minute * 60 + second
    all_micros = np.where(exists, seconds * 1_000_000 + micros, 0)
    return pa.array(all_micros, pa.int64(), mask=pc.is_null(values).to_numpy(zero_copy_only=False))


def _cannot_parse(value: object, pattern: str) -> ExpressionError:
    return ExpressionError(
        f"The text {shown(str(value))} is not in the pattern {shown(pattern)}. Correct it, or use the function's try_ form.",
        error_class="CANNOT_PARSE_TIMESTAMP",
        sql_state="22007",
        value=shown(str(value)),
    )


def _parse_timestamps(arguments: list[Any], result: DataType) -> Any:
    """The wall clocks in the texts, as timestamps with the same fields in UTC."""
    values, pattern = arguments
    if pattern is None:
        return pa.nulls(len(values), INSTANT)
    return _wall_clocks(values, pattern).cast(INSTANT)


def _try_parse_timestamps(arguments: list[Any], result: DataType) -> Any:
    """The wall clocks in the texts, as _parse_timestamps returns them; null for a text that is not in the pattern."""
    values, pattern = arguments
    if pattern is None:
        return pa.nulls(len(values), INSTANT)
    return without_failures(lambda array: _wall_clocks(array, pattern), values).cast(INSTANT)


def _parse_date(arguments: list[Any], result: DataType) -> Any:
    return _parse_timestamps(arguments, result).cast(WALL_CLOCK).cast(pa.date32(), safe=False)


def _parse_signature(result: DataType) -> Callable[[str, Sequence[Operand]], Signature]:
    def signature(name: str, operands: Sequence[Operand]) -> Signature:
        resolved = fixed(result, STRING, STRING)(name, operands)
        if isinstance(operands[1].value, str):
            _pattern_regex(operands[1].value)  # refuses unsupported letters when the expression is resolved
        return resolved

    return signature


_SECOND_ARGUMENT = frozenset({1})

# resolve.py converts to_timestamp, try_to_timestamp and to_date with a pattern to parse_timestamp, try_parse_timestamp and
# parse_date: these return wall clocks, not yet instants of the session's time zone.
FORMATS: dict[str, Function] = {
    "date_format": Function(_format_signature, _date_format, constants=_SECOND_ARGUMENT, can_fail=True),
    "parse_timestamp": Function(_parse_signature(TIMESTAMP), _parse_timestamps, constants=_SECOND_ARGUMENT, can_fail=True),
    "try_parse_timestamp": Function(_parse_signature(TIMESTAMP), _try_parse_timestamps, constants=_SECOND_ARGUMENT),
    "parse_date": Function(_parse_signature(DATE), _parse_date, constants=_SECOND_ARGUMENT, can_fail=True),
}
