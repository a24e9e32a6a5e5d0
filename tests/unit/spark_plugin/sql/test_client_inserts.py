"""INSERT, divided into its parts by a client without a parser."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.sql.parsed_inserts import ParsedInsert, WrittenQuery, WrittenReplaceOn
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql_internals import ParsedTarget
from spark_plugin.statements.client_inserts import written_insert


def read(text: str, args: Any = None) -> ParsedInsert | None:
    return written_insert(None, Words(text, args, binds=True))  # type: ignore[arg-type]


def insert_of(text: str, args: Any = None) -> tuple[ParsedInsert, WrittenQuery]:
    insert = read(text, args)
    assert insert is not None
    assert isinstance(insert.query, WrittenQuery)
    return insert, insert.query


@pytest.mark.parametrize(
    ("text", "query", "more"),
    [
        ("INSERT INTO b SELECT 1", "SELECT 1", {}),
        ("insert into table b values (1), (2);", "values (1), (2)", {}),
        ("INSERT INTO b (a, `b c`) VALUES (1, 2)", "VALUES (1, 2)", {"columns": ("a", "b c")}),
        ("INSERT INTO b (values, from) VALUES (1, 2)", "VALUES (1, 2)", {"columns": ("values", "from")}),
        ("INSERT INTO b TABLE c", "TABLE c", {}),
        ("INSERT INTO b SELECT /*+ REPARTITION(4) */ 1", "SELECT /*+ REPARTITION(4) */ 1", {}),
        (
            "INSERT INTO b PARTITION (a = 007, c = -5L, d = '5L') SELECT 1",
            "SELECT 1",
            {"values": {"a": "7", "c": "-5", "d": "5L"}},
        ),
        ("INSERT INTO b ((SELECT 1) UNION ALL SELECT 2)", "((SELECT 1) UNION ALL SELECT 2)", {}),
        ("INSERT INTO b (SELECT 1) UNION ALL (SELECT 2)", "(SELECT 1) UNION ALL (SELECT 2)", {}),
        ("INSERT INTO b BY NAME SELECT 1 AS a", "SELECT 1 AS a", {"by_name": True}),
        ("INSERT OVERWRITE b SELECT 1", "SELECT 1", {"overwrites": True}),
        ("INSERT WITH SCHEMA EVOLUTION INTO b FROM c SELECT a", "FROM c SELECT a", {"evolves": True}),
        ("INSERT INTO b WITH ('mergeSchema' = 'true') SELECT 1", "SELECT 1", {"options": {"mergeSchema": "true"}}),
        (
            "INSERT OVERWRITE TABLE b PARTITION (a = 1, c = DATE'2024-01-01', d = TRUE, e = NULL, f) (g) SELECT 1, 2",
            "SELECT 1, 2",
            {
                "values": {"a": "1", "c": "2024-01-01", "d": "true", "e": None},
                "open_columns": ("f",),
                "columns": ("g",),
                "overwrites": True,
            },
        ),
        (
            "INSERT OVERWRITE b PARTITION (a = 1) IF NOT EXISTS SELECT 1",
            "SELECT 1",
            {"values": {"a": "1"}, "if_not_exists": True, "overwrites": True},
        ),
        ("WITH c AS (SELECT 1) INSERT INTO b SELECT * FROM c", "WITH c AS (SELECT 1) SELECT * FROM c", {}),
        (
            "WITH c AS (SELECT 1) INSERT INTO b WITH d AS (TABLE c) TABLE d",
            "WITH c AS (SELECT 1) (WITH d AS (TABLE c) TABLE d)",
            {},
        ),
        ("FROM c INSERT INTO b SELECT a WHERE a > 1", "FROM c SELECT a WHERE a > 1", {}),
    ],
)
def test_statements_are_cut(text: str, query: str, more: Mapping[str, Any]) -> None:
    insert, written = insert_of(text)
    assert insert == replace(ParsedInsert(ParsedTarget(("b",)), written), **more)
    assert (written.text, written.alias) == (query, None)


def test_replace_where_is_read() -> None:
    insert, query = insert_of("INSERT INTO a.b (c) REPLACE WHERE c IN (1, :n) AND d = '(SELECT' SELECT 1", {"n": 2})
    assert insert.replaces_where == "c IN (1, CAST(2 AS INT)) AND d = '(SELECT'"
    assert (insert.target.parts, insert.columns, query.text) == (("a", "b"), ("c",), "SELECT 1")


@pytest.mark.parametrize(
    "condition",
    [
        "c IN (SELECT 1)",
        "NOT EXISTS (SELECT 1)",
        "(SELECT max(d) FROM t) > c",
        "c = (TABLE t)",
        "c > 1 AND c <= (VALUES (1))",
        "1 = offset",
    ],
)
def test_subqueries_of_a_condition_begin_no_query(condition: str) -> None:
    insert, query = insert_of(f"INSERT INTO a REPLACE WHERE {condition} (SELECT 2)")
    assert (insert.replaces_where, query.text) == (condition, "(SELECT 2)")


@pytest.mark.parametrize(
    "condition",
    [
        "d IS DISTINCT FROM x",
        "d IS NOT DISTINCT FROM (SELECT 1)",
        "trim(BOTH 'x' FROM d) = 'a'",
        "extract(YEAR FROM d) > 2000",
    ],
)
@pytest.mark.parametrize("query", ["SELECT * FROM s", "FROM s SELECT a", "(FROM s)"])
def test_the_from_of_a_condition_begins_no_query(condition: str, query: str) -> None:
    insert, written = insert_of(f"INSERT INTO a REPLACE WHERE {condition} {query}")
    assert (insert.replaces_where, written.text) == (condition, query)


@pytest.mark.parametrize(
    ("query", "filled", "width"),
    [
        ("VALUES (DEFAULT, 1), (2, default)", "VALUES (<0>, 1), (2, <1>)", 2),
        ("VALUES DEFAULT, 2", "VALUES <0>, 2", 1),
        ("VALUES (1, 2, DEFAULT) AS t(a, b, c)", "VALUES (1, 2, <2>) AS t(a, b, c)", 3),
        ("SELECT 1, DEFAULT FROM range(2) WHERE id > 0", "SELECT 1, <1> FROM range(2) WHERE id > 0", 2),
        ("SELECT `default`, 'DEFAULT', (DEFAULT), DEFAULT + 1", "SELECT `default`, 'DEFAULT', (DEFAULT), DEFAULT + 1", 4),
        ("SELECT a IS DISTINCT FROM b, DEFAULT FROM c", "SELECT a IS DISTINCT FROM b, <1> FROM c", 2),
        ("SELECT *, DEFAULT FROM c", "SELECT *, DEFAULT FROM c", None),
        ("SELECT c.*, DEFAULT FROM c", "SELECT c.*, DEFAULT FROM c", None),
        ("SELECT DEFAULT UNION ALL SELECT 1", "SELECT DEFAULT UNION ALL SELECT 1", None),
        ("(SELECT DEFAULT)", "(SELECT DEFAULT)", None),
    ],
)
def test_default_is_found_where_it_is_a_value(
    query: str, filled: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_plugin.sql.parsed_inserts.spark_sql", lambda _, text: SimpleNamespace(columns=["a", "b"]))
    _, written = insert_of(f"INSERT INTO b {query}")
    assert (written.text, written.width()) == (query.replace("default)", "DEFAULT)"), width)
    assert written.with_defaults(lambda number: f"<{number}>").text == filled


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO b SELECT k, default FROM c LATERAL VIEW f(a) WHERE k > 1", "SELECT * FROM c LATERAL VIEW f(a)"),
        ("INSERT INTO b SELECT default FROM (SELECT 1 WHERE true) ORDER BY 1", "SELECT * FROM (SELECT 1 WHERE true)"),
        ("WITH c AS (SELECT 1) INSERT INTO b SELECT default FROM c", "WITH c AS (SELECT 1) SELECT * FROM c"),
        ("FROM c INSERT INTO b SELECT default WHERE k > 1", "FROM c SELECT *"),
    ],
)
def test_default_may_be_a_column_of_the_rows(statement: str, rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    insert_columns = SimpleNamespace(columns=["k", "Default"])
    monkeypatch.setattr("spark_plugin.sql.parsed_inserts.spark_sql", lambda _, text: texts.append(text) or insert_columns)
    _, written = insert_of(statement)
    assert written.with_defaults(lambda number: f"<{number}>").text.lower() == written.text.lower()
    assert texts == [rows]


def test_replace_using_is_read() -> None:
    first, values = insert_of(
        "INSERT INTO TABLE a.b (v, `i d`) REPLACE USING (`i d`, v) VALUES (:v, '(SELECT'), (DEFAULT, 2);", {"v": 7}
    )
    second, query = insert_of(
        "INSERT WITH SCHEMA EVOLUTION INTO b BY NAME REPLACE USING (id) WITH c AS (SELECT 1 AS id) SELECT * FROM c"
    )
    assert (first.target.parts, first.columns, first.replaces_using) == (("a", "b"), ("v", "i d"), ("i d", "v"))
    assert values.text == "VALUES (CAST(7 AS INT), '(SELECT'), (DEFAULT, 2)"
    assert second.by_name and second.evolves and second.replaces_using == ("id",)
    assert query.text == "WITH c AS (SELECT 1 AS id) SELECT * FROM c"


@pytest.mark.parametrize(
    ("text", "condition", "query", "of_query", "of_table"),
    [
        ("b AS t REPLACE ON t.id = s.id (SELECT 2 AS id) AS s", "t.id = s.id", "SELECT 2 AS id", "s", "t"),
        ("b t BY NAME REPLACE ON t.id = abs(s.id) (VALUES (1)) s", "t.id = abs(s.id)", "VALUES (1)", "s", "t"),
        ("b REPLACE ON b.id = 3 SELECT (1) AS id", "b.id = 3", "SELECT (1) AS id", None, None),
        ("b REPLACE ON CASE WHEN b.v > (1) THEN true END TABLE c", "CASE WHEN b.v > (1) THEN true END", "TABLE c", None, None),
    ],
)
def test_replace_on_is_read(text: str, condition: str, query: str, of_query: str | None, of_table: str | None) -> None:
    insert, written = insert_of(f"INSERT INTO {text}")
    assert isinstance(insert.replaces_on, WrittenReplaceOn)
    assert (insert.replaces_on.text, insert.target.alias) == (condition, of_table)
    assert (written.text, written.alias) == (query, of_query)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO b REPLACE USING id SELECT 1",
        "INSERT INTO b REPLACE USING (id)",
        "INSERT INTO b REPLACE USING (id) (SELECT 1) UNION ALL SELECT 2",
        "INSERT INTO b REPLACE ON a = 1",
        "INSERT INTO b AS c SELECT 1",
        "INSERT INTO b",
        "INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '/x' USING parquet SELECT 1",
        "INSERT INTO b PARTITION (a = b) SELECT 1",
        "INSERT INTO b PARTITION (a = 1e3) SELECT 1",
        "INSERT INTO b PARTITION (a = DATE '2024-1-1') SELECT 1",
        "INSERT INTO b PARTITION (a = TIMESTAMP '2024-01-01') SELECT 1",
        "FROM c INSERT INTO b SELECT 1 INSERT INTO d SELECT 2",
    ],
)
def test_other_statements_are_left_to_the_server(text: str) -> None:
    with pytest.raises(SyntaxFault):
        read(text)


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (7, "7"), ("x", "x"), (datetime.date(2024, 1, 2), "2024-01-02"), (None, None)]
)
def test_parameters_become_partition_values_as_in_spark(value: Any, text: str | None) -> None:
    insert, _ = insert_of("INSERT INTO b PARTITION (a = ?) SELECT 1", [value])
    assert insert.values == {"a": text}


@pytest.mark.parametrize("value", [1e20, b"abc", [1], datetime.datetime(2024, 1, 1)])
def test_parameters_with_ambiguous_text_are_left_to_the_server(value: Any) -> None:
    with pytest.raises(SyntaxFault):
        read("INSERT INTO b PARTITION (a = ?) SELECT 1", [value])


@pytest.mark.parametrize("text", ["WITH c AS (SELECT 'INSERT INTO') SELECT * FROM c", "FROM c SELECT `INSERT`", "SELECT 1"])
def test_queries_are_no_inserts(text: str) -> None:
    assert read(text) is None
