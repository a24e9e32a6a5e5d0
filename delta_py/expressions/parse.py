"""SQL text in Spark's dialect -> a resolved tree.

Spark's own grammar of expressions, by precedence: constraints, generated columns, `filter` options, replaceWhere. The
text is parsed here and not by a general SQL parser because the differences are wrong rows: precedence, escapes in text,
types of literals, try_cast against cast. What the grammar has and this library does not do is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable

from delta_py.errors import ExpressionError
from delta_py.expressions import coercion
from delta_py.expressions.failures import not_an_expression, not_supported
from delta_py.expressions.like import with_backslashes
from delta_py.expressions.nodes import Node
from delta_py.expressions.resolve import resolve, resolve_condition
from delta_py.expressions.sql_types import TYPES, parse_type
from delta_py.expressions.to_sql import to_sql
from delta_py.expressions.tokens import Kind, Token, TokenStream, number
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
    children,
)
from delta_py.protocol.schema import (
    BINARY,
    BOOLEAN,
    STRING,
    VOID,
    StructType,
)

__all__ = ["parse_expression", "parse_predicate", "to_sql"]

_MAX_DEPTH = 100  # so that whoever walks the tree later stays far from Python's recursion limit

# `date(x)` is `cast(x as date)`.
_CASTING_FUNCTIONS = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "DATE", "TIMESTAMP", "DECIMAL"}
)
_TYPED_TEXT = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"})
_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!>": "<=", "!<": ">="}
_UNEQUAL = frozenset({"<>", "!="})
# Binary operators of values from loose to tight; comparisons come before them all.
_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"|"}),
    frozenset({"^"}),
    frozenset({"&"}),
    frozenset({"<<", ">>"}),
    frozenset({"+", "-", "||"}),
    frozenset({"*", "/", "%", "DIV"}),
)
_WITHOUT_PARENTHESES = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIMEZONE"})
_FIELDS = {
    **{name: name.lower() for name in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFWEEK", "HOUR", "MINUTE")},
    **{"Y": "year", "YEARS": "year", "YR": "year", "YRS": "year", "QTR": "quarter", "MON": "month", "MONS": "month"},
    **{"MONTHS": "month", "D": "day", "DAYS": "day", "DOW": "dayofweek", "DOY": "dayofyear", "WEEK": "weekofyear"},
    **{"W": "weekofyear", "WEEKS": "weekofyear", "H": "hour", "HOURS": "hour", "HR": "hour", "HRS": "hour"},
    **{"M": "minute", "MIN": "minute", "MINS": "minute", "MINUTES": "minute"},
}


def parse_predicate(sql: str, schema: StructType, *, session_timezone: str = "UTC") -> Expression:
    """The condition that the text says about rows of the schema; of type boolean.

    Columns get the schema's own spelling (found ignoring case), literals the type they are compared in, and the casts
    that Spark inserts are in the tree. session_timezone: for text, dates and wall clocks compared with timestamps.
    Raises ExpressionError for text that is no such condition or needs what is not supported (named), and
    SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for an unknown column.
    """
    return _resolved(sql, schema, session_timezone, resolve_condition).expression


def parse_expression(sql: str, schema: StructType, *, session_timezone: str = "UTC") -> Expression:
    """As parse_predicate, for an expression of any type (generated columns, defaults)."""
    return _resolved(sql, schema, session_timezone, resolve).expression


def _resolved(sql: str, schema: StructType, zone: str, decide: Callable[[Expression, StructType, str], Node]) -> Node:
    try:
        tree = _Parser(sql, schema, zone).whole()
    except RecursionError as error:
        raise _too_deep() from error
    _check_depth(tree)
    return decide(tree, schema, zone)


def _check_depth(tree: Expression) -> None:
    level: list[Expression] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for parent in level if not isinstance(parent, In) for child in children(parent)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ExpressionError:
    return ExpressionError(
        f"The expression is nested more than {_MAX_DEPTH} levels deep. Split it, or use IN for many values.",
        error_class="PARSE_SYNTAX_ERROR",
        sql_state="42601",
    )


class _Parser(TokenStream):
    """One pass over the tokens. Each method parses what its name says and leaves the place after it."""

    def __init__(self, sql: str, schema: StructType, zone: str) -> None:
        super().__init__(sql)
        self._schema = schema
        self._zone = zone

    def whole(self) -> Expression:
        found = self._condition()
        if self.next.kind is not Kind.END:
            raise self.unexpected()
        return found

    # ------------------------------------------------------------ logic

    def _condition(self) -> Expression:
        operands = [self._conjunction()]
        while self.accept("OR"):
            operands.append(self._conjunction())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _conjunction(self) -> Expression:
        operands = [self._negation()]
        while self.accept("AND"):
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _negation(self) -> Expression:
        if self._is_negation():
            self.take()
            return Not(self._negation())
        return self._predicated()

    def _is_negation(self) -> bool:
        return self.next.word == "NOT" or (self.next.kind is Kind.SYMBOL and self.next.text == "!")

    def _predicated(self) -> Expression:
        operand = self._comparison()
        if self.accept("IS"):
            return self._is(operand)
        negated = bool(self.accept("NOT"))
        keyword = self.accept("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
        if not keyword:
            if negated:
                raise self.unexpected()
            return operand
        found = self._predicate(keyword, operand, negated)
        return found

    def _predicate(self, keyword: str, operand: Expression, negated: bool) -> Expression:
        match keyword:
            case "BETWEEN":
                low = self._comparison()
                self.expect("AND")
                found: Expression = And((Comparison(">=", operand, low), Comparison("<=", operand, self._comparison())))
            case "IN":
                found = self._in(operand)
            case "LIKE":
                return self._like(operand, negated)
            case "ILIKE":
                found = Call("ilike", (operand, self._comparison()))
            case _:
                found = Call("rlike", (operand, self._comparison()))
        return Not(found) if negated else found

    def _is(self, operand: Expression) -> Expression:
        negated = bool(self.accept("NOT"))
        match self.accept("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT"):
            case "NULL":
                found: Expression = IsNull(operand)
            case "UNKNOWN":
                found = IsNull(self._as_condition(operand))
            case "TRUE" | "FALSE" as word:
                found = Comparison("<=>", self._as_condition(operand), Literal(word == "TRUE", BOOLEAN))
            case "DISTINCT":
                self.expect("FROM")
                found, negated = Comparison("<=>", operand, self._comparison()), not negated
            case _:
                raise self.unexpected()
        return Not(found) if negated else found

    def _as_condition(self, operand: Expression) -> Expression:
        return resolve_condition(operand, self._schema, self._zone).expression

    def _in(self, operand: Expression) -> Expression:
        self.expect("(")
        if self.next.word in ("SELECT", "WITH"):
            raise not_supported("A subquery")
        options = [self._condition()]
        while self.accept(","):
            options.append(self._condition())
        self.expect(")")
        literals = [self._folded(option) for option in options]
        constants = [literal for literal in literals if literal is not None]
        if len(constants) == len(options):
            return In(operand, tuple(constants))
        return self._equal_to_any(operand, options)

    def _folded(self, option: Expression) -> Literal | None:
        if isinstance(option, Literal):
            return option
        found = resolve(option, self._schema, self._zone).expression
        return found if isinstance(found, Literal) else None

    def _equal_to_any(self, operand: Expression, options: list[Expression]) -> Expression:
        """IN with options that are no constants: all are compared in the one type that they have in common."""
        types = [resolve(each, self._schema, self._zone).data_type for each in (operand, *options)]
        found = coercion.common_type_of_all(types)
        if found is None:
            raise not_supported("IN with options of types that have nothing in common")
        left = operand if types[0] == found else Cast(operand, found)
        return Or(
            tuple(Comparison("=", left, o if t == found else Cast(o, found)) for o, t in zip(options, types[1:], strict=True))
        )

    # ------------------------------------------------------------ LIKE

    def _like(self, operand: Expression, negated: bool) -> Expression:
        quantifier = self.accept("ANY", "SOME", "ALL")
        if not quantifier:
            found = self._match(operand, self._comparison())
            return Not(found) if negated else found
        self.expect("(")
        matches = [self._match(operand, self._comparison())]
        while self.accept(","):
            matches.append(self._match(operand, self._comparison()))
        self.expect(")")
        parts = tuple(Not(match) if negated else match for match in matches)
        return And(parts) if quantifier == "ALL" else Or(parts)

    def _match(self, operand: Expression, pattern: Expression) -> Expression:
        escape = "\\"
        if self.accept("ESCAPE"):
            token = self.take()
            if token.kind is not Kind.TEXT or token.value is None or len(token.value.value) != 1:
                raise not_an_expression(self.sql, "ESCAPE needs one character in quotes")
            escape = token.value.value
        literal = self._folded(pattern)
        if literal is None:
            raise not_supported("LIKE with a pattern that is not a constant", "Give it a constant.")
        if literal.value is None:
            return Literal(None, BOOLEAN)
        if not isinstance(literal.value, str):
            raise not_supported("LIKE with a pattern that is not text", "Put the pattern in quotes.")
        return StringMatch("like", operand, with_backslashes(literal.value, escape))

    # ------------------------------------------------------------ values

    def _comparison(self) -> Expression:
        left = self._binary(0)
        while self.next.kind is Kind.SYMBOL and (self.next.text in _COMPARISONS or self.next.text in _UNEQUAL):
            symbol = self.take().text
            right = self._binary(0)
            left = Not(Comparison("=", left, right)) if symbol in _UNEQUAL else Comparison(_COMPARISONS[symbol], left, right)
        return left

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while symbol := self.accept(*_LEVELS[level]):
            left = Call("concat" if symbol == "||" else symbol.lower(), (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Expression:
        symbol = self.accept("-", "+", "~")
        if not symbol:
            return self._postfix(self._primary())
        if symbol == "-" and self.next.kind is Kind.NUMBER:
            return self._postfix(number(self.sql, "-" + self.take().text))
        operand = self._unary()
        if symbol == "~":
            return Call("~", (operand,))
        if symbol == "+":
            return Call("positive", (operand,))
        return Call("-", (operand,))

    def _postfix(self, operand: Expression) -> Expression:
        while self.next.kind is Kind.SYMBOL and self.next.text in ("::", "[", "."):
            if self.take().text != "::":
                raise not_supported("Access to an element of an array, a map or the result of a function")
            operand = Cast(operand, parse_type(self))
        return operand

    def _primary(self) -> Expression:
        token = self.next
        match token.kind:
            case Kind.NUMBER:
                return number(self.sql, self.take().text)
            case Kind.TEXT:
                return Literal(self._text(), STRING)
            case Kind.QUOTED:
                return self._column()
            case Kind.WORD:
                return self._from_word(token)
        if self.accept("("):
            return self._parenthesized()
        raise self.unexpected()

    def _parenthesized(self) -> Expression:
        if self.next.word in ("SELECT", "WITH"):
            raise not_supported("A subquery")
        found = self._condition()
        if self.next.text == "," and self.next.kind is Kind.SYMBOL:
            raise not_supported("A row of values in parentheses")
        self.expect(")")
        return found

    def _text(self) -> str:
        """Neighbouring texts are one."""
        parts = []
        while self.next.kind is Kind.TEXT:
            value = self.take().value
            assert value is not None
            parts.append(value.value)
        return "".join(parts)

    def _from_word(self, token: Token) -> Expression:
        word, after = token.word, self.after_next
        if after.kind is Kind.TEXT and word in _TYPED_TEXT:
            self.take()
            return self._typed(word, self._text())
        if word == "INTERVAL" and after.kind in (Kind.TEXT, Kind.NUMBER):
            raise not_supported("INTERVAL")
        if after.kind is Kind.SYMBOL and after.text == "(":
            return self._call(word, token.text)
        if word in ("NULL", "TRUE", "FALSE"):
            self.take()
            return Literal(None, VOID) if word == "NULL" else Literal(word == "TRUE", BOOLEAN)
        if word == "CASE":
            return self._case()
        if word in _WITHOUT_PARENTHESES and self._schema.find(token.text) is None:
            self.take()
            return Call(word.lower(), ())
        return self._column()

    def _column(self) -> Expression:
        path = [self._name()]
        while self.next.kind is Kind.SYMBOL and self.next.text == "." and self.after_next.kind in (Kind.WORD, Kind.QUOTED):
            self.take()
            path.append(self._name())
        return Column(tuple(path))

    def _name(self) -> str:
        token = self.next
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self.unexpected()
        return self.take().text

    def _typed(self, word: str, text: str) -> Expression:
        if word == "X":
            try:
                return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), BINARY)
            except ValueError as error:
                raise not_an_expression(self.sql, f"{text[:40]!r} is not hexadecimal") from error
        found = resolve(Cast(Literal(text, STRING), TYPES[word]), self._schema, self._zone).expression
        if not isinstance(found, Literal):
            raise not_an_expression(self.sql, f"{text[:40]!r} is no {word.lower()} between the years 1 and 9999")
        return found

    # ------------------------------------------------------------ calls

    def _call(self, word: str, name: str) -> Expression:
        self.take()
        self.expect("(")
        match word:
            case "CAST":
                return self._cast()
            case "TRY_CAST":
                raise not_supported("try_cast")
            case "TRIM":
                return self._trim()
            case "SUBSTRING" | "SUBSTR":
                return self._substring()
            case "EXTRACT":
                return self._extract()
            case "EXISTS":
                raise not_supported("A subquery")
        arguments = self._arguments()
        if word in _CASTING_FUNCTIONS and len(arguments) == 1:
            return Cast(arguments[0], TYPES[word])
        if word in ("LTRIM", "RTRIM", "BTRIM") and len(arguments) == 2 and word != "BTRIM":
            arguments.reverse()  # Spark takes the characters first; the tree has the text first
        return Call(name.lower(), tuple(arguments))

    def _arguments(self) -> list[Expression]:
        if self.accept(")"):
            return []
        if self.next.word == "DISTINCT" or (self.next.kind is Kind.SYMBOL and self.next.text == "*"):
            raise not_supported("An aggregate function")
        arguments = [self._condition()]
        while self.accept(","):
            arguments.append(self._condition())
        self.expect(")")
        return arguments

    def _cast(self) -> Expression:
        operand = self._condition()
        self.expect("AS")
        data_type = parse_type(self)
        self.expect(")")
        return Cast(operand, data_type)

    def _trim(self) -> Expression:
        side = self.accept("BOTH", "LEADING", "TRAILING")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        if self.accept("FROM"):
            text = self._condition()
            self.expect(")")
            return Call(name, (text,))
        first = self._condition()
        if self.accept("FROM") or (not side and self.accept(",")):
            text = self._condition()
            self.expect(")")
            return Call(name, (text, first))
        self.expect(")")
        return Call(name, (first,))

    def _substring(self) -> Expression:
        arguments = [self._condition()]
        for word in ("FROM", "FOR"):
            if self.accept(",", word):
                arguments.append(self._condition())
        self.expect(")")
        return Call("substring", tuple(arguments))

    def _extract(self) -> Expression:
        field = self._name().upper()
        self.expect("FROM")
        source = self._condition()
        self.expect(")")
        if field not in _FIELDS:
            raise not_supported(f"EXTRACT({field} FROM ...)")
        return Call(_FIELDS[field], (source,))

    def _case(self) -> Expression:
        self.take()
        operand = None if self.next.word == "WHEN" else self._condition()
        parts: list[Expression] = []
        while self.accept("WHEN"):
            condition = self._condition()
            self.expect("THEN")
            parts += [condition if operand is None else Comparison("=", operand, condition), self._condition()]
        if not parts:
            raise self.unexpected()
        if self.accept("ELSE"):
            parts.append(self._condition())
        self.expect("END")
        return Call("case", tuple(parts))
