"""Footers of Parquet files rewritten by hand, for content that no available writer makes.

    with rewritten(path) as footer:            # dicts of Thrift's field numbers, as in parquet.thrift
        footer[CREATED_BY] = binary(b"parquet-mr version 1.6.0")

A struct is a dict: field number -> (type, value); a list is (type of its items, items). Data pages stay at their places.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Struct: TypeAlias = dict[int, tuple[int, Any]]

BOOL, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 3, 4, 5, 6, 7, 8, 9, 12
_FALSE, _SET = 2, 10
_MAGIC = b"PAR1"

# Of FileMetaData.
SCHEMA, ROW_GROUPS, KEY_VALUES, CREATED_BY = 2, 4, 5, 6
# Of SchemaElement.
TYPE, TYPE_LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, SCALE, PRECISION, FIELD_ID, LOGICAL = range(1, 11)
# Of RowGroup, ColumnChunk and ColumnMetaData.
CHUNKS, META = 1, 3
CHUNK_TYPE, ENCODINGS, PATH_IN_SCHEMA, CHUNK_STATISTICS, ENCODING_STATS = 1, 2, 3, 12, 13
_ROWS, _GROUP_OFFSET, _PAGE_OFFSETS, _INDEX_PLACES = 3, 5, (9, 11), (4, 5, 6, 7)
# Of Statistics: the deprecated ones, and those with a known order.
MAX, MIN, NULL_COUNT, MAX_VALUE, MIN_VALUE, IS_MAX_EXACT, IS_MIN_EXACT = 1, 2, 3, 5, 6, 7, 8


def binary(value: bytes) -> tuple[int, bytes]:
    return BINARY, value


@contextmanager
def rewritten(path: Path) -> Iterator[Struct]:
    """The file's footer, to be changed in place; it is written when the block ends."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    assert data[-4:] == _MAGIC
    footer, _ = _read_struct(data[len(data) - 8 - size : -8], 0)
    yield footer
    written = _struct_bytes(footer)
    path.write_bytes(data[: len(data) - 8 - size] + written + len(written).to_bytes(4, "little") + _MAGIC)


def schema_elements(footer: Struct) -> list[Struct]:
    elements: list[Struct] = footer[SCHEMA][1][1]
    return elements


def chunks(footer: Struct) -> Iterator[Struct]:
    """ColumnMetaData of every column chunk."""
    for group in footer[ROW_GROUPS][1][1]:
        for chunk in group[CHUNKS][1][1]:
            yield chunk[META][1]


def join_files(target: Path, first: Path, second: Path) -> None:
    """A file with the row groups of two files that have the same columns. Each may have its own compression and encoding."""
    pages = _data(first)
    shift = len(pages) - len(_MAGIC)
    with rewritten(second) as footer:
        groups = footer[ROW_GROUPS][1][1]
        for group in groups:
            group.pop(_GROUP_OFFSET, None)
            for chunk in group[CHUNKS][1][1]:
                for place in _INDEX_PLACES:
                    chunk.pop(place, None)
                meta = chunk[META][1]
                for place in _PAGE_OFFSETS:
                    if place in meta:
                        meta[place] = (I64, meta[place][1] + shift)
        more = footer[_ROWS][1]
    target.write_bytes(pages + _data(second)[len(_MAGIC) :] + first.read_bytes()[len(pages) :])
    with rewritten(target) as footer:
        footer[_ROWS] = (I64, footer[_ROWS][1] + more)
        footer[ROW_GROUPS][1][1].extend(groups)


def _data(path: Path) -> bytes:
    """All bytes before the footer."""
    data = path.read_bytes()
    return data[: len(data) - 8 - int.from_bytes(data[-8:-4], "little")]


# ---------------------------------------------------------------- Thrift's compact protocol


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _read_integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _read_integer(data, at)
        if kind in (BOOL, _FALSE):
            fields[number] = (BOOL, kind == BOOL)
        else:
            value, at = _read_value(kind, data, at)
            fields[number] = (kind, value)
    return fields, at + 1


def _read_value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2:
            return data[at] == 1, at + 1
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            return _read_integer(data, at)
        case 7:
            return struct.unpack_from("<d", data, at)[0], at + 8
        case 8:
            size, at = _read_varint(data, at)
            return data[at : at + size], at + size
        case 9 | 10:
            count, inner = data[at] >> 4, data[at] & 15
            at += 1
            if count == 15:
                count, at = _read_varint(data, at)
            items = []
            for _ in range(count):
                item, at = _read_value(inner, data, at)
                items.append(item)
            return (inner, items), at
        case 12:
            return _read_struct(data, at)
    raise AssertionError(f"Thrift's type {kind} is in no footer")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _struct_bytes(fields: Struct) -> bytes:
    encoded, last = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        code = kind if kind != BOOL or value else _FALSE
        step = number - last
        encoded += bytes([step << 4 | code]) if step < 16 else bytes([code]) + _integer(number)
        if kind != BOOL:
            encoded += _value_bytes(kind, value)
        last = number
    return bytes(encoded) + b"\0"


def _value_bytes(kind: int, value: Any) -> bytes:
    match kind:
        case 1 | 2:
            return b"\1" if value else b"\2"
        case 3:
            return bytes([value])
        case 4 | 5 | 6:
            return _integer(value)
        case 7:
            return struct.pack("<d", value)
        case 8:
            return _varint(len(value)) + value
        case 12:
            return _struct_bytes(value)
    inner, items = value
    head = bytes([len(items) << 4 | inner]) if len(items) < 15 else bytes([0xF0 | inner]) + _varint(len(items))
    return head + b"".join(_value_bytes(inner, item) for item in items)
