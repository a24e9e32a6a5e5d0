"""Which texts begin and end transactions of the session, and which are scripts for Spark; without a session."""

from __future__ import annotations

from typing import Any

import pytest

from spark_plugin.sql.syntax import SqlSyntaxError
from spark_plugin.sql_router import Statement, first_word, route_of
from spark_plugin.statements.transaction_statements import run_transaction

NO_SESSION: Any = None


def statement(text: str) -> Statement:
    assert route_of(text) is not None, "the router would not ask"
    return Statement(text, None, first_word(text))


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN SELECT 'transaction'; END",
        "BEGIN SELECT 1 /* TRANSACTION {# */; END",
        "BEGIN -- TRANSACTION \\\nSELECT 1; END",
        "/* {# */ BEGIN /* TRANSACTION */ SELECT 1; END",
        "BEGIN SELECT 1; -- a path \\\n SELECT 'TRANSACTION'; END",
        "BEGIN DECLARE transaction INT; SELECT 'x; END",
        "BEGIN transaction_of_day: LOOP SELECT 'TRANSACTION {#'; END",
        "START x TRANSACTION 'x",
    ],
)
def test_other_texts_are_spark_s(text: str) -> None:
    assert run_transaction(NO_SESSION, statement(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "COMMIT 'x",
        "COMMIT 'x'",
        "ROLLBACK {#",
        "BEGIN TRANSACTION 'x",
        "BEGIN TRANSACTION 'x'",
        "begin -- a\n /* b */ Transaction {# x",
        "START TRANSACTION ISOLATION LEVEL x",
    ],
)
def test_a_wrong_statement_is_pointed_at_as_spark_does(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="PARSE_SYNTAX_ERROR"):
        run_transaction(NO_SESSION, statement(text))
