"""SQL of deltalake's users in the dialects of Spark and duckdb."""

from __future__ import annotations

import pytest

from delta_py.as_deltalake.sql_dialects import duckdb_sql, spark_sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("price > 5 AND day = 'a'", "price > 5 AND day = 'a'"),
        ('"sold items" = 1', "`sold items` = 1"),
        ('s."a""b" = `c``d`', 's.`a"b` = `c``d`'),
        ("x = '\"no name\"'", "x = '\"no name\"'"),
        ("x = 'it''s'", r"x = 'it\'s'"),
        (r"x = 'a\b'", r"x = 'a\\b'"),
        ("sold + int'10'", "sold + CAST('10' AS int)"),
        ("d >= date'2024-05-01' OR t < TIMESTAMP '2024'", "d >= date'2024-05-01' OR t < TIMESTAMP '2024'"),
        ("x IN ('a', 'b') -- it's", "x IN ('a', 'b') -- it's"),
    ],
)
def test_conditions_become_sql_of_spark(sql: str, expected: str) -> None:
    assert spark_sql(sql) == expected


def test_backticks_become_the_quotes_of_duckdb() -> None:
    assert duckdb_sql('SELECT `a"b`, "c" FROM t WHERE x = \'`\'') == 'SELECT "a""b", "c" FROM t WHERE x = \'`\''
