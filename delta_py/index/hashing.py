"""Hashes of a column's values, equal for all values that Spark treats as equal.

    kind = value_kind(find_path(schema, ("user", "id")))     # None for a column whose equality is not that of its hashes
    hashes(array, kind)                                      # uint64, one per value; the array has no nulls

The kind tells which types are compatible: a value has the same hash as int and as bigint, so that a file written before its
column was widened stays indexed. For texts, the hash covers the length, the first and the last bytes: texts that agree in these
count as equal, which may cost an unnecessary read of a file, but never a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_py.protocol.collations import is_collated
from delta_py.types.char_types import char_type_at
from delta_py.types.schema import DataType, DecimalType, PrimitiveType, StructField

HASH = "mix64-1"
"""The name of the functions here. Other functions get another name, and indexes with this one are not used any more."""

Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

_INTEGRAL = ("byte", "short", "integer", "long")
_KINDS = {
    **dict.fromkeys(_INTEGRAL, "integral"),
    **dict.fromkeys(("float", "double"), "floating"),
    **{name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz", "string", "binary")},
}
_END_BYTES = 64  # how many bytes at each end of a text the hash covers
_SEED = np.uint64(0x9E3779B97F4A7C15)


def value_kind(path_fields: Sequence[StructField]) -> str | None:
    """The kind of the values at the end of a path of fields. None for types without equality, and for texts that are compared
    padded (CHAR) or by a collation.
    """
    if char := char_type_at(path_fields[0], tuple(field.name for field in path_fields[1:])):
        return "string" if char.kind == "varchar" else None
    if any(is_collated(field) for field in path_fields):
        return None
    return kind_of_type(path_fields[-1].data_type)


def kind_of_type(data_type: DataType) -> str | None:
    """The kind of a type's values, such as `integral` or `decimal:2`; None for a type without one."""
    match data_type:
        case PrimitiveType(name):
            return _KINDS.get(name)
        case DecimalType(_, scale):
            return f"decimal:{scale}"
    return None


def hashes(array: pa.Array, kind: str) -> Hashes:
    """The hash of each value. array: values of a type of this kind, without nulls."""
    assert array.null_count == 0
    if kind in ("string", "binary"):
        return _hashes_of_texts(array)
    if kind.startswith("decimal"):
        words = _as_words(array.cast(pa.decimal128(38, array.type.scale))).reshape(-1, 2)
        return _mix_bits(words[:, 0] ^ _mix_bits(words[:, 1] + _SEED))
    if kind == "floating":
        numbers = array.cast(pa.float64()).to_numpy() + 0.0  # -0.0 becomes 0.0
        # NaN has many forms in bits, and Spark treats all of them as equal.
        return _mix_bits(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if kind == "date":
        array = array.cast(pa.int32())
    elif kind.startswith("timestamp"):
        array = array.cast(pa.timestamp("us", array.type.tz))
    return _mix_bits(_as_words(array.cast(pa.int64())))


def _as_words(array: pa.Array) -> Hashes:
    """The values of an array of 64-bit or 128-bit numbers as words of 64 bits: one or two for each value. Nothing is copied."""
    width = array.type.bit_width // 64
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(0, np.uint64)
    words = np.frombuffer(buffer, np.uint64, count=(array.offset + len(array)) * width)
    return words[array.offset * width :]


def _mix_bits(words: Hashes) -> Hashes:
    """Mix the bits of each word, so that all bits of the result depend on all bits of the word. Different words have different
    results."""
    words = words + _SEED
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hashes_of_texts(array: pa.Array) -> Hashes:
    """The hash of each value's length and of its bytes: at most _END_BYTES at the beginning, and as many at the end."""
    large_array = array.cast(pa.large_binary())
    if not len(large_array):
        return np.zeros(0, np.uint64)
    _, offsets_buffer, data = large_array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, count=large_array.offset + len(large_array) + 1)[large_array.offset :]
    start, stop = int(offsets[0]), int(offsets[-1])
    content = b"" if data is None else memoryview(data)[start:stop].tobytes()
    # One word starting at each byte; the last ones are padded with zeros.
    words = np.ndarray(len(content) + 1, np.dtype("<u8"), content + bytes(8), strides=(1,))
    starts, lengths = offsets[:-1] - start, np.diff(offsets)
    result = _mix_bits(lengths.astype(np.uint64))
    head_counts = np.minimum(lengths, _END_BYTES)
    tail_counts = np.minimum(lengths - head_counts, _END_BYTES)
    for begins, counts in ((starts, head_counts), (starts + lengths - tail_counts, tail_counts)):
        result = _with_bytes_mixed_in(result, words, begins, counts)
    return result


def _with_bytes_mixed_in(result: Hashes, words: Hashes, begins: Any, counts: Any) -> Hashes:
    """The hashes of all texts, with some bytes of each text mixed in, eight bytes of all texts at a time. The array `result` is
    changed in place, and returned. words: for each byte of the content, the word that begins there. begins, counts: for each
    text, the position of the first byte, and the number of bytes."""
    for byte_index in range(0, int(counts.max()), 8):
        rows = np.flatnonzero(counts > byte_index)
        byte_counts = np.minimum(counts[rows] - byte_index, 8).astype(np.uint64)
        # A word is read in one piece. Bytes in it that do not belong to these `counts` bytes become 0.
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - byte_counts * np.uint64(8))
        result[rows] = _mix_bits(result[rows] ^ _mix_bits(words[begins[rows] + byte_index] & mask))
    return result
