"""CHAR(n) and VARCHAR(n): which texts of a column have a maximum length.

In the log, these columns have the type string. The metadata of the top-level field has the declared type as DDL (Spark's
`catalogString`, such as `struct<a:char(5),b:array<varchar(3)>>`). Spark reads the key only there. On a nested field, the key
comes from another table and has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from delta_py.errors import CorruptTableError
from delta_py.types.names import unquoted
from delta_py.types.schema import STRING, ArrayType, DataType, MapType, Path, PrimitiveType, StructField, StructType, type_name

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"

_LEAF = re.compile(r"\s*(char|character|varchar)\s*\(\s*(\d{1,9})\s*\)\s*", re.IGNORECASE)
_NESTED = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)
_QUOTED_NAME = re.compile(r"\s*(?P<name>`(?:[^`]|``)*`)\s*:?")
_PLAIN_NAME = re.compile(r"\s*([^:<>,\s][^:<>,]*):")  # matches blanks only once, because there may be very many
# A type without parts, such as `int` or `decimal(10, 2)`.
_OTHER = re.compile(r"[^<>,(]*(?:\([^()]*\))?[^<>,()]*")


@dataclass(frozen=True, slots=True)
class CharType:
    """A text of at most n characters, including blanks. A `char` text is written unchanged and padded with blanks to n when
    read."""

    kind: Literal["char", "varchar"]
    length: int


# The lengths in a type: its own length; by struct field; of a list's elements; of a map's keys and values.
CharTypes: TypeAlias = "CharType | Mapping[str, CharTypes] | tuple[CharTypes, ...] | None"


def char_types(field: StructField, *, strict: bool = False) -> CharTypes:
    """The lengths in the declared type of a top-level field; None if it has none.

    strict: raise CorruptTableError if the declared type cannot be parsed or its shape differs from the field's type. A writer
    must do this. Otherwise such a type, or the part of it that does not fit, counts as a type without lengths.
    """
    declared = field.metadata.get(DECLARED_TYPE)
    if declared is None:
        return None
    try:
        if not isinstance(declared, str):
            raise _NotDdl
        return _fitted(_parse(declared), field.data_type, strict=strict)
    except (_NotDdl, RecursionError) as error:
        if not strict:
            return None
        raise CorruptTableError(
            f"Column {field.name} is of type {type_name(field.data_type)}, but its metadata {DECLARED_TYPE} says "
            f"{str(declared)[:200]!r}. The lengths of its texts cannot be checked: correct the metadata of the column."
        ) from error


def char_type_at(field: StructField, inner: Path = ()) -> CharType | None:
    """The length of the text at `inner` (names of struct fields) below the field; None if it has none."""
    char_type = char_types(field)
    for name in inner:
        char_type = char_type.get(name) if isinstance(char_type, Mapping) else None
    return char_type if isinstance(char_type, CharType) else None


def only_kind(types: CharTypes, kind: Literal["char", "varchar"]) -> CharTypes:
    """The lengths of one kind, without the other kind; None if there are none."""
    match types:
        case CharType():
            return types if types.kind == kind else None
        case Mapping():
            named = {name: only_kind(part, kind) for name, part in types.items()}
            return {name: part for name, part in named.items() if part is not None} or None
        case tuple():
            parts = tuple(only_kind(part, kind) for part in types)
            return parts if any(part is not None for part in parts) else None
    return None


# ---------------------------------------------------------------- lengths in the schema's types


def with_texts(schema: StructType) -> StructType:
    """Replace CHAR(n) and VARCHAR(n) in the schema by string, and store them as the declared types of their top-level fields.

    Some writers write them directly into the schema's JSON. Spark reads such columns like columns that only declare these types.
    An existing declared type does not change.
    """
    return StructType(tuple(_with_texts(f) for f in schema.fields))


def with_lengths(field: StructField) -> StructField:
    """The reverse of with_texts: put CHAR(n) and VARCHAR(n) into the type of a top-level field, wherever its declared type has a
    length, and remove the declared type."""
    if DECLARED_TYPE not in field.metadata:
        return field
    metadata = {key: value for key, value in field.metadata.items() if key != DECLARED_TYPE}
    return replace(field, data_type=_lengths(field.data_type, char_types(field)), metadata=metadata)


def _lengths(data_type: DataType, types: CharTypes) -> DataType:
    """The type with CHAR(n) and VARCHAR(n) wherever `types` has a length."""
    match data_type, types:
        case _, CharType(kind, length):
            return PrimitiveType(f"{kind}({length})")
        case StructType(fields), Mapping():
            return StructType(tuple(replace(f, data_type=_lengths(f.data_type, types.get(f.name))) for f in fields))
        case ArrayType(element, contains_null), (inner,):
            return ArrayType(_lengths(element, inner), contains_null)
        case MapType(key, value, contains_null), (key_types, value_types):
            return MapType(_lengths(key, key_types), _lengths(value, value_types), contains_null)
    return data_type


def char_type_of(data_type: DataType) -> CharType | None:
    """The kind and length of a type CHAR(n) or VARCHAR(n); None for any other type."""
    leaf = _LEAF.fullmatch(data_type.name) if isinstance(data_type, PrimitiveType) else None
    return None if leaf is None else CharType("varchar" if leaf[1].lower() == "varchar" else "char", int(leaf[2]))


def _with_texts(field: StructField) -> StructField:
    texts = _texts(field.data_type)
    if texts == field.data_type:
        return field
    return replace(field, data_type=texts, metadata={DECLARED_TYPE: type_name(field.data_type), **field.metadata})


def _texts(data_type: DataType) -> DataType:
    """The type with STRING in place of each char and varchar in it."""
    match data_type:
        case PrimitiveType(name):
            return STRING if _LEAF.fullmatch(name) else data_type
        case ArrayType(element, contains_null):
            return ArrayType(_texts(element), contains_null)
        case MapType(key, value, contains_null):
            return MapType(_texts(key), _texts(value), contains_null)
        case StructType(fields):
            return StructType(tuple(replace(f, data_type=_texts(f.data_type)) for f in fields))
    return data_type


# ---------------------------------------------------------------- the declared type


class _NotDdl(Exception):
    """The text is not a type, or not the type of the field."""


@dataclass(frozen=True, slots=True)
class _Struct:
    fields: Mapping[str, _Declared]


@dataclass(frozen=True, slots=True)
class _Collection:
    parts: tuple[_Declared, ...]


_Declared: TypeAlias = "CharType | _Struct | _Collection | None"


def _parse(text: str) -> _Declared:
    """The lengths in a declared type such as `array<varchar(3)>`; None if it has none. Raises _NotDdl."""
    data_type, place = _type_at(text, 0)
    if place != len(text):
        raise _NotDdl
    return data_type


def _type_at(text: str, place: int) -> tuple[_Declared, int]:
    """The type that begins at `place`, and where it ends. The type is None if it contains no lengths."""
    if leaf := _LEAF.match(text, place):
        kind: Literal["char", "varchar"] = "varchar" if leaf[1].lower() == "varchar" else "char"
        return CharType(kind, int(leaf[2])), leaf.end()
    nested = _NESTED.match(text, place)
    if nested is None:
        other = _OTHER.match(text, place)
        if other is None or not other.group().strip():
            raise _NotDdl
        return None, other.end()
    is_struct, place = nested[1].lower() == "struct", nested.end()
    fields: dict[str, _Declared] = {}
    while True:
        if is_struct and not fields and text[place : place + 1] == ">":
            break
        # Parts of arrays and maps have no names in the text; their numbers serve as keys.
        name, place = _name_at(text, place) if is_struct else (str(len(fields)), place)
        fields[name], place = _type_at(text, place)
        if text[place : place + 1] != ",":
            break
        place += 1
    if text[place : place + 1] != ">":
        raise _NotDdl
    return _Struct(fields) if is_struct else _Collection(tuple(fields.values())), _after_blanks(text, place + 1)


def _name_at(text: str, place: int) -> tuple[str, int]:
    """The name of the struct field that begins at `place`, and where its type begins. Raises _NotDdl."""
    if quoted := _QUOTED_NAME.match(text, place):
        return unquoted(quoted["name"]), quoted.end()
    if plain := _PLAIN_NAME.match(text, place):
        return plain[1], plain.end()
    raise _NotDdl


def _after_blanks(text: str, place: int) -> int:
    return place + len(text[place:]) - len(text[place:].lstrip())


# ---------------------------------------------------------------- comparison with the field's own type


def _fitted(declared: _Declared, data_type: DataType, *, strict: bool) -> CharTypes:
    """The declared lengths of the parts that the type has; None if there are none. Struct fields may have been dropped or added
    since the declaration. strict: raise _NotDdl if the two types differ otherwise."""
    match declared, data_type:
        case None, _:
            return None
        case CharType(), _ if data_type == STRING:
            return declared
        case _Struct(fields), StructType():
            named = {f.name: _fitted(fields.get(f.name), f.data_type, strict=strict) for f in data_type.fields}
            return {name: part for name, part in named.items() if part is not None} or None
        case _Collection((element,)), ArrayType():
            inner = _fitted(element, data_type.element_type, strict=strict)
            return None if inner is None else (inner,)
        case _Collection((key, value)), MapType():
            parts = (
                _fitted(key, data_type.key_type, strict=strict),
                _fitted(value, data_type.value_type, strict=strict),
            )
            return parts if any(part is not None for part in parts) else None
    if strict:
        raise _NotDdl
    return None
