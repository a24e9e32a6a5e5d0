"""The words of a statement one after the other, and the error for one that cannot stand where it does.

    words = Words(text, args)
    words.take("OPTIMIZE")                  # True, and goes on behind it
    words.table()                           # TableName(("shop", "sales"), None), or a path
    words.expect("BY")                      # raises SyntaxFault

Texts and names are data: their quotes, escapes and backticks are undone here, once. Parameters stand for values and, in
IDENTIFIER(...), for names.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

from pyspark.errors import ParseException
from pyspark.sql.types import TimestampType

from delta_py.errors import ExpressionError
from delta_py.expressions import literals
from delta_py.expressions.coercion import MAX_PRECISION
from delta_py.types.names import split_name, unquoted


@dataclass(frozen=True, slots=True)
class TableName:
    """How a statement names a table. parts: of a name, empty for a path. path: what stood in quotes. place: of its first
    character in the text."""

    parts: tuple[str, ...]
    path: str | None = None
    place: int = 0


class SyntaxFault(Exception):
    """A text that does not go on as a statement does. place: of the character where that shows; near: what stands there, None for
    the end."""

    def __init__(self, text: str, place: int, near: str | None, why: str = "") -> None:
        super().__init__(why)
        self.text, self.place, self.near, self.why = text, place, near, why

    def raised(self) -> SqlSyntaxError:
        return SqlSyntaxError(self.text, self.place, self.near, self.why)


class SqlSyntaxError(ParseException):
    """As Spark's own parser says it: condition, line and position, and a caret below the statement.

    line: from 1. position: in the line, from 0.
    """

    def __init__(self, text: str, place: int, near: str | None, why: str = "") -> None:
        before, lines = text[:place].split("\n"), text.split("\n")
        self.line, self.position = len(before), len(before[-1])
        self._near = "end of input" if near is None else f"'{near}'"
        shown = "\n".join([*lines[: self.line], "-" * self.position + "^^^", *lines[self.line :]])
        super().__init__(
            f"Syntax error at or near {self._near}{f': {why}' if why else ''}. SQLSTATE: {_STATE} "
            f"(line {self.line}, pos {self.position})\n\n== SQL ==\n{shown}\n"
        )

    def getCondition(self) -> str:
        return _CONDITION

    getErrorClass = getCondition

    def getSqlState(self) -> str:
        return _STATE

    def getMessageParameters(self) -> dict[str, str]:
        return {"error": self._near, "hint": ""}


_BEFORE_OPERAND = frozenset(
    {
        *("AND", "OR", "NOT", "IN", "EXISTS", "ANY", "SOME", "ALL", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE"),
        *("CASE", "WHEN", "THEN", "ELSE", "DIV", "FROM"),
        *("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "&", "|", "^", "~"),
    }
)
_BEFORE_PARAMETER = _BEFORE_OPERAND | {
    *("FOR", "INTERVAL", "SELECT", "DISTINCT", "WHERE", "ON", "HAVING", "BY", "VALUES", "LIMIT", "OFFSET")
}
_APART = frozenset({"", " ", "\t", "\r", "\n", "(", ")", "[", "]", ","})  # beside a constant, which needs no blank there
_MOST_DIGITS = 19  # of a BIGINT
_CONDITION, _STATE = "PARSE_SYNTAX_ERROR", "42601"


class Words:
    """A place in the tokens of a statement. args: as of Statement. is_sure: the words before it begin a statement of ours, and
    nobody else would read the text. binds: in the texts of text_until constants stand in the place of parameters; else these
    are faults.

    Raises SyntaxFault for a text that is not closed.
    """

    def __init__(self, text: str, args: Any = None, *, binds: bool = False) -> None:
        from delta_py.expressions.dialect import tokens

        self.text, self._args, self._next = text, args, 0
        self._binds, self.is_sure = binds, False
        try:
            self._tokens = tokens(text)
        except ExpressionError as error:
            raise SyntaxFault(text, len(text), None, error.message) from error
        self._words = tuple(None if _is_quoted(one) else text[one.start : one.end + 1].upper() for one in self._tokens)

    # ------------------------------------------------------------ words

    def at(self, *words: str, ahead: int = 0) -> bool:
        """Whether the next words are these, none of them quoted."""
        first = self._next + ahead
        return self._words[first : first + len(words)] == words

    def take(self, *words: str) -> bool:
        """The same, and goes on behind them."""
        if not self.at(*words):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                self.fault(f"expected {word}")

    def sure(self) -> None:
        self.is_sure = True

    @property
    def left(self) -> int:
        """How many words are left, punctuation too."""
        return len(self._tokens) - self._next

    def is_over(self) -> bool:
        """Whether nothing comes but semicolons."""
        return all(token.text == ";" and not _is_quoted(token) for token in self._tokens[self._next :])

    def end(self) -> None:
        if not self.is_over():
            self.fault()

    @property
    def place(self) -> int:
        """Where the next word begins in the text."""
        return int(self._tokens[self._next].start) if self._next < len(self._tokens) else len(self.text)

    def fault(self, why: str = "") -> NoReturn:
        if self._next >= len(self._tokens):
            raise SyntaxFault(self.text, len(self.text), None, why)
        token = self._tokens[self._next]
        raise SyntaxFault(self.text, token.start, self.text[token.start : token.end + 1], why)

    # ------------------------------------------------------------ names

    def table(self) -> TableName:
        """A name, or a path in quotes."""
        place = self.place
        if self.at_text():
            return TableName((), self.string(), place)
        return TableName(self.name(), None, place)

    def name(self) -> tuple[str, ...]:
        """The parts of a name of several parts."""
        if self.at("IDENTIFIER", "("):
            return self._identifier()
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        """One part of a name."""
        token = self._token()
        written = "" if token is None else self.text[token.start : token.end + 1]
        if len(written) > 1 and written[0] == written[-1] == "`":
            self._next += 1
            return unquoted(written)
        if token is None or _is_quoted(token) or not all(letter.isalnum() or letter == "_" for letter in written):
            self.fault("expected a name")
        self._next += 1
        return written

    def _identifier(self) -> tuple[str, ...]:
        """Of texts and parameters, joined by ||. Other expressions are faults: nobody could compute them here."""
        self.expect("IDENTIFIER", "(")
        text = self.string()
        while self.take("||"):
            text += self.string()
        self.expect(")")
        parts = split_name(text)
        if not all(parts):
            self.fault(f"{text!r} is no name")
        return parts

    # ------------------------------------------------------------ values

    def at_text(self) -> bool:
        token = self._token()
        return token is not None and (_is_text(token) or self._at_parameter())

    def string(self, *, alone: bool = False) -> str:
        """A text in quotes, with those that follow it at once; or a parameter that is one. alone: without those."""
        if not self.at_text():
            self.fault("expected a text")
        value = self._value(alone=alone)
        if not isinstance(value, str):
            self.fault(f"expected a text, and the parameter is {value!r}")
        return value

    def number(self) -> str:
        """A number as it is written, with its sign, and with the suffix of a type; or a parameter that is one."""
        sign = "-" if self.take("-") else ""
        token = self._token()
        if self._at_parameter():
            value = self._value()
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.fault(f"expected a number, and the parameter is {value!r}")
            if isinstance(value, float) and not isfinite(value):
                self.fault(f"expected a number, and the parameter is {value!r}")
            return str(-value if sign else value)
        if token is None or not _is_number(token):
            self.fault("expected a number")
        self._next += 1
        return sign + str(token.text)

    def number_value(self) -> int | float:
        """The same as a value: 168, 168L, 1.5BD."""
        place, text = self._next, self.number()
        try:
            value = literals.number(self.text, text).value
        except ExpressionError:
            self._next = place
            self.fault("expected a number that its type can hold")
        return value if isinstance(value, int) else float(value)

    def literal(self) -> Any:
        """A text, a number, TRUE, FALSE or NULL; the value of a parameter, whatever it is."""
        if self.at_text():
            return self._value()
        for word, value in _WORDS_OF_VALUES.items():
            if self.take(word):
                return value
        return self.number_value()

    def whole_number(self) -> int:
        return self._whole(self.number)

    def whole_number_or_text(self) -> int:
        """A text of digits too."""
        is_text = self.at_text() and not self._at_parameter()
        return self._whole(self.string if is_text else self.number)

    def _whole(self, read: Callable[[], str]) -> int:
        place, text = self._next, read()
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            self._next = place
            self.fault("expected a whole number")
        return int(text)

    def text_until(self, *stops: tuple[str, ...]) -> str:
        """The text as it is written, but for parameters, up to one of these words outside of brackets and CASE, to the bracket
        that closes behind it, or to the end. Raises where there is no text."""
        start, brackets, cases, last, text, first = self.place, 0, 0, None, "", self._next
        while (token := self._token()) is not None and not self.at(";"):
            is_subquery = self._next == first and self.at("(")
            at_stop = brackets == cases == 0 and not is_subquery and self._at_stop(stops)
            if at_stop or (brackets == 0 and self.at(")")):
                break
            if self._at_parameter() and (self._next == first or not self._is_field()):
                text += self.text[start : token.start]
                text += ("" if text[-1:] in _APART else " ") + self._bound()
                last = self._tokens[self._next - 1]
                start = last.end + 1
                text += "" if self.text[start : start + 1] in _APART else " "
                continue
            word = self._word(self._next)
            if word in ("(", "["):
                brackets += 1
            elif word in (")", "]"):
                brackets = max(brackets - 1, 0)
            elif brackets == 0:  # within brackets nothing ends the text
                cases += self._begins_case(stops)
                cases -= cases > 0 and self._ends_case(self._next)
            last = token
            self._next += 1
        if last is None:
            self.fault("expected a condition")
        return (text + self.text[start : last.end + 1]).rstrip()

    def in_parentheses(self) -> str:
        """The text between parentheses, as it is written."""
        self.expect("(")
        text = self.text_until()
        self.expect(")")
        return text

    # ------------------------------------------------------------ tokens

    def _token(self) -> Any:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _word(self, number: int) -> str | None:
        return self._words[number] if 0 <= number < len(self._words) else None

    def _is_behind(self, number: int, words: Container[str | None]) -> bool:
        """Whether the word before that place is one of these, and not the name of a field."""
        return self._word(number - 1) in words and self._word(number - 2) != "."

    def _at_stop(self, stops: tuple[tuple[str, ...], ...], ahead: int = 0) -> bool:
        """Whether one of these stands there, which is no part of an operand: no subquery, and no FROM of IS DISTINCT FROM."""
        if not any(self.at(*stop, ahead=ahead) for stop in stops):
            return False
        number = self._next + ahead
        is_subquery = self._word(number) == "(" and self._is_behind(number, _BEFORE_OPERAND)
        return not is_subquery and not (self._word(number) == "FROM" and self._is_behind(number, ("DISTINCT",)))

    def _begins_case(self, stops: tuple[tuple[str, ...], ...]) -> bool:
        """Whether the word here is a CASE that is no column: its WHEN comes before anything that ends an operand."""
        if not self.at("CASE") or self._word(self._next - 1) == ".":
            return False
        brackets = 0
        for ahead in range(1, self.left):
            word = self._word(self._next + ahead)
            brackets += (word in ("(", "[")) - (word in (")", "]"))
            if brackets < 0:
                return False
            if brackets > 0:
                continue
            at_stop = self._at_stop(stops, ahead)
            if word == "WHEN" and (ahead == 1 or not at_stop):
                return True
            if at_stop or word in (",", "THEN", "ELSE") or self._ends_case(self._next + ahead):
                return False
        return False

    def _ends_case(self, number: int) -> bool:
        """Whether the word there is an END that is no column."""
        is_column = self._word(number - 1) == "." or self._is_behind(number, _BEFORE_OPERAND)
        return self._word(number) == "END" and not is_column

    def _is_field(self) -> bool:
        """Whether the colon here is that of a field, v:a, and begins no parameter."""
        if not self.at(":") or self._next == 0:
            return False
        before, place = self._tokens[self._next - 1], self._tokens[self._next].start
        last = self.text[before.end]
        if before.end + 1 != place or not (last.isalnum() or last in "_`)]"):
            return False
        return not (self._is_behind(self._next, _BEFORE_PARAMETER) and self._has_value())

    def _has_value(self) -> bool:
        """Whether the word behind the colon here names a parameter that has a value. Else a column may have the name of a word
        of Spark's."""
        named = self._args if isinstance(self._args, Mapping) else {}
        token = self._tokens[self._next + 1] if self.left > 1 else None
        return token is not None and self.text[token.start : token.end + 1].strip("`") in named

    def _bound(self) -> str:
        """A constant for the parameter here."""
        if not self._binds:
            self.fault("a parameter cannot stand in this condition; write its value")
        place = self._next
        value = self._value()
        text = constant_sql(value)
        if text is None:
            self._next = place
            self.fault(f"a value of {type(value).__name__} cannot stand in this statement over Spark Connect; write it as SQL")
        return text

    def _at_parameter(self) -> bool:
        return self.at("?") or self.at(":")

    def _value(self, *, alone: bool = False) -> Any:
        """Of a text, or of the parameter here. alone: as of string."""
        texts: list[str] = []
        while self.left > 0 and _is_text(self._token()) and not (alone and texts):
            texts.append(self._token().text)
            self._next += 1
        if texts:
            return "".join(texts)
        if self.at("?"):
            number = sum(self._word(before) == "?" for before in range(self._next))
            values: Any = () if isinstance(self._args, Mapping) or self._args is None else self._args
            if number >= len(values):
                self.fault("there is no value for this parameter")
            self._next += 1
            return values[number]
        named = self._args if isinstance(self._args, Mapping) else {}
        self.expect(":")
        name = self.part()
        if name not in named:
            self._next -= 2
            self.fault("there is no value for this parameter")
        return named[name]


_WORDS_OF_VALUES = {"NULL": None, "TRUE": True, "FALSE": False}


def constant_sql(value: Any) -> str | None:
    """A value of Python's as Spark's SQL has it, of the type that Spark gives parameters; None for one of another kind, and for
    one that the type cannot hold. Each is a word or a call, which signs and texts beside it do not change. Texts are bytes in
    hexadecimal, which no setting reads in another way; times are instants."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() if -(2**63) <= value < 2**63:
            return f"CAST({int(value)} AS {'INT' if -(2**31) <= value < 2**31 else 'BIGINT'})"
        case float():
            return f"CAST('{float(value)!r}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return _decimal_sql(value)
        case str():
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case bytes() | bytearray():
            return f"CAST(X'{bytes(value).hex()}' AS BINARY)"
        case datetime.datetime():
            return f"timestamp_micros({TimestampType().toInternal(value)})"
        case datetime.date():
            return f"CAST(DATE'{value.isoformat()}' AS DATE)"
    return None


def _decimal_sql(value: Decimal) -> str | None:
    """Of as many digits as the value has. None for more than Spark's decimals have."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(value.adjusted() + 1 + scale if value else 0, scale, 1)
    return None if precision > MAX_PRECISION else f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _is_text(token: Any) -> bool:
    return bool(token.token_type.name == "STRING")


def _is_number(token: Any) -> bool:
    return token.token_type.name == "NUMBER" and literals.NUMBER.fullmatch(token.text) is not None


def _is_quoted(token: Any) -> bool:
    return token.token_type.name in ("STRING", "IDENTIFIER")
