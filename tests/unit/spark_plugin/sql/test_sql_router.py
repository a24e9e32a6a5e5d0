"""Which statements are looked at, and that Spark gets all others as they were written; without a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_plugin import sql_internals, sql_router
from spark_plugin.internals.named_functions import function_named
from spark_plugin.internals.wrapping import wrap
from spark_plugin.sql_internals import parameters_of, with_variables
from spark_plugin.sql_router import ROUTES, Statement, first_word, route_of
from tests.support.documents.first_words import first_words

REGISTERED = {"spark.pydelta.registered": "true"}


class Session:
    """Gives back what `sql` was called with."""

    def __init__(self, settings: Mapping[str, str] = REGISTERED) -> None:
        self.conf = settings
        # Sessions of the tests that ran before may have our router; this one has not.
        self._jsparkSession = SimpleNamespace(sessionUUID=lambda: "a session without a router")

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        return sqlQuery, args, kwargs


wrap(Session, "sql", sql_router._wrap_sql)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
    """The statements that a handler was asked about, which takes none."""
    statements: list[Statement] = []
    monkeypatch.setattr(sql_router, "active", lambda _spark: nullcontext())
    monkeypatch.setattr(sql_router, "function_named", lambda _name: lambda _spark, statement: statements.append(statement))
    yield statements


BLANKS = st.sampled_from([" ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "-- a\n", "-- 'b\\\nstill\n", "--\r", "/* c */", "/**/"])
NESTED = st.recursive(
    st.text("ab*/-' \n", max_size=5).map(lambda text: text.replace("*/", "").replace("/*", "").strip("*/")),
    lambda inner: st.lists(inner.map(lambda text: f"/* {text} */"), max_size=3).map(" ".join),
    max_leaves=6,
).map(lambda text: f"/* {text} */")
WORDS = st.sampled_from([*ROUTES, "SELECT", "insert", "Set", "x"])
CASES = st.sampled_from([str.upper, str.lower, str.title])


@given(st.lists(BLANKS | NESTED, max_size=5), WORDS, CASES, st.sampled_from(["", " ", ";", "\n", "/* */", "("]))
def test_the_first_word_is_found_behind_blanks_and_comments(front: list[str], word: str, case: Any, behind: str) -> None:
    assert first_word("".join(front) + case(word) + behind) == word.upper()


@pytest.mark.parametrize(("text", "word"), first_words())
def test_first_word_is_that_of_the_table_for_python_and_java(text: str, word: str) -> None:
    assert first_word(text) == word


@given(
    st.text() | st.builds("{} {}".format, st.sampled_from(["SELECT", "with", "EXPLAIN DELETE", "/* DELETE */ SHOW"]), st.text())
)
def test_a_statement_that_is_no_candidate_reaches_spark_as_it_is(text: str) -> None:
    if route_of(text) is not None:
        return
    args, frame = {"x": 1}, object()
    found = Session().sql(text, args, t=frame)
    assert found[0] is text and found[1] is args and found[2] == {"t": frame}
    assert Session().sql(sqlQuery=text) == (text, None, {})


@pytest.mark.parametrize("word", ROUTES)
def test_candidate_without_a_handler_reaches_spark_unchanged(word: str, asked: list[Statement]) -> None:
    text = f"/* é\x00 */ {word.lower()} x -- DELETE HISTORY CLONE INDEX FEATURE INSERT TABLE PARTITIONS TRANSACTION"
    route = route_of(text)
    assert route is not None
    args = [1, "'; DROP TABLE t"]
    assert Session().sql(text, args) == (text, args, {})
    assert asked == [Statement(text, args, word)] * len(route.handlers)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.pydelta.sql.enabled": "true"},
        {**REGISTERED, "spark.pydelta.sql.enabled": "false"},
        {**REGISTERED, "spark.pydelta.disable": "sql"},
    ],
)
def test_a_session_without_pydelta_is_not_routed(settings: Mapping[str, str], asked: list[Statement]) -> None:
    assert Session(settings).sql("DELETE FROM t") == ("DELETE FROM t", None, {})
    assert asked == []


def test_what_is_no_text_reaches_spark_which_refuses_it(asked: list[Statement]) -> None:
    nothing: Any = None
    assert Session().sql(nothing) == (None, None, {})
    assert asked == []


def test_what_a_handler_gives_is_the_result(asked: list[Statement], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_router, "function_named", lambda _name: lambda _spark, statement: [statement.text])
    assert Session().sql("DELETE FROM t") == ["DELETE FROM t"]
    assert asked == []


@pytest.mark.parametrize("name", sorted({name for route in ROUTES.values() for name in route.handlers}))
def test_each_handler_of_the_table_exists(name: str) -> None:
    assert callable(function_named(name))


def test_with_is_looked_at_only_where_rows_may_change() -> None:
    assert route_of("WITH a AS (SELECT 1) SELECT * FROM a") is None
    assert route_of("WITH a AS (SELECT 1) DELETE FROM t") is not None


# ---------------------------------------------------------------- variables


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("OPTIMIZE ${own.table} WHERE p = '${own.day}'", "OPTIMIZE shop.sales WHERE p = '2024-05-01'"),
        ("VACUUM t RETAIN ${hiveconf:own.hours} HOURS", "VACUUM t RETAIN 200 HOURS"),
        ("OPTIMIZE ${own.named}", "OPTIMIZE shop.sales"),
        (
            "OPTIMIZE t${own.nothing} WHERE p = '${other:x}' AND q = '${own.day}'",
            "OPTIMIZE t WHERE p = '${other:x}' AND q = '2024-05-01'",
        ),
        ("OPTIMIZE t WHERE p = '${ }'", "OPTIMIZE t WHERE p = '${ }'"),
        ("OPTIMIZE ${env:HOME}", None),
        ("OPTIMIZE ${own.endless}", None),
    ],
)
def test_client_substitutes_session_settings_in_statements(
    text: str, read: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_internals, "parser_of", lambda _spark: None)
    own = {"table": "shop.sales", "day": "2024-05-01", "hours": "200", "named": "${own.table}", "endless": "${own.endless}"}
    settings = {f"own.{name}": value for name, value in own.items()}
    assert with_variables(SimpleNamespace(conf=settings), text) == read
    assert with_variables(SimpleNamespace(conf={**settings, "spark.sql.variable.substitute": "false"}), text) == text


def test_statement_with_unknown_variables_reaches_spark_as_is(
    asked: list[Statement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_internals, "parser_of", lambda _spark: None)
    assert Session().sql("VACUUM ${env:HOME}") == ("VACUUM ${env:HOME}", None, {}) and asked == []
    assert Session().sql("VACUUM ${spark.pydelta.registered}") == ("VACUUM ${spark.pydelta.registered}", None, {}) and asked == [
        Statement("VACUUM true", None, "VACUUM")
    ]


# ---------------------------------------------------------------- parameters that come from the JVM


class Java:
    """An object of the JVM's: its class, and methods that give values."""

    def __init__(self, java_class: str, **values: Any) -> None:
        self._class = java_class
        for name, value in values.items():
            setattr(self, name, lambda value=value: value)

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self._class)


def sequence(*values: Any) -> Any:
    return SimpleNamespace(length=lambda: len(values), apply=lambda number: values[number])


def constant(value: Any, kind: str) -> Java:
    text = value if value is None or kind != "string" else SimpleNamespace(toString=lambda: value)
    return Java("Literal", value=text, dataType=SimpleNamespace(typeName=lambda: kind))


def test_jvm_parameters_become_values_and_keep_those_of_spark() -> None:
    odd = Java("CreateArray")
    pairs = sequence(*(Java("Tuple2", _1=name, _2=value) for name, value in (("t", constant("it's", "string")), ("a", odd))))
    named = Java("NamedParameterContext", params=SimpleNamespace(toSeq=lambda: pairs))
    by_name = parameters_of(named)
    assert by_name == {"t": "it's", "a": odd} and by_name is not None and by_name.context is named
    placed = Java("PositionalParameterContext", params=sequence(constant(3, "integer"), constant(None, "string")))
    assert parameters_of(placed) == [3, None]
    values = sequence(constant(3, "integer"), constant("x", "string"))
    for no_names in (sequence(), sequence("", "")):
        assert parameters_of(Java("HybridParameterContext", args=values, paramNames=no_names)) == [3, "x"]
    assert parameters_of(Java("HybridParameterContext", args=values, paramNames=sequence("a", "b"))) == {"a": 3, "b": "x"}
    assert parameters_of(None) is None
