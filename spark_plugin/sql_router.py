"""What `spark.sql` does differently when a statement is about a Delta table.

    install(spark)                                   # register(spark) calls it
    spark.sql("DELETE FROM pydelta.`/data/events` WHERE id = 3")

`SparkSession.sql`, classic and Connect, is wrapped. The wrapper reads the first word of the statement, after blanks and comments.
If ROUTES does not have the word, Spark gets the original call, and the wrapper does nothing else. If ROUTES has it, the wrapper
calls the route's handlers in turn:

    def handler(spark: SparkSession, statement: Statement) -> DataFrame | None: ...

None means: this is no statement on a Delta table, and the handler did nothing. If all handlers return None, Spark gets the
statement as it was written. Only registered sessions and their clones (foreachBatch clones sessions) are routed; `sql` in
`spark.pydelta.disable` turns it off.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.errors import ParseException

from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.named_functions import function_named
from spark_plugin.internals.pyspark_internals import reason_of, session_class
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.internals.wrapping import Method, wrap
from spark_plugin.options.roads import SQL
from spark_plugin.options.settings import active, conf, is_enabled, is_on
from spark_plugin.spark_versions import hint_at_newer_clause
from spark_plugin.sql_internals import parameters_of, with_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

_REGISTERED = "spark.pydelta.registered"
"""Set in routed sessions: a clone of such a session has it too."""

JVM_ENABLED = "spark.pydelta.sql.jvm.enabled"
"""Set it to false before `register`, so that Spark runs statements that do not come through `spark.sql` of Python."""

_log = logging.getLogger("pydelta")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as `sql` got it. text: with the values of keyword arguments (also DataFrames) and of variables inserted.
    args: the parameters as the caller passed them: values by name or by position, or None. word: the first one, in capitals."""

    text: str
    args: Any
    word: str


Handler: TypeAlias = "Callable[[SparkSession, Statement], DataFrame | None]"


@dataclass(frozen=True, slots=True)
class Route:
    """Who runs statements with a certain first word. handlers: names of functions of the type Handler, not the functions: they
    import DeltaTable, whose module imports this one for `register`. having: words in capitals; at least one of them must occur
    in the statement too. Empty if the first word suffices."""

    handlers: tuple[str, ...]
    having: tuple[str, ...] = ()


_UTILITIES = ("statements.delta_statements.run_utility",)
_PARSED = ("statements.parsed.run_parsed",)
_TRANSACTIONS = ("statements.transaction_statements.run_transaction",)
ROUTES: Mapping[str, Route] = {
    "DELETE": Route(_PARSED),
    "UPDATE": Route(_PARSED),
    "MERGE": Route(_PARSED),
    "WITH": Route(_PARSED, ("DELETE", "UPDATE", "MERGE", "INSERT")),
    "INSERT": Route(_PARSED),
    "FROM": Route(_PARSED, ("INSERT",)),
    "OPTIMIZE": Route(_UTILITIES),
    "VACUUM": Route(_UTILITIES),
    "DESCRIBE": Route(_UTILITIES, ("HISTORY", "DETAIL")),
    "DESC": Route(_UTILITIES, ("HISTORY", "DETAIL")),
    "RESTORE": Route(_UTILITIES),
    "CONVERT": Route(_UTILITIES),
    "GENERATE": Route(_UTILITIES),
    "REORG": Route(_UTILITIES),
    "FSCK": Route(_UTILITIES),
    "CREATE": Route((*_UTILITIES, *_PARSED), ("TABLE", "INDEX")),
    "REPLACE": Route((*_UTILITIES, *_PARSED), ("TABLE",)),
    "ALTER": Route((*_UTILITIES, *_PARSED), ("TABLE",)),
    "COMMENT": Route(_PARSED),
    "TRUNCATE": Route(_PARSED),
    "SHOW": Route(_PARSED, ("PARTITIONS", "CREATE")),
    "DROP": Route((*_UTILITIES, *_PARSED), ("INDEX", "TABLE")),
    "EXPLAIN": Route(_PARSED, ("DELETE", "UPDATE", "MERGE")),
    "CALL": Route(("statements.call_procedure.run_call",)),
    "START": Route(_TRANSACTIONS, ("TRANSACTION",)),
    "BEGIN": Route(_TRANSACTIONS, ("TRANSACTION",)),
    "COMMIT": Route(_TRANSACTIONS),
    "ROLLBACK": Route(_TRANSACTIONS),
}
"""By the first word of a statement, in capitals."""

_ONLY_OVER_CONNECT = ("CALL",)  # in a classic session Spark itself runs these statements


def install(spark: Any) -> None:
    """Route the session's statements. The methods are wrapped once per process."""
    adapter = adapter_of(spark)
    wrap(session_class(connect=not adapter.is_driver), "sql", _wrap_sql)
    if adapter.has_local_settings:
        spark.conf.set(_REGISTERED, "true")
    else:
        _client_session_ids.add(adapter.session_id)


def install_in_parser(spark: Any) -> None:
    """Route the statements of a classic session that do not come through Python, unless JVM_ENABLED is false. Requires that the
    JVM can call this process, and that the session has our catalogs. If routing fails, a warning says why."""
    if not is_on(spark, JVM_ENABLED):
        return
    routes = {word: route.having for word, route in ROUTES.items() if word not in _ONLY_OVER_CONNECT}
    try:
        SparkInternals(spark).route_statements(json.dumps(routes))
    except Exception as error:  # whatever an unknown Spark raises, the rest must continue
        _log.warning(
            "%s: statements from the JVM, EXECUTE IMMEDIATE and scripts are not routed in this session: %s.",
            JVM_ENABLED,
            reason_of(error),
        )


def run_from_jvm(spark: Any, request: Mapping[str, Any]) -> DataFrame | None:
    """Run a `statement` from the session's parser, with its `parameters` as Spark holds them. Returns None, and does nothing, for
    a statement that Spark runs itself."""
    text = request["statement"]
    route = route_of(text)
    if route is None or not _is_routed(spark):
        return None
    frame: DataFrame | None = _first_result(spark, route, text, parameters_of(request["parameters"]))
    return frame


_client_session_ids: set[str] = set()
"""The ids of registered Spark Connect sessions: it would take a while to read a setting from a server."""


# ---------------------------------------------------------------- the wrapper


def _wrap_sql(original: Method) -> Method:
    """Return a `sql` that runs statements on Delta tables itself, and calls Spark's own `sql` for all others."""

    def sql(self: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:
        route = route_of(sqlQuery) if isinstance(sqlQuery, str) else None
        left_to_spark: AbstractContextManager[None] = nullcontext()
        if route is not None and _is_routed(self):
            frame = _run_route(self, route, sqlQuery, args, kwargs)
            if frame is not None:
                return frame
            left_to_spark = adapter_of(self).left_to_spark(sqlQuery)  # so that the router in the JVM does not try it again
        with left_to_spark, _add_hint_to_syntax_error(self, sqlQuery):
            return original(self, sqlQuery, args, **kwargs)

    return sql


@contextmanager
def _add_hint_to_syntax_error(spark: Any, text: Any) -> Iterator[None]:
    """Add a note to a syntax error that is raised inside: what to use in place of a clause that only a newer Spark knows."""
    try:
        yield
    except ParseException as error:
        hint = hint_at_newer_clause(text, spark.version) if isinstance(text, str) else None
        if hint is not None:
            error.add_note(hint)
        raise


def route_of(text: str) -> Route | None:
    """Return the route of a statement: None for nearly all statements, so this must be fast."""
    route = ROUTES.get(first_word(text))
    return None if route is None or (route.having and not _has_word(text, route.having)) else route


def _has_word(text: str, words: tuple[str, ...]) -> bool:
    """Return whether the text has one of the words, in any case. words: in capitals."""
    capitals = text.upper()  # a search for text is many times faster than a search for words
    return any(word in capitals and re.search(rf"\b{word}\b", capitals) for word in words)


def _is_routed(spark: Any) -> bool:
    """Return whether the session is registered and its SQL is not disabled."""
    adapter = adapter_of(spark)
    if adapter.has_local_settings:
        is_registered = conf(spark, _REGISTERED) is not None
    else:
        is_registered = adapter.session_id in _client_session_ids
    return is_registered and is_enabled(spark, SQL)


def _run_route(spark: Any, route: Route, text: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Return the frame of a statement that `sql` of Python got; None, and nothing was done, if Spark must run it."""
    with as_spark_raises(), active(spark), _with_keyword_values(spark, text, kwargs) as formatted:
        return _first_result(spark, route, formatted, args)


def _first_result(spark: Any, route: Route, text: str, args: Any) -> Any:
    """Return the frame of the first handler that runs the statement; None if Spark must run it."""
    full_text = with_variables(spark, text)
    if full_text is None:
        return None
    statement = Statement(full_text, args, first_word(text))
    frames = (function_named(name)(spark, statement) for name in route.handlers)
    return next((frame for frame in frames if frame is not None), None)


@contextmanager
def _with_keyword_values(spark: Any, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text with the keyword arguments inserted, as Spark's own `sql` does it."""
    if not kwargs:
        yield text
        return
    with adapter_of(spark).formatted_sql(text, kwargs) as formatted:
        yield formatted


# ---------------------------------------------------------------- the first word

_WORD = re.compile(r"\s*([A-Za-z]+)")
_WHOLE_WORD = re.compile(r"\s*(\w+)")
_COMMENT_STARTS = re.compile(r"\s*(--|/\*(?!\+))")
_LINE = re.compile(r"(?:\\\n|[^\r\n])*")  # a backslash at the end of a line continues the comment on the next line
_BRACKET = re.compile(r"/\*(?!\+)|\*/")


def first_word(text: str) -> str:
    """Return the first word in capitals, after blanks and comments; empty if there is none."""
    word = _WORD.match(text) or _WORD.match(text, after_comments(text))
    return "" if word is None else word[1].upper()


def second_word(text: str) -> str:
    """Return the complete second word in capitals; empty if it is no word."""
    first = _WORD.match(text, after_comments(text))
    remaining_text = "" if first is None else text[first.end() :]
    word = _WHOLE_WORD.match(remaining_text, after_comments(remaining_text))
    return "" if word is None else word[1].upper()


def after_comments(text: str) -> int:
    """Return the position of the first character that is neither blank nor comment. As in Spark, comments in brackets can
    nest."""
    position = 0
    while comment := _COMMENT_STARTS.match(text, position):
        position = comment.end()
        if comment[1] == "--":
            line = _LINE.match(text, position)
            assert line is not None
            position = line.end()
            continue
        depth = 1
        while depth:
            bracket = _BRACKET.search(text, position)
            if bracket is None:
                return len(text)
            depth += 1 if bracket[0] == "/*" else -1
            position = bracket.end()
    return position
