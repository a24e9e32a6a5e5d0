"""Statistics from footers, compared with those of the rows: they agree, and no row is outside of a footer's bounds."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from delta_py.parquet.foreign_schema import read_columns
from delta_py.statistics.footer_stats import footer_stats
from delta_py.statistics.stats_collector import StatsCollector

NUMBERS = st.decimals(-99999, 99999, places=2, allow_nan=False, allow_infinity=False)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32)),
    "d": (pa.float64(), st.floats()),
    "s": (pa.string(), st.text(max_size=40)),
    "dec": (pa.decimal128(9, 2), NUMBERS.map(lambda n: Decimal(n).quantize(Decimal("0.01")))),
    "day": (pa.date32(), st.dates(date(1583, 1, 1))),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1901, 1, 1), timezones=st.just(UTC))),
    "b": (pa.bool_(), st.booleans()),
    "bin": (pa.binary(), st.binary(max_size=5)),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 6))
    columns = {}
    for name, (kind, values) in VALUES.items():
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), kind)
    inner = pa.StructArray.from_arrays(
        [columns["i64"], columns["s"]],
        names=["i", "s"],
        mask=pa.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), pa.bool_()),
    )
    return pa.table({**columns, "inner": inner})


@given(tables(), st.integers(1, 7), st.booleans())
def test_footers_say_what_the_rows_say_or_nothing(table: pa.Table, group: int, as_integer: bool) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group, store_decimal_as_integer=as_integer)
    file = pq.ParquetFile(sink)
    footer_columns = read_columns(file)
    columns = tuple(footer_columns.leaves)
    footer_values = json.loads(
        footer_stats(file.metadata, footer_columns.schema, footer_columns.leaves, columns, string_prefix=32), parse_float=Decimal
    )
    exact = StatsCollector(footer_columns.schema, columns)
    for batch in table.to_batches():
        exact.update(batch)
    true = json.loads(exact.to_json(), parse_float=Decimal)
    assert footer_values["numRecords"] == table.num_rows
    assert footer_values["nullCount"] == true["nullCount"]
    for side in ("minValues", "maxValues"):
        for name, bound in flat(footer_values[side]).items():
            if name in ("f", "d"):
                assert side == "minValues"
                assert bound == flat(true[side])[name]
            else:
                assert bound == flat(true[side]).get(name), name
        comparable_names = {name for name in flat(true[side]) if not name.startswith(("f", "d")) or name in ("dec", "day")}
        assert comparable_names <= flat(footer_values[side]).keys() | {"day", "at"}


def flat(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat_values: dict[str, Any] = {}
    for name, value in values.items():
        flat_values |= flat(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return flat_values
