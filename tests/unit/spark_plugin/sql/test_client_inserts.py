"""INSERT ... REPLACE USING and REPLACE ON, cut into their parts by a client without a parser."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from spark_plugin.options.settings import TablePath
from spark_plugin.sql import client_inserts
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql.targets import Target
from spark_plugin.sql_definitions import ParsedInsert

Written = tuple[ParsedInsert, str | None]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Written]:
    """What would be written; all tables are ours, and no session is asked."""
    found: list[Written] = []
    monkeypatch.setattr(client_inserts, "find_target", lambda spark, parts: Target(TablePath("/t"), ".".join(parts)))
    monkeypatch.setattr(client_inserts, "write_insert", lambda spark, target, insert, alias: found.append((insert, alias)))
    return found


def read(text: str, args: Any = None) -> Any:
    words = Words(text, args, binds=True)
    assert words.take("INSERT")
    return client_inserts.insert_of_client(None, words)  # type: ignore[arg-type]


def test_replace_using_is_read(written: list[Written]) -> None:
    read("INSERT INTO TABLE a.b (v, `i d`) REPLACE USING (`i d`, v) VALUES (:v, '(SELECT'), (DEFAULT, 2);", {"v": 7})
    read("INSERT WITH SCHEMA EVOLUTION INTO b BY NAME REPLACE USING (id) WITH c AS (SELECT 1 AS id) SELECT * FROM c")
    (first, alias), (second, _) = written
    assert (first.target.parts, first.columns, first.replaces_using, alias) == (("a", "b"), ("v", "i d"), ("i d", "v"), "b")
    assert first.query.text == "VALUES (CAST(7 AS INT), '(SELECT'), (DEFAULT, 2)"  # type: ignore[union-attr]
    assert second.by_name and second.evolves and second.replaces_using == ("id",)
    assert second.query.text == "WITH c AS (SELECT 1 AS id) SELECT * FROM c"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "condition", "query", "of_query", "of_table"),
    [
        ("b AS t REPLACE ON t.id = s.id (SELECT 2 AS id) AS s", "t.id = s.id", "SELECT 2 AS id", "s", "t"),
        ("b t BY NAME REPLACE ON t.id = abs(s.id) (VALUES (1)) s", "t.id = abs(s.id)", "VALUES (1)", "s", "t"),
        ("b REPLACE ON b.id = 3 SELECT (1) AS id", "b.id = 3", "SELECT (1) AS id", None, "b"),
        ("b REPLACE ON CASE WHEN b.v > (1) THEN true END TABLE c", "CASE WHEN b.v > (1) THEN true END", "TABLE c", None, "b"),
    ],
)
def test_replace_on_is_read(
    written: list[Written], text: str, condition: str, query: str, of_query: str | None, of_table: str
) -> None:
    read(f"INSERT INTO {text}")
    ((insert, alias),) = written
    assert alias == of_table
    assert insert.replaces_on.text == condition  # type: ignore[union-attr]
    assert (insert.query.text, insert.query.alias) == (query, of_query)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO b SELECT 1",
        "INSERT INTO b VALUES (1)",
        "INSERT INTO b (a) VALUES (1)",
        "INSERT INTO b TABLE c",
        "INSERT INTO b BY NAME SELECT 1 AS a",
        "INSERT OVERWRITE b SELECT 1",
        "INSERT INTO b REPLACE WHERE a = 1 SELECT 1",
        "INSERT INTO b (a) REPLACE WHERE a = 1 SELECT 1",
        "INSERT INTO b PARTITION (a = 1) SELECT 1",
        "INSERT INTO b WITH ('mergeSchema' = 'true') SELECT 1",
        "INSERT INTO b REPLACE USING id SELECT 1",
        "INSERT INTO b REPLACE USING (id)",
        "INSERT INTO b REPLACE USING (id) (SELECT 1) UNION ALL SELECT 2",
        "INSERT INTO b REPLACE ON a = 1",
    ],
)
def test_other_statements_are_left_to_the_server(written: list[Written], text: str) -> None:
    with suppress(SyntaxFault):
        assert read(text) is None
    assert written == []
