"""The comparison of rows in the acceptance tests finds every difference."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.oracles.rows import difference

MAP = pa.map_(pa.string(), pa.int32())
STRUCT = pa.struct([("x", pa.int32())])


def table(values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"a": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (table([1, 2, 2]), table([2, 1, 2])),
        (table([float("nan"), None]), table([None, float("nan")])),
        (table([[("a", 1), ("b", 2)]], MAP), table([[("b", 2), ("a", 1)]], MAP)),
        (table([1_000], pa.timestamp("ms")), table([1_000_000], pa.timestamp("us"))),
        (table([9, 1]).slice(1), table([1])),
        (table([[9], [1, 2]]).slice(1), table([[1, 2]])),
        (table([{"x": 9}, {"x": 1}], STRUCT).slice(1), table([{"x": 1}], STRUCT)),
        (table([[("z", 9)], [("a", 1)]], MAP).slice(1), table([[("a", 1)]], MAP)),
    ],
)
def test_difference_of_the_same_rows_is_none(one: pa.Table, other: pa.Table) -> None:
    assert difference(one, other) is None
    assert difference(other, one) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (table([1, 1]), table([1])),
        (table([0.0]), table([-0.0])),
        (table([None], pa.float64()), table([0.0])),
        (table([None, 1]), table([0, 1])),
        (table([[]], pa.list_(pa.int32())), table([None], pa.list_(pa.int32()))),
        (table([{"x": None}], STRUCT), table([None], STRUCT)),
        (table([Decimal("1.0")]), table([Decimal("1.00")])),
        (table([True]), table([1])),
        (table([[1, 2]]), table([[2, 1]])),
        (pa.table({"a": [1]}), pa.table({"a": [1], "b": [1]})),
    ],
)
def test_difference_of_other_rows_is_told(one: pa.Table, other: pa.Table) -> None:
    assert difference(one, other) is not None
    assert difference(other, one) is not None
