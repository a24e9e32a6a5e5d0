"""Reads conditions of a Spark Connect client, as far as that works without Spark's analyzer, which is on the server.

    needed = rows_selected_by(spark, condition, schema, alias)       # which rows, to choose the files
    text = condition_text(condition)                          # for the history

A Column of a client is a small tree of names, constants, functions and pieces of SQL text. Comparisons of columns with
constants and their combinations (and, or, not, in, between, is null, like) mean the same here as in Spark. Anything else is
ignored: files are chosen without it.
"""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import DateType, DecimalType, TimestampType

from delta_py.errors import DeltaError
from delta_py.expressions import tree
from delta_py.scan.char_padding import ends_in_char
from delta_py.types.names import split_name
from delta_py.types.schema import DataType, StructType, find_path, primitive_from_name
from delta_py.types.schema import DecimalType as DeltaDecimal
from spark_plugin.dml.target_names import Alias, without_alias
from spark_plugin.internals.connect_internals import (
    ClientCast,
    ClientFunction,
    ClientLiteral,
    ClientName,
    ClientSql,
    client_expression,
    client_node,
)
from spark_plugin.options.settings import conf, read_otherwise
from spark_plugin.pruning.needed_rows import NeededRows
from spark_plugin.schema_conversion import delta_type

_COMPARISONS = {"==": "=", "=": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_STRING_MATCHES = {"startswith": "startswith", "endswith": "endswith", "contains": "contains"}
# The types of constants that are read, by pyspark's DataType.typeName. Decimals are handled separately.
_CONSTANT_TYPES = frozenset(
    {
        *("void", "boolean", "byte", "short", "integer", "long", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    }
)
_STANDARD_NODES = (tree.And, tree.Or, tree.Not, tree.Comparison, tree.In, tree.IsNull, tree.StringMatch)
_VALUES = (tree.Column, tree.Literal, tree.Cast)
_MAX_DECIMAL_PRECISION = 38
_EPOCH = dt.datetime(1970, 1, 1)


def rows_selected_by(spark: Any, condition: Column | None, schema: StructType, alias: Alias) -> NeededRows:
    """Return which rows of the table a condition selects: those for which its readable parts are true.

    alias: of the table, which may stand before column names. Without ANSI mode Spark compares differently than pydelta does, so
    the result is that nothing is known. The result is exact if all parts of the condition are readable.
    """
    if condition is None or (conf(spark, "spark.sql.ansi.enabled") or "true").lower() != "true":
        return NeededRows(None)
    try:
        parts = tree.conjuncts(_Reader(schema, alias, spark).read_condition(client_expression(condition)))
    except (_Unreadable, DeltaError):
        return NeededRows(None)
    readable = tuple(part for part in parts if _has_one_meaning(part) and not _compares_char(part, schema))
    return NeededRows(tree.conjunction(readable) if readable else None, exact=len(readable) == len(parts))


def condition_text(condition: Column) -> str:
    """Return the condition as SQL text, or in the client's own notation if it cannot be read."""
    expression = client_expression(condition)
    match client_node(expression):
        case ClientSql(text):
            return text
    parsed = _tree_of(condition, None)
    return str(expression) if parsed is None else _sql(parsed)


def is_plain(spark: Any, column: Column) -> bool:
    """Return whether the column consists only of columns, constants and comparisons: then it gives the same result for each row
    however often Spark evaluates it, and it has no subqueries."""
    parsed = _tree_of(column, spark)
    return parsed is not None and _has_one_meaning(parsed)


def key_parts(spark: Any, condition: Column) -> list[KeyPart]:
    """Return the parts of a condition, joined by AND, that consist only of columns, constants and comparisons. Returns an empty
    list for a condition that cannot be parsed, and leaves out parts whose SQL text the server would parse differently: the parts
    go back to the server as text.
    """
    parsed = _tree_of(condition, spark)
    plain_parts = [] if parsed is None else [part for part in tree.conjuncts(parsed) if _has_one_meaning(part)]
    parts = []
    for part in plain_parts:
        text = _sql(part)
        if read_otherwise(spark, text):
            continue
        match part:
            case tree.Comparison(op, tree.Column() as left, tree.Column() as right):
                parts.append(KeyPart(text, (left.path, right.path), op))
            case _:
                parts.append(KeyPart(text, tuple(sorted(tree.columns_of(part)))))
    return parts


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A part of a condition. text: its SQL. columns: the names in it, each as a path. comparison: the operator if the part
    compares two columns, which `columns` has from left to right; otherwise None."""

    text: str
    columns: tuple[tuple[str, ...], ...]
    comparison: str | None = None


def _tree_of(column: Column, spark: Any) -> tree.Expression | None:
    """Return the tree of a column, with its names as the user wrote them; None if it cannot be read. spark: None if the session
    is not known."""
    try:
        return _Reader(StructType(()), (), spark).read(client_expression(column))
    except (_Unreadable, DeltaError):
        return None


def _sql(expression: tree.Expression) -> str:
    from delta_py.expressions.sql_text.to_sql import to_sql

    return to_sql(expression)


class _Unreadable(Exception):
    """The condition contains something that this module does not read."""


@dataclass(frozen=True)
class _Reader:
    """Converts expressions of a client to trees. schema, alias: of the table; both are empty if no names are resolved. spark:
    None if the session is not known; then constants that depend on its time zone are not read."""

    schema: StructType
    alias: Alias
    spark: Any

    @cached_property
    def _zone(self) -> str:
        """Read the time zone once, because it is a call to the server, and only if some constant depends on it."""
        if self.spark is None:
            raise _Unreadable
        return conf(self.spark, "spark.sql.session.timeZone") or "UTC"

    def read_condition(self, expression: Any) -> tree.Expression:
        """Return the tree of a condition, with its names resolved in the schema. Raises _Unreadable, and DeltaError for a name
        that the schema lacks."""
        from delta_py.expressions.resolve import resolve_condition  # few sessions use Spark Connect

        named = tree.transform_columns(self.read(expression), lambda path: tree.Column(without_alias(path, self.alias)))
        return resolve_condition(named, self.schema, self._zone).expression

    def read(self, expression: Any) -> tree.Expression:
        """Return the tree of an expression, with its names as the user wrote them. Raises _Unreadable."""
        match client_node(expression):
            case ClientSql(text):
                return self._parse_sql(text)
            case ClientName(name):
                return tree.Column(split_name(name))
            case ClientLiteral(value, data_type):
                return _literal(value, data_type)
            case ClientCast(operand, data_type):
                return tree.Cast(self.read(operand), delta_type(data_type))
            case ClientFunction(name, operands):
                return self._read_function(name.lower(), [self.read(operand) for operand in operands])
        raise _Unreadable

    def _parse_sql(self, text: str) -> tree.Expression:
        """Return the tree of SQL text, with its names as the user wrote them. Raises _Unreadable, and DeltaError for text that
        pydelta does not support."""
        from delta_py.expressions.resolve import resolve
        from delta_py.expressions.sql_text.from_sql import parse_sql

        # A setting may make the server parse the text differently than pydelta does.
        if self.spark is not None and read_otherwise(self.spark, text):
            raise _Unreadable

        def resolve_constants(part: tree.Expression) -> tree.Expression:
            return resolve(part, self.schema, self._zone).expression

        return parse_sql(text, self.schema, resolve_constants)

    def _read_function(self, name: str, operands: list[tree.Expression]) -> tree.Expression:
        """Return the tree of a function or operator. name: in lower case. Raises _Unreadable for all but those listed here."""
        match name, operands:
            # pydelta's own MERGE writes constant dates and times as calls of these two functions.
            case "date_from_unix_date", [tree.Literal(int(days))]:
                return _literal(days, DateType())
            case "timestamp_micros", [tree.Literal(int(micros))]:
                return _literal(micros, TimestampType())
            case "and", [left, right]:
                return tree.And((left, right))
            case "or", [left, right]:
                return tree.Or((left, right))
            case "not", [operand]:
                return tree.Not(operand)
            case "isnull", [operand]:
                return tree.IsNull(operand)
            case "isnotnull", [operand]:
                return tree.Not(tree.IsNull(operand))
            case "in", [operand, *options]:
                constants = tuple(option for option in options if isinstance(option, tree.Literal))
                if len(constants) == len(options):
                    return tree.In(operand, constants)
            case _, [left, right] if name in _COMPARISONS:
                return tree.Comparison(_COMPARISONS[name], left, right)
            case _, [operand, tree.Literal(str(pattern))] if name in _STRING_MATCHES:
                return tree.StringMatch(_STRING_MATCHES[name], operand, pattern)
        raise _Unreadable


def _literal(value: Any, kind: SparkType) -> tree.Literal:
    """Return a constant. value: as the client represents it, with dates as days and times as microseconds since 1970. kind: its
    type. Raises _Unreadable for other types than _CONSTANT_TYPES and decimals."""
    name = kind.typeName()
    if isinstance(kind, DecimalType) and value is not None:
        return tree.Literal(value, _decimal_type(value))
    if name not in _CONSTANT_TYPES:
        raise _Unreadable
    data_type = primitive_from_name(name)
    if value is not None:
        match name:
            case "date":
                value = (_EPOCH + dt.timedelta(days=value)).date()
            case "timestamp":
                value = (_EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=dt.UTC)
            case "timestamp_ntz":
                value = _EPOCH + dt.timedelta(microseconds=value)
    return tree.Literal(value, data_type)


def _decimal_type(value: decimal.Decimal) -> DataType:
    """Return a type as wide as the number: a client declares all decimals as decimal(38,18)."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    # The exponent of NaN and infinity is no number.
    if not isinstance(exponent, int) or exponent > 0 or max(len(digits), -exponent) > _MAX_DECIMAL_PRECISION:
        raise _Unreadable
    return DeltaDecimal(max(len(digits), -exponent), -exponent)


def _has_one_meaning(part: tree.Expression) -> bool:
    """Return whether the part means the same here and in every session: it has only columns, constants, casts of these, and the
    operators of _STANDARD_NODES. A function may mean anything, because a user can register a function of any name.
    """
    if isinstance(part, _VALUES):
        return all(isinstance(child, _VALUES) for child in tree.children(part))
    return isinstance(part, _STANDARD_NODES) and all(_has_one_meaning(child) for child in tree.children(part))


def _compares_char(part: tree.Expression, schema: StructType) -> bool:
    """Return whether the part names a CHAR column: Spark compares its texts including the blanks that pad them."""
    return any(ends_in_char(find_path(schema, path)) for path in tree.columns_of(part))
