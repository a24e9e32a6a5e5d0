"""Statistics as text in the layout that most writers give them, read without parsing what is not wanted.

    {"numRecords":1,"minValues":{...},"maxValues":{...},"nullCount":{...}}          # also with "tightBounds" at the end

Where all texts of a batch have this layout, their objects hold no other ones, and the wanted leaves are numbers or texts, the
members are found by the places of braces and names, in bulk. What they say is decoded as JSON is. Whatever is not just so is left
to json_objects.py.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.types.arrow_values import from_numpy, to_numpy

_WORD = 8  # bytes
_BLOCK = 1 << 18  # bytes that are looked through at a time, so that the masks stay in the processor's cache
_LEAST_TEXTS = 256  # with fewer, the steps cost more than the parser
_HEAD, _TO_MINIMA = b'{"numRecords":', b',"minValues":{'
_TO_MAXIMA, _TO_COUNTS = b'},"maxValues":{', b'},"nullCount":{'
_TAILS = ((b"}}", None), (b'},"tightBounds":true}', True), (b'},"tightBounds":false}', False))
_NULL = b"null"
# ASCII as JSON has it unescaped, less braces. Behind a closing quote there may be a comma or a colon: no name begins so.
_NAME = re.compile(r"(?![,:])[ !#-\[\]-z|~]+")
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"
_MOST_DIGITS = 18
_OPENING, _COMMA, _QUOTE, _BACKSLASH, _SPACE, _MINUS, _ZERO = (ord(character) for character in '{,"\\ -0')

Places = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def read_plain_stats(texts: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.StructArray | None:
    """The wanted members of each text, as read_json_objects gives them; None where any text has another layout.

    schema: of statistics (stats.py). A text that is no JSON, but has the layout and sound wanted members, tells these; of members
    of one name the first counts.
    """
    is_one = isinstance(texts, pa.StringArray)
    if not is_one or len(texts) < _LEAST_TEXTS or texts.null_count or not _is_plain(schema):
        return None
    try:
        sections = _Sections.of(_Texts.of(texts))
        members = [_member(sections, member) for member in schema]
    except (_OtherLayoutError, pa.ArrowInvalid):
        return None
    return pa.StructArray.from_arrays(members, fields=list(schema))


class _OtherLayoutError(Exception):
    """A text is not as it should be."""


def _require(holds: bool) -> None:
    if not holds:
        raise _OtherLayoutError


def _is_plain(schema: pa.Schema) -> bool:
    leaves = [leaf for member in schema if pa.types.is_struct(member.type) for leaf in member.type]
    return all(_NAME.fullmatch(leaf.name) and _is_number_or_text(leaf.type) for leaf in leaves)


def _is_number_or_text(kind: pa.DataType) -> bool:
    return kind in (pa.int64(), pa.float64(), pa.string()) or pa.types.is_decimal(kind)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Bytes, and where each text of them begins and ends. Places are those of bytes."""

    buffer: pa.Buffer
    data: np.ndarray[Any, np.dtype[np.uint8]]
    starts: Places
    ends: Places

    @classmethod
    def of(cls, texts: pa.StringArray) -> _Texts:
        """Raises _OtherLayoutError for texts without bytes."""
        _, offsets, buffer = texts.buffers()
        _require(buffer is not None and buffer.size > 0)
        edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        return cls(buffer, np.frombuffer(buffer, np.uint8), edges[:-1], edges[1:])

    def has(self, expected: bytes, places: Places) -> Mask:
        """Whether just these bytes are at each of the places. Eight bytes are compared at a time, so that eight must lie before
        the end of what is looked for; all of it is within the buffer."""
        words = np.ndarray((len(self.data) - _WORD + 1,), "<u8", self.data, strides=(1,))  # from each byte on
        ends = places + len(expected)
        is_there: Mask = words[ends - _WORD] >> _unused_bits(expected) == _word(expected[-_WORD:])
        for start in range(0, len(expected) - _WORD, _WORD):
            is_there &= words[places + start] == _word(expected[start : start + _WORD])
        return is_there

    def occurrences(self, needle: bytes) -> Places:
        """Every place at which the needle, of three bytes or more, is in a text."""
        begin, end = int(self.starts[0]), int(self.ends[-1])
        last, found = len(needle) - 3, []
        for start in range(begin + _WORD, end - last - 2, _BLOCK):
            stop = min(start + _BLOCK, end - last - 2)
            # Two of its bytes are rarer together than each is, and soon found.
            is_likely = self.data[start + last : stop + last] == needle[-3]
            is_likely &= self.data[start + last + 2 : stop + last + 2] == needle[-1]
            found.append(np.flatnonzero(is_likely) + start)
        places = np.concatenate([np.empty(0, np.int64), *found])
        return places[self.has(needle, places)]

    def first(self, character: str, starts: Places, ends: Places) -> Places:
        """Where the character is first in each piece of a text; -1 where it is in none."""
        # What is between the pieces is searched too; copies of the pieces would cost more.
        found = to_numpy(pc.find_substring(self._tiles(starts, ends), character))[::2]
        return np.where(found < 0, -1, starts + found)

    def pieces(self, starts: Places, ends: Places) -> pa.StringArray:
        """What lies between the places, which rise."""
        tiles = self._tiles(starts, ends)
        return tiles.take(from_numpy(np.arange(0, len(tiles), 2, dtype=np.int32)))

    def _tiles(self, starts: Places, ends: Places) -> pa.StringArray:
        """The same without a copy, and what lies between one piece and the next."""
        edges = np.empty(2 * len(starts), np.int32)
        edges[::2], edges[1::2] = starts, ends
        return pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), self.buffer)


def _word(expected: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(expected, "little"))


def _unused_bits(expected: bytes) -> np.uint64:
    return np.uint64(max(0, _WORD - len(expected)) * 8)


@dataclass(frozen=True, slots=True)
class _Sections:
    """Where in each text the number of records begins and ends, and the members of each object; what is said of the bounds (null:
    nothing)."""

    texts: _Texts
    num_records: tuple[Places, Places]
    objects: dict[str, tuple[Places, Places]]
    tight_bounds: pa.BooleanArray
    names: dict[bytes, Places] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: _Texts) -> _Sections:
        """Raises _OtherLayoutError. Whatever the texts are, each check sees to it that the next ones look at bytes of theirs."""
        count, begin, end = len(texts.starts), int(texts.starts[0]), int(texts.ends[-1])
        _require(np.count_nonzero(texts.data[begin : texts.ends[0]] == _OPENING) == 4)  # before all are looked at
        braces = np.flatnonzero(texts.data[begin:end] == _OPENING) + begin
        _require(len(braces) == 4 * count)
        roots, minima, maxima, counts = braces.reshape(count, 4).T + 1  # behind the brace
        _require(bool(((roots - 1 == texts.starts) & (counts <= texts.ends)).all()))
        records = (texts.starts + len(_HEAD), minima - len(_TO_MINIMA))
        minima_ends, maxima_ends = maxima - len(_TO_MAXIMA), counts - len(_TO_COUNTS)
        _require(bool(((records[0] < records[1]) & (minima <= minima_ends) & (maxima <= maxima_ends)).all()))
        between = ((_HEAD, texts.starts), (_TO_MINIMA, records[1]), (_TO_MAXIMA, minima_ends), (_TO_COUNTS, maxima_ends))
        _require(all(texts.has(expected, places).all() for expected, places in between))
        counts_ends, tight_bounds = _tails(texts, counts)
        objects = {"minValues": (minima, minima_ends), "maxValues": (maxima, maxima_ends), "nullCount": (counts, counts_ends)}
        return cls(texts, records, objects, tight_bounds)

    def occurrences(self, name: bytes) -> Places:
        """Where a name is in all texts; it is looked for once."""
        if name not in self.names:
            self.names[name] = self.texts.occurrences(name)
        return self.names[name]


def _tails(texts: _Texts, counts: Places) -> tuple[Places, pa.BooleanArray]:
    """Where the null counts, which begin at `counts`, end; what is said of the bounds."""
    ends, said = np.full(len(counts), -1), np.zeros(len(counts), np.bool_)
    missing = np.zeros(len(counts), np.bool_)
    for tail, tight in _TAILS:
        places = texts.ends - len(tail)
        rows = np.flatnonzero((ends < 0) & (counts <= places))
        rows = rows[texts.has(tail, places[rows])]
        ends[rows], said[rows], missing[rows] = places[rows], bool(tight), tight is None
    _require(bool((ends >= 0).all()))
    return ends, from_numpy(said, missing)


# ---------------------------------------------------------------- members


def _member(sections: _Sections, member: pa.Field) -> pa.Array:
    """A member of the texts themselves. Raises _OtherLayoutError, pa.ArrowInvalid."""
    if member.name == "numRecords":
        return _integers(sections.texts, *sections.num_records, member.type)
    if member.name == "tightBounds":
        return sections.tight_bounds
    leaves = [_leaf(sections, *sections.objects[member.name], leaf) for leaf in member.type]
    return pa.StructArray.from_arrays(leaves, fields=list(member.type))


def _leaf(sections: _Sections, starts: Places, ends: Places, leaf: pa.Field) -> pa.Array:
    """A member of one object of each text: null where it is missing, or null."""
    texts, values = sections.texts, _value_places(sections, leaf.name, starts, ends)
    is_there = values >= 0
    is_there[is_there] = texts.data[values[is_there]] != _NULL[0]
    rows = np.flatnonzero(is_there)
    is_null = (values >= 0) & ~is_there
    _require(bool((values[is_null] + len(_NULL) <= ends[is_null]).all() and texts.has(_NULL, values[is_null]).all()))
    if not len(rows):
        return pa.nulls(len(starts), leaf.type)
    read = _texts if leaf.type == pa.string() else _integers if leaf.type == pa.int64() else _numbers
    array = read(texts, values[rows], ends[rows], leaf.type)
    return array if len(rows) == len(starts) else array.take(from_numpy(np.cumsum(is_there) - 1, ~is_there))


def _value_places(sections: _Sections, name: str, starts: Places, ends: Places) -> Places:
    """Where the value of a name begins in each object, -1 where the object lacks it. There are no objects in the objects, so that
    a quote behind a comma or at the start begins a name, or a text that no colon follows, or ends one that ends in a comma: what
    follows that is a comma or nothing."""
    first, later = f'"{name}":'.encode(), f',"{name}":'.encode()
    is_first = starts + len(first) < ends
    is_first[is_first] = sections.texts.has(first, starts[is_first])
    places = np.where(is_first, starts + len(first), -1)
    if not is_first.all():
        found = np.append(sections.occurrences(later), np.iinfo(np.int64).max)
        next_found = found[np.searchsorted(found, starts)]
        is_later = ~is_first & (next_found < ends)
        places[is_later] = next_found[is_later] + len(later)
    _require(bool((places < ends).all()))
    return places


def _integers(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """Integers of up to 18 digits, which 64 bits hold whatever they are. Behind each number its text goes on."""
    is_negative = texts.data[starts] == _MINUS
    places = starts + is_negative
    values, digits = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    is_digit = np.ones(len(starts), np.bool_)
    for place in range(_MOST_DIGITS + 1):
        digit = np.take(texts.data, places + place, mode="clip") - np.uint8(_ZERO)  # of those that have ended it does not count
        is_digit &= digit <= 9
        if not is_digit.any():
            break
        _require(place < _MOST_DIGITS)
        values = np.where(is_digit, values * 10 + digit, values)
        digits += is_digit
    behind = places + digits
    _require(bool(((digits == 1) | ((digits > 1) & (texts.data[places] != _ZERO))).all()))
    _require(bool(((behind == ends) | ((behind < ends) & (texts.data[behind] == _COMMA))).all()))
    return from_numpy(np.where(is_negative, -values, values))


def _numbers(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """Numbers as JSON spells them. Raises _OtherLayoutError, pa.ArrowInvalid."""
    commas = texts.first(",", starts, ends)
    numbers = texts.pieces(starts, np.where(commas < 0, ends, commas))
    _require(pc.all(pc.match_substring_regex(numbers, _NUMBER)).as_py() is not False)
    return numbers.cast(kind)


def _texts(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """Texts in quotes, without escapes."""
    _require(bool((texts.data[starts] == _QUOTE).all()))
    closing = texts.first('"', starts + 1, ends)
    _require(bool((closing >= 0).all()))
    behind = closing + 1
    _require(bool(((behind == ends) | (texts.data[behind] == _COMMA)).all()))
    found = texts.pieces(starts + 1, closing)
    said = found.buffers()[2]
    if said is not None and said.size:
        characters = np.frombuffer(said, np.uint8)
        _require(not bool(((characters == _BACKSLASH) | (characters < _SPACE)).any()))
    return found
