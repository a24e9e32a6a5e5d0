"""Values as ranks, of every type that has an order."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.layout.ranks import ColumnRanks

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.int8(), st.integers(-128, 127)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "text": (pa.string(), st.text(max_size=5)),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    "flag": (pa.bool_(), st.booleans()),
}


def ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_ranks_rise_with_the_values_and_nulls_come_first(name: str, data: st.DataObject) -> None:
    kind, values = VALUES[name]
    sample = data.draw(st.lists(st.none() | values, min_size=1, max_size=40))
    rows = data.draw(st.lists(st.none() | values, max_size=40)) + sample
    ranks = ColumnRanks.of(pa.array(sample, kind), 4).ranks(pa.array(rows, kind)).tolist()
    assert all(0 <= rank < 16 for rank in ranks)
    assert all(rank == 0 for rank, value in zip(ranks, rows, strict=True) if value is None)
    present = sorted((ordered(value), rank) for rank, value in zip(ranks, rows, strict=True) if value is not None)
    assert [rank for _, rank in present] == sorted(rank for _, rank in present)


def test_ranks_are_shares_of_the_rows() -> None:
    values = pa.array(np.random.default_rng(1).exponential(size=10_000))
    counts = np.bincount(ColumnRanks.of(values, 3).ranks(values), minlength=8)
    assert (abs(counts - 1250) < 10).all()


def test_a_value_of_many_rows_does_not_push_others_together() -> None:
    values = pa.array([0] * 500 + [1] * 250 + [2] * 250)
    assert ColumnRanks.of(values, 2).ranks(pa.array([0, 1, 2])).tolist() == [1, 2, 3]


def test_nulls_take_their_share() -> None:
    values = pa.array([None] * 500 + [1] * 500)
    assert ColumnRanks.of(values, 2).ranks(pa.array([None, 1])).tolist() == [0, 3]


def test_sample_of_nulls_alone() -> None:
    for kind in (pa.int64(), pa.string()):
        column = ColumnRanks.of(pa.nulls(3, kind), 2)
        assert column.ranks(pa.array([None, None], kind)).tolist() == [0, 0]
        assert column.ranks(pa.array(["7"]).cast(kind)).tolist() == [3]


def test_values_beyond_the_sample_and_no_number() -> None:
    column = ColumnRanks.of(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
    assert column.ranks(pa.array([-math.inf, 9.0, math.inf, math.nan])).tolist() == [0, 3, 3, 3]
    assert ColumnRanks.of(pa.array([Decimal("1.5")]), 2).ranks(pa.array([Decimal("0.5")])).tolist() == [0]
