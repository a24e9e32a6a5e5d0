"""Converts sqlglot's syntax tree to a tree of tree.py, not yet resolved. Imported only when SQL text is parsed.

Parts of Spark's grammar that this library does not support are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from delta_py.expressions.clock import CLOCK_FUNCTIONS
from delta_py.expressions.evaluation_errors import SUBQUERY, not_an_expression, not_supported
from delta_py.expressions.functions.like import with_backslashes
from delta_py.expressions.sql_text import literals
from delta_py.expressions.sql_text.dialect import parse_syntax_tree
from delta_py.expressions.sql_text.sql_types import data_type_of
from delta_py.expressions.tree import And, Call, Cast, Column, Comparison, Expression, In, IsNull, Literal, Not, Or, StringMatch
from delta_py.types.schema import (
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

# `date(x)` is `cast(x as date)`.
_CASTING_FUNCTIONS: dict[str, DataType] = {
    **{"tinyint": BYTE, "smallint": SHORT, "int": INTEGER, "bigint": LONG, "float": FLOAT, "double": DOUBLE},
    **{"string": STRING, "boolean": BOOLEAN, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP},
    "decimal": DecimalType(10, 0),
}
# Words before a text, as in `DATE '2024-01-01'`, and the type of the constant.
_PREFIX_TYPES = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}
_COMPARISONS: dict[type[exp.Expression], str] = {
    **{exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="},
}
_OPERATORS: dict[type[exp.Expression], str] = {
    **{exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "concat"},
    **{exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseNot: "~"},
    **{exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright", exp.Neg: "-", exp.RegexpLike: "rlike"},
}
# The fields of EXTRACT, and the function that returns each.
_EXTRACT_FUNCTIONS = {
    **{name: name.lower() for name in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFWEEK", "HOUR", "MINUTE")},
    **{"Y": "year", "YEARS": "year", "YR": "year", "YRS": "year", "QTR": "quarter", "MON": "month", "MONS": "month"},
    **{"MONTHS": "month", "D": "day", "DAYS": "day", "DOW": "dayofweek", "DOY": "dayofyear", "WEEK": "weekofyear"},
    **{"W": "weekofyear", "WEEKS": "weekofyear", "H": "hour", "HOURS": "hour", "HR": "hour", "HRS": "hour"},
    **{"M": "minute", "MIN": "minute", "MINS": "minute", "MINUTES": "minute"},
}


def parse_sql(sql: str, schema: StructType, fold: Callable[[Expression], Expression]) -> Expression:
    """The tree of the text. fold: resolves a tree, so that constants come back as Literals.

    Raises ExpressionError for text that is not an expression or uses something that is not supported; RecursionError for text
    that is nested too deeply.
    """
    return _Converter(sql, schema, fold).convert(parse_syntax_tree(sql))


class _Converter:
    """Converts the syntax tree of one text.

    sql: the text, for errors. schema: the name of one of its columns is never read as a function without parentheses.
    fold: resolves a tree, so that constants come back as Literals.
    """

    def __init__(self, sql: str, schema: StructType, fold: Callable[[Expression], Expression]) -> None:
        self._sql = sql
        self._schema = schema
        self._fold = fold
        self._trees_of_nodes: dict[int, Expression] = {}  # a node that occurs in several places is converted once

    def convert(self, node: exp.Expression) -> Expression:
        """The tree of a node; each node is converted once. Raises ExpressionError for nodes that are not supported."""
        if isinstance(node, exp.Literal):
            return Literal(node.this, STRING) if node.is_string else literals.parse_number(self._sql, node.this)
        converted = self._trees_of_nodes.get(id(node))
        if converted is None:
            converted = self._trees_of_nodes[id(node)] = self._convert_uncached(node)
        return converted

    def _convert_uncached(self, node: exp.Expression) -> Expression:
        """The tree of a node that is not a literal. Raises ExpressionError for nodes that are not supported."""
        match node:
            case exp.Paren():
                return self.convert(node.this)
            case exp.Column() | exp.Dot():
                return self._convert_name(node)
            case exp.And() | exp.Or():
                operands = tuple(map(self.convert, _operands(node)))
                return And(operands) if isinstance(node, exp.And) else Or(operands)
            case exp.Not():
                return Not(self.convert(node.this))
            case exp.Anonymous():
                return self._convert_call(node)
            case exp.Bracket():
                return self._convert_element(node)
        converters = (
            self._convert_constant,
            self._convert_comparison,
            self._convert_predicate,
            self._convert_operator_or_function,
        )
        for convert_kind in converters:  # each of these returns None for nodes that it does not know
            expression = convert_kind(node)
            if expression is not None:
                return expression
        raise self._unsupported_node_error(node)

    def _convert_all(self, nodes: Iterable[exp.Expression]) -> tuple[Expression, ...]:
        return tuple(self.convert(node) for node in nodes)

    def _unsupported_node_error(self, node: exp.Expression) -> Exception:
        """The error for a node that has no conversion. It names the part of Spark's grammar."""
        match node:
            case exp.Star() | exp.Distinct():
                return not_supported("An aggregate function")
            case exp.Tuple():
                return not_supported("A row of values in parentheses")
            case exp.Lambda():
                return not_supported("A lambda function", "Write the condition without a function of functions.")
            case exp.Interval():
                return not_supported("INTERVAL")
            case exp.Query():
                return not_supported(SUBQUERY)
            case exp.Alias():
                return not_an_expression(self._sql, f"{str(node.alias)[:40]!r} is not expected")
        return not_supported(f"{node.key.upper()} in {node.sql('spark')[:60]}")

    # ------------------------------------------------------------ literals and columns

    def _convert_constant(self, node: exp.Expression) -> Expression | None:
        """NULL, TRUE, FALSE, or a text with a word before it; None for other nodes."""
        match node:
            case exp.Null():
                return Literal(None, VOID)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.Introducer():
                return self._prefixed_literal(node.this.name, node.expression.this)
        return None

    def _prefixed_literal(self, prefix: str, text: str) -> Literal:
        """The constant of a text with a word before it: X'1F', DATE '2024-01-01', ..."""
        if prefix == "X":
            try:
                return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), BINARY)
            except ValueError as error:
                raise not_an_expression(self._sql, f"{text[:40]!r} is not hexadecimal") from error
        literal = self._fold(Cast(Literal(text, STRING), _PREFIX_TYPES[prefix]))
        if not isinstance(literal, Literal):  # still a cast: there is no such value, or Python cannot hold it
            raise not_an_expression(self._sql, f"{text[:40]!r} is no {prefix.lower()} between the years 1 and 9999")
        return literal

    def _convert_name(self, node: exp.Expression) -> Expression:
        """A column by its path, or a field of another expression's result."""
        if isinstance(node, exp.Dot):
            struct = self.convert(node.this)
            name = self._name_text(node.expression)
            if isinstance(struct, Column):
                return Column((*struct.path, name))
            return Call("get_field", (struct, Literal(name, STRING)))
        path = tuple(self._name_text(part) for part in node.parts)  # type: ignore[attr-defined]
        # A word such as current_date is a function without parentheses, unless a column has this name.
        lower_name = path[0].lower()
        if len(path) == 1 and lower_name in CLOCK_FUNCTIONS and not node.this.quoted and self._schema.find(lower_name) is None:
            return Call(lower_name, ())
        return Column(path)

    def _name_text(self, node: exp.Expression) -> str:
        """The text of a name, without backticks."""
        if not isinstance(node, exp.Identifier):
            raise not_an_expression(self._sql, f"{node.sql('spark')[:40]!r} is no name of a column or field")
        return str(node.this)

    def _convert_element(self, node: exp.Bracket) -> Expression:
        """container[index] or container[key]."""
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise not_an_expression(self._sql, "between [ and ] there must be one index or key")
        return Call("element", (self.convert(node.this), self.convert(node.expressions[0])))

    # ------------------------------------------------------------ comparisons and predicates

    def _convert_comparison(self, node: exp.Expression) -> Expression | None:
        """A comparison of two operands; None for other nodes."""
        if isinstance(node, exp.NEQ):
            return Not(Comparison("=", self.convert(node.this), self.convert(node.expression)))
        op = _COMPARISONS.get(type(node))
        return None if op is None else Comparison(op, self.convert(node.this), self.convert(node.expression))

    def _convert_predicate(self, node: exp.Expression) -> Expression | None:
        """BETWEEN, IN, IS, LIKE and ILIKE; None for other nodes."""
        match node:
            case exp.Between():
                operand = self.convert(node.this)
                low, high = self.convert(node.args["low"]), self.convert(node.args["high"])
                return And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
            case exp.In():
                return self._convert_in(node)
            case exp.Is():
                return self._convert_is(node.this, node.expression.name)
            case exp.Escape():
                return self._convert_like(node.this, _escape_character(self._sql, node.expression))
            case exp.Like() | exp.ILike():
                return self._convert_like(node, "\\")
        return None

    def _convert_is(self, operand: exp.Expression, what: str) -> Expression:
        """`operand IS what`. what: NULL, TRUE, FALSE or UNKNOWN."""
        if what == "NULL":
            return IsNull(self.convert(operand))
        condition = Call("is_condition", (self.convert(operand),))
        return IsNull(condition) if what == "UNKNOWN" else Comparison("<=>", condition, Literal(what == "TRUE", BOOLEAN))

    def _convert_in(self, node: exp.In) -> Expression:
        """IN: the node In if all options are constants, otherwise a call of `in`, which compares the options one by one."""
        if not node.expressions:
            raise not_an_expression(self._sql, "IN needs a list of values in parentheses")
        operand, options = self.convert(node.this), self._convert_all(node.expressions)
        constants = tuple(constant for constant in map(self._as_literal, options) if constant is not None)
        return In(operand, constants) if len(constants) == len(options) else Call("in", (operand, *options))

    def _as_literal(self, option: Expression) -> Literal | None:
        """The value of the expression as a Literal; None if it is not a constant."""
        value = option if isinstance(option, Literal) else self._fold(option)
        return value if isinstance(value, Literal) else None

    def _convert_like(self, node: exp.Expression, escape: str) -> Expression:
        """LIKE and ILIKE with a constant pattern. escape: the escape character of the pattern."""
        operand, pattern = self.convert(node.this), self._as_literal(self.convert(node.expression))
        if pattern is None:
            raise not_supported("LIKE with a pattern that is not a constant", "Give it a constant.")
        if pattern.value is None:
            return Literal(None, BOOLEAN)
        if not isinstance(pattern.value, str):
            raise not_supported("LIKE with a pattern that is not text", "Put the pattern in quotes.")
        spark_pattern = with_backslashes(pattern.value, escape)
        if isinstance(node, exp.ILike):
            return Call("ilike", (operand, Literal(spark_pattern, STRING)))
        return StringMatch("like", operand, spark_pattern)

    # ------------------------------------------------------------ operators and functions

    def _convert_operator_or_function(self, node: exp.Expression) -> Expression | None:
        """Expressions with their own grammar: operators, CASE, CAST, EXTRACT, TRIM, SUBSTRING, POSITION. None for other nodes.

        sqlglot's nodes have None in place of an optional operand that is not written. It is left out of the arguments.
        """
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            return Call(operator, self._convert_all([node.this, *filter(None, [node.args.get("expression")])]))
        match node:
            case exp.Case():
                return self._convert_case(node)
            case exp.Cast():
                return self._convert_cast(node)
            case exp.Extract():
                field = node.this.name.upper()
                if field not in _EXTRACT_FUNCTIONS:
                    raise not_supported(f"EXTRACT({field} FROM ...)")
                return Call(_EXTRACT_FUNCTIONS[field], (self.convert(node.expression),))
            case exp.Trim():
                name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
                return Call(name, self._convert_all(filter(None, [node.this, node.args.get("expression")])))
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                return Call("substring", self._convert_all(filter(None, parts)))
            case exp.StrPosition():
                parts = [node.args["substr"], node.this, node.args.get("position")]
                return Call("position", self._convert_all(filter(None, parts)))
        return None

    def _convert_case(self, node: exp.Case) -> Expression:
        """CASE. `CASE x WHEN v` becomes the condition x = v."""
        operand = None if node.this is None else self.convert(node.this)
        parts: list[Expression] = []
        for case in node.args["ifs"]:
            condition = self.convert(case.this)
            parts += [condition if operand is None else Comparison("=", operand, condition), self.convert(case.args["true"])]
        default = node.args.get("default")
        return Call("case", (*parts, *([] if default is None else [self.convert(default)])))

    def _convert_cast(self, node: exp.Cast) -> Expression:
        """CAST and TRY_CAST. sqlglot also reads forms that Spark does not have: these are refused."""
        if any(node.args.get(extra) for extra in ("format", "action", "default")):
            raise not_an_expression(self._sql, "CAST takes an expression and a type")
        operand, target = self.convert(node.this), data_type_of(self._sql, node.args["to"])
        if isinstance(node, exp.TryCast):
            return Call("try_cast", (operand, Literal(None, target)))
        return Cast(operand, target)

    def _convert_call(self, node: exp.Anonymous) -> Expression:
        """A call of a function by its name."""
        name, arguments = str(node.this if isinstance(node.this, str) else node.name).lower(), self._convert_all(node.expressions)
        if name in _CASTING_FUNCTIONS and len(arguments) == 1:
            return Cast(arguments[0], _CASTING_FUNCTIONS[name])
        if name in ("ltrim", "rtrim") and len(arguments) == 2:
            return Call(name, arguments[::-1])  # Spark takes the characters first; the tree has the text first
        return Call(name, arguments)


def _operands(node: exp.Expression) -> list[exp.Expression]:
    """The operands of a (possibly very long) chain of one connective, from left to right."""
    operands, kind = [], type(node)
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def _escape_character(sql: str, node: exp.Expression) -> str:
    """The character after ESCAPE."""
    if not (isinstance(node, exp.Literal) and node.is_string and len(node.this) == 1):
        raise not_an_expression(sql, "ESCAPE needs one character in quotes")
    return str(node.this)
