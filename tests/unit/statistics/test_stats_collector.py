from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_py.statistics.stats_collector import StatsCollector
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
    to_arrow_schema,
    to_arrow_type,
)


def collected(data_type: DataType, *batches: list[Any], **options: Any) -> dict[str, Any]:
    schema = StructType((StructField("x", data_type),))
    collector = StatsCollector(schema, [("x",)], **options)
    for values in batches:
        collector.update(pa.record_batch([pa.array(values, to_arrow_type(data_type))], schema=to_arrow_schema(schema)))
    assert collector.row_count == sum(len(values) for values in batches)
    stats: dict[str, Any] = json.loads(collector.to_json(), parse_float=Decimal)
    return stats


@pytest.mark.parametrize(
    ("data_type", "values", "low", "high"),
    [
        (LONG, [3, None, -(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
        (STRING, ["b", None, "a", "é"], "a", "é"),
        (DATE, [date(2024, 2, 29), None, date(1, 1, 1)], "0001-01-01", "2024-02-29"),
        (DOUBLE, [1.5, None, -2.0], Decimal("-2.0"), Decimal("1.5")),
        (FLOAT, [0.1], Decimal("0.10000000149011612"), Decimal("0.10000000149011612")),
        (
            DecimalType(38, 18),
            [Decimal("12345678901234567890.123456789012345678")],
            *[Decimal("12345678901234567890.123456789012345678")] * 2,
        ),
        (TIMESTAMP, [datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)], "2024-01-02T03:04:05.678Z", "2024-01-02T03:04:05.678Z"),
        (TIMESTAMP, [datetime(1960, 1, 1, 0, 0, 0, 999, tzinfo=UTC)], "1960-01-01T00:00:00.000Z", "1960-01-01T00:00:00.000Z"),
        (TIMESTAMP_NTZ, [datetime(2024, 1, 2, 3, 4, 5, 999999)], "2024-01-02T03:04:05.999", "2024-01-02T03:04:05.999"),
    ],
)
def test_bounds_of_each_type_are_written(data_type: DataType, values: list[Any], low: Any, high: Any) -> None:
    for batches in ([values], [values[:1], [], values[1:]]):
        stats = collected(data_type, *batches)
        assert stats["numRecords"] == len(values)
        assert (stats["minValues"], stats["maxValues"]) == ({"x": low}, {"x": high})
        assert stats["nullCount"] == {"x": values.count(None)}
        assert stats["tightBounds"] is True


@pytest.mark.parametrize("data_type", [LONG, STRING, DATE, DOUBLE, TIMESTAMP, DecimalType(10, 2)])
def test_column_of_nulls_has_a_null_count_only(data_type: DataType) -> None:
    stats = collected(data_type, [None, None], [])
    assert (stats["minValues"], stats["maxValues"], stats["nullCount"]) == ({}, {}, {"x": 2})


@pytest.mark.parametrize("data_type", [BINARY, BOOLEAN, ArrayType(LONG), VOID])
def test_type_without_bounds_has_a_null_count_only(data_type: DataType) -> None:
    value = {BINARY: b"a", BOOLEAN: True, VOID: None}.get(data_type, [1]) if not isinstance(data_type, ArrayType) else [1]
    stats = collected(data_type, [value, None])
    assert (stats["minValues"], stats["maxValues"]) == ({}, {})
    assert stats["nullCount"] == {"x": 2 if data_type == VOID else 1}


def test_not_a_number_leaves_no_upper_bound() -> None:
    stats = collected(DOUBLE, [1.5], [math.nan], [2.5])
    assert (stats["minValues"], stats["maxValues"]) == ({"x": Decimal("1.5")}, {})
    stats = collected(FLOAT, [math.nan, None])
    assert (stats["minValues"], stats["maxValues"], stats["nullCount"]) == ({}, {}, {"x": 1})


def test_infinite_bounds_are_left_out() -> None:
    stats = collected(DOUBLE, [math.inf, -math.inf, 1.0])
    assert (stats["minValues"], stats["maxValues"]) == ({}, {})


def test_long_strings_are_cut_and_the_maximum_is_rounded_up() -> None:
    long = "a" * 32 + "b"
    stats = collected(STRING, [long])
    assert stats["minValues"] == {"x": "a" * 32}
    assert stats["maxValues"] == {"x": "a" * 32 + "\U0010ffff"}
    assert stats["maxValues"]["x"] > long
    assert collected(STRING, ["a" * 32])["maxValues"] == {"x": "a" * 32}
    assert collected(STRING, ["😀😀😀"], string_prefix=2)["minValues"] == {"x": "😀😀"}
    assert collected(STRING, ["ab\U0010ffffz"], string_prefix=2)["maxValues"] == {}


def test_nested_leaves_stay_nested_and_count_parent_nulls() -> None:
    inner = StructType((StructField("a.b", LONG), StructField("c", STRING)))
    schema = StructType((StructField("s", inner), StructField("unused", LONG)))
    rows = [{"s": {"a.b": 1, "c": None}, "unused": 1}, {"s": None, "unused": 2}, {"s": {"a.b": None, "c": "x"}, "unused": 3}]
    collector = StatsCollector(schema, [("s", "a.b"), ("s", "c")])
    collector.update(pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema)))
    assert json.loads(collector.to_json()) == {
        "numRecords": 3,
        "minValues": {"s": {"a.b": 1, "c": "x"}},
        "maxValues": {"s": {"a.b": 1, "c": "x"}},
        "nullCount": {"s": {"a.b": 2, "c": 2}},
        "tightBounds": True,
    }


def test_dates_beyond_what_text_holds_are_left_out() -> None:
    schema = StructType((StructField("x", DATE),))
    collector = StatsCollector(schema, [("x",)])
    collector.update(pa.record_batch([pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())], schema=to_arrow_schema(schema)))
    stats = json.loads(collector.to_json())
    assert (stats["minValues"], stats["maxValues"]) == ({"x": "1970-01-01"}, {})


def test_no_rows_and_no_columns_are_written() -> None:
    empty = collected(LONG)
    assert empty == {"numRecords": 0, "minValues": {}, "maxValues": {}, "nullCount": {"x": 0}, "tightBounds": True}
    collector = StatsCollector(StructType((StructField("x", LONG),)), [])
    collector.update(pa.record_batch([pa.array([1, 2])], names=["x"]))
    assert json.loads(collector.to_json())["numRecords"] == 2
