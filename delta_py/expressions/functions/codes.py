"""Functions between bytes, their codes and text: hex, unhex, bin, ascii, chr, base64, crc32."""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.coercion import is_numeric
from delta_py.expressions.evaluation_errors import mismatch
from delta_py.expressions.functions.function_types import Function, Operand, Signature, check_count, fixed
from delta_py.expressions.functions.text_growth import spend
from delta_py.expressions.value_casts import with_validity_of
from delta_py.types.schema import BINARY, INTEGER, LONG, STRING, VOID, DataType

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def _content(values: Any) -> tuple[_Bytes, np.ndarray[Any, np.dtype[np.int64]]]:
    """All bytes of an array of text or bytes, and the offsets of its rows in them (from 0); no bytes under null."""
    values = values.cast(pa.binary()).fill_null(b"")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = values.buffers()[2]
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    return content, offsets - offsets[0]


def _texts(content: Any, offsets: Any, source: Any, arrow_type: pa.DataType) -> Any:
    """An array of text or bytes from the form that _content returns, null where the source is null."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), pa.py_buffer(content.tobytes())]
    return with_validity_of(pa.Array.from_buffers(arrow_type, len(offsets) - 1, buffers), source)


# ---------------------------------------------------------------- hex and bin


def _hex_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, 1)
    data_type = operands[0].data_type
    if data_type in (STRING, BINARY):
        return Signature((data_type,), STRING)
    if is_numeric(data_type) or data_type == VOID:
        return Signature((LONG,), STRING)
    raise mismatch(name, data_type)


def _hex(arguments: list[Any], result: DataType) -> Any:
    """The digits of a number, or two digits for each byte of text or bytes."""
    values = arguments[0]
    if pa.types.is_integer(values.type):
        return _in_base(values, 4)
    content, offsets = _content(values)
    spend("hex", content.size)
    digits = np.stack([_DIGITS[content >> 4], _DIGITS[content & 15]], axis=1).ravel()
    return _texts(digits, offsets * 2, values, pa.string())


def _in_base(values: Any, bits: int) -> Any:
    """The digits of longs as if unsigned, without leading zeros. bits: of one digit, 4 for hex and 1 for bin."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    shifts = np.arange(64 - bits, -1, -bits, dtype=np.uint64)
    digits = _DIGITS[((numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)).astype(np.int64)]
    width = len(shifts)
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * width
    padded = _texts(digits.ravel(), offsets, values, pa.string())
    return pc.replace_substring_regex(padded, "^0+(.)", r"\1")


def _unhex(arguments: list[Any], result: DataType) -> Any:
    """Null for text that is not hexadecimal; an odd number of digits gets a leading zero."""
    values = arguments[0]
    values = pc.if_else(pc.match_substring_regex(values, r"^[0-9A-Fa-f]*\z"), values, None)
    odd = pc.equal(pc.bit_wise_and(pc.binary_length(values), 1), 1)
    even = pc.binary_join_element_wise(pc.if_else(odd, "0", ""), values, "")
    content, offsets = _content(even)
    # In ASCII the digits 0 to 9 are 48 to 57, and a to f are 97 to 102. The bit 0x20 makes a letter lower-case.
    lower = content | 0x20
    codes = np.where(content <= 57, content - 48, lower - 87).astype(np.uint8)
    return _texts((codes[::2] << 4) | codes[1::2], offsets // 2, values, pa.binary())


def _bin(arguments: list[Any], result: DataType) -> Any:
    return _in_base(arguments[0], 1)


# ---------------------------------------------------------------- base64


def _base64(arguments: list[Any], result: DataType) -> Any:
    values = arguments[0]
    content, offsets = _content(values)
    spend("base64", content.size)  # a third more, and a copy
    content_bytes, ends = content.tobytes(), offsets.tolist()
    texts = [binascii.b2a_base64(content_bytes[start:end], newline=False) for start, end in pairwise(ends)]
    return with_validity_of(pa.array(texts, pa.binary()).view(pa.string()), values)


# ---------------------------------------------------------------- codes of characters


def _ascii(arguments: list[Any], result: DataType) -> Any:
    """The code point of the first character; 0 for empty text."""
    values = arguments[0]
    content, offsets = _content(pc.utf8_slice_codeunits(values, 0, 1))
    padded = np.concatenate([content, np.zeros(4, np.uint8)]).astype(np.int32)
    first, lengths = offsets[:-1], np.diff(offsets)
    # UTF-8: the first byte has the highest bits of the code point, and each byte after it 6 more.
    tail = [padded[first + place] & 0x3F for place in range(4)]
    head = padded[first]
    codes = np.select(
        [lengths == 0, lengths == 1, lengths == 2, lengths == 3],
        [
            np.zeros(len(head), np.int32),
            head,
            ((head & 0x1F) << 6) | tail[1],
            ((head & 0x0F) << 12) | (tail[1] << 6) | tail[2],
        ],
        ((head & 0x07) << 18) | (tail[1] << 12) | (tail[2] << 6) | tail[3],
    )
    return with_validity_of(pa.array(codes.astype(np.int32)), values)


@lru_cache(maxsize=1)
def _characters() -> Any:
    """The 256 characters that `chr` can return, and at position 256 its result for negative numbers."""
    return pa.array([chr(code) for code in range(256)] + [""])


def _chr(arguments: list[Any], result: DataType) -> Any:
    """The character with the code modulo 256; '' for a negative number."""
    values = arguments[0]
    place = pc.if_else(pc.less(values, 0), 256, pc.bit_wise_and(values, 255))
    return _characters().take(place)


# ---------------------------------------------------------------- crc32


def _crc_table() -> Any:
    """How each value of a byte changes the state of a CRC-32, for the polynomial of zlib."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


_CRC_TABLE = _crc_table()
_LONG_BYTES = 256


def _crc32(arguments: list[Any], result: DataType) -> Any:
    """Computes one position after the other, each for all rows that have a byte at this position. If a value has more than
    _LONG_BYTES bytes, zlib computes row by row instead."""
    values = arguments[0]
    content, offsets = _content(values)
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(lengths) and lengths.max() > _LONG_BYTES:
        sums = [zlib.crc32(content[start : start + length].tobytes()) for start, length in zip(starts, lengths, strict=True)]
        return with_validity_of(pa.array(sums, pa.int64()), values)
    # Values that still have a byte at a place come first in this order.
    order = np.argsort(-lengths, kind="stable")
    longest_first = lengths[order]
    state = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    for place in range(int(longest_first[0]) if len(lengths) else 0):
        rows = order[: np.searchsorted(-longest_first, -place, side="left")]
        state[rows] = _CRC_TABLE[(state[rows] ^ content[starts[rows] + place]) & 0xFF] ^ (state[rows] >> np.uint32(8))
    return with_validity_of(pa.array((state ^ np.uint32(0xFFFFFFFF)).astype(np.int64)), values)


BYTES: dict[str, Function] = {
    "hex": Function(_hex_signature, _hex),
    "unhex": Function(fixed(BINARY, STRING), _unhex),
    "bin": Function(fixed(STRING, LONG), _bin),
    "base64": Function(fixed(STRING, BINARY), _base64),
    "ascii": Function(fixed(INTEGER, STRING), _ascii),
    "chr": Function(fixed(STRING, LONG), _chr),
    "crc32": Function(fixed(LONG, BINARY), _crc32),
}
