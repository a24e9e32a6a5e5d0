"""Random rows, random statistics as writers make them, random predicates: no file with a matching row is skipped, and evaluation
agrees with plain Python row by row.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluate import can_evaluate, evaluate
from delta_py.expressions.parse import parse_expression, to_sql
from delta_py.expressions.resolve import resolve
from delta_py.expressions.skipping_conditions import is_exact_on_partitions, keep_mask
from delta_py.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StringMatch,
)
from delta_py.statistics.stats import FileStats
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
    DataType,
    DecimalType,
    Path,
    StructField,
    StructType,
    leaves,
    to_arrow_schema,
    to_arrow_type,
)
from tests.support.oracles.row_oracle import Refused, value_of
from tests.support.runs.sampling import examples

SMALL_DECIMAL, LARGE_DECIMAL = DecimalType(5, 2), DecimalType(38, 10)
SCHEMA = StructType(
    (
        StructField("b", BYTE),
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("m", SMALL_DECIMAL),
        StructField("big", LARGE_DECIMAL),
        StructField("s", STRING),
        StructField("t", DATE),
        StructField("ts", TIMESTAMP),
        StructField("nt", TIMESTAMP_NTZ),
        StructField("y", BOOLEAN),
        StructField("raw", BINARY),
        StructField("n", StructType((StructField("x", INTEGER), StructField("deep", StructType((StructField("s", STRING),)))))),
        StructField("p", STRING),
        StructField("q", INTEGER),
        StructField("g", DOUBLE),
    )
)
PARTITIONS: tuple[Path, ...] = (("p",), ("q",), ("g",))
TYPES: dict[Path, DataType] = {path: field.data_type for path, field in leaves(SCHEMA)}
CUT = 3  # the number of characters of a text in statistics
NAN = float("nan")

DAYS = st.one_of(
    st.sampled_from([datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
)
WALL_CLOCKS = st.one_of(
    st.sampled_from(
        [
            datetime.datetime(1970, 1, 1),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 456_789),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 456_000),
        ]
    ),
    st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "abc", "abcd", "abce", "abc\U0010ffff", "\U0010ffff" * 4, "é", "a%", "a_c", "\\", "zzz"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, NAN, math.inf, -math.inf, 1.5, -1.5, 9007199254740992.0, 0.1]),
    st.floats(allow_subnormal=False),
)
SINGLES = st.one_of(
    st.sampled_from([0.0, -0.0, NAN, math.inf, -math.inf, 1.5, 16777216.0, float(pa.scalar(0.1, pa.float32()).as_py())]),
    st.floats(width=32, allow_subnormal=False),
)
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    BYTE: st.one_of(st.integers(-3, 3), st.integers(-128, 127)),
    INTEGER: st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1)),
    LONG: st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63)])),
    FLOAT: SINGLES,
    DOUBLE: DOUBLES,
    SMALL_DECIMAL: st.one_of(
        st.sampled_from([Decimal("0.00"), Decimal("1.50"), Decimal("-1.50")]), st.decimals("-999.99", "999.99", places=2)
    ),
    LARGE_DECIMAL: st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-10)),
    STRING: TEXTS,
    DATE: DAYS,
    TIMESTAMP: WALL_CLOCKS.map(lambda t: t.replace(tzinfo=datetime.UTC)),
    TIMESTAMP_NTZ: WALL_CLOCKS,
    BOOLEAN: st.booleans(),
    BINARY: st.one_of(st.sampled_from([b"", b"a", b"\xff", b"abcd"]), st.binary(max_size=4)),
}
NUMBERS = (BYTE, INTEGER, LONG, FLOAT, DOUBLE, SMALL_DECIMAL, LARGE_DECIMAL)
EXACT_NUMBERS = (BYTE, INTEGER, LONG, SMALL_DECIMAL, LARGE_DECIMAL)
COMPARABLE: dict[DataType, tuple[DataType, ...]] = {
    **dict.fromkeys(EXACT_NUMBERS, EXACT_NUMBERS),
    **dict.fromkeys((FLOAT, DOUBLE), (BYTE, INTEGER, LONG, FLOAT, DOUBLE)),
    DATE: (DATE, TIMESTAMP),
    TIMESTAMP: (DATE, TIMESTAMP),
}


# ---------------------------------------------------------------- rows and files


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def struct_values(fields: Sequence[StructField]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            f.name: nullable(struct_values(f.data_type.fields) if isinstance(f.data_type, StructType) else VALUES[f.data_type])
            for f in fields
        }
    )


@st.composite
def files_of_rows(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Files; the rows of one file share their partition values, and often all their values are close."""
    count = draw(st.integers(1, 3))
    all_rows = []
    for _ in range(count):
        rows = draw(st.lists(struct_values(SCHEMA.fields), min_size=0, max_size=4))
        if rows and draw(st.booleans()):
            rows = [dict(rows[0]) for _ in rows]  # all equal: the values that NOT and <> exclude
        partition = {path[0]: draw(nullable(VALUES[TYPES[path]])) for path in PARTITIONS}
        all_rows.append([{**row, **partition} for row in rows])
    return all_rows


def to_batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=to_arrow_schema(SCHEMA))


def at(row: Mapping[str, Any], path: Path) -> Any:
    return value_of(Column(path), row)


# ---------------------------------------------------------------- statistics as writers make them


def lower_bound(value: Any, data_type: DataType) -> Any:
    if data_type == STRING:
        return value[:CUT]
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return to_millisecond(value) - datetime.timedelta(milliseconds=1)
    return value


def upper_bound(value: Any, data_type: DataType) -> Any:
    if data_type == STRING:
        return value if len(value) <= CUT else value[:CUT] + "\U0010ffff" * 4
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return to_millisecond(value) + datetime.timedelta(milliseconds=1)
    return value


def to_millisecond(value: datetime.datetime) -> datetime.datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def leaf_bounds(rows: Sequence[Mapping[str, Any]], path: Path) -> tuple[Any, Any]:
    """The bounds from a writer that leaves NaN out; (None, None) without a value."""
    data_type = TYPES[path]
    values = [value for row in rows if (value := at(row, path)) is not None]
    values = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    if not values or data_type == BINARY:
        return None, None
    ordered = sorted(values, key=lambda value: value.encode() if isinstance(value, str) else value)
    return lower_bound(ordered[0], data_type), upper_bound(ordered[-1], data_type)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[dict[str, Any]]], FileStats]:
    """Files with their remaining rows, and statistics that may include deleted rows, or be absent."""
    physical = draw(files_of_rows())
    chance = draw(st.randoms(use_true_random=False))
    deleted = [
        {place for place in range(len(rows)) if chance.random() < 0.3} if chance.random() < 0.4 else set() for rows in physical
    ]
    live = [
        [row for place, row in enumerate(rows) if place not in positions]
        for rows, positions in zip(physical, deleted, strict=True)
    ]
    return live, statistics(physical, [not positions for positions in deleted], chance)


def statistics(physical: Sequence[Sequence[Mapping[str, Any]]], tight: Sequence[bool], chance: random.Random) -> FileStats:
    """Over all rows, deleted or not; one value in ten, and one column in ten, is unknown."""
    minimum, maximum, null_count = {}, {}, {}
    for path in (path for path in TYPES if path not in PARTITIONS):
        bounds = [leaf_bounds(rows, path) if chance.random() < 0.9 else (None, None) for rows in physical]
        nulls = [sum(at(row, path) is None for row in rows) if chance.random() < 0.9 else None for rows in physical]
        minimum[path] = pa.array([low for low, _ in bounds], to_arrow_type(TYPES[path]))
        maximum[path] = pa.array([high for _, high in bounds], to_arrow_type(TYPES[path]))
        null_count[path] = pa.array(nulls, pa.int64())
        for array in (minimum, maximum, null_count):
            if chance.random() < 0.1:
                del array[path]
    counts = [len(rows) if chance.random() < 0.9 else None for rows in physical]
    return FileStats(len(physical), pa.array(counts, pa.int64()), pa.array(tight, pa.bool_()), minimum, maximum, null_count)


def partition_values(files: Sequence[Sequence[Mapping[str, Any]]]) -> dict[Path, pa.Array]:
    return {
        path: pa.array([rows[0][path[0]] if rows else None for rows in files], to_arrow_type(TYPES[path])) for path in PARTITIONS
    }


# ---------------------------------------------------------------- predicates


def literals(data_type: DataType) -> st.SearchStrategy[Literal]:
    return nullable(VALUES[data_type]).map(lambda value: Literal(value, data_type))


COLUMNS = st.sampled_from(sorted(TYPES)).map(Column)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    column = draw(COLUMNS)
    column_type = TYPES[column.path]
    op = draw(st.sampled_from(["=", "<=>", "<", "<=", ">", ">="]))
    other_type = draw(st.sampled_from(COMPARABLE.get(column_type, (column_type,))))
    other_columns = [Column(path) for path, data_type in TYPES.items() if data_type == other_type]
    other: Expression = draw(
        st.one_of(literals(other_type), st.sampled_from(other_columns) if other_columns else literals(other_type))
    )
    sides = (column, other) if draw(st.booleans()) else (other, column)
    return Comparison(op, *sides)


@st.composite
def memberships(draw: st.DrawFn) -> Expression:
    column = draw(COLUMNS)
    column_type = TYPES[column.path]
    return In(column, tuple(draw(st.lists(literals(column_type), min_size=1, max_size=12))))


@st.composite
def text_matches(draw: st.DrawFn) -> Expression:
    column = draw(st.sampled_from([path for path, data_type in TYPES.items() if data_type == STRING]).map(Column))
    kind = draw(st.sampled_from(["startswith", "endswith", "contains", "like"]))
    text = draw(TEXTS)
    if kind == "like":
        text = "".join("\\" + c if c in "%_\\" else c for c in text) + draw(st.sampled_from(["", "%", "_", "%a", "_%"]))
    return StringMatch(kind, column, text)


@st.composite
def calls(draw: st.DrawFn) -> Expression:
    """Comparisons of casts and functions, including those that keep order."""
    op = draw(st.sampled_from(["=", "<=>", "<", "<=", ">", ">="]))
    number = draw(literals(LONG))
    when = Column((draw(st.sampled_from(["t", "ts"])),))
    date_column = Column(draw(st.sampled_from([("b",), ("i",), ("n", "x"), ("q",)])))
    text = Column(draw(st.sampled_from([("s",), ("n", "deep", "s"), ("p",)])))
    long = Cast(date_column, LONG)
    small = Literal(draw(st.integers(-3, 3)), LONG)
    return draw(
        st.sampled_from(
            [
                Comparison(op, Cast(when, DATE), draw(literals(DATE))),
                Comparison(op, Call("year", (when,)), Literal(draw(st.sampled_from([1969, 1970, 2024])), INTEGER)),
                Comparison(op, Call("to_date", (when,)), draw(literals(DATE))),
                Comparison(op, Call("month", (when,)), Literal(draw(st.integers(1, 12)), INTEGER)),
                Comparison(op, Call("+", (long, small)), number),
                Comparison(op, Call("-", (long, small)), number),
                Comparison(op, Call("-", (small, long)), number),
                Comparison(op, Call("-", (long,)), number),
                Comparison(op, Call("*", (long, small)), number),
                Comparison(op, Call("%", (long, small)), number),
                Comparison(op, Call("abs", (long,)), number),
                Comparison(op, Call("coalesce", (long, small)), number),
                Comparison(op, Cast(Column(("d",)), LONG), number),
                Comparison(op, Cast(Column(("l",)), INTEGER), Literal(1, INTEGER)),
                Comparison(op, Cast(date_column, STRING), Literal(draw(st.sampled_from(["0", "-1", "12"])), STRING)),
                Comparison(op, Call("length", (text,)), Literal(draw(st.integers(0, 4)), INTEGER)),
                Comparison(op, Call("lower", (text,)), draw(literals(STRING))),
                Comparison(
                    op,
                    Call("substring", (text, Literal(draw(st.integers(-3, 3)), INTEGER), Literal(2, INTEGER))),
                    draw(literals(STRING)),
                ),
                Comparison(op, Call("concat", (text, Literal("x", STRING))), draw(literals(STRING))),
                Comparison(op, Call("greatest", (Column(("d",)), Column(("g",)))), draw(literals(DOUBLE))),
                Comparison(op, Call("if", (Comparison("=", long, small), small, Call("div", (number, long)))), number),
                Call("isnan", (Column(("d",)),)),
                Call("case", (IsNull(long), Literal(True, BOOLEAN), Comparison("<", long, small), Column(("y",)))),
            ]
        )
    )


PARTITION_COLUMNS = st.sampled_from(PARTITIONS).map(Column)


@st.composite
def partition_tests(draw: st.DrawFn) -> Expression:
    column = draw(PARTITION_COLUMNS)
    literal = literals(TYPES[column.path])
    return draw(
        st.one_of(
            st.builds(Comparison, st.sampled_from(["=", "<=>", "<", "<=", ">", ">="]), st.just(column), literal),
            st.builds(In, st.just(column), st.lists(literal, min_size=1, max_size=5).map(tuple)),
            st.just(IsNull(column)),
            st.builds(StringMatch, st.just("startswith"), st.just(Column(("p",))), TEXTS),
        )
    )


def combined(leaves: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
        ),
        max_leaves=4,
    )


LEAVES = st.one_of(
    comparisons(),
    comparisons(),
    memberships(),
    text_matches(),
    calls(),
    COLUMNS.map(IsNull),
    st.just(Column(("y",))),
    literals(BOOLEAN),
)
PREDICATES = combined(LEAVES)
PARTITION_PREDICATES = combined(partition_tests())


def matches_some_row(predicate: Expression, rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(value_of(predicate, row) is True for row in rows)


# ---------------------------------------------------------------- tests


@settings(max_examples=examples(150))
@given(tables(), PREDICATES)
def test_a_file_with_a_matching_row_is_kept(table: tuple[list[list[dict[str, Any]]], FileStats], predicate: Expression) -> None:
    files, stats = table
    try:
        expected = [matches_some_row(predicate, rows) for rows in files]
    except Refused:
        assume(False)
    is_kept = keep_mask(predicate, stats, partition_values(files))
    assert is_kept.null_count == 0
    assert not [place for place, keep in enumerate(is_kept.to_pylist()) if expected[place] and not keep]


@settings(max_examples=40)
@given(files_of_rows(), PARTITION_PREDICATES)
def test_exact_partition_predicate_keeps_exactly_matching_files(
    files: list[list[dict[str, Any]]], predicate: Expression
) -> None:
    assert is_exact_on_partitions(predicate, frozenset(PARTITIONS))
    files = [rows for rows in files if rows]
    nothing = FileStats(len(files), pa.nulls(len(files), pa.int64()), pa.repeat(pa.scalar(True), len(files)))
    is_kept = keep_mask(predicate, nothing, partition_values(files)).to_pylist()
    assert is_kept == [value_of(predicate, rows[0]) is True for rows in files]


@settings(max_examples=examples(150))
@given(st.lists(struct_values(SCHEMA.fields), max_size=5), PREDICATES)
@example([], Literal(True, BOOLEAN))
def test_evaluation_agrees_with_a_row_at_a_time(rows: list[dict[str, Any]], predicate: Expression) -> None:
    batch = to_batch(rows)
    assert can_evaluate(predicate, SCHEMA)
    try:
        expected = [value_of(predicate, row) for row in rows]
    except Refused:
        with pytest.raises(ExpressionError):
            evaluate(predicate, batch)
        return
    actual = evaluate(predicate, batch)
    assert actual.type == pa.bool_()
    assert actual.to_pylist() == expected
    assert evaluate(predicate, pa.Table.from_batches([batch, batch])).to_pylist() == expected * 2


@settings(max_examples=examples(50))
@given(st.lists(struct_values(SCHEMA.fields), max_size=3), PREDICATES)
def test_sql_text_of_a_resolved_tree_is_parsed_to_the_same_tree(rows: list[dict[str, Any]], predicate: Expression) -> None:
    resolved = resolve(predicate, SCHEMA).expression
    parsed = parse_expression(to_sql(resolved), SCHEMA)
    assert to_sql(parsed) == to_sql(resolved)
    try:
        expected = evaluate(resolved, to_batch(rows))
    except ExpressionError:
        return
    assert pc.equal(evaluate(parsed, to_batch(rows)), expected).to_pylist() == [
        None if v is None else True for v in expected.to_pylist()
    ]
