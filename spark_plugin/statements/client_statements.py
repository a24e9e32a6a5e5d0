"""SHOW PARTITIONS, SHOW CREATE TABLE, TRUNCATE, CREATE TABLE LIKE and INSERT over Spark Connect, whose clients have no parser.

    SHOW PARTITIONS shop.sales PARTITION (day = '2024-05-01')

The server gets statements that cannot be read, and reports the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_plugin.definition_statements.create_like import run_create_like
from spark_plugin.definition_statements.show_create_table import run_show_create
from spark_plugin.definition_statements.show_partitions import run_show_partitions
from spark_plugin.dml.delete_update import truncate
from spark_plugin.sql.grammar import properties_of
from spark_plugin.sql.results import nothing
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_definitions import ParsedLikeness, ParsedPartitions
from spark_plugin.sql_router import Statement
from spark_plugin.statements.client_inserts import insert_of_client, partition_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The first words of a statement that may be an INSERT.
_INSERT_WORDS = ("INSERT", "WITH", "FROM")


def run_of_client(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run SHOW PARTITIONS, SHOW CREATE TABLE, TRUNCATE, CREATE TABLE LIKE or INSERT. Returns None, and does nothing, for another
    statement, for one that cannot be read, and for one about a table that pydelta does not handle."""
    try:
        words = Words(statement.text, statement.args, binds=statement.word in _INSERT_WORDS)
        if statement.word in _INSERT_WORDS:
            return insert_of_client(spark, words)
        if words.take("SHOW", "PARTITIONS"):
            return run_show_partitions(spark, _partitions(words))
        if words.take("SHOW", "CREATE", "TABLE"):
            return _show_create(spark, words)
        if words.take("TRUNCATE", "TABLE"):
            return _truncate(spark, words)
        request = _likeness(words) if words.take("CREATE", "TABLE") else None
    except SyntaxFault:
        return None
    return None if request is None else run_create_like(spark, request)


def _partitions(words: Words) -> ParsedPartitions:
    """Parse the rest of SHOW PARTITIONS. Every column of PARTITION must have a value."""
    parts = words.name()
    values, open_columns = partition_spec(words) if words.take("PARTITION") else ({}, ())
    if open_columns:
        words.fault(f"{open_columns[0]} has no value")
    words.end()
    return ParsedPartitions(parts, values)


def _show_create(spark: SparkSession, words: Words) -> DataFrame | None:
    parts = words.name()
    words.end()
    return run_show_create(spark, parts)


def _truncate(spark: SparkSession, words: Words) -> DataFrame | None:
    target = find_target(spark, words.name())
    words.end()
    if target is None:
        return None
    truncate(spark, target.place)
    return nothing(spark)


def _likeness(words: Words) -> ParsedLikeness | None:
    """Parse the rest of CREATE TABLE LIKE. None for another CREATE TABLE."""
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    parts = words.name()
    if not words.take("LIKE"):
        return None
    source, provider, location, properties = words.name(), None, None, {}
    while not words.is_over():
        if words.take("USING"):
            provider = words.part()
        elif words.take("LOCATION"):
            location = words.string()
        elif words.take("TBLPROPERTIES"):
            properties = properties_of(words)
        else:
            words.fault()
    return ParsedLikeness(parts, source, provider, location, properties, if_not_exists)
