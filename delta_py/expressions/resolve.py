"""A tree and a schema -> the same tree with all types decided, as Spark's analyzer does under ANSI rules.

Columns get the schema's own spelling. Casts that Spark inserts are added. Casts that depend on the session's time zone become
from_utc_timestamp and to_utc_timestamp, so that a resolved tree means the same everywhere. Constants are computed. If a cast
column is compared with a constant that the column's own type can express exactly, the cast is removed
(`cast(i as bigint) = 5L` becomes `i = 5`), which makes columns comparable with statistics. A resolved tree may be resolved again
in UTC, which changes nothing; in another time zone its times would be converted to wall clocks twice.
"""

from __future__ import annotations

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluation_errors import not_supported, wrong_argument_count
from delta_py.expressions.functions.function_table import ALIASES, FUNCTIONS
from delta_py.expressions.functions.like import check_pattern
from delta_py.expressions.nodes import Node, literal_node, null_test_node
from delta_py.expressions.resolution import Resolution
from delta_py.expressions.special_calls import GRAMMAR_NAMES, SPECIAL_CALLS
from delta_py.expressions.tree import And, Call, Cast, Column, Comparison, Expression, In, IsNull, Literal, Not, Or, StringMatch
from delta_py.types.schema import BOOLEAN, STRING, DataType, StructType
from delta_py.types.similar_names import did_you_mean
from delta_py.types.zones import check_zone


def resolve(expression: Expression, schema: StructType, session_timezone: str = "UTC") -> Node:
    """The tree with all types decided.

    Raises SchemaMismatchError for a column that does not exist, ExpressionError for types that do not match, an
    unknown function, an unknown time zone, and nesting that is too deep.
    """
    check_zone(session_timezone)
    try:
        return _Resolver(Resolution(schema, session_timezone)).resolve_node(expression)
    except RecursionError as error:
        raise ExpressionError("The expression is nested too deeply. Split it, or use IN for many values.") from error


def resolve_condition(expression: Expression, schema: StructType, session_timezone: str = "UTC") -> Node:
    """The tree of a condition with all types decided: its value is true, false or null. Raises as resolve, also for a tree of
    another type."""
    node = resolve(expression, schema, session_timezone)
    return Resolution(schema, session_timezone).to_condition(node, "A predicate")


def resolve_cast(expression: Expression, schema: StructType, target: DataType, session_timezone: str = "UTC") -> Node:
    """CAST(expression AS target) in a time zone. expression: a resolved tree. Raises as resolve."""
    check_zone(session_timezone)
    return Resolution(schema, session_timezone).cast(resolve(expression, schema), target, explicit=True)


class _Resolver:
    """Resolves one tree from the leaves up. resolution: makes the nodes, in one schema and time zone."""

    def __init__(self, resolution: Resolution) -> None:
        self._resolution = resolution
        # By the id of an expression: an operand that occurs in several places is resolved once. The entry holds the expression,
        # so that no other expression gets its id.
        self._resolved: dict[int, tuple[Expression, Node]] = {}

    def resolve_node(self, expression: Expression) -> Node:
        """The expression with all types decided. An expression that was resolved before is not resolved again."""
        resolved = self._resolved.get(id(expression))
        if resolved is None:
            resolved = self._resolved[id(expression)] = (expression, self._resolve_uncached(expression))
        return resolved[1]

    def _resolve_uncached(self, expression: Expression) -> Node:
        """The work of `resolve_node` for an expression that was not resolved before."""
        match expression:
            case Column(path):
                return self._resolution.column(path)
            case Literal():
                return literal_node(expression)
            case Comparison(op, left, right):
                return self._resolution.compare(op, self.resolve_node(left), self.resolve_node(right))
            case In(operand, options):
                return self._resolution.compare_with_options(self.resolve_node(operand), options)
            case IsNull(operand):
                return null_test_node(self.resolve_node(operand))
            case StringMatch(kind, operand, pattern):
                check_pattern(kind, pattern)
                simple_operand = self._resolution.require_simple_type(kind, self.resolve_node(operand), STRING)
                text = self._resolution.cast(simple_operand, STRING)
                return Node(StringMatch(kind, text.expression, pattern), BOOLEAN, (text,), text.can_fail)
            case Not(operand):
                child = self._resolution.to_condition(self.resolve_node(operand), "NOT")
                return Node(Not(child.expression), BOOLEAN, (child,), child.can_fail)
            case And(operands) | Or(operands):
                return self._resolve_and_or(expression, operands)
            case Cast(operand, data_type):
                return self._resolution.cast(self.resolve_node(operand), data_type, explicit=True)
            case Call(name, arguments):
                return self._resolve_call(name.lower(), [self.resolve_node(argument) for argument in arguments])

    def _resolve_and_or(self, expression: And | Or, operands: tuple[Expression, ...]) -> Node:
        """AND or OR of conditions; the condition itself if there is only one."""
        name = "AND" if isinstance(expression, And) else "OR"
        children = tuple(self._resolution.to_condition(self.resolve_node(operand), name) for operand in operands)
        if len(children) == 1:
            return children[0]
        parts = tuple(child.expression for child in children)
        rebuilt: Expression = And(parts) if isinstance(expression, And) else Or(parts)
        return Node(rebuilt, BOOLEAN, children, any(child.can_fail for child in children))

    def _resolve_call(self, name: str, arguments: list[Node]) -> Node:
        """A call: by the rule for its name, or as a plain function. name: in lower case."""
        name = ALIASES.get(name, name)
        rule = SPECIAL_CALLS.get(name)
        if rule is None:
            if name not in FUNCTIONS:
                raise _unknown_function(name)
            return self._resolution.call_function(name, arguments)
        if len(arguments) < rule.min_arguments or (rule.max_arguments is not None and len(arguments) > rule.max_arguments):
            is_exact = rule.min_arguments == rule.max_arguments
            expected = str(rule.min_arguments) if is_exact else f"{rule.min_arguments} or more"
            raise wrong_argument_count(name, len(arguments), expected)
        return rule.resolve(self._resolution, name, arguments)


def _unknown_function(name: str) -> ExpressionError:
    hint = did_you_mean(name, [*FUNCTIONS, *ALIASES, *(SPECIAL_CALLS.keys() - GRAMMAR_NAMES)])
    return not_supported(f"The function {name[:60]}", f"It cannot be evaluated exactly as Spark does.{hint}")
