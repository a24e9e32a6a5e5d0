"""Prepares JSON lines for pyarrow's reader: blocks of whole lines, in a form that it accepts.

pyarrow reads neither maps written as objects nor NaN and infinities written as texts, the forms that values.py and Spark write.
Blocks with such values are rewritten with lists of pairs, and with the bare words that pyarrow accepts; numbers keep their
digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import orjson
import pyarrow as pa

from delta_py.errors import SchemaMismatchError
from delta_py.types.sizes import bytes_text

BLOCK_BYTES = 16 << 20
LINE_BYTES = 4 * BLOCK_BYTES
_NOT_BLANK = re.compile(r"\S")
_ODD_NUMBERS = ("NaN", "Infinity", "-Infinity")
_ODD_NUMBER = re.compile(rb'"(?:NaN|-?Infinity)"')

Names: TypeAlias = "dict[str, Names]"
"""Names of columns, and below each the names of its fields, as a file spells them. Elements of lists have the
names of the list."""


class _Word(str):
    """A JSON value without quotes: a number as it is written, NaN."""


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


def whole_lines(file: Readable) -> Iterator[bytes]:
    """The file in blocks that end at the end of a line. Raises SchemaMismatchError for a line of more than LINE_BYTES."""
    waiting: list[bytes] = []
    while data := file.read(BLOCK_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join([*waiting, data[:end]])
            waiting = []
        waiting.append(data[end:])
        if sum(map(len, waiting)) > LINE_BYTES:
            raise SchemaMismatchError(
                f"The file has a line of more than {bytes_text(LINE_BYTES)}. Nothing was committed. JSON is read a row a line: "
                "write each row on a line of its own."
            )
    if last_line := b"".join(waiting):
        yield last_line


def names(block: bytes) -> Names:
    """The names in the JSON objects, up to the first that is cut off or invalid; pyarrow reports why that one is invalid."""
    field_names: Names = {}
    for value, _ in _values(block.decode(errors="replace"), json.JSONDecoder(strict=False)):
        _note(field_names, value)
    return field_names


def _note(field_names: Names, value: Any) -> None:
    """Collect the names of fields at each level. Lists have those of their elements."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _note(field_names.setdefault(name, {}), inner)
    elif isinstance(value, list):
        for inner in value:
            _note(field_names, inner)


def _values(text: str, decoder: json.JSONDecoder) -> Iterator[tuple[Any, int]]:
    """The values in a text, each with the position of its end, up to the first invalid one. Raises SchemaMismatchError for a
    value that is nested too deep."""
    place = 0
    while start := _NOT_BLANK.search(text, place):
        try:
            value, place = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError:
            return
        except RecursionError as error:
            raise SchemaMismatchError(
                "A value of the file is nested deeper than can be read. Nothing was committed. Take it out of the file."
            ) from error
        yield value, place


# ---------------------------------------------------------------- maps, NaN, infinities


def for_pyarrow(block: bytes, table: pa.StructType) -> bytes:
    """The rows of a block in the form that pyarrow reads: maps as lists of {"key", "value"}, with keys other than structs, lists
    and maps as text. Text that is not JSON does not change, nor do the values of columns that the table does not have.

    Raises SchemaMismatchError for an object that has a name twice, ignoring case.
    """
    if not _any_type(table, pa.types.is_map) and not (_any_type(table, pa.types.is_floating) and _ODD_NUMBER.search(block)):
        return block
    text, place = block.decode(), 0
    lines = []
    for value, place in _values(text, _EXACT):  # noqa: B007
        lines.append(orjson.dumps(_rewritten(value, table), _bare, orjson.OPT_PASSTHROUGH_SUBCLASS))
    # From an invalid value on the text does not change: pyarrow reports why it is invalid.
    return b"\n".join([*lines, text[place:].encode()])


def _bare(word: _Word) -> orjson.Fragment:
    return orjson.Fragment(str(word))


def _any_type(kind: pa.DataType, is_kind: Any) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return is_kind(kind) or any(_any_type(child, is_kind) for child in inner)


def _rewritten(value: Any, kind: pa.DataType | None) -> Any:
    """kind: the column's type; None for a column that the table does not have."""
    if kind is None or value is None:
        return value
    if isinstance(value, str):
        return _Word(value) if pa.types.is_floating(kind) and value in _ODD_NUMBERS else value
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {f.name.lower(): f for f in kind}
        return _object(_field(name, inner, fields.get(name.lower())) for name, inner in value.items())
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_rewritten(inner, kind.value_type) for inner in value]
    if pa.types.is_map(kind) and isinstance(value, dict):
        return [{"key": key, "value": _rewritten(inner, kind.item_type)} for key, inner in value.items()]
    if pa.types.is_map(kind) and isinstance(value, list):
        return [_pair(pair, kind) for pair in value]
    return value


def _field(name: str, value: Any, field: pa.Field | None) -> tuple[str, Any]:
    return (name, value) if field is None else (field.name, _rewritten(value, field.type))


def _pair(pair: Any, kind: pa.MapType) -> Any:
    if not isinstance(pair, dict):
        return pair
    return _object(_entry(name.lower(), inner, kind) for name, inner in pair.items())


def _entry(name: str, value: Any, kind: pa.MapType) -> tuple[str, Any]:
    """A member of a map's entry. Keys that are not text in JSON become text."""
    if name == "value":
        return name, _rewritten(value, kind.item_type)
    if name != "key" or pa.types.is_nested(kind.key_type):
        return name, _rewritten(value, kind.key_type)
    if isinstance(value, bool):
        return name, "true" if value else "false"
    return name, str(value) if isinstance(value, _Word) else value


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    json_object: dict[str, Any] = {}
    for name, value in pairs:
        if name in json_object:
            raise SchemaMismatchError(
                f"An object of the file has the name {name} twice. Nothing was committed. Correct the file.", name=name
            )
        json_object[name] = value
    return json_object


_EXACT = json.JSONDecoder(parse_float=_Word, parse_int=_Word, parse_constant=_Word, strict=False, object_pairs_hook=_object)
"""Keeps numbers as they are written: a decimal may have more digits than a float."""
