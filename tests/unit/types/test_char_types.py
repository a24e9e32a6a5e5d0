"""The declared lengths of texts: parsing the DDL in a column's metadata, nested too."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import CorruptTableError, ExpressionError, InvariantViolationError, UnsupportedOperationError
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.tree import Comparison, Literal
from delta_py.protocol.actions import Metadata, action_to_line
from delta_py.types.char_types import (
    DECLARED_TYPE,
    CharType,
    CharTypes,
    char_type_at,
    char_types,
    select_kind,
    with_char_as_string,
)
from delta_py.types.schema import (
    INTEGER,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
    schema_to_json,
)

CHAR5, VARCHAR3 = CharType("char", 5), CharType("varchar", 3)


def field(declared: object, data_type: DataType = STRING) -> StructField:
    return StructField("c", data_type, metadata={"__CHAR_VARCHAR_TYPE_STRING": declared})


def struct(*fields: tuple[str, DataType]) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in fields))


@pytest.mark.parametrize(
    ("declared", "data_type", "expected_types"),
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
def test_declared_type_gives_the_length_of_each_text(declared: str, data_type: DataType, expected_types: CharTypes) -> None:
    assert char_types(field(declared, data_type)) == expected_types
    assert char_types(field(declared, data_type), strict=True) == expected_types


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
def test_invalid_declared_type_is_ignored_by_readers_only(
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
    assert select_kind(types, "char") == {"a": CHAR5, "b": (None, CHAR5)}
    assert select_kind(types, "varchar") == {"b": (VARCHAR3, None), "c": (VARCHAR3,)}
    assert select_kind(VARCHAR3, "char") is None


# ---------------------------------------------------------------- as a type of the schema


@pytest.mark.parametrize(
    ("data_type", "texts", "declared"),
    [
        (PrimitiveType("varchar(3)"), STRING, "varchar(3)"),
        (PrimitiveType("char(3)"), STRING, "char(3)"),
        (ArrayType(PrimitiveType("char(2)"), False), ArrayType(STRING, False), "array<char(2)>"),
        (MapType(STRING, PrimitiveType("varchar(2)")), MapType(STRING, STRING), "map<string,varchar(2)>"),
        (
            StructType((StructField("a", PrimitiveType("char(2)"), False), StructField("b", INTEGER))),
            StructType((StructField("a", STRING, False), StructField("b", INTEGER))),
            "struct<a:char(2),b:int>",
        ),
    ],
)
def test_type_straight_in_the_schema_is_a_declared_one(data_type: DataType, texts: DataType, declared: str) -> None:
    written = StructType((StructField("c", data_type, True, {"comment": "x"}), StructField("n", INTEGER)))
    schema_with_texts = with_char_as_string(parse_schema(schema_to_json(written)))
    assert schema_with_texts == StructType(
        (StructField("c", texts, True, {DECLARED_TYPE: declared, "comment": "x"}), StructField("n", INTEGER))
    )
    assert char_types(schema_with_texts.fields[0], strict=True) is not None
    assert with_char_as_string(schema_with_texts) == schema_with_texts


def test_declared_type_that_is_there_stays_and_unknown_types_do() -> None:
    both = StructField("c", PrimitiveType("varchar(9)"), True, {DECLARED_TYPE: "varchar(3)"})
    unknown = StructField("u", PrimitiveType("varchar"))
    texts = with_char_as_string(StructType((both, unknown)))
    assert texts.fields == (StructField("c", STRING, True, {DECLARED_TYPE: "varchar(3)"}), unknown)


def test_varchar_directly_in_the_schema_is_read_and_checked(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"v": ["abc", None]}))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    text = log.read_text()
    log.write_text(text.replace(r"\"name\":\"v\",\"type\":\"string\"", r"\"name\":\"v\",\"type\":\"varchar(3)\""))
    assert log.read_text() != text
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink()
    assert DeltaTable(str(tmp_path)).to_arrow(filter="v = 'abc'").to_pylist() == [{"v": "abc"}]
    write_delta(str(tmp_path), pa.table({"v": ["de"]}), mode="append")
    with pytest.raises(InvariantViolationError, match="varchar"):
        write_delta(str(tmp_path), pa.table({"v": ["long"]}), mode="append")
    assert DeltaTable(str(tmp_path)).to_arrow().num_rows == 3


@pytest.mark.parametrize("declared", ["char(999999999)", "array<char(999999999)>"])
def test_oversized_padding_is_refused_before_it_is_built(tmp_path: Path, declared: str) -> None:
    kind = ArrayType(STRING) if declared.startswith("array") else STRING
    texts = pa.table({"v": [["a"], ["b"], None] if declared.startswith("array") else ["a", "b", None]})
    metadata = Metadata("1", schema_to_json(StructType((StructField("v", kind, True, {DECLARED_TYPE: declared}),))))
    write_delta(str(tmp_path), texts)
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    log.write_bytes(action_to_line(metadata) + b"\n")
    with pytest.raises(UnsupportedOperationError, match=r"CHAR\(999999999\).* so many are not made"):
        DeltaTable(str(tmp_path)).to_arrow()
    if kind == STRING:
        with pytest.raises(ExpressionError, match=r"char\(999999999\)"):
            DeltaTable(str(tmp_path)).to_arrow(filter="v = 'a'")


def test_options_next_to_a_long_char_are_refused_by_total_size() -> None:
    schema = StructType((field("char(1000000)"),))
    options = ", ".join(f"'{number}'" for number in range(1000))
    with pytest.raises(ExpressionError, match=r"char\(1000000\)"):
        parse_predicate(f"c in ({options})", schema)
    padded = parse_predicate("c = 'x'", schema)
    assert isinstance(padded, Comparison) and padded.right == Literal("x".ljust(1_000_000), STRING)


@pytest.mark.parametrize(
    "declared", ["array<" * 5_000, "struct<" + " " * 200_000, "struct<a" + " " * 200_000, "array<" * 5_000 + "char(1)"]
)
def test_deep_or_blank_filled_declared_type_is_refused_quickly(declared: str) -> None:
    started = time.thread_time()
    assert char_types(field(declared)) is None
    with pytest.raises(CorruptTableError, match="cannot be checked"):
        char_types(field(declared), strict=True)
    assert time.thread_time() - started < 2
