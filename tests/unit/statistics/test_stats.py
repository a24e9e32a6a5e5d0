from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.statistics.bounds import widen
from delta_py.statistics.stats import (
    FileStats,
    concat_stats,
    parse_stats,
    stats_from_parquet_footer,
    stats_from_struct,
    unknown_stats,
)
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    Path,
    to_arrow_type,
)

MS = timedelta(milliseconds=1)


def stats_text(minimum: Any = None, maximum: Any = None, nulls: Any = None, **rest: Any) -> str:
    values = {"numRecords": 3, "minValues": minimum, "maxValues": maximum, "nullCount": nulls, **rest}
    return json.dumps({name: value for name, value in values.items() if value is not None})


def bounds(texts: list[str | None], data_type: DataType, path: Path = ("x",)) -> list[tuple[Any, Any]]:
    stats = parse_stats(pa.array(texts, pa.string()), {path: data_type})
    assert stats.minimum[path].type == stats.maximum[path].type == to_arrow_type(data_type)
    return list(zip(stats.minimum[path].to_pylist(), stats.maximum[path].to_pylist(), strict=True))


# ---------------------------------------------------------------- JSON: what is read


@pytest.mark.parametrize(
    ("data_type", "low", "high", "expected"),
    [
        (LONG, -(2**63), 2**63 - 1, (-(2**63), 2**63 - 1)),
        (INTEGER, -1, 5, (-1, 5)),
        (BYTE, -128, 127, (-128, 127)),
        (STRING, "a", 'é\n"b', ("a", 'é\n"b')),
        (BOOLEAN, False, True, (False, True)),
        (DATE, "2024-01-01", "2024-02-29", (date(2024, 1, 1), date(2024, 2, 29))),
        (FLOAT, 0.1, 1, (0.10000000149011612, 1.0)),
        (DOUBLE, 1.5, 2, (1.5, 2.0)),
    ],
)
def test_bounds_of_each_type_are_read(data_type: DataType, low: Any, high: Any, expected: tuple[Any, Any]) -> None:
    assert bounds([stats_text({"x": low}, {"x": high})], data_type) == [expected]


def test_decimals_are_read_digit_by_digit() -> None:
    text = '{"numRecords":1,"minValues":{"x":-12345678901.25},"maxValues":{"x":0.10}}'
    assert bounds([text], DecimalType(20, 2)) == [(Decimal("-12345678901.25"), Decimal("0.10"))]
    assert bounds([text], DecimalType(13, 2)) == [(Decimal("-12345678901.25"), Decimal("0.10"))]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-02T03:04:05.006Z", datetime(2024, 1, 2, 3, 4, 5, 6000)),
        ("2024-01-02T03:04:05.006-08:00", datetime(2024, 1, 2, 11, 4, 5, 6000)),
        ("2024-01-02 03:04:05 +0530", datetime(2024, 1, 1, 21, 34, 5)),
        ("2024-01-02T03:04:05.123456789Z", datetime(2024, 1, 2, 3, 4, 5, 123456)),
        ("2024-01-02T03:04:05", datetime(2024, 1, 2, 3, 4, 5)),
        ("1972-01-08T02:00:00.000+01:00", datetime(1972, 1, 8, 1)),
    ],
)
def test_timestamp_bounds_of_any_format_widen_by_a_millisecond(text: str, moment: datetime) -> None:
    texts = [stats_text({"x": text}, {"x": text}), stats_text({"x": "2024-01-02T03:04:05.006Z"}, {"x": "soon"}), None]
    expected = moment.replace(tzinfo=UTC)
    stats = parse_stats(pa.array(texts), {("x",): TIMESTAMP})
    assert stats.maximum[("x",)].to_pylist() == [expected + MS, None, None]
    assert stats.minimum[("x",)][0].as_py() == expected - MS
    assert bounds(texts, TIMESTAMP_NTZ)[0][1] == moment + MS


def test_date_alone_bounds_a_column_widened_to_timestamp() -> None:
    low, high = datetime(2020, 1, 1) - MS, datetime(2020, 1, 2) + MS
    assert bounds([stats_text({"x": "2020-01-01"}, {"x": "2020-01-02"})], TIMESTAMP_NTZ) == [(low, high)]


def test_counts_and_tightness_are_read() -> None:
    texts = [stats_text(nulls={"x": 2}, tightBounds=False), stats_text(nulls={"x": 0}), stats_text(nulls={})]
    stats = parse_stats(pa.array(texts), {("x",): LONG})
    assert stats.file_count == 3
    assert stats.num_records.to_pylist() == [3, 3, 3]
    assert stats.tight_bounds.to_pylist() == [False, True, True]
    assert stats.null_count[("x",)].to_pylist() == [2, 0, None]


def test_nested_leaves_names_with_dots_and_odd_names_are_found() -> None:
    values = {"s": {"a.b": {"c": 1}, "": 2}, "s.a": 3, "é `x`": 4}
    leaves: dict[Path, DataType] = {("s", "a.b", "c"): LONG, ("s", ""): LONG, ("s.a",): LONG, ("é `x`",): LONG, ("S.A",): LONG}
    stats = parse_stats(pa.array([stats_text(values, values, values)]), leaves)
    for path, expected in zip(leaves, [1, 2, 3, 4, None], strict=True):
        assert (
            stats.minimum[path].to_pylist() == stats.maximum[path].to_pylist() == stats.null_count[path].to_pylist() == [expected]
        )


@pytest.mark.parametrize("data_type", [BINARY, VARIANT, ArrayType(LONG)])
def test_type_without_bounds_has_null_counts_only(data_type: DataType) -> None:
    stats = parse_stats(pa.array([stats_text({"x": "0S&u5"}, {"x": "zz"}, {"x": 1})]), {("x",): data_type})
    assert (stats.minimum, stats.maximum) == ({}, {})
    assert stats.null_count[("x",)].to_pylist() == [1]


def test_stats_of_no_files_and_no_leaves_are_empty() -> None:
    assert parse_stats(pa.array([], pa.string()), {("x",): LONG}).minimum[("x",)].to_pylist() == []
    stats = parse_stats(pa.array([stats_text({"x": 1})]), {})
    assert (stats.num_records.to_pylist(), stats.minimum) == ([3], {})


# ---------------------------------------------------------------- JSON: damage

GOOD = stats_text({"x": 1}, {"x": 9}, {"x": 0})
DAMAGED = [
    None,
    "",
    "   ",
    "null",
    "[1]",
    '"text"',
    "{",
    "}",
    GOOD[:-1],
    GOOD[: len(GOOD) // 2],
    GOOD + GOOD,
    "{}{}",
    "{}}",
    '{"minValues":"x"}',
    '{"minValues":[1]}',
    '{"minValues":{"x":{"y":1}}}',
    '{"minValues":{"x":"1"}}',
    '{"minValues":{"x":1.5}}',
    '{"minValues":{"x":1e400}}',
    '{"minValues":{"x":99999999999999999999}}',
    '{"minValues":{"x":true}}',
    '{"numRecords":1.0}',
    '{"numRecords":-1}',
    '{"numRecords":1e30}',
    '{"numRecords":"3"}',
    '{"y":"\ud800"}'.encode("utf-8", "replace").decode(),
    '{"y":"\\ud800"}',
    '{"y":"tab\there"}',
    '{"y":' + "[" * 5000 + "]" * 5000 + "}",
    '{"y":{"x":NaN}}',
]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_text_makes_one_file_unknown_and_no_other(text: str | None) -> None:
    texts = [GOOD, text, GOOD, GOOD]
    stats = parse_stats(pa.array(texts, pa.string()), {("x",): LONG})
    assert stats.num_records.to_pylist()[::2] == [3, 3]
    assert stats.minimum[("x",)].to_pylist() == [1, None, 1, 1]
    assert stats.maximum[("x",)].to_pylist() == [9, None, 9, 9]
    assert stats.null_count[("x",)].to_pylist() == [0, None, 0, 0]
    assert stats.tight_bounds.to_pylist() == [True] * 4
    assert stats.num_records[1].as_py() in (None, 3)


def test_two_objects_in_one_text_do_not_replace_a_missing_one() -> None:
    other = stats_text({"x": 100}, {"x": 200})
    for texts in ([GOOD + other, " ", GOOD], [" ", GOOD + other, GOOD], [GOOD + other, "\n", other]):
        parsed_bounds = bounds(texts, LONG)
        assert parsed_bounds[2] == ((1, 9) if texts[2] == GOOD else (100, 200))
        assert parsed_bounds[:2] == [(None, None)] * 2


def test_damage_among_many_files_leaves_all_others_known() -> None:
    texts = [stats_text({"x": n}, {"x": n + 1}) for n in range(3000)]
    for n, text in ((0, "x"), (700, GOOD[:-1]), (701, '{"minValues":{"x":"a"},"numRecords":8}'), (2999, "{}{}")):
        texts[n] = text
    stats = parse_stats(pa.chunked_array([texts[:10], texts[10:]]), {("x",): LONG})
    assert [n for n, value in enumerate(stats.minimum[("x",)].to_pylist()) if value != n] == [0, 700, 701, 2999]
    assert stats.num_records.to_pylist()[701] == 8


def test_line_breaks_between_tokens_are_white_space() -> None:
    pretty = json.dumps(json.loads(GOOD), indent=2)
    assert bounds([GOOD, pretty, f" {pretty}\n", pretty.replace("\n", "\r\n")], LONG) == [(1, 9)] * 4


def test_not_a_number_and_infinity_are_unknown_or_themselves() -> None:
    texts = [
        stats_text({"x": "NaN"}, {"x": "Infinity"}),
        stats_text({"x": 1.5}, {"x": "NaN"}),
        stats_text({"x": 1.5}, {"x": 2.5}),
    ]
    for data_type in (DOUBLE, FLOAT):
        assert bounds(texts, data_type) == [(None, None), (1.5, None), (1.5, 2.5)]
    bare = ['{"minValues":{"x":NaN},"maxValues":{"x":NaN}}', '{"minValues":{"x":-Infinity},"maxValues":{"x":1.5}}']
    for data_type in (DOUBLE, FLOAT):
        parsed_bounds = bounds(bare, data_type)
        assert parsed_bounds[0] == (None, None)
        assert parsed_bounds[1][0] in (None, float("-inf"))


def test_number_where_text_is_expected_is_unknown() -> None:
    assert bounds([stats_text({"x": 5}, {"x": "b"}), stats_text({"x": "a"}, {"x": "b"})], STRING) == [(None, "b"), ("a", "b")]


def test_integers_beyond_the_columns_type_are_unknown() -> None:
    assert bounds([stats_text({"x": -200}, {"x": 200}), stats_text({"x": -1}, {"x": 1})], BYTE) == [(None, None), (-1, 1)]


def test_decimals_beyond_the_columns_type_are_unknown() -> None:
    texts = ['{"minValues":{"x":1.234},"maxValues":{"x":12345.6}}', '{"minValues":{"x":1.2},"maxValues":{"x":3}}']
    assert bounds(texts, DecimalType(5, 2)) == [(None, None), (Decimal("1.20"), Decimal("3.00"))]


def test_days_of_no_calendar_are_unknown() -> None:
    texts = [stats_text({"x": "2023-02-29"}, {"x": "2024-2-1"}), stats_text({"x": "2024-02-29"}, {"x": "+12024-01-01"})]
    assert bounds(texts, DATE) == [(None, None), (date(2024, 2, 29), None)]


def test_absurd_counts_are_unknown() -> None:
    texts = ['{"numRecords":-5,"nullCount":{"x":-1}}', '{"numRecords":5,"nullCount":{"x":99999999999999999999}}']
    stats = parse_stats(pa.array(texts), {("x",): LONG})
    assert stats.num_records.to_pylist() == [None, 5]
    assert stats.null_count[("x",)].to_pylist() == [None, None]


# ---------------------------------------------------------------- bounds that writers cut or rounded


def test_float_text_bounds_the_double_that_the_float_is() -> None:
    ((low, high),) = bounds([stats_text({"x": 0.7}, {"x": 0.1})], DOUBLE)
    assert low <= 0.699999988079071 and high >= 0.10000000149011612
    assert bounds([stats_text({"x": -1e300}, {"x": 1e300})], DOUBLE) == [(-1e300, 1e300)]


@pytest.mark.parametrize("text", ["a\ufffd", "a\ufffdb", "a\ufffd\n\ufffd"])
def test_bound_ends_before_a_replacement_character(text: str) -> None:
    """It replaces bytes that are not UTF-8, which sort differently, or ends a maximum that was cut."""
    assert bounds([stats_text({"x": text}, {"x": text})], STRING) == [("a", "b")]


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        ("a" * 31, "a" * 31),
        ("a" * 32, "a" * 31 + "b"),
        ("a" * 33, "a" * 33),
        ("a\U0010ffff", "b"),
        ("a\U0010ffff\U0010ffff\ufffd", "b"),
        ("a?\ufffd", "b"),  # half of a character above U+FFFF was cut off
        ("a?b\ufffd", "a?c"),
        ("a\ud7ff\U0010ffff", "a\ue000"),
        ("\n\ufffd", "\x0b"),
        ("\U0010ffff" * 32, None),
        ("\ufffd", None),
        ("", ""),
    ],
)
def test_cut_maximum_becomes_the_next_text_after_its_prefix(maximum: str, expected: str | None) -> None:
    texts = [stats_text({"x": ""}, {"x": "b"}), stats_text({"x": ""}, {"x": maximum})]
    assert bounds(texts, STRING) == [("", "b"), ("", expected)]


def test_parsed_maximum_that_is_no_utf8_is_itself_or_unknown() -> None:
    for text in (b"ab\xff", b"ab" * 15 + b"\xc3x"):
        offsets = pa.array([0, len(text)], pa.int32()).buffers()[1]
        maxima = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(text)])
        stats = stats_from_struct(parsed(maxima), {("x",): STRING})
        assert stats.maximum[("x",)].cast(pa.binary()).to_pylist() in ([text], [None])


MAX_LONG, MAX_INT = 2**63 - 1, 2**31 - 1


@pytest.mark.parametrize(
    ("data_type", "low", "high", "expected"),
    [
        (DecimalType(20, 0), -MAX_LONG - 1, MAX_LONG, (None, None)),
        (DecimalType(20, 0), -MAX_LONG, MAX_LONG + 1, (None, None)),
        (DecimalType(38, 0), "-9.223372036854776e18", "9.223372036854776e18", (None, None)),
        (DecimalType(38, 5), -MAX_LONG - 1, MAX_LONG, (None, None)),
        (DecimalType(20, 2), "-92233720368547758.08", "92233720368547758.07", (None, None)),
        (DecimalType(20, 0), -MAX_INT - 1, MAX_INT, (None, None)),
        (DecimalType(10, 2), "-9999999.99", "9999999.99", (None, None)),
        (DecimalType(9, 2), "-9999999.99", "9999999.99", (Decimal("-9999999.99"), Decimal("9999999.99"))),
        (DecimalType(20, 0), MAX_INT, -MAX_INT, (Decimal(MAX_INT), Decimal(-MAX_INT))),  # beyond them there is nothing to lose
        (LONG, -MAX_INT - 1, MAX_INT, (None, None)),
        (LONG, -MAX_INT - 2, MAX_INT - 1, (-MAX_INT - 2, MAX_INT - 1)),
        (INTEGER, -MAX_INT - 1, MAX_INT, (-MAX_INT - 1, MAX_INT)),
        (DOUBLE, -1.7976931348623157e308, 1.7976931348623157e308, (None, None)),
        (DOUBLE, -3.4028234663852886e38, 3.4028235e38, (None, None)),
        (DOUBLE, -MAX_LONG - 1, MAX_LONG, (None, None)),
        (DOUBLE, "1e400", "1e400", (None, None)),
        (FLOAT, -3.4028235e38, 3.4028235e38, (None, None)),
        (FLOAT, -MAX_INT - 1, MAX_INT, (None, None)),
        (DATE, '"1677-09-21"', '"2262-04-11"', (None, None)),
        (DATE, '"0001-01-01"', '"9999-12-31"', (date(1, 1, 1), date(9999, 12, 31))),
        (TIMESTAMP, '"1677-09-21T00:12:43.145Z"', '"2262-04-11T23:47:16.854Z"', (None, None)),
        (TIMESTAMP_NTZ, '"1901-12-13T20:45:52"', '"2038-01-19T03:14:07.999"', (None, None)),
    ],
)
def test_limit_of_a_narrower_type_says_nothing_of_what_is_beyond(
    data_type: DataType, low: Any, high: Any, expected: tuple[Any, Any]
) -> None:
    text = f'{{"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}}}}'
    usual = f'{{"numRecords":1,"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}},"nullCount":{{"x":0}}}}'
    for texts in ([text], [None, text], [usual] * 300):
        stats = parse_stats(pa.array(texts, pa.string()), {("x",): data_type})
        last_bounds = stats.minimum[("x",)][-1].as_py(), stats.maximum[("x",)][-1].as_py()
        assert last_bounds == expected


@pytest.mark.parametrize("infinity", [float("inf"), float("-inf")])
def test_parsed_infinity_is_unknown(infinity: float) -> None:
    """A program that converts doubles to floats has it for large numbers."""
    for kind, data_type in ((pa.float64(), DOUBLE), (pa.float32(), FLOAT), (pa.float32(), DOUBLE)):
        stats = stats_from_struct(parsed(pa.array([infinity, 1.5], kind)), {("x",): data_type})
        assert stats.minimum[("x",)].to_pylist() == stats.maximum[("x",)].to_pylist() == [None, 1.5]


def test_lone_surrogate_makes_only_its_bound_unknown() -> None:
    half = '{"numRecords":4,"minValues":{"x":"a"},"maxValues":{"x":"b\\ud83d"}}'
    texts = [stats_text({"x": "a"}, {"x": "b"})] * 200
    assert bounds([*texts, half, *texts], STRING) == [("a", "b")] * 200 + [("a", None)] + [("a", "b")] * 200


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0002-01-01T12:00:00.000-00:01", datetime(2, 1, 1, 12, 1, 15)),  # London: -00:01:15
        ("1850-01-01T00:00:00.000-07:52", datetime(1850, 1, 1, 7, 52, 58)),  # Los Angeles: -07:52:58
        ("1930-07-01T12:00:00.000+01:19", datetime(1930, 7, 1, 10, 40, 28)),  # Amsterdam: +01:19:32
        ("1971-12-31T12:00:00.000-00:44", datetime(1971, 12, 31, 12, 44, 30)),  # Monrovia: -00:44:30
    ],
)
def test_time_with_a_truncated_offset_is_between_its_bounds(text: str, moment: datetime) -> None:
    ((low, high),) = bounds([stats_text({"x": text}, {"x": text})], TIMESTAMP)
    assert low <= moment.replace(tzinfo=UTC) <= high
    assert high - low < timedelta(minutes=3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("digits", [17, 19, 20, 30, 38])
def test_decimals_of_more_digits_than_a_double_holds_are_widened(digits: int, sign: int) -> None:
    exact = Decimal(sign) * Decimal("98765432109876543210987654321098765432"[:digits])
    through_double = int(float(exact))
    text = f'{{"minValues":{{"x":{through_double}}},"maxValues":{{"x":{through_double}}}}}'
    data_type = DecimalType(38, 0)
    for texts in ([text], [None, text, text]):
        array = pa.array(texts, pa.string())
        stats = parse_stats(array, {("x",): data_type})
        low, high = stats.minimum[("x",)][-1].as_py(), stats.maximum[("x",)][-1].as_py()
        assert low < exact < high
        assert high - low < abs(exact) / 10**11
    sliced = parse_stats(pa.array([None, text], pa.string())[1:], {("x",): data_type})
    assert sliced.minimum[("x",)][0].as_py() < exact


def test_timestamps_at_the_ends_of_their_range_do_not_wrap() -> None:
    ends = pa.array([-(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    section = pa.StructArray.from_arrays([ends], ["x"])
    stats = stats_from_struct(pa.StructArray.from_arrays([section, section], ["minValues", "maxValues"]), {("x",): TIMESTAMP})
    assert stats.minimum[("x",)].cast(pa.int64()).to_pylist() == [None, None]
    assert stats.maximum[("x",)].cast(pa.int64()).to_pylist() == [None, None]


# ---------------------------------------------------------------- stats_parsed


def parsed(minimum: pa.Array, maximum: pa.Array | None = None, mask: list[bool] | None = None) -> pa.StructArray:
    low = pa.StructArray.from_arrays([minimum], ["x"])
    high = pa.StructArray.from_arrays([minimum if maximum is None else maximum], ["x"])
    rows = pa.array([3] * len(minimum))
    columns = [rows, low, high]
    return pa.StructArray.from_arrays(
        columns, ["numRecords", "minValues", "maxValues"], mask=None if mask is None else pa.array(mask)
    )


INSTANT = datetime(2024, 1, 2, 3, 4, 5, 6000)


@pytest.mark.parametrize(
    ("array", "data_type", "expected"),
    [
        (pa.array([1, None], pa.int8()), LONG, 1),
        (pa.array([1, None], pa.int32()), DOUBLE, 1.0),
        (pa.array([1, None], pa.int16()), DecimalType(12, 2), Decimal("1.00")),
        (pa.array([1.5, None], pa.float32()), DOUBLE, 1.5),
        (pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)), DecimalType(12, 2), Decimal("1.50")),
        (pa.array(["a", None], pa.large_string()), STRING, "a"),
        (pa.array(["a", None]).dictionary_encode(), STRING, "a"),
        (pa.array([date(2024, 1, 1), None], pa.date32()), DATE, date(2024, 1, 1)),
        (pa.array([date(2024, 1, 1), None], pa.date64()), DATE, date(2024, 1, 1)),
        (pa.array([True, None]), BOOLEAN, True),
        (pa.array([300, None], pa.int32()), BYTE, None),
        (pa.array(["5", None]), LONG, None),
        (pa.array([5, None]), STRING, None),
        (pa.array([1.5, None]), LONG, None),
        (pa.array([1, None]), BOOLEAN, None),
        (pa.array([b"a", None]), BINARY, None),
    ],
)
def test_parsed_bounds_are_cast_where_the_order_stays(array: pa.Array, data_type: DataType, expected: Any) -> None:
    stats = stats_from_struct(parsed(array), {("x",): data_type})
    if expected is None:
        assert all(array[0].as_py() is None for array in stats.minimum.values())
    else:
        assert stats.minimum[("x",)].type == to_arrow_type(data_type)
        assert stats.minimum[("x",)].to_pylist() == stats.maximum[("x",)].to_pylist() == [expected, None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/Los_Angeles"])
def test_parsed_timestamps_of_any_unit_are_read_and_widened(unit: str, zone: str | None) -> None:
    instants = (
        pa.array([INSTANT, None], pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.int64()).cast(pa.timestamp(unit, zone))
    )
    stats = stats_from_struct(parsed(instants), {("x",): TIMESTAMP})
    assert stats.minimum[("x",)].to_pylist() == [INSTANT.replace(tzinfo=UTC) - MS, None]
    assert stats_from_struct(parsed(instants), {("x",): TIMESTAMP_NTZ}).maximum[("x",)].to_pylist() == [INSTANT + MS, None]


def test_parsed_dates_bound_a_column_widened_to_timestamp() -> None:
    stats = stats_from_struct(parsed(pa.array([date(2020, 1, 1)])), {("x",): TIMESTAMP_NTZ})
    assert stats.minimum[("x",)].to_pylist() == [datetime(2020, 1, 1) - MS]


def test_files_without_parsed_stats_are_unknown() -> None:
    stats = stats_from_struct(pa.chunked_array([parsed(pa.array([1, 2]), mask=[False, True])]), {("x",): LONG, ("y",): LONG})
    assert stats.num_records.to_pylist() == [3, None]
    assert stats.minimum[("x",)].to_pylist() == [1, None]
    assert stats.tight_bounds.to_pylist() == [True, True]
    assert ("y",) not in stats.minimum and stats.null_count == {}


# ---------------------------------------------------------------- Parquet footers


def footer_of(array: pa.Array, row_group_size: int | None = None, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": array}), sink, row_group_size=row_group_size, **options)
    return pq.ParquetFile(sink).metadata


@pytest.mark.parametrize(
    ("array", "data_type", "expected"),
    [
        (pa.array([1, 5], pa.int32()), LONG, (1, 5)),
        (pa.array([1, 5], pa.int8()), BYTE, (1, 5)),
        (pa.array([1, 500], pa.int32()), BYTE, (1, None)),
        (pa.array([1, 5], pa.uint32()), LONG, (None, None)),
        (pa.array([1, 5], pa.int32()), DOUBLE, (1.0, 5.0)),
        (pa.array([1.5, 2.5], pa.float32()), DOUBLE, (1.5, 2.5)),
        (pa.array([True, False]), BOOLEAN, (False, True)),
        (pa.array(["a", "é"]), STRING, ("a", "é")),
        (pa.array([b"a", b"b"]), STRING, (None, None)),
        (pa.array([b"a", b"b\xff"]).view(pa.string()), STRING, ("a", None)),
        (pa.array([date(1600, 1, 1), date(2024, 1, 1)]), DATE, (date(1600, 1, 1), date(2024, 1, 1))),
        (pa.array([date(1500, 1, 1), date(2024, 1, 1)]), DATE, (None, date(2024, 1, 1))),
        (pa.array([1, 2], pa.int32()), DATE, (None, None)),
        (pa.array([Decimal("1.25"), Decimal("2.5")], pa.decimal128(9, 2)), DecimalType(9, 2), (Decimal("1.25"), Decimal("2.50"))),
        (
            pa.array([Decimal("1.25"), Decimal("2.5")], pa.decimal128(9, 2)),
            DecimalType(20, 3),
            (Decimal("1.25"), Decimal("2.50")),
        ),
        (pa.array([Decimal("1.25"), Decimal("2.5")], pa.decimal128(9, 2)), DecimalType(20, 1), (None, None)),
        (pa.array([INSTANT, INSTANT], pa.timestamp("us", "UTC")), TIMESTAMP, (INSTANT.replace(tzinfo=UTC),) * 2),
        (pa.array([INSTANT, INSTANT], pa.timestamp("ms")), TIMESTAMP_NTZ, (INSTANT, INSTANT)),
        (pa.array([datetime(1800, 1, 1), INSTANT], pa.timestamp("us")), TIMESTAMP_NTZ, (None, INSTANT)),
        (pa.array([1, 2], pa.int64()), TIMESTAMP, (None, None)),
    ],
)
def test_footer_bounds_are_read_where_types_agree(array: pa.Array, data_type: DataType, expected: tuple[Any, Any]) -> None:
    for options in ({}, {"store_decimal_as_integer": True}):
        stats = stats_from_parquet_footer(footer_of(array, **options), {("x",): 0}, {("x",): data_type})
        assert stats.minimum[("x",)].type == to_arrow_type(data_type)
        assert (stats.minimum[("x",)][0].as_py(), stats.maximum[("x",)][0].as_py()) == expected


def test_footer_nanoseconds_are_rounded_outwards() -> None:
    array = pa.array([-1500, 1500], pa.timestamp("ns"))
    stats = stats_from_parquet_footer(footer_of(array, version="2.6"), {("x",): 0}, {("x",): TIMESTAMP_NTZ})
    assert stats.minimum[("x",)].cast(pa.int64()).to_pylist() == [-2]
    assert stats.maximum[("x",)].cast(pa.int64()).to_pylist() == [2]


def test_footer_gives_one_file_a_row_group() -> None:
    footer = footer_of(pa.array([1, None, 3, None, None]), row_group_size=2)
    stats = stats_from_parquet_footer(footer, {("x",): 0}, {("x",): LONG, ("y",): LONG})
    assert (stats.file_count, stats.num_records.to_pylist()) == (3, [2, 2, 1])
    assert stats.minimum[("x",)].to_pylist() == [1, 3, None]
    assert stats.null_count[("x",)].to_pylist() == [1, 1, 1]
    assert ("y",) not in stats.minimum


def test_footer_without_statistics_is_unknown() -> None:
    stats = stats_from_parquet_footer(footer_of(pa.array([1, 2]), write_statistics=False), {("x",): 0}, {("x",): LONG})
    assert stats.minimum[("x",)].to_pylist() == stats.null_count[("x",)].to_pylist() == [None]
    assert stats.num_records.to_pylist() == [2]


def test_footer_of_nanoseconds_does_not_need_pandas() -> None:
    code = """
import io, sys
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, NoPandas())
import pyarrow as pa, pyarrow.parquet as pq
from delta_py.statistics.stats import stats_from_parquet_footer
from delta_py.types.schema import TIMESTAMP
sink = io.BytesIO()
pq.write_table(pa.table({"x": pa.array([1], pa.timestamp("ns", "UTC"))}), sink, version="2.6")
stats = stats_from_parquet_footer(pq.ParquetFile(sink).metadata, {("x",): 0}, {("x",): TIMESTAMP})
assert stats.maximum[("x",)].cast(pa.int64()).to_pylist() == [1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- putting together


def test_number_beyond_a_double_is_no_bound() -> None:
    bounds = [10**350, -(10**350), '"text"', 1.5]  # the text makes each document be read alone
    texts = pa.array([f'{{"numRecords": 1, "minValues": {{"x": {bound}}}}}' for bound in bounds])
    stats = parse_stats(texts, {("x",): DOUBLE})
    assert stats.num_records.to_pylist() == [1] * 4
    *unknown, finite = stats.minimum[("x",)].to_pylist()
    assert unknown == [None] * 3 and finite <= 1.5


def test_concat_keeps_order_and_fills_what_a_part_lacks() -> None:
    first = parse_stats(pa.array([stats_text({"x": 1}, {"x": 2}, {"x": 0})]), {("x",): LONG})
    second = parse_stats(pa.array([stats_text({"y": "a"}, {"y": "b"}, {"y": 1}, tightBounds=False)]), {("y",): STRING})
    stats = concat_stats([first, unknown_stats(1), second])
    assert stats.file_count == 3
    assert stats.num_records.to_pylist() == [3, None, 3]
    assert stats.tight_bounds.to_pylist() == [True, True, False]
    assert stats.minimum[("x",)].to_pylist() == [1, None, None]
    assert stats.maximum[("y",)].to_pylist() == [None, None, "b"]
    assert stats.null_count[("x",)].to_pylist() == [0, None, None]


def test_concat_of_nothing_is_no_files() -> None:
    stats = concat_stats([])
    assert (stats.file_count, stats.num_records.to_pylist()) == (0, [])
    assert isinstance(stats, FileStats)


@pytest.mark.parametrize("data_type", [LONG, DOUBLE, DecimalType(20, 0)], ids=str)
def test_bounds_are_widened_whatever_the_length_of_their_buffer(data_type: DataType) -> None:
    """Parquet's reader returns buffers that end within an item."""
    arrow = to_arrow_type(data_type)
    long = pa.Array.from_buffers(arrow, 2, [None, pa.py_buffer(bytes(2 * arrow.bit_width // 8 + 3))])
    assert [value == 0 for value in widen(long.slice(1), data_type, -1).to_pylist()] == [True]
