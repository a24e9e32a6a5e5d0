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
from delta_py.expressions.resolve import Node, resolve, resolve_condition
from delta_py.expressions.to_sql import to_sql
from delta_py.expressions.tokens import Kind, Token, number, tokenize
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
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructType,
)

__all__ = ["parse_expression", "parse_predicate", "to_sql"]

_MAX_DEPTH = 100  # so that whoever walks the tree later stays far from Python's recursion limit

_TYPES: dict[str, DataType] = {
    **dict.fromkeys(("TINYINT", "BYTE"), BYTE),
    **dict.fromkeys(("SMALLINT", "SHORT"), SHORT),
    **dict.fromkeys(("INT", "INTEGER"), INTEGER),
    **dict.fromkeys(("BIGINT", "LONG"), LONG),
    **dict.fromkeys(("FLOAT", "REAL"), FLOAT),
    "DOUBLE": DOUBLE,
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR", "CHARACTER"), STRING),
    "BOOLEAN": BOOLEAN,
    "BINARY": BINARY,
    "DATE": DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), TIMESTAMP),
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "VOID": VOID,
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), DecimalType(10, 0)),
}
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


class _Parser:
    """One pass over the tokens. Each method parses what its name says and leaves the place after it."""

    def __init__(self, sql: str, schema: StructType, zone: str) -> None:
        self._sql = sql
        self._schema = schema
        self._zone = zone
        self._tokens = tokenize(sql)
        self._place = 0

    def whole(self) -> Expression:
        found = self._condition()
        if self._next.kind is not Kind.END:
            raise self._unexpected()
        return found

    # ------------------------------------------------------------ tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    @property
    def _after_next(self) -> Token:
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def _accept(self, *wanted: str) -> str:
        """The next token's word or symbol if it is one of these, taken; '' otherwise."""
        token = self._next
        found = token.word if token.kind is Kind.WORD else token.text if token.kind is Kind.SYMBOL else ""
        if found not in wanted:
            return ""
        self._take()
        return found

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise self._unexpected(f", where {wanted} should be")

    def _unexpected(self, where: str = "") -> ExpressionError:
        token = self._next
        what = (
            "it ends too early"
            if token.kind is Kind.END
            else f"{token.text[:40]!r} at character {token.place + 1} is not expected"
        )
        return not_an_expression(self._sql, what + where)

    # ------------------------------------------------------------ logic

    def _condition(self) -> Expression:
        operands = [self._conjunction()]
        while self._accept("OR"):
            operands.append(self._conjunction())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _conjunction(self) -> Expression:
        operands = [self._negation()]
        while self._accept("AND"):
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _negation(self) -> Expression:
        if self._is_negation():
            self._take()
            return Not(self._negation())
        return self._predicated()

    def _is_negation(self) -> bool:
        return self._next.word == "NOT" or (self._next.kind is Kind.SYMBOL and self._next.text == "!")

    def _predicated(self) -> Expression:
        operand = self._comparison()
        if self._accept("IS"):
            return self._is(operand)
        negated = bool(self._accept("NOT"))
        keyword = self._accept("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
        if not keyword:
            if negated:
                raise self._unexpected()
            return operand
        found = self._predicate(keyword, operand, negated)
        return found

    def _predicate(self, keyword: str, operand: Expression, negated: bool) -> Expression:
        match keyword:
            case "BETWEEN":
                low = self._comparison()
                self._expect("AND")
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
        negated = bool(self._accept("NOT"))
        match self._accept("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT"):
            case "NULL":
                found: Expression = IsNull(operand)
            case "UNKNOWN":
                found = IsNull(self._as_condition(operand))
            case "TRUE" | "FALSE" as word:
                found = Comparison("<=>", self._as_condition(operand), Literal(word == "TRUE", BOOLEAN))
            case "DISTINCT":
                self._expect("FROM")
                found, negated = Comparison("<=>", operand, self._comparison()), not negated
            case _:
                raise self._unexpected()
        return Not(found) if negated else found

    def _as_condition(self, operand: Expression) -> Expression:
        return resolve_condition(operand, self._schema, self._zone).expression

    def _in(self, operand: Expression) -> Expression:
        self._expect("(")
        if self._next.word in ("SELECT", "WITH"):
            raise not_supported("A subquery")
        options = [self._condition()]
        while self._accept(","):
            options.append(self._condition())
        self._expect(")")
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
        quantifier = self._accept("ANY", "SOME", "ALL")
        if not quantifier:
            found = self._match(operand, self._comparison())
            return Not(found) if negated else found
        self._expect("(")
        matches = [self._match(operand, self._comparison())]
        while self._accept(","):
            matches.append(self._match(operand, self._comparison()))
        self._expect(")")
        parts = tuple(Not(match) if negated else match for match in matches)
        return And(parts) if quantifier == "ALL" else Or(parts)

    def _match(self, operand: Expression, pattern: Expression) -> Expression:
        escape = "\\"
        if self._accept("ESCAPE"):
            token = self._take()
            if token.kind is not Kind.TEXT or token.value is None or len(token.value.value) != 1:
                raise not_an_expression(self._sql, "ESCAPE needs one character in quotes")
            escape = token.value.value
        literal = self._folded(pattern)
        if literal is None:
            raise not_supported("LIKE with a pattern that is not a constant", "Give it a constant.")
        if literal.value is None:
            return Literal(None, BOOLEAN)
        if not isinstance(literal.value, str):
            raise not_supported("LIKE with a pattern that is not text", "Put the pattern in quotes.")
        return StringMatch("like", operand, _with_backslashes(literal.value, escape))

    # ------------------------------------------------------------ values

    def _comparison(self) -> Expression:
        left = self._binary(0)
        while self._next.kind is Kind.SYMBOL and (self._next.text in _COMPARISONS or self._next.text in _UNEQUAL):
            symbol = self._take().text
            right = self._binary(0)
            left = Not(Comparison("=", left, right)) if symbol in _UNEQUAL else Comparison(_COMPARISONS[symbol], left, right)
        return left

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while symbol := self._accept(*_LEVELS[level]):
            left = Call("concat" if symbol == "||" else symbol.lower(), (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Expression:
        symbol = self._accept("-", "+", "~")
        if not symbol:
            return self._postfix(self._primary())
        if symbol == "-" and self._next.kind is Kind.NUMBER:
            return self._postfix(number(self._sql, "-" + self._take().text))
        operand = self._unary()
        if symbol == "~":
            return Call("~", (operand,))
        if symbol == "+":
            return Call("positive", (operand,))
        return Call("-", (operand,))

    def _postfix(self, operand: Expression) -> Expression:
        while self._next.kind is Kind.SYMBOL and self._next.text in ("::", "[", "."):
            if self._take().text != "::":
                raise not_supported("Access to an element of an array, a map or the result of a function")
            operand = Cast(operand, self._type())
        return operand

    def _primary(self) -> Expression:
        token = self._next
        match token.kind:
            case Kind.NUMBER:
                return number(self._sql, self._take().text)
            case Kind.TEXT:
                return Literal(self._text(), STRING)
            case Kind.QUOTED:
                return self._column()
            case Kind.WORD:
                return self._from_word(token)
        if self._accept("("):
            return self._parenthesized()
        raise self._unexpected()

    def _parenthesized(self) -> Expression:
        if self._next.word in ("SELECT", "WITH"):
            raise not_supported("A subquery")
        found = self._condition()
        if self._next.text == "," and self._next.kind is Kind.SYMBOL:
            raise not_supported("A row of values in parentheses")
        self._expect(")")
        return found

    def _text(self) -> str:
        """Neighbouring texts are one."""
        parts = []
        while self._next.kind is Kind.TEXT:
            value = self._take().value
            assert value is not None
            parts.append(value.value)
        return "".join(parts)

    def _from_word(self, token: Token) -> Expression:
        word, after = token.word, self._after_next
        if after.kind is Kind.TEXT and word in _TYPED_TEXT:
            self._take()
            return self._typed(word, self._text())
        if word == "INTERVAL" and after.kind in (Kind.TEXT, Kind.NUMBER):
            raise not_supported("INTERVAL")
        if after.kind is Kind.SYMBOL and after.text == "(":
            return self._call(word, token.text)
        if word in ("NULL", "TRUE", "FALSE"):
            self._take()
            return Literal(None, VOID) if word == "NULL" else Literal(word == "TRUE", BOOLEAN)
        if word == "CASE":
            return self._case()
        if word in _WITHOUT_PARENTHESES and self._schema.find(token.text) is None:
            self._take()
            return Call(word.lower(), ())
        return self._column()

    def _column(self) -> Expression:
        path = [self._name()]
        while self._next.kind is Kind.SYMBOL and self._next.text == "." and self._after_next.kind in (Kind.WORD, Kind.QUOTED):
            self._take()
            path.append(self._name())
        return Column(tuple(path))

    def _name(self) -> str:
        token = self._next
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self._unexpected()
        return self._take().text

    def _typed(self, word: str, text: str) -> Expression:
        if word == "X":
            try:
                return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), BINARY)
            except ValueError as error:
                raise not_an_expression(self._sql, f"{text[:40]!r} is not hexadecimal") from error
        found = resolve(Cast(Literal(text, STRING), _TYPES[word]), self._schema, self._zone).expression
        if not isinstance(found, Literal):
            raise not_an_expression(self._sql, f"{text[:40]!r} is no {word.lower()} between the years 1 and 9999")
        return found

    # ------------------------------------------------------------ calls

    def _call(self, word: str, name: str) -> Expression:
        self._take()
        self._expect("(")
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
            return Cast(arguments[0], _TYPES[word])
        if word in ("LTRIM", "RTRIM", "BTRIM") and len(arguments) == 2 and word != "BTRIM":
            arguments.reverse()  # Spark takes the characters first; the tree has the text first
        return Call(name.lower(), tuple(arguments))

    def _arguments(self) -> list[Expression]:
        if self._accept(")"):
            return []
        if self._next.word == "DISTINCT" or (self._next.kind is Kind.SYMBOL and self._next.text == "*"):
            raise not_supported("An aggregate function")
        arguments = [self._condition()]
        while self._accept(","):
            arguments.append(self._condition())
        self._expect(")")
        return arguments

    def _cast(self) -> Expression:
        operand = self._condition()
        self._expect("AS")
        data_type = self._type()
        self._expect(")")
        return Cast(operand, data_type)

    def _trim(self) -> Expression:
        side = self._accept("BOTH", "LEADING", "TRAILING")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        if self._accept("FROM"):
            text = self._condition()
            self._expect(")")
            return Call(name, (text,))
        first = self._condition()
        if self._accept("FROM") or (not side and self._accept(",")):
            text = self._condition()
            self._expect(")")
            return Call(name, (text, first))
        self._expect(")")
        return Call(name, (first,))

    def _substring(self) -> Expression:
        arguments = [self._condition()]
        for word in ("FROM", "FOR"):
            if self._accept(",", word):
                arguments.append(self._condition())
        self._expect(")")
        return Call("substring", tuple(arguments))

    def _extract(self) -> Expression:
        field = self._name().upper()
        self._expect("FROM")
        source = self._condition()
        self._expect(")")
        if field not in _FIELDS:
            raise not_supported(f"EXTRACT({field} FROM ...)")
        return Call(_FIELDS[field], (source,))

    def _case(self) -> Expression:
        self._take()
        operand = None if self._next.word == "WHEN" else self._condition()
        parts: list[Expression] = []
        while self._accept("WHEN"):
            condition = self._condition()
            self._expect("THEN")
            parts += [condition if operand is None else Comparison("=", operand, condition), self._condition()]
        if not parts:
            raise self._unexpected()
        if self._accept("ELSE"):
            parts.append(self._condition())
        self._expect("END")
        return Call("case", tuple(parts))

    # ------------------------------------------------------------ types

    def _type(self) -> DataType:
        token = self._next
        found = _TYPES.get(token.word)
        if found is None:
            raise not_supported(f"A cast to {token.text[:40] or 'nothing'}")
        self._take()
        parameters = self._type_parameters()
        if self._next.word == "COLLATE":
            raise not_supported("A cast to a type with a collation")
        if isinstance(found, DecimalType):
            return self._decimal(parameters) if parameters else found
        if parameters and not (found == STRING and token.word != "STRING" and len(parameters) == 1):
            raise not_an_expression(self._sql, f"the type {token.text} takes no parameters")
        return found

    def _type_parameters(self) -> list[int]:
        if not self._accept("("):
            return []
        values: list[int] = []
        while not values or self._accept(","):
            digits = self._take().text
            if not digits.isdecimal() or len(digits) > 9:
                raise not_an_expression(self._sql, "a type's parameter must be a whole number")
            values.append(int(digits))
        self._expect(")")
        return values

    def _decimal(self, parameters: list[int]) -> DecimalType:
        precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
        if len(parameters) > 2 or not 0 < precision <= coercion.MAX_PRECISION or not 0 <= scale <= precision:
            raise not_an_expression(self._sql, f"there is no decimal({', '.join(map(str, parameters))})")
        return DecimalType(precision, scale)


def _with_backslashes(pattern: str, escape: str) -> str:
    """A LIKE pattern with its escape character replaced by the backslash. Wrong escapes stay wrong, for resolve to refuse."""
    if escape == "\\":
        return pattern
    result, place = [], 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            following = pattern[place + 1 : place + 2]
            if following not in ("%", "_", escape):
                raise ExpressionError(
                    f"The LIKE pattern {pattern[:100]!r} has an escape {escape!r} not followed by %, _ or itself.",
                    error_class="INVALID_FORMAT",
                    sql_state="42601",
                )
            result.append(_literal_character(following) if following == escape else "\\" + following)
            place += 2
            continue
        result.append("\\\\" if character == "\\" else character)
        place += 1
    return "".join(result)


def _literal_character(character: str) -> str:
    return "\\" + character if character in "%_\\" else character
