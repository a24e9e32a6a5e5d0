"""Widen the recorded minima and maxima of a column so that they include all possible values.

Writers cut timestamps to milliseconds, their offsets to minutes, and long strings to a prefix. Some writers write the shortest
text of a float, and some convert decimals to double. Each bound is widened by the amount that its type can have lost.
Some writers store bounds in a narrower type than the column's. They replace a value that does not fit by the limit of the narrow
type: deltalake writes 9223372036854775807 for every larger DECIMAL(20,0). Such a limit does not bound the real values, so it
counts as unknown.
A bound that is narrower than the values would lose rows. A bound that lost nothing does not change.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.types.arrow_values import FALSE, array, from_numpy, scalar
from delta_py.types.schema import DataType, DecimalType, PrimitiveType

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_MILLISECOND_MICROS = 1_000
_SECOND_MICROS = 1_000_000
_MINUTE_MICROS = 60_000_000
_DAY_SECONDS = 86_400
_FIRST_WHOLE_MINUTE_MICROS = 63_676_800_000_000  # 1972-01-08: from then on, all zones differ from UTC by whole minutes

_INTEGERS = {"byte": np.int8, "short": np.int16, "integer": np.int32, "long": np.int64}
_FLOATS = {"float": np.float32, "double": np.float64}
_ALL_BITS = 128  # more bits than any integer type has: with this, _integer_limits returns the limits of all of them
_STORED_BITS = (32, 64)  # sizes of integers: Parquet has no others
_STORED_DIGITS = 9  # of the shortest decimal that is stored as an integer
# A bound may be the shortest text of a float, which no double equals exactly.
_FLOAT_LIMITS = (float(np.finfo(np.float32).max), float(str(np.finfo(np.float32).max)), 2.0**31)
_DOUBLE_LIMIT = float(np.finfo(np.float64).max)
_ROUNDING_SHARE = 2.0**-50  # of the number: more than a decimal can lose by conversion to a double
# For each side, seconds since 1970: the first and last times in 64-bit nanoseconds and in 32-bit seconds.
_LIMIT_SECONDS = {-1: (-9_223_372_037, -(2**31)), 1: (9_223_372_036, 2**31 - 1)}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01, 9999-12-31: the years with four digits

_REPLACEMENT = "\ufffd"
_LAST_CHARACTER = "\U0010ffff"
_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000
_USUAL_PREFIX = 32  # the length to which writers cut strings, unless a table property changes it
# Older versions of delta-spark cut a character above U+FFFF in two and write the first half as a question mark.
_REPLACED_END = f"(?s)\\??{_REPLACEMENT}.*"


def widen(bounds: pa.Array, data_type: DataType, side: int) -> pa.Array:
    """The bounds of one leaf, widened by what their writers may have lost. bounds: in the type of the leaf's rows; null is
    unknown.
    side: -1 for minima, 1 for maxima. A bound that cannot be trusted becomes null."""
    bounds = _null_where(_find_narrow_limits(bounds, data_type, side), bounds)
    match data_type:
        case PrimitiveType("timestamp"):
            return _widen_old_times(_add_micros(bounds, side * _MILLISECOND_MICROS), side)
        case PrimitiveType("timestamp_ntz"):
            return _add_micros(bounds, side * _MILLISECOND_MICROS)
        case PrimitiveType("double"):
            return _widen_to_float(bounds, side)
        case PrimitiveType("string"):
            return _cut_before_replacement(bounds) if side < 0 else _widen_cut_texts(bounds)
        case DecimalType():
            return _widen_rounded_decimals(bounds, side)
    return bounds


def without_calendar_limits(bounds: pa.Array, side: int) -> pa.Array:
    """Replace bounds that are the first or last date or timestamp with a four-digit year by null; other bounds do not change.

    A writer whose calendar has four-digit years writes this bound for every value beyond it. People also choose exactly these
    values for "never", so the bounds are not unknown in general: they only must not be used to skip files. bounds: from widen.
    """
    if pa.types.is_date32(bounds.type):
        first_limit, last_limit, numbers = _FIRST_DAY, _LAST_DAY, _stored_numbers(bounds, np.int32)
    elif pa.types.is_timestamp(bounds.type):
        first_limit, end = (day * _DAY_SECONDS * _SECOND_MICROS for day in (_FIRST_DAY, _LAST_DAY + 1))
        # Writers cut the last time of 9999 to milliseconds.
        last_limit, numbers = end - _MILLISECOND_MICROS, _stored_numbers(bounds, np.int64)
    else:
        return bounds
    return _null_where(numbers <= first_limit if side < 0 else numbers >= last_limit, bounds)


def _null_where(unknown: Mask | None, bounds: pa.Array) -> pa.Array:
    """The bounds with null where `unknown` is true; None changes nothing."""
    if unknown is None or not unknown.any():
        return bounds
    return pc.if_else(from_numpy(unknown), pa.nulls(1, bounds.type)[0], bounds)


def _stored_numbers(values: pa.Array, dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """The stored values of the array as numbers of a numpy type, without a copy. Null rows have arbitrary values."""
    item_bytes = np.dtype(dtype).itemsize
    buffer = values.buffers()[1]
    items_per_value = values.type.bit_width // 8 // item_bytes  # two for a decimal
    start, end = values.offset * items_per_value, (values.offset + len(values)) * items_per_value
    if buffer is None:  # the array has no rows
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, dtype, end)[start:]  # the buffer may be longer, and may end within an item


# ---------------------------------------------------------------- limits of narrower types


def _find_narrow_limits(bounds: pa.Array, data_type: DataType, side: int) -> Mask | None:
    """Which bounds are the limit of a narrower type than the column's, such as 2147483647 in a BIGINT column: they do not bound
    the values. None if the type has no such limits. The result is arbitrary where a bound is null. side: as for widen; minima are
    compared with lower limits, maxima with upper limits."""
    match data_type:
        case PrimitiveType(name) if name in _INTEGERS:
            numbers = _stored_numbers(bounds, _INTEGERS[name])
            return np.isin(numbers, [side * limit for limit in _integer_limits(numbers.itemsize * 8, side)])
        case PrimitiveType(name) if name in _FLOATS:
            # A number that is too large for a float becomes infinite.
            numbers = _stored_numbers(bounds, _FLOATS[name]).astype(np.float64)
            is_finite: Mask = np.isfinite(numbers)
            return ~is_finite | _is_limit(side * numbers, _float_limits(side))
        case DecimalType(precision, scale):
            return _is_limit(side * _unscaled_doubles(bounds), _decimal_limits(precision, scale, side))
        case PrimitiveType("date"):
            return np.isin(_stored_numbers(bounds, np.int32), [second // _DAY_SECONDS for second in _LIMIT_SECONDS[side]])
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return np.isin(_stored_numbers(bounds, np.int64) // _SECOND_MICROS, _LIMIT_SECONDS[side])
    return None


def _is_limit(numbers: Doubles, limits: Doubles) -> Mask:
    """The mask of numbers that equal a limit, or that equal it after a conversion to double, which rounds. numbers: positive if
    they are on the side that is tested. limits: positive and sorted."""
    if not len(limits):
        return np.zeros(len(numbers), np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        low_ends, high_ends = numbers * (1 - _ROUNDING_SHARE), numbers * (1 + _ROUNDING_SHARE)
    positions = np.searchsorted(limits, low_ends)  # of the smallest limit that is not below the number
    is_limit: Mask = (positions < len(limits)) & (limits[np.minimum(positions, len(limits) - 1)] <= high_ends)
    return is_limit


def _integer_limits(bits: int, side: int) -> list[int]:
    """The absolute values of the limits of the stored integer types with fewer bits. For minima, these are two for each type,
    because some writers use the negative maximum as the minimum."""
    powers = [2 ** (narrow_bits - 1) for narrow_bits in _STORED_BITS if narrow_bits < bits]
    return [power - 1 for power in powers] + (powers if side < 0 else [])


@cache
def _float_limits(side: int) -> Doubles:
    """The absolute limits of integers, floats and doubles, sorted."""
    return _sorted_doubles([*_integer_limits(_ALL_BITS, side), *_FLOAT_LIMITS, _DOUBLE_LIMIT])


@cache
def _decimal_limits(precision: int, scale: int, side: int) -> Doubles:
    """The unscaled values that writers may store for a decimal that does not fit their type, sorted: the limits of integer types
    as whole numbers, the limits of integer types as unscaled values, and the greatest decimals with fewer digits."""
    integers = _integer_limits(_ALL_BITS, side)
    shorter_decimals = [10**digits - 1 for digits in range(_STORED_DIGITS, precision)]
    limits = [*(i * 10**scale for i in integers), *integers, *shorter_decimals]
    return _sorted_doubles([limit for limit in limits if limit < 10**precision])


def _sorted_doubles(limits: Iterable[float]) -> Doubles:
    return np.unique(np.array([float(limit) for limit in limits]))


def _unscaled_doubles(decimals: pa.Array) -> Doubles:
    """The unscaled values of decimals, rounded to doubles. A decimal is stored as two halves of 64 bits, the low one first."""
    low, high = _stored_numbers(decimals, np.int64).reshape(-1, 2).T
    is_negative = high < 0
    # The complement of a negative number -n is n - 1, and each half can be complemented alone. The 1 is added again below.
    low, high = (np.where(is_negative, ~half, half) for half in (low, high))
    magnitude = high * 2.0**64 + low.view(np.uint64) + is_negative
    return np.where(is_negative, -magnitude, magnitude)


# ---------------------------------------------------------------- widening by possible losses


def _add_micros(times: pa.Array, micros: int) -> pa.Array:
    """Shift times by micros. Null if the result is outside the range of the type."""
    values = times.cast(pa.int64())
    limit = 2**63 - 1 - abs(micros)
    is_inside = pc.and_(pc.less_equal(values, limit), pc.greater_equal(values, -limit))
    return pc.add(pc.if_else(is_inside, values, pa.scalar(None, pa.int64())), micros).cast(times.type)


def _widen_old_times(times: pa.Array, side: int) -> pa.Array:
    """Widen instants before 1972-01-08 by a minute: a text in local time has the hours and minutes of its offset, but not the
    seconds, and offsets had seconds until then."""
    is_old = pc.less(times.cast(pa.int64()), _FIRST_WHOLE_MINUTE_MICROS)
    return pc.if_else(is_old, _add_micros(times, side * _MINUTE_MICROS), times) if pc.any(is_old).as_py() else times


def _widen_to_float(doubles: pa.Array, side: int) -> pa.Array:
    """Widen the bounds of a double column that may have been a float column when the file was written (type widening).

    Then the text may be the shortest text of a float, such as 0.1 for 0.10000000149. So the bound includes the nearest float too.
    """
    values = doubles.to_numpy(zero_copy_only=False)  # nulls become NaN
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = values.astype(np.float32).astype(np.float64)
    nearest = np.where(np.isfinite(nearest), nearest, values)  # a float column cannot have contained such a large number
    return pa.array(np.fmin(values, nearest) if side < 0 else np.fmax(values, nearest), pa.float64(), from_pandas=True)


def _cut_before_replacement(minima: pa.Array) -> pa.Array:
    """Cut minima before U+FFFD. It replaces bytes that are not valid UTF-8, and these may sort anywhere."""
    if not pc.any(pc.match_substring(minima, _REPLACEMENT)).as_py():
        return minima
    return pc.replace_substring_regex(minima, f"(?s){_REPLACEMENT}.*", "")


def _widen_cut_texts(maxima: pa.Array) -> pa.Array:
    """Replace each maximum that may be a cut text by the first text after all texts with this prefix; null if there is none.

    A maximum may be cut if it has the length to which writers cut, ends with the highest character, or contains U+FFFD. Writers
    append one of these characters to a maximum that they cut, although the text may continue with higher characters. U+FFFD also
    replaces bytes that are not valid UTF-8.
    """
    has_replacement = pc.match_substring(maxima, _REPLACEMENT)
    is_cut = pc.or_(has_replacement, pc.ends_with(maxima, _LAST_CHARACTER))
    usual_prefix = scalar(_USUAL_PREFIX, pa.int32())
    if pc.any(pc.greater_equal(pc.binary_length(maxima), usual_prefix)).as_py():
        is_cut = pc.or_(is_cut, pc.equal(pc.utf8_length(maxima), usual_prefix))
    is_cut = is_cut.fill_null(FALSE)
    if not is_cut.true_count:
        return maxima
    prefixes = maxima.filter(is_cut)
    if pc.any(has_replacement).as_py():
        prefixes = pc.replace_substring_regex(prefixes, _REPLACED_END, "")
    return pc.replace_with_mask(maxima, is_cut, _texts_after(prefixes))


def _texts_after(prefixes: pa.Array) -> pa.Array:
    """For each prefix, the first text after all texts with this prefix; null if there is none."""
    try:
        prefixes = pc.utf8_rtrim(prefixes, _LAST_CHARACTER)  # no character sorts after this one
        # Encoded, so that Python looks only once at each distinct character.
        last_characters = pc.utf8_slice_codeunits(prefixes, -1).dictionary_encode()
        beginnings = pc.utf8_slice_codeunits(prefixes, 0, -1)
    except pa.ArrowInvalid:  # a struct of statistics may have bytes that are not valid UTF-8
        return pa.nulls(len(prefixes), pa.string())
    next_characters = array([_next_character(character) for character in last_characters.dictionary.to_pylist()], pa.string())
    return pc.binary_join_element_wise(beginnings, next_characters.take(last_characters.indices), "")


def _next_character(character: str) -> str | None:
    """The next character; None for an empty text. character: not the last character of Unicode."""
    if not character:
        return None
    code = ord(character) + 1
    return chr(_AFTER_SURROGATES if code == _FIRST_SURROGATE else code)


def _widen_rounded_decimals(decimals: pa.Array, side: int) -> pa.Array:
    """Widen decimal bounds of more than 15 digits, because some writers convert them to double and back. A double holds only 15
    digits of a decimal exactly.

    In units of the last place u = high * 2^64 + low becomes u + side * ((|high| + 1) << 14), more than u / 2^52.
    """
    decimal_type = decimals.type
    if decimal_type.precision <= 15:
        return decimals
    largest_exact = pa.scalar(Decimal(10**15).scaleb(-decimal_type.scale), decimal_type)
    may_be_rounded = pc.greater(pc.abs(decimals), largest_exact)
    if not pc.any(may_be_rounded).as_py():
        return decimals
    start = decimals.offset
    units = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)[start : start + len(decimals)]
    low, high = units[:, 0].astype(np.uint64), units[:, 1]  # the halves of each stored number of 128 bits
    magnitude = np.abs(high).astype(np.uint64) + np.uint64(1)
    step_low, step_high = magnitude << np.uint64(14), (magnitude >> np.uint64(50)).astype(np.int64)
    if side > 0:
        wide_low = low + step_low
        wide_high = high + step_high + (wide_low < low)  # the carry: the sum of the low halves was cut to 64 bits
    else:
        wide_low = low - step_low
        wide_high = high - step_high - (wide_low > low)  # the borrow
    widened_halves = np.stack([wide_low.astype(np.int64), wide_high], axis=1)
    widened = pa.Array.from_buffers(decimal_type, len(decimals), [None, pa.py_buffer(np.ascontiguousarray(widened_halves))])
    return pc.if_else(may_be_rounded, widened, decimals)  # null where a decimal is null
