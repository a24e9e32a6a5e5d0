"""A tree -> SQL text in Spark's dialect, for messages and explain(). If a resolved tree's text is parsed against the same schema,
the result is the same tree."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

from delta_py.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StringMatch,
)
from delta_py.types.names import quoted
from delta_py.types.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    SHORT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    type_name,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Names that would be read as something else without backticks.
_RESERVED_WORDS = frozenset(
    {
        "and",
        "or",
        "not",
        "in",
        "is",
        "like",
        "ilike",
        "rlike",
        "regexp",
        "between",
        "null",
        "true",
        "false",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "interval",
        "div",
        "date",
        "timestamp",
        "timestamp_ntz",
        "timestamp_ltz",
        "x",
        "r",
        "from",
        "for",
        "escape",
        "distinct",
        "select",
        "with",
    }
)
_INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "div": "DIV", "&": "&", "|": "|", "^": "^", "<<": "<<", ">>": ">>"}
_INTEGRAL_SUFFIXES: dict[DataType, str] = {BYTE: "Y", SHORT: "S", LONG: "L"}


def to_sql(expression: Expression) -> str:
    """The expression as SQL text."""
    match expression:
        case Column(path):
            return ".".join(map(_quote_if_needed, path))
        case Literal(value, data_type):
            return _literal(value, data_type)
        case Comparison(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case In(operand, options):
            return f"{_operand(operand)} IN ({', '.join(map(to_sql, options))})" if options else "false"
        case IsNull(operand):
            return f"{_operand(operand)} IS NULL"
        case StringMatch(kind, operand, pattern):
            if kind == "like":
                return f"{_operand(operand)} LIKE {_text_literal(pattern)}"
            return f"{kind}({to_sql(operand)}, {_text_literal(pattern)})"
        case Not(IsNull(operand)):
            return f"{_operand(operand)} IS NOT NULL"
        case Not(Comparison("=", left, right)):
            return f"{_operand(left)} <> {_operand(right)}"
        case Not(operand):
            return f"NOT {_operand(operand)}"
        case And(operands):
            return " AND ".join(map(_operand, operands)) if operands else "true"
        case Or(operands):
            return " OR ".join(map(_operand, operands)) if operands else "false"
        case Cast(operand, data_type):
            return f"cast({to_sql(operand)} AS {type_name(data_type)})"
        case Call(name, arguments):
            return _call(name, arguments)


def _operand(expression: Expression) -> str:
    """The text of an operand, in parentheses unless it needs none."""
    text = to_sql(expression)
    if isinstance(expression, Column | Literal | Cast):
        return text
    if isinstance(expression, Call) and (expression.name == "case" or expression.name not in _INFIX):
        return text
    if isinstance(expression, StringMatch) and expression.kind != "like":
        return text
    return f"({text})"


def _call(name: str, arguments: tuple[Expression, ...]) -> str:
    """The text of a call, in the syntax that SQL has for it: an operator, CASE, a function with words between its arguments."""
    if name in _INFIX and len(arguments) == 2:
        return f"{_operand(arguments[0])} {_INFIX[name]} {_operand(arguments[1])}"
    if name == "-" and len(arguments) == 1:
        return f"- ({to_sql(arguments[0])})"
    if name == "case":
        branch_count = len(arguments) // 2
        parts = [f"WHEN {to_sql(arguments[2 * i])} THEN {to_sql(arguments[2 * i + 1])}" for i in range(branch_count)]
        else_part = [f"ELSE {to_sql(arguments[-1])}"] if len(arguments) % 2 else []
        return " ".join(["CASE", *parts, *else_part, "END"])
    if name == "try_cast" and isinstance(arguments[1], Literal):
        return f"try_cast({to_sql(arguments[0])} AS {type_name(arguments[1].data_type)})"
    if name == "~":
        return f"~ ({to_sql(arguments[0])})"
    if name == "element":
        return f"{_operand(arguments[0])}[{to_sql(arguments[1])}]"
    if name == "get_field" and isinstance(arguments[1], Literal):
        return f"{_operand(arguments[0])}.{_quote_if_needed(str(arguments[1].value))}"
    if name in ("trim", "ltrim", "rtrim") and len(arguments) == 2:
        side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[name]
        return f"trim({side} {to_sql(arguments[1])} FROM {to_sql(arguments[0])})"
    return f"{name}({', '.join(map(to_sql, arguments))})"


def _quote_if_needed(name: str) -> str:
    """The name, in backticks if SQL would read it as something else."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED_WORDS:
        return name
    return quoted(name)


# ---------------------------------------------------------------- literals


def _literal(value: Any, data_type: DataType) -> str:
    """The text of a constant of this type. A cast gives the type if no literal has it."""
    if value is None:
        return "NULL" if data_type == VOID else f"cast(NULL AS {type_name(data_type)})"
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text_literal(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case int():
            return f"{value}{_INTEGRAL_SUFFIXES.get(data_type, '')}"
        case float():
            return _floating_literal(value, data_type)
        case datetime.datetime():
            return _timestamp_literal(value, data_type)
        case datetime.date():
            return f"date'{value.isoformat()}'"
    # The type of a decimal literal follows from its digits; another type needs a cast.
    if isinstance(data_type, DecimalType):
        return f"cast({value:f}BD AS {type_name(data_type)})" if _literal_type(value) != data_type else f"{value:f}BD"
    return repr(value)


def _literal_type(value: Any) -> DecimalType:
    """The type that Spark gives to the decimal as a literal: its own digits."""
    digits, scale = len(value.as_tuple().digits), max(0, -value.as_tuple().exponent)
    return DecimalType(max(digits, scale, 1), scale)


def _floating_literal(value: float, data_type: DataType) -> str:
    if not math.isfinite(value) or data_type not in (FLOAT, DOUBLE):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"cast('{name}' AS {type_name(data_type)})"
    return f"{value!r}{'F' if data_type == FLOAT else 'D'}"


def _timestamp_literal(value: datetime.datetime, data_type: DataType) -> str:
    """An instant gets a zone, so that the text means the same in each session's time zone."""
    text = value.replace(tzinfo=None).isoformat(" ")
    if data_type == TIMESTAMP_NTZ:
        return f"timestamp_ntz'{text}'"
    return f"timestamp'{text}{'+00:00' if data_type in (TIMESTAMP, DATE) else ''}'"


def _text_literal(value: str) -> str:
    """Quoted for Spark, where backslashes escape. `\\%` and `\\_` keep their backslash when Spark reads them."""
    escaped = re.sub(r"\\(?![%_])", r"\\\\", value).replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"
