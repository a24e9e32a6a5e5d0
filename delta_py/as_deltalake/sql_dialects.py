"""SQL as users of deltalake write it, for Spark's dialect (conditions and expressions) and for duckdb's (queries).

    spark_sql('"sold items" > int\'10\'') == "`sold items` > CAST('10' AS int)"

deltalake quotes names with double quotes or backticks; in Spark's dialect, double quotes would make a string. In deltalake, a
backslash in a string is a normal character; in Spark's dialect it begins an escape. Functions that have other results in Spark's
dialect are replaced by ones with the same results, or refused. The rest of the SQL is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from delta_py.errors import DeltaError, ExpressionError
from delta_py.expressions.coercion import INTEGRAL
from delta_py.expressions.parse import parse_expression, type_of
from delta_py.expressions.tree import Call, Cast, Expression, Literal, nodes_of
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import DecimalType, PrimitiveType, StructType, type_name

# Types that, before a text, make it a constant of the type: `int'10'`.
_CONSTANT_TYPES = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "real", "boolean", "string", "binary")
_TOKEN = re.compile(
    r"""(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<cast>\b\w+\s*(?='))?(?P<text>'(?:[^']|'')*')|(?P<comment>--[^\n]*)""",
    re.VERBOSE,
)
_SPARK_NAMES = {"real": "float", "integer": "int"}

# Calls and operators that may have another result in Spark's dialect.
_CALL = re.compile(r"\b(log|concat|regexp_replace|initcap|substr|substring)\s*\(", re.IGNORECASE)
_DAY_OF_WEEK = re.compile(r"\bextract\s*\(\s*dow\b", re.IGNORECASE)
_WHOLE_QUOTIENT = re.compile(r"(?<![\w.])\d+\s*/\s*\d+(?![\w.])")
# The arguments part, difference and cure of _other_result_error, for a division of whole numbers.
_DIVISION = ("a / b of whole numbers", "7 / 2 is 3 there and 3.5 here", "a div b, or a / 2.0")
_ITEM_BY_NUMBER = re.compile(r"(?<=[\w\])])\s*\[\s*\d+\s*\]")


def spark_sql(sql: str) -> str:
    """deltalake's SQL in Spark's dialect. Raises ExpressionError for SQL that would have another result than in deltalake."""
    return _TOKEN.sub(_token_for_spark, _replace_functions(sql))


def spark_condition(sql: str, schema: StructType) -> str:
    """As spark_sql, for a condition on rows of the schema, or a new value of them. It also refuses the division of whole-number
    columns: its result is a whole number in deltalake, and a fraction here."""
    condition = spark_sql(sql)
    _refuse_division_of_whole_numbers(condition, parse_expression(condition, schema), schema)
    return condition


def spark_expression(sql: str, schema: StructType) -> str:
    """As spark_condition, but SQL with a wrong name or type is returned without a check of its divisions: the operation that runs
    the SQL then raises a better error."""
    expression = spark_sql(sql)
    try:
        tree = parse_expression(expression, schema)
    except DeltaError:
        return expression
    _refuse_division_of_whole_numbers(expression, tree, schema)
    return expression


def _refuse_division_of_whole_numbers(sql: str, tree: Expression, schema: StructType) -> None:
    """Raises ExpressionError for a division of two whole numbers anywhere in the SQL. tree: the parsed SQL."""
    quotients = (node for node in nodes_of(tree) if isinstance(node, Call) and node.name == "/")
    if any(all(_may_be_whole_number(operand, schema) for operand in quotient.arguments) for quotient in quotients):
        raise _other_result_error(sql, *_DIVISION)


def _may_be_whole_number(operand: Expression, schema: StructType) -> bool:
    """Whether the operand of a division may have been a whole number in the SQL. Parsing casts the operands of / to double, as
    Spark does. A cast column still shows its type; of a constant it is not known whether it was 2 or 2e0, so both count."""
    if isinstance(operand, Literal):
        return isinstance(operand.value, float) and operand.value.is_integer()
    return type_of(operand.operand if isinstance(operand, Cast) else operand, schema) in INTEGRAL


def _replace_functions(sql: str) -> str:
    """The SQL with each function replaced whose result differs between deltalake and Spark's dialect, by one that returns
    deltalake's result. Raises ExpressionError if there is no such function."""
    # The SQL with names, texts and comments masked, so that only code is searched. Positions are the same in both.
    code = _TOKEN.sub(lambda match: "_" * len(match[0]), sql)
    if _DAY_OF_WEEK.search(code):
        raise _other_result_error(sql, "extract(dow FROM day)", "Sunday is 0 there and 1 here", "dayofweek(day) - 1")
    if _WHOLE_QUOTIENT.search(code):
        raise _other_result_error(sql, *_DIVISION)
    if _ITEM_BY_NUMBER.search(code):
        raise _other_result_error(sql, "items[1]", "the first item is 1 there and 0 here", "element_at(items, 1)")
    # From the last call to the first: a replacement moves only the text after it, so the positions of earlier calls stay right.
    for call in reversed(list(_CALL.finditer(code))):
        name, arguments = call[1].lower(), _arguments(code, call.end())
        if name == "log" and len(arguments) == 1:
            sql = f"{sql[: call.start()]}log10({sql[call.end() :]}"
        elif name == "concat":
            sql = f"{sql[: call.start()]}concat_ws('', {sql[call.end() :]}"
        elif name == "regexp_replace":
            raise _other_result_error(sql, name, "it replaces only the first match there", "a pattern for the whole text")
        elif name == "initcap":
            raise _other_result_error(sql, name, "words end at every sign there and at blanks here", "upper and substr")
        elif name in ("substr", "substring") and len(arguments) > 1:
            start_text = arguments[1].strip()
            if not start_text.lstrip("+0"):  # zero
                raise _other_result_error(
                    sql, f"{name} from 0", "0 is the place before the first character there", "1 as the begin"
                )
            if start_text.startswith("-"):
                what = f"{name} from a negative number"
                raise _other_result_error(sql, what, "it counts from the end here only", "right(text, length)")
    return sql


def _arguments(code: str, start_position: int) -> list[str]:
    """The arguments of a call. code: SQL without texts and quoted names, which may contain commas and parentheses.
    start_position: the position after the opening parenthesis."""
    depth, argument_start = 0, start_position
    arguments = []
    for position in range(start_position, len(code)):
        character = code[position]
        if character in "([":
            depth += 1
        elif character in ")]" and depth:
            depth -= 1
        elif character == ")" or (character == "," and not depth):
            arguments.append(code[argument_start:position])
            argument_start = position + 1
            if character == ")":
                break
    return arguments


def _other_result_error(sql: str, part: str, difference: str, cure: str) -> ExpressionError:
    """part: the form of SQL that has another result. difference: the two results. cure: what to write instead."""
    return ExpressionError(
        f"{part} in {sql!r} has another result in deltalake than here: {difference}. Nothing was read or written. Use {cure}."
    )


def _token_for_spark(match: re.Match[str]) -> str:
    """A name, text or comment of deltalake's SQL, in Spark's dialect. A type's name before a text becomes a cast: `int'10'`.
    match: of _TOKEN."""
    if match["name"] is not None:
        return quoted(_unquoted(match["name"]))
    if match["text"] is None:
        return match[0]
    text = _unquoted(match["text"]).replace("\\", "\\\\").replace("'", "\\'")
    word = (match["cast"] or "").strip()
    if word.lower() in _CONSTANT_TYPES:
        return f"CAST('{text}' AS {_SPARK_NAMES.get(word.lower(), word)})"
    return f"{match['cast'] or ''}'{text}'"


def with_lenient_casts(updates: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """The updates (SQL by column), changed so that a value that does not fit its column becomes null. Updates of columns that the
    schema lacks, and of columns that are structs, arrays or maps, do not change."""
    return {name: _lenient_cast(schema, name, sql) for name, sql in updates.items()}


def _lenient_cast(schema: StructType, name: str, sql: str) -> str:
    """`'x'` -> `try_cast(('x') AS int)` for a column of the type int."""
    column = schema.find(split_name(name)[0])
    if column is None or not isinstance(column.data_type, PrimitiveType | DecimalType):
        return sql
    return f"try_cast(({sql}) AS {type_name(column.data_type)})"


def duckdb_sql(sql: str) -> str:
    """deltalake's SQL for duckdb: names in backticks get double quotes."""
    return _TOKEN.sub(_token_for_duckdb, sql)


def _token_for_duckdb(match: re.Match[str]) -> str:
    name = match["name"]
    if name is None or name.startswith('"'):
        return match[0]
    escaped = _unquoted(name).replace('"', '""')
    return f'"{escaped}"'


def _unquoted(quoted_text: str) -> str:
    """A name or string without the quotes around it. Doubled quotes inside become single ones."""
    quote = quoted_text[0]
    return quoted_text[1:-1].replace(quote * 2, quote)
