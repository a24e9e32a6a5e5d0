"""Read statistics texts in the layout that most writers use, without parsing the members that are not requested.

    {"numRecords":1,"minValues":{...},"maxValues":{...},"nullCount":{...}}          # also with "tightBounds" at the end

If all texts of a batch have this layout, their objects contain no nested objects, and the requested leaves are numbers or texts,
then the members are found in bulk by the positions of braces and names. Their values are decoded as JSON. json_objects.py reads
all other texts.
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

_WORD = 8  # bytes of a 64-bit number
_BLOCK = 1 << 18  # bytes that are searched at a time, so that the masks stay in the processor's cache
_LEAST_TEXTS = 256  # with fewer texts, these steps cost more than the parser
_HEAD, _TO_MINIMA = b'{"numRecords":', b',"minValues":{'
_TO_MAXIMA, _TO_COUNTS = b'},"maxValues":{', b'},"nullCount":{'
# How a text ends after the null counts, and the value of tightBounds in it; None if the text does not have it.
_TAILS = ((b"}}", None), (b'},"tightBounds":true}', True), (b'},"tightBounds":false}', False))
_NULL = b"null"
# ASCII that JSON does not escape, without braces. A comma or a colon may follow a closing quote, so no name may begin with them.
_NAME = re.compile(r"(?![,:])[ !#-\[\]-z|~]+")
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"
_MAX_DIGITS = 18  # any integer of 18 digits fits into 64 bits
_OPENING, _COMMA, _QUOTE, _BACKSLASH, _SPACE, _MINUS, _ZERO = (ord(character) for character in '{,"\\ -0')

Places = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def read_plain_stats(texts: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.StructArray | None:
    """The requested members of each text, in the form of read_json_objects; None if any text has another layout.

    schema: of statistics (stats.py). A text that is not JSON is accepted if it has the layout and its requested members are
    valid. If several members have the same name, the first one counts.
    """
    is_one_array = isinstance(texts, pa.StringArray)
    if not is_one_array or len(texts) < _LEAST_TEXTS or texts.null_count or not _can_decode(schema):
        return None
    try:
        sections = _Sections.of(_Texts.of(texts))
        members = [_decode_member(sections, member) for member in schema]
    except (_OtherLayoutError, pa.ArrowInvalid):
        return None
    return pa.StructArray.from_arrays(members, fields=list(schema))


class _OtherLayoutError(Exception):
    """A text does not have the expected layout."""


def _require(holds: bool) -> None:
    """Raises _OtherLayoutError if the condition does not hold."""
    if not holds:
        raise _OtherLayoutError


def _can_decode(schema: pa.Schema) -> bool:
    """Whether this module can decode the requested leaves: all are top-level columns of numbers or texts, with names that JSON
    does not escape."""
    leaves = [leaf for member in schema if pa.types.is_struct(member.type) for leaf in member.type]
    return all(_NAME.fullmatch(leaf.name) and _is_number_or_text(leaf.type) for leaf in leaves)


def _is_number_or_text(kind: pa.DataType) -> bool:
    return kind in (pa.int64(), pa.float64(), pa.string()) or pa.types.is_decimal(kind)


@dataclass(frozen=True, slots=True)
class _Texts:
    """A buffer of texts, and where each text begins and ends. All places are byte positions."""

    buffer: pa.Buffer
    data: np.ndarray[Any, np.dtype[np.uint8]]
    starts: Places
    ends: Places

    @classmethod
    def of(cls, texts: pa.StringArray) -> _Texts:
        """Raises _OtherLayoutError if the texts have no bytes."""
        _, offsets, buffer = texts.buffers()
        _require(buffer is not None and buffer.size > 0)
        edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        return cls(buffer, np.frombuffer(buffer, np.uint8), edges[:-1], edges[1:])

    def are_at(self, expected: bytes, places: Places) -> Mask:
        """Whether exactly these bytes are at each of the places. Eight bytes are compared at a time, so the buffer must have at
        least eight bytes before the end of each occurrence. Each occurrence must be within the buffer."""
        words = np.ndarray((len(self.data) - _WORD + 1,), "<u8", self.data, strides=(1,))  # one word from each byte on
        ends = places + len(expected)
        # First the eight bytes that end with `expected`. If it has fewer, the shift drops the bytes before it.
        is_there: Mask = words[ends - _WORD] >> _unused_bits(expected) == _as_word(expected[-_WORD:])
        # Then words from the start on. The last of them may overlap the word that was compared first.
        for start in range(0, len(expected) - _WORD, _WORD):
            is_there &= words[places + start] == _as_word(expected[start : start + _WORD])
        return is_there

    def find_all(self, needle: bytes) -> Places:
        """Every place at which a text contains the needle, except within its first _WORD bytes, where `are_at` could not compare.
        needle: three bytes or more."""
        begin, end = int(self.starts[0]), int(self.ends[-1])
        before_end, candidates = len(needle) - 3, []  # before_end: the offset of the needle's last three bytes
        for start in range(begin + _WORD, end - before_end - 2, _BLOCK):
            stop = min(start + _BLOCK, end - before_end - 2)
            # Two bytes of the needle together are rarer than each byte alone, and the search for them is fast.
            is_likely = self.data[start + before_end : stop + before_end] == needle[-3]
            is_likely &= self.data[start + before_end + 2 : stop + before_end + 2] == needle[-1]
            candidates.append(np.flatnonzero(is_likely) + start)
        places = np.concatenate([np.empty(0, np.int64), *candidates])
        return places[self.are_at(needle, places)]

    def find_first(self, character: str, starts: Places, ends: Places) -> Places:
        """The first place of the character in each piece of a text; -1 if the piece does not contain it. The places must be in
        ascending order."""
        # The bytes between the pieces are searched too, because copies of the pieces would cost more. The results for the pieces
        # are those at even positions.
        offsets = to_numpy(pc.find_substring(self._pieces_and_gaps(starts, ends), character))[::2]
        return np.where(offsets < 0, -1, starts + offsets)

    def pieces(self, starts: Places, ends: Places) -> pa.StringArray:
        """The texts from each start to its end. The places must be in ascending order."""
        pieces_and_gaps = self._pieces_and_gaps(starts, ends)
        return pieces_and_gaps.take(from_numpy(np.arange(0, len(pieces_and_gaps), 2, dtype=np.int32)))

    def _pieces_and_gaps(self, starts: Places, ends: Places) -> pa.StringArray:
        """The pieces without a copy, alternating with the bytes between one piece and the next."""
        edges = np.empty(2 * len(starts), np.int32)
        edges[::2], edges[1::2] = starts, ends
        return pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), self.buffer)


def _as_word(expected: bytes) -> np.uint64:
    """Up to eight bytes as the number that a processor reads from them, the first byte lowest."""
    return np.uint64(int.from_bytes(expected, "little"))


def _unused_bits(expected: bytes) -> np.uint64:
    """How many bits of a word remain if the bytes are in it; 0 for eight bytes or more."""
    return np.uint64(max(0, _WORD - len(expected)) * 8)


@dataclass(frozen=True, slots=True)
class _Sections:
    """The parts of the texts, in texts that have the layout.

    num_records: the places where the record count begins and ends in each text. objects: for minValues, maxValues and nullCount,
    the places where the members of the object begin and end in each text. tight_bounds: the value in each text (null: there is
    none).
    names: a cache of `find_name`.
    """

    texts: _Texts
    num_records: tuple[Places, Places]
    objects: dict[str, tuple[Places, Places]]
    tight_bounds: pa.BooleanArray
    names: dict[bytes, Places] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: _Texts) -> _Sections:
        """Find the parts. Raises _OtherLayoutError. For any input, each check ensures that the next checks read only bytes of the
        texts."""
        count, begin, end = len(texts.starts), int(texts.starts[0]), int(texts.ends[-1])
        # Each text has four braces: its own, and those of its three objects.
        _require(np.count_nonzero(texts.data[begin : texts.ends[0]] == _OPENING) == 4)  # check one text before all texts
        braces = np.flatnonzero(texts.data[begin:end] == _OPENING) + begin
        _require(len(braces) == 4 * count)
        # The places after the four braces of each text: of the text itself, of minValues, of maxValues and of nullCount.
        roots, minima, maxima, counts = braces.reshape(count, 4).T + 1
        _require(bool(((roots - 1 == texts.starts) & (counts <= texts.ends)).all()))
        records = (texts.starts + len(_HEAD), minima - len(_TO_MINIMA))
        minima_ends, maxima_ends = maxima - len(_TO_MAXIMA), counts - len(_TO_COUNTS)
        _require(bool(((records[0] < records[1]) & (minima <= minima_ends) & (maxima <= maxima_ends)).all()))
        # The bytes that must be between the parts, and where.
        between = ((_HEAD, texts.starts), (_TO_MINIMA, records[1]), (_TO_MAXIMA, minima_ends), (_TO_COUNTS, maxima_ends))
        _require(all(texts.are_at(expected, places).all() for expected, places in between))
        counts_ends, tight_bounds = _find_tails(texts, counts)
        objects = {"minValues": (minima, minima_ends), "maxValues": (maxima, maxima_ends), "nullCount": (counts, counts_ends)}
        return cls(texts, records, objects, tight_bounds)

    def find_name(self, name: bytes) -> Places:
        """The places of a name in all texts. Each name is searched for only once."""
        if name not in self.names:
            self.names[name] = self.texts.find_all(name)
        return self.names[name]


def _find_tails(texts: _Texts, counts: Places) -> tuple[Places, pa.BooleanArray]:
    """The positions where the null counts, which begin at `counts`, end; and the values of tightBounds (null: there is none)."""
    ends, is_tight = np.full(len(counts), -1), np.zeros(len(counts), np.bool_)
    is_unknown = np.zeros(len(counts), np.bool_)
    for tail, tight_bounds in _TAILS:
        places = texts.ends - len(tail)
        rows = np.flatnonzero((ends < 0) & (counts <= places))  # texts that are long enough for it, and have no tail yet
        rows = rows[texts.are_at(tail, places[rows])]
        ends[rows], is_tight[rows], is_unknown[rows] = places[rows], bool(tight_bounds), tight_bounds is None
    _require(bool((ends >= 0).all()))
    return ends, from_numpy(is_tight, is_unknown)


# ---------------------------------------------------------------- members


def _decode_member(sections: _Sections, member: pa.Field) -> pa.Array:
    """A top-level member of the texts. Raises _OtherLayoutError, pa.ArrowInvalid."""
    if member.name == "numRecords":
        return _decode_integers(sections.texts, *sections.num_records, member.type)
    if member.name == "tightBounds":
        return sections.tight_bounds
    leaves = [_decode_leaf(sections, *sections.objects[member.name], leaf) for leaf in member.type]
    return pa.StructArray.from_arrays(leaves, fields=list(member.type))


def _decode_leaf(sections: _Sections, starts: Places, ends: Places, leaf: pa.Field) -> pa.Array:
    """A member of one object of each text; null if the member is missing or null."""
    texts, values = sections.texts, _value_places(sections, leaf.name, starts, ends)
    is_there = values >= 0
    # A value that begins as null does must be null.
    is_there[is_there] = texts.data[values[is_there]] != _NULL[0]
    rows = np.flatnonzero(is_there)
    is_null = (values >= 0) & ~is_there
    _require(bool((values[is_null] + len(_NULL) <= ends[is_null]).all() and texts.are_at(_NULL, values[is_null]).all()))
    if not len(rows):
        return pa.nulls(len(starts), leaf.type)
    decode = _decode_texts if leaf.type == pa.string() else _decode_integers if leaf.type == pa.int64() else _decode_numbers
    array = decode(texts, values[rows], ends[rows], leaf.type)
    # The values in their rows, and null in the others.
    return array if len(rows) == len(starts) else array.take(from_numpy(np.cumsum(is_there) - 1, ~is_there))


def _value_places(sections: _Sections, name: str, starts: Places, ends: Places) -> Places:
    """Where the value of a name begins in each object; -1 if the object does not have the name.

    A search for `,"name":` finds only names, because the objects contain no objects. A quote after a comma may also begin a value
    that is a text, but no colon follows such a text. Or it may end a text whose last character is a comma, but then a comma or
    the end of the object follows, which no name begins with.
    """
    first_key, later_key = f'"{name}":'.encode(), f',"{name}":'.encode()
    is_first = starts + len(first_key) < ends
    is_first[is_first] = sections.texts.are_at(first_key, starts[is_first])
    places = np.where(is_first, starts + len(first_key), -1)
    if not is_first.all():
        occurrences = np.append(sections.find_name(later_key), np.iinfo(np.int64).max)  # an end for the search
        next_place = occurrences[np.searchsorted(occurrences, starts)]
        is_later = ~is_first & (next_place < ends)
        places[is_later] = next_place[is_later] + len(later_key)
    _require(bool((places < ends).all()))
    return places


def _decode_integers(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """The integers that begin at `starts`, within objects that end at `ends`. They have up to 18 digits, which always fit into 64
    bits.
    Raises _OtherLayoutError for any other value. All numbers are read at the same time, one digit of each in each step."""
    is_negative = texts.data[starts] == _MINUS
    places = starts + is_negative
    values, digits = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    is_digit = np.ones(len(starts), np.bool_)
    for digit_number in range(_MAX_DIGITS + 1):
        # Other characters become 10 or more: those below `0` wrap around. After the end of a number, digits are ignored.
        digit = np.take(texts.data, places + digit_number, mode="clip") - np.uint8(_ZERO)
        is_digit &= digit <= 9
        if not is_digit.any():
            break
        _require(digit_number < _MAX_DIGITS)
        values = np.where(is_digit, values * 10 + digit, values)
        digits += is_digit
    after_value = places + digits
    # As in JSON: no leading zeros, and a comma or the end after the number.
    _require(bool(((digits == 1) | ((digits > 1) & (texts.data[places] != _ZERO))).all()))
    _require(bool(((after_value == ends) | ((after_value < ends) & (texts.data[after_value] == _COMMA))).all()))
    return from_numpy(np.where(is_negative, -values, values))


def _decode_numbers(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """The numbers that begin at `starts`, within objects that end at `ends`, as values of `kind`. Raises _OtherLayoutError if one
    of them is no number in JSON syntax, and pa.ArrowInvalid if one does not fit the type."""
    commas = texts.find_first(",", starts, ends)
    numbers = texts.pieces(starts, np.where(commas < 0, ends, commas))
    _require(pc.all(pc.match_substring_regex(numbers, _NUMBER)).as_py() is not False)
    return numbers.cast(kind)


def _decode_texts(texts: _Texts, starts: Places, ends: Places, kind: pa.DataType) -> pa.Array:
    """The texts in quotes that begin at `starts`, within objects that end at `ends`. Raises _OtherLayoutError for a value that is
    no text, or has escapes."""
    _require(bool((texts.data[starts] == _QUOTE).all()))
    closing = texts.find_first('"', starts + 1, ends)
    _require(bool((closing >= 0).all()))
    after_value = closing + 1
    _require(bool(((after_value == ends) | (texts.data[after_value] == _COMMA)).all()))
    values = texts.pieces(starts + 1, closing)
    value_bytes = values.buffers()[2]
    if value_bytes is not None and value_bytes.size:
        characters = np.frombuffer(value_bytes, np.uint8)
        _require(not bool(((characters == _BACKSLASH) | (characters < _SPACE)).any()))
    return values
