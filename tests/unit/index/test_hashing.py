"""Hashes of values: equal if Spark treats the values as equal, and otherwise almost always different."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.index.hashing import hashes, kind_of_type, value_kind
from delta_py.types.schema import (
    BINARY,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)


def one(values: list[Any], arrow: pa.DataType, kind: str) -> list[int]:
    hash_values: list[int] = hashes(pa.array(values, arrow), kind).tolist()
    return hash_values


def test_numbers_hash_alike_in_every_width() -> None:
    values = [-128, -1, 0, 1, 127]
    of_width = [one(values, arrow, "integral") for arrow in (pa.int8(), pa.int16(), pa.int32(), pa.int64())]
    assert all(hashed == of_width[0] for hashed in of_width) and len(set(of_width[0])) == 5


def test_zeros_and_nans_of_floats_are_equal_as_in_spark() -> None:
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    assert len(set(hashes(pa.array(nans), "floating").tolist())) == 1
    assert len(set(one([0.0, -0.0], pa.float64(), "floating"))) == 1
    assert one([1.5], pa.float32(), "floating") == one([1.5], pa.float64(), "floating")
    assert one([0.1], pa.float32(), "floating") != one([0.1], pa.float64(), "floating")


def test_decimals_hash_alike_in_every_precision() -> None:
    values = [Decimal("-1.50"), Decimal("0.00"), Decimal("99.99"), None]
    narrow, wide = (pa.array(values, pa.decimal128(p, 2)).drop_null() for p in (4, 30))
    assert hashes(narrow, "decimal:2").tolist() == hashes(wide, "decimal:2").tolist()
    assert len(set(hashes(wide, "decimal:2").tolist())) == 3


def test_times_hash_alike_in_every_unit() -> None:
    instant = dt.datetime(2024, 2, 29, 1, 2, 3)
    units = [one([instant], pa.timestamp(unit, "UTC"), "timestamp") for unit in ("ms", "us", "ns")]
    assert units[0] == units[1] == units[2]
    assert len(one([dt.date(2024, 1, 1), dt.date(1969, 1, 1)], pa.date32(), "date")) == 2
    assert len(set(one([True, False], pa.bool_(), "boolean"))) == 2


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 5))
def test_text_hashes_depend_on_the_text_alone(texts: list[bytes], start: int) -> None:
    alone = [one([text], pa.binary(), "binary")[0] for text in texts]
    array = pa.array([b"before"] * start + texts + [b"after"], pa.binary())
    assert hashes(array.slice(start, len(texts)), "binary").tolist() == alone
    assert hashes(array.slice(start, len(texts)).cast(pa.large_binary()), "binary").tolist() == alone
    short = [(text, hash_value) for text, hash_value in zip(texts, alone, strict=True) if len(text) <= 128]
    assert len({hash_value for _, hash_value in short}) == len({text for text, _ in short})


def test_long_texts_with_different_middles_hash_equally() -> None:
    texts = ["a" * 64 + middle + "b" * 64 for middle in "xy"]
    hash_values = one(texts, pa.string(), "string")
    assert hash_values[0] == hash_values[1] != one(["a" * 65 + "b" * 63], pa.string(), "string")[0]


@pytest.mark.parametrize("data_type", [ArrayType(LONG), MapType(STRING, LONG), StructType((StructField("a", LONG),))])
def test_type_without_equality_has_no_kind(data_type: DataType) -> None:
    assert kind_of_type(data_type) is None


def test_texts_that_are_not_compared_by_their_bytes_have_no_kind() -> None:
    def kind(**metadata: Any) -> str | None:
        return value_kind([StructField("s", STRING, metadata=metadata)])

    assert kind() == "string" and value_kind([StructField("b", BINARY)]) == "binary"
    assert kind(__CHAR_VARCHAR_TYPE_STRING="char(5)") is None
    assert kind(__CHAR_VARCHAR_TYPE_STRING="varchar(5)") == "string"
    assert kind(__COLLATIONS={"s": "icu.UNICODE_CI"}) is None


def test_kinds_tell_types_apart_that_are_compared_after_a_cast() -> None:
    assert kind_of_type(INTEGER) == kind_of_type(LONG) != kind_of_type(DecimalType(10, 0))
    assert kind_of_type(DecimalType(10, 2)) == kind_of_type(DecimalType(12, 2)) != kind_of_type(DecimalType(12, 3))
