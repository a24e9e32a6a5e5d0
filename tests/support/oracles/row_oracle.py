"""Expressions evaluated one row at a time in plain Python, by the rules of SQL: slow, obvious, no Arrow.

A row is a dict of Python values by column name; nested columns are dicts. None is null. If ANSI SQL refuses a value, Refused is
raised.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from functools import partial
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
from delta_py.types.schema import DATE, STRING, TIMESTAMP, PrimitiveType

RANGES = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}


class Refused(Exception):
    """The row makes the expression fail."""


def value_of(expression: Expression, row: Mapping[str, Any]) -> Any:
    ask = partial(value_of, row=row)
    match expression:
        case Column(path):
            value: Any = row
            for name in path:
                value = None if value is None else value[name]
            return value
        case Literal(value, _):
            return value
        case Comparison("<=>", left, right):
            a, b = ask(left), ask(right)
            return (a is None and b is None) if a is None or b is None else order(a, b) == 0
        case Comparison(op, left, right):
            a, b = ask(left), ask(right)
            return None if a is None or b is None else holds(op, order(a, b))
        case In(operand, options):
            return is_in(ask(operand), [option.value for option in options])
        case IsNull(operand):
            return ask(operand) is None
        case StringMatch(kind, operand, pattern):
            return matches(kind, ask(operand), pattern)
        case Not(operand):
            value = ask(operand)
            return None if value is None else not value
        case And(operands):
            return logic(operands, row, stop=False)
        case Or(operands):
            return logic(operands, row, stop=True)
        case Cast(operand, data_type):
            return cast(ask(operand), data_type)
        case Call(name, arguments):
            return call(name, arguments, row)


def order(a: Any, b: Any) -> int:
    """-1, 0 or 1. NaN is equal to itself and greater than everything; text is compared by its UTF-8 bytes."""
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if math.isnan(a) or math.isnan(b):
            return int(math.isnan(a)) - int(math.isnan(b))
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    if isinstance(a, datetime.datetime) != isinstance(b, datetime.datetime):
        a, b = instant(a), instant(b)
    return (a > b) - (a < b)


def instant(value: datetime.date) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)


def holds(op: str, compared: int) -> bool:
    return {"=": compared == 0, "<": compared < 0, "<=": compared <= 0, ">": compared > 0, ">=": compared >= 0}[op]


def is_in(value: Any, options: list[Any]) -> bool | None:
    if value is None:
        return None
    if any(option is not None and order(value, option) == 0 for option in options):
        return True
    return None if None in options else False


def matches(kind: str, text: str | None, pattern: str) -> bool | None:
    if text is None:
        return None
    match kind:
        case "startswith":
            return text.startswith(pattern)
        case "endswith":
            return text.endswith(pattern)
        case "contains":
            return pattern in text
    parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild[p] if p in wild else re.escape(p[-1]) for p in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def logic(operands: tuple[Expression, ...], row: Mapping[str, Any], *, stop: bool) -> bool | None:
    result: bool | None = not stop
    for operand in operands:
        value = value_of(operand, row)
        if value is stop:
            return stop
        if value is None:
            result = None
    return result


def cast(value: Any, target: Any) -> Any:
    if value is None:
        return None
    if target == STRING:
        return ("true" if value else "false") if isinstance(value, bool) else str(value)
    if target == DATE:
        return value.date() if isinstance(value, datetime.datetime) else value
    if target == TIMESTAMP:
        return instant(value)
    if isinstance(target, PrimitiveType) and target.name in RANGES:
        return whole(value, target.name)
    if isinstance(target, PrimitiveType) and target.name == "double":
        return float(value)
    raise AssertionError(target)


def whole(value: Any, type_name: str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused
    number = int(value)
    if not -RANGES[type_name] <= number < RANGES[type_name]:
        raise Refused
    return number


def call(name: str, arguments: tuple[Expression, ...], row: Mapping[str, Any]) -> Any:
    match name:
        case "coalesce":
            return next((v for v in (value_of(a, row) for a in arguments) if v is not None), None)
        case "if":
            return value_of(arguments[1 if value_of(arguments[0], row) is True else 2], row)
        case "case":
            for place in range(0, len(arguments) - 1, 2):
                if value_of(arguments[place], row) is True:
                    return value_of(arguments[place + 1], row)
            return value_of(arguments[-1], row) if len(arguments) % 2 else None
    values = [value_of(argument, row) for argument in arguments]
    if name in ("greatest", "least"):
        return extreme(name, [v for v in values if v is not None])
    if any(value is None for value in values):
        return False if name == "isnan" else None
    return strict(name, values)


def extreme(name: str, values: list[Any]) -> Any:
    result = values[0] if values else None
    for value in values[1:]:
        if order(value, result) == (1 if name == "greatest" else -1):
            result = value
    return result


def strict(name: str, values: list[Any]) -> Any:
    match name, values:
        case ("+" | "-" | "*" as op, [int() as a, int() as b]):
            return in_long({"+": a + b, "-": a - b, "*": a * b}[op])
        case "+", [a, b]:
            return a + b
        case "-", [a]:
            return in_long(-a) if isinstance(a, int) else -a
        case "%", [int() as a, int() as b]:
            if b == 0:
                raise Refused
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
        case "div", [int() as a, int() as b]:
            if b == 0:
                raise Refused
            return in_long(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
        case "abs", [a]:
            return in_long(abs(a)) if isinstance(a, int) else abs(a)
        case "isnan", [a]:
            return isinstance(a, float) and math.isnan(a)
        case "upper", [str() as a]:
            return a.upper()
        case "lower", [str() as a]:
            return a.lower()
        case "length", [a]:
            return len(a)
        case "concat", _:
            return "".join(values)
        case "substring", [text, position, length]:
            start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
            return "".join(c for place, c in enumerate(text) if start <= place < start + length)
        case "year" | "month" | "day", [date]:
            return getattr(date, name)
        case "to_date", [date]:
            return cast(date, DATE)
    raise AssertionError((name, values))


def in_long(number: int) -> int:
    if not -RANGES["long"] <= number < RANGES["long"]:
        raise Refused
    return number
