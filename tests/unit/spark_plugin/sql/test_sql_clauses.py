"""DELETE, UPDATE and MERGE divided into the texts of their clauses; without a session."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.expressions.parse import parse_expression
from delta_py.types.schema import StructType
from spark_plugin.sql.clauses import Change, DeleteRows, MergeRows, UpdateRows, WhenClause, parse_change
from spark_plugin.sql.syntax import SyntaxFault, TableName, constant_sql

T = TableName(("t",))
CUT: list[tuple[str, Change]] = [
    ("DELETE FROM t", DeleteRows(T, None, None)),
    ("delete from a.`b c` AS x where x.id = ';' -- c\n;", DeleteRows(TableName(("a", "b c")), "x", "x.id = ';'")),
    ("DELETE FROM t x WHERE id IN (SELECT a FROM s WHERE b = 1)", DeleteRows(T, "x", "id IN (SELECT a FROM s WHERE b = 1)")),
    (
        "UPDATE t SET a = 1, `b.c`.d == f(x, 'y, z'), e = CASE WHEN a THEN b ELSE c END WHERE arr[f(1, 2)] > 0",
        UpdateRows(
            T,
            None,
            ((("a",), "1"), (("b.c", "d"), "f(x, 'y, z')"), (("e",), "CASE WHEN a THEN b ELSE c END")),
            "arr[f(1, 2)] > 0",
        ),
    ),
    (
        "MERGE WITH SCHEMA EVOLUTION INTO t AS x USING (SELECT * FROM a JOIN b ON a.i = b.i) s ON CASE WHEN x.i THEN TRUE END "
        "WHEN MATCHED AND CASE WHEN s.a THEN 1 END = 1 THEN UPDATE SET a = s.a, x.b = 2 WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY TARGET AND s.q THEN INSERT (a, b) VALUES (f(1, 2), DEFAULT) WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = 1",
        MergeRows(
            T,
            "x",
            "(SELECT * FROM a JOIN b ON a.i = b.i) s",
            "CASE WHEN x.i THEN TRUE END",
            (
                WhenClause("matched", "update", "CASE WHEN s.a THEN 1 END = 1", ((("a",), "s.a"), (("x", "b"), "2"))),
                WhenClause("matched", "delete", None, None),
                WhenClause("not matched", "insert", "s.q", ((("a",), "f(1, 2)"), (("b",), "DEFAULT"))),
                WhenClause("not matched", "insert", None, None),
                WhenClause("not matched by source", "update", None, ((("a",), "1"),)),
            ),
            evolves=True,
        ),
    ),
]


COLUMNS: list[tuple[str, Change]] = [
    ("DELETE FROM t WHERE coalesce(end, 1) > 3", DeleteRows(T, None, "coalesce(end, 1) > 3")),
    ("UPDATE t SET a = s.case, b = 2 WHERE end > case", UpdateRows(T, None, ((("a",), "s.case"), (("b",), "2")), "end > case")),
    (
        "UPDATE t SET case = case, end = CASE end WHEN 1 THEN case ELSE end END, b = end",
        UpdateRows(T, None, ((("case",), "case"), (("end",), "CASE end WHEN 1 THEN case ELSE end END"), (("b",), "end")), None),
    ),
    *(
        (
            f"MERGE INTO t USING s ON {condition} WHEN MATCHED AND {of_clause} THEN DELETE",
            MergeRows(T, None, "s", condition, (WhenClause("matched", "delete", of_clause, None),), evolves=False),
        )
        for condition, of_clause in (
            ("(t.end = s.end)", "end = case"),
            ("t.case = s.case", "CASE end WHEN 1 THEN s.end ELSE end END = 1"),
            ("case = s.a", "case > 1"),
            ("CASE a WHEN 1 THEN limit ELSE offset END = 1", "CASE WHEN t.all THEN t.from END"),
            ("t.a = s.end", "s.case IS NULL"),
            ("CASE WHEN matched THEN end END", "CASE NOT end WHEN CASE WHEN a THEN end END THEN end END"),
        )
    ),
]


@pytest.mark.parametrize(("text", "change"), COLUMNS, ids=[text for text, _ in COLUMNS])
def test_end_and_case_may_be_columns(text: str, change: Change) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize(("text", "change"), CUT, ids=["delete", "alias", "subquery", "update", "merge"])
def test_a_statement_is_cut_where_its_clauses_begin(text: str, change: Change) -> None:
    assert parse_change(text) == change


def test_constants_stand_for_parameters() -> None:
    args = {"t": "`a.b`.c", "x": 1, "y": "it's ${b}", "z": None}
    cut = parse_change("DELETE FROM IDENTIFIER(:t) WHERE a = :x AND (b:f IN (:y) OR c=:z)", args)
    text = "CAST(X'6974277320247b627d' AS STRING)"
    assert cut == DeleteRows(TableName(("a.b", "c")), None, f"a = CAST(1 AS INT) AND (b:f IN ({text}) OR c= NULL)")
    assert parse_change("DELETE FROM IDENTIFIER(:t || '.' || 'd')", args) == DeleteRows(TableName(("a.b", "c", "d")), None, None)
    cut = parse_change("UPDATE t SET a = ?, b = m[?] WHERE ? AND v:a.b > ?", [True, 5_000_000_000, False, 1.5])
    values = ((("a",), "TRUE"), (("b",), "m[CAST(5000000000 AS BIGINT)]"))
    assert cut == UpdateRows(T, None, values, "FALSE AND v:a.b > CAST('1.5' AS DOUBLE)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("-1.5"), "CAST('-1.5' AS DECIMAL(2, 1))"),
        (Decimal("0.05"), "CAST('0.05' AS DECIMAL(2, 2))"),
        (Decimal("1.50E+3"), "CAST('1500' AS DECIMAL(4, 0))"),
        (Decimal("-0.0"), "CAST('-0.0' AS DECIMAL(1, 1))"),
        (Decimal("0E+40"), "CAST('0' AS DECIMAL(1, 0))"),
        (Decimal("9" * 38), f"CAST('{'9' * 38}' AS DECIMAL(38, 0))"),
        (-7, "CAST(-7 AS INT)"),
        (-(2**63), "CAST(-9223372036854775808 AS BIGINT)"),
        (-1.5e300, "CAST('-1.5e+300' AS DOUBLE)"),
        (np.float64(1.5), "CAST('1.5' AS DOUBLE)"),
        (math.nan, "CAST('nan' AS DOUBLE)"),
        (-math.inf, "CAST('-inf' AS DOUBLE)"),
        ("' OR \\", "CAST(X'27204f52205c' AS STRING)"),
        ("", "CAST(X'' AS STRING)"),
        (b"\x00'", "CAST(X'0027' AS BINARY)"),
        (datetime.date(1, 2, 3), "CAST(DATE'0001-02-03' AS DATE)"),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC), "timestamp_micros(-1000000)"),
    ],
)
def test_a_constant_is_an_operand_whatever_stands_beside_it(value: object, text: str) -> None:
    assert constant_sql(value) == text
    assert parse_change("DELETE FROM t WHERE id > lo-? AND part = 'a'", [value]) == deleted(f"id > lo- {text} AND part = 'a'")
    close = parse_change("DELETE FROM t WHERE?AND a LIKE?OR(b=?)", [value] * 3)
    assert close == deleted(f"{text} AND a LIKE {text} OR(b= {text})")
    assert parse_change("DELETE FROM t WHERE a = -- why\n?-?", [value] * 2) == deleted(f"a = -- why\n{text} - {text}")
    assert parse_change("UPDATE t SET a=-?, b =?WHERE?", [value] * 3) == UpdateRows(
        T, None, ((("a",), f"- {text}"), (("b",), text)), text
    )
    parse_expression(text, StructType(()))


def deleted(where: str) -> DeleteRows:
    return DeleteRows(T, None, where)


@pytest.mark.parametrize("word", ["AND", "LIKE", "then", "In", "not", "BETWEEN 1 AND"])
def test_a_parameter_may_stand_right_behind_a_word(word: str) -> None:
    text = "CAST(1 AS INT)"
    assert parse_change(f"DELETE FROM t WHERE a {word}:x", {"x": 1}) == deleted(f"a {word} {text}")
    assert parse_change("DELETE FROM t WHERE:x", {"x": 1}) == deleted(text)
    # Text that is not a value is a field, of a column that may have the name of a word.
    for field in (f"{word}:y", "v:x", "t.like:x", "`like`:x", "f(v):x", "v[0]:x"):
        assert parse_change(f"DELETE FROM t WHERE {field}", {"x": 1}) == deleted(field)


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("-Infinity"), Decimal(10) ** 38, Decimal("1E-39"), -(2**63) - 1, datetime.timedelta(1)]
)
def test_a_value_that_spark_has_no_constant_for_is_a_fault(value: object) -> None:
    with pytest.raises(SyntaxFault, match=f"a value of {type(value).__name__} cannot stand"):
        parse_change("DELETE FROM t WHERE a = ?", [value])


@pytest.mark.parametrize("args", [None, {}, {"y": 1}, [1], {"x": [1]}, {"x": 2**63}])
def test_parameter_without_a_writable_value_is_a_fault(args: object) -> None:
    with pytest.raises(SyntaxFault):
        parse_change("DELETE FROM t WHERE a = :x", args)


@pytest.mark.parametrize("text", ["SELECT 1", "MERG", "INSERT INTO t SELECT 1", "WITH a AS (SELECT 1) DELETE FROM t"])
def test_other_statements_are_none(text: str) -> None:
    assert parse_change(text) is None


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM t WHERE", "UPDATE t SET a", "DELETE FROM t; DELETE FROM u", "MERGE INTO t USING s ON a WHEN MATCHED THEN"],
)
def test_statements_that_end_too_early_are_faults(text: str) -> None:
    with pytest.raises(SyntaxFault):
        parse_change(text)


TEXTS = st.sampled_from(
    ["a", "f(b, c)", "'x, y WHERE z'", "`WHERE`", "CASE WHEN p THEN q END", "m['k']", "a.b -- THEN\n + 1", '"q"', "end", "case"]
)
NAMES = st.sampled_from(["a", "`b c`", "d.e", "`WHEN`.f"])


@given(NAMES, st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=4), TEXTS)
def test_texts_of_an_update_come_out_as_they_went_in(table: str, assigned: list[tuple[str, str]], where: str) -> None:
    pairs = ", ".join(f"{name} = {value}" for name, value in assigned)
    cut = parse_change(f"UPDATE {table} SET {pairs}\nWHERE {where}")
    assert isinstance(cut, UpdateRows)
    assert [value for _, value in cut.assignments] == [value for _, value in assigned]
    assert cut.where == where
