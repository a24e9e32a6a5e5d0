"""A variant encoder, decoder and shredder written value by value, for comparison with the columnar one.

Values are Python's: None, bool, int, float, str, bytes, Decimal, list, dict. A shredding schema is an Arrow type: a plain type, a
list type, or a struct type of fields; the file's group for it is `group_type(schema)`.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa


def names_in(value: Any) -> list[str]:
    """The names of all fields of a value, at any depth, each once."""
    if isinstance(value, list):
        return sorted({name for item in value for name in names_in(item)})
    if isinstance(value, dict):
        return sorted({*value, *(name for item in value.values() for name in names_in(item))})
    return []


def encode_metadata(names: list[str]) -> bytes:
    texts = [name.encode() for name in names]
    width = max(1, (sum(map(len, texts)).bit_length() + 7) // 8, (len(texts).bit_length() + 7) // 8)
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    numbers = [len(texts), *ends]
    return bytes([1 | (width - 1) << 6]) + b"".join(n.to_bytes(width, "little") for n in numbers) + b"".join(texts)


def encode(value: Any, names: list[str]) -> bytes:
    match value:
        case None:
            return b"\x00"
        case bool():
            return bytes([(1 if value else 2) << 2])
        case int():
            return bytes([6 << 2]) + struct.pack("<q", value)
        case float():
            return bytes([7 << 2]) + struct.pack("<d", value)
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return bytes([10 << 2, -exponent]) + unscaled.to_bytes(16, "little", signed=True)
        case str():
            text = value.encode()
            return (
                bytes([len(text) << 2 | 1]) + text if len(text) < 64 else bytes([16 << 2]) + struct.pack("<i", len(text)) + text
            )
        case bytes():
            return bytes([15 << 2]) + struct.pack("<i", len(value)) + value
        case list():
            return _container(3, [encode(item, names) for item in value], [])
        case dict():
            keys = sorted(value, key=str.encode)
            return _container(2, [encode(value[key], names) for key in keys], [names.index(key) for key in keys])
    raise TypeError(type(value))


def _container(basic: int, items: list[bytes], ids: list[int]) -> bytes:
    """The values are in reverse order, so offsets fall: readers must not assume that they rise."""
    large = len(items) > 255
    total = sum(map(len, items))
    offset_width = max(1, (total.bit_length() + 7) // 8)
    id_width = max(1, (max(ids, default=0).bit_length() + 7) // 8)
    starts, position = [], total
    for item in items:
        position -= len(item)
        starts.append(position)
    if basic == 3:
        starts, position = [], 0
        for item in items:
            starts.append(position)
            position += len(item)
        header = large << 2 | (offset_width - 1)
        body = b"".join(items)
    else:
        header = large << 4 | (id_width - 1) << 2 | (offset_width - 1)
        body = b"".join(reversed(items))
    count = len(items).to_bytes(4 if large else 1, "little")
    id_bytes = b"".join(i.to_bytes(id_width, "little") for i in ids) if basic == 2 else b""
    offsets = b"".join(n.to_bytes(offset_width, "little") for n in [*starts, total])
    return bytes([header << 2 | basic]) + count + id_bytes + offsets + body


def decode(value: bytes, metadata: bytes) -> Any:
    """The value, checked on the way: field names in order, offsets within bounds, no bytes left over."""
    decoded, end = _decode(value, 0, decode_metadata(metadata))
    assert end == len(value), f"{len(value) - end} bytes after the value"
    return decoded


def decode_metadata(metadata: bytes) -> list[str]:
    width = (metadata[0] >> 6) + 1
    numbers = [int.from_bytes(metadata[i : i + width], "little") for i in range(1, len(metadata) - width + 1, width)]
    count, ends = numbers[0], numbers[1 : numbers[0] + 2]
    base = 1 + width * (count + 2)
    return [metadata[base + a : base + b].decode() for a, b in pairwise(ends)]


_FIXED = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 11: "<i", 12: "<q", 13: "<q", 14: "<f", 17: "<q", 18: "<q", 19: "<q"}


def _decode(data: bytes, at: int, names: list[str]) -> tuple[Any, int]:
    basic, header = data[at] & 3, data[at] >> 2
    if basic == 1:
        return data[at + 1 : at + 1 + header].decode(), at + 1 + header
    if basic == 0:
        return _decode_primitive(data, at + 1, header)
    large = header >> (4 if basic == 2 else 2) & 1
    id_width = (header >> 2 & 3) + 1 if basic == 2 else 0
    width = (header & 3) + 1
    at += 1
    count = int.from_bytes(data[at : at + (4 if large else 1)], "little")
    at += 4 if large else 1
    ids = [int.from_bytes(data[at + i * id_width : at + (i + 1) * id_width], "little") for i in range(count)]
    at += count * id_width
    offsets = [int.from_bytes(data[at + i * width : at + (i + 1) * width], "little") for i in range(count + 1)]
    at += (count + 1) * width
    items = [_decode(data, at + offset, names)[0] for offset in offsets[:-1]]
    if basic == 3:
        return items, at + offsets[-1]
    keys = [names[i] for i in ids]
    assert keys == sorted(set(keys), key=str.encode), "field names out of order"
    return dict(zip(keys, items, strict=True)), at + offsets[-1]


def _decode_primitive(data: bytes, at: int, number: int) -> tuple[Any, int]:
    if number in (0, 1, 2):
        return {0: None, 1: True, 2: False}[number], at
    if number in _FIXED:
        size = struct.calcsize(_FIXED[number])
        return struct.unpack(_FIXED[number], data[at : at + size])[0], at + size
    if number in (8, 9, 10):
        size = {8: 4, 9: 8, 10: 16}[number]
        unscaled = int.from_bytes(data[at + 1 : at + 1 + size], "little", signed=True)
        return Decimal(f"{unscaled}e-{data[at]}"), at + 1 + size
    if number in (15, 16):
        (size,) = struct.unpack("<i", data[at : at + 4])
        raw = data[at + 4 : at + 4 + size]
        return (raw if number == 15 else raw.decode()), at + 4 + size
    assert number == 20, f"type {number}"
    return data[at : at + 16].hex(), at + 16


# ---------------------------------------------------------------- shredding


def group_type(schema: pa.DataType, *, top: bool = True) -> pa.DataType:
    """The struct of a variant's group (`metadata` only at the top), or of a field or element, shredded by `schema`."""
    fields = [pa.field("metadata", pa.binary(), nullable=False)] if top else []
    return pa.struct([*fields, pa.field("value", pa.binary()), pa.field("typed_value", _typed(schema))])


def _typed(schema: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(schema):
        return pa.struct([pa.field(f.name, group_type(f.type, top=False), nullable=False) for f in schema])
    if pa.types.is_list(schema):
        return pa.list_(pa.field("element", group_type(schema.value_type, top=False), nullable=False))
    return schema


def shred(value: Any, schema: pa.DataType) -> dict[str, Any]:
    """A row of group_type(schema): values that fit the schema are typed, the rest is encoded."""
    names = sorted({*names_in(value), *_schema_names(schema)})
    return {"metadata": encode_metadata(names), **_shred(value, schema, names)}


def _schema_names(schema: pa.DataType) -> list[str]:
    if pa.types.is_struct(schema):
        return [name for f in schema for name in (f.name, *_schema_names(f.type))]
    return _schema_names(schema.value_type) if pa.types.is_list(schema) else []


def _shred(value: Any, schema: pa.DataType, names: list[str]) -> dict[str, Any]:
    if pa.types.is_struct(schema) and isinstance(value, dict):
        missing = {"value": None, "typed_value": None}
        typed = {f.name: _shred(value[f.name], f.type, names) if f.name in value else missing for f in schema}
        rest = {name: item for name, item in value.items() if name not in typed}
        return {"value": encode(rest, names) if rest else None, "typed_value": typed}
    if pa.types.is_list(schema) and isinstance(value, list):
        return {"value": None, "typed_value": [_shred(item, schema.value_type, names) for item in value]}
    fits = {pa.int64(): int, pa.string(): str, pa.float64(): float, pa.bool_(): bool, pa.binary(): bytes}
    if fits.get(schema) is type(value):
        return {"value": None, "typed_value": value}
    return {"value": encode(value, names), "typed_value": None}
