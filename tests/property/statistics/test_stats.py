"""Statistics: bounds include every value of their file, whichever writer made them and whatever other values there are."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.statistics.stats import FileStats, parse_stats, stats_from_struct
from delta_py.statistics.stats_collector import StatsCollector
from delta_py.types.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    Path,
    StructField,
    StructType,
    to_arrow_schema,
    to_arrow_type,
)
from tests.support.runs.sampling import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES: list[tuple[DataType, st.SearchStrategy[Any]]] = [
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (BYTE, st.integers(-128, 127)),
    (STRING, TEXT),
    (FLOAT, st.floats(width=32)),
    (DOUBLE, st.floats()),
    (DATE, st.dates(min_value=date(1, 1, 1))),
    (TIMESTAMP, st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))),
    (TIMESTAMP_NTZ, st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))),
    (
        DecimalType(38, 18),
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda units: Decimal((units < 0, tuple(map(int, str(abs(units)))), -18))),
    ),
]
COLUMNS = st.sampled_from(VALUES).flatmap(
    lambda kind: st.tuples(st.just(kind[0]), st.lists(st.one_of(st.none(), kind[1]), max_size=8))
)


def text_of(data_type: DataType, values: list[Any], pieces: int) -> str:
    schema = StructType((StructField("x", data_type),))
    collector = StatsCollector(schema, [("x",)], string_prefix=4)
    for start in range(0, len(values), pieces):
        rows = pa.array(values[start : start + pieces], to_arrow_type(data_type))
        collector.update(pa.record_batch([rows], schema=to_arrow_schema(schema)))
    return collector.to_json()


def check_bounds(stats: FileStats, file: int, values: list[Any]) -> None:
    low, high = stats.minimum[("x",)][file].as_py(), stats.maximum[("x",)][file].as_py()
    present_values = [value for value in values if value is not None]
    numbers = [value for value in present_values if not (isinstance(value, float) and math.isnan(value))]
    assert low is None or all(order(low) <= order(value) for value in numbers)
    assert high is None or (len(numbers) == len(present_values) and all(order(value) <= order(high) for value in present_values))


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value  # Spark compares strings byte by byte


@given(COLUMNS, st.integers(1, 4))
def test_collected_statistics_hold_every_value(column: tuple[DataType, list[Any]], pieces: int) -> None:
    data_type, values = column
    stats = parse_stats(pa.array([text_of(data_type, values, pieces)]), {("x",): data_type})
    check_bounds(stats, 0, values)
    assert stats.num_records.to_pylist() == [len(values)]
    assert stats.null_count[("x",)].to_pylist() == [values.count(None)]


SHORT_DECIMAL = DecimalType(18, 4)
IN_FOOTER = st.one_of(
    COLUMNS,
    st.tuples(
        st.just(SHORT_DECIMAL),
        st.lists(st.one_of(st.none(), st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-4))), max_size=8),
    ),
)


@given(IN_FOOTER, st.integers(1, 4))
def test_statistics_from_the_footer_are_those_of_the_rows(column: tuple[DataType, list[Any]], pieces: int) -> None:
    data_type, values = column
    schema = StructType((StructField("a.x", data_type), StructField("a", StructType((StructField("x", data_type),)))))
    paths = [("a.x",), ("a", "x")]
    by_rows, by_footer = StatsCollector(schema, paths), StatsCollector(schema, paths, use_footer=True)
    sink, footer = pa.BufferOutputStream(), list[pq.FileMetaData]()
    arrow = to_arrow_schema(schema)
    with pq.ParquetWriter(sink, arrow, store_decimal_as_integer=True, metadata_collector=footer) as parquet:
        for start in range(0, len(values), pieces):
            rows = pa.array(values[start : start + pieces], to_arrow_type(data_type))
            nested = pa.StructArray.from_arrays([rows], fields=list(arrow.field("a").type))
            batch = pa.record_batch([rows, nested], schema=arrow)
            parquet.write_batch(batch)
            by_rows.update(batch)
            by_footer.update(batch)
    by_footer.add_footer_bounds(footer[0])
    assert by_footer.to_json() == by_rows.to_json()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=4))
def test_float_bounds_contain_doubles_after_type_widening(values: list[float]) -> None:
    low, high = str(np.float32(min(values))), str(np.float32(max(values)))
    stats = parse_stats(pa.array([f'{{"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}}}}']), {("x",): DOUBLE})
    check_bounds(stats, 0, values)


@given(st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p), st.integers(-(10**p) + 1, 10**p - 1))))
def test_bounds_of_decimals_rounded_to_doubles_contain_the_value(number: tuple[int, int, int]) -> None:
    precision, scale, units = number
    exact = Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale))
    text = repr(float(exact))
    stats = parse_stats(
        pa.array([f'{{"minValues":{{"x":{text}}},"maxValues":{{"x":{text}}}}}']), {("x",): DecimalType(precision, scale)}
    )
    check_bounds(stats, 0, [exact])


NUMBERS = st.one_of(st.integers(-300, 300), st.integers(), st.floats(), st.text(max_size=3), st.booleans(), st.none())
JSON = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["x", "y", "minValues", "numRecords"]), inner, max_size=3)
    ),
    max_leaves=6,
)
DOCUMENTS = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.fixed_dictionaries(
        {}, optional={name: JSON for name in ("numRecords", "minValues", "maxValues", "nullCount", "tightBounds")}
    ).map(json.dumps),
    st.builds(
        lambda n: json.dumps({"numRecords": n, "minValues": {"x": n}, "maxValues": {"x": n}, "nullCount": {"x": 0}}),
        st.integers(0, 99),
    ),
)
LEAVES: dict[Path, DataType] = {("x",): INTEGER, ("y", "x"): STRING}


def as_lists(stats: FileStats) -> list[Any]:
    sections = [stats.minimum, stats.maximum, stats.null_count]
    columns = [stats.num_records, stats.tight_bounds, *(section.get(path) for section in sections for path in LEAVES)]
    return [None if column is None else column.to_pylist() for column in columns]


@settings(max_examples=examples(120))
@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_no_text_changes_what_is_known_of_another_file(texts: list[str | None]) -> None:
    together = as_lists(parse_stats(pa.array(texts, pa.string()), LEAVES))
    alone = [as_lists(parse_stats(pa.array([text], pa.string()), LEAVES)) for text in texts]
    for column, values in enumerate(together):
        assert values == [one[column][0] for one in alone]


@given(st.sampled_from(VALUES), st.sampled_from(VALUES), st.data())
def test_parsed_statistics_of_any_type_are_bounds_or_unknown(
    written: tuple[DataType, Any], table: tuple[DataType, Any], data: st.DataObject
) -> None:
    value = data.draw(written[1])
    section = pa.StructArray.from_arrays([pa.array([value, None], to_arrow_type(written[0]))], ["x"])
    stats = stats_from_struct(pa.StructArray.from_arrays([section, section], ["minValues", "maxValues"]), {("x",): table[0]})
    if written[0] == table[0]:
        check_bounds(stats, 0, [value])
    for bounds in (stats.minimum, stats.maximum):
        assert all(array.type == to_arrow_type(table[0]) and array[1].as_py() is None for array in bounds.values())
