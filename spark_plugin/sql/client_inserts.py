"""INSERT ... REPLACE USING and REPLACE ON over Spark Connect, whose servers know no way to write these to a table.

    INSERT INTO shop.sales REPLACE USING (id) SELECT ...
    INSERT INTO shop.sales AS t REPLACE ON t.id = s.id (SELECT ...) AS s

A client has no parser: only where condition and query begin is found here. Other INSERTs are the server's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_plugin.sql.inserts import write_insert
from spark_plugin.sql.syntax import Words
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_definitions import ParsedInsert, WrittenQuery, WrittenReplaceOn
from spark_plugin.sql_internals import ParsedTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERIES = ("SELECT", "VALUES", "TABLE", "FROM", "WITH")
_BEGINNINGS = (*((word,) for word in _QUERIES), *(("(", word) for word in _QUERIES))


def insert_of_client(spark: SparkSession, words: Words) -> DataFrame | None:
    """words: behind INSERT, with constants in the place of parameters. None, and nothing done, for another INSERT, and for one
    into no table of ours. Raises SyntaxFault for what cannot be read, and what inserts.insert_rows raises."""
    evolves = words.take("WITH", "SCHEMA", "EVOLUTION")
    if not words.take("INTO"):
        return None
    words.take("TABLE")
    parts, alias = words.name(), _alias(words, "REPLACE", "BY", "(")
    by_name = words.take("BY", "NAME")
    columns = _columns(words) if not by_name and words.at("(") else ()
    using = _columns(words) if words.take("REPLACE", "USING") else ()
    on = WrittenReplaceOn(words.text_until(*_BEGINNINGS), alias) if not using and words.take("REPLACE", "ON") else None
    if not using and on is None:
        return None
    query = _query(spark, words)
    target = find_target(spark, parts)
    if target is None:
        return None
    insert = ParsedInsert(
        ParsedTarget(parts, alias),
        query,
        columns=columns,
        by_name=by_name,
        replaces_using=using,
        replaces_on=on,
        evolves=evolves,
    )
    return write_insert(spark, target, insert, alias if alias is not None or target.name is None else parts[-1])


def _alias(words: Words, *behind: str) -> str | None:
    if words.take("AS"):
        return words.part()
    return None if any(words.at(word) for word in behind) else words.part()


def _columns(words: Words) -> tuple[str, ...]:
    words.expect("(")
    names = [words.part()]
    while words.take(","):
        names.append(words.part())
    words.expect(")")
    return tuple(names)


def _query(spark: SparkSession, words: Words) -> WrittenQuery:
    """The rest. An alias may stand behind a query in parentheses."""
    if not words.at("("):
        text = words.text_until()
        words.end()
        return WrittenQuery(spark, text)
    text = words.in_parentheses()
    alias = None if words.is_over() else _alias(words)
    words.end()
    return WrittenQuery(spark, text, alias)
