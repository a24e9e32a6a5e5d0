"""INSERT over Spark Connect, if the server's own write to a table does less than a saved DataFrame does.

    INSERT INTO shop.sales (price) SELECT ...                   -- where sales has identity or generated columns
    INSERT WITH SCHEMA EVOLUTION INTO shop.sales BY NAME SELECT ...
    INSERT INTO shop.sales AS t REPLACE ON t.id = s.id (SELECT ...) AS s

A client has no parser: this module only finds where the parts of the statement begin. The server runs all other INSERTs.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_plugin.dataframe_api.batch_save import OPTIMIZE_CONF
from spark_plugin.dataframe_api.spark_rule_columns import needs_save
from spark_plugin.options.settings import conf, is_on, resets_transaction
from spark_plugin.sql.grammar import properties_of
from spark_plugin.sql.parsed_inserts import ParsedInsert, WrittenQuery, WrittenReplaceOn
from spark_plugin.sql.syntax import Words
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_catalog.install import catalog_conf
from spark_plugin.sql_internals import ParsedTarget
from spark_plugin.statements.insert import may_evolve, write_insert
from spark_plugin.statements.row_change_statements import short_alias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The words with which a query begins, and the ways in which the query of an INSERT begins: also in parentheses.
_QUERIES = ("SELECT", "VALUES", "TABLE", "FROM", "WITH")
_BEGINNINGS = (*((word,) for word in _QUERIES), *(("(", word) for word in _QUERIES))
# Where an INSERT begins after WITH or FROM, and where a query ends that another INSERT follows.
_INSERTS = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"), ("INSERT", "WITH", "SCHEMA"))
# Words that may follow the table's name, so that they are not its alias.
_AFTER_NAME = ("WITH", "PARTITION", "IF", "BY", "(", "REPLACE", *_QUERIES)
# Words that may follow the list of a SELECT.
_AFTER_LIST = (
    *("FROM", "LATERAL", "WHERE", "GROUP", "HAVING", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "MINUS"),
    *("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
)
# Words that end the rows after FROM.
_AFTER_ROWS = tuple(word for word in _AFTER_LIST if word not in ("FROM", "LATERAL"))
# A star in place of columns: `*`, or after the dot of `t.*`.
_STAR = re.compile(r"(^|\.)\s*\*")


def insert_of_client(spark: SparkSession, words: Words) -> DataFrame | None:
    """Run an INSERT that the server must not run. words: of the statement, with constants in place of parameters. Returns None,
    and does nothing, for a statement that is no INSERT, for one into a table that pydelta does not handle, and for one that the
    server runs. Raises SyntaxFault for text that cannot be read, and the errors of insert.insert_rows."""
    insert = written_insert(spark, words)
    target = None if insert is None else find_target(spark, insert.target.parts)
    if insert is None or target is None:
        return None
    if not (_must_run_on_client(spark, insert) or needs_save(spark, target.place)):
        return None
    return write_insert(spark, target, insert, short_alias(insert.target.alias, insert.target.parts, target))


def _must_run_on_client(spark: SparkSession, insert: ParsedInsert) -> bool:
    """Return whether the server would refuse the statement, or write its rows differently than a saved DataFrame, whatever the
    table is."""
    if insert.replaces_using or insert.replaces_on is not None or insert.if_not_exists:
        return True
    is_optimized = is_on(spark, OPTIMIZE_CONF, default=False) or "optimizewrite" in map(str.lower, insert.options)
    if is_optimized or may_evolve(spark, insert) or resets_transaction(spark):
        return True
    return conf(spark, catalog_conf("pydelta")) is None  # the server did not accept our classes


# ---------------------------------------------------------------- the statement


def written_insert(spark: SparkSession, words: Words) -> ParsedInsert | None:
    """Parse an INSERT. Returns None for a statement that is no INSERT. Raises SyntaxFault for text that cannot be read, and for
    an INSERT into several tables."""
    text_before = _text_before_insert(words)
    if not words.take("INSERT"):
        return None
    evolves = words.take("WITH", "SCHEMA", "EVOLUTION")
    overwrites = words.take("OVERWRITE")
    if not overwrites:
        words.expect("INTO")
    words.take("TABLE")
    parts = words.name()
    alias = None if overwrites else _alias(words, *_AFTER_NAME)
    options = _options(words)
    values, open_columns = partition_spec(words) if words.take("PARTITION") else ({}, ())
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    by_name = words.take("BY", "NAME")
    columns = _columns(words) if not by_name and words.at("(") and not _at_query(words) else ()
    using: tuple[str, ...] = ()
    on, where = None, None
    if not overwrites and words.take("REPLACE"):
        if words.take("USING"):
            using = _columns(words)
        elif words.take("ON"):
            on = WrittenReplaceOn(words.text_until(*_BEGINNINGS), alias)
        else:
            words.expect("WHERE")
            where = words.text_until(*_BEGINNINGS)
    elif alias is not None:
        words.fault("an alias is for REPLACE")
    if not _at_query(words):
        words.fault("expected a query")
    query = _aliased_query(spark, words) if using or on is not None else _query(spark, words)
    return ParsedInsert(
        ParsedTarget(parts, alias),
        _with_text_before(query, text_before),
        options=options,
        columns=columns,
        values=values,
        open_columns=open_columns,
        by_name=by_name,
        overwrites=overwrites,
        if_not_exists=if_not_exists,
        replaces_using=using,
        replaces_on=on,
        replaces_where=where,
        evolves=evolves,
    )


# A whole number, with or without the suffix of a BIGINT.
_WHOLE = re.compile(r"(-?[0-9]+)[lL]?")
# The texts of DATE '...' and TIMESTAMP '...' that Spark does not change when it makes a partition value of them.
_UNCHANGED_TEXTS = {
    "DATE": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "TIMESTAMP": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"),
}


def partition_spec(words: Words) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Parse the columns of PARTITION, after this word. Returns those with values, with each value as text or None for NULL; and
    the names of those without a value."""
    values: dict[str, str | None] = {}
    open_columns: list[str] = []
    words.expect("(")
    while True:
        column = words.part()
        if words.take("="):
            values[column] = _partition_value(words)
        else:
            open_columns.append(column)
        if not words.take(","):
            break
    words.expect(")")
    return values, tuple(open_columns)


def _partition_value(words: Words) -> str | None:
    """Return the constant as the text that Spark makes of it, for example 7 for 007. Raises SyntaxFault if Spark may make another
    text of the constant than this module."""
    for word in ("TRUE", "FALSE"):
        if words.take(word):
            return word.lower()
    if words.take("NULL"):
        return None
    kind = next((kind for kind in _UNCHANGED_TEXTS if words.take(kind)), None)  # the word before a text, as in DATE '2024-05-01'
    if not words.at_text():
        number = _WHOLE.fullmatch(words.number())
        if number is None:
            words.fault("expected a whole number")
        return str(int(number[1]))
    value = words.literal()
    if isinstance(value, bool):
        return str(value).lower()
    if type(value) is datetime.date:
        return value.isoformat()
    is_known_text = value is None or (type(value) is int and kind is None)
    if isinstance(value, str):
        is_known_text = kind is None or _UNCHANGED_TEXTS[kind].fullmatch(value) is not None
    if not is_known_text:
        words.fault(f"expected a text, a whole number or a date, and not {value!r}")
    return value if value is None else str(value)


def _options(words: Words) -> dict[str, str]:
    """Parse the options WITH (...) after the table's name; empty if there are none."""
    if not words.at("WITH", "("):  # this WITH belongs to a query
        return {}
    words.expect("WITH")
    return properties_of(words)


def _alias(words: Words, *stop_words: str) -> str | None:
    """Parse an alias, with or without AS. None if there is none because one of the words follows."""
    if words.take("AS"):
        return words.part()
    return None if any(words.at(word) for word in stop_words) else words.part()


def _columns(words: Words) -> tuple[str, ...]:
    """Parse names between parentheses."""
    words.expect("(")
    names = [words.part()]
    while words.take(","):
        names.append(words.part())
    words.expect(")")
    return tuple(names)


# ---------------------------------------------------------------- the query of an INSERT


def _text_before_insert(words: Words) -> str:
    """Return WITH or FROM, which may stand before INSERT and belong to its query; empty if there is neither."""
    word = next((word for word in ("WITH", "FROM") if words.take(word)), None)
    return "" if word is None else f"{word} {words.text_until(*_INSERTS)}"


def _with_text_before(query: WrittenQuery, text_before: str) -> WrittenQuery:
    """Return the query with the text that stood before INSERT."""
    if not text_before:
        return query
    first, *other_pieces = query.pieces
    # A query that begins with WITH goes into parentheses, because the text before may have a WITH too. If both define the same
    # name, the inner WITH takes precedence.
    has_with = str(first).lstrip().upper().startswith("WITH")
    pieces = (f"{text_before} (", first, *other_pieces, ")") if has_with else (f"{text_before} ", first, *other_pieces)
    # In FROM t INSERT ... SELECT, the rows come from the text before.
    rows_query = query.rows or ("SELECT *" if text_before.startswith("FROM") else "")
    return replace(query, pieces=pieces, rows=rows_query and f"{text_before} {rows_query}")


def _at_query(words: Words) -> bool:
    """Return whether a query begins here, with or without parentheses. In a list of columns a column may have the name of a word
    in _QUERIES: then a comma or the end of the list follows."""
    ahead = 0
    while words.at("(", ahead=ahead):
        ahead += 1
    is_name = ahead > 0 and (words.at(",", ahead=ahead + 1) or words.at(")", ahead=ahead + 1))
    return not is_name and any(words.at(word, ahead=ahead) for word in _QUERIES)


def _aliased_query(spark: SparkSession, words: Words) -> WrittenQuery:
    """Parse the remaining text. An alias may follow a query in parentheses."""
    if not words.at("("):
        return _query(spark, words)
    text = words.in_parentheses()
    alias = None if words.is_over() else _alias(words)
    words.end()
    return replace(_split_at_defaults(spark, text), alias=alias)


def _query(spark: SparkSession, words: Words) -> WrittenQuery:
    """Parse the remaining text as a query without an alias. Raises SyntaxFault if another INSERT follows."""
    text = words.text_until(*_INSERTS)
    words.end()
    return _split_at_defaults(spark, text)


def _split_at_defaults(spark: SparkSession, text: str) -> WrittenQuery:
    """Split a query at the values that are only the word DEFAULT: in the rows of VALUES, or in the list of a simple SELECT.

    Other queries (UNION, SELECT *, a subquery) are one piece.
    """
    words, rows_query = Words(text, binds=True), ""
    if words.take("VALUES"):
        rows = list(_rows(words))
    elif words.take("SELECT"):
        # The list of a SELECT counts as one row.
        rows = [list(_items(words, *((word,) for word in _AFTER_LIST)))]
        has_star = any(_STAR.search(item) for _, item in rows[0])
        if has_star or not (words.is_over() or words.at("FROM") or words.at("WHERE")):
            return WrittenQuery(spark, (text,))
        if words.take("FROM"):
            rows_query = f"SELECT * FROM {words.text_until(*((word,) for word in _AFTER_ROWS))}"
    else:
        return WrittenQuery(spark, (text,))
    width = len(rows[0])
    return WrittenQuery(spark, _pieces(text, rows, width), width, rows=rows_query)


def _pieces(text: str, rows: list[list[tuple[int, str]]], width: int) -> tuple[str | int, ...]:
    """Return the text before, between and after the words DEFAULT, and in place of each DEFAULT the position of the value in its
    row. rows: each value's position in the text, and the value. width: how many values a row has; further ones stay as they
    are."""
    pieces: list[str | int] = []
    end = 0
    for row in rows:
        for column, (start, item) in enumerate(row[:width]):
            if item.upper() == "DEFAULT":
                pieces += [text[end:start], column]
                end = start + len("DEFAULT")
    return (*pieces, text[end:])


def _rows(words: Words) -> Iterator[list[tuple[int, str]]]:
    """Yield the rows of VALUES: each value's position in the text, and the value."""
    while True:
        if words.take("("):
            yield list(_items(words))
            words.expect(")")
        else:
            yield [(words.place, words.text_until((",",)))]
        if not words.take(","):
            return


def _items(words: Words, *stop_words: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the items of a list with commas, up to one of the words: each item's position in the text, and the item."""
    while True:
        yield words.place, words.text_until((",",), *stop_words)
        if not words.take(","):
            return
