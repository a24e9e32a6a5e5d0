"""Bounds of a column's values as writers record them, made as wide as the values may really be.

Writers cut timestamps to milliseconds, their offsets to minutes and long strings to a prefix, write a float by its shortest
text, and some take decimals through a double. A bound that is narrower than the values loses rows, so each is widened by what
its kind of value can have lost; a bound that lost nothing stays as it is.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.schema import DataType, DecimalType, PrimitiveType

_MILLISECOND_MICROS = 1_000
_MINUTE_MICROS = 60_000_000
_WHOLE_MINUTE_OFFSETS = 63_676_800_000_000  # 1972-01-08: from here on no zone is off UTC by a part of a minute
_REPLACEMENT = "\ufffd"
_LAST_CHARACTER = "\U0010ffff"


def widen(bounds: pa.Array, data_type: DataType, side: int) -> pa.Array:
    """Bounds of one leaf, typed as its rows, widened; null is unknown. side: -1 for minima, 1 for maxima."""
    match data_type:
        case PrimitiveType("timestamp"):
            return _as_if_without_seconds(_add_micros(bounds, side * _MILLISECOND_MICROS), side)
        case PrimitiveType("timestamp_ntz"):
            return _add_micros(bounds, side * _MILLISECOND_MICROS)
        case PrimitiveType("float"):
            return pc.if_else(pc.is_nan(bounds), pa.scalar(None, bounds.type), bounds)
        case PrimitiveType("double"):
            return _as_if_float(bounds, side)
        case PrimitiveType("string"):
            return _before_replacement(bounds, side)
        case DecimalType():
            return _as_if_double(bounds, side)
    return bounds


def _add_micros(times: pa.Array, micros: int) -> pa.Array:
    """Shifted by micros; null where that leaves the range of the type."""
    values = times.cast(pa.int64())
    limit = 2**63 - 1 - abs(micros)
    inside = pc.and_(pc.less_equal(values, limit), pc.greater_equal(values, -limit))
    return pc.add(pc.if_else(inside, values, pa.scalar(None, pa.int64())), micros).cast(times.type)


def _as_if_without_seconds(times: pa.Array, side: int) -> pa.Array:
    """Old instants widened by a minute: a text in local time gives hours and minutes of its offset, and leaves out seconds."""
    old = pc.less(times.cast(pa.int64()), _WHOLE_MINUTE_OFFSETS)
    return pc.if_else(old, _add_micros(times, side * _MINUTE_MICROS), times) if pc.any(old).as_py() else times


def _as_if_float(doubles: pa.Array, side: int) -> pa.Array:
    """Bounds of a double column that may have been a float column when the file was written (type widening).

    Then the text is the shortest one of the float, 0.1 for 0.10000000149: the nearest float is a bound as well.
    """
    values = doubles.to_numpy(zero_copy_only=False)  # nulls become NaN
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = values.astype(np.float32).astype(np.float64)
    nearest = np.where(np.isfinite(nearest), nearest, values)
    return pa.array(np.fmin(values, nearest) if side < 0 else np.fmax(values, nearest), pa.float64(), from_pandas=True)


def _before_replacement(texts: pa.Array, side: int) -> pa.Array:
    """U+FFFD stands where a text has bytes that are no UTF-8, which may sort anywhere; and some writers end a cut maximum with
    it, though there are characters above. The bound is that of all texts that begin with what is before."""
    if not pc.any(pc.match_substring(texts, _REPLACEMENT)).as_py():
        return texts
    return pc.replace_substring_regex(texts, f"(?s){_REPLACEMENT}.*", _LAST_CHARACTER if side > 0 else "")


def _as_if_double(decimals: pa.Array, side: int) -> pa.Array:
    """Decimal bounds of more than 15 digits, which some writers take through a double: widened by what that can lose.

    In units of the last place u = high * 2^64 + low becomes u + side * ((|high| + 1) << 14), more than u / 2^52.
    """
    kind = decimals.type
    if kind.precision <= 15:
        return decimals
    exact = pa.scalar(Decimal(10**15).scaleb(-kind.scale), kind)
    rounded = pc.greater(pc.abs(decimals), exact)
    if not pc.any(rounded).as_py():
        return decimals
    start = decimals.offset
    units = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)[start : start + len(decimals)]
    low, high = units[:, 0].astype(np.uint64), units[:, 1]
    magnitude = np.abs(high).astype(np.uint64) + np.uint64(1)
    step_low, step_high = magnitude << np.uint64(14), (magnitude >> np.uint64(50)).astype(np.int64)
    if side > 0:
        wide_low = low + step_low
        wide_high = high + step_high + (wide_low < low)
    else:
        wide_low = low - step_low
        wide_high = high - step_high - (wide_low > low)
    wide = np.stack([wide_low.astype(np.int64), wide_high], axis=1)
    return pc.if_else(
        rounded, pa.Array.from_buffers(kind, len(decimals), [None, pa.py_buffer(np.ascontiguousarray(wide))]), decimals
    )
