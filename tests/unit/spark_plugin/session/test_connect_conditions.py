"""Conditions in the form of a Spark Connect client: which parts are parsed without the analyzer, and which are not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.connect import functions as F
from pyspark.sql.types import BooleanType

from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.schema import BOOLEAN, DATE, INTEGER, LONG, STRING, TIMESTAMP, DecimalType, StructField, StructType
from spark_plugin.dml.connect_conditions import KeyPart, condition_text, is_plain, key_parts, rows_selected_by

SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("name", STRING),
        StructField("odd.name", INTEGER),
        StructField("day", DATE),
        StructField("at", TIMESTAMP),
        StructField("flag", BOOLEAN),
        StructField("amount", DecimalType(9, 2)),
        StructField("st", StructType((StructField("a", INTEGER),))),
        StructField("t", StructType((StructField("id", INTEGER),))),
        StructField("code", STRING, metadata={DECLARED_TYPE: "char(5)"}),
    )
)
EARLY = dt.date(2024, 2, 29)


class Session:
    """Only the settings of a session."""

    def __init__(self, **settings: str) -> None:
        self.conf = {"spark.sql.session.timeZone": "UTC", **{name.replace("_", "."): value for name, value in settings.items()}}


def wanted(condition: Any, alias: tuple[str, ...] = ("t",), **settings: str) -> tuple[str | None, bool]:
    parsed = rows_selected_by(Session(**settings), condition, SCHEMA, alias)
    return None if parsed.predicate is None else to_sql(parsed.predicate), parsed.exact


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (F.expr("id = 3"), "id = 3L"),
        (F.col("id") == 3, "id = 3L"),
        (F.expr("T.id = 3"), "id = 3L"),
        (F.col("t.ID") == F.lit(3), "id = 3L"),
        (F.col("t.t.id") == 3, "t.id = 3"),
        ((F.col("id") > 1) & ~F.col("name").isin("a", "b'"), "(id > 1L) AND (NOT (name IN ('a', 'b\\'')))"),
        (F.col("name").isNull() | F.expr("st.a <=> 1"), "(name IS NULL) OR (st.a <=> 1)"),
        (F.col("`odd.name`").isNotNull(), "`odd.name` IS NOT NULL"),
        (F.col("name").startswith("x"), "startswith(name, 'x')"),
        (F.col("day") >= EARLY, "day >= date'2024-02-29'"),
        (F.col("at") < dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC), "at < timestamp'2024-02-29 01:00:00+00:00'"),
        (F.col("day") == F.date_from_unix_date(F.lit(19782)), "day = date'2024-02-29'"),
        (F.col("flag") & (F.col("amount") <= Decimal("1.50")), "flag AND (amount <= cast(1.50BD AS decimal(9,2)))"),
    ],
)
def test_comparisons_with_constants_are_read_as_spark_means_them(condition: Any, text: str) -> None:
    parsed, exact = wanted(condition)
    assert (parsed, exact) == (text, True)


@pytest.mark.parametrize(
    "condition",
    [
        F.expr("upper(name) = 'A'"),
        F.col("id") + 1 == 3,
        F.expr("id IN (SELECT 1)"),
        F.expr("nothing = 1"),
        F.expr("id ="),
        F.col("name").rlike("a"),
        F.expr("code = 'a'"),
        F.expr("rand() > 0.5"),
        F.udf(lambda value: True, BooleanType())("id"),
    ],
)
def test_what_may_mean_something_else_is_not_read(condition: Any) -> None:
    assert wanted(condition) == (None, False)


def test_parts_that_are_not_read_are_left_out_and_said() -> None:
    assert wanted((F.col("id") == 3) & F.expr("length(name) = 2")) == ("id = 3L", False)
    assert wanted((F.col("id") == 3) & F.length("name").isNull()) == (None, False)
    assert wanted(F.expr("id = 3 AND code = 'a'")) == ("id = 3L", False)


def test_nothing_is_read_without_ansi_mode_or_condition() -> None:
    assert wanted(F.expr("id = 3"), spark_sql_ansi_enabled="false") == (None, False)
    assert wanted(None) == (None, False)


def test_alias_stands_before_names_only() -> None:
    assert wanted(F.expr("t.id = 3"), alias=()) == ("t.id = 3", True)
    assert wanted(F.expr("x.id = 3"), alias=("t",)) == (None, False)


def test_text_for_the_history_is_sql_where_it_can_be() -> None:
    assert condition_text(F.expr("a  =1")) == "a  =1"
    assert condition_text((F.col("a") == 1) | F.col("b c").isNull()) == "(a = 1) OR (`b c` IS NULL)"
    assert "upper" in condition_text(F.upper("a") == "X")


def test_plain_conditions_have_neither_functions_nor_subqueries() -> None:
    assert is_plain(Session(), F.expr("t.id = s.id AND t.day > '2024-01-01'"))
    assert not is_plain(Session(), F.expr("t.id = rand()")) and not is_plain(Session(), F.expr("t.id IN (SELECT 1)"))
    assert "2024" in condition_text(F.expr("a < timestamp'2024-01-01 00:00:00'") & F.col("b"))
    assert not is_plain(Session(), F.expr("t.id = current_user()")) and not is_plain(Session(), F.expr("f(t.id)"))


def test_merge_condition_is_split_by_the_columns_it_compares() -> None:
    parts = key_parts(Session(), F.expr("t.id = s.id AND s.`a b` < t.n AND t.part = 'x' AND upper(s.x) = t.x"))
    assert parts == [
        KeyPart("t.id = s.id", (("t", "id"), ("s", "id")), "="),
        KeyPart("s.`a b` < t.n", (("s", "a b"), ("t", "n")), "<"),
        KeyPart("t.part = 'x'", (("t", "part"),)),
    ]
    assert key_parts(Session(), F.expr("t.id IN (SELECT 1)")) == []
    (early,) = key_parts(Session(spark_sql_session_timeZone="Asia/Tokyo"), F.expr("t.at > timestamp'2024-02-01 00:00:00'"))
    assert early == KeyPart("t.at > timestamp'2024-01-31 15:00:00+00:00'", (("t", "at"),))


QUOTES, ESCAPES = {"spark_sql_ansi_doubleQuotedIdentifiers": "true"}, {"spark_sql_parser_escapedStringLiterals": "true"}


@pytest.mark.parametrize(
    ("text", "settings", "exact"),
    [
        ('"name" <> \'new\'', QUOTES, False),
        ("`name` <> 'new'", QUOTES, True),
        (r"name <> 'a\d'", ESCAPES, False),
        ("name <> 'ad'", ESCAPES, True),
        (r"""name <> 'a\d"'""", {}, True),
        ("name <> '${own.setting}'", {}, False),
        ("name <> '${own.setting}'", {"spark_sql_variable_substitute": "false"}, True),
    ],
)
def test_text_that_the_session_parses_otherwise_is_not_used(text: str, settings: dict[str, str], exact: bool) -> None:
    """A constant instead of a column would match all rows, and remove whole files."""
    parsed = wanted(F.expr(text), **settings)
    assert parsed[1] == exact and (parsed[0] is not None) == exact
    assert is_plain(Session(**settings), F.expr(text)) == exact
    assert bool(key_parts(Session(**settings), F.expr(text))) == exact


def test_parts_that_the_server_would_read_otherwise_are_left_out() -> None:
    """They go there as text, constants of the client too."""
    condition = (F.col("t.name") == "a\\d") & (F.col("t.id") == F.col("s.id"))
    assert [part.text for part in key_parts(Session(), condition)] == [r"t.name = 'a\\d'", "t.id = s.id"]
    assert [part.text for part in key_parts(Session(**ESCAPES), condition)] == ["t.id = s.id"]
