"""Arrow columns as JSON values, and as text cells.

Whole numbers and booleans do not change. Floats do not change either, except for "NaN", "Infinity" and "-Infinity". Decimals are
text with all their digits, dates `2024-01-31`, timestamps ISO 8601 in the requested zone (`2024-01-31T10:00:00.000000+00:00`;
without an offset for timestamp_ntz), bytes base64. Structs are objects; maps are objects if their keys are text, else lists of
{"key", "value"}.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.text_casts import decimal_text
from delta_py.types.zones import INSTANT, WALL_CLOCK, to_wall_clock
from pydelta_cli.formats.terminal_text import cell

_CLOCK_FORMAT = "%Y-%m-%dT%H:%M:%S"
_FAR_MICROS = 9 * 10**17  # about 28,500 years from 1970
_FAR_DAYS = 10**7  # about 27,400 years
_SPAN_DAYS = 146_097  # 400 years
_SPAN_MICROS = _SPAN_DAYS * 86_400_000_000


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def json_rows(batch: pa.RecordBatch | pa.Table, zone: str) -> Iterator[dict[str, Any]]:
    """One dictionary per row."""
    names = batch.schema.names
    return (dict(zip(names, row, strict=True)) for row in zip(*json_columns(batch, zone), strict=True))


def json_columns(batch: pa.RecordBatch | pa.Table, zone: str) -> list[list[Any]]:
    return [json_values(_whole(column), zone) for column in batch.columns]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def json_values(array: pa.Array, zone: str) -> list[Any]:
    """The values of an array, of any type that a table may have. zone: of timestamps."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return json_values(array.dictionary_decode(), zone)
    if pa.types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        children = [json_values(child, zone) for child in array.flatten()]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)] if children else [{}] * len(array)
        return _with_nulls(array, rows)
    if pa.types.is_map(kind):
        return _maps(array, zone)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _cut(array, json_values(array.flatten(), zone))
    return _plain_values(array, zone)


def text_columns(batch: pa.RecordBatch | pa.Table, zone: str) -> list[list[str | None]]:
    """Cells: text does not change, nested values are JSON, null is None."""
    return [text_cells(column, zone) for column in batch.columns]


def text_cells(column: pa.Array | pa.ChunkedArray, zone: str) -> list[str | None]:
    """As text_columns."""
    return [cell(value) for value in json_values(_whole(column), zone)]


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _cut(array: pa.Array, flat: list[Any]) -> list[Any]:
    """flat: the elements of all lists that are not null, in sequence."""
    lengths = pc.list_value_length(array).to_pylist()
    lists: list[Any] = []
    start = 0
    for length in lengths:
        lists.append(None if length is None else flat[start : start + length])
        start += length or 0
    return lists


def _maps(array: pa.Array, zone: str) -> list[Any]:
    """Objects for maps with text keys, and lists of {"key", "value"} for other maps."""
    entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    lists = json_values(entries, zone)
    if not pa.types.is_string(array.type.key_type):
        return lists
    return [None if entry is None else {pair["key"]: pair["value"] for pair in entry} for entry in lists]


def _plain_values(array: pa.Array, zone: str) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _timestamps(array, zone)
    if pa.types.is_date(kind):
        return _date_texts(array.cast(pa.date32())).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_decimal(kind):
        return decimal_text(array.cast(pa.decimal128(kind.precision, kind.scale)), kind.scale).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if value is None else base64.b64encode(value).decode() for value in array.to_pylist()]
    values: list[Any] = array.to_pylist()
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(array)).as_py():
        return [value if value is None or math.isfinite(value) else _odd(value) for value in values]
    return values


def _odd(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamps(array: pa.Array, zone: str) -> list[Any]:
    if array.type.tz is None:
        return _clock_texts(array.cast(WALL_CLOCK)).to_pylist()  # type: ignore[no-any-return]
    instants = array.cast(INSTANT)
    clocks = to_wall_clock(instants, zone)
    # The offset of the zone from UTC at each instant.
    seconds = pc.divide(pc.subtract(clocks.cast(pa.int64()), instants.cast(pa.int64())), 1_000_000)
    minutes, odd_seconds = _parts(pc.abs(seconds))
    hours, minutes = _parts(minutes)
    sign = pc.if_else(pc.less(seconds, 0), "-", "+")
    # Before standard time was introduced, the clocks of a place differed from UTC by seconds too.
    end = pc.if_else(pc.equal(odd_seconds, 0), "", pc.binary_join_element_wise(":", _two_digits(odd_seconds), ""))
    offset = pc.binary_join_element_wise(sign, _two_digits(hours), ":", _two_digits(minutes), end, "")
    text = pc.binary_join_element_wise(_clock_texts(clocks), offset, "")
    return text.to_pylist()  # type: ignore[no-any-return]


def _clock_texts(clocks: pa.Array) -> pa.Array:
    """`2024-01-31T10:00:00.000000`. pyarrow computes far years wrongly. So this shifts the time by a multiple of 400 years, which
    all have the same number of days, and corrects the year."""
    micros = clocks.cast(pa.int64())
    is_far = pc.or_(pc.less(micros, -_FAR_MICROS), pc.greater(micros, _FAR_MICROS)).fill_null(False)
    texts = pc.strftime(clocks, _CLOCK_FORMAT)
    if not is_far.true_count:
        return texts
    spans, near_micros = np.divmod(micros.filter(is_far).to_numpy(), _SPAN_MICROS)
    near_texts = pc.strftime(pa.array(near_micros).cast(WALL_CLOCK), _CLOCK_FORMAT)
    return pc.replace_with_mask(texts, is_far, _moved(near_texts, spans))


def _date_texts(dates: pa.Array) -> pa.Array:
    """`2024-01-31`; far years as in _clock_texts."""
    days = dates.cast(pa.int32()).cast(pa.int64())
    is_far = pc.or_(pc.less(days, -_FAR_DAYS), pc.greater(days, _FAR_DAYS)).fill_null(False)
    texts = dates.cast(pa.string())
    if not is_far.true_count:
        return texts
    spans, near_days = np.divmod(days.filter(is_far).to_numpy(), _SPAN_DAYS)
    near_texts = pa.array(near_days, pa.int32()).cast(pa.date32()).cast(pa.string())
    return pc.replace_with_mask(texts, is_far, _moved(near_texts, spans))


def _moved(texts: pa.Array, spans: np.ndarray[Any, Any]) -> pa.Array:
    """Texts that begin with a year of four digits, shifted by this many times 400 years."""
    years = pc.add(pc.utf8_slice_codeunits(texts, 0, 4).cast(pa.int64()), pa.array(spans * 400))
    return pc.binary_join_element_wise(years.cast(pa.string()), pc.utf8_slice_codeunits(texts, 4), "")


def _parts(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The quotient and the remainder of a division by 60."""
    sixties = pc.divide(numbers, 60)
    return sixties, pc.subtract(numbers, pc.multiply(sixties, 60))


def _two_digits(numbers: pa.Array) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), 2, "0")
