"""Spark's grammar of expressions for sqlglot: SQL text -> sqlglot's syntax tree. Imported only when SQL text is parsed.

sqlglot's own Spark dialect accepts much that Spark refuses, replaces functions by its own, and differs in the precedence of
operators. In this dialect only Spark's words are keywords (so that every other word may name a column), every function is an
`exp.Anonymous` with its arguments as written, literals keep their text, and operator precedence is that of Spark's grammar:
OR, AND, NOT, predicates (BETWEEN, IN, LIKE, IS), comparisons, `|`, `^`, `&`, shifts, `+ - ||`, `* / % DIV`, signs, `::`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluation_errors import SUBQUERY, not_an_expression, not_supported
from delta_py.expressions.sql_text import literals

_Binary = Mapping[TokenType, type[exp.Expression]]

_TYPES = {
    **{"TINYINT": TokenType.TINYINT, "BYTE": TokenType.TINYINT, "SMALLINT": TokenType.SMALLINT, "SHORT": TokenType.SMALLINT},
    **{"INT": TokenType.INT, "INTEGER": TokenType.INT, "BIGINT": TokenType.BIGINT, "LONG": TokenType.BIGINT},
    **{"FLOAT": TokenType.FLOAT, "REAL": TokenType.FLOAT, "DOUBLE": TokenType.DOUBLE, "BOOLEAN": TokenType.BOOLEAN},
    **{"DECIMAL": TokenType.DECIMAL, "DEC": TokenType.DECIMAL, "NUMERIC": TokenType.DECIMAL, "BINARY": TokenType.BINARY},
    **{"STRING": TokenType.TEXT, "CHAR": TokenType.CHAR, "CHARACTER": TokenType.CHAR, "VARCHAR": TokenType.VARCHAR},
    **{"DATE": TokenType.DATE, "TIMESTAMP": TokenType.TIMESTAMPTZ, "TIMESTAMP_LTZ": TokenType.TIMESTAMPLTZ},
    **{"TIMESTAMP_NTZ": TokenType.TIMESTAMPNTZ},
    **{"ARRAY": TokenType.ARRAY, "MAP": TokenType.MAP, "STRUCT": TokenType.STRUCT, "VARIANT": TokenType.VARIANT},
}
_WORDS = {
    **{"AND": TokenType.AND, "OR": TokenType.OR, "NOT": TokenType.NOT, "IN": TokenType.IN, "IS": TokenType.IS},
    **{"BETWEEN": TokenType.BETWEEN, "LIKE": TokenType.LIKE, "ILIKE": TokenType.ILIKE, "ESCAPE": TokenType.ESCAPE},
    **{"RLIKE": TokenType.RLIKE, "REGEXP": TokenType.RLIKE, "DIV": TokenType.DIV, "AS": TokenType.ALIAS},
    **{"NULL": TokenType.NULL, "TRUE": TokenType.TRUE, "FALSE": TokenType.FALSE, "CASE": TokenType.CASE},
    **{"WHEN": TokenType.WHEN, "THEN": TokenType.THEN, "ELSE": TokenType.ELSE, "END": TokenType.END},
    **{"DISTINCT": TokenType.DISTINCT, "FROM": TokenType.FROM, "FOR": TokenType.FOR},
}
_SYMBOLS = {
    **{"==": TokenType.EQ, "<=>": TokenType.NULLSAFE_EQ, "<>": TokenType.NEQ, "!=": TokenType.NEQ},
    **{"<=": TokenType.LTE, ">=": TokenType.GTE, "!>": TokenType.LTE, "!<": TokenType.GTE},
    **{"||": TokenType.DPIPE, "::": TokenType.DCOLON, "->": TokenType.ARROW, "=>": TokenType.FARROW},
}
# A word directly before a text that makes it a value of another type.
_LITERAL_PREFIXES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"})
_MAX_CACHED_CHARACTERS = 100_000
# Tokens after which an operand begins; None: the start of the text.
_BEFORE_ITEMS = frozenset({None, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA})
_NUMBER_STARTS = frozenset("0123456789.")
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.COMMA})
_WORD_TOKENS = frozenset({TokenType.VAR, *_TYPES.values(), *_WORDS.values()})

_COMPARISONS: _Binary = {
    **{TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ, TokenType.NULLSAFE_EQ: exp.NullSafeEQ},
    **{TokenType.LT: exp.LT, TokenType.LTE: exp.LTE, TokenType.GT: exp.GT, TokenType.GTE: exp.GTE},
}
_SUMS: _Binary = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe}
_PRODUCTS: _Binary = {
    **{TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod, TokenType.DIV: exp.IntDiv},
}


def parse_syntax_tree(sql: str) -> exp.Expression:
    """The whole text as one expression, which the caller must not change: a rule is read several times in one write, and its
    tree is cached. An operand may occur in several places of the tree.

    Raises ExpressionError: PARSE_SYNTAX_ERROR with the position, or the name of what is not supported.
    """
    return _cached_tree(sql) if len(sql) <= _MAX_CACHED_CHARACTERS else _parse_tree(sql)


@lru_cache(maxsize=16)
def _cached_tree(sql: str) -> exp.Expression:
    return _parse_tree(sql)


def _parse_tree(sql: str) -> exp.Expression:
    """The syntax tree of the text. Raises ExpressionError unless it is exactly one expression."""
    dialect = SparkExpressions()
    try:
        tokens = _as_spark_tokens(sql, dialect.tokenize(sql))
        trees = dialect.parser(error_message_context=len(sql)).parse_into(exp.Condition, tokens, sql)
    except TokenError as error:
        raise not_an_expression(sql, _reason_of(error)) from error
    except ParseError as error:
        raise _parse_error(sql, error) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise not_an_expression(sql, "it holds no expression" if not trees or trees[0] is None else "it holds several")
    return trees[0]


def _parse_error(sql: str, error: ParseError) -> ExpressionError:
    """The error for a parser's error, which names the word and its position if the parser knows them."""
    details = error.errors[0] if error.errors else {}
    # The parser returns all text before the word as its context, because error_message_context is the length of the text.
    word, position = str(details.get("highlight") or ""), len(str(details.get("start_context") or "")) + 1
    if not word or position > len(sql) or details.get("description", "").startswith("Required argument"):
        return not_an_expression(sql, "it ends too early, or an operand is missing")
    return not_an_expression(sql, f"{word[:40]!r} at character {position} is not expected")


# ---------------------------------------------------------------- tokens


def tokens(sql: str) -> list[Token]:
    """The tokens of a statement: the position of each in the text, and the value of each quoted text.

    Hints are skipped like comments. Raises ExpressionError (PARSE_SYNTAX_ERROR) for a text, name or comment that is not
    closed.
    """
    try:
        return _as_spark_tokens(sql, SparkExpressions().tokenize(sql), of_expression=False)
    except TokenError as error:
        raise not_an_expression(sql, _reason_of(error)) from error


def _reason_of(error: TokenError) -> str:
    """What sqlglot says after the position of the error."""
    return str(error).rpartition(": ")[2][:200] or "a text or comment is not closed"


def _as_spark_tokens(sql: str, tokens: list[Token], *, of_expression: bool = True) -> list[Token]:
    """The tokens with literals as Spark reads them: escapes in texts are resolved, adjacent texts of an expression joined,
    numbers keep their suffixes as written. of_expression: whether `sql` is one expression; otherwise it is a statement.

    Raises ExpressionError for errors that sqlglot ignores and Spark does not.
    """
    result: list[Token] = []
    end = 0  # the position in `sql` after the last token
    for token in tokens:
        if token.start < end:  # a part of the literal before, which sqlglot reads as more than one token
            if token.end >= end:
                raise not_an_expression(sql, f"it cannot be read from character {token.start + 1} on")
            continue
        if end < token.start:
            _check_gap(sql, sql[end : token.start], of_expression=of_expression)
        end = token.end + 1
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            token, end = _text_token(sql, token)
            if of_expression and result and result[-1].token_type == TokenType.STRING:
                previous = result.pop()
                token = _token_like(previous, TokenType.STRING, previous.text + token.text, end)
        elif (number := _number_at(sql, token.start)) and not (sql[token.start] == "." and _ends_operand(result)):
            end = number.end()
            if end <= token.end:  # sqlglot reads 1.5k as one word
                text = sql[token.start : token.end + 1][:40]
                raise not_an_expression(sql, f"{text!r} at character {token.start + 1} is no number")
            token = _token_like(token, TokenType.NUMBER, number.group(), end)
        if of_expression:
            _check_token(sql, token, result[-1] if result else None)
        result.append(token)
    _check_gap(sql, sql[end:], of_expression=of_expression)
    return result


def _text_token(sql: str, token: Token) -> tuple[Token, int]:
    """The token of a quoted text with the text's value, and the position after it."""
    literal = literals.TEXT.match(sql, token.start)
    if literal is None:
        raise not_an_expression(sql, f"the text at character {token.start + 1} cannot be read")
    return _token_like(token, TokenType.STRING, literals.parse_text(sql, literal.group()), literal.end()), literal.end()


def _number_at(sql: str, position: int) -> re.Match[str] | None:
    """The number that begins at the position, in Spark's syntax; None if there is none."""
    return literals.NUMBER.match(sql, position) if sql[position] in _NUMBER_STARTS else None


def _token_like(token: Token, token_type: TokenType, text: str, end: int) -> Token:
    """The token with another type and text. end: the position after the token in the SQL text."""
    return Token(token_type, text, token.line, token.col, token.start, end - 1)


def _ends_operand(tokens: list[Token]) -> bool:
    """Whether a dot after these tokens means a field (`a.1`) and not the beginning of a number (`.1`)."""
    last_tokens = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)
    return bool(tokens) and tokens[-1].token_type in last_tokens


def _check_gap(sql: str, gap: str, *, of_expression: bool) -> None:
    """Between tokens there may be only blanks and comments; sqlglot accepts more kinds of comments than Spark."""
    if "{#" in gap or (of_expression and "/*+" in gap):
        raise not_an_expression(sql, "it holds a hint or a template")
    if "--" in gap and "\\\n" in gap:
        raise not_an_expression(sql, "a comment goes on after a backslash at the end of its line")


def _check_token(sql: str, token: Token, previous: Token | None) -> None:
    """Refuses subqueries, empty places in lists (`f(a, )`), semicolons and N'...', which sqlglot accepts. An empty list `()` is
    allowed."""
    kind, kind_before = token.token_type, None if previous is None else previous.token_type
    if kind_before == TokenType.L_PAREN and token.text.upper() in ("SELECT", "WITH"):
        raise not_supported(SUBQUERY)
    is_empty_item = kind in _CLOSING and kind_before in _BEFORE_ITEMS
    is_empty_item = is_empty_item and not (kind == TokenType.R_PAREN and kind_before == TokenType.L_PAREN)
    if is_empty_item or kind in (TokenType.SEMICOLON, TokenType.NATIONAL_STRING):
        raise not_an_expression(sql, f"{token.text[:40]!r} at character {token.start + 1} is not expected")


# ---------------------------------------------------------------- grammar


_KEYWORDS = {**_TYPES, **_WORDS, **_SYMBOLS}
_NOTHING: dict[Any, Any] = {}
_FUNCTION_PARSERS = {
    **{name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")},
    "SUBSTR": SparkParser.FUNCTION_PARSERS["SUBSTRING"],
}
_COLUMN_OPERATORS = {kind: SparkParser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)}
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.STAR)
_PRIMARIES = {kind: SparkParser.PRIMARY_PARSERS[kind] for kind in _LITERALS}
# Words that may also name a column in the place of an operand.
_NAME_TOKENS = {
    *(TokenType.VAR, *_TYPES.values(), TokenType.ALIAS, TokenType.ESCAPE, TokenType.DIV, TokenType.FOR, TokenType.END),
    *(TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.IS, TokenType.BETWEEN, TokenType.RLIKE),
    *(TokenType.LIKE, TokenType.ILIKE),
}
_FUNCTION_NAME_TOKENS = {*_NAME_TOKENS, TokenType.IDENTIFIER, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE}
_BRACKETS = frozenset({TokenType.L_BRACKET})
_SMALL_UNITS = ("SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", *_SMALL_UNITS)
_INTERVAL_UNITS = (*_UNITS, *(f"{unit}S" for unit in _UNITS))
_CASE: dict[str, Callable[[Any], Any]] = {"CASE": lambda self: self._case()}


class _Parser(SparkParser):
    """sqlglot's parser for Spark with the grammar that the module describes.

    Each method reads the part of the grammar that its name says, from the current token on, and returns the part's node. Methods
    named `_parse_...` replace methods of sqlglot, which calls them. `_match` and similar methods of sqlglot consume the current
    token if it is of the given kind; `_prev`, `_curr` and `_next` are the tokens before, at and after the current position.
    Empty tables remove what Spark's expressions do not have.
    """

    STRICT_CAST = True
    FUNCTIONS = _NOTHING
    NO_PAREN_FUNCTIONS = _NOTHING
    NO_PAREN_FUNCTION_PARSERS = _CASE
    FUNCTION_PARSERS = _FUNCTION_PARSERS
    COLUMN_OPERATORS = _COLUMN_OPERATORS
    BRACKETS = _BRACKETS
    ARRAY_CONSTRUCTORS = _NOTHING
    PRIMARY_PARSERS = _PRIMARIES
    PLACEHOLDER_PARSERS = _NOTHING
    ID_VAR_TOKENS = _NAME_TOKENS
    FUNC_TOKENS = _FUNCTION_NAME_TOKENS

    # ---------------------------------------------------------------- logic and predicates

    def _parse_conjunction(self) -> Any:
        return self._chain(self._negation, {TokenType.AND: exp.And})

    def _chain(self, operand: Callable[[], Any], operators: _Binary) -> Any:
        """Operands with any of the operators between them, bound from the left. operand: reads one operand."""
        left = operand()
        while self._match_set(operators):
            left = self.expression(operators[self._prev.token_type](this=left, expression=operand()))
        return left

    def _negation(self) -> Any:
        """NOT, any number of times, before a predicate or comparison."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._negation()))
        return self._parse_range()

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        """A comparison, or a predicate on it: IS, BETWEEN, IN, LIKE, ILIKE or RLIKE, with or without NOT. Spark binds predicates
        less tightly than comparisons. parse_is has no effect: it belongs to the method of sqlglot that this one replaces."""
        operand = this or self._parse_comparison()
        if self._match(TokenType.IS):
            return self._is(operand)
        is_negated = self._match(TokenType.NOT)
        if self._match(TokenType.BETWEEN):
            predicate = self._between(operand)
        elif self._match(TokenType.IN):
            if not self._match(TokenType.L_PAREN, advance=False):
                self.raise_error("Expecting (")
            predicate = self._parse_in(operand)
        elif self._match_set((TokenType.LIKE, TokenType.ILIKE)):
            return self._pattern(exp.Like if self._prev.token_type == TokenType.LIKE else exp.ILike, operand, is_negated)
        elif self._match(TokenType.RLIKE):
            predicate = self.expression(exp.RegexpLike(this=operand, expression=self._parse_comparison()))
        else:
            if is_negated:
                self.raise_error("Expecting a predicate")
            return operand
        return self.expression(exp.Not(this=predicate)) if is_negated else predicate

    def _parse_in(self, this: Any, alias: bool = False) -> Any:
        """The rest after IN. this: the operand. alias has no effect: it belongs to the method of sqlglot that this replaces."""
        self._match(TokenType.L_PAREN)
        options = self._parse_csv(self._option)
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Expecting )")
        return self.expression(exp.In(this=this, expressions=options))

    def _option(self) -> Any:
        """One of possibly very many options: a number or a text alone is read without looking for operators."""
        kind = self._curr.token_type
        if kind not in (TokenType.NUMBER, TokenType.STRING) or self._next.token_type not in _CLOSING:
            return self._parse_select_or_expression()
        self._advance()
        return exp.Literal(this=self._prev.text, is_string=kind == TokenType.STRING)

    def _is(self, operand: Any) -> Any:
        """The rest after IS: [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM."""
        is_negated = self._match(TokenType.NOT)
        if self._match(TokenType.DISTINCT):
            if not self._match(TokenType.FROM):
                self.raise_error("Expecting FROM")
            predicate: Any = self.expression(exp.NullSafeEQ(this=operand, expression=self._parse_comparison()))
            is_negated = not is_negated  # IS DISTINCT FROM is NOT <=>
        elif self._match_set((TokenType.NULL, TokenType.TRUE, TokenType.FALSE)) or self._match_texts(("UNKNOWN",)):
            predicate = self.expression(exp.Is(this=operand, expression=exp.Var(this=self._prev.text.upper())))
        else:
            self.raise_error("Expecting NULL")
        return self.expression(exp.Not(this=predicate)) if is_negated else predicate

    def _between(self, operand: Any) -> Any:
        """The rest after BETWEEN."""
        low = self._parse_comparison()
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND")
        return self.expression(exp.Between(this=operand, low=low, high=self._parse_comparison()))

    def _pattern(self, kind: type[exp.Expression], operand: Any, is_negated: Any) -> Any:
        """LIKE and ILIKE; with ANY or SOME an OR of the matches, with ALL an AND; NOT negates each match."""
        if not (self._next.token_type == TokenType.L_PAREN and self._match_texts(("ANY", "SOME", "ALL"))):
            predicate = self._parse_escape(self.expression(kind(this=operand, expression=self._parse_comparison())))
            return self.expression(exp.Not(this=predicate)) if is_negated else predicate
        connective = exp.And if self._prev.text.upper() == "ALL" else exp.Or
        patterns = self._parse_wrapped(lambda: self._parse_csv(self._parse_comparison))
        # All patterns share one operand: copies of copies would be exponentially many.
        matches = [kind(this=operand, expression=pattern) for pattern in patterns]
        parts = [exp.Not(this=match) if is_negated else match for match in matches]
        return exp.Paren(this=reduce(lambda left, right: connective(this=left, expression=right), parts))

    # ---------------------------------------------------------------- values

    def _parse_equality(self, parse_is: bool = True) -> Any:
        return self._negation()

    def _parse_comparison(self, this: Any = None) -> Any:
        return self._chain(self._parse_bitwise, _COMPARISONS)

    def _parse_bitwise(self) -> Any:
        return self._chain(self._xor, {TokenType.PIPE: exp.BitwiseOr})

    def _xor(self) -> Any:
        return self._chain(self._and, {TokenType.CARET: exp.BitwiseXor})

    def _and(self) -> Any:
        return self._chain(self._shift, {TokenType.AMP: exp.BitwiseAnd})

    def _shift(self) -> Any:
        """Parse shifts. The tokenizer gives `<<`, `>>` and `>>>` as two or three separate tokens."""
        left = self._parse_term()
        while self._is_shift():
            symbol = self._curr.token_type
            self._advance(2)
            if symbol == TokenType.GT and self._is_connected() and self._match(TokenType.GT):
                left = self.expression(exp.Anonymous(this="shiftrightunsigned", expressions=[left, self._parse_term()]))
                continue
            kind = exp.BitwiseLeftShift if symbol == TokenType.LT else exp.BitwiseRightShift
            left = self.expression(kind(this=left, expression=self._parse_term()))
        return left

    def _is_shift(self) -> bool:
        """Whether the next two tokens are `<<` or `>>`, without a blank between them."""
        are_equal = self._curr.token_type in (TokenType.LT, TokenType.GT) and self._next.token_type == self._curr.token_type
        return bool(are_equal and self._curr.end + 1 == self._next.start)

    def _parse_term(self, parse_mod: bool = True) -> Any:
        return self._chain(self._parse_factor, _SUMS)

    def _parse_factor(self, parse_mod: bool = True) -> Any:
        return self._chain(self._parse_unary, _PRODUCTS)

    def _parse_unary(self) -> Any:
        """An operand with any number of signs and ~ before it."""
        if self._match(TokenType.DASH):
            if self._match(TokenType.NUMBER):  # a literal with its sign: -2147483648 is an int
                return self._parse_column_ops(exp.Literal(this="-" + self._prev.text, is_string=False))
            return self.expression(exp.Neg(this=self._parse_unary()))
        if self._match(TokenType.PLUS):
            return self.expression(exp.Anonymous(this="positive", expressions=[self._parse_unary()]))
        if self._match(TokenType.TILDE):
            return self.expression(exp.BitwiseNot(this=self._parse_unary()))
        return self._parse_type()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        """A text with a type before it (`DATE '2024-01-01'`), an INTERVAL, or another operand such as a column or a call."""
        word, next_token_type = self._curr.text.upper(), self._next.token_type
        if self._curr.token_type in _WORD_TOKENS and next_token_type == TokenType.STRING and word in _LITERAL_PREFIXES:
            self._advance(2)
            literal = exp.Introducer(this=exp.Var(this=word), expression=exp.Literal.string(self._prev.text))
            return self._parse_column_ops(literal)
        if word == "INTERVAL" and next_token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.DASH):
            self._advance()
            return self.expression(exp.Interval(this=exp.Var(this=self._interval_parts())))
        return self._parse_column()

    def _interval_parts(self) -> str:
        """The text after INTERVAL, with one blank between the words: `1 DAY 2 HOURS`, `'1-2' YEAR TO MONTH`, `'1 day'`."""
        parts = []
        while self._curr.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.DASH):
            sign = "-" if self._match(TokenType.DASH) else ""
            if not self._match_set((TokenType.STRING, TokenType.NUMBER)):
                self.raise_error("Expecting a number")
            value = f"'{self._prev.text}'" if self._prev.token_type == TokenType.STRING else self._prev.text
            parts.append(sign + value)
            if self._match_texts(_INTERVAL_UNITS):
                parts.append(self._prev.text.upper())
                if self._match_texts(("TO",)):
                    if not self._match_texts(_INTERVAL_UNITS):
                        self.raise_error("Expecting a unit of time")
                    parts += ["TO", self._prev.text.upper()]
        return " ".join(parts)

    def _case(self) -> Any:
        """The rest after CASE, with an operand (`CASE x WHEN 1 ...`) or without (`CASE WHEN x = 1 ...`)."""
        operand = None if self._match(TokenType.WHEN, advance=False) else self._parse_disjunction()
        cases = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.raise_error("Expecting THEN")
            cases.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not cases or not self._match(TokenType.END):
            self.raise_error("Expecting WHEN or END")
        return self.expression(exp.Case(this=operand, ifs=cases, default=default))


class SparkExpressions(Spark):
    """Spark's expressions, and nothing else of its SQL."""

    IDENTIFIERS_CAN_START_WITH_DIGIT = True
    Parser = _Parser

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS = _KEYWORDS
        NUMERIC_LITERALS = _NOTHING
        HEX_STRINGS = ()  # type: ignore[assignment]
