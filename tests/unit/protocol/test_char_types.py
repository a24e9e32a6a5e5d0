"""The declared lengths of texts: reading the DDL in a column's metadata, nested too."""

from __future__ import annotations

import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol.char_types import CharType, CharTypes, char_type_at, char_types, only_kind
from delta_py.protocol.schema import INTEGER, STRING, ArrayType, DataType, DecimalType, MapType, StructField, StructType

CHAR5, VARCHAR3 = CharType("char", 5), CharType("varchar", 3)


def field(declared: object, data_type: DataType = STRING) -> StructField:
    return StructField("c", data_type, metadata={"__CHAR_VARCHAR_TYPE_STRING": declared})


def struct(*fields: tuple[str, DataType]) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in fields))


@pytest.mark.parametrize(
    ("declared", "data_type", "found"),
    [
        ("char(5)", STRING, CHAR5),
        ("CHAR( 5 )", STRING, CHAR5),
        ("varchar(3)", STRING, VARCHAR3),
        ("string", STRING, None),
        ("string collate UTF8_LCASE", STRING, None),
        ("array<char(5)>", ArrayType(STRING), (CHAR5,)),
        ("array<array<varchar(3)>>", ArrayType(ArrayType(STRING)), ((VARCHAR3,),)),
        ("map<char(5),int>", MapType(STRING, INTEGER), (CHAR5, None)),
        ("map<string,varchar(3)>", MapType(STRING, STRING), (None, VARCHAR3)),
        ("struct<a:int,b:char(5)>", struct(("a", INTEGER), ("b", STRING)), {"b": CHAR5}),
        (
            "struct<d:decimal(10,2),b:array<struct<x:varchar(3),y:map<int,char(5)>>>>",
            struct(("d", DecimalType(10, 2)), ("b", ArrayType(struct(("x", STRING), ("y", MapType(INTEGER, STRING)))))),
            {"b": ({"x": VARCHAR3, "y": (None, CHAR5)},)},
        ),
        ("struct<`a b,c:``d`:char(5)>", struct(("a b,c:`d", STRING)), {"a b,c:`d": CHAR5}),
        ("struct<two words:char(5)>", struct(("two words", STRING)), {"two words": CHAR5}),
        ("struct<>", struct(), None),
        ("struct<gone:char(5),b:varchar(3)>", struct(("b", STRING), ("new", STRING)), {"b": VARCHAR3}),
    ],
)
def test_declared_type_gives_the_length_of_each_text(declared: str, data_type: DataType, found: CharTypes) -> None:
    assert char_types(field(declared, data_type)) == found
    assert char_types(field(declared, data_type), strict=True) == found


@pytest.mark.parametrize(
    ("declared", "data_type"),
    [
        ("", STRING),
        ("char(5", STRING),
        ("char(5))", STRING),
        ("array<char(5)", ArrayType(STRING)),
        ("struct<char(5)>", struct(("a", STRING))),
        ("map<char(5)>", MapType(STRING, STRING)),
        ("char(5)", INTEGER),
        ("array<char(5)>", STRING),
        (7, STRING),
    ],
)
def test_declared_type_that_does_not_fit_says_nothing_to_a_reader_and_stops_a_writer(
    declared: object, data_type: DataType
) -> None:
    assert char_types(field(declared, data_type)) is None
    with pytest.raises(CorruptTableError, match="__CHAR_VARCHAR_TYPE_STRING"):
        char_types(field(declared, data_type), strict=True)


def test_column_without_declared_type_has_no_length() -> None:
    assert char_types(StructField("c", STRING), strict=True) is None


def test_leaf_below_structs_is_found_by_its_names() -> None:
    nested = field("struct<a:struct<b:char(5)>>", struct(("a", struct(("b", STRING)))))
    assert char_type_at(nested, ("a", "b")) == CHAR5
    assert char_type_at(nested, ("a",)) is None
    assert char_type_at(nested, ("a", "b", "c")) is None
    assert char_type_at(field("char(5)")) == CHAR5


def test_one_kind_is_kept_without_the_other() -> None:
    types: CharTypes = {"a": CHAR5, "b": (VARCHAR3, CHAR5), "c": (VARCHAR3,)}
    assert only_kind(types, "char") == {"a": CHAR5, "b": (None, CHAR5)}
    assert only_kind(types, "varchar") == {"b": (VARCHAR3, None), "c": (VARCHAR3,)}
    assert only_kind(VARCHAR3, "char") is None
