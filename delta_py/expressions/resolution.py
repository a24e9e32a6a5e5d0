"""Operands in one schema and one time zone: columns, casts, comparisons and plain functions, as Spark's analyzer resolves them.

    resolution = Resolution(schema, "UTC")
    resolution.compare("=", resolution.column(("i",)), literal_node(Literal(5, LONG)))

In and out: nodes, which know their types. resolve.py walks through a tree; special_calls.py resolves the other calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from delta_py.errors import ExpressionError
from delta_py.expressions import coercion
from delta_py.expressions.cast_removal import remove_cast, remove_casts
from delta_py.expressions.coercion import is_atomic, is_integral
from delta_py.expressions.evaluation_errors import mismatch, not_supported
from delta_py.expressions.functions.function_table import FUNCTIONS
from delta_py.expressions.functions.times import unit_of
from delta_py.expressions.nodes import (
    Node,
    call_node,
    cast_node,
    compute_constant,
    constant_value,
    is_constant,
    literal_array,
    literal_node,
    operand_of,
    python_value,
)
from delta_py.expressions.tree import Column, Comparison, In, Literal
from delta_py.expressions.value_casts import cast_values, check_cast, needs_zone, nested_pairs
from delta_py.protocol.collations import is_collated
from delta_py.time_zones import is_utc, offset_seconds
from delta_py.types.char_types import char_type_at
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
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

# The operator after both operands change sides: a < b is b > a.
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The maximum number of characters of the constants compared with a char(n) column, after padding like its values.
_MAX_PADDED_CHARACTERS = 1 << 27
# Functions that read the wall clock of their first argument in the session's time zone.
_WALL_CLOCK_FUNCTIONS = frozenset({"hour", "minute", "second", "date_format"})


class Resolution:
    """Makes resolved nodes of operands, with all types decided.

    schema: the schema of the rows, in which columns are found. zone: the time zone of the session; the caller has checked it.
    """

    def __init__(self, schema: StructType, zone: str) -> None:
        self.schema = schema
        self.zone = zone
        self.in_utc = is_utc(zone)

    def column(self, path: tuple[str, ...]) -> Node:
        """The column or nested field at a path, as the schema spells it. Raises SchemaMismatchError if it does not exist, and
        ExpressionError for a text with a collation."""
        fields = find_path(self.schema, path)
        if is_collated(fields[-1]):
            raise not_supported(f"Column {'.'.join(path)} with a collation", "Its texts are not ordered by their bytes.")
        return Node(Column(tuple(f.name for f in fields)), fields[-1].data_type)

    def to_condition(self, node: Node, what: str) -> Node:
        """The node as a boolean: text is cast, as in Spark. what: names the condition in the error for another type."""
        if node.data_type == BOOLEAN:
            return node
        if node.data_type in (VOID, STRING):
            return self.cast(node, BOOLEAN)
        raise mismatch(what, node.data_type)

    # ------------------------------------------------------------ casts

    def cast(self, node: Node, target: DataType, *, explicit: bool = False) -> Node:
        """CAST(node AS target) in the session's time zone. A constant is computed, unless it becomes a time that
        Python's types cannot hold. If the computation fails, an implicit cast raises now, and an explicit one raises when a row
        needs it."""
        source = node.data_type
        if source == target:
            return node
        if source == VOID and isinstance(node.expression, Literal):
            return literal_node(Literal(None, target))
        check_cast(source, target)
        return self.fold_constants(self._cast_in_zone(node, target), strict=not explicit)

    def _cast_in_zone(self, node: Node, target: DataType) -> Node:
        """A cast in the session's time zone, made of UTC casts and conversions between UTC and the zone."""
        source = node.data_type
        if not self.in_utc and nested_pairs(source, target) is not None and needs_zone(source, target):
            what = f"A cast of times inside of {type_name(source)} in the time zone {self.zone}"
            raise not_supported(what, "Use a session in UTC.")
        # Only instants depend on the zone, and null has no instant.
        if self.in_utc or TIMESTAMP not in (source, target) or VOID in (source, target):
            return cast_node(node, target)
        zone = literal_node(Literal(self.zone, STRING))
        if source == TIMESTAMP and target in (DATE, TIMESTAMP_NTZ, STRING):
            return cast_node(self.fold_constants(call_node("from_utc_timestamp", TIMESTAMP, (node, zone))), target)
        if source in (DATE, TIMESTAMP_NTZ):
            return call_node("to_utc_timestamp", TIMESTAMP, (self.fold_constants(cast_node(node, target)), zone))
        if source == STRING:
            return call_node("timestamp_in_zone", TIMESTAMP, (node, zone))
        return cast_node(node, target)  # numbers are seconds since 1970 in UTC, whatever the session's zone is

    def require_simple_type(self, name: str, node: Node, target: DataType) -> Node:
        """The node, unchanged. Raises ExpressionError if its type is not a simple type and is not the target. name: of the
        function, for the message."""
        if not (is_atomic(node.data_type) or node.data_type in (VOID, target)):
            raise mismatch(name, node.data_type)
        return node

    def fold_constants(self, node: Node, *, strict: bool = False) -> Node:
        """The node as a literal, if it is a cast or call of literals only; otherwise the node.

        strict: raise the error of a constant that has no value. Without it the node is returned, and evaluation raises the error.
        """
        children = node.children
        # A Literal cannot be a struct, array or map.
        if not children or not all(is_constant(child) for child in children) or not is_atomic(node.data_type):
            return node
        try:
            value = compute_constant(node)
        except ExpressionError:
            if strict:
                raise
            return node
        except (pa.ArrowException, ValueError, OverflowError):  # a date outside the range of Python's types
            return node
        return literal_node(Literal(value, node.data_type))

    # ------------------------------------------------------------ comparisons

    def compare(self, op: str, left: Node, right: Node) -> Node:
        """`left op right` in the type in which Spark compares them. A constant on the left changes sides."""
        if op not in _FLIPPED:
            raise not_supported(f"The comparison {op!r}")
        if isinstance(left.expression, Literal) and not isinstance(right.expression, Literal):
            op, left, right = _FLIPPED[op], right, left
        left, right = self._cast_to_common_type(f"The comparison {op}", left, right)
        left, right = remove_cast(left, right)
        expression = Comparison(op, left.expression, right.expression)
        return Node(expression, BOOLEAN, (left, right), left.can_fail or right.can_fail)

    def _cast_to_common_type(self, what: str, left: Node, right: Node) -> tuple[Node, Node]:
        """Both operands converted to the type in which Spark compares them."""
        left_type, right_type = _type_next_to_decimal(left, right), _type_next_to_decimal(right, left)
        common = coercion.common_type(left_type, right_type)
        if common is None:
            raise mismatch(what, left.data_type, right.data_type)
        if not (is_atomic(common) or common == VOID):
            raise not_supported(f"{what} on {type_name(common)}")
        if common == STRING:
            left, right = self._pad_like_char(left, right), self._pad_like_char(right, left)
        return self.cast(left, common), self.cast(right, common)

    def _pad_like_char(self, text: Node, char_column: Node) -> Node:
        """The text, padded with spaces to the length of char_column's values, because Spark compares char values in this way.

        Unchanged if char_column is not a column of type char(n), or the text is neither a literal nor a shorter char column.
        """
        length = self._char_length(char_column)
        if length is None:
            return text
        if isinstance(text.expression, Literal) and isinstance(text.expression.value, str):
            return literal_node(_pad_literal(text.expression, length))
        text_length = self._char_length(text)
        if text_length is not None and 0 < text_length < length:
            return self.call_function("rpad", [text, literal_node(Literal(length, INTEGER)), literal_node(Literal(" ", STRING))])
        return text

    def _char_length(self, node: Node) -> int | None:
        """n if the node is a top-level column of type char(n); otherwise None."""
        if not isinstance(node.expression, Column) or len(node.expression.path) > 1:
            return None
        char_type = char_type_at(find_path(self.schema, node.expression.path)[0])
        return char_type.length if char_type is not None and char_type.kind == "char" else None

    def compare_with_options(self, operand: Node, options: tuple[Literal, ...]) -> Node:
        """`operand IN (options)`, in the common type of all."""
        common = coercion.common_type_of_all([operand.data_type, *(option.data_type for option in options)])
        if common is None:
            raise mismatch("IN", operand.data_type, *dict.fromkeys(option.data_type for option in options))
        if not (is_atomic(common) or common == VOID):
            raise not_supported(f"IN on {type_name(common)}")
        literals = self._cast_options(options, common)
        length = self._char_length(operand)
        if length is not None:
            literals = [_pad_literal(option, length, constant_count=len(literals)) for option in literals]
        child = self.cast(operand, common)
        uncast_operand, uncast_literals = remove_casts(child, literals)
        return Node(In(uncast_operand.expression, tuple(uncast_literals)), BOOLEAN, (uncast_operand,), uncast_operand.can_fail)

    def _cast_options(self, options: Sequence[Literal], target: DataType) -> list[Literal]:
        """The options in one type. Options are cast in groups of the same type, because there may be very many."""
        result = [Literal(None, target) if option.value is None else option for option in options]
        for source in {option.data_type for option in result} - {target}:
            positions = [position for position, option in enumerate(result) if option.data_type == source]
            # cast_values reads times in UTC. In other zones, self.cast casts these options one by one.
            if TIMESTAMP in (source, target) and not self.in_utc:
                for position in positions:
                    cast_option = self.cast(literal_node(result[position]), target).expression
                    if not isinstance(cast_option, Literal):  # self.cast does not compute a time that Python cannot hold
                        raise not_supported("An option of IN outside of the years 1 to 9999")
                    result[position] = cast_option
                continue
            check_cast(source, target)
            values = literal_array([result[position] for position in positions], source)
            for position, value in zip(positions, cast_values(values, source, target), strict=True):
                result[position] = Literal(python_value(value), target)
        return result

    # ------------------------------------------------------------ functions

    def call_function(self, name: str, arguments: Sequence[Node]) -> Node:
        """A call of a plain function, with its arguments cast to the function's types. Constants are computed."""
        function = FUNCTIONS[name]
        signature = function.signature(name, [operand_of(argument) for argument in arguments])
        for position in function.constants:
            if position < len(arguments) and not is_constant(arguments[position]):
                raise not_supported(f"{name} with an argument {position + 1} that is not a constant", "Give it a constant.")
        children = tuple(self.cast(a, t) for a, t in zip(arguments, signature.arguments, strict=True))
        if function.run is None:  # a function of the clock, which clock.replace_clock_functions replaces later
            return call_node(name, signature.result, children)
        if not self.in_utc:
            return self.fold_constants(self._zoned_call(name, signature.result, children))
        return self.fold_constants(call_node(name, signature.result, children))

    def _zoned_call(self, name: str, result: DataType, children: tuple[Node, ...]) -> Node:
        """A call of any function in a time zone other than UTC. Functions of the wall clock get local times; a local time that is
        the result is converted back."""
        zone = literal_node(Literal(self.zone, STRING))
        if name in _WALL_CLOCK_FUNCTIONS:
            local_time = self.fold_constants(call_node("from_utc_timestamp", TIMESTAMP, (children[0], zone)))
            return call_node(name, result, (local_time, *children[1:]))
        if name == "months_between" and len(children) < 4:
            is_rounded = children[2] if len(children) == 3 else literal_node(Literal(True, BOOLEAN))
            return call_node(name, result, (*children[:2], is_rounded, zone))
        if name != "date_trunc":
            return call_node(name, result, children)
        unit = unit_of(constant_value(children[0]))
        # Offsets are whole seconds, so these units begin at the same time in every zone. None gives null.
        if unit in ("second", "millisecond", "microsecond", None):
            return call_node(name, result, children)
        # In a region, an hour of the wall clock can occur twice, so the truncated time would be ambiguous.
        if unit in ("hour", "minute") and offset_seconds(self.zone) is None:
            raise not_supported(f"date_trunc to {unit} in the time zone {self.zone}", "Use a session in UTC or a fixed offset.")
        local_time = self.fold_constants(call_node("from_utc_timestamp", TIMESTAMP, (children[1], zone)))
        truncated = self.fold_constants(call_node(name, TIMESTAMP, (children[0], local_time)))
        return call_node("to_utc_timestamp", TIMESTAMP, (truncated, zone))


def _pad_literal(literal: Literal, length: int, constant_count: int = 1) -> Literal:
    """A text literal, padded with blanks like the values of char(length); other literals do not change. constant_count: the
    number of such texts. Raises ExpressionError if they would be too long in total."""
    if length * constant_count > _MAX_PADDED_CHARACTERS:
        what = f"A comparison of a column of type char({length}) with {constant_count} constants"
        raise not_supported(what, "They would be too long.")
    return Literal(literal.value.ljust(length), literal.data_type) if isinstance(literal.value, str) else literal


def _type_next_to_decimal(node: Node, other_operand: Node) -> DataType:
    """The node's type in an operation with other_operand: an integer literal next to a decimal has only its own digits, so 5 is a
    decimal(1, 0)."""
    if isinstance(other_operand.data_type, DecimalType) and isinstance(node.expression, Literal) and is_integral(node.data_type):
        value = node.expression.value
        return coercion.decimal_of_value(value) if isinstance(value, int) else node.data_type
    return node.data_type
