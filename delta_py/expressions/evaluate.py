"""An expression over a batch of rows -> an Arrow array, exactly as Spark evaluates it under ANSI rules.

In: a tree and rows with logical columns. Out: one value per row; null is SQL's null. Logic is three-valued, NaN equals NaN
and is larger than any number, -0.0 equals 0.0, text is ordered by its bytes. Parts that may raise (division, overflow, casts)
are evaluated only for the rows that need them: the right side of AND and OR, the branches of IF, CASE and COALESCE.

Everything that cannot be computed exactly raises an ExpressionError that names it. Timestamps are read in UTC; parse.py writes a
session's other time zone into the tree.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError, ExpressionError
from delta_py.expressions.clock import replace_clock_functions
from delta_py.expressions.coercion import is_fractional
from delta_py.expressions.functions.function_table import FUNCTIONS, call_values
from delta_py.expressions.functions.like import match_like
from delta_py.expressions.functions.text_growth import MOST_BYTES, growth_limit, repeat_in_rows
from delta_py.expressions.nodes import Node, cases_of, literal_scalar
from delta_py.expressions.resolve import resolve
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
    columns_of,
)
from delta_py.expressions.value_casts import cast_values, try_cast_values
from delta_py.types.schema import (
    VOID,
    DataType,
    StructType,
    from_arrow_schema,
    to_arrow_type,
)

# The maximum number of expressions whose plans are cached.
_MAX_PLANS = 128
# Operators that are null if either operand is null. _evaluate_strictly skips an operand where the other one is null.
_STRICT_OPERATORS = frozenset({"+", "-", "*", "/", "%", "div"})


def evaluate(
    expression: Expression,
    batch: pa.RecordBatch | pa.Table,
    *,
    now: datetime.datetime | None = None,
    time_zone: str = "UTC",
) -> Any:
    """One value per row: an Array for a RecordBatch, a ChunkedArray for a Table.

    now: the value of current_timestamp(), with dates and wall clocks in time_zone; without it such an expression is refused.
    For many batches of one write, call clock.replace_clock_functions once instead: then the prepared expression is cached.
    Raises SchemaMismatchError for a column that the batch lacks, ExpressionError for expressions that cannot be evaluated, and
    for values that ANSI SQL refuses (ARITHMETIC_OVERFLOW, DIVIDE_BY_ZERO, CAST_INVALID_INPUT, ...).
    """
    if now is not None:
        expression = replace_clock_functions(expression, now, time_zone)
    plan = _plan_for(expression, batch.schema)
    if isinstance(batch, pa.Table):
        chunks = [plan.evaluate_batch(part) for part in batch.to_batches()]
        return pa.chunked_array(chunks, to_arrow_type(plan.root.data_type))
    return plan.evaluate_batch(batch)


def can_evaluate(expression: Expression, schema: StructType) -> bool:
    """Whether rows of the schema can be evaluated. A value may still be refused (overflow, text that is not a number)."""
    try:
        root = resolve(expression, schema)
    except DeltaError:
        return False
    return _is_evaluable(root)


def _is_evaluable(node: Node) -> bool:
    """Whether each function in the expression can be computed here."""
    if isinstance(node.expression, Call):
        function = FUNCTIONS.get(node.expression.name)  # None for conditionals, which _Plan evaluates itself
        # A function without `run` is known only by its types: a function of the clock that was not yet replaced by its value.
        if function is not None and function.run is None:
            return False
    return all(_is_evaluable(child) for child in node.children)


# ---------------------------------------------------------------- plans


class _Plan:
    """A resolved expression that can be evaluated for many batches. Its constants are converted to Arrow values once.

    A plan does not change, so threads may share it.
    """

    def __init__(self, root: Node) -> None:
        self.root = root
        self._constants: Mapping[int, Any] = dict(_constants(root))

    def evaluate_batch(self, batch: pa.RecordBatch) -> Any:
        """One value per row, as an Array. Raises ExpressionError, for errors of Arrow too."""
        try:
            with growth_limit(MOST_BYTES):  # functions such as repeat could otherwise fill the memory
                return _to_array(self.evaluate_node(self.root, batch), batch.num_rows)
        except pa.ArrowException as error:
            raise ExpressionError(f"The expression could not be evaluated: {error}.") from error

    # ------------------------------------------------------------ nodes

    def evaluate_node(self, node: Node, batch: pa.RecordBatch) -> Any:
        """An Array, or a Scalar if all rows have the same value."""
        match node.expression:
            case Literal():
                return self._constants[id(node)]
            case Column(path):
                return _column(path, node.data_type, batch)
            case Comparison(op, _, _):
                if op == "<=>":  # never null, so it needs the values of both operands in every row
                    left, right = (self.evaluate_node(child, batch) for child in node.children)
                else:
                    left, right = self._evaluate_strictly(node, batch)
                return compare(op, left, right, node.children[0].data_type)
            case In():
                return self._evaluate_in(node, batch)
            case IsNull():
                return pc.is_null(self.evaluate_node(node.children[0], batch))
            case StringMatch(kind, _, pattern):
                return _MATCHERS[kind](self.evaluate_node(node.children[0], batch), pattern)
            case Not():
                return pc.invert(self.evaluate_node(node.children[0], batch))
            case And():
                return self._evaluate_and_or(node, batch, pc.and_kleene, True)
            case Or():
                return self._evaluate_and_or(node, batch, pc.or_kleene, False)
            case Cast(_, target):
                child = node.children[0]
                return _call_on_arrays(lambda a: cast_values(a, child.data_type, target), [self.evaluate_node(child, batch)])
            case Call(name, _):
                return self._evaluate_call(name, node, batch)

    def _evaluate_call(self, name: str, node: Node, batch: pa.RecordBatch) -> Any:
        """The result of a call. The name is a conditional, try_cast, greatest, least, or a function in the table."""
        if name == "coalesce":
            return self._evaluate_coalesce(node, batch)
        if name in ("if", "case"):
            return self._evaluate_cases(node, batch)
        if name == "try_cast":
            child = node.children[0]
            run = partial(try_cast_values, source=child.data_type, target=node.data_type)
            return _call_on_arrays(run, [self.evaluate_node(child, batch)])
        if name in ("greatest", "least"):
            return _greatest_or_least(name, [self.evaluate_node(child, batch) for child in node.children], node.data_type)
        if name in _STRICT_OPERATORS:
            arguments = self._evaluate_strictly(node, batch)
        else:
            arguments = [self.evaluate_node(child, batch) for child in node.children]
        # For the arguments that a function requires as Python constants.
        literals = [child.expression.value if isinstance(child.expression, Literal) else None for child in node.children]
        return _call_on_arrays(lambda *arrays: call_values(name, arrays, literals, node.data_type), arguments)

    def _evaluate_in(self, node: Node, batch: pa.RecordBatch) -> Any:
        """IN. The result is null for a null operand. A value without a match gives null if an option is null."""
        options, has_null = self._constants[id(node)]
        values = self.evaluate_node(node.children[0], batch)
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
        if pa.types.is_null(values.type):
            return pa.scalar(None, pa.bool_())  # an operand of the type VOID is null in every row
        is_member = _call_on_arrays(lambda array: pc.is_in(array, value_set=options, skip_nulls=True), [values])
        is_member = pc.if_else(pc.is_valid(values), is_member, None)
        return pc.if_else(is_member, True, None) if has_null else is_member

    # ------------------------------------------------------------ evaluation of some rows only

    def _evaluate_strictly(self, node: Node, batch: pa.RecordBatch) -> list[Any]:
        """The values of two operands for a function that is null if either is null: if the first is null, the second is not
        evaluated. Division evaluates the divisor first, as Spark does."""
        operands = list(node.children)
        if len(operands) != 2 or (not operands[0].can_fail and not operands[1].can_fail):
            return [self.evaluate_node(child, batch) for child in operands]
        is_division = isinstance(node.expression, Call) and node.expression.name in ("/", "%", "div")
        first, second = reversed(operands) if is_division else operands
        first_value = self.evaluate_node(first, batch)
        second_value = (
            self._evaluate_rows(second, batch, pc.is_valid(first_value)) if second.can_fail else self.evaluate_node(second, batch)
        )
        return [second_value, first_value] if is_division else [first_value, second_value]

    def _evaluate_and_or(self, node: Node, batch: pa.RecordBatch, kernel: Any, neutral: bool) -> Any:
        """AND and OR, from left to right. An operand that can fail is evaluated only for rows that the operands before it leave
        undecided.

        kernel: and_kleene or or_kleene. neutral: the value that does not change a result: true for AND, false for OR.
        """
        result: Any = pa.scalar(neutral)
        for child in node.children:
            if child.can_fail:
                # A row is undecided if its result is `neutral` or null: null AND false is false, null OR true is true.
                undecided_rows = pc.fill_null(result if neutral else pc.invert(result), True)
                result = kernel(result, self._evaluate_rows(child, batch, undecided_rows))
            else:
                result = kernel(result, self.evaluate_node(child, batch))
        return result

    def _evaluate_coalesce(self, node: Node, batch: pa.RecordBatch) -> Any:
        """The first value that is not null. An operand that can fail is evaluated only for rows where all operands before it are
        null."""
        result = self.evaluate_node(node.children[0], batch)
        for child in node.children[1:]:
            if isinstance(result, pa.Scalar):  # all rows have the same value
                if result.is_valid:
                    break
                result = self.evaluate_node(child, batch)
            elif result.null_count:
                next_values = (
                    self._evaluate_rows(child, batch, pc.is_null(result)) if child.can_fail else self.evaluate_node(child, batch)
                )
                result = pc.if_else(pc.is_valid(result), result, next_values)
        return result

    def _evaluate_cases(self, node: Node, batch: pa.RecordBatch) -> Any:
        """IF and CASE. A condition or value that can fail is evaluated only for the rows that need it."""
        cases = cases_of(node)
        remaining_rows: Any = pa.scalar(True)  # rows that no condition has selected yet
        branches = []
        for condition, value in zip(cases.conditions, cases.values, strict=True):
            is_true = (
                self._evaluate_rows(condition, batch, remaining_rows)
                if condition.can_fail
                else self.evaluate_node(condition, batch)
            )
            is_selected = pc.and_(remaining_rows, pc.fill_null(is_true, False))
            values = self._evaluate_rows(value, batch, is_selected) if value.can_fail else self.evaluate_node(value, batch)
            branches.append((is_selected, values))
            remaining_rows = pc.and_not(remaining_rows, is_selected)
        result: Any = pa.scalar(None, to_arrow_type(node.data_type))
        if cases.otherwise is not None:
            otherwise = cases.otherwise
            result = (
                self._evaluate_rows(otherwise, batch, remaining_rows)
                if otherwise.can_fail
                else self.evaluate_node(otherwise, batch)
            )
        for is_selected, values in reversed(branches):  # each row is selected by at most one branch
            result = pc.if_else(is_selected, values, result)
        return result

    def _evaluate_rows(self, node: Node, batch: pa.RecordBatch, rows: Any) -> Any:
        """The node's values where `rows` is true, null elsewhere. Only these rows are evaluated. rows: a boolean for each row, or
        one for all rows; never null."""
        if isinstance(rows, pa.Scalar):
            return self.evaluate_node(node, batch) if rows.as_py() else pa.scalar(None, to_arrow_type(node.data_type))
        needed_count = rows.true_count
        if needed_count == batch.num_rows:
            return self.evaluate_node(node, batch)
        if needed_count:
            # Only the columns that the node uses are filtered.
            needed_columns = batch.select(sorted({path[0] for path in columns_of(node.expression)}))
            values = _to_array(self.evaluate_node(node, _filter_rows(needed_columns, rows)), needed_count)
        else:
            values = pa.nulls(0, to_arrow_type(node.data_type))
        # The n-th true row gets the n-th computed value.
        flags = rows.to_numpy(zero_copy_only=False)
        return values.take(pa.array(np.cumsum(flags) - 1, pa.int64(), mask=~flags))


def _constants(node: Node) -> Any:
    """Yields (id of the node, value) for the literals and for the options of IN, so that they are converted once for all batches.

    The value is a Scalar for a literal, and the pair that _option_values returns for IN.
    """
    if isinstance(node.expression, Literal):
        yield id(node), literal_scalar(node.expression)
    elif isinstance(node.expression, In):
        yield id(node), _option_values(node.expression.options, node.children[0].data_type)
    for child in node.children:
        yield from _constants(child)


def _option_values(options: tuple[Literal, ...], data_type: DataType) -> tuple[Any, bool]:
    """The options without null as an array, and whether null was one of the options."""
    valid_options = [option.value for option in options if option.value is not None]
    values = pa.array(valid_options, to_arrow_type(data_type))
    if is_fractional(data_type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0, which equals it in Spark
    return values, len(valid_options) < len(options)


@dataclass(frozen=True, slots=True)
class _CachedPlan:
    """names: the sorted names of the top-level columns that the expression uses. schema: the result of _columns_named for
    these names."""

    expression: Expression
    names: tuple[str, ...]
    schema: pa.Schema
    plan: _Plan


class _PlanCache:
    """The latest plans, so that an expression is not resolved again for each batch.

    The key is the identity of the expression, because comparing large trees would cost more than it saves.
    """

    def __init__(self) -> None:
        self._cached_plans: OrderedDict[int, _CachedPlan] = OrderedDict()
        self._lock = Lock()

    def get(self, expression: Expression, schema: pa.Schema) -> _Plan:
        """The plan of the expression for batches of the schema: the cached one, or a new one that is then cached.

        The cache has one plan for each expression, for the schema of its last use. A full cache drops the oldest plan.
        """
        key = id(expression)
        with self._lock:
            entry = self._cached_plans.get(key)
        # The entry keeps the expression alive, so no other expression has its id.
        is_known = entry is not None and entry.expression is expression
        names = entry.names if entry is not None and is_known else tuple(sorted({path[0] for path in columns_of(expression)}))
        needed_schema = _columns_named(schema, names)
        if entry is not None and is_known and entry.schema.equals(needed_schema):
            return entry.plan
        plan = _Plan(resolve(expression, _delta_schema(needed_schema)))
        with self._lock:
            self._cached_plans[key] = _CachedPlan(expression, names, needed_schema, plan)
            self._cached_plans.move_to_end(key)
            while len(self._cached_plans) > _MAX_PLANS:
                self._cached_plans.popitem(last=False)
        return plan


_plan_for = _PlanCache().get


def _columns_named(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema of only these columns, so that the cost of an expression does not depend on other columns. All columns if
    a name does not match exactly one column."""
    positions = [schema.get_field_index(name) for name in names]
    return schema if -1 in positions else pa.schema([schema.field(position) for position in positions])


def _delta_schema(schema: pa.Schema) -> StructType:
    """The schema in Delta's types, without columns of types that Delta does not have: no expression can use them."""
    try:
        return from_arrow_schema(schema)
    except DeltaError:
        return StructType(tuple(f for column in schema for f in _delta_fields(column)))


def _delta_fields(column: pa.Field) -> Any:
    """A tuple with the column as a field of Delta, or () if Delta does not have its type."""
    try:
        return from_arrow_schema(pa.schema([column])).fields
    except DeltaError:
        return ()


# ---------------------------------------------------------------- arrays


def _column(path: tuple[str, ...], data_type: DataType, batch: pa.RecordBatch) -> Any:
    """The column or field at the path, in the type that the expression was resolved for."""
    values = batch.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    target = to_arrow_type(data_type)
    return values if values.type == target or pa.types.is_nested(target) else values.cast(target)


def _to_array(value: Any, row_count: int) -> Any:
    """An Array with a value for each row; a Scalar is repeated."""
    return repeat_in_rows(value, row_count) if isinstance(value, pa.Scalar) else value


def _call_on_arrays(run: Callable[..., Any], arguments: list[Any]) -> Any:
    """Calls a function that needs at least one Array; if all arguments are Scalars, returns a Scalar."""
    if all(isinstance(argument, pa.Scalar) for argument in arguments):
        return run(*(pa.repeat(argument, 1) for argument in arguments))[0]
    return run(*arguments)


def _filter_rows(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """The rows where `rows` is true. The result has their number also if there are no columns."""
    if batch.num_columns:
        return batch.filter(rows)
    return pa.RecordBatch.from_arrays([pa.nulls(rows.true_count)], names=[""]).select([])


def compare(op: str, left: Any, right: Any, data_type: DataType) -> Any:
    """`left op right`, with Spark's results for null and NaN.

    op: one of = <=> < <= > >=. left, right: Arrays or Scalars of the type data_type.
    """
    if data_type == VOID:  # both operands are null in every row
        return pa.scalar(True if op == "<=>" else None, pa.bool_())
    if op == "<=>":
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, pc.fill_null(compare("=", left, right, data_type), False))
    if not is_fractional(data_type):
        return _KERNELS[op](left, right)
    return _compare_doubles(op, left, right)


def _compare_doubles(op: str, left: Any, right: Any) -> Any:
    """The IEEE result, except that NaN equals NaN and is above everything else."""
    if op in ("<", "<="):
        return _compare_doubles({"<": ">", "<=": ">="}[op], right, left)
    ieee_result = _KERNELS[op](left, right)
    if op == "=":
        return pc.or_(ieee_result, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if op == ">=":
        return pc.or_(ieee_result, pc.is_nan(left))
    return pc.or_(ieee_result, pc.and_(pc.is_nan(left), pc.invert(pc.is_nan(right))))  # op is >


def _greatest_or_least(name: str, arguments: list[Any], data_type: DataType) -> Any:
    """GREATEST and LEAST ignore nulls; the first of equal values is returned."""
    result = arguments[0]
    for value in arguments[1:]:
        is_better = compare(">" if name == "greatest" else "<", value, result, data_type)
        result = pc.if_else(pc.or_(pc.is_null(result), pc.fill_null(is_better, False)), value, result)
    return result


_KERNELS: Mapping[str, Any] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MATCHERS: Mapping[str, Callable[[Any, str], Any]] = {
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
    "like": match_like,
}
