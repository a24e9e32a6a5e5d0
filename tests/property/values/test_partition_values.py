"""Partition values: written values are read back, one at a time and in columns."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_py.protocol.partition_values import format_partition_value, format_partition_values, parse_partition_values
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
    DataType,
    DecimalType,
    to_arrow_type,
)  # fmt: skip

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**precision - 1
    return st.integers(-largest, largest).map(lambda units: Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale)))


VALUES: list[tuple[DataType, st.SearchStrategy[Any]]] = [
    (STRING, TEXT),
    (BINARY, TEXT.map(str.encode)),
    (BOOLEAN, st.booleans()),
    (BYTE, integers(8)),
    (SHORT, integers(16)),
    (INTEGER, integers(32)),
    (LONG, integers(64)),
    (FLOAT, st.floats(width=32, allow_nan=False)),
    (DOUBLE, st.floats(allow_nan=False)),
    (DATE, st.dates()),
    (TIMESTAMP, st.datetimes(timezones=st.just(UTC))),
    (TIMESTAMP_NTZ, st.datetimes()),
    (DecimalType(38, 18), decimals(38, 18)),
    (DecimalType(38, 38), decimals(38, 38)),
    (DecimalType(7, 0), decimals(7, 0)),
]
COLUMNS = st.sampled_from(VALUES).flatmap(
    lambda kind: st.tuples(st.just(kind[0]), st.lists(st.one_of(st.none(), kind[1]), max_size=6))
)


@given(COLUMNS, st.sampled_from(["UTC", "America/Los_Angeles", "+05:30"]))
def test_written_partition_values_are_read_back(column: tuple[DataType, list[Any]], timezone: str) -> None:
    data_type, values = column
    texts = pa.array([format_partition_value(value, data_type) for value in values], pa.string())
    expected = [value if value not in ("", b"") else None for value in values]
    read = parse_partition_values(texts, data_type, timezone=timezone)
    assert read.to_pylist() == expected
    assert read.type == to_arrow_type(data_type)


@given(
    st.sampled_from([(DATE, 32), (TIMESTAMP, 64), (TIMESTAMP_NTZ, 64)]).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(st.one_of(st.none(), integers(kind[1])), max_size=6))
    ),
    st.sampled_from(["UTC", "America/Los_Angeles"]),
)
def test_days_and_times_of_every_year_are_read_back(column: tuple[tuple[DataType, int], list[int | None]], timezone: str) -> None:
    (data_type, bits), numbers = column
    plain = pa.int32() if bits == 32 else pa.int64()
    values = pa.array(numbers, plain).cast(to_arrow_type(data_type))
    texts = pa.array(format_partition_values(values, data_type), pa.string())
    assert parse_partition_values(texts, data_type, timezone=timezone).cast(plain).to_pylist() == numbers


@given(
    st.sampled_from([kind for kind, _ in VALUES]),
    st.lists(st.one_of(TEXT, st.text("0123456789-+.:eETZ xX ", max_size=12)), max_size=5),
)
def test_any_text_parses_or_is_null_independently_of_others(data_type: DataType, texts: list[str]) -> None:
    together = parse_partition_values(pa.array(texts, pa.string()), data_type, errors="null")
    alone = [parse_partition_values(pa.array([text]), data_type, errors="null") for text in texts]
    assert pa.concat_arrays([*alone, together[:0]]).equals(together) or repr(pa.concat_arrays(alone)) == repr(together)
