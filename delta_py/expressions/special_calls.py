"""Calls that are not plain functions: each has its own rule for types, or becomes another expression.

    SPECIAL_CALLS["nvl2"].resolve(resolution, "nvl2", arguments)

Each rule here has the parameters of SpecialCall.resolve. In: a Resolution, the call's name in lower case, and its arguments as
nodes, whose number was checked. Out: a node. A rule may ignore the name, because only some rules serve several names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from delta_py.expressions import coercion
from delta_py.expressions.evaluation_errors import mismatch, not_supported
from delta_py.expressions.functions.function_types import same_type
from delta_py.expressions.functions.like import check_pattern
from delta_py.expressions.nodes import (
    Node,
    call_node,
    constant_value,
    is_constant,
    literal_node,
    not_node,
    null_test_node,
    operand_of,
)
from delta_py.expressions.resolution import Resolution
from delta_py.expressions.tree import Column, Literal, Or, StringMatch
from delta_py.expressions.value_casts import cast_can_fail, check_cast, nested_pairs
from delta_py.types.schema import BOOLEAN, DATE, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, DataType, StructType, type_name

_SECONDS_PATTERN = "yyyy-MM-dd HH:mm:ss"


def coalesce(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    return _call_with_common_type(resolution, "coalesce", arguments)


def extreme(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """GREATEST and LEAST."""
    same_type(name, [operand_of(argument) for argument in arguments])  # only checks the types
    return _call_with_common_type(resolution, name, arguments)


def _call_with_common_type(resolution: Resolution, name: str, arguments: Sequence[Node]) -> Node:
    """The call with all arguments cast to their common type, which is also the type of the result."""
    common = coercion.common_type_of_all(argument.data_type for argument in arguments)
    if common is None:
        raise mismatch(name, *(argument.data_type for argument in arguments))
    return call_node(name, common, tuple(_cast_with_late_error(resolution, argument, common) for argument in arguments))


def null_check(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """isnull and isnotnull."""
    is_null = null_test_node(arguments[0])
    return is_null if name == "isnull" else not_node(is_null)


def nvl2(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """nvl2(a, b, c) is if(a is not null, b, c)."""
    return cases(resolution, "if", [not_node(null_test_node(arguments[0])), *arguments[1:]])


def null_if(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """nullif(a, b) is if(a = b, null, a)."""
    are_equal = resolution.compare("=", arguments[0], arguments[1])
    return cases(resolution, "if", [are_equal, literal_node(Literal(None, arguments[0].data_type)), arguments[0]])


def is_condition(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """`x IS TRUE`: x must be a condition, and is returned unchanged."""
    return resolution.to_condition(arguments[0], "IS TRUE")


def type_of(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    return literal_node(Literal(type_name(arguments[0].data_type), STRING))


def concat(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    return resolution.call_function(name, arguments) if arguments else literal_node(Literal("", STRING))


def position(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """position(a, b) is locate(a, b)."""
    return resolution.call_function("locate", arguments)


def equal_to_any(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """IN with options that are not constants: an OR of comparisons, all in the common type of the operand and the options."""
    operand, *options = arguments
    common = coercion.common_type_of_all([operand.data_type, *(option.data_type for option in options)])
    if common is None:
        raise not_supported("IN with options of types that have nothing in common")
    left = resolution.cast(operand, common)
    comparisons = [resolution.compare("=", left, resolution.cast(option, common)) for option in options]
    return Node(Or(tuple(e.expression for e in comparisons)), BOOLEAN, tuple(comparisons), any(e.can_fail for e in comparisons))


def cases(resolution: Resolution, name: str, arguments: Sequence[Node]) -> Node:
    """`if` and `case`: pairs of condition and value, then optionally the ELSE value."""
    branch_count = len(arguments) // 2
    for condition in arguments[0 : 2 * branch_count : 2]:
        if condition.data_type not in (BOOLEAN, VOID):
            raise mismatch(f"A condition of {name}", condition.data_type)
    values = [*arguments[1 : 2 * branch_count : 2], *(arguments[-1:] if len(arguments) % 2 else [])]
    common = coercion.common_type_of_all(value.data_type for value in values)
    if common is None:
        raise mismatch(name, *(value.data_type for value in values))
    parts = []
    for position, argument in enumerate(arguments):
        is_condition_argument = position < 2 * branch_count and position % 2 == 0
        parts.append(_cast_with_late_error(resolution, argument, BOOLEAN if is_condition_argument else common))
    return call_node(name, common, tuple(parts))


def _cast_with_late_error(resolution: Resolution, node: Node, target: DataType) -> Node:
    """A cast of an argument that a conditional evaluates only for some rows. A constant that cannot be cast is no error now, but
    when a row needs the constant."""
    return resolution.cast(node, target, explicit=True)


def element(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """value[key]: an element of an array, the value of a map's key, or a field of a struct. A field of a column becomes a column,
    so that statistics of nested columns can be used."""
    if len(arguments) != 2 or not isinstance(arguments[0].data_type, StructType):
        return resolution.call_function(name, arguments)
    struct, field = arguments
    if isinstance(struct.expression, Column) and is_constant(field) and isinstance(constant_value(field), str):
        return resolution.column((*struct.expression.path, constant_value(field)))
    return resolution.call_function("get_field", [struct, field])


def struct(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """struct(a, b): fields get the names of their columns, or col1, col2, ... by their positions."""
    parts: list[Node] = []
    for position, argument in enumerate(arguments):
        field_name = argument.expression.path[-1] if isinstance(argument.expression, Column) else f"col{position + 1}"
        parts += [literal_node(Literal(field_name, STRING)), argument]
    return resolution.call_function("named_struct", parts)


def try_cast(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """TRY_CAST(first AS type of the second argument), as the parser writes it."""
    return _try_cast(resolution, arguments[0], arguments[1].data_type)


def _try_cast(resolution: Resolution, node: Node, target: DataType) -> Node:
    """TRY_CAST: a plain cast if no value can fail, otherwise the call try_cast(node, null literal of the target type)."""
    check_cast(node.data_type, target)
    if node.data_type == target or not cast_can_fail(node.data_type, target):
        return resolution.cast(node, target, explicit=True)
    if nested_pairs(node.data_type, target) is not None:
        raise not_supported(f"try_cast of {type_name(node.data_type)}")
    if TIMESTAMP in (node.data_type, target) and not resolution.in_utc:
        raise not_supported(f"try_cast to or from timestamp in the time zone {resolution.zone}", "Use a session in UTC.")
    return call_node("try_cast", target, (node, literal_node(Literal(None, target))))


def like(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """LIKE with a constant pattern. Its escape character is the backslash."""
    operand, pattern = arguments
    text = resolution.cast(operand, STRING)
    if not is_constant(pattern) or not isinstance(constant_value(pattern), str):
        raise not_supported("LIKE with a pattern that is not a constant text", "Give it a constant.")
    check_pattern("like", constant_value(pattern))
    return Node(StringMatch("like", text.expression, constant_value(pattern)), BOOLEAN, (text,), text.can_fail)


def time_conversion(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """from_unixtime, unix_timestamp, to_date, to_timestamp and similar functions, with or without a pattern for the text."""
    value, *pattern = arguments
    if name == "from_unixtime":
        pattern_or_default = pattern or [literal_node(Literal(_SECONDS_PATTERN, STRING))]
        timestamp = resolution.call_function("timestamp_seconds", [resolution.cast(value, LONG)])
        return resolution.call_function("date_format", [timestamp, *pattern_or_default])
    if name in ("unix_timestamp", "to_unix_timestamp"):
        default = [literal_node(Literal(_SECONDS_PATTERN, STRING))]
        timestamp = _parse_timestamp(resolution, "to_timestamp", value, pattern or default)
        return resolution.call_function("unix_timestamp", [timestamp])
    if name == "to_date":
        if pattern and value.data_type == STRING:
            return resolution.call_function("parse_date", arguments)
        return resolution.cast(value, DATE, explicit=True)
    return _parse_timestamp(resolution, name, value, pattern)


def _parse_timestamp(resolution: Resolution, name: str, value: Node, pattern: list[Node]) -> Node:
    """to_timestamp and try_to_timestamp: a cast without a pattern, and otherwise a wall clock that is parsed and moved to UTC."""
    if not pattern or value.data_type != STRING:
        if name.startswith("try_"):
            return _try_cast(resolution, value, TIMESTAMP)
        return resolution.cast(value, TIMESTAMP, explicit=True)
    wall_clock = resolution.call_function(
        "try_parse_timestamp" if name.startswith("try_") else "parse_timestamp", [value, *pattern]
    )
    if resolution.in_utc:
        return wall_clock
    zone = literal_node(Literal(resolution.zone, STRING))
    return resolution.fold_constants(call_node("to_utc_timestamp", TIMESTAMP, (wall_clock, zone)))


def sum_or_difference(resolution: Resolution, name: str, arguments: list[Node]) -> Node:
    """`+` and `-` of numbers, or of a date and a number of days."""
    types = [argument.data_type for argument in arguments]
    if not any(t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) for t in types):
        return resolution.call_function(name, arguments)
    if len(arguments) == 2 and types[0] == DATE and coercion.is_integral(types[1]):
        return resolution.call_function("date_add" if name == "+" else "date_sub", arguments)
    if len(arguments) == 2 and name == "+" and types[1] == DATE and coercion.is_integral(types[0]):
        return resolution.call_function("date_add", [arguments[1], arguments[0]])
    if all(t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) for t in types) and name == "-":
        raise not_supported("The difference of two times", "Use datediff for days.")
    raise mismatch(name, *types)


@dataclass(frozen=True, slots=True)
class SpecialCall:
    """How to resolve calls of a name that is not a plain function.

    resolve: (resolution, name in lower case, arguments) -> the call as a node. max_arguments: None for any number.
    """

    resolve: Callable[[Resolution, str, list[Node]], Node]
    min_arguments: int = 0
    max_arguments: int | None = None


_TIME_CONVERSION = SpecialCall(time_conversion, 1, 2)
SPECIAL_CALLS: Mapping[str, SpecialCall] = {
    "coalesce": SpecialCall(coalesce, 1),
    "nvl": SpecialCall(coalesce, 2, 2),
    "ifnull": SpecialCall(coalesce, 2, 2),
    "nvl2": SpecialCall(nvl2, 3, 3),
    "nullif": SpecialCall(null_if, 2, 2),
    "if": SpecialCall(cases, 3, 3),
    "case": SpecialCall(cases, 2),
    "greatest": SpecialCall(extreme),
    "least": SpecialCall(extreme),
    "isnull": SpecialCall(null_check, 1, 1),
    "isnotnull": SpecialCall(null_check, 1, 1),
    "in": SpecialCall(equal_to_any),
    "is_condition": SpecialCall(is_condition),
    "try_cast": SpecialCall(try_cast),
    "typeof": SpecialCall(type_of, 1, 1),
    "element": SpecialCall(element),
    "get_field": SpecialCall(element),
    "struct": SpecialCall(struct),
    "concat": SpecialCall(concat),
    "position": SpecialCall(position, 2, 2),
    "like": SpecialCall(like, 2, 2),
    "to_date": _TIME_CONVERSION,
    "to_timestamp": _TIME_CONVERSION,
    "try_to_timestamp": _TIME_CONVERSION,
    "unix_timestamp": _TIME_CONVERSION,
    "to_unix_timestamp": _TIME_CONVERSION,
    "from_unixtime": _TIME_CONVERSION,
    "+": SpecialCall(sum_or_difference),
    "-": SpecialCall(sum_or_difference),
}

GRAMMAR_NAMES = frozenset({"case", "in", "is_condition", "try_cast"})  # a text cannot call functions by these names
