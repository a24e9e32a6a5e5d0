"""Values of the data in the type of a column: as Spark assigns them, or an error that names the column."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_py.errors import InvariantViolationError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.row_rules.store_assignment_casts import TimeRules, assign, converter
from delta_py.types.schema import (
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
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    to_arrow_type,
)

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
        (pa.array([2**63], pa.uint64()), DecimalType(20, 0)),
        (pa.array([2**63 - 1, None], pa.uint64()), LONG),
        (pa.array([Decimal("1E+2")], pa.decimal128(5, -2)), DecimalType(7, 0)),
        (pa.array([Decimal("1.1")], pa.decimal256(40, 1)), DecimalType(10, 3)),
        (pa.array(["a"], pa.large_string()), STRING),
        (pa.array(["a"], pa.string_view()), STRING),
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
def test_assign_fitting_value_keeps_it_in_the_column_arrow_type(values: pa.Array, target: DataType) -> None:
    assigned = assign(values, target, "c")
    assigned.validate(full=True)
    assert assigned.type == to_arrow_type(target)
    assert [_comparable(v) for v in assigned.to_pylist()] == [_comparable(v) for v in values.to_pylist()]


def _comparable(value: Any) -> Any:
    """Instants unchanged; a date that became a timestamp as its midnight."""
    return datetime(value.year, value.month, value.day) if type(value) is date else value


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (pa.array([2**53 + 1], pa.int64()), DOUBLE, [2.0**53]),
        (pa.array([1.9, -1.9, None]), LONG, [1, -1, None]),
        (pa.array([1.0, 0.1]), FLOAT, [1.0, float(np.float32(0.1))]),
        (pa.array([1.005, 2.5]), DecimalType(10, 1), [Decimal("1.0"), Decimal("2.5")]),
        (
            pa.array([Decimal("1.15"), Decimal("-1.15")], pa.decimal128(5, 2)),
            DecimalType(10, 1),
            [Decimal("1.2"), Decimal("-1.2")],
        ),
        (pa.array([Decimal("1.99")], pa.decimal128(5, 2)), INTEGER, [1]),
        (pa.array([1, None]), STRING, ["1", None]),
        (pa.array([Decimal("1.10")], pa.decimal128(5, 2)), STRING, ["1.10"]),
        (pa.array([True]), STRING, ["true"]),
        (pa.array([b"a"]), STRING, ["a"]),
        (pa.array([date(2024, 1, 1)]), STRING, ["2024-01-01"]),
        (pa.array([datetime(2024, 1, 1, 23, 30)], pa.timestamp("us")), DATE, [date(2024, 1, 1)]),
    ],
)
def test_assign_of_another_type_gives_the_result_of_spark_cast(
    values: pa.Array, target: DataType, expected: list[Any]
) -> None:
    assigned = assign(values, target, "c")
    assert assigned.type == to_arrow_type(target)
    assert assigned.to_pylist() == expected


INSTANT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
WALL_CLOCK = datetime(2024, 1, 1, 22, 4, 5)


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (pa.array([INSTANT], pa.timestamp("us", "UTC")), TIMESTAMP_NTZ, WALL_CLOCK),
        (pa.array([INSTANT], pa.timestamp("ns", "Asia/Tokyo")), DATE, date(2024, 1, 1)),
        (pa.array([INSTANT], pa.timestamp("us", "UTC")), STRING, "2024-01-01 22:04:05"),
        (pa.array([WALL_CLOCK], pa.timestamp("us")), TIMESTAMP, INSTANT),
        (pa.array([date(2024, 1, 1)]), TIMESTAMP, datetime(2024, 1, 1, 5, tzinfo=UTC)),
    ],
)
def test_assign_converts_times_in_the_session_time_zone(
    values: pa.Array, target: DataType, expected: Any
) -> None:
    assert assign(values, target, "c", TimeRules("America/New_York")).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("nanoseconds", "zone", "target", "expected"),
    [
        (1_000, None, TIMESTAMP_NTZ, datetime(1970, 1, 1, microsecond=1)),
        (1_999, None, TIMESTAMP_NTZ, datetime(1970, 1, 1, microsecond=1)),
        (-1, None, TIMESTAMP_NTZ, datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        (-1, "Asia/Tokyo", TIMESTAMP, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        (-1, None, DATE, date(1969, 12, 31)),
        (1_999, None, STRING, "1970-01-01 00:00:00.000001"),
    ],
)
def test_assign_with_truncation_cuts_times_toward_the_past(
    nanoseconds: int, zone: str | None, target: DataType, expected: Any
) -> None:
    values = pa.array([7, nanoseconds, None], pa.timestamp("ns", zone)).slice(1)
    assert assign(values, target, "c", TimeRules(truncate_nanoseconds=True)).to_pylist() == [expected, None]


def test_assign_ignores_nanoseconds_below_a_null_parent() -> None:
    times = pa.array([1, 2_000], pa.timestamp("ns"))
    values = pa.StructArray.from_arrays([times], names=["t"], mask=pa.array([True, False]))
    target = StructType((StructField("t", TIMESTAMP_NTZ),))
    assert assign(values, target, "c").to_pylist() == [None, {"t": datetime(1970, 1, 1, microsecond=2)}]


@pytest.mark.parametrize(
    ("values", "target", "expected_text"),
    [
        (pa.array([2**31], pa.int64()), INTEGER, "2147483648"),
        (pa.array([1e10]), INTEGER, "1"),
        (pa.array([-1], pa.int8()).cast(pa.uint64(), safe=False), LONG, "18446744073709551615"),
        (pa.array([1000], pa.int64()), DecimalType(4, 2), "1000"),
        (pa.array([Decimal("999.99")], pa.decimal128(5, 2)), DecimalType(4, 1), "1000.0"),
        (pa.array([1], pa.timestamp("ns", "UTC")), TIMESTAMP, "1970-01-01 00:00:00.000000001 in UTC has nanoseconds"),
        (pa.array([None, -1], pa.timestamp("ns")), DATE, "1969-12-31 23:59:59.999999999 has nanoseconds"),
        (pa.array([2**63], pa.uint64()), LONG, "9223372036854775808"),
    ],
)
def test_assign_overflow_is_refused_naming_column_and_value(
    values: pa.Array, target: DataType, expected_text: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=f"Column price.*{expected_text}") as caught:
        assign(values, target, "price")
    assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (pa.array(["1"]), LONG),
        (pa.array(["1"]), DATE),
        (pa.array([1]), BOOLEAN),
        (pa.array([1]), TIMESTAMP),
        (pa.array([True]), INTEGER),
        (pa.array(["a"]), BINARY),
        (pa.array([1.5]), STRING),
        (pa.array([0], pa.time64("us")), STRING),
        (pa.array([[1]]), LONG),
        (pa.array([[1]]), STRING),
        (pa.array([1]), ArrayType(LONG)),
        (pa.array([1]), POINT),
        (pa.array([1]), MapType(STRING, LONG)),
        (pa.array([1]), VARIANT),
        (pa.array([{"value": "a", "metadata": "b"}]), VARIANT),
        (pa.array([1]), VOID),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value)[:40],
)
def test_assign_other_type_is_refused_naming_both_types(values: pa.Array, target: DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="cannot take") as caught:
        assign(values, target, "c")
    assert caught.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.message_parameters["data_type"] == str(values.type)


def test_converter_of_the_columns_own_type_is_none() -> None:
    for data_type in (LONG, STRING, POINT, ArrayType(POINT), MapType(STRING, POINT), VARIANT, VOID, TIMESTAMP):
        assert converter(to_arrow_type(data_type), data_type, "c") is None


def test_assign_values_below_a_null_parent_are_not_looked_at() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([2**40, 7])], names=["x"], mask=pa.array([True, False]))
    target = StructType((StructField("x", INTEGER),))
    assert assign(hidden, target, "c").to_pylist() == [None, {"x": 7}]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([2**40, 7]), mask=pa.array([True, False]))
    assert assign(lists, ArrayType(INTEGER), "c").to_pylist() == [None, [7]]
    keys, items = pa.array(["a", "b"]), pa.array([2**40, 7])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, items, mask=pa.array([True, False]))
    assert assign(maps, MapType(STRING, INTEGER), "c").to_pylist() == [None, [("b", 7)]]


def test_assign_variant_in_other_layouts_is_variant_binary() -> None:
    row = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
    kind = pa.struct([("metadata", pa.large_binary()), ("value", pa.binary())])
    assigned = assign(pa.array([row, None], kind), VARIANT, "v")
    assert assigned.type == to_arrow_type(VARIANT)
    assert assigned.to_pylist() == [row, None]


def test_assign_variant_without_metadata_is_refused() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    with pytest.raises(SchemaMismatchError, match="no metadata"):
        assign(pa.array([{"metadata": None, "value": b"\x0c\x07"}], kind), VARIANT, "v")


def test_assign_struct_matches_fields_in_any_case_and_order() -> None:
    new_type = pa.array([{"Y": "a", "X": 1}, None], pa.struct([("Y", pa.large_string()), ("X", pa.int8())]))
    assert assign(new_type, POINT, "p").to_pylist() == [{"x": 1, "y": "a"}, None]


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


def test_assign_refuses_a_struct_without_a_defaulted_field() -> None:
    target = StructType((StructField("x", LONG), StructField("y", STRING, True, {"CURRENT_DEFAULT": "'a'"})))
    with pytest.raises(UnsupportedTableFeatureError, match="default"):
        assign(pa.array([{"x": 1}]), target, "p")


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8())])
def test_assign_slice_of_lists_keeps_its_rows(kind: pa.DataType) -> None:
    values = pa.array([[1, 2], None, [3, None], [5, 6]], kind).slice(1, 2)
    assigned = assign(values, ArrayType(LONG), "c")
    assigned.validate(full=True)
    assert assigned.to_pylist() == [None, [3, None]]


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
    assigned = assign(pa.array(rows, kind).slice(1), target, "c")
    assigned.validate(full=True)
    assert assigned.to_pylist() == [
        None,
        {"n": 2, "m": None},
        {"n": None, "m": [("k", None), ("l", [{"a": 2, "b": None}, None])]},
        {"n": 3, "m": []},
    ]


def test_assign_no_rows_checks_nested_types_all_the_same() -> None:
    with pytest.raises(SchemaMismatchError, match=r"c\.element"):
        assign(pa.array([], pa.list_(pa.string())), ArrayType(LONG), "c")


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
