"""SHOW CREATE TABLE: the statement that creates an empty copy of a Delta table.

    SHOW CREATE TABLE shop.sales

It has everything that CREATE TABLE can express: columns with their rules and comments, constraints, partitioning, clustering, the
table's comment, properties and features, and the location of an external table. Each text from the log is exactly one value or
one expression in it, even if it was written to be more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from delta_py.definition.log_properties import properties_of_new
from delta_py.errors import ExpressionError, UnsupportedOperationError
from delta_py.expressions.sql_text.dialect import parse_syntax_tree, tokens
from delta_py.protocol import identity_columns
from delta_py.protocol.clustering import logical_clustering_paths
from delta_py.row_rules.row_constraints import CHECK_PREFIX
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import is_name_in_catalog
from delta_py.types.char_types import CharType, CharTypes, char_types
from delta_py.types.column_rules import DEFAULT, GENERATION, INVARIANT
from delta_py.types.names import quoted
from delta_py.types.schema import StructField
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog
from spark_plugin.dml.jobs import load_newest
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_definitions import shown_table
from spark_plugin.sql_internals import ParsedPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMN = "createtab_stmt"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_NAME = re.compile(r"[a-z_]+( collate \w+|\([\w, ]+\)| [a-z ]+)?", re.IGNORECASE)


def show_create_table(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Return one row with the text in the column createtab_stmt; None for another statement and for a table that is not
    pydelta's. Raises UnsupportedOperationError for a rule that is no expression, and the errors of reads."""
    parts = shown_table(plan)
    return None if parts is None else run_show_create(spark, parts)


def run_show_create(spark: SparkSession, parts: tuple[str, ...]) -> DataFrame | None:
    """Run a statement that was parsed elsewhere. parts: of the table's name. Returns None for a table that is not pydelta's."""
    target = find_target(spark, parts)
    if target is None:
        return None
    snapshot = load_newest(spark, target.place)
    text = "\n".join([f"CREATE TABLE {_table_name(spark, target)} {_columns(snapshot)}", *_clauses(spark, snapshot, target)])
    if "${" in text:
        raise _cannot_show_error("a name, path or rule of the table", "${", "Spark would put a setting or variable in its place")
    return spark.createDataFrame([(text + "\n",)], f"{_COLUMN} string")


def _table_name(spark: SparkSession, target: Target) -> str:
    """Return the table's name as SQL text."""
    return f"{FORMAT}.{quoted(target.place.url)}" if target.name is None else catalog.full_name(spark, target.name)


def _clauses(spark: SparkSession, snapshot: Snapshot, target: Target) -> Iterator[str]:
    """Yield the clauses that follow the columns, in the order of CREATE TABLE."""
    metadata = snapshot.metadata
    entry = None if target.name is None else catalog.find(spark, target.name)
    yield f"USING {FORMAT if entry is None else entry.provider}"
    if metadata.partition_columns:
        yield f"PARTITIONED BY ({', '.join(map(_name, metadata.partition_columns))})"
    clustering_paths = logical_clustering_paths(snapshot.schema, snapshot.clustering_domain())
    if clustering_paths:
        yield f"CLUSTER BY ({', '.join('.'.join(map(_name, path)) for path in clustering_paths)})"
    if metadata.description is not None:
        yield f"COMMENT {_text(metadata.description)}"
    if entry is not None and entry.external and not is_name_in_catalog(target.place.url):
        yield f"LOCATION {_text(target.place.url)}"
    properties = _properties(snapshot)
    if properties:
        property_lines = ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in sorted(properties.items()))
        yield f"TBLPROPERTIES (\n{property_lines})"


def _properties(snapshot: Snapshot) -> dict[str, str]:
    """Return all properties except the CHECK constraints, which the statement has next to the columns."""
    return {name: value for name, value in properties_of_new(snapshot).items() if not name.lower().startswith(CHECK_PREFIX)}


# ---------------------------------------------------------------- columns


def _columns(snapshot: Snapshot) -> str:
    """Return the columns and CHECK constraints in parentheses, one on each line."""
    spark_fields = to_spark_schema(snapshot.schema).fields
    lines = [_column(field, spark_field) for field, spark_field in zip(snapshot.schema.fields, spark_fields, strict=True)]
    for key, text in sorted(snapshot.metadata.configuration.items()):
        if key.lower().startswith(CHECK_PREFIX):
            name = key[len(CHECK_PREFIX) :]
            lines.append(f"CONSTRAINT {_name(name)} CHECK ({_expression(text, f'constraint {name}')})")
    return "(\n" + ",\n".join(f"  {line}" for line in lines) + ")" if lines else "()"


def _column(field: StructField, spark_field: spark_types.StructField) -> str:
    """Return the definition of a column, such as `id BIGINT NOT NULL COMMENT 'key'`. spark_field: the same column in Spark's
    schema."""
    if INVARIANT in field.metadata:
        raise _cannot_show_error(
            f"column {field.name}", str(field.metadata[INVARIANT]), "a CREATE TABLE makes no column invariants"
        )
    words = [_name(field.name), _type(spark_field.dataType, char_types(field, strict=True))]
    if not field.nullable:
        words.append("NOT NULL")
    identity = identity_columns.identity_of(field)
    if identity is not None:
        kind = "BY DEFAULT" if identity.explicit else "ALWAYS"
        words.append(f"GENERATED {kind} AS IDENTITY (START WITH {identity.start} INCREMENT BY {identity.step})")
    if GENERATION in field.metadata:
        words.append(f"GENERATED ALWAYS AS ({_expression(field.metadata[GENERATION], f'column {field.name}')})")
    if DEFAULT in field.metadata:
        words.append(f"DEFAULT {_expression(field.metadata[DEFAULT], f'column {field.name}')}")
    return " ".join([*words, *_comment(spark_field)])


def _type(data_type: spark_types.DataType, chars: CharTypes) -> str:
    """Return the type without nullability of list elements and map values, which SQL cannot express. chars: which parts are CHAR
    or VARCHAR, nested as the type: a mapping by field for a struct, a tuple for a list or map, None for neither."""
    match data_type, chars:
        case spark_types.StructType(), _:
            chars_of_fields = chars if isinstance(chars, Mapping) else {}
            return f"STRUCT<{', '.join(_field(field, chars_of_fields.get(field.name)) for field in data_type.fields)}>"
        case spark_types.ArrayType(), _:
            (element,) = chars if isinstance(chars, tuple) else (None,)
            return f"ARRAY<{_type(data_type.elementType, element)}>"
        case spark_types.MapType(), _:
            key, value = chars if isinstance(chars, tuple) else (None, None)
            return f"MAP<{_type(data_type.keyType, key)}, {_type(data_type.valueType, value)}>"
        case _, CharType(kind, length):
            return f"{kind.upper()}({length})"
    name = data_type.simpleString()
    if not _TYPE_NAME.fullmatch(name):
        raise _cannot_show_error("a column's type", name, "it names no type")
    return name.upper()


def _field(field: spark_types.StructField, chars: CharTypes) -> str:
    """Return the definition of a struct's field, such as `city: STRING NOT NULL`. chars: as in _type."""
    words = [f"{_name(field.name)}: {_type(field.dataType, chars)}", *([] if field.nullable else ["NOT NULL"]), *_comment(field)]
    return " ".join(words)


def _comment(field: spark_types.StructField) -> list[str]:
    comment = (field.metadata or {}).get("comment")
    return [] if comment is None else [f"COMMENT {_text(str(comment))}"]


# ---------------------------------------------------------------- texts


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def _text(value: str) -> str:
    """Return a constant on one line, in which Spark substitutes no variables."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("${", "$\\{")
    return f"'{escaped}'"


def _expression(text: object, owner: str) -> str:
    """Return a text of the log as an expression of the statement. Checks that the text cannot extend into the rest of the
    statement: it is one expression, without comments. owner: the column or constraint with this text, for errors."""
    sql = str(text)
    try:
        parse_syntax_tree(sql)
        end = 0  # a text between two tokens that is not blank is a comment
        for token in tokens(sql):
            if sql[end : token.start].strip():
                raise _cannot_show_error(owner, sql, "it holds a comment")
            end = token.end + 1
    except ExpressionError as error:
        raise _cannot_show_error(owner, sql, "it is no expression that pydelta can read") from error
    if sql[end:].strip():
        raise _cannot_show_error(owner, sql, "it holds a comment")
    return sql


def _cannot_show_error(what: str, text: str, reason: str) -> UnsupportedOperationError:
    """what: the part of the table that has the text, such as `the default of column id`."""
    return UnsupportedOperationError(
        f"SHOW CREATE TABLE cannot tell {what}: {text[:200]!r}, because {reason}. DESCRIBE DETAIL tells the table's "
        "properties, and DESCRIBE its columns."
    )
