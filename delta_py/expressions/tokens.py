"""SQL text -> tokens, as Spark's lexer reads them: literals decoded, comments left out."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import INTEGRAL_RANGE, decimal_of_number
from delta_py.expressions.failures import not_an_expression
from delta_py.expressions.tree import Literal
from delta_py.protocol.schema import BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, STRING, DataType


class Kind(Enum):
    WORD = "word"  # a keyword, function or column name
    QUOTED = "quoted"  # a name in backticks
    NUMBER = "number"
    TEXT = "text"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """text: as written (names without their backticks). value: the Literal of a TEXT. place: where it begins."""

    kind: Kind
    text: str
    place: int
    value: Literal | None = None

    @property
    def word(self) -> str:
        """In upper case, for keywords; '' for what is no bare word."""
        return self.text.upper() if self.kind is Kind.WORD else ""


_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --[^\n]*)
    | (?P<comment>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?(?P<suffix>[lLsSyYfFdD]|[bB][dD])?(?!\w))
    | (?P<word>\w+)
    | (?P<symbol><=>|<=|>=|<>|!=|!<|!>|==|\|\||::|->|=>|<<|>>|[=<>!+\-*/%&|^~(),.\[\]:?;@{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_INTEGRAL_SUFFIX: dict[str, DataType] = {"L": LONG, "S": SHORT, "Y": BYTE}
_WIDE = decimal.Context(prec=100)


def tokenize(sql: str) -> list[Token]:
    """Ends with one END token. Raises ExpressionError for what is no token, or a literal out of its type's range."""
    return [*_tokens(sql), Token(Kind.END, "", len(sql))]


def _tokens(sql: str) -> Iterator[Token]:
    place = 0
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None:
            raise not_an_expression(sql, f"nothing is known that begins with {sql[place : place + 10]!r}")
        text, kind = found.group(), found.lastgroup
        if kind == "suffix":  # the number's own group is the last but one
            kind = "number"
        if kind == "comment":
            place = _after_comment(sql, place)
            continue
        token = _token(sql, kind or "", text, place)
        if token is not None:
            yield token
        place = found.end()


def _token(sql: str, kind: str, text: str, place: int) -> Token | None:
    match kind:
        case "space":
            return None
        case "raw":
            return Token(Kind.TEXT, text, place, Literal(_encodable(sql, text[2:-1]), STRING))
        case "text":
            return Token(Kind.TEXT, text, place, Literal(_encodable(sql, _unescaped(sql, text)), STRING))
        case "quoted":
            return Token(Kind.QUOTED, text[1:-1].replace("``", "`"), place)
        case "number":
            return Token(Kind.NUMBER, text, place)
        case "word":
            return Token(Kind.WORD, text, place)
        case _:
            return Token(Kind.SYMBOL, text, place)


def _after_comment(sql: str, place: int) -> int:
    """The place after a bracketed comment; they nest."""
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(sql, place):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise not_an_expression(sql, "a comment is not closed")


# ---------------------------------------------------------------- text


def _unescaped(sql: str, quoted: str) -> str:
    quote, body = quoted[0], quoted[1:-1]
    return _ESCAPE.sub(
        lambda found: _character(sql, found), body.replace(quote * 2, quote) if "\\" not in body else _undoubled(body, quote)
    )


def _undoubled(body: str, quote: str) -> str:
    """Doubled quotes made single, but not a quote after a backslash."""
    return re.sub(r"(\\.)|" + quote * 2, lambda found: found.group(1) or quote, body, flags=re.DOTALL)


def _character(sql: str, found: re.Match[str]) -> str:
    short, long, octal, other = found.groups()
    if octal is not None:
        return chr(int(octal, 8))
    if other is not None:
        return _ESCAPED.get(other, other)
    code = int(short or long, 16)
    if code > 0x10FFFF:
        raise not_an_expression(sql, f"there is no character {found.group()}")
    return chr(code)


def _encodable(sql: str, text: str) -> str:
    """Pairs of surrogates as the character they mean; raises for a surrogate that stands alone."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise not_an_expression(sql, "a text holds half a surrogate pair") from error


# ---------------------------------------------------------------- numbers


def number(sql: str, text: str) -> Literal:
    """A numeric literal; text may begin with a minus sign. Its suffix, digits and exponent decide its type."""
    digits = text.rstrip("lLsSyYfFdDbB")
    suffix = text[len(digits) :].upper()
    if suffix in _INTEGRAL_SUFFIX:
        if not digits.lstrip("-").isdigit():
            raise not_an_expression(sql, f"{text} has a fraction and the suffix {suffix}")
        return _integral(sql, digits, _INTEGRAL_SUFFIX[suffix])
    if suffix in ("F", "D") or (not suffix and "e" in digits.lower()):
        return _floating(sql, digits, FLOAT if suffix == "F" else DOUBLE)
    if not suffix and digits.lstrip("-").isdigit() and len(digits) <= 20:
        whole = int(digits)
        for data_type in (INTEGER, LONG):
            if INTEGRAL_RANGE[data_type][0] <= whole <= INTEGRAL_RANGE[data_type][1]:
                return Literal(whole, data_type)
    return _decimal(sql, digits)


def _integral(sql: str, digits: str, data_type: DataType) -> Literal:
    low, high = INTEGRAL_RANGE[data_type]
    if len(digits) > 40 or not low <= int(digits) <= high:
        raise not_an_expression(sql, f"{digits[:40]} is out of the range of its type")
    return Literal(int(digits), data_type)


def _floating(sql: str, digits: str, data_type: DataType) -> Literal:
    value = float(digits)
    if data_type == FLOAT:
        import numpy as np

        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if value in (float("inf"), float("-inf")):
        raise not_an_expression(sql, f"{digits[:40]} is out of the range of its type")
    return Literal(value, data_type)


def _decimal(sql: str, digits: str) -> Literal:
    try:
        value: Any = decimal.Decimal(digits)
        data_type = decimal_of_number(value)
        if data_type is None:
            raise not_an_expression(sql, f"{digits[:60]} has more than 38 digits")
        return Literal(value.quantize(decimal.Decimal(1).scaleb(-data_type.scale), context=_WIDE), data_type)
    except decimal.DecimalException as error:
        raise not_an_expression(sql, f"{digits[:60]} is no decimal") from error


# ---------------------------------------------------------------- reading them


class TokenStream:
    """The tokens of one text, and how far they were read."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = tokenize(sql)
        self._place = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._place]

    @property
    def after_next(self) -> Token:
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def accept(self, *wanted: str) -> str:
        """The next token's word or symbol if it is one of these, taken; '' otherwise."""
        token = self.next
        found = token.word if token.kind is Kind.WORD else token.text if token.kind is Kind.SYMBOL else ""
        if found not in wanted:
            return ""
        self.take()
        return found

    def expect(self, wanted: str) -> None:
        if not self.accept(wanted):
            raise self.unexpected(f", where {wanted} should be")

    def unexpected(self, where: str = "") -> ExpressionError:
        token = self.next
        what = (
            "it ends too early"
            if token.kind is Kind.END
            else f"{token.text[:40]!r} at character {token.place + 1} is not expected"
        )
        return not_an_expression(self.sql, what + where)
