"""Functions between bytes, their codes and text: hex, unhex, bin, ascii, chr, base64, crc32.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

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


def _bytes_and_offsets(values: Any) -> tuple[_Bytes, np.ndarray[Any, np.dtype[np.int64]]]:
    """All bytes of an array of text or bytes, and the offsets of its rows in them (from 0); no bytes under null."""
    values = values.cast(pa.binary()).fill_null(b"")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = values.buffers()[2]
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    return content, offsets - offsets[0]


def _from_bytes_and_offsets(content: Any, offsets: Any, source: Any, arrow_type: pa.DataType) -> Any:
    """An array of text or bytes from the form that _bytes_and_offsets returns, null where the source is null."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), pa.py_buffer(content.tobytes())]
    return with_validity_of(pa.Array.from_buffers(arrow_type, len(offsets) - 1, buffers), source)


# ---------------------------------------------------------------- hex and bin


def _hex_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """hex of a text, of bytes, or of a number, which is cast to long."""
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
        return _digits_of_longs(values, 4)
    content, offsets = _bytes_and_offsets(values)
    spend("hex", content.size)
    digit_bytes = np.stack([_DIGITS[content >> 4], _DIGITS[content & 15]], axis=1).ravel()
    return _from_bytes_and_offsets(digit_bytes, offsets * 2, values, pa.string())


def _digits_of_longs(values: Any, bits: int) -> Any:
    """The digits of longs as if unsigned, without leading zeros. bits: of one digit, 4 for hex and 1 for bin."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    shifts = np.arange(64 - bits, -1, -bits, dtype=np.uint64)
    digits = _DIGITS[((numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)).astype(np.int64)]
    width = len(shifts)
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * width
    padded = _from_bytes_and_offsets(digits.ravel(), offsets, values, pa.string())
    return pc.replace_substring_regex(padded, "^0+(.)", r"\1")


def _unhex(arguments: list[Any], result: DataType) -> Any:
    """Null for text that is not hexadecimal; an odd number of digits gets a leading zero."""
    values = arguments[0]
    values = pc.if_else(pc.match_substring_regex(values, r"^[0-9A-Fa-f]*\z"), values, None)
    is_odd = pc.equal(pc.bit_wise_and(pc.binary_length(values), 1), 1)
    even_digits = pc.binary_join_element_wise(pc.if_else(is_odd, "0", ""), values, "")
    content, offsets = _bytes_and_offsets(even_digits)
    # In ASCII the digits 0 to 9 are 48 to 57, and a to f are 97 to 102. The bit 0x20 makes a letter lower-case. So `a`
    # minus 87 is 10.
    lower_case = content | 0x20
    codes = np.where(content <= 57, content - 48, lower_case - 87).astype(np.uint8)
    return _from_bytes_and_offsets((codes[::2] << 4) | codes[1::2], offsets // 2, values, pa.binary())


def _bin(arguments: list[Any], result: DataType) -> Any:
    return _digits_of_longs(arguments[0], 1)


# ---------------------------------------------------------------- base64


def _base64(arguments: list[Any], result: DataType) -> Any:
    values = arguments[0]
    content, offsets = _bytes_and_offsets(values)
    spend("base64", content.size)  # the result is a third longer, and exists twice for a moment
    content_bytes, ends = content.tobytes(), offsets.tolist()
    texts = [binascii.b2a_base64(content_bytes[start:end], newline=False) for start, end in pairwise(ends)]
    return with_validity_of(pa.array(texts, pa.binary()).view(pa.string()), values)


# ---------------------------------------------------------------- codes of characters


def _ascii(arguments: list[Any], result: DataType) -> Any:
    """The code point of the first character; 0 for empty text."""
    values = arguments[0]
    content, offsets = _bytes_and_offsets(pc.utf8_slice_codeunits(values, 0, 1))
    padded = np.concatenate([content, np.zeros(4, np.uint8)]).astype(np.int32)
    starts, lengths = offsets[:-1], np.diff(offsets)
    # UTF-8: the first byte has the highest bits of the code point, and each byte after it 6 more.
    low_bits = [padded[starts + position] & 0x3F for position in range(4)]
    first_byte = padded[starts]
    codes = np.select(
        [lengths == 0, lengths == 1, lengths == 2, lengths == 3],
        [
            np.zeros(len(first_byte), np.int32),
            first_byte,
            ((first_byte & 0x1F) << 6) | low_bits[1],
            ((first_byte & 0x0F) << 12) | (low_bits[1] << 6) | low_bits[2],
        ],
        ((first_byte & 0x07) << 18) | (low_bits[1] << 12) | (low_bits[2] << 6) | low_bits[3],
    )
    return with_validity_of(pa.array(codes.astype(np.int32)), values)


@lru_cache(maxsize=1)
def _characters() -> Any:
    """The 256 characters that `chr` can return, and at position 256 its result for negative numbers."""
    return pa.array([chr(code) for code in range(256)] + [""])


def _chr(arguments: list[Any], result: DataType) -> Any:
    """The character with the code modulo 256; '' for a negative number."""
    values = arguments[0]
    position = pc.if_else(pc.less(values, 0), 256, pc.bit_wise_and(values, 255))
    return _characters().take(position)


# ---------------------------------------------------------------- crc32


def _crc_table() -> Any:
    """How each value of a byte changes the state of a CRC-32, for the polynomial of zlib."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


_CRC_TABLE = _crc_table()
_MAX_BYTES_BY_POSITION = 256  # of a value; each position costs some calls of numpy


def _crc32(arguments: list[Any], result: DataType) -> Any:
    """Computes one position after the other, each for all rows that have a byte at this position. If a value has more than
    _MAX_BYTES_BY_POSITION bytes, zlib computes row by row instead."""
    values = arguments[0]
    content, offsets = _bytes_and_offsets(values)
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(lengths) and lengths.max() > _MAX_BYTES_BY_POSITION:
        sums = [zlib.crc32(content[start : start + length].tobytes()) for start, length in zip(starts, lengths, strict=True)]
        return with_validity_of(pa.array(sums, pa.int64()), values)
    # In this order, the values that have a byte at a position come before the shorter ones.
    order = np.argsort(-lengths, kind="stable")
    longest_first = lengths[order]
    state = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    for position in range(int(longest_first[0]) if len(lengths) else 0):
        rows = order[: np.searchsorted(-longest_first, -position, side="left")]
        state[rows] = _CRC_TABLE[(state[rows] ^ content[starts[rows] + position]) & 0xFF] ^ (state[rows] >> np.uint32(8))
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
