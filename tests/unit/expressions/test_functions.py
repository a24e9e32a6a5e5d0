"""Functions with rules that are easy to get wrong; tests/spark compares all of them with Spark on random rows."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError
from delta_py.expressions.clock import is_deterministic, replace_clock_functions
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.functions.regex import to_re2
from delta_py.expressions.parse import parse_expression, to_sql, type_of
from delta_py.types.schema import LONG, STRING, TIMESTAMP, from_arrow_schema
from delta_py.types.zones import INSTANT, WALL_CLOCK, to_instants, to_wall_clock

BATCH = pa.record_batch(
    {
        "i": pa.array([2**31 - 1, -(2**31), 5, None, 0], pa.int32()),
        "s": pa.array(["12", "x", None, "2147483648", " 7 "]),
        "d": pa.array([1.5, float("nan"), float("inf"), None, -0.0]),
        "arr": pa.array([[1, None], [], None, [7, 8, 9], [None]], pa.list_(pa.int64())),
        "m": pa.array([[("a", 1), ("b", None)], [], None, [("b", 2)], [("a", 3)]], pa.map_(pa.string(), pa.int64())),
        "st": pa.array([{"x": 1}, {"x": None}, None, {"x": 4}, {"x": 5}], pa.struct([("x", pa.int64())])),
    }
)
SCHEMA = from_arrow_schema(BATCH.schema)
NOW = datetime.datetime(2024, 3, 1, 3, 30, tzinfo=datetime.UTC)


def values(sql: str, batch: pa.RecordBatch = BATCH) -> list[Any]:
    results: list[Any] = evaluate(parse_expression(sql, SCHEMA), batch).to_pylist()
    return results


# ---------------------------------------------------------------- elements


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("size(arr)", [2, 0, None, 3, 1]),
        ("cardinality(m)", [2, 0, None, 1, 1]),
        ("m['a']", [1, None, None, None, 3]),
        ("element_at(m, 'b')", [None, None, None, 2, None]),
        ("get(arr, 0)", [1, None, None, 7, None]),
        ("get(arr, -1)", [None] * 5),
        ("try_element_at(arr, -1)", [None, None, None, 9, None]),
        ("array_contains(arr, 1)", [True, False, None, False, None]),
        ("array_contains(arr, 8)", [None, False, None, True, None]),
        ("map_keys(m)", [["a", "b"], [], None, ["b"], ["a"]]),
        ("map_values(m)", [[1, None], [], None, [2], [3]]),
        ("st.x", [1, None, None, 4, 5]),
        ("st['x'] + 1", [2, None, None, 5, 6]),
        ("named_struct('k', i).k = i", [True, True, True, None, True]),
        ("array(i, 1)[1]", [1] * 5),
        ("map('k', i, 'j', 1)['k'] = i", [True, True, True, None, True]),
        ("map(1.0D, s)[1.0D]", ["12", "x", None, "2147483648", " 7 "]),
        ("cast(arr as array<string>)", [["1", None], [], None, ["7", "8", "9"], [None]]),
        ("cast(m as map<string, double>)['a']", [1.0, None, None, None, 3.0]),
        ("cast(st as struct<y: int>).y", [1, None, None, 4, 5]),
        ("cast(array(st) as array<struct<x: string>>)[0].x", ["1", None, None, "4", "5"]),
    ],
)
def test_elements_of_nested_values_are_those_of_their_row(sql: str, expected: list[Any]) -> None:
    assert values(sql) == expected
    assert values(sql, BATCH.slice(1, 3)) == expected[1:4]
    assert parse_expression(to_sql(parse_expression(sql, SCHEMA)), SCHEMA) == parse_expression(sql, SCHEMA)


@pytest.mark.parametrize("sql", ["arr[0]", "element_at(arr, 1)", "arr[2]"])
def test_index_outside_of_an_array_is_refused_with_the_index(sql: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        values(sql)
    assert caught.value.error_class == "INVALID_ARRAY_INDEX"


@pytest.mark.parametrize("sql", ["m[1]", "arr['a']", "i[0]", "size(i)", "get(m, 'a')", "st['y']", "i.x"])
def test_element_of_what_has_none_is_refused(sql: str) -> None:
    with pytest.raises(Exception, match=r"does not work on|not in the schema"):
        values(sql)


# ---------------------------------------------------------------- null instead of an error


def test_try_functions_give_null_only_where_the_value_fails() -> None:
    assert values("try_cast(s as int)") == [12, None, None, None, 7]
    assert values("try_cast(s as bigint)") == [12, None, None, 2147483648, 7]
    assert values("try_cast(d as int)") == [1, None, None, None, 0]
    assert values("try_add(i, 1)") == [None, -(2**31) + 1, 6, None, 1]
    assert values("try_divide(10, i)")[4] is None
    assert type_of(parse_expression("try_cast(s as bigint)", SCHEMA), SCHEMA) == LONG


def test_guarded_failure_is_not_asked_for() -> None:
    assert values("if(i = 0, null, 10 div i)") == [0, 0, 2, None, None]
    assert values("case when size(arr) > 0 then arr[0] end") == [1, None, None, 7, None]


# ---------------------------------------------------------------- unknown functions


def test_unknown_function_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ExpressionError, match=r"The function substrin is not supported here.*Did you mean substring\?"):
        parse_expression("substrin(s, 1)", SCHEMA)


@pytest.mark.parametrize("sql", ["rand()", "uuid()", "md5(s)", "from_json(s, 'a int')", "my_udf(i)"])
def test_function_without_an_exact_evaluation_is_refused_by_name(sql: str) -> None:
    with pytest.raises(ExpressionError, match=rf"The function {sql.partition('(')[0]}"):
        parse_expression(sql, SCHEMA)


# ---------------------------------------------------------------- the clock


def test_clock_has_one_value_for_all_rows_in_the_sessions_zone() -> None:
    stamp = parse_expression("current_timestamp()", SCHEMA)
    assert evaluate(stamp, BATCH, now=NOW).to_pylist() == [NOW] * 5
    assert type_of(stamp, SCHEMA) == TIMESTAMP
    date = parse_expression("current_date", SCHEMA)
    assert evaluate(date, BATCH, now=NOW, time_zone="America/New_York").to_pylist() == [datetime.date(2024, 2, 29)] * 5
    assert evaluate(parse_expression("now() > date'2024-01-01'", SCHEMA), BATCH, now=NOW).to_pylist() == [True] * 5
    zone = replace_clock_functions(parse_expression("current_timezone()", SCHEMA), NOW, "Asia/Tokyo")
    assert evaluate(zone, BATCH).to_pylist() == ["Asia/Tokyo"] * 5
    assert type_of(zone, SCHEMA) == STRING


def test_clock_without_a_time_is_refused() -> None:
    with pytest.raises(ExpressionError, match="current_timestamp"):
        values("current_timestamp()")


@pytest.mark.parametrize(
    ("sql", "deterministic"),
    [
        ("i + 1", True),
        ("current_date() > '2024-01-01'", False),
        ("coalesce(cast(now() as string), s)", False),
        ("year('2024-01-01')", True),
    ],
)
def test_expression_with_a_clock_is_not_deterministic(sql: str, deterministic: bool) -> None:
    assert is_deterministic(parse_expression(sql, SCHEMA)) is deterministic


# ---------------------------------------------------------------- time zones


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Sydney", "Africa/Casablanca", "Europe/Dublin", "Asia/Tokyo"])
def test_clocks_go_on_changing_after_2037(zone: str) -> None:
    rules = zoneinfo.ZoneInfo(zone)
    start = datetime.datetime(2036, 12, 1, tzinfo=datetime.UTC)
    instants = [start + datetime.timedelta(days=step * 17.37) for step in range(4000)]
    clocks = [instant.astimezone(rules).replace(tzinfo=None) for instant in instants]
    assert to_wall_clock(pa.array([*instants, None], INSTANT), zone).to_pylist() == [*clocks, None]
    back = [clock.replace(tzinfo=rules, fold=0).astimezone(datetime.UTC) for clock in clocks]
    assert to_instants(pa.array(clocks, WALL_CLOCK), zone).to_pylist() == back


# ---------------------------------------------------------------- regular expressions


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"(?i)a",
            r"(?=a)",
            r"(?<=a)b",
            r"(a)\1",
            r"a++",
            r"\bword",
            r"\p{L}",
            r"[a[b]]",
            r"[a-z&&[^b]]",
            r"(?<name>a)",
            r"a**",
        ),
        *(r"a$b", r"a^b", r"\G", r"\Qa.b\E", r"*a", r"(a", r"[a", r"a\\"[:-1], r"[\w-z]", r"\x41", r"\u0041", r"a{2}{3}"),
    ],
)
def test_regular_expression_that_java_reads_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="regular expression"):
        to_re2(pattern, only_tests=True)


def test_dollar_stands_before_a_last_line_end_as_in_java() -> None:
    batch = pa.record_batch({"s": pa.array(["ab", "ab\n", "ab\r\n", "ab\nc", "ab\u2028", "ab\n\n", None])})
    is_match = evaluate(parse_expression("s rlike 'b$'", from_arrow_schema(batch.schema)), batch)
    assert is_match.to_pylist() == [True, True, True, False, True, False, None]
