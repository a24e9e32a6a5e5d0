from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isnan

import numpy as np
import pyarrow as pa
import pytest

from delta_py.errors import CorruptTableError, InvalidOptionError, UnsupportedOperationError
from delta_py.protocol.partition_values import (
    format_partition_value,
    format_partition_values,
    parse_partition_value,
    parse_partition_values,
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
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
    to_arrow_type,
)  # fmt: skip


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


WRITTEN = [  # text as Spark writes it, and its meaning
    (STRING, "é%20+x", "é%20+x"),
    (STRING, " ", " "),
    (LONG, "-9223372036854775808", -(2**63)),
    (INTEGER, "7", 7),
    (SHORT, "-32768", -32768),
    (BYTE, "127", 127),
    (FLOAT, "0.1", 0.10000000149011612),
    (DOUBLE, "1.0E10", 1e10),
    (DOUBLE, "-Infinity", -inf),
    (DecimalType(38, 18), "200.000000000000000000", Decimal("200.000000000000000000")),
    (DecimalType(38, 18), "12345678901234567890.123456789012345678", Decimal("12345678901234567890.123456789012345678")),
    (DecimalType(9, 5), "-2342.23423", Decimal("-2342.23423")),
    (DATE, "2024-02-29", date(2024, 2, 29)),
    (DATE, "0001-01-01", date(1, 1, 1)),
    (TIMESTAMP, "1970-01-01T12:30:00.000000Z", utc(1970, 1, 1, 12, 30)),
    (TIMESTAMP, "1970-01-01 12:30:00", utc(1970, 1, 1, 12, 30)),
    (TIMESTAMP, "2020-01-01 08:09:10.001", utc(2020, 1, 1, 8, 9, 10, 1000)),
    (TIMESTAMP_NTZ, "2013-07-05 17:01:00.123456", datetime(2013, 7, 5, 17, 1, 0, 123456)),
    (BOOLEAN, "true", True),
    (BOOLEAN, "false", False),
    (BINARY, "\x01\x02\x03", b"\x01\x02\x03"),
    (BINARY, "é", "é".encode()),
]
ODD = [  # other texts that Spark's cast accepts
    (INTEGER, "2021.0", 2021),
    (INTEGER, " +5 ", 5),
    (LONG, "007", 7),
    (DOUBLE, ".5", 0.5),
    (DOUBLE, "inf", inf),
    (DecimalType(5, 2), "1.005", Decimal("1.01")),
    (DecimalType(5, 2), "1e2", Decimal("100.00")),
    (DATE, "2024-1-2", date(2024, 1, 2)),
    (DATE, "2024-01-02 10:00:00", date(2024, 1, 2)),
    (DATE, "2024", date(2024, 1, 1)),
    (TIMESTAMP, "2024-01-02T03:04:05.1234567Z", utc(2024, 1, 2, 3, 4, 5, 123456)),
    (TIMESTAMP, "2024-01-02T03:04:05+05:30", utc(2024, 1, 1, 21, 34, 5)),
    (TIMESTAMP, "2024-01-02 3:4:5 UTC", utc(2024, 1, 2, 3, 4, 5)),
    (TIMESTAMP_NTZ, "2020-01-01", datetime(2020, 1, 1)),  # widened from date
    (TIMESTAMP_NTZ, "2020-01-01T01:02:03Z", datetime(2020, 1, 1, 1, 2, 3)),
    (BOOLEAN, "TRUE", True),
    (BOOLEAN, "n", False),
]
UNPARSABLE = [
    (INTEGER, "abc"), (INTEGER, "0x10"), (INTEGER, "2147483648"), (BYTE, "128"), (LONG, "1e3"), (LONG, "9" * 5000),
    (LONG, "\uff11"),
    (DOUBLE, "1,5"), (DOUBLE, "1_000"), (DecimalType(5, 2), "1000"), (DecimalType(5, 2), "999.995"), (DecimalType(5, 2), "x"),
    (DecimalType(5, 2), "1e99999999999999999999"), (DATE, "2024-02-30"), (DATE, "20240101"), (DATE, "today"),
    (TIMESTAMP, "2024-01-01 25:00:00"),
    (TIMESTAMP, "noon"), (TIMESTAMP, "2024-01-01T1010"), (TIMESTAMP_NTZ, "2024-13-01 00:00:00"), (BOOLEAN, "maybe"),
    (BOOLEAN, "x"),
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "text", "value"), [*WRITTEN, *ODD])
def test_text_is_read_as_its_value(data_type: DataType, text: str, value: object) -> None:
    assert parse_partition_value(text, data_type) == value


@pytest.mark.parametrize(("data_type", "text", "value"), [*WRITTEN, *ODD])
def test_texts_are_read_typed_and_aligned_beside_odd_ones(data_type: DataType, text: str, value: object) -> None:
    texts = pa.array([None, text, "", text, "no such value"])
    values = parse_partition_values(texts, data_type, errors="null")
    assert values.type == to_arrow_type(data_type)
    last = parse_partition_value("no such value", data_type, errors="null")
    assert values.to_pylist() == [None, value, None, value, last]
    assert parse_partition_values(pa.chunked_array([texts[:2], texts[2:]]), data_type, errors="null") == values
    assert parse_partition_values(texts.dictionary_encode(), data_type, errors="null") == values
    assert parse_partition_values(texts[1:2], data_type)[0].as_py() == value


@pytest.mark.parametrize(("data_type", "text"), UNPARSABLE)
def test_text_that_is_no_value_is_an_error_naming_it_or_null(data_type: DataType, text: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        parse_partition_values(pa.array([None, text]), data_type)
    assert caught.value.message_parameters["value"] == text
    assert parse_partition_values(pa.array([None, text]), data_type, errors="null").to_pylist() == [None, None]


@pytest.mark.parametrize("data_type", [STRING, LONG, DATE, TIMESTAMP, BINARY, BOOLEAN, DecimalType(5, 2), VOID])
def test_null_and_empty_text_are_null(data_type: DataType) -> None:
    assert parse_partition_values(pa.array(["", None]), data_type).to_pylist() == [None, None]
    assert parse_partition_values(pa.array([], pa.string()), data_type).to_pylist() == []
    assert parse_partition_values(pa.array([None], pa.string()), data_type).type == to_arrow_type(data_type)


@pytest.mark.parametrize(
    ("data_type", "number", "text"),
    [  # as Spark casts them to text, instants as it formats them in UTC
        (DATE, -735_525, "-0044-03-15"),
        (DATE, -719_528, "0000-01-01"),
        (DATE, -354_650, "0999-01-01"),
        (DATE, 3_789_391, "+12345-01-01"),
        (DATE, 2**31 - 1, "+5881580-07-11"),
        (TIMESTAMP, -63_549_356_276_500_000, "-0044-03-15T01:02:03.500000Z"),
        (TIMESTAMP, 327_403_382_400_000_000, "+12345-01-01T00:00:00.000000Z"),
        (TIMESTAMP, 2**63 - 1, "+294247-01-10T04:00:54.775807Z"),
        (TIMESTAMP_NTZ, -63_549_356_276_500_000, "-0044-03-15 01:02:03.5"),
        (TIMESTAMP_NTZ, 327_403_382_400_000_000, "+12345-01-01 00:00:00"),
    ],
)
def test_days_and_times_beyond_python_years_round_trip(data_type: DataType, number: int, text: str) -> None:
    plain = pa.int32() if data_type == DATE else pa.int64()
    values = pa.array([number, None], plain).cast(to_arrow_type(data_type))
    assert format_partition_values(values, data_type) == [text, None]
    assert parse_partition_values(pa.array([text]), data_type, timezone="Europe/Paris").cast(plain).to_pylist() == [number]


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (DATE, "+9999999-01-01"),
        (TIMESTAMP, "+999999-01-01T00:00:00Z"),
        (TIMESTAMP, "+999999-01-01"),
        (TIMESTAMP_NTZ, "-999999-01-01"),
    ],
)
def test_days_and_times_beyond_the_type_range_are_null(data_type: DataType, text: str) -> None:
    assert parse_partition_values(pa.array([text]), data_type, errors="null").to_pylist() == [None]


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [  # as Spark names the directories of a partitioned write
        (DOUBLE, -0.0, "-0.0"),
        (DOUBLE, 0.0, "0.0"),
        (DOUBLE, 1e20, "1.0E20"),
        (DOUBLE, 1e-5, "1.0E-5"),
        (DOUBLE, 123456789.0, "1.23456789E8"),
        (DOUBLE, 9999999.0, "9999999.0"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 1e-3, "0.001"),
        (DOUBLE, 9.9e-4, "9.9E-4"),
        (DOUBLE, 5e-324, "4.9E-324"),
        (DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
        (DOUBLE, -12.5, "-12.5"),
        (DOUBLE, -4.35e-7, "-4.35E-7"),
        (DOUBLE, 2.0**63, "9.223372036854776E18"),
        (FLOAT, 0.1, "0.1"),
        (FLOAT, -0.0, "-0.0"),
        (FLOAT, 3.4028234663852886e38, "3.4028235E38"),
        (FLOAT, 1.4e-45, "1.4E-45"),
        (FLOAT, 16777216.0, "1.6777216E7"),
    ],
)
def test_floats_have_the_texts_of_java(data_type: DataType, value: float, text: str) -> None:
    assert format_partition_value(value, data_type) == text


def test_nan_is_read_and_written() -> None:
    assert isnan(parse_partition_value("NaN", DOUBLE))
    assert format_partition_value(float("nan"), FLOAT) == "NaN"


def test_plain_timestamps_use_the_session_zone_as_java_does() -> None:
    def read(text: str, zone: str = "America/Los_Angeles") -> datetime:
        value: datetime = parse_partition_value(text, TIMESTAMP, timezone=zone)
        return value

    assert read("2024-01-01 00:00:00") == utc(2024, 1, 1, 8)
    assert read("2024-03-10 02:30:00") == utc(2024, 3, 10, 10, 30)  # in a gap: moved forward by its length
    assert read("2024-11-03 01:30:00") == utc(2024, 11, 3, 8, 30)  # twice on that day: the earlier one
    assert read("2024-01-01T00:00:00.000000Z") == utc(2024, 1, 1)
    assert read("2024-01-01 00:00:00", "+05:30") == utc(2023, 12, 31, 18, 30)
    assert read("2024-01-01 00:00:00", "UTC-2") == utc(2024, 1, 1, 2)
    both = parse_partition_values(
        pa.array(["2024-01-01 00:00:00", "2024-01-01T00:00:00Z"]), TIMESTAMP, timezone="America/Los_Angeles"
    )
    assert both.to_pylist() == [utc(2024, 1, 1, 8), utc(2024, 1, 1)]
    assert parse_partition_value("2024-01-01 00:00:00", TIMESTAMP_NTZ, timezone="Asia/Tokyo") == datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2050-07-01 00:00:00", utc(2050, 7, 1, 4)),
        ("2050-01-01 00:00:00", utc(2050, 1, 1, 5)),
        ("2050-07-01", utc(2050, 7, 1, 4)),
        ("2050-03-13 02:30:00", utc(2050, 3, 13, 7, 30)),  # in a gap: moved forward by its length
        ("2050-03-13 03:00:00", utc(2050, 3, 13, 7)),
        ("2050-11-06 01:30:00", utc(2050, 11, 6, 5, 30)),  # twice on that day: the earlier one
        ("2050-11-06 02:00:00", utc(2050, 11, 6, 7)),
        ("2037-07-01 00:00:00", utc(2037, 7, 1, 4)),
        ("9999-07-01 00:00:00", utc(9999, 7, 1, 4)),
    ],
)
def test_plain_timestamps_after_2037_know_summer_and_winter(text: str, instant: datetime) -> None:
    assert parse_partition_value(text, TIMESTAMP, timezone="America/New_York") == instant
    among_others = pa.array([text, "2024-07-01 00:00:00", None, "2024-1-1"])
    read = parse_partition_values(among_others, TIMESTAMP, timezone="America/New_York")
    assert read.to_pylist() == [instant, utc(2024, 7, 1, 4), None, utc(2024, 1, 1, 5)]


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("PST", utc(2024, 7, 1, 7)),
        ("CTT", utc(2024, 6, 30, 16)),
        ("EST", utc(2024, 7, 1, 5)),
        ("+01:00:30", utc(2024, 6, 30, 22, 59, 30)),
        ("UTC-01:00:30", utc(2024, 7, 1, 1, 0, 30)),
        ("+1:5", utc(2024, 6, 30, 22, 55)),
        ("GMT0", utc(2024, 7, 1)),
    ],
)
def test_plain_timestamps_are_read_in_every_zone_that_spark_has(zone: str, instant: datetime) -> None:
    assert parse_partition_value("2024-07-01 00:00:00", TIMESTAMP, timezone=zone) == instant


@pytest.mark.parametrize("zone", ["+19:00", "+00:60", "utc", "", "Europe", "x" * 300, "Europe/\0Paris", "\u00e9"])
def test_what_is_no_zone_is_refused_by_name(zone: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"The time zone .* is unknown") as caught:
        parse_partition_value("2024-07-01 00:00:00", TIMESTAMP, timezone=zone)
    assert caught.value.error_class == "DELTA_ILLEGAL_OPTION"
    assert caught.value.message_parameters == {"timezone": zone}


def test_offset_over_18_hours_is_none() -> None:
    texts = ["2024-07-01 00:00:00+18:00", "2024-07-01 00:00:00+18:30", "2024-07-01 00:00:00-99:99", "2024-07-01 00:00:00+01:60"]
    expected = [utc(2024, 6, 30, 6), None, None, None]
    assert parse_partition_values(pa.array(texts), TIMESTAMP, errors="null").to_pylist() == expected
    alone = [parse_partition_value(text, TIMESTAMP, errors="null") for text in texts]
    assert alone == expected


def test_unknown_zone_is_an_error_where_it_is_needed() -> None:
    with pytest.raises(InvalidOptionError, match="Mars/Base"):
        parse_partition_value("2024-01-01 00:00:00", TIMESTAMP, timezone="Mars/Base")
    assert parse_partition_value("2024-01-01T00:00:00Z", TIMESTAMP, timezone="Mars/Base") == utc(2024, 1, 1)


def test_dates_beyond_four_digit_years_are_exact() -> None:
    texts = ["+12024-02-29", "-0001-03-01", "12023-01-01", "+12023-02-29"]
    days = parse_partition_values(pa.array(texts), DATE, errors="null").cast(pa.int32())
    assert days.to_pylist() == [*(int(np.datetime64(text.lstrip("+"), "D").astype(int)) for text in texts[:3]), None]


@pytest.mark.parametrize("data_type", [VARIANT, ArrayType(LONG), StructType(())])
def test_type_that_cannot_partition_is_refused_by_name(data_type: DataType) -> None:
    with pytest.raises(UnsupportedOperationError, match="cannot partition"):
        parse_partition_value("1", data_type)
    with pytest.raises(UnsupportedOperationError, match="cannot partition"):
        format_partition_value(1, data_type)


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        (STRING, "a b", "a b"),
        (STRING, "", None),
        (BINARY, b"", None),
        (BINARY, b"\x01", "\x01"),
        (LONG, 5, "5"),
        (BOOLEAN, False, "false"),
        (FLOAT, 0.10000000149011612, "0.1"),
        (DOUBLE, 0.1, "0.1"),
        (DOUBLE, inf, "Infinity"),
        (FLOAT, -inf, "-Infinity"),
        (DecimalType(38, 18), Decimal("12345678901234567890.123456789012345678"), "12345678901234567890.123456789012345678"),
        (DecimalType(10, 2), Decimal("1E+3"), "1000.00"),
        (DATE, date(31, 1, 2), "0031-01-02"),
        (TIMESTAMP, utc(31, 1, 2, 3, 4, 5), "0031-01-02T03:04:05.000000Z"),
        (TIMESTAMP, datetime(2024, 1, 2, 3, 4, 5, 6), "2024-01-02T03:04:05.000006Z"),
        (TIMESTAMP_NTZ, datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
        (TIMESTAMP_NTZ, datetime(2024, 1, 2, 3, 4, 5, 6), "2024-01-02 03:04:05.000006"),
        (LONG, None, None),
    ],
)
def test_value_is_written_as_the_protocols_text(data_type: DataType, value: object, text: str | None) -> None:
    assert format_partition_value(value, data_type) == text


def test_binary_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="UTF-8"):
        format_partition_value(b"\xff", BINARY)


@pytest.mark.parametrize("texts", [["7"], ["1", "7"], ["0.5", "7", None], ["7" * 30], ["1e3"]])
def test_decimal_text_beyond_the_column_is_null(texts: list[str | None]) -> None:
    parsed = parse_partition_values(pa.array(texts, pa.string()), DecimalType(38, 38), errors="null")
    assert parsed.to_pylist() == [Decimal("0.5").scaleb(0) if text == "0.5" else None for text in texts]
