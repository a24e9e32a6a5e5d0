"""Values of the data in the type of a column: exactly, or an error that names the column."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_py.errors import InvariantViolationError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    to_arrow_type,
)
from delta_py.write.casts import assign, runs

POINT = StructType((StructField("x", LONG), StructField("y", STRING)))


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (pa.array([1, None], pa.int8()), LONG),
        (pa.array([2**31 - 1], pa.int64()), INTEGER),
        (pa.array([200], pa.uint8()), SHORT),
        (pa.array([2**53], pa.int64()), DOUBLE),
        (pa.array([1.5, None], pa.float32()), DOUBLE),
        (pa.array([1.5], pa.float16()), FLOAT),
        (pa.array([7], pa.int64()), DecimalType(10, 2)),
        (pa.array([Decimal("1.10")], pa.decimal128(5, 2)), DecimalType(10, 1)),
        (pa.array([Decimal("1.1")], pa.decimal256(40, 1)), DecimalType(10, 3)),
        (pa.array(["a"], pa.large_string()), STRING),
        (pa.array(["a"], pa.string_view()), STRING),
        (pa.array(["a", None, "a"]).dictionary_encode(), STRING),
        (pa.array([b"ab"], pa.binary(2)), BINARY),
        (pa.array([b"ab"], pa.large_binary()), BINARY),
        (pa.array([date(2024, 2, 29)], pa.date64()), DATE),
        (pa.array([date(2024, 2, 29)], pa.date32()), TIMESTAMP_NTZ),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")), TIMESTAMP_NTZ),
        (pa.array([0], pa.timestamp("s", "Asia/Tokyo")), TIMESTAMP),
        (pa.array([True, None]), BOOLEAN),
        (pa.nulls(3), POINT),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value)[:40],
)
def test_assign_value_that_fits_gives_the_columns_arrow_type_and_the_same_values(values: pa.Array, target: DataType) -> None:
    found = assign(values, target, "c")
    found.validate(full=True)
    assert found.type == to_arrow_type(target)
    assert [_comparable(v) for v in found.to_pylist()] == [_comparable(v) for v in values.to_pylist()]


def _comparable(value: Any) -> Any:
    """Instants as they are; a date that became a timestamp as its midnight."""
    return datetime(value.year, value.month, value.day) if type(value) is date else value


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (pa.array([2**31], pa.int64()), INTEGER),
        (pa.array([-1], pa.int8()).cast(pa.uint64(), safe=False), LONG),
        (pa.array([2**53 + 1], pa.int64()), DOUBLE),
        (pa.array([1000], pa.int64()), DecimalType(4, 2)),
        (pa.array([Decimal("1.11")], pa.decimal128(5, 2)), DecimalType(10, 1)),
        (pa.array([1], pa.timestamp("ns", "UTC")), TIMESTAMP),
    ],
)
def test_assign_value_that_does_not_fit_is_refused_naming_the_column(values: pa.Array, target: DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="Column price") as caught:
        assign(values, target, "price")
    assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (pa.array(["1"]), LONG),
        (pa.array([1]), STRING),
        (pa.array([1.0]), LONG),
        (pa.array([1.0]), FLOAT),
        (pa.array([1.0]), DecimalType(10, 2)),
        (pa.array([True]), INTEGER),
        (pa.array([b"a"]), STRING),
        (pa.array(["a"]), BINARY),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("us")), TIMESTAMP),
        (pa.array([0], pa.timestamp("us", "UTC")), TIMESTAMP_NTZ),
        (pa.array([date(2024, 1, 1)]), TIMESTAMP),
        (pa.array([[1]]), LONG),
        (pa.array([1]), ArrayType(LONG)),
        (pa.array([1]), POINT),
        (pa.array([1]), MapType(STRING, LONG)),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value)[:40],
)
def test_assign_other_type_is_refused_naming_both_types(values: pa.Array, target: DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="cannot take") as caught:
        assign(values, target, "c")
    assert caught.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.message_parameters["data_type"] == str(values.type)


def test_assign_struct_matches_fields_by_name_in_any_case_and_order() -> None:
    given = pa.array([{"Y": "a", "X": 1}, None], pa.struct([("Y", pa.large_string()), ("X", pa.int8())]))
    assert assign(given, POINT, "p").to_pylist() == [{"x": 1, "y": "a"}, None]


def test_assign_struct_without_a_nullable_field_gives_null() -> None:
    assert assign(pa.array([{"x": 1}]), POINT, "p").to_pylist() == [{"x": 1, "y": None}]


def test_assign_struct_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"p\.z") as caught:
        assign(pa.array([{"x": 1, "z": 2}]), POINT, "p")
    assert caught.value.error_class == "DELTA_METADATA_MISMATCH"


def test_assign_struct_without_a_required_field_is_refused() -> None:
    target = StructType((StructField("x", LONG), StructField("y", STRING, nullable=False)))
    with pytest.raises(InvariantViolationError, match=r"p\.y"):
        assign(pa.array([{"x": 1}]), target, "p")


def test_assign_struct_without_a_field_that_has_a_default_is_refused() -> None:
    target = StructType((StructField("x", LONG), StructField("y", STRING, True, {"CURRENT_DEFAULT": "'a'"})))
    with pytest.raises(UnsupportedTableFeatureError, match="default"):
        assign(pa.array([{"x": 1}]), target, "p")


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2), pa.list_view(pa.int8())])
def test_assign_slice_of_lists_keeps_its_rows(kind: pa.DataType) -> None:
    given = pa.array([[1, 2], None, [3, None], [5, 6]], kind).slice(1, 2)
    found = assign(given, ArrayType(LONG), "c")
    found.validate(full=True)
    assert found.to_pylist() == [None, [3, None]]


def test_assign_slice_of_nested_values_keeps_its_rows() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int16())])))), ("n", pa.int32())])
    rows = [
        {"m": [("k", [{"a": 1}])], "n": 1},
        None,
        {"m": None, "n": 2},
        {"m": [("k", None), ("l", [{"a": 2}, None])], "n": None},
        {"m": [], "n": 3},
    ]
    element = StructType((StructField("a", LONG), StructField("b", STRING)))
    target = StructType((StructField("n", LONG), StructField("m", MapType(STRING, ArrayType(element)))))
    found = assign(pa.array(rows, kind).slice(1), target, "c")
    found.validate(full=True)
    assert found.to_pylist() == [
        None,
        {"n": 2, "m": None},
        {"n": None, "m": [("k", None), ("l", [{"a": 2, "b": None}, None])]},
        {"n": 3, "m": []},
    ]


def test_assign_no_rows_checks_nested_types_all_the_same() -> None:
    with pytest.raises(SchemaMismatchError, match=r"c\.element"):
        assign(pa.array([], pa.list_(pa.string())), ArrayType(LONG), "c")


def test_runs_of_empty_lists_are_one_offset() -> None:
    assert runs(pa.nulls(0, pa.list_(pa.int64())))[0].to_pylist() == [0]


def test_assign_far_slice_of_a_large_text_is_not_too_large(tmp_path: Path) -> None:
    beyond = 2**31
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(beyond)
        file.seek(beyond)
        file.write(b"abc")
    with pa.memory_map(str(tmp_path / "sparse")) as source:
        data = source.read_buffer()
        offsets = pa.py_buffer(np.array([0, beyond, beyond + 1, beyond + 3], np.int64))
        far = pa.Array.from_buffers(pa.large_string(), 3, [None, offsets, data]).slice(1)
        assert assign(far, STRING, "c").to_pylist() == ["a", "bc"]
