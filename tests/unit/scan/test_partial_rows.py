"""Partial rows: combined, they have the same values as the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.errors import DeltaError
from delta_py.scan.partial_rows import PartialRows, partial_batches
from delta_py.scan.summands import Summand

ROWS = pa.schema(
    [
        ("kind", pa.string()),
        ("flag", pa.bool_()),
        ("big", pa.int64()),
        ("small", pa.int16()),
        ("price", pa.decimal128(12, 2)),
        ("short", pa.decimal128(7, 2)),
        ("day", pa.date32()),
    ]
)
PRODUCTS = [
    ["*", "price", ["-", {"digits": 1, "scale": 0}, "short"]],
    ["*", ["*", "price", ["-", {"digits": 1, "scale": 0}, "short"]], ["+", "price", {"digits": -25, "scale": 3}]],
]
WANTED = PartialRows(
    by=("kind", "flag"),
    valued=("day", "kind"),
    minima=("day", "price"),
    maxima=("day", "flag"),
    sums=tuple(map(Summand.parse, ["big", "small", "price", "short", *PRODUCTS])),
)
PARTIAL = pa.schema(
    [
        ("kind", pa.string()),
        ("flag", pa.bool_()),
        ("rows", pa.int64()),
        ("valued day", pa.int64()),
        ("valued kind", pa.int64()),
        ("min day", pa.date32()),
        ("min price", pa.decimal128(12, 2)),
        ("max day", pa.date32()),
        ("max flag", pa.bool_()),
        ("sum big", pa.int64()),
        ("sum small", pa.int64()),
        ("sum price", pa.decimal128(22, 2)),
        ("sum short", pa.int64()),
        ("sum product", pa.decimal128(33, 4)),
        ("sum wide product", pa.decimal128(38, 7)),
    ]
)
LONGS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))


def decimals(digits: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda unscaled: Decimal(unscaled).scaleb(-2))


ROW = st.tuples(
    st.none() | st.sampled_from(["a", "b", "", "a\0"]),
    st.none() | st.booleans(),
    st.none() | LONGS,
    st.none() | st.integers(-(2**15), 2**15 - 1),
    st.none() | decimals(12),
    st.none() | decimals(7),
    st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)),
)


def batch_of(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(ROWS.types)]
    return pa.record_batch(columns, schema=ROWS)


def known(values: Iterable[Any], how: Callable[[list[Any]], Any]) -> Any:
    left = [value for value in values if value is not None]
    return how(left) if left else None


def by_hand(rows: Iterable[Sequence[Any]]) -> dict[tuple[Any, ...], list[Any]]:
    groups: dict[tuple[Any, ...], list[Sequence[Any]]] = {}
    for row in rows:
        groups.setdefault((row[0], row[1]), []).append(row)
    expected_rows = {}
    for key, members in groups.items():
        kind, flag, big, small, price, short, day = zip(*members, strict=True)
        product = [None if None in pair else pair[0] * (1 - pair[1]) for pair in zip(price, short, strict=True)]
        wide = [None if one is None else one * (of - Decimal("0.025")) for one, of in zip(product, price, strict=True)]
        valued = [sum(value is not None for value in column) for column in (day, kind)]
        ends = [known(day, min), known(price, min), known(day, max), known(flag, max)]
        expected_rows[key] = [
            len(members),
            *valued,
            *ends,
            known(big, sum),
            known(small, sum),
            known(price, sum),
            known(short, sum),
        ]
        expected_rows[key] += [known(product, sum), known(wide, sum)]
    return expected_rows


def put_together(batches: Iterable[pa.RecordBatch]) -> dict[tuple[Any, ...], list[Any]]:
    """As Spark does, with numbers of unlimited size."""
    groups: dict[tuple[Any, ...], list[list[Any]]] = {}
    for batch in batches:
        assert batch.schema.equals(PARTIAL)
        columns = batch.to_pydict()
        columns["sum short"] = [None if value is None else Decimal(value).scaleb(-2) for value in columns["sum short"]]
        for row in zip(*columns.values(), strict=True):
            groups.setdefault(row[:2], []).append(list(row[2:]))
    hows: list[Callable[[list[Any]], Any]] = [sum, sum, sum, min, min, max, max, *[sum] * 6]
    return {
        key: [known(column, how) for column, how in zip(zip(*members, strict=True), hows, strict=True)]
        for key, members in groups.items()
    }


@pytest.fixture(autouse=True, scope="module")
def wide_numbers() -> Iterator[None]:
    with localcontext(prec=100):
        yield


@given(st.lists(st.lists(ROW, max_size=12), max_size=5))
def test_partial_rows_put_together_say_what_the_rows_say(batches: list[list[Sequence[Any]]]) -> None:
    combined = put_together(partial_batches(map(batch_of, batches), WANTED, PARTIAL))
    assert combined == by_hand(row for batch in batches for row in batch)


def test_few_groups_are_one_row_each() -> None:
    batches = [batch_of([(kind, True, 1, 1, None, None, None) for kind in "ab" for _ in range(2_000)]) for _ in range(40)]
    (partial,) = partial_batches(batches, WANTED, PARTIAL)
    assert partial.num_rows == 2 and partial["rows"].to_pylist() == [80_000, 80_000]


def test_without_groups_there_is_one_row() -> None:
    schema = pa.schema([("rows", pa.int64()), ("valued", pa.int64()), ("sum", pa.int64())])
    batches = [batch_of([(kind, True, 7, 1, None, None, None) for kind in ("a", None)])] * 3
    (partial,) = partial_batches(batches, PartialRows(valued=("kind",), sums=(Summand("big"),)), schema)
    assert partial.to_pylist() == [{"rows": 6, "valued": 3, "sum": 42}]


def test_rows_that_are_all_different_are_given_as_they_come() -> None:
    """At most one batch of them is held."""
    taken_numbers = []

    def batches() -> Iterable[pa.RecordBatch]:
        for number in range(5):
            taken_numbers.append(number)
            yield batch_of([(f"{number}-{row}", None, row, None, None, None, None) for row in range(3_000)])

    reading = partial_batches(batches(), WANTED, PARTIAL)
    assert next(reading).num_rows == 3_000 and taken_numbers == [0]
    assert sum(batch.num_rows for batch in reading) == 12_000


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_might_not_fit_are_left_to_spark(sign: int) -> None:
    rows = [("a", True, sign * (2**62), None, None, None, None)] * 3
    batches = list(partial_batches([batch_of(rows[:1]), batch_of(rows[1:2]), batch_of(rows[2:])], WANTED, PARTIAL))
    assert [value for batch in batches for value in batch["sum big"].to_pylist()] == [sign * (2**62)] * 3


@pytest.mark.parametrize("value", [Decimal("0.0000012345"), Decimal("0.5")])
def test_sides_whose_points_lie_far_apart_are_added_up(value: Decimal) -> None:
    batch = pa.record_batch({"x": pa.array([value], pa.decimal128(12, 10))})
    difference = Summand.parse(["-", {"digits": 1, "scale": 0}, ["*", "x", "x"]])
    schema = pa.schema([("rows", pa.int64()), ("s", pa.decimal128(36, 20))])
    (partial,) = partial_batches([batch], PartialRows(sums=(difference,)), schema)
    assert partial["s"].to_pylist() == [1 - value * value]


def test_product_that_no_decimal_holds_is_an_error() -> None:
    kind = pa.decimal128(18, 0)
    batch = pa.record_batch({"a": pa.array([10**17], kind)})
    schema = pa.schema([("rows", pa.int64()), ("sum", pa.decimal128(38, 0))])
    cubes = PartialRows(sums=(Summand.parse(["*", "a", ["*", "a", "a"]]),))
    with pytest.raises(DeltaError, match="more than 38 digits") as caught:
        list(partial_batches([batch], cubes, schema))
    assert caught.value.error_class.startswith("NUMERIC_VALUE_OUT_OF_RANGE")
    square = PartialRows(sums=(Summand.parse(["*", "a", "a"]),))
    assert [partial["sum"].to_pylist() for partial in partial_batches([batch], square, schema)] == [[Decimal(10**34)]]


@pytest.mark.parametrize("sum_text", [["/", "a", "b"], ["*", "a"], 1, None, {"digits": 1}])
def test_sum_that_is_not_understood_is_refused(sum_text: Any) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Summand.parse(sum_text)
