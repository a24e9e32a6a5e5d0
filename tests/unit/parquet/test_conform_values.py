"""Values of a file as the table's types: every widening, every unit of time, text without an annotation, and refusals."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import DataFileError
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
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
)
from tests.support.tables.data_files import column, read_rows, read_table, scan_state, write_file

WIDENINGS: list[tuple[pa.Array, DataType, list[Any]]] = [
    (pa.array([-128, None, 127], pa.int8()), BYTE, [-128, None, 127]),
    (pa.array([-128, None, 127], pa.int8()), SHORT, [-128, None, 127]),
    (pa.array([-128, None, 127], pa.int8()), INTEGER, [-128, None, 127]),
    (pa.array([-128, None, 127], pa.int8()), LONG, [-128, None, 127]),
    (pa.array([-32768, 32767], pa.int16()), INTEGER, [-32768, 32767]),
    (pa.array([-(2**31), 2**31 - 1], pa.int32()), LONG, [-(2**31), 2**31 - 1]),
    (pa.array([-128, 127], pa.int8()), DOUBLE, [-128.0, 127.0]),
    (pa.array([-(2**31), 2**31 - 1], pa.int32()), DOUBLE, [-2147483648.0, 2147483647.0]),
    (pa.array([-128, 127], pa.int8()), DecimalType(10, 0), [Decimal(-128), Decimal(127)]),
    (pa.array([-(2**31), None], pa.int32()), DecimalType(12, 2), [Decimal("-2147483648.00"), None]),
    (pa.array([2**63 - 1, -(2**63)], pa.int64()), DecimalType(20, 0), [Decimal(2**63 - 1), Decimal(-(2**63))]),
    (pa.array([2**63 - 1], pa.int64()), DecimalType(38, 18), [Decimal(2**63 - 1)]),
    (pa.array([1.5, None, float("inf")], pa.float32()), DOUBLE, [1.5, None, float("inf")]),
    (pa.array([Decimal("-1.25"), None], pa.decimal128(3, 2)), DecimalType(10, 5), [Decimal("-1.25000"), None]),
    (pa.array([Decimal("99999999999999.99")], pa.decimal128(16, 2)), DecimalType(38, 20), [Decimal("99999999999999.99")]),
    (pa.array([date(1, 1, 1), None, date(9999, 12, 31)]), TIMESTAMP_NTZ, [datetime(1, 1, 1), None, datetime(9999, 12, 31)]),
]


@pytest.mark.parametrize(("stored", "data_type", "expected"), WIDENINGS, ids=lambda value: str(value)[:40])
def test_value_widened_is_the_same_value(tmp_path: Path, stored: pa.Array, data_type: DataType, expected: list[Any]) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": stored})
    assert [row["x"] for row in read_rows(scan_state(tmp_path, [column("x", data_type)]), file)] == expected


@pytest.mark.parametrize(("stored", "data_type", "expected"), WIDENINGS, ids=lambda value: str(value)[:40])
def test_value_widened_in_array_map_and_struct_is_the_same_value(
    tmp_path: Path, stored: pa.Array, data_type: DataType, expected: list[Any]
) -> None:
    count = len(stored)
    stored_lists = pa.ListArray.from_arrays([0, count], stored)
    keys = pa.array([f"k{i}" for i in range(count)])
    pairs = pa.MapArray.from_arrays([0, count], keys, stored)
    nested = pa.StructArray.from_arrays([stored_lists], names=["l"])
    file = write_file(tmp_path, "a.parquet", {"l": stored_lists, "m": pairs, "s": nested})
    state = scan_state(
        tmp_path,
        [
            column("l", ArrayType(data_type)),
            column("m", MapType(STRING, data_type)),
            column("s", StructType((StructField("l", ArrayType(data_type)),))),
        ],
    )
    (row,) = read_rows(state, file)
    assert row == {"l": expected, "m": list(zip(keys.to_pylist(), expected, strict=True)), "s": {"l": expected}}


NARROW: list[tuple[pa.Array, DataType, list[Any]]] = [
    (pa.array([1, -1], pa.int32()), BYTE, [1, -1]),
    (pa.array([300], pa.int64()), SHORT, [300]),
    (pa.array([5], pa.int64()), INTEGER, [5]),
    (pa.array([255], pa.uint8()), SHORT, [255]),
    (pa.array([2**32 - 1], pa.uint32()), LONG, [2**32 - 1]),
    (pa.array([2**64 - 1], pa.uint64()), DecimalType(20, 0), [Decimal(2**64 - 1)]),
    (pa.array([b"caf\xc3\xa9", None], pa.binary()), STRING, ["café", None]),
    (pa.array(["café", None]), BINARY, [b"caf\xc3\xa9", None]),
    (pa.array([b"ab", None], pa.binary(2)), BINARY, [b"ab", None]),
    (pa.array([b"ab", None], pa.binary(2)), STRING, ["ab", None]),
    (pa.array([-719162, None], pa.int32()), DATE, [date(1, 1, 1), None]),
    (pa.array([7], pa.int32()), DecimalType(3, 1), [Decimal("7.0")]),
    (pa.array([True, None]), BOOLEAN, [True, None]),
]


@pytest.mark.parametrize(("stored", "data_type", "expected"), NARROW, ids=lambda value: str(value)[:40])
def test_value_in_another_type_that_can_hold_it_is_equal(
    tmp_path: Path, stored: pa.Array, data_type: DataType, expected: list[Any]
) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": stored})
    assert [row["x"] for row in read_rows(scan_state(tmp_path, [column("x", data_type)]), file)] == expected


REFUSED = [
    (pa.array([1], pa.int64()), DOUBLE),
    (pa.array([1], pa.int32()), FLOAT),
    (pa.array([1.5], pa.float64()), FLOAT),
    (pa.array([1.0], pa.float64()), LONG),
    (pa.array(["1"]), INTEGER),
    (pa.array([1], pa.int64()), STRING),
    (pa.array([date(2024, 1, 1)]), TIMESTAMP),
    (pa.array([0], pa.timestamp("us")), DATE),
    (pa.array([Decimal("1.5")]), DOUBLE),
    (pa.array([True]), INTEGER),
    (pa.array([[1]]), LONG),
    (pa.array([{"a": 1}]), ArrayType(LONG)),
    (pa.array([1]), StructType((StructField("a", LONG),))),
    (pa.array([1], pa.time64("us")), LONG),
]


@pytest.mark.parametrize(("stored", "data_type"), REFUSED, ids=lambda value: str(value)[:40])
def test_incompatible_types_are_refused_naming_file_and_column(
    tmp_path: Path, stored: pa.Array, data_type: DataType
) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": stored})
    with pytest.raises(DataFileError, match=r"Data file a\.parquet .*column x is .* in the table, and .* in the file") as caught:
        read_rows(scan_state(tmp_path, [column("x", data_type)]), file)
    assert caught.value.error_class == "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"


TOO_LARGE = [
    (pa.array([128], pa.int32()), BYTE),
    (pa.array([2**31], pa.int64()), INTEGER),
    (pa.array([1000], pa.int32()), DecimalType(4, 2)),
    (pa.array([Decimal("123.456")]), DecimalType(10, 2)),
    (pa.array([Decimal("123.45")]), DecimalType(4, 2)),
    (pa.array([2**62], pa.int64()).view(pa.timestamp("ms")), TIMESTAMP_NTZ),
]


@pytest.mark.parametrize(("stored", "data_type"), TOO_LARGE, ids=lambda value: str(value)[:40])
def test_value_that_does_not_fit_is_an_error_not_another_value(tmp_path: Path, stored: pa.Array, data_type: DataType) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": stored})
    with pytest.raises(DataFileError, match=r"a\.parquet .*column x cannot be read as"):
        read_rows(scan_state(tmp_path, [column("x", data_type)]), file)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMP_NTZ])
@pytest.mark.parametrize(("unit", "per_second"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_timestamp_of_any_unit_and_zone_keeps_its_instant(
    tmp_path: Path, unit: str, per_second: int, data_type: DataType, zone: str | None
) -> None:
    seconds = [-86_400 * 365 * 100, -1, 0, 1, 86_400 * 365 * 100]
    stored = pa.array([*(s * per_second for s in seconds), None], pa.timestamp(unit, zone))
    file = write_file(tmp_path, "a.parquet", {"t": stored}, version="2.6")
    table = read_table(scan_state(tmp_path, [column("t", data_type)]), file)
    assert table["t"].cast(pa.int64()).to_pylist() == [*(s * 10**6 for s in seconds), None]


def test_nanoseconds_are_cut_toward_the_past(tmp_path: Path) -> None:
    stored = pa.array([-1, -1_000, -1_001, 1, 999, 1_000, None], pa.timestamp("ns", "UTC"))
    file = write_file(tmp_path, "a.parquet", {"t": stored}, version="2.6")
    table = read_table(scan_state(tmp_path, [column("t", TIMESTAMP)]), file)
    assert table["t"].cast(pa.int64()).to_pylist() == [-1, -1, -2, 0, 0, 1, None]


@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMP_NTZ])
def test_int96_holds_the_first_and_last_year(tmp_path: Path, data_type: DataType) -> None:
    times = [
        datetime(1, 1, 1),
        datetime(1677, 1, 1, 0, 0, 0, 1),
        datetime(1970, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ]
    stored = pa.array([*times, None], pa.timestamp("us"))
    file = write_file(tmp_path, "a.parquet", {"t": stored}, use_deprecated_int96_timestamps=True)
    with pq.ParquetFile(tmp_path / "a.parquet") as parquet:
        assert parquet.schema.column(0).physical_type == "INT96"
    zone = UTC if data_type == TIMESTAMP else None
    rows = read_rows(scan_state(tmp_path, [column("t", data_type)]), file)
    assert [row["t"] for row in rows] == [*(time.replace(tzinfo=zone) for time in times), None]


# ---------------------------------------------------------------- what stands below nulls


def test_value_below_a_null_struct_does_not_fail_to_convert(tmp_path: Path) -> None:
    inner = pa.array([2**62, 5], pa.int64())  # the first does not fit, and belongs to no row
    structs = pa.StructArray.from_arrays(
        [inner], fields=[pa.field("a", pa.int64(), nullable=False)], mask=pa.array([True, False])
    )
    file = write_file(tmp_path, "a.parquet", pa.table({"s": structs}))
    state = scan_state(tmp_path, [column("s", StructType((StructField("a", INTEGER),)))])
    assert read_rows(state, file) == [{"s": None}, {"s": {"a": 5}}]


def test_lists_in_slices_of_a_batch_keep_their_values(tmp_path: Path) -> None:
    lists = [[i] * (i % 4) if i % 5 else None for i in range(1000)]
    table = pa.table({"l": pa.array(lists, pa.list_(pa.int32())), "t": ["x" * 1000] * 1000})
    file = write_file(tmp_path, "a.parquet", table)
    state = scan_state(tmp_path, [column("l", ArrayType(LONG)), column("t", STRING)], batch_bytes=20_000)
    assert [row["l"] for row in read_rows(state, file)] == lists


def test_decimals_in_int32_int64_and_fixed_bytes_are_equal(tmp_path: Path) -> None:
    values = [Decimal("1.25"), Decimal("-99.99"), None]
    for precision in (4, 12, 30):
        table = pa.table({"d": pa.array(values, pa.decimal128(precision, 2))})
        for as_integer in (True, False):
            file = write_file(tmp_path, f"{precision}{as_integer}", table, store_decimal_as_integer=as_integer)
            rows = read_rows(scan_state(tmp_path, [column("d", DecimalType(precision, 2))]), file)
            assert [row["d"] for row in rows] == values


def test_text_that_is_no_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    from delta_py.parquet.file_reader import read_files

    file = write_file(tmp_path, "a.parquet", {"x": pa.array([b"\xff\xfe", b"ok"])})
    (batch,) = read_files(scan_state(tmp_path, [column("x", STRING)]), [file])
    assert batch["x"].view(pa.binary()).to_pylist() == [b"\xff\xfe", b"ok"]
    assert np.array_equal(batch["x"].is_valid().to_numpy(zero_copy_only=False), [True, True])
