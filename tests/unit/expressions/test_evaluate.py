"""Evaluation over batches: three-valued logic, Spark's order of values, and errors only for the rows that are evaluated."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_py.errors import ExpressionError, SchemaMismatchError
from delta_py.expressions.evaluate import can_evaluate, evaluate
from delta_py.expressions.parse import parse_expression, parse_predicate
from delta_py.expressions.tree import Call, Cast, Column, Comparison, In, Literal, StringMatch
from delta_py.types.schema import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DecimalType, from_arrow_schema

NAN = float("nan")


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def run(sql: str, rows: pa.RecordBatch, zone: str = "UTC") -> list[Any]:
    expression = parse_expression(sql, from_arrow_schema(rows.schema), session_timezone=zone)
    values: list[Any] = evaluate(expression, rows).to_pylist()
    return values


def fails(sql: str, rows: pa.RecordBatch) -> str:
    with pytest.raises(ExpressionError) as caught:
        run(sql, rows)
    return caught.value.error_class


NUMBERS = batch(
    i=pa.array([1, 0, -7, None], pa.int32()), l=pa.array([2, 0, 3, None], pa.int64()), d=pa.array([1.5, -0.0, NAN, None])
)
FLAGS = batch(a=pa.array([True, True, True, False, False, False, None, None, None]), b=pa.array([True, False, None] * 3))

# ---------------------------------------------------------------- logic


def test_and_or_not_are_three_valued() -> None:
    assert run("a and b", FLAGS) == [True, False, None, False, False, False, None, False, None]
    assert run("a or b", FLAGS) == [True, True, True, True, False, None, True, None, None]
    assert run("not a", FLAGS) == [False] * 3 + [True] * 3 + [None] * 3


def test_null_safe_equality_is_never_null() -> None:
    assert run("a <=> b", FLAGS) == [True, False, False, False, True, False, False, False, True]


def test_nan_equals_nan_and_is_above_everything() -> None:
    rows = batch(x=pa.array([NAN, NAN, 1.0, float("inf"), NAN]), y=pa.array([NAN, 1.0, NAN, NAN, None]))
    assert run("x = y", rows) == [True, False, False, False, None]
    assert run("x < y", rows) == [False, False, True, True, None]
    assert run("x >= y", rows) == [True, True, False, False, None]
    assert run("x > 1", rows) == [True, True, False, True, True]
    assert run("x in (double('NaN'))", rows) == [True, True, False, False, True]
    assert run("greatest(x, y)", rows)[1:3] != [1.0, 1.0]


def test_negative_zero_equals_zero() -> None:
    rows = batch(x=pa.array([0.0, -0.0]))
    assert run("x = 0.0D", rows) == [True, True]
    assert run("x < 0", rows) == [False, False]
    assert run("x in (0.0D, 7)", rows) == [True, True]
    assert run("x in (-0.0D)", rows) == [True, True]


def test_text_is_ordered_by_bytes() -> None:
    rows = batch(s=pa.array(["\uffff", "\U00010000", "Z", "a"]))
    assert run("s < 'a'", rows) == [False, False, True, False]
    assert run("s > '\uffff'", rows) == [False, True, False, False]


def test_in_with_null_is_unknown_where_nothing_matches() -> None:
    assert run("i in (1, null)", NUMBERS) == [True, None, None, None]
    assert run("i not in (1, null)", NUMBERS) == [False, None, None, None]
    assert run("i in (1, 5)", NUMBERS) == [True, False, False, None]


# ---------------------------------------------------------------- only the rows that ask


def test_division_is_done_only_where_the_condition_lets_it() -> None:
    assert run("l <> 0 and 6 div l > 2", NUMBERS) == [True, False, False, None]
    assert run("l = 0 or 6 div l > 2", NUMBERS) == [True, True, False, None]
    assert run("if(l = 0, -1, 6 div l)", NUMBERS) == [3, -1, 2, None]
    assert run("case when l = 0 then -1 when l is null then -2 else 6 div l end", NUMBERS) == [3, -1, 2, -2]
    assert run("coalesce(if(l = 0, 0, null), 6 div l)", NUMBERS) == [3, 0, 2, None]
    assert fails("6 div l > 2", NUMBERS) == "DIVIDE_BY_ZERO"
    assert fails("6 div l > 2 and l <> 0", NUMBERS) == "DIVIDE_BY_ZERO"


def test_operand_beside_a_null_is_not_evaluated() -> None:
    rows = batch(n=pa.array([None, 1], pa.int64()), z=pa.array([0, 1], pa.int64()))
    assert run("n = 1 div z", rows) == [None, True]
    assert run("n + (1 div z)", rows) == [None, 2]
    assert run("(1 div z) / n", rows) == [None, 1.0]


def test_failing_constant_is_no_error_for_rows_that_skip_it() -> None:
    assert run("if(i is null, 1, cast('x' as int))", NUMBERS.slice(3)) == [1]
    assert fails("if(i is null, 1, cast('x' as int))", NUMBERS) == "CAST_INVALID_INPUT"
    assert run("coalesce(i, cast('x' as int))", NUMBERS.slice(0, 3)) == [1, 0, -7]


# ---------------------------------------------------------------- ANSI errors


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("cast(i as tinyint) * 100Y", "BINARY_ARITHMETIC_OVERFLOW"),
        ("i + 2147483647", "ARITHMETIC_OVERFLOW"),
        ("l * 9223372036854775807", "ARITHMETIC_OVERFLOW"),
        ("d / 0", "DIVIDE_BY_ZERO"),
        ("i % 0", "REMAINDER_BY_ZERO"),
        ("cast(d as int)", "CAST_OVERFLOW"),
        ("cast(i + 300 as tinyint)", "CAST_OVERFLOW"),
        ("cast(i + 300 as decimal(2, 0))", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("cast(concat('x', i) as int)", "CAST_INVALID_INPUT"),
        ("cast(concat('2024-02-3', i) as date)", "CAST_INVALID_INPUT"),
        ("round(2147483647 - i + i, -1)", "ARITHMETIC_OVERFLOW"),
    ],
)
def test_what_ansi_sql_refuses_raises_its_condition(sql: str, condition: str) -> None:
    assert fails(sql, NUMBERS) == condition


def test_values_that_are_refused_are_named() -> None:
    rows = batch(s=pa.array(["1", None, "twelve"]))
    with pytest.raises(ExpressionError, match="'twelve' cannot be read as int"):
        run("cast(s as int) = 1", rows)


# ---------------------------------------------------------------- functions


def test_decimals_keep_their_digits() -> None:
    rows = batch(m=pa.array([Decimal("1.25"), Decimal("-2.50"), None], pa.decimal128(10, 2)))
    assert run("m * 1.1", rows) == [Decimal("1.375"), Decimal("-2.750"), None]
    assert run("m / 3", rows) == [Decimal("0.416667"), Decimal("-0.833333"), None]
    assert run("m % 1", rows) == [Decimal("0.25"), Decimal("-0.50"), None]
    assert run("round(m, 1)", rows) == [Decimal("1.3"), Decimal("-2.5"), None]
    assert run("round(m)", rows) == [Decimal("1"), Decimal("-3"), None]
    assert run("floor(m)", rows) == [Decimal("1"), Decimal("-3"), None]
    assert run("cast(m as string)", rows) == ["1.25", "-2.50", None]
    assert run("m = 1.25", rows) == [True, False, None]


def test_wide_decimals_are_exact_where_a_double_is_not() -> None:
    rows = batch(m=pa.array([Decimal("12345678901234567890.123456789")], pa.decimal128(38, 9)))
    assert run("m + 0.000000001", rows) == [Decimal("12345678901234567890.123456790")]
    assert run("m > 12345678901234567890.123456788", rows) == [True]
    assert run("cast(m as double)", rows) == [12345678901234567890.123456789]


def test_round_of_doubles_goes_by_their_shortest_text() -> None:
    rows = batch(d=pa.array([2.675, -2.5, 1e300, NAN, 0.285, 1.005, -0.0004]))
    assert run("round(d, 2)", rows)[:3] == [2.68, -2.5, 1e300]
    assert run("round(d, 2)", rows)[4:] == [0.29, 1.01, 0.0]
    assert run("round(d)", rows)[1] == -3.0


def test_case_of_letters_follows_unicode() -> None:
    rows = batch(s=pa.array(["Straße", "ΑΣ", "İ", "ŉ", "plain", None]))
    assert run("upper(s)", rows) == ["STRASSE", "ΑΣ", "İ", "\u02bcN", "PLAIN", None]
    assert run("lower(s)", rows) == ["straße", "ας", "i̇", "ŉ", "plain", None]


def test_substring_counts_characters_from_either_end() -> None:
    rows = batch(s=pa.array(["a😀cd", "", None]))
    assert run("substring(s, 2, 2)", rows) == ["😀c", "", None]
    assert run("substring(s, -3, 2)", rows) == ["😀c", "", None]
    assert run("substring(s, -9, 7)", rows) == ["a😀", "", None]
    assert run("substring(s, 0, 1)", rows) == ["a", "", None]
    assert run("right(s, 1)", rows) == ["d", "", None]


def test_like_takes_new_lines_and_escapes() -> None:
    rows = batch(s=pa.array(["a\nb", "a%b", "a😀b", None]))
    assert run("s like 'a_b'", rows) == [True, True, True, None]
    assert run(r"s like r'a\%b'", rows) == [False, True, False, None]
    assert run("s not like '%b'", rows) == [False, False, False, None]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        (r"a\\b%", [r"a\b", r"a\bc"]),
        (r"%a\\b", [r"a\b", r"xa\b"]),
        (r"%a\\b%", [r"a\b", r"a\bc", r"xa\b"]),
        (r"a\\%", [r"a\b", r"a\bc", r"a\\b"]),
        (r"%\\", ["x\\"]),
        (r"%\\.%", [r"\.\n"]),
        (r"a\\_", [r"a\b"]),
        (r"a\\\\b%", [r"a\\b"]),
    ],
)
def test_like_reads_an_escaped_backslash_as_one(pattern: str, matching: list[str]) -> None:
    texts = [r"a\b", r"a\bc", r"xa\b", r"a\\b", "x\\", r"\.\n", r"\a\n", "ab", "a\nb", None]
    rows = batch(s=pa.array(texts))
    expected = [None if text is None else text in matching for text in texts]
    assert run(f"s like r'{pattern}'", rows) == expected
    assert run(f"s ilike r'{pattern.upper()}'", rows) == expected


def test_clock_and_calendar_are_the_sessions() -> None:
    rows = batch(
        ts=pa.array([datetime.datetime(2024, 3, 31, 0, 30), datetime.datetime(2024, 3, 31, 1, 30)], pa.timestamp("us", tz="UTC"))
    )
    assert run("hour(ts)", rows) == [0, 1]
    assert run("hour(ts)", rows, "Europe/Berlin") == [1, 3]  # clocks went forward at 01:00 UTC
    assert run("cast(ts as date)", rows, "America/New_York") == [datetime.date(2024, 3, 30)] * 2
    assert run("cast(ts as string)", rows, "+05:30") == ["2024-03-31 06:00:00", "2024-03-31 07:00:00"]
    assert run("date_trunc('DAY', ts) = '2024-03-31'", rows, "Europe/Berlin") == [True, True]


def test_wall_clock_in_a_gap_moves_on_and_overlap_takes_earlier() -> None:
    rows = batch(s=pa.array(["2024-03-31 02:30:00", "2024-10-27 02:30:00"]))
    expected = [
        datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.UTC),
        datetime.datetime(2024, 10, 27, 0, 30, tzinfo=datetime.UTC),
    ]
    assert run("cast(s as timestamp)", rows, "Europe/Berlin") == expected


def test_nested_column_is_null_under_a_null_struct() -> None:
    rows = batch(n=pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())])))
    assert run("n.x", rows) == [1, None, None]
    assert run("n.x is null", rows) == [False, True, True]
    assert run("n is null", rows) == [False, True, False]


# ---------------------------------------------------------------- the interface


def test_table_gives_a_chunked_array_and_keeps_its_chunks() -> None:
    table = pa.Table.from_batches([NUMBERS, NUMBERS])
    mask = evaluate(parse_predicate("i > 0", from_arrow_schema(table.schema)), table)
    assert isinstance(mask, pa.ChunkedArray)
    assert mask.to_pylist() == [True, False, False, None] * 2


def test_batch_without_rows_or_columns_is_evaluated() -> None:
    assert run("i + 1 > 0", NUMBERS.slice(0, 0)) == []
    nothing = pa.RecordBatch.from_arrays([pa.nulls(3)], names=["x"]).select([])
    assert evaluate(Literal(True, BOOLEAN), nothing).to_pylist() == [True] * 3


def test_sliced_batches_give_the_values_of_their_rows() -> None:
    for sql in [
        "l + 1",
        "cast(d as decimal(10, 2))",
        "i % 2",
        "cast(cast(i as decimal(5, 1)) as double)",
        "cast(cast(i as decimal(5, 1)) as string)",
    ]:
        full_batch = batch(
            i=pa.array([9, 1, -7, None, 3], pa.int32()), l=pa.array([9, 2, 0, 3, None]), d=pa.array([9.0, 1.5, None, 2.25, 0.0])
        )
        assert run(sql, full_batch.slice(1, 3)) == run(sql, full_batch)[1:4]


def test_trees_of_mixed_types_are_compared_as_in_spark() -> None:
    rows = batch(i=pa.array([1, 2], pa.int32()), s=pa.array(["1", "x"]))
    assert evaluate(Comparison("=", Column(("i",)), Literal(1, LONG)), rows).to_pylist() == [True, False]
    assert evaluate(Comparison("<", Column(("i",)), Literal(Decimal("1.5"), DecimalType(2, 1))), rows).to_pylist() == [
        True,
        False,
    ]
    assert evaluate(In(Column(("i",)), (Literal(2.0, DOUBLE), Literal(None, INTEGER))), rows).to_pylist() == [None, True]
    assert evaluate(StringMatch("startswith", Column(("i",)), "2"), rows).to_pylist() == [False, True]
    assert evaluate(Comparison("=", Column(("I",)), Column(("i",))), rows).to_pylist() == [True, True]
    with pytest.raises(ExpressionError, match="'x' cannot be read"):
        evaluate(Comparison("=", Column(("s",)), Literal(1, LONG)), rows)


def test_unsupported_expression_is_detected_and_named() -> None:
    schema = from_arrow_schema(NUMBERS.schema)
    unknown = Call("frobnicate", (Column(("i",)),))
    clock = Call("current_date", ())
    assert not can_evaluate(unknown, schema)
    assert not can_evaluate(clock, schema)
    assert not can_evaluate(Column(("nothere",)), schema)
    assert not can_evaluate(Cast(Column(("d",)), STRING), schema)
    assert not can_evaluate(Comparison("=", Column(("i",)), Literal(datetime.date(2024, 1, 1), DATE)), schema)
    assert can_evaluate(Comparison("=", Column(("i",)), Literal("5", STRING)), schema)
    with pytest.raises(ExpressionError, match="frobnicate"):
        evaluate(unknown, NUMBERS)
    with pytest.raises(ExpressionError, match="current_date"):
        evaluate(clock, NUMBERS)
    with pytest.raises(SchemaMismatchError, match="nothere"):
        evaluate(Column(("nothere",)), NUMBERS)


def test_literal_of_another_type_than_it_says_is_refused() -> None:
    with pytest.raises(ExpressionError, match="is not a value of int"):
        evaluate(Comparison("=", Column(("i",)), Literal("x", INTEGER)), NUMBERS)


def test_one_comparison_costs_little_more_than_its_kernels() -> None:
    rows = batch(i=pa.array(range(65_536), pa.int32()))
    predicate = parse_predicate("i > 60000L", from_arrow_schema(rows.schema))

    def fastest(action: Any) -> float:
        spans = []
        for _ in range(50):
            start = time.thread_time()
            action()
            spans.append(time.thread_time() - start)
        return min(spans)

    bare = fastest(lambda: rows.filter(pc.greater(rows["i"], pa.scalar(60_000, pa.int32()))))
    assert fastest(lambda: rows.filter(evaluate(predicate, rows))) < bare + 0.001
