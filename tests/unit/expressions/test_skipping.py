"""Which files statistics and partition values exclude, one case at a time. Files are rows of a small table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.skipping_conditions import columns_with_stats, is_exact_on_partitions, keep_mask
from delta_py.expressions.tree import Call, Column, Comparison, IsNull, Literal, Not
from delta_py.statistics.stats import FileStats, unknown_stats
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    Path,
    StructField,
    StructType,
    leaves,
    to_arrow_type,
)

NAN = float("nan")
SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("k", INTEGER),
        StructField("d", DOUBLE),
        StructField("m", DecimalType(10, 2)),
        StructField("s", STRING),
        StructField("t", DATE),
        StructField("ts", TIMESTAMP),
        StructField("y", BOOLEAN),
        StructField("n", StructType((StructField("x", INTEGER),))),
        StructField("p", STRING),
        StructField("q", INTEGER),
    )
)
TYPES: dict[Path, DataType] = {path: field.data_type for path, field in leaves(SCHEMA)}


def stats(
    path: str,
    bounds: Sequence[tuple[Any, Any]],
    nulls: Sequence[int | None] | None = None,
    rows: int | None = 10,
    tight: bool = True,
) -> FileStats:
    """One file for each pair of bounds."""
    key = tuple(path.split("."))
    kind = to_arrow_type(TYPES[key])
    count = len(bounds)
    return FileStats(
        count,
        pa.array([rows] * count, pa.int64()),
        pa.array([tight] * count),
        {key: pa.array([low for low, _ in bounds], kind)},
        {key: pa.array([high for _, high in bounds], kind)},
        {} if nulls is None else {key: pa.array(nulls, pa.int64())},
    )


def kept(sql: str, file_stats: FileStats, partitions: dict[Path, pa.Array] | None = None, zone: str = "UTC") -> list[bool]:
    mask = keep_mask(parse_predicate(sql, SCHEMA, session_timezone=zone), file_stats, partitions or {})
    assert mask.type == pa.bool_()
    assert mask.null_count == 0
    is_kept: list[bool] = mask.to_pylist()
    return is_kept


# ---------------------------------------------------------------- comparisons

INTS = stats("i", [(0, 9), (10, 19), (20, 20), (None, None)], [0, 3, 0, 10])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 5", [True, False, False, False]),
        ("i = 9", [True, False, False, False]),
        ("i < 10", [True, False, False, False]),
        ("i <= 10", [True, True, False, False]),
        ("i > 19", [False, False, True, False]),
        ("i >= 19", [False, True, True, False]),
        ("15 < i", [False, True, True, False]),
        ("i <> 20", [True, True, False, False]),
        ("not i < 10", [False, True, True, False]),
        ("not i >= 10", [True, False, False, False]),
        ("i <=> 20", [False, False, True, False]),
        ("i <=> null", [False, True, False, True]),
        ("not (i <=> 20)", [True, True, False, True]),
        ("i is null", [False, True, False, True]),
        ("i is not null", [True, True, True, False]),
        ("i = 1.5", [True, False, False, False]),
        ("i > 19.5", [False, False, True, False]),
        ("i < 2147483648", [True, True, True, False]),
        ("i = 2147483648", [False, False, False, False]),
        ("i between 8 and 12", [True, True, False, False]),
        ("i not between 0 and 15", [False, True, True, False]),
        ("not (i > 5 and i < 100)", [True, False, False, False]),
        ("not (i > 5 or i < 3)", [True, False, False, False]),
        ("i = 5 or i = 15", [True, True, False, False]),
        ("i in (5, 20)", [True, False, True, False]),
        ("i in (-1, 9, 100)", [True, False, False, False]),
        ("i in (null)", [False, False, False, False]),
        ("i not in (20, 21)", [True, True, False, False]),
        ("i not in (1, null)", [False, False, False, False]),
        ("i = null", [False, False, False, False]),
        ("i + 1 = 20", [False, True, False, False]),
        ("i - 1 >= 19", [False, False, True, False]),
        ("abs(i) = 100", [True, True, True, True]),
        ("i * 2 = 1000", [True, True, True, True]),
        ("cast(i as string) = '5'", [True, True, True, False]),
        ("coalesce(i, 5) = 100", [True, True, True, True]),
        ("false", [False, False, False, False]),
        ("true", [True, True, True, True]),
    ],
)
def test_integers(sql: str, expected: list[bool]) -> None:
    assert kept(sql, INTS) == expected


def test_in_with_thousands_of_values_finds_the_gaps_between_them() -> None:
    bounds = [(10 * n + 1, 10 * n + 9) for n in range(2000)] + [(10, 10), (5, 15), (-9, -1), (30_000, 40_000)]
    options = ", ".join(str(10 * n) for n in range(1, 2500))
    assert kept(f"i in ({options})", stats("i", bounds)) == [False] * 2000 + [True, True, False, False]
    texts = stats("s", [(f"{low:05}", f"{high:05}") for low, high in bounds[:2002]])
    quoted = ", ".join(f"'{10 * n:05}'" for n in range(1, 2500))
    assert kept(f"s in ({quoted})", texts) == [False] * 2000 + [True, True]
    decimals = stats("m", [(low, high) for low, high in bounds])
    assert kept(f"m in ({options})", decimals) == [False] * 2000 + [True, True, False, False]


def test_nothing_known_keeps_every_file() -> None:
    for sql in [
        "i = 5",
        "i is null",
        "i is not null",
        "i in (1, 2)",
        "s like 'a%'",
        "not (i <=> 1)",
        "y",
        "i < k",
        "cast(ts as date) > t",
    ]:
        assert kept(sql, unknown_stats(3)) == [True, True, True]


def test_one_bound_is_enough() -> None:
    file_stats = stats("i", [(None, 9), (10, None), (None, None)])
    assert kept("i > 9", file_stats) == [False, True, True]
    assert kept("i < 10", file_stats) == [True, False, True]
    assert kept("i = 10", file_stats) == [False, True, True]


def test_bounds_that_contradict_each_other_are_not_believed() -> None:
    assert kept("i = 5", stats("i", [(10, 0), (10, 20)])) == [True, False]


def test_null_counts_that_make_no_sense_are_not_believed() -> None:
    file_stats = stats("i", [(0, 9), (0, 9)], [11, None])
    assert kept("i is not null", file_stats) == [True, True]
    assert kept("i = 5", file_stats) == [True, True]


def test_files_without_rows_in_their_statistics_are_kept() -> None:
    assert kept("i is not null", stats("i", [(None, None)], [0], rows=0)) == [True]


def test_wide_bounds_rule_out_what_lies_outside_of_them() -> None:
    file_stats = stats("i", [(0, 9), (7, 7)], [2, 0], tight=False)
    assert kept("i = 100", file_stats) == [False, False]
    assert kept("i = 7", file_stats) == [True, True]
    assert kept("i <> 7", file_stats) == [True, False]
    assert kept("i is null", file_stats) == [True, False]


def test_columns_are_compared_by_their_bounds() -> None:
    file_stats = FileStats(
        2,
        pa.array([5, 5]),
        pa.array([True, True]),
        {("i",): pa.array([0, 50], pa.int32()), ("k",): pa.array([20, 20], pa.int32())},
        {("i",): pa.array([9, 60], pa.int32()), ("k",): pa.array([30, 30], pa.int32())},
    )
    assert kept("i = k", file_stats) == [False, False]
    assert kept("i > k", file_stats) == [False, True]
    assert kept("i < k", file_stats) == [True, False]
    assert kept("i <=> k", file_stats) == [True, True]  # both may be null: there are no null counts


def test_nested_column_is_found_by_its_path() -> None:
    assert kept("n.x = 5", stats("n.x", [(0, 9), (10, 19)])) == [True, False]


# ---------------------------------------------------------------- floating point


def test_upper_bound_of_doubles_says_nothing_of_nan() -> None:
    file_stats = stats("d", [(0.0, 1.0), (5.0, 9.0)], [0, 0])
    assert kept("d > 100", file_stats) == [True, True]
    assert kept("d >= 100", file_stats) == [True, True]
    assert kept("d = 100", file_stats) == [False, False]
    assert kept("d in (100, 101)", file_stats) == [False, False]
    assert kept("d < 3", file_stats) == [True, False]
    assert kept("d = double('NaN')", file_stats) == [True, True]
    assert kept("d <=> double('NaN')", file_stats) == [True, True]
    assert kept("d in (100, double('NaN'))", file_stats) == [True, True]
    assert kept("d <> 1", stats("d", [(1.0, 1.0)], [0])) == [True]
    assert kept("not (d < 3)", file_stats) == [True, True]
    assert kept("not (d > 3)", file_stats) == [True, False]
    assert kept("floor(d) = 100", file_stats) == [True, True]


def test_nan_as_a_bound_is_not_believed() -> None:
    assert kept("d < 3", stats("d", [(NAN, NAN), (5.0, NAN)])) == [True, False]


def test_negative_zero_equals_zero() -> None:
    assert kept("d = 0", stats("d", [(-0.0, -0.0), (0.0, 0.0)])) == [True, True]
    assert kept("d = -0.0D", stats("d", [(0.0, 0.0)])) == [True]
    assert kept("d < 0", stats("d", [(-0.0, 5.0)])) == [False]


def test_long_beside_double_is_compared_as_spark_does() -> None:
    file_stats = FileStats(1, pa.array([1]), pa.array([True]), *[{("q",): pa.array([2**53 + 1], pa.int64())}] * 2)
    predicate = Comparison("=", Column(("q",)), Literal(float(2**53), DOUBLE))
    assert keep_mask(predicate, file_stats, {}).to_pylist() == [True]


# ---------------------------------------------------------------- text

TEXTS = stats("s", [("abc", "abd"), ("b", "bzz\U0010ffff"), ("ab", "ab"), ("z", "z")], [0, 0, 0, 10])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("s = 'abcd'", [True, False, False, False]),
        ("s like 'ab%'", [True, False, True, False]),
        ("s like 'abd%'", [True, False, False, False]),
        ("s like 'abe%'", [False, False, False, False]),
        ("s like 'abcdef%'", [True, False, False, False]),
        ("s like 'a%c'", [True, False, True, False]),
        ("s like 'a_c'", [True, False, True, False]),
        ("s like '%c'", [True, True, True, False]),
        ("s like 'abc'", [True, False, False, False]),
        (r"s like 'a\\%'", [False, False, False, False]),
        (r"s like r'ab\%%'", [False, False, False, False]),
        ("s like 'b%'", [False, True, False, False]),
        ("s not like 'ab%'", [False, True, False, False]),
        ("s not like 'abc%'", [True, True, True, False]),
        ("s not like '%'", [False, False, False, False]),
        ("s not like 'ab_'", [True, True, True, False]),
        ("left(s, 1) = 'a'", [True, False, True, False]),
        ("upper(s) = 'Q'", [True, True, True, True]),
    ],
)
def test_texts(sql: str, expected: list[bool]) -> None:
    assert kept(sql, TEXTS) == expected


def test_texts_are_ordered_by_their_bytes() -> None:
    file_stats = stats("s", [("a", "\uffff"), ("\U00010000", "\U0010ffff")])
    assert kept("s = '\U0001f600'", file_stats) == [False, True]


# ---------------------------------------------------------------- times


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def instant(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


HOURS = stats(
    "ts",
    [
        (instant("2024-03-01 00:00:00"), instant("2024-03-01 23:59:59.999999")),
        (instant("2024-03-02 00:00:00"), instant("2024-03-02 23:59:59.999999")),
        (instant("2024-05-01 00:00:00"), instant("2024-05-02 00:00:00")),
    ],
)


@pytest.mark.parametrize(
    ("sql", "zone", "expected"),
    [
        ("cast(ts as date) = date'2024-03-02'", "UTC", [False, True, False]),
        ("cast(ts as date) = date'2024-03-02'", "+02:00", [True, True, False]),
        ("cast(ts as date) = date'2024-03-02'", "America/New_York", [True, True, False]),
        ("to_date(ts) < '2024-03-02'", "UTC", [True, False, False]),
        ("date_trunc('MONTH', ts) = '2024-05-01'", "UTC", [False, False, True]),
        ("year(ts) = 2023", "UTC", [False, False, False]),
        ("year(ts) = 2024", "UTC", [True, True, True]),
        ("month(ts) = 12", "UTC", [True, True, True]),
        ("ts > '2024-03-02 12:00:00'", "UTC", [False, True, True]),
        ("ts > date'2024-03-02'", "UTC", [False, True, True]),
        ("ts >= '2024-05-02'", "UTC", [False, False, True]),
    ],
)
def test_times_through_functions_that_keep_order(sql: str, zone: str, expected: list[bool]) -> None:
    is_kept = kept(sql, HOURS, zone=zone)
    if zone in ("+02:00", "America/New_York"):  # a wall clock is only known to about a day
        assert all(keep or not is_expected for keep, is_expected in zip(is_kept, expected, strict=True))
        assert is_kept[2] is False
        return
    assert is_kept == expected


@pytest.mark.parametrize("sql", ["date_trunc('{}', ts) is null", "date_trunc('{}', ts) <=> null"])
def test_function_with_null_results_keeps_files_without_nulls(sql: str) -> None:
    file_stats = stats("ts", [(instant("2024-03-01 00:00:00"), instant("2024-03-02 00:00:00"))], nulls=[0])
    assert kept(sql.format("month"), file_stats) == [False]
    assert kept(sql.format("nothing"), file_stats) == [True]


def test_dates_and_decimals() -> None:
    dates = stats("t", [(day("2024-01-01"), day("2024-01-31")), (day("2024-02-01"), day("2024-02-29"))])
    assert kept("t = '2024-02-10'", dates) == [False, True]
    assert kept("t < timestamp'2024-02-01 00:00:00'", dates) == [True, False]
    assert kept("t + 1 = date'2030-01-01'", dates) == [True, True]
    amounts = stats("m", [(Decimal("0.00"), Decimal("9.99")), (Decimal("10.00"), Decimal("19.99"))])
    assert kept("m = 9.99", amounts) == [True, False]
    assert kept("m = 9.995", amounts) == [False, False]
    assert kept("m > 9.99", amounts) == [False, True]
    assert kept("m <= 10", amounts) == [True, True]


def test_last_four_digit_day_does_not_exclude_later_values() -> None:
    first, before, last = day("2024-01-01"), day("9999-12-30"), day("9999-12-31")
    days = stats("t", [(first, last), (first, before), (last, last)])
    assert kept("t > date'9999-12-31'", days) == [True, False, True]
    assert kept("t < date'2025-01-01'", days) == [True, True, False]
    begin, second, milli = (instant(text) for text in ("2024-01-01", "9999-12-31 23:59:59", "9999-12-31 23:59:59.999"))
    times = stats("ts", [(begin, milli), (begin, second)])
    assert kept("ts > timestamp'9999-12-31 23:59:59.999999Z'", times) == [True, False]


def test_first_four_digit_day_does_not_exclude_earlier_values() -> None:
    file_stats = stats("t", [(day("0001-01-01"), day("2024-01-01")), (day("0001-01-02"), day("2024-01-01"))])
    assert kept("t < date'0001-01-01'", file_stats) == [True, False]


# ---------------------------------------------------------------- booleans


def test_boolean_column_is_a_condition() -> None:
    file_stats = stats("y", [(True, True), (False, False), (False, True), (None, None)], [0, 0, 0, None])
    assert kept("y", file_stats) == [True, False, True, True]
    assert kept("not y", file_stats) == [False, True, True, True]
    assert kept("y = false", file_stats) == [False, True, True, True]
    assert kept("y is true", file_stats) == [True, False, True, True]


# ---------------------------------------------------------------- partitions

PARTITIONS: dict[Path, pa.Array] = {
    ("p",): pa.array(["a", "b", None, ""]),
    ("q",): pa.array([1, 2, 0, None], pa.int32()),
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("p = 'a'", [True, False, False, False]),
        ("p <> 'a'", [False, True, False, True]),
        ("p is null", [False, False, True, False]),
        ("p <=> null", [False, False, True, False]),
        ("not (p <=> 'a')", [False, True, True, True]),
        ("p in ('b', '')", [False, True, False, True]),
        ("upper(p) = 'B'", [False, True, False, False]),
        ("p like '_'", [True, True, False, False]),
        ("p = 'a' or q = 2", [True, True, False, False]),
        ("q % 2 = 1", [True, False, False, False]),
        ("q <> 0 and 10 / q > 6", [True, False, False, False]),
        ("length(p) = q", [True, False, False, False]),
    ],
)
def test_partition_values_decide_exactly(sql: str, expected: list[bool]) -> None:
    assert kept(sql, unknown_stats(4), PARTITIONS) == expected


def test_failing_expression_on_partition_values_keeps_all_files() -> None:
    assert kept("10 / q > 6", unknown_stats(4), PARTITIONS) == [True, True, True, True]


def test_partition_and_data_columns_together() -> None:
    file_stats = stats("i", [(0, 9)] * 4, [0] * 4)
    assert kept("p = 'a' and i > 5", file_stats, PARTITIONS) == [True, False, False, False]
    assert kept("p = 'a' and i > 50", file_stats, PARTITIONS) == [False, False, False, False]
    assert kept("p = 'a' or i > 50", file_stats, PARTITIONS) == [True, False, False, False]
    assert kept("not (p = 'a' and i >= 0)", file_stats, PARTITIONS) == [False, True, False, True]
    assert kept("q = i - 10", file_stats, PARTITIONS) == [False, False, False, False]


def test_dictionary_and_chunked_partition_values_are_accepted() -> None:
    encoded = PARTITIONS["p",].dictionary_encode()
    assert kept("p = 'a'", unknown_stats(4), {("p",): encoded}) == [True, False, False, False]
    chunked = pa.chunked_array([PARTITIONS["p",].slice(0, 1), PARTITIONS["p",].slice(1)])
    assert kept("p = 'a'", unknown_stats(4), {("p",): chunked}) == [True, False, False, False]


def test_exactness_is_claimed_only_for_what_cannot_fail() -> None:
    columns = frozenset({("p",), ("q",)})

    def exact(sql: str) -> bool:
        return is_exact_on_partitions(parse_predicate(sql, SCHEMA), columns)

    assert exact("p = 'a' and (q > 1 or p is null) and not q in (1, 2)")
    assert not exact("p = 'a' and i = 1")
    assert not exact("cast(p as int) = 1")
    assert not exact("upper(p) = 'A'")
    assert not exact("true")


def test_failing_exact_predicate_raises_and_does_not_guess() -> None:
    predicate = Comparison("=", Column(("p",)), Literal(1, INTEGER))  # text compared with a number: cast row by row
    assert is_exact_on_partitions(predicate, frozenset({("p",)}))
    with pytest.raises(ExpressionError):
        keep_mask(predicate, unknown_stats(4), PARTITIONS)


# ---------------------------------------------------------------- what to read


def test_columns_with_stats_are_those_that_can_rule_out_files() -> None:
    def columns(sql: str) -> set[str]:
        return {".".join(path) for path in columns_with_stats(parse_predicate(sql, SCHEMA))}

    assert columns("i = 1 and (n.x > 2 or s like 'a%') and d is null") == {"i", "n.x", "s", "d"}
    assert columns("cast(ts as date) = '2024-01-01' and year(t) = 2024") == {"ts", "t"}
    assert columns("upper(s) = 'A' and abs(i) = 1") == set()
    assert columns("i + 1 = 2") == {"i"}
    assert columns("coalesce(i, 0) = 1 or y") == {"y"}


def test_column_of_unknown_type_is_skipped_only_by_null_counts() -> None:
    file_stats = FileStats(2, pa.array([3, 3]), pa.array([True, True]), null_count={("raw",): pa.array([3, 0])})
    raw = Column(("raw",))
    assert keep_mask(Comparison("=", raw, Literal(b"x", STRING)), file_stats, {}).to_pylist() == [False, True]
    assert keep_mask(IsNull(raw), file_stats, {}).to_pylist() == [True, False]
    assert keep_mask(Not(IsNull(raw)), file_stats, {}).to_pylist() == [False, True]
    assert keep_mask(Call("frobnicate", (raw,)), file_stats, {}).to_pylist() == [True, True]
    assert keep_mask(Comparison("=", Literal(1, LONG), raw), file_stats, {}).to_pylist() == [False, True]
