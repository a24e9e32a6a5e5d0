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

_CHAR_TYPE = re.compile(r"\s*(char|character|varchar)\s*\(\s*(\d{1,9})\s*\)\s*", re.IGNORECASE)
_NESTED = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)
_QUOTED_NAME = re.compile(r"\s*(?P<name>`(?:[^`]|``)*`)\s*:?")
_PLAIN_NAME = re.compile(r"\s*([^:<>,\s][^:<>,]*):")  # matches blanks only once, because there may be very many
# A type without parts, such as `int` or `decimal(10, 2)`.
_OTHER_TYPE = re.compile(r"[^<>,(]*(?:\([^()]*\))?[^<>,()]*")


@dataclass(frozen=True, slots=True)
class CharType:
    """A text of at most n characters, including blanks. A `char` text is written unchanged and padded with blanks to n when
    read."""

    kind: Literal["char", "varchar"]
    length: int


# The lengths in a type, in the structure of the type: a CharType for a text; a mapping by field names for a struct; (element,)
# for a list; (key, value) for a map; None for a type or a part without lengths.
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
        return _match_to_type(_parse_declared(declared), field.data_type, strict=strict)
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


def select_kind(types: CharTypes, kind: Literal["char", "varchar"]) -> CharTypes:
    """Only the char lengths or only the varchar lengths of a type; None if there are none. kind: which of them."""
    match types:
        case CharType():
            return types if types.kind == kind else None
        case Mapping():
            types_by_name = {name: select_kind(part, kind) for name, part in types.items()}
            return {name: part for name, part in types_by_name.items() if part is not None} or None
        case tuple():
            parts = tuple(select_kind(part, kind) for part in types)
            return parts if any(part is not None for part in parts) else None
    return None


# ---------------------------------------------------------------- lengths in the schema's types


def with_char_as_string(schema: StructType) -> StructType:
    """Replace CHAR(n) and VARCHAR(n) in the schema by string, and store them as the declared types of their top-level fields.

    Some writers write them directly into the schema's JSON. Spark reads such columns like columns that only declare these types.
    An existing declared type does not change.
    """
    return StructType(tuple(_with_text_type(f) for f in schema.fields))


def with_string_as_char(field: StructField) -> StructField:
    """The reverse of with_char_as_string: put CHAR(n) and VARCHAR(n) into the type of a top-level field, and remove the declared
    type. So the type can be changed part by part, and with_char_as_string then declares the new type."""
    if DECLARED_TYPE not in field.metadata:
        return field
    metadata = {key: value for key, value in field.metadata.items() if key != DECLARED_TYPE}
    return replace(field, data_type=_replace_by_char_types(field.data_type, char_types(field)), metadata=metadata)


def _replace_by_char_types(data_type: DataType, types: CharTypes) -> DataType:
    """The type with CHAR(n) and VARCHAR(n) wherever `types` has a length."""
    match data_type, types:
        case _, CharType(kind, length):
            return PrimitiveType(f"{kind}({length})")
        case StructType(fields), Mapping():
            return StructType(tuple(replace(f, data_type=_replace_by_char_types(f.data_type, types.get(f.name))) for f in fields))
        case ArrayType(element, contains_null), (inner,):
            return ArrayType(_replace_by_char_types(element, inner), contains_null)
        case MapType(key, value, contains_null), (key_types, value_types):
            return MapType(_replace_by_char_types(key, key_types), _replace_by_char_types(value, value_types), contains_null)
    return data_type


def char_type_of(data_type: DataType) -> CharType | None:
    """The kind and length of a type CHAR(n) or VARCHAR(n); None for any other type."""
    char_type = _CHAR_TYPE.fullmatch(data_type.name) if isinstance(data_type, PrimitiveType) else None
    return None if char_type is None else CharType("varchar" if char_type[1].lower() == "varchar" else "char", int(char_type[2]))


def _with_text_type(field: StructField) -> StructField:
    """The top-level field with string in place of CHAR and VARCHAR, and with these as its declared type."""
    texts = _replace_by_string(field.data_type)
    if texts == field.data_type:
        return field
    return replace(field, data_type=texts, metadata={DECLARED_TYPE: type_name(field.data_type), **field.metadata})


def _replace_by_string(data_type: DataType) -> DataType:
    """The type with STRING in place of each char and varchar in it."""
    match data_type:
        case PrimitiveType(name):
            return STRING if _CHAR_TYPE.fullmatch(name) else data_type
        case ArrayType(element, contains_null):
            return ArrayType(_replace_by_string(element), contains_null)
        case MapType(key, value, contains_null):
            return MapType(_replace_by_string(key), _replace_by_string(value), contains_null)
        case StructType(fields):
            return StructType(tuple(replace(f, data_type=_replace_by_string(f.data_type)) for f in fields))
    return data_type


# ---------------------------------------------------------------- the declared type


class _NotDdl(Exception):
    """The text is not a type, or not the type of the field."""


@dataclass(frozen=True, slots=True)
class _Struct:
    """A declared struct; fields: what their types declare, by name."""

    fields: Mapping[str, _Declared]


@dataclass(frozen=True, slots=True)
class _Collection:
    """A declared array or map; parts: its element, or its key and value."""

    parts: tuple[_Declared, ...]


# What a declared type says about lengths, before it is compared with the field's own type; None for a type without lengths.
_Declared: TypeAlias = "CharType | _Struct | _Collection | None"


def _parse_declared(text: str) -> _Declared:
    """The lengths in a declared type such as `array<varchar(3)>`; None if it has none. Raises _NotDdl."""
    data_type, end = _parse_type_at(text, 0)
    if end != len(text):
        raise _NotDdl
    return data_type


def _parse_type_at(text: str, position: int) -> tuple[_Declared, int]:
    """The type that begins at `position`, and where it ends. The type is None if it contains no lengths."""
    if char_type := _CHAR_TYPE.match(text, position):
        kind: Literal["char", "varchar"] = "varchar" if char_type[1].lower() == "varchar" else "char"
        return CharType(kind, int(char_type[2])), char_type.end()
    nested = _NESTED.match(text, position)
    if nested is None:
        other_type = _OTHER_TYPE.match(text, position)
        if other_type is None or not other_type.group().strip():
            raise _NotDdl
        return None, other_type.end()
    is_struct, position = nested[1].lower() == "struct", nested.end()
    fields: dict[str, _Declared] = {}
    while True:
        if is_struct and not fields and text[position : position + 1] == ">":  # a struct without fields
            break
        # Parts of arrays and maps have no names in the text; their numbers serve as keys.
        name, position = _parse_name_at(text, position) if is_struct else (str(len(fields)), position)
        fields[name], position = _parse_type_at(text, position)
        if text[position : position + 1] != ",":
            break
        position += 1
    if text[position : position + 1] != ">":
        raise _NotDdl
    return _Struct(fields) if is_struct else _Collection(tuple(fields.values())), _skip_blanks(text, position + 1)


def _parse_name_at(text: str, position: int) -> tuple[str, int]:
    """The name of the struct field that begins at `position`, and where its type begins. Raises _NotDdl."""
    if quoted := _QUOTED_NAME.match(text, position):
        return unquoted(quoted["name"]), quoted.end()
    if plain := _PLAIN_NAME.match(text, position):
        return plain[1], plain.end()
    raise _NotDdl


def _skip_blanks(text: str, position: int) -> int:
    """The position of the first character from `position` on that is no blank."""
    return position + len(text[position:]) - len(text[position:].lstrip())


# ---------------------------------------------------------------- comparison with the field's own type


def _match_to_type(declared: _Declared, data_type: DataType, *, strict: bool) -> CharTypes:
    """The declared lengths of the parts that the type has; None if there are none. Struct fields may have been dropped or added
    since the declaration. strict: raise _NotDdl if the two types differ otherwise."""
    match declared, data_type:
        case None, _:
            return None
        case CharType(), _ if data_type == STRING:
            return declared
        case _Struct(fields), StructType():
            types_by_name = {f.name: _match_to_type(fields.get(f.name), f.data_type, strict=strict) for f in data_type.fields}
            return {name: part for name, part in types_by_name.items() if part is not None} or None
        case _Collection((element,)), ArrayType():
            element_types = _match_to_type(element, data_type.element_type, strict=strict)
            return None if element_types is None else (element_types,)
        case _Collection((key, value)), MapType():
            parts = (
                _match_to_type(key, data_type.key_type, strict=strict),
                _match_to_type(value, data_type.value_type, strict=strict),
            )
            return parts if any(part is not None for part in parts) else None
    if strict:
        raise _NotDdl
    return None
