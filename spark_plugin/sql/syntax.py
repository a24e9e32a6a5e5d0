"""The words of a statement, one after the other, and the error for an unexpected word.

    words = Words(text, args)
    words.take("OPTIMIZE")                  # True, and moves on past it
    words.table()                           # TableName(("shop", "sales"), None), or a path
    words.expect("BY")                      # raises SyntaxFault

Texts and names are data: this module decodes their quotes, escapes and backticks, once. Parameters stand for values and, in
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
from delta_py.expressions.coercion import MAX_PRECISION
from delta_py.expressions.sql_text import literals
from delta_py.types.names import split_name, unquoted


@dataclass(frozen=True, slots=True)
class TableName:
    """How a statement names a table. parts: of a name, empty for a path. path: the text in quotes. place: of its first
    character in the text."""

    parts: tuple[str, ...]
    path: str | None = None
    place: int = 0


class SyntaxFault(Exception):
    """A text that does not continue like a statement. Callers catch it: if another parser may know the statement, that parser
    gets it; otherwise the user gets raised(). place: of the first wrong character; near: the text at this place, None at
    the end."""

    def __init__(self, text: str, place: int, near: str | None, why: str = "") -> None:
        super().__init__(why)
        self.text, self.place, self.near, self.why = text, place, near, why

    def raised(self) -> SqlSyntaxError:
        """Return the error for the user."""
        return SqlSyntaxError(self.text, self.place, self.near, self.why)


class SqlSyntaxError(ParseException):
    """The error in the form of Spark's own parser: condition, line and position, and a caret below the statement.

    line: from 1. position: in the line, from 0.
    """

    def __init__(self, text: str, place: int, near: str | None, why: str = "") -> None:
        text_before, lines = text[:place].split("\n"), text.split("\n")
        self.line, self.position = len(text_before), len(text_before[-1])
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


# Words after which an operand begins: what follows them belongs to an expression, and neither ends a clause nor a CASE.
_BEFORE_OPERAND = frozenset(
    {
        *("AND", "OR", "NOT", "IN", "EXISTS", "ANY", "SOME", "ALL", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE"),
        *("CASE", "WHEN", "THEN", "ELSE", "DIV", "FROM"),
        *("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "&", "|", "^", "~"),
    }
)
# Words after which a colon may begin a parameter, even directly after the word.
_BEFORE_PARAMETER = _BEFORE_OPERAND | {
    *("FOR", "INTERVAL", "SELECT", "DISTINCT", "WHERE", "ON", "HAVING", "BY", "VALUES", "LIMIT", "OFFSET")
}
_SEPARATORS = frozenset({"", " ", "\t", "\r", "\n", "(", ")", "[", "]", ","})  # next to these a constant needs no blank
_MOST_DIGITS = 19  # of a BIGINT
_CONDITION, _STATE = "PARSE_SYNTAX_ERROR", "42601"


class Words:
    """A position in the tokens of a statement; its methods parse what is next, and move on. args: as in Statement. is_sure: the
    words before the position begin a statement of pydelta, and no other parser would read the text, so a SyntaxFault after them
    is the user's error. binds: the texts of text_until have constants in place of parameters; otherwise
    parameters are faults.

    Raises SyntaxFault for a text that is not closed.
    """

    def __init__(self, text: str, args: Any = None, *, binds: bool = False) -> None:
        from delta_py.expressions.sql_text.dialect import tokens

        self.text, self._args, self._next = text, args, 0
        self._binds, self.is_sure = binds, False
        try:
            self._tokens = tokens(text)
        except ExpressionError as error:
            raise SyntaxFault(text, len(text), None, error.message) from error
        self._words = tuple(None if _is_quoted(token) else text[token.start : token.end + 1].upper() for token in self._tokens)

    # ------------------------------------------------------------ words

    def at(self, *words: str, ahead: int = 0) -> bool:
        """Return whether the next words are these, none of them quoted. ahead: how many words to skip before them."""
        first = self._next + ahead
        return self._words[first : first + len(words)] == words

    def take(self, *words: str) -> bool:
        """Do the same as `at`, and move on past the words."""
        if not self.at(*words):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Move on past the words. Raises SyntaxFault if others are next."""
        for word in words:
            if not self.take(word):
                self.fault(f"expected {word}")

    def sure(self) -> None:
        """Note that the words up to here begin a statement of pydelta: see is_sure."""
        self.is_sure = True

    @property
    def remaining_count(self) -> int:
        """Return how many words remain, including punctuation."""
        return len(self._tokens) - self._next

    def is_over(self) -> bool:
        """Return whether only semicolons remain."""
        return all(token.text == ";" and not _is_quoted(token) for token in self._tokens[self._next :])

    def end(self) -> None:
        """Raise SyntaxFault unless the statement ends here."""
        if not self.is_over():
            self.fault()

    @property
    def place(self) -> int:
        """Return where the next word begins in the text."""
        return int(self._tokens[self._next].start) if self._next < len(self._tokens) else len(self.text)

    def fault(self, why: str = "") -> NoReturn:
        """Raise SyntaxFault at the next word."""
        if self._next >= len(self._tokens):
            raise SyntaxFault(self.text, len(self.text), None, why)
        token = self._tokens[self._next]
        raise SyntaxFault(self.text, token.start, self.text[token.start : token.end + 1], why)

    # ------------------------------------------------------------ names

    def table(self) -> TableName:
        """Parse a name, or a path in quotes."""
        place = self.place
        if self.at_text():
            return TableName((), self.string(), place)
        return TableName(self.name(), None, place)

    def name(self) -> tuple[str, ...]:
        """Parse the parts of a name of several parts."""
        if self.at("IDENTIFIER", "("):
            return self._identifier()
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        """Parse one part of a name."""
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
        """Parse IDENTIFIER(...), and return the parts of the name. Its argument is texts and parameters, joined by ||. Other
        expressions are faults: nothing could compute them here."""
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
        """Return whether a text in quotes is next, or a parameter, which may be a text."""
        token = self._token()
        return token is not None and (_is_text(token) or self._at_parameter())

    def string(self, *, alone: bool = False) -> str:
        """Parse a text in quotes, together with adjacent texts; or a parameter that is a text. alone: without adjacent texts."""
        if not self.at_text():
            self.fault("expected a text")
        value = self._value(alone=alone)
        if not isinstance(value, str):
            self.fault(f"expected a text, and the parameter is {value!r}")
        return value

    def number(self) -> str:
        """Parse a number as it is written, with its sign and the suffix of a type; or a parameter that is a number."""
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
        """Parse a number as a value: 168, 168L, 1.5BD."""
        place, text = self._next, self.number()
        try:
            value = literals.parse_number(self.text, text).value
        except ExpressionError:
            self._next = place
            self.fault("expected a number that its type can hold")
        return value if isinstance(value, int) else float(value)

    def literal(self) -> Any:
        """Parse a text, a number, TRUE, FALSE or NULL; or the value of a parameter, whatever it is."""
        if self.at_text():
            return self._value()
        for word, value in _WORDS_OF_VALUES.items():
            if self.take(word):
                return value
        return self.number_value()

    def whole_number(self) -> int:
        return self._integer(self.number)

    def whole_number_or_text(self) -> int:
        """Parse a whole number, also from a text of digits."""
        is_text = self.at_text() and not self._at_parameter()
        return self._integer(self.string if is_text else self.number)

    def _integer(self, read: Callable[[], str]) -> int:
        """Parse a whole number without a sign. read: parses its digits as text."""
        place, text = self._next, read()
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            self._next = place
            self.fault("expected a whole number")
        return int(text)

    def text_until(self, *stops: tuple[str, ...]) -> str:
        """Return the text as it is written, with constants in place of parameters. It ends before one of these words outside of
        brackets and CASE, before a closing bracket that was opened before the text, or at the end of the statement. Raises
        SyntaxFault if there is no text.

        stops: each is a sequence of words."""
        text = ""  # the text so far, up to the last parameter
        start = self.place  # where the part begins that follows `text`; it is copied as it is written
        brackets = cases = 0  # how many are open
        first, last = self._next, None  # the number of the first token, and the last token that belongs to the text
        while (token := self._token()) is not None and not self.at(";"):
            is_subquery = self._next == first and self.at("(")  # a bracket may be a stop, but not as the first character
            at_stop = brackets == cases == 0 and not is_subquery and self._at_stop(stops)
            if at_stop or (brackets == 0 and self.at(")")):
                break
            if self._at_parameter() and (self._next == first or not self._is_field()):
                text += self.text[start : token.start]
                text += ("" if text[-1:] in _SEPARATORS else " ") + self._parameter_sql()
                last = self._tokens[self._next - 1]
                start = last.end + 1
                text += "" if self.text[start : start + 1] in _SEPARATORS else " "
                continue
            word = self._word(self._next)
            if word in ("(", "["):
                brackets += 1
            elif word in (")", "]"):
                brackets = max(brackets - 1, 0)
            elif brackets == 0:  # nothing inside brackets ends the text
                cases += self._begins_case(stops)
                cases -= cases > 0 and self._ends_case(self._next)
            last = token
            self._next += 1
        if last is None:
            self.fault("expected a condition")
        return (text + self.text[start : last.end + 1]).rstrip()

    def in_parentheses(self) -> str:
        """Return the text between parentheses, as it is written."""
        self.expect("(")
        text = self.text_until()
        self.expect(")")
        return text

    # ------------------------------------------------------------ tokens

    def _token(self) -> Any:
        """Return the next token; None at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _word(self, number: int) -> str | None:
        """Return the word of a token in capitals, by the token's number; None if it is quoted or there is none."""
        return self._words[number] if 0 <= number < len(self._words) else None

    def _follows(self, number: int, words: Container[str | None]) -> bool:
        """Return whether the word before this position is one of these, and not the name of a field."""
        return self._word(number - 1) in words and self._word(number - 2) != "."

    def _at_stop(self, stops: tuple[tuple[str, ...], ...], ahead: int = 0) -> bool:
        """Return whether one of these words is next and is no part of an operand: no subquery, and no FROM of IS DISTINCT
        FROM."""
        if not any(self.at(*stop, ahead=ahead) for stop in stops):
            return False
        number = self._next + ahead
        is_subquery = self._word(number) == "(" and self._follows(number, _BEFORE_OPERAND)
        return not is_subquery and not (self._word(number) == "FROM" and self._follows(number, ("DISTINCT",)))

    def _begins_case(self, stops: tuple[tuple[str, ...], ...]) -> bool:
        """Return whether the word here is a CASE and not a column: its WHEN comes before anything that ends an operand. stops: as
        in text_until."""
        if not self.at("CASE") or self._word(self._next - 1) == ".":
            return False
        brackets = 0
        for ahead in range(1, self.remaining_count):
            word = self._word(self._next + ahead)
            brackets += (word in ("(", "[")) - (word in (")", "]"))
            if brackets < 0:
                return False
            if brackets > 0:
                continue
            at_stop = self._at_stop(stops, ahead)
            # WHEN may be a stop too (in MERGE). Directly after the CASE it can only be the CASE's own.
            if word == "WHEN" and (ahead == 1 or not at_stop):
                return True
            if at_stop or word in (",", "THEN", "ELSE") or self._ends_case(self._next + ahead):
                return False
        return False

    def _ends_case(self, number: int) -> bool:
        """Return whether the word of this number is the END of a CASE and not a column."""
        is_column = self._word(number - 1) == "." or self._follows(number, _BEFORE_OPERAND)
        return self._word(number) == "END" and not is_column

    def _is_field(self) -> bool:
        """Return whether the colon here selects a field of a variant, as in v:a. Otherwise it begins a parameter, as in :a.

        A field's colon directly follows a name or a closing bracket. After a keyword (SELECT:a) both are possible: then it is a
        parameter if one of this name has a value.
        """
        if not self.at(":") or self._next == 0:
            return False
        token_before, colon = self._tokens[self._next - 1], self._tokens[self._next]
        is_adjacent = token_before.end + 1 == colon.start  # `end` is the position of the token's last character
        last_character = self.text[token_before.end]
        if not is_adjacent or not (last_character.isalnum() or last_character in "_`)]"):
            return False
        return not (self._follows(self._next, _BEFORE_PARAMETER) and self._has_value())

    def _has_value(self) -> bool:
        """Return whether the word after the colon here names a parameter that has a value. Otherwise a column may have a name
        that is a keyword of Spark."""
        values_by_name = self._args if isinstance(self._args, Mapping) else {}
        token = self._tokens[self._next + 1] if self.remaining_count > 1 else None
        return token is not None and self.text[token.start : token.end + 1].strip("`") in values_by_name

    def _parameter_sql(self) -> str:
        """Return the value of the parameter here as a constant of SQL, and move on past the parameter."""
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
        """Return the value of a text, or of the parameter here, and move on past it. alone: as in `string`."""
        texts: list[str] = []
        while self.remaining_count > 0 and _is_text(self._token()) and not (alone and texts):
            texts.append(self._token().text)
            self._next += 1
        if texts:
            return "".join(texts)
        if self.at("?"):
            # The first ? gets the first value, and so on.
            number = sum(self._word(before) == "?" for before in range(self._next))
            values: Any = () if isinstance(self._args, Mapping) or self._args is None else self._args
            if number >= len(values):
                self.fault("there is no value for this parameter")
            self._next += 1
            return values[number]
        values_by_name = self._args if isinstance(self._args, Mapping) else {}
        self.expect(":")
        name = self.part()
        if name not in values_by_name:
            self._next -= 2  # back to the colon, where the parameter begins
            self.fault("there is no value for this parameter")
        return values_by_name[name]


_WORDS_OF_VALUES = {"NULL": None, "TRUE": True, "FALSE": False}


def constant_sql(value: Any) -> str | None:
    """Return a Python value as a constant of Spark's SQL, of the type that Spark gives parameters; None for a value of another
    kind, and for one that the type cannot represent. Each constant is a word or a call, so adjacent signs and texts do not change
    it. Texts are bytes in hexadecimal, which every setting reads in the same way; times are instants."""
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
    """Return a decimal whose type has just the digits that the value needs. None if Spark's decimals cannot have so many."""
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
