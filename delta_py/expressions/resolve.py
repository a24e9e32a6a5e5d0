"""A tree and a schema -> the same tree with all types decided, as Spark's analyzer does under ANSI rules.

Columns get the schema's own spelling. Casts that Spark inserts are added. Casts that depend on the session's time zone become
from_utc_timestamp and to_utc_timestamp, so that a resolved tree means the same everywhere. Constants are computed. If a cast
column is compared with a constant that the column's own type can express exactly, the cast is removed
(`cast(i as bigint) = 5L` becomes `i = 5`), which makes columns comparable with statistics. A resolved tree may be resolved again
in UTC, which changes nothing; in another time zone its times would be converted to wall clocks twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_py.errors import ExpressionError
from delta_py.expressions import coercion
from delta_py.expressions.cast_removal import narrow_all, narrowed
from delta_py.expressions.coercion import is_atomic, is_integral
from delta_py.expressions.evaluation_errors import mismatch, not_supported, wrong_argument_count
from delta_py.expressions.functions.function_table import ALIASES, FUNCTIONS
from delta_py.expressions.functions.function_types import same_type
from delta_py.expressions.functions.like import check_pattern
from delta_py.expressions.functions.times import unit_of
from delta_py.expressions.nodes import (
    Node,
    call_node,
    cast_node,
    compute,
    constant_value,
    is_constant,
    literal_array,
    literal_node,
    negated,
    null_test,
    operand_of,
    python_value,
)
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
from delta_py.expressions.value_casts import cast_can_fail, cast_values, check_cast, needs_zone, nested_pairs
from delta_py.protocol.collations import is_collated
from delta_py.time_zones import is_utc, offset_seconds
from delta_py.types.char_types import char_type_at
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructType,
    find_path,
    type_name,
)
from delta_py.types.similar_names import did_you_mean
from delta_py.types.zones import check_zone

_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The maximum number of characters of the constants compared with a char(n) column, after padding like its values.
_MOST_PADDED = 1 << 27
# Functions that read the wall clock of their first argument in the session's time zone.
_CLOCK_FIELDS = frozenset({"hour", "minute", "second", "date_format"})
_SECONDS_PATTERN = "yyyy-MM-dd HH:mm:ss"


def resolve(expression: Expression, schema: StructType, session_timezone: str = "UTC") -> Node:
    """Raises SchemaMismatchError for a column that does not exist, ExpressionError for types that do not match, an
    unknown function, an unknown time zone, and nesting that is too deep."""
    check_zone(session_timezone)
    try:
        return _Resolver(schema, session_timezone).node(expression)
    except RecursionError as error:
        raise ExpressionError("The expression is nested too deeply. Split it, or use IN for many values.") from error


def resolve_condition(expression: Expression, schema: StructType, session_timezone: str = "UTC") -> Node:
    """As resolve, for an expression that must be true, false or null."""
    node = resolve(expression, schema, session_timezone)
    return _Resolver(schema, session_timezone).condition(node, "A predicate")


def resolve_cast(expression: Expression, schema: StructType, target: DataType, session_timezone: str = "UTC") -> Node:
    """CAST(expression AS target) in a time zone. expression: a resolved tree. Raises as resolve."""
    check_zone(session_timezone)
    return _Resolver(schema, session_timezone).cast(resolve(expression, schema), target, explicit=True)


def _filled(literal: Literal, length: int, beside: int = 1) -> Literal:
    """A text, padded with blanks like the values of char(length). beside: the number of such texts. Raises ExpressionError if
    they would be too long in total."""
    if length * beside > _MOST_PADDED:
        raise not_supported(f"A comparison of a column of type char({length}) with {beside} constants", "They would be too long.")
    return Literal(literal.value.ljust(length), literal.data_type) if isinstance(literal.value, str) else literal


class _Resolver:
    def __init__(self, schema: StructType, zone: str) -> None:
        self._schema = schema
        self._zone = zone
        self._in_utc = is_utc(zone)
        self._resolved: dict[int, tuple[Expression, Node]] = {}  # an operand that occurs in several places is resolved once

    # ------------------------------------------------------------ the tree

    def node(self, expression: Expression) -> Node:
        resolved = self._resolved.get(id(expression))
        if resolved is None:
            resolved = self._resolved[id(expression)] = (expression, self._node(expression))
        return resolved[1]

    def _node(self, expression: Expression) -> Node:
        match expression:
            case Column(path):
                return self._column(path)
            case Literal():
                return literal_node(expression)
            case Comparison(op, left, right):
                return self.compare(op, self.node(left), self.node(right))
            case In(operand, options):
                return self._in(self.node(operand), options)
            case IsNull(operand):
                return null_test(self.node(operand))
            case StringMatch(kind, operand, pattern):
                check_pattern(kind, pattern)
                text = self.cast(self._accepted(kind, self.node(operand), STRING), STRING)
                return Node(StringMatch(kind, text.expression, pattern), BOOLEAN, (text,), text.can_fail)
            case Not(operand):
                child = self.condition(self.node(operand), "NOT")
                return Node(Not(child.expression), BOOLEAN, (child,), child.can_fail)
            case And(operands) | Or(operands):
                return self._logic(expression, operands)
            case Cast(operand, data_type):
                return self.cast(self.node(operand), data_type, explicit=True)
            case Call(name, arguments):
                return self._call(name.lower(), [self.node(argument) for argument in arguments])

    def _column(self, path: tuple[str, ...]) -> Node:
        fields = find_path(self._schema, path)
        if is_collated(fields[-1]):
            raise not_supported(f"Column {'.'.join(path)} with a collation", "Its texts are not ordered by their bytes.")
        return Node(Column(tuple(f.name for f in fields)), fields[-1].data_type)

    def _logic(self, expression: And | Or, operands: tuple[Expression, ...]) -> Node:
        name = "AND" if isinstance(expression, And) else "OR"
        children = tuple(self.condition(self.node(operand), name) for operand in operands)
        if len(children) == 1:
            return children[0]
        parts = tuple(child.expression for child in children)
        rebuilt: Expression = And(parts) if isinstance(expression, And) else Or(parts)
        return Node(rebuilt, BOOLEAN, children, any(child.can_fail for child in children))

    def condition(self, node: Node, what: str) -> Node:
        if node.data_type == BOOLEAN:
            return node
        if node.data_type in (VOID, STRING):
            return self.cast(node, BOOLEAN)
        raise mismatch(what, node.data_type)

    # ------------------------------------------------------------ casts

    def cast(self, node: Node, target: DataType, *, explicit: bool = False) -> Node:
        """CAST(node AS target) in the session's time zone. A constant is computed. If that fails, an implicit cast raises
        now, and an explicit one raises when a row needs it."""
        source = node.data_type
        if source == target:
            return node
        if source == VOID and isinstance(node.expression, Literal):
            return literal_node(Literal(None, target))
        check_cast(source, target)
        return self._computed(self._in_zone(node, target), strict=not explicit)

    def _in_zone(self, node: Node, target: DataType) -> Node:
        source = node.data_type
        if not self._in_utc and nested_pairs(source, target) is not None and needs_zone(source, target):
            what = f"A cast of times inside of {type_name(source)} in the time zone {self._zone}"
            raise not_supported(what, "Use a session in UTC.")
        if self._in_utc or TIMESTAMP not in (source, target) or VOID in (source, target):
            return cast_node(node, target)
        zone = literal_node(Literal(self._zone, STRING))
        if source == TIMESTAMP and target in (DATE, TIMESTAMP_NTZ, STRING):
            return cast_node(self._computed(call_node("from_utc_timestamp", TIMESTAMP, (node, zone))), target)
        if source in (DATE, TIMESTAMP_NTZ):
            return call_node("to_utc_timestamp", TIMESTAMP, (self._computed(cast_node(node, target)), zone))
        if source == STRING:
            return call_node("timestamp_in_zone", TIMESTAMP, (node, zone))
        return cast_node(node, target)

    def _accepted(self, name: str, node: Node, target: DataType) -> Node:
        if not (is_atomic(node.data_type) or node.data_type in (VOID, target)):
            raise mismatch(name, node.data_type)
        return node

    def _computed(self, node: Node, *, strict: bool = False) -> Node:
        """The node as a literal, if it is a cast or call of literals only."""
        children = node.children
        if not children or not all(is_constant(child) for child in children) or not is_atomic(node.data_type):
            return node
        try:
            value = compute(node)
        except ExpressionError:
            if strict:
                raise
            return node
        except (pa.ArrowException, ValueError, OverflowError):  # a date outside the range of Python's types
            return node
        return literal_node(Literal(value, node.data_type))

    # ------------------------------------------------------------ comparisons

    def compare(self, op: str, left: Node, right: Node) -> Node:
        if op not in _FLIPPED:
            raise not_supported(f"The comparison {op!r}")
        if isinstance(left.expression, Literal) and not isinstance(right.expression, Literal):
            op, left, right = _FLIPPED[op], right, left
        left, right = self._common(f"The comparison {op}", left, right)
        left, right = narrowed(left, right)
        expression = Comparison(op, left.expression, right.expression)
        return Node(expression, BOOLEAN, (left, right), left.can_fail or right.can_fail)

    def _common(self, what: str, left: Node, right: Node) -> tuple[Node, Node]:
        """Both operands converted to the type in which Spark compares them."""
        left_type, right_type = _beside_decimal(left, right), _beside_decimal(right, left)
        common = coercion.common_type(left_type, right_type)
        if common is None:
            raise mismatch(what, left.data_type, right.data_type)
        if not (is_atomic(common) or common == VOID):
            raise not_supported(f"{what} on {type_name(common)}")
        if common == STRING:
            left, right = self._padded(left, right), self._padded(right, left)
        return self.cast(left, common), self.cast(right, common)

    def _padded(self, text: Node, beside: Node) -> Node:
        """A literal, or a shorter char column, that is compared with a char(n) column: padded with spaces like the
        column's values."""
        length = self._char_length(beside)
        if length is None:
            return text
        if isinstance(text.expression, Literal) and isinstance(text.expression.value, str):
            return literal_node(_filled(text.expression, length))
        if (self._char_length(text) or length) < length:
            return self._function("rpad", [text, literal_node(Literal(length, INTEGER)), literal_node(Literal(" ", STRING))])
        return text

    def _char_length(self, node: Node) -> int | None:
        if not isinstance(node.expression, Column) or len(node.expression.path) > 1:
            return None
        char_type = char_type_at(find_path(self._schema, node.expression.path)[0])
        return char_type.length if char_type is not None and char_type.kind == "char" else None

    def _in(self, operand: Node, options: tuple[Literal, ...]) -> Node:
        common = coercion.common_type_of_all([operand.data_type, *(option.data_type for option in options)])
        if common is None:
            raise mismatch("IN", operand.data_type, *dict.fromkeys(option.data_type for option in options))
        if not (is_atomic(common) or common == VOID):
            raise not_supported(f"IN on {type_name(common)}")
        literals = self._cast_options(options, common)
        length = self._char_length(operand)
        if length is not None:
            literals = [_filled(option, length, beside=len(literals)) for option in literals]
        child = self.cast(operand, common)
        inner, narrow = narrow_all(child, literals)
        return Node(In(inner.expression, tuple(narrow)), BOOLEAN, (inner,), inner.can_fail)

    def _cast_options(self, options: Sequence[Literal], target: DataType) -> list[Literal]:
        """The options in one type. Options of the same other type are cast together, because there may be very many."""
        result = [Literal(None, target) if o.value is None else o for o in options]
        for source in {o.data_type for o in result} - {target}:
            places = [place for place, o in enumerate(result) if o.data_type == source]
            if TIMESTAMP in (source, target) and not self._in_utc:
                for place in places:
                    cast = self.cast(literal_node(result[place]), target).expression
                    if not isinstance(cast, Literal):
                        raise not_supported("An option of IN outside of the years 1 to 9999")
                    result[place] = cast
                continue
            check_cast(source, target)
            values = literal_array([result[place] for place in places], source)
            for place, value in zip(places, cast_values(values, source, target), strict=True):
                result[place] = Literal(python_value(value), target)
        return result

    # ------------------------------------------------------------ functions

    def _call(self, name: str, arguments: list[Node]) -> Node:
        name = ALIASES.get(name, name)
        rule = _RULES.get(name)
        if rule is None:
            return self._function(name, arguments)
        if len(arguments) < rule.least or (rule.most is not None and len(arguments) > rule.most):
            raise wrong_argument_count(
                name, len(arguments), str(rule.least) if rule.least == rule.most else f"{rule.least} or more"
            )
        return rule.resolve(self, name, arguments)

    def coalesce(self, name: str, arguments: list[Node]) -> Node:
        return self._same_typed("coalesce", arguments)

    def extreme(self, name: str, arguments: list[Node]) -> Node:
        same_type(name, [operand_of(argument) for argument in arguments])
        return self._same_typed(name, arguments)

    def null_check(self, name: str, arguments: list[Node]) -> Node:
        null = null_test(arguments[0])
        return null if name == "isnull" else negated(null)

    def nvl2(self, name: str, arguments: list[Node]) -> Node:
        return self.cases("if", [negated(null_test(arguments[0])), *arguments[1:]])

    def null_if(self, name: str, arguments: list[Node]) -> Node:
        equal = self.compare("=", arguments[0], arguments[1])
        return self.cases("if", [equal, literal_node(Literal(None, arguments[0].data_type)), arguments[0]])

    def is_condition(self, name: str, arguments: list[Node]) -> Node:
        """`x IS TRUE`: x must be a condition, and is returned unchanged."""
        return self.condition(arguments[0], "IS TRUE")

    def type_of(self, name: str, arguments: list[Node]) -> Node:
        return literal_node(Literal(type_name(arguments[0].data_type), STRING))

    def concat(self, name: str, arguments: list[Node]) -> Node:
        return self._function(name, arguments) if arguments else literal_node(Literal("", STRING))

    def position(self, name: str, arguments: list[Node]) -> Node:
        return self._function("locate", arguments)

    def equal_to_any(self, name: str, arguments: list[Node]) -> Node:
        """IN with options that are not constants: all are compared in their common type."""
        operand, *options = arguments
        common = coercion.common_type_of_all([operand.data_type, *(option.data_type for option in options)])
        if common is None:
            raise not_supported("IN with options of types that have nothing in common")
        left = self.cast(operand, common)
        equal = [self.compare("=", left, self.cast(option, common)) for option in options]
        return Node(Or(tuple(e.expression for e in equal)), BOOLEAN, tuple(equal), any(e.can_fail for e in equal))

    def _same_typed(self, name: str, arguments: Sequence[Node]) -> Node:
        common = coercion.common_type_of_all(argument.data_type for argument in arguments)
        if common is None:
            raise mismatch(name, *(argument.data_type for argument in arguments))
        return call_node(name, common, tuple(self._cast_if_needed(argument, common) for argument in arguments))

    def _cast_if_needed(self, node: Node, target: DataType) -> Node:
        """As cast, for values that a conditional may never evaluate: failing constants fail only when they are evaluated."""
        return self.cast(node, target, explicit=True)

    def cases(self, name: str, arguments: Sequence[Node]) -> Node:
        """`if` and `case`: pairs of condition and value, then optionally the ELSE value."""
        pairs = len(arguments) // 2
        for condition in arguments[0 : 2 * pairs : 2]:
            if condition.data_type not in (BOOLEAN, VOID):
                raise mismatch(f"A condition of {name}", condition.data_type)
        values = [*arguments[1 : 2 * pairs : 2], *(arguments[-1:] if len(arguments) % 2 else [])]
        common = coercion.common_type_of_all(value.data_type for value in values)
        if common is None:
            raise mismatch(name, *(value.data_type for value in values))
        is_condition = [place < 2 * pairs and place % 2 == 0 for place in range(len(arguments))]
        parts = [self._cast_if_needed(a, BOOLEAN if c else common) for a, c in zip(arguments, is_condition, strict=True)]
        return call_node(name, common, tuple(parts))

    # ------------------------------------------------------------ nested values

    def element(self, name: str, arguments: list[Node]) -> Node:
        """A part of a value, by its position, key or field: a field of a column is a column itself."""
        if len(arguments) != 2 or not isinstance(arguments[0].data_type, StructType):
            return self._function(name, arguments)
        struct, field = arguments
        if isinstance(struct.expression, Column) and is_constant(field) and isinstance(constant_value(field), str):
            return self._column((*struct.expression.path, constant_value(field)))
        return self._function("get_field", [struct, field])

    def struct(self, name: str, arguments: list[Node]) -> Node:
        """struct(a, b): fields get the names of their columns, or col1, col2, ... by their positions."""
        parts: list[Node] = []
        for place, argument in enumerate(arguments):
            field_name = argument.expression.path[-1] if isinstance(argument.expression, Column) else f"col{place + 1}"
            parts += [literal_node(Literal(field_name, STRING)), argument]
        return self._function("named_struct", parts)

    # ------------------------------------------------------------ calls that become another expression

    def try_cast(self, name: str, arguments: list[Node]) -> Node:
        return self._try_cast(arguments[0], arguments[1].data_type)

    def _try_cast(self, node: Node, target: DataType) -> Node:
        check_cast(node.data_type, target)
        if node.data_type == target or not cast_can_fail(node.data_type, target):
            return self.cast(node, target, explicit=True)
        if nested_pairs(node.data_type, target) is not None:
            raise not_supported(f"try_cast of {type_name(node.data_type)}")
        if TIMESTAMP in (node.data_type, target) and not self._in_utc:
            raise not_supported(f"try_cast to or from timestamp in the time zone {self._zone}", "Use a session in UTC.")
        return call_node("try_cast", target, (node, literal_node(Literal(None, target))))

    def like(self, name: str, arguments: list[Node]) -> Node:
        operand, pattern = arguments
        text = self.cast(operand, STRING)
        if not is_constant(pattern) or not isinstance(constant_value(pattern), str):
            raise not_supported("LIKE with a pattern that is not a constant text", "Give it a constant.")
        check_pattern("like", constant_value(pattern))
        return Node(StringMatch("like", text.expression, constant_value(pattern)), BOOLEAN, (text,), text.can_fail)

    def time_conversion(self, name: str, arguments: list[Node]) -> Node:
        """Functions between text, numbers and times, with or without a pattern."""
        first, *pattern = arguments
        if name == "from_unixtime":
            shown = pattern or [literal_node(Literal(_SECONDS_PATTERN, STRING))]
            return self._function("date_format", [self._function("timestamp_seconds", [self.cast(first, LONG)]), *shown])
        if name in ("unix_timestamp", "to_unix_timestamp"):
            default = [literal_node(Literal(_SECONDS_PATTERN, STRING))]
            moment = self._moment("to_timestamp", first, pattern or default)
            return self._function("unix_timestamp", [moment])
        if name == "to_date":
            if pattern and first.data_type == STRING:
                return self._function("parse_date", arguments)
            return self.cast(first, DATE, explicit=True)
        return self._moment(name, first, pattern)

    def _moment(self, name: str, first: Node, pattern: list[Node]) -> Node:
        if not pattern or first.data_type != STRING:
            return self._try_cast(first, TIMESTAMP) if name.startswith("try_") else self.cast(first, TIMESTAMP, explicit=True)
        parsed = self._function("try_parse_timestamp" if name.startswith("try_") else "parse_timestamp", [first, *pattern])
        if self._in_utc:
            return parsed
        return self._computed(call_node("to_utc_timestamp", TIMESTAMP, (parsed, literal_node(Literal(self._zone, STRING)))))

    def sum_or_difference(self, name: str, arguments: list[Node]) -> Node:
        types = [argument.data_type for argument in arguments]
        if not any(t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) for t in types):
            return self._function(name, arguments)
        if len(arguments) == 2 and types[0] == DATE and coercion.is_integral(types[1]):
            return self._function("date_add" if name == "+" else "date_sub", arguments)
        if len(arguments) == 2 and name == "+" and types[1] == DATE and coercion.is_integral(types[0]):
            return self._function("date_add", [arguments[1], arguments[0]])
        if all(t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) for t in types) and name == "-":
            raise not_supported("The difference of two times", "Use datediff for days.")
        raise mismatch(name, *types)

    def _function(self, name: str, arguments: Sequence[Node]) -> Node:
        function = FUNCTIONS.get(name)
        if function is None:
            raise _unknown_function(name)
        signature = function.signature(name, [operand_of(argument) for argument in arguments])
        for place in function.constants:
            if place < len(arguments) and not is_constant(arguments[place]):
                raise not_supported(f"{name} with an argument {place + 1} that is not a constant", "Give it a constant.")
        children = tuple(self.cast(a, t) for a, t in zip(arguments, signature.arguments, strict=True))
        if function.run is None:
            return call_node(name, signature.result, children)
        if not self._in_utc:
            return self._computed(self._zoned_call(name, signature.result, children))
        return self._computed(call_node(name, signature.result, children))

    def _zoned_call(self, name: str, result: DataType, children: tuple[Node, ...]) -> Node:
        """Functions of the wall clock, evaluated in the session's time zone."""
        zone = literal_node(Literal(self._zone, STRING))
        if name in _CLOCK_FIELDS:
            local = self._computed(call_node("from_utc_timestamp", TIMESTAMP, (children[0], zone)))
            return call_node(name, result, (local, *children[1:]))
        if name == "months_between" and len(children) < 4:
            rounds = children[2] if len(children) == 3 else literal_node(Literal(True, BOOLEAN))
            return call_node(name, result, (*children[:2], rounds, zone))
        if name != "date_trunc":
            return call_node(name, result, children)
        unit = unit_of(constant_value(children[0]))
        if unit in ("second", "millisecond", "microsecond", None):
            return call_node(name, result, children)
        if unit in ("hour", "minute") and offset_seconds(self._zone) is None:
            raise not_supported(f"date_trunc to {unit} in the time zone {self._zone}", "Use a session in UTC or a fixed offset.")
        local = self._computed(call_node("from_utc_timestamp", TIMESTAMP, (children[1], zone)))
        truncated = self._computed(call_node(name, TIMESTAMP, (children[0], local)))
        return call_node("to_utc_timestamp", TIMESTAMP, (truncated, zone))


@dataclass(frozen=True, slots=True)
class _Rule:
    """How to resolve calls of a name that is not a plain function. least, most: the number of arguments; None: any number."""

    resolve: Callable[[_Resolver, str, list[Node]], Node]
    least: int = 0
    most: int | None = None


_TIME_CONVERSION = _Rule(_Resolver.time_conversion, 1, 2)
_RULES: Mapping[str, _Rule] = {
    "coalesce": _Rule(_Resolver.coalesce, 1),
    "nvl": _Rule(_Resolver.coalesce, 2, 2),
    "ifnull": _Rule(_Resolver.coalesce, 2, 2),
    "nvl2": _Rule(_Resolver.nvl2, 3, 3),
    "nullif": _Rule(_Resolver.null_if, 2, 2),
    "if": _Rule(_Resolver.cases, 3, 3),
    "case": _Rule(_Resolver.cases, 2),
    "greatest": _Rule(_Resolver.extreme),
    "least": _Rule(_Resolver.extreme),
    "isnull": _Rule(_Resolver.null_check, 1, 1),
    "isnotnull": _Rule(_Resolver.null_check, 1, 1),
    "in": _Rule(_Resolver.equal_to_any),
    "is_condition": _Rule(_Resolver.is_condition),
    "try_cast": _Rule(_Resolver.try_cast),
    "typeof": _Rule(_Resolver.type_of, 1, 1),
    "element": _Rule(_Resolver.element),
    "get_field": _Rule(_Resolver.element),
    "struct": _Rule(_Resolver.struct),
    "concat": _Rule(_Resolver.concat),
    "position": _Rule(_Resolver.position, 2, 2),
    "like": _Rule(_Resolver.like, 2, 2),
    "to_date": _TIME_CONVERSION,
    "to_timestamp": _TIME_CONVERSION,
    "try_to_timestamp": _TIME_CONVERSION,
    "unix_timestamp": _TIME_CONVERSION,
    "to_unix_timestamp": _TIME_CONVERSION,
    "from_unixtime": _TIME_CONVERSION,
    "+": _Rule(_Resolver.sum_or_difference),
    "-": _Rule(_Resolver.sum_or_difference),
}

_OF_THE_GRAMMAR = frozenset({"case", "in", "is_condition", "try_cast"})  # a text cannot call functions by these names


def _unknown_function(name: str) -> ExpressionError:
    hint = did_you_mean(name, [*FUNCTIONS, *ALIASES, *(_RULES.keys() - _OF_THE_GRAMMAR)])
    return not_supported(f"The function {name[:60]}", f"It cannot be evaluated exactly as Spark does.{hint}")


def _beside_decimal(node: Node, other: Node) -> DataType:
    """An integer literal next to a decimal has only its own digits."""
    if isinstance(other.data_type, DecimalType) and isinstance(node.expression, Literal) and is_integral(node.data_type):
        value = node.expression.value
        return coercion.decimal_of_value(value) if isinstance(value, int) else node.data_type
    return node.data_type
