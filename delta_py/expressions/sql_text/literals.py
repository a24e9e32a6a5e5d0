"""Literals as written in Spark's SQL -> their values: escapes in text, and the types of numbers."""

from __future__ import annotations

import decimal
import re
from typing import Any

from delta_py.expressions.coercion import INTEGRAL_RANGE, decimal_of_number
from delta_py.expressions.evaluation_errors import not_an_expression
from delta_py.expressions.tree import Literal
from delta_py.types.schema import BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, DataType

# A number as written, without a letter or digit after it.
NUMBER = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYfFdD]|[bB][dD])?(?!\w)", re.ASCII)

# A text with its quotes; a doubled quote inside means one quote.
TEXT = re.compile(r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | [rR]'[^']*' | [rR]"[^"]*\"""", re.VERBOSE | re.DOTALL)

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_INTEGRAL_SUFFIX: dict[str, DataType] = {"L": LONG, "S": SHORT, "Y": BYTE}
# quantize raises if a number has more digits than its context: 28 by default.
_WIDE = decimal.Context(prec=100)


# ---------------------------------------------------------------- text


def parse_text(sql: str, quoted_text: str) -> str:
    """The value of a text literal. sql: the whole SQL text, for errors. quoted_text: the literal with its quotes (single or
    double), and with the `r` of raw text if it has one."""
    if quoted_text[0] in "rR":  # escapes in raw text have no meaning
        return _join_surrogates(sql, quoted_text[2:-1])
    quote, content = quoted_text[0], quoted_text[1:-1]
    with_single_quotes = re.sub(r"(\\.)|" + quote * 2, lambda escape: escape.group(1) or quote, content, flags=re.DOTALL)
    return _join_surrogates(sql, _ESCAPE.sub(lambda escape: _character(sql, escape), with_single_quotes))


def _character(sql: str, escape: re.Match[str]) -> str:
    """The character that an escape in a text means."""
    hex_4, hex_8, octal, plain_character = escape.groups()
    if octal is not None:
        return chr(int(octal, 8))
    if plain_character is not None:
        return _ESCAPED_CHARACTERS.get(plain_character, plain_character)
    code = int(hex_4 or hex_8, 16)
    if code > 0x10FFFF:
        raise not_an_expression(sql, f"there is no character {escape.group()}")
    return chr(code)


def _join_surrogates(sql: str, value: str) -> str:
    """Replaces pairs of surrogates by the character that they encode; raises for a surrogate without its pair."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise not_an_expression(sql, "a text holds half a surrogate pair") from error


# ---------------------------------------------------------------- numbers


def parse_number(sql: str, number_text: str) -> Literal:
    """A numeric literal, with or without a minus sign. Its suffix, digits and exponent decide its type."""
    digits = number_text.rstrip("lLsSyYfFdDbB")
    suffix = number_text[len(digits) :].upper()
    if suffix in _INTEGRAL_SUFFIX:
        if not digits.lstrip("-").isdigit():
            raise not_an_expression(sql, f"{number_text} has a fraction and the suffix {suffix}")
        return _integral_literal(sql, digits, _INTEGRAL_SUFFIX[suffix])
    if suffix in ("F", "D") or (not suffix and "e" in digits.lower()):
        return _floating_literal(sql, digits, FLOAT if suffix == "F" else DOUBLE)
    if not suffix and digits.lstrip("-").isdigit() and len(digits) <= 20:
        integer = int(digits)
        for data_type in (INTEGER, LONG):
            if INTEGRAL_RANGE[data_type][0] <= integer <= INTEGRAL_RANGE[data_type][1]:
                return Literal(integer, data_type)
    return _decimal_literal(sql, digits)


def _integral_literal(sql: str, digits: str, data_type: DataType) -> Literal:
    low, high = INTEGRAL_RANGE[data_type]
    # int() refuses very long text.
    if len(digits) > 40 or not low <= int(digits) <= high:
        raise not_an_expression(sql, f"{digits[:40]} is out of the range of its type")
    return Literal(int(digits), data_type)


def _floating_literal(sql: str, digits: str, data_type: DataType) -> Literal:
    value = float(digits)
    if data_type == FLOAT:
        import numpy as np

        # The nearest value in 32 bits. A number that is too large becomes infinite, and is refused below.
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if value in (float("inf"), float("-inf")):
        raise not_an_expression(sql, f"{digits[:40]} is out of the range of its type")
    return Literal(value, data_type)


def _decimal_literal(sql: str, digits: str) -> Literal:
    try:
        value: Any = decimal.Decimal(digits)
        data_type = decimal_of_number(value)
        if data_type is None:
            raise not_an_expression(sql, f"{digits[:60]} has more than 38 digits")
        return Literal(value.quantize(decimal.Decimal(1).scaleb(-data_type.scale), context=_WIDE), data_type)
    except decimal.DecimalException as error:
        raise not_an_expression(sql, f"{digits[:60]} is no decimal") from error
