"""Variant columns of a Parquet file -> struct<value, metadata> of variant binary, a batch at a time.

An unshredded variant already is that struct. In a shredded variant, typed columns hold parts of the value. This module
encodes them and puts them back into objects and arrays. numpy and Arrow process all rows at once; the loops are over the
fields of the file's shredding schema and over the bytes of an integer.

Within this module a value is one element of a binary array, and null means missing.
Protocol: Reader Requirements for Variant Shredding. The encodings: Parquet's VariantEncoding and VariantShredding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.parquet.values.buffers import Ndarray, binary_array, bytes_of, fixed_values, int32_offsets, list_parts, validity
from delta_py.parquet.values.conform_values import CannotRead
from delta_py.types.arrow_layouts import is_list_like
from delta_py.types.schema import VARIANT_ARROW

_NULL = b"\x00"
_OBJECT, _ARRAY = 2, 3
# Rows are rebuilt in pieces of about this many bytes: gathering bytes briefly takes about ten times their size.
_PIECE_BYTES = 4 * 1024 * 1024


def variant_converter(path: str, arrow: pa.StructType) -> Callable[[pa.Array], pa.Array] | None:
    """From decoded arrays of a variant's group to arrays of VARIANT_ARROW; None if they are the same.

    Raises CannotRead, here or for an array, for data that is not a variant.
    """
    names = [f.name for f in arrow]
    if "metadata" not in names or not {"value", "typed_value"} & set(names):
        raise CannotRead(f"column {path} is variant in the table, and {arrow} in the file")
    if arrow == VARIANT_ARROW:
        return None
    if "typed_value" not in names:
        return lambda array: _make_variant(array, _fill_missing(_child(array, "value"), array))
    return lambda array: _rebuild_rows(path, array)


def _rebuild_rows(path: str, array: pa.StructArray) -> pa.Array:
    """Shredded variants as VARIANT_ARROW, some rows at a time. path: of the column, for errors."""
    rows = max(1, len(array) * _PIECE_BYTES // max(1, array.nbytes))
    pieces = [_rebuild_piece(path, array.slice(start, rows)) for start in range(0, len(array), rows)]
    return pa.concat_arrays(pieces) if pieces else pa.array([], VARIANT_ARROW)


def _rebuild_piece(path: str, array: pa.StructArray) -> pa.Array:
    """Some rows of a shredded variant as VARIANT_ARROW. A row's code is the index of its metadata among the distinct ones, so
    that each dictionary of field names is parsed once. path: of the column. Raises CannotRead for a damaged variant."""
    is_present = pc.is_valid(array)
    try:
        # Below a null variant the metadata may be empty bytes, which _Keys would refuse as damaged.
        present_metadata = pc.if_else(is_present, _child(array, "metadata"), pa.scalar(None, pa.binary()))
        metadata = present_metadata.dictionary_encode()
        codes = fixed_values(pc.fill_null(metadata.indices, 0), np.int32)  # the code of a null variant is not read
        values = _encode(array, is_present, codes, _Keys(metadata.dictionary))
        return _make_variant(array, _fill_missing(values, array))
    except _Damaged as error:
        raise CannotRead(f"column {path} holds a damaged variant: {error}") from error


def _fill_missing(value: pa.Array, array: pa.StructArray) -> pa.Array:
    """If a variant exists but its value is missing, it is the variant null."""
    is_missing = pc.and_(pc.is_valid(array), pc.is_null(value))
    return pc.if_else(is_missing, pa.scalar(_NULL, pa.binary()), value) if pc.any(is_missing).as_py() else value


def _make_variant(array: pa.StructArray, value: pa.Array) -> pa.Array:
    """VARIANT_ARROW from new values, and the metadata and nulls of a variant's group."""
    children = [value, _child(array, "metadata")]
    return pa.Array.from_buffers(VARIANT_ARROW, len(array), [validity(array)], array.null_count, children=children)


def _child(array: pa.StructArray, name: str) -> pa.Array | None:
    """A field of a group, in a plain layout; None if the file lacks it."""
    position = array.type.get_field_index(name)
    return None if position < 0 else _without_layout(array.field(position))


def _without_layout(array: pa.Array) -> pa.Array:
    """The same values in the layouts that this module reads: binary and string arrays with 32-bit offsets, plain lists, no
    extension and no dictionary."""
    types, arrow = pa.types, array.type
    if isinstance(arrow, pa.BaseExtensionType):
        return _without_layout(array.storage)
    if types.is_dictionary(arrow):
        return _without_layout(array.dictionary_decode())
    if types.is_large_string(arrow) or types.is_string_view(arrow):
        return array.cast(pa.string())
    if types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return array.cast(pa.binary())
    if is_list_like(arrow) and not types.is_list(arrow):
        return array.cast(pa.list_(arrow.value_field))
    return array


class _Damaged(Exception):
    """Variant bytes that cannot be followed."""


def _require(is_sound: Ndarray | bool, what: str) -> None:
    """Raises _Damaged unless `is_sound` is true everywhere. what: what is wrong otherwise, for the message."""
    if not np.all(is_sound):
        raise _Damaged(what)


# ---------------------------------------------------------------- metadata


class _Keys:
    """The dictionaries of field names of all rows. A row is given by its code, the index of its metadata among the distinct ones.

    A dictionary consists of a header byte, the number of its names, the offsets of the names (one more than names), and their
    bytes. A name's id is its index in the dictionary. counts: the number of names of each dictionary.
    """

    def __init__(self, metadata: pa.Array) -> None:
        data, offsets = bytes_of(metadata)
        # The header byte has the version in its low four bits, and the width of offsets, minus 1, in its two highest bits.
        starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
        _require(ends - starts >= 2, "its metadata is cut short")
        _require(data[starts] & 0x0F == 1, "its metadata has a version other than 1")
        offset_widths = (data[starts].astype(np.int64) >> 6) + 1
        self.counts = _read_unsigned(data, starts + 1, offset_widths)
        name_bytes_starts = starts + 1 + offset_widths * (self.counts + 2)
        # Some writers let an empty dictionary end early.
        _require((name_bytes_starts <= ends) | (self.counts == 0), "its metadata is cut short")
        # The names of all dictionaries are numbered one after the other: _first_name is the number of the first name of each
        # dictionary, _code_of_name the dictionary of each name.
        self._first_name = np.cumsum(self.counts) - self.counts
        self._code_of_name, index_in_dictionary = _expand_groups(self.counts)
        codes = self._code_of_name
        widths = offset_widths[codes]
        offset_positions = starts[codes] + 1 + widths * (1 + index_in_dictionary)
        name_starts = name_bytes_starts[codes] + _read_unsigned(data, offset_positions, widths)
        name_ends = name_bytes_starts[codes] + _read_unsigned(data, offset_positions + widths, widths)
        _require((name_starts <= name_ends) & (name_ends <= ends[codes]), "its metadata is cut short")
        names = _gather_ranges(data, name_starts, name_ends - name_starts).dictionary_encode()
        # The distinct names of all dictionaries, which of them each name is, and the place of each in their order.
        self._names = names.dictionary
        self._distinct_name = fixed_values(names.indices, np.int32)
        self._rank_of_name = np.empty(len(self._names), np.int64)
        self._rank_of_name[pc.sort_indices(self._names).to_numpy()] = np.arange(len(self._names))

    def ids(self, name: str, codes: Ndarray) -> Ndarray:
        """The id of a field name in each row's dictionary. Raises _Damaged if a dictionary lacks the name."""
        id_of_code = np.full(len(self.counts), -1)
        name_index = pc.index_in(pa.scalar(name.encode(), pa.binary()), self._names).as_py()
        if name_index is not None:
            entries = np.flatnonzero(self._distinct_name == name_index)[::-1]  # if a name occurs twice, the first counts
            id_of_code[self._code_of_name[entries]] = entries - self._first_name[self._code_of_name[entries]]
        _require(id_of_code[codes] >= 0, f"its metadata lacks the shredded field {name!r}")
        return id_of_code[codes]

    def rank(self, codes: Ndarray, ids: Ndarray) -> Ndarray:
        """Numbers that order field names byte by byte and are equal for equal names."""
        ranks: Ndarray = self._rank_of_name[self._distinct_name[self._first_name[codes] + ids]]
        return ranks


# ---------------------------------------------------------------- values


def _encode(node: pa.StructArray, is_needed: pa.Array, codes: Ndarray, keys: _Keys) -> pa.Array:
    """The values of a group with `value` and `typed_value`; the file may lack one of them.

    is_needed: rows whose value is read; below a null the value is arbitrary. codes: one per row; see _Keys.
    """
    value, typed = _child(node, "value"), _child(node, "typed_value")
    if typed is None:
        assert value is not None
        return value
    if pa.types.is_struct(typed.type):
        encoded = _encode_objects(value, typed, is_needed, codes, keys)
    elif pa.types.is_list(typed.type):
        encoded = _encode_arrays(typed, is_needed, codes, keys)
    else:
        encoded = _encode_primitives(typed)
    # A row has a typed value or another value. Objects may have fields in both, which _encode_objects has put together.
    return encoded if value is None else pc.coalesce(encoded, value)


def _encode_arrays(lists: pa.ListArray, is_needed: pa.Array, codes: Ndarray, keys: _Keys) -> pa.Array:
    """Arrays from their shredded elements; a missing element is the variant null."""
    is_array = pc.and_(is_needed, pc.is_valid(lists))
    offsets, elements = list_parts(lists)
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets))
    encoded = _encode(elements, is_array.take(pa.array(owner)), codes[owner], keys)
    return _assemble(_Entries(owner, None, pc.fill_null(encoded, pa.scalar(_NULL, pa.binary()))), is_array)


def _encode_objects(
    residual_values: pa.Array | None, typed: pa.StructArray, is_needed: pa.Array, codes: Ndarray, keys: _Keys
) -> pa.Array:
    """Objects from their shredded fields and, if they have other fields, from the fields of the objects in `residual_values`."""
    is_object = pc.and_(is_needed, pc.is_valid(typed))
    field_parts = []
    for position, field in enumerate(typed.type):
        values = _encode(_without_layout(typed.field(position)), is_object, codes, keys)
        is_present = pc.and_(is_object, pc.is_valid(values))
        rows = np.flatnonzero(is_present.to_numpy(zero_copy_only=False))
        field_parts.append(_Entries(rows, keys.ids(field.name, codes[rows]), values.filter(is_present)))
    if residual_values is not None:
        field_parts.append(_object_fields(residual_values, is_object, codes, keys))
    if not field_parts:
        return _assemble(_Entries(np.empty(0, np.int64), np.empty(0, np.int64), pa.array([], pa.binary())), is_object)
    return _assemble(_sorted_fields(field_parts, codes, keys), is_object)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Fields of objects or elements of arrays, one per row of these arrays. rows: the row of each. ids: of names;
    None in arrays."""

    rows: Ndarray
    ids: Ndarray | None
    values: pa.Array


def _sorted_fields(parts: list[_Entries], codes: Ndarray, keys: _Keys) -> _Entries:
    """All fields, grouped by row and ordered by name; if a name occurs twice, the field of the first part."""
    rows = np.concatenate([part.rows for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    values = pa.concat_arrays([part.values for part in parts])
    ranks = keys.rank(codes[rows], ids)
    order = np.lexsort((ranks, rows))  # stable
    is_first = np.ones(len(order), bool)
    is_first[1:] = (rows[order][1:] != rows[order][:-1]) | (ranks[order][1:] != ranks[order][:-1])
    order = order[is_first]
    return _Entries(rows[order], ids[order], values.take(pa.array(order)))


def _object_fields(values: pa.Array, is_needed: pa.Array, codes: Ndarray, keys: _Keys) -> _Entries:
    """The fields of the encoded objects in `values`, for the rows with is_needed; values that are not objects have none."""
    data, offsets = bytes_of(values)
    rows = np.flatnonzero(pc.and_(is_needed, pc.is_valid(values)).to_numpy(zero_copy_only=False))
    _require(offsets[rows + 1] > offsets[rows], "an empty value")
    rows = rows[data[offsets[rows]] & 3 == _OBJECT]
    object_starts, object_ends = offsets[rows].astype(np.int64), offsets[rows + 1].astype(np.int64)
    layout = _read_layout(data, object_starts)
    _require(layout.values <= object_ends, "an object is cut short")
    object_of_field, field_index = _expand_groups(layout.counts)
    ids = _read_unsigned(
        data, layout.ids[object_of_field] + field_index * layout.id_width[object_of_field], layout.id_width[object_of_field]
    )
    _require(ids < keys.counts[codes[rows[object_of_field]]], "a field whose name is not in the metadata")
    offset_positions = layout.offsets[object_of_field] + field_index * layout.offset_width[object_of_field]
    value_starts = layout.values[object_of_field] + _read_unsigned(data, offset_positions, layout.offset_width[object_of_field])
    _require(value_starts < object_ends[object_of_field], "an object is cut short")
    sizes = _value_sizes(data, value_starts)
    _require(value_starts + sizes <= object_ends[object_of_field], "an object is cut short")
    return _Entries(rows[object_of_field], ids, _gather_ranges(data, value_starts, sizes))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of objects or arrays. counts: of fields or elements. ids, offsets, values: the byte positions at which these
    begin. id_width, offset_width: bytes of each id (0 in arrays) and offset."""

    counts: Ndarray
    ids: Ndarray
    id_width: Ndarray
    offsets: Ndarray
    offset_width: Ndarray
    values: Ndarray


def _read_layout(data: Ndarray, start: Ndarray) -> _Layout:
    """Where the parts of each object or array begin, from its header."""
    # The two lowest bits of the first byte are the kind of the value. The others, from the lowest on: the width of offsets minus
    # 1 (two bits), in objects the width of ids minus 1 (two bits), and one bit for a count of four bytes.
    header = data[start].astype(np.int64) >> 2
    is_object = data[start] & 3 == _OBJECT
    is_large = np.where(is_object, header >> 4, header >> 2) & 1
    count_width = np.where(is_large, 4, 1)
    counts = _read_unsigned(data, start + 1, count_width)
    id_width = np.where(is_object, ((header >> 2) & 3) + 1, 0)
    offset_width = (header & 3) + 1
    ids = start + 1 + count_width
    offsets = ids + counts * id_width
    return _Layout(counts, ids, id_width, offsets, offset_width, offsets + (counts + 1) * offset_width)


# The size in bytes of a primitive by its type number, including the header byte; text and binary contain their length; unknown
# ones are 0.
_PRIMITIVE_SIZES = np.zeros(64, np.int64)
_PRIMITIVE_SIZES[:21] = [1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 5, 5, 9, 9, 9, 17]


def _value_sizes(data: Ndarray, start: Ndarray) -> Ndarray:
    """The length in bytes of each value that starts at a position."""
    kind, header = data[start] & 3, data[start].astype(np.int64) >> 2
    # Kind 0 is a primitive, whose type number is in the header; kind 1 a short text, whose length is in the header.
    sizes = np.where(kind == 0, _PRIMITIVE_SIZES[header], 1 + header)
    _require(sizes > 0, "a value of an unknown type")
    # 15 is binary, and 16 a text: their length follows the header byte in four bytes.
    text = np.flatnonzero((kind == 0) & ((header == 15) | (header == 16)))
    sizes[text] += _read_unsigned(data, start[text] + 1, np.full(len(text), 4))
    nested = np.flatnonzero(kind >= _OBJECT)
    layout = _read_layout(data, start[nested])
    content_bytes = _read_unsigned(data, layout.values - layout.offset_width, layout.offset_width)
    sizes[nested] = layout.values - start[nested] + content_bytes
    return sizes


# ---------------------------------------------------------------- assembling


def _assemble(entries: _Entries, is_present: pa.Array) -> pa.Array:
    """Objects (entries with ids) or arrays, null where not present. entries: grouped by row, in order."""
    # Each container consists of its header, the count, the ids, the offsets, and the entries' bytes. All of these but the bytes
    # are written into `headers` first, for all rows one after the other.
    row_count, rows = len(is_present), entries.rows
    counts = np.bincount(rows, minlength=row_count)
    first_entries = np.cumsum(counts) - counts
    value_ends = int32_offsets(entries.values).astype(np.int64)
    value_ends = value_ends - value_ends[0]
    bounds = np.append(first_entries, len(rows))  # a row's entries are bounds[row] to bounds[row + 1]
    content_bytes = value_ends[bounds[1:]] - value_ends[bounds[:-1]]
    offset_width = _needed_width(content_bytes)
    id_width = 0 if entries.ids is None else _needed_width(entries.ids)
    is_large = bool(counts.max(initial=0) > 255)
    count_width = 4 if is_large else 1
    header_bytes = 1 + count_width + counts * id_width + (counts + 1) * offset_width
    starts = np.cumsum(header_bytes) - header_bytes
    headers = np.zeros(int(header_bytes.sum()), np.uint8)
    headers[starts] = _container_header(entries.ids is not None, is_large, id_width, offset_width)
    _write_unsigned(headers, starts + 1, counts, count_width)
    entry_index = np.arange(len(rows)) - first_entries[rows]
    id_positions = starts + 1 + count_width
    if entries.ids is not None:
        _write_unsigned(headers, id_positions[rows] + entry_index * id_width, entries.ids, id_width)
    offset_positions = id_positions + counts * id_width
    _write_unsigned(
        headers,
        offset_positions[rows] + entry_index * offset_width,
        value_ends[:-1] - value_ends[first_entries[rows]],
        offset_width,
    )
    _write_unsigned(headers, offset_positions + counts * offset_width, content_bytes, offset_width)
    # Then the entries of each row are joined, and appended to its header.
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), entries.values)
    no_separator = pa.scalar(b"", pa.binary())
    encoded = binary_array(headers, np.append(starts, len(headers)))
    joined = pc.binary_join_element_wise(encoded, pc.binary_join(lists, no_separator), no_separator)
    return pc.if_else(is_present, joined, pa.scalar(None, pa.binary()))


def _container_header(is_object: bool, is_large: bool, id_width: int, offset_width: int) -> int:
    """The first byte of an object or array; _read_layout describes its bits."""
    if is_object:
        return (is_large << 4 | (id_width - 1) << 2 | (offset_width - 1)) << 2 | _OBJECT
    return (is_large << 2 | (offset_width - 1)) << 2 | _ARRAY


def _encode_primitives(typed: pa.Array) -> pa.Array:
    """Variant binary of typed values. The header byte of a primitive is its type number, shifted by two bits: for example 1 is
    true, 2 false, 15 binary, 20 a UUID."""
    arrow, types = typed.type, pa.types
    if types.is_string(arrow):
        return _encode_text(typed)
    if types.is_binary(arrow):
        return _with_header(np.full(len(typed), 15 << 2, np.uint8), typed, is_long=np.ones(len(typed), bool))
    if types.is_boolean(arrow):
        true = pc.fill_null(typed, False).to_numpy(zero_copy_only=False)
        return _fixed_width_values(typed, np.where(true, 1 << 2, 2 << 2).astype(np.uint8)[:, None])
    if types.is_decimal128(arrow):
        return _encode_decimals(typed)
    if types.is_fixed_size_binary(arrow) and arrow.byte_width == 16:
        return _fixed_width_values(typed, _header_and_values(20 << 2, fixed_values(typed, "V16")))
    if types.is_timestamp(arrow) and arrow.unit in ("s", "ms"):
        typed = typed.cast(pa.timestamp("us", arrow.tz))
    values = fixed_values(typed, f"V{typed.type.bit_width // 8}")
    return _fixed_width_values(typed, _header_and_values(_type_number(typed.type) << 2, values))


_TYPE_NUMBERS = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.date32(): 11,
    pa.float32(): 14,
    pa.time64("us"): 17,
}
_TIMESTAMP_NUMBERS = {("us", True): 12, ("us", False): 13, ("ns", True): 18, ("ns", False): 19}


def _type_number(arrow: pa.DataType) -> int:
    """The number of a primitive type in variant binary. Raises _Damaged for a type that variants do not have."""
    if pa.types.is_timestamp(arrow):
        return _TIMESTAMP_NUMBERS[arrow.unit, arrow.tz is not None]
    if arrow not in _TYPE_NUMBERS:
        raise _Damaged(f"it is shredded as {arrow}, which no variant holds")
    return _TYPE_NUMBERS[arrow]


def _encode_decimals(typed: pa.Array) -> pa.Array:
    """Decimals in 4, 8 or 16 bytes, by their precision."""
    precision = typed.type.precision
    number, width = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    unscaled = fixed_values(typed, "V16").view(np.uint8).reshape(-1, 16)[:, :width]
    scale = np.full((len(typed), 1), typed.type.scale, np.uint8)
    return _fixed_width_values(typed, np.hstack([np.full((len(typed), 1), number << 2, np.uint8), scale, unscaled]))


def _encode_text(typed: pa.Array) -> pa.Array:
    """A text of up to 63 bytes has its length in the header byte."""
    lengths = np.diff(int32_offsets(typed))
    is_long = lengths > 63
    return _with_header(np.where(is_long, 16 << 2, lengths << 2 | 1).astype(np.uint8), typed, is_long=is_long)


def _with_header(first: Ndarray, typed: pa.Array, *, is_long: Ndarray) -> pa.Array:
    """A header byte, the length in four bytes if `is_long`, and the bytes."""
    lengths = np.where(is_long, 5, 1)
    starts = np.cumsum(lengths) - lengths
    headers = np.zeros(int(lengths.sum()), np.uint8)
    headers[starts] = first
    _write_unsigned(headers, starts[is_long] + 1, np.diff(int32_offsets(typed))[is_long], 4)
    encoded = binary_array(headers, np.append(starts, len(headers)))
    return pc.binary_join_element_wise(encoded, typed.view(pa.binary()), pa.scalar(b"", pa.binary()))


def _header_and_values(first: int, values: Ndarray) -> Ndarray:
    """A matrix of bytes, one row per value: the header byte, and the bytes of the value."""
    body = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return np.hstack([np.full((len(values), 1), first, np.uint8), body])


def _fixed_width_values(typed: pa.Array, rows: Ndarray) -> pa.Array:
    """A matrix of bytes, one row per value -> values, null where `typed` is."""
    width = rows.shape[1]
    return binary_array(rows.reshape(-1), np.arange(len(rows) + 1) * width, validity(typed))


# ---------------------------------------------------------------- bytes


def _read_unsigned(data: Ndarray, positions: Ndarray, widths: Ndarray) -> Ndarray:
    """The little-endian integers of 1 to 4 bytes (`widths`) at the positions."""
    numbers = np.zeros(len(positions), np.int64)
    if len(positions) == 0:
        return numbers
    _require(positions + widths <= len(data), "it is cut short")
    last = len(data) - 1
    for byte in range(4):
        byte_values = data[np.minimum(positions + byte, last)].astype(np.int64)
        numbers += np.where(byte < widths, byte_values, 0) << (8 * byte)
    return numbers


def _write_unsigned(data: Ndarray, positions: Ndarray, numbers: Ndarray, width: int) -> None:
    """Write little-endian integers of `width` bytes into `data`, each at its position."""
    for byte in range(width):
        data[positions + byte] = (numbers >> (8 * byte)) & 0xFF


def _needed_width(numbers: Ndarray) -> int:
    """How many bytes the largest number takes, at least 1."""
    largest = int(numbers.max(initial=0))
    return max(1, (largest.bit_length() + 7) // 8)


def _expand_groups(counts: Ndarray) -> tuple[Ndarray, Ndarray]:
    """For groups of `counts` members: each member's group, and its number within it."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)


def _gather_ranges(data: Ndarray, begin: Ndarray, lengths: Ndarray) -> pa.Array:
    """Ranges of bytes, which may overlap and be in any order -> a binary array."""
    owner, within = _expand_groups(lengths)
    return binary_array(data[begin[owner] + within], np.append(np.cumsum(lengths) - lengths, len(owner)))
