"""SQL as users of deltalake write it, for Spark's dialect (conditions and expressions) and for duckdb's (queries).

    spark_sql('"sold items" > int\'10\'') == "`sold items` > CAST('10' AS int)"

Names stand in double quotes or backticks in deltalake; in Spark's dialect a text in double quotes would be a string. A backslash
in a string is a character, and no escape. The rest of the SQL is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from delta_py.types.names import quoted, split_name
from delta_py.types.schema import DecimalType, PrimitiveType, StructType, type_name

_TYPES = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "real", "boolean", "string", "binary")
_TOKEN = re.compile(
    r"""(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<cast>\b\w+\s*(?='))?(?P<text>'(?:[^']|'')*')|(?P<comment>--[^\n]*)""",
    re.VERBOSE,
)
_SPARK_NAMES = {"real": "float", "integer": "int"}


def spark_sql(sql: str) -> str:
    return _TOKEN.sub(_for_spark, sql)


def _for_spark(match: re.Match[str]) -> str:
    """A name or constant of the other dialect, as Spark writes it. `DATE '2024-01-31'` becomes a cast."""
    if match["name"] is not None:
        return quoted(_inner(match["name"]))
    if match["text"] is None:
        return match[0]
    text = _inner(match["text"]).replace("\\", "\\\\").replace("'", "\\'")
    word = (match["cast"] or "").strip()
    if word.lower() in _TYPES:
        return f"CAST('{text}' AS {_SPARK_NAMES.get(word.lower(), word)})"
    return f"{match['cast'] or ''}'{text}'"


def with_lenient_casts(updates: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """SQL by column, with values that do not fit the column as null. Columns that the schema lacks, and nested ones, stay."""
    return {name: _lenient(schema, name, sql) for name, sql in updates.items()}


def _lenient(schema: StructType, name: str, sql: str) -> str:
    column = schema.find(split_name(name)[0])
    if column is None or not isinstance(column.data_type, PrimitiveType | DecimalType):
        return sql
    return f"try_cast(({sql}) AS {type_name(column.data_type)})"


def duckdb_sql(sql: str) -> str:
    return _TOKEN.sub(_for_duckdb, sql)


def _for_duckdb(match: re.Match[str]) -> str:
    name = match["name"]
    if name is None or name.startswith('"'):
        return match[0]
    escaped = _inner(name).replace('"', '""')
    return f'"{escaped}"'


def _inner(quoted_text: str) -> str:
    """A name or string without its quotes, doubled ones as one."""
    quote = quoted_text[0]
    return quoted_text[1:-1].replace(quote * 2, quote)
