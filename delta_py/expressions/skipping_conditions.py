"""A predicate on rows -> which files may hold a row for which it is true.

In: the predicate with physical paths, statistics and typed partition values of many files. Out: one boolean per file.
Every condition is evaluated in two ways, vectorised over the files: may it be true for some row, and may it be false for some
row (which NOT needs)? Unknown means yes, so a file is left out only if no row of it can match.

NaN is larger than every number in Spark, and writers leave it out of bounds: so the upper bound of a floating point column
does not show whether there are rows above a value.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.expression_bounds import Bounds, FileBounds
from delta_py.expressions.functions.function_table import ALIASES, FUNCTIONS
from delta_py.expressions.functions.like import prefix_of
from delta_py.expressions.nodes import Node
from delta_py.expressions.resolve import resolve_condition
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
    columns_of,
    transform_columns,
)
from delta_py.statistics.stats import FileStats
from delta_py.types.arrow_values import FALSE, array, from_numpy, scalar, to_numpy
from delta_py.types.schema import Path, StructField, StructType, from_arrow_type

# _NEGATED: NOT (a < b) is a >= b. _FLIPPED: a > b is b < a, so that only < and <= need to be handled.
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FLIPPED = {">": "<", ">=": "<="}


def keep_mask(predicate: Expression, stats: FileStats, partition_values: Mapping[Path, pa.Array]) -> pa.BooleanArray:
    """True for each file that may hold a row for which the predicate is true; never null.

    partition_values: every file's typed value of each partition column in the predicate.
    For a predicate that `is_exact_on_partitions` the answer is exact: it is true for all rows of the file, or for none;
    an ExpressionError is raised if a partition value cannot be evaluated.
    """
    return _FileConditions(predicate, stats, partition_values).may_be(predicate, True)


def columns_with_stats(predicate: Expression) -> frozenset[Path]:
    """The paths whose statistics can rule out files: bounds, or null counts."""
    return frozenset(_paths_with_stats(predicate))


def _paths_with_stats(expression: Expression) -> Iterator[Path]:
    """The columns in the expression, without arguments of functions whose results have no bounds."""
    match expression:
        case Column(path):
            yield path
        case Call(name, _) if not _may_have_bounds(name):
            return
        case _:
            for child in children(expression):
                yield from _paths_with_stats(child)


def _may_have_bounds(name: str) -> bool:
    """Whether bounds of an argument can give bounds of this function's result."""
    function = FUNCTIONS.get(ALIASES.get(name, name))
    return name in ("+", "-", "from_utc_timestamp", "to_utc_timestamp") or (function is not None and function.increasing)


def is_exact_on_partitions(predicate: Expression, partition_columns: frozenset[Path]) -> bool:
    """Whether partition values alone decide the predicate, by comparisons and tests that cannot fail (no casts, no
    functions)."""
    columns = columns_of(predicate)
    return bool(columns) and columns <= partition_columns and _cannot_fail(predicate)


def _cannot_fail(expression: Expression) -> bool:
    """Whether the expression has no casts and no calls: only these can raise for a value."""
    return not isinstance(expression, Cast | Call) and all(_cannot_fail(child) for child in children(expression))


class _FileConditions:
    """The files for which a predicate is evaluated.

    Expressions are resolved over a schema of only the predicate's columns, because the table's schema is not known here. In this
    schema each column, also a nested one, is a top-level column with a number as its flat name.
    """

    def __init__(self, predicate: Expression, stats: FileStats, partition_values: Mapping[Path, pa.Array]) -> None:
        self._partitions = {path: _as_array(partition_values[path]) for path in columns_of(predicate) if path in partition_values}
        self._bounds = FileBounds(stats, self._partitions)
        # The path of each column -> its flat name, a number, as a path of one name.
        self._flat_paths: dict[Path, Path] = {path: (str(number),) for number, path in enumerate(sorted(columns_of(predicate)))}
        self._table_paths = {flat_path: path for path, flat_path in self._flat_paths.items()}
        self._schema = StructType(tuple(self._flat_fields(stats)))

    def _flat_fields(self, stats: FileStats) -> Iterator[StructField]:
        """The columns by their flat names, in the types of their partition values or bounds. A column that has neither is left
        out, because its type is unknown."""
        for path, (flat_name,) in self._flat_paths.items():
            known_values = self._partitions.get(path, stats.minimum.get(path, stats.maximum.get(path)))
            if known_values is not None:
                yield StructField(flat_name, from_arrow_type(known_values.type))

    # ------------------------------------------------------------ logic

    def may_be(self, expression: Expression, outcome: bool) -> pa.BooleanArray:
        """Files in which the condition may be `outcome` (true or false) for some row."""
        decided = self._decide_by_partitions(expression, outcome)
        if decided is not None:
            return decided
        match expression:
            case And(operands) | Or(operands):
                # An AND is true, and an OR false, only if all operands are.
                needs_all = isinstance(expression, And) == outcome
                result = self._bounds.every_file if needs_all else self._bounds.no_file
                for operand in operands:
                    answer = self.may_be(operand, outcome)
                    result = pc.and_(result, answer) if needs_all else pc.or_(result, answer)
                return result
            case Not(operand):
                return self.may_be(operand, not outcome)
        return self._condition_may_be(expression, outcome)

    def _decide_by_partitions(self, expression: Expression, outcome: bool) -> pa.BooleanArray | None:
        """The exact answer if only partition columns are named; None otherwise, or if it cannot be evaluated."""
        columns = columns_of(expression)
        if not columns or not columns <= self._partitions.keys():
            return None
        sorted_paths = sorted(columns)
        names = [self._flat_paths[path][0] for path in sorted_paths]
        batch = pa.RecordBatch.from_arrays([self._partitions[path] for path in sorted_paths], names=names)
        try:
            values = evaluate(resolve_condition(self._with_flat_names(expression), self._schema).expression, batch)
        except DeltaError:
            if _cannot_fail(expression):  # the error does not come from a value: the predicate itself is wrong
                raise
            return None  # the query may never evaluate a failing cast for this partition, so the file is kept
        return pc.fill_null(values if outcome else pc.invert(values), FALSE)

    def _with_flat_names(self, expression: Expression) -> Expression:
        """The expression over the flat names of the columns."""
        return transform_columns(expression, lambda path: Column(self._flat_paths[path]))

    def _condition_may_be(self, expression: Expression, outcome: bool) -> pa.BooleanArray:
        """The answer of may_be for a condition that is not AND, OR or NOT."""
        try:
            node = resolve_condition(self._with_flat_names(expression), self._schema)
        except DeltaError:  # the type of a column is unknown, or the condition does not resolve
            return self._may_be_by_nulls(expression, outcome)
        return self._node_may_be(node, outcome)

    def _may_be_by_nulls(self, expression: Expression, outcome: bool) -> pa.BooleanArray:
        """Files in which the condition may be `outcome` for some row, by null counts alone: columns of unknown types have no
        bounds."""
        match expression:
            case IsNull(Column(path)) if outcome:
                return self._bounds.column_bounds(path).may_be_null
            case (
                Comparison("=" | "<" | "<=" | ">" | ">=", Column(path), _)
                | Comparison("=" | "<" | "<=" | ">" | ">=", _, Column(path))
                | In(Column(path), _)
                | StringMatch(_, Column(path), _)
                | IsNull(Column(path))
            ):
                # For a null, these conditions are null, and IS NULL is not false: they need a row with a value.
                return pc.invert(self._bounds.column_bounds(path).all_null)
        return self._bounds.every_file

    # ------------------------------------------------------------ conditions

    def _node_may_be(self, node: Node, outcome: bool) -> pa.BooleanArray:
        """Files in which the node may have the value `outcome` for some row."""
        match node.expression:
            case Not():
                return self._node_may_be(node.children[0], not outcome)
            case Literal(value, _):
                return self._bounds.every_file if value is outcome else self._bounds.no_file
            case Comparison(op, _, _):
                return self._comparison_may_be(op, node, outcome)
            case In(_, options):
                return self._in_may_be(node, options, outcome)
            case IsNull():
                bounds = self._bounds_of(node.children[0])
                return bounds.may_be_null if outcome else pc.invert(bounds.all_null)
            case StringMatch(how, _, pattern):
                return self._match_may_be(node, prefix_of(how, pattern), outcome)
            case Column() | Cast() | Call():
                # A boolean value is compared with the constant `outcome`.
                scalar = pa.scalar(outcome)
                outcome_bounds = Bounds(scalar, scalar, self._bounds.no_file, self._bounds.no_file)
                return self._may_be_equal(self._bounds_of(node), outcome_bounds)
        return self._bounds.every_file

    def _bounds_of(self, node: Node) -> Bounds:
        """The bounds of an operand whose columns have flat names."""
        return self._bounds.bounds_of(_with_table_paths(node, self._table_paths))

    def _comparison_may_be(self, op: str, node: Node, outcome: bool) -> pa.BooleanArray:
        """Files in which the comparison may have the value `outcome` for some row."""
        left, right = (self._bounds_of(child) for child in node.children)
        if op in ("=", "<=>"):
            if outcome:
                may_be_equal = self._may_be_equal(left, right)
                return pc.or_(may_be_equal, pc.and_(left.may_be_null, right.may_be_null)) if op == "<=>" else may_be_equal
            may_differ = self._may_differ(left, right)
            return pc.or_(may_differ, _may_have_one_null(left, right)) if op == "<=>" else may_differ
        op = op if outcome else _NEGATED[op]
        if op in _FLIPPED:
            op, left, right = _FLIPPED[op], right, left
        # left < right is true for no row if even the least value on the left is not below the greatest on the right.
        contradicts = pc.greater_equal if op == "<" else pc.greater
        is_impossible = self._is_certain(contradicts, left.lower, _upper_with_nan(right))
        return pc.and_not(self._may_both_have_values(left, right), is_impossible)

    def _may_both_have_values(self, left: Bounds, right: Bounds) -> pa.BooleanArray:
        """False for files in which one side is null in all rows, so that a comparison is null too."""
        if right.is_constant:  # a constant with bounds is not null
            return pc.invert(left.all_null)
        return pc.invert(pc.or_(left.all_null, right.all_null))

    def _may_be_equal(self, left: Bounds, right: Bounds) -> pa.BooleanArray:
        """Files in which both sides may have the same value in some row. A hidden NaN equals only NaN, so it does not match a
        number (a constant, a bound of a type without NaN)."""
        may_both_be_nan = left.may_contain_nan and right.may_contain_nan
        is_above = self._is_certain(pc.greater, left.lower, None if may_both_be_nan else right.upper)
        is_below = self._is_certain(pc.less, None if may_both_be_nan else left.upper, right.lower)
        return pc.and_not(self._may_both_have_values(left, right), pc.or_(is_above, is_below))

    def _may_differ(self, left: Bounds, right: Bounds) -> pa.BooleanArray:
        """Files in which the sides may have different values in some row. False for files in which both sides have one and the
        same value in all rows."""
        has_values = self._may_both_have_values(left, right)
        if left.may_contain_nan or right.may_contain_nan:
            return has_values
        left_is_constant = self._is_certain(pc.equal, left.lower, left.upper)
        right_is_constant = self._is_certain(pc.equal, right.lower, right.upper)
        are_constant = pc.and_(left_is_constant, right_is_constant)
        return pc.and_not(has_values, pc.and_(are_constant, self._is_certain(pc.equal, left.lower, right.lower)))

    def _is_certain(self, test: Callable[[Any, Any], Any], left: Any, right: Any) -> pa.BooleanArray:
        """Whether the test holds for two bounds; false if either is unknown. left, right: as Bounds.lower and Bounds.upper."""
        if left is None or right is None:
            return self._bounds.no_file
        is_true = test(left, right)
        if isinstance(is_true, pa.Scalar):
            return self._bounds.every_file if is_true.as_py() else self._bounds.no_file
        return is_true.fill_null(FALSE) if is_true.null_count else is_true

    # ------------------------------------------------------------ IN

    def _in_may_be(self, node: Node, options: tuple[Literal, ...], outcome: bool) -> pa.BooleanArray:
        """Files in which IN may have the value `outcome` for some row."""
        bounds = self._bounds_of(node.children[0])
        values = [option.value for option in options if option.value is not None]
        if not outcome and len(values) < len(options):
            return self._bounds.no_file  # x NOT IN (..., null) is never true
        if not values:  # no row has a match; if `outcome` is false, there are no options at all
            return self._bounds.no_file if outcome else pc.invert(bounds.all_null)
        has_values = pc.invert(bounds.all_null)
        # The search below needs one lower and one upper bound for each file, which a constant operand does not have.
        if bounds.lower is None or bounds.upper is None or bounds.is_constant:
            return has_values
        sorted_options = _sorted_options(values, bounds.lower.type)
        # A NaN outside of the bounds may match an option NaN, and otherwise makes IN false.
        if sorted_options is None or (not outcome and bounds.may_contain_nan):
            return has_values
        if outcome:
            return pc.and_(has_values, self._may_contain_option(sorted_options, bounds))
        # IN is false for no row if all values of the file are the same, and this value is an option.
        has_one_value = self._is_certain(pc.equal, bounds.lower, bounds.upper)
        return pc.and_not(has_values, pc.and_(has_one_value, pc.is_in(bounds.lower, value_set=sorted_options, skip_nulls=True)))

    def _may_contain_option(self, sorted_options: pa.Array, bounds: Bounds) -> pa.BooleanArray:
        """Files with one of the options between their bounds; true for files without bounds.

        A binary search for all files at once finds the first option that is not below each lower bound. A file may contain an
        option only if this first option is not above its upper bound.
        """
        is_above = self._is_certain(pc.greater, bounds.lower, sorted_options[-1])
        is_below = self._is_certain(pc.less, bounds.upper, sorted_options[0])
        is_outside = pc.or_(is_above, is_below)
        has_bounds = pc.and_(pc.is_valid(bounds.lower), pc.is_valid(bounds.upper))
        undecided_files = pc.and_not(has_bounds, is_outside)
        result = pc.invert(is_outside)
        # The result is final for files without both bounds. With a single option, it is final for all files: the option is
        # neither below the lower bound nor above the upper bound.
        if len(sorted_options) == 1 or not undecided_files.true_count:
            return result
        lower, upper = bounds.lower.filter(undecided_files), bounds.upper.filter(undecided_files)
        first_positions = _first_not_below(sorted_options, lower)
        first_options = sorted_options.take(from_numpy(np.minimum(first_positions, len(sorted_options) - 1)))
        has_first_option = from_numpy(first_positions < len(sorted_options))
        contains_option = pc.and_(pc.less_equal(first_options, upper), has_first_option)
        return pc.replace_with_mask(result, undecided_files, contains_option)

    # ------------------------------------------------------------ text

    def _match_may_be(self, node: Node, prefix: tuple[str, bool], outcome: bool) -> pa.BooleanArray:
        """Files in which the match may have the value `outcome` for some row.

        prefix: the result of like.prefix_of: the text with which every match begins, and whether every text that begins with it
        matches. In the order of texts, all texts between two texts with a prefix have this prefix too.
        """
        bounds = self._bounds_of(node.children[0])
        has_values = pc.invert(bounds.all_null)
        text, is_whole_test = prefix
        # An empty prefix tells nothing, except that a test of the prefix alone (LIKE '%') is never false.
        if not text and not (is_whole_test and not outcome):
            return has_values
        start = scalar(text, pa.string())
        if outcome:
            is_below = self._is_certain(pc.less, bounds.upper, start)
            is_above = self._is_certain(pc.greater, bounds.lower, start)
            return pc.and_not(has_values, pc.or_(is_below, pc.and_not(is_above, self._is_certain_prefix(bounds.lower, text))))
        if not is_whole_test:
            return has_values
        all_match = pc.and_(self._is_certain_prefix(bounds.lower, text), self._is_certain_prefix(bounds.upper, text))
        return pc.and_not(has_values, all_match)

    def _is_certain_prefix(self, side: Any, prefix: str) -> pa.BooleanArray:
        """Whether a bound of texts is known and begins with the prefix."""
        return self._is_certain(pc.starts_with, side, prefix)


def _as_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values in one array without a dictionary."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _upper_with_nan(bounds: Bounds) -> Any:
    """The upper bound of all values, including NaN; None (unknown) if NaN may be among them, because nothing is above it."""
    return None if bounds.may_contain_nan else bounds.upper


def _may_have_one_null(left: Bounds, right: Bounds) -> pa.BooleanArray:
    """Files in which one side may be null while the other is not."""
    only_left = pc.and_not(left.may_be_null, right.all_null)
    return pc.or_(only_left, pc.and_not(right.may_be_null, left.all_null))


def _with_table_paths(node: Node, paths: Mapping[Path, Path]) -> Node:
    """The node with the paths of the table in place of flat names. paths: flat path -> path of the table."""
    if isinstance(node.expression, Column):
        return replace(node, expression=Column(paths[node.expression.path]))
    return replace(node, children=tuple(_with_table_paths(child, paths) for child in node.children)) if node.children else node


def _sorted_options(values: list[Any], arrow_type: pa.DataType) -> pa.Array | None:
    """The distinct values in order; None if NaN is among them, because bounds do not contain it."""
    options = pc.unique(array(values, arrow_type))
    if pa.types.is_floating(arrow_type):
        if pc.any(pc.is_nan(options)).as_py():
            return None
        options = pc.unique(pc.add(options, pa.scalar(0.0, arrow_type)))  # -0.0 becomes 0.0, which equals it
    return options.take(pc.sort_indices(options))


def _first_not_below(sorted_options: pa.Array, bounds: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each bound, the position of the first of the sorted values that is not below it; the number of values if
    there is none."""
    if pa.types.is_primitive(bounds.type) and not pa.types.is_boolean(bounds.type):
        positions: np.ndarray[Any, np.dtype[np.int64]] = np.searchsorted(_numbers(sorted_options), _numbers(bounds))
        return positions
    # numpy cannot search among texts, decimals or booleans of Arrow: here each position is between low and high.
    low = np.zeros(len(bounds), np.int64)
    high = np.full(len(bounds), len(sorted_options), np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        candidates = sorted_options.take(from_numpy(np.minimum(middle, len(sorted_options) - 1)))
        is_below = to_numpy(pc.less(candidates, bounds)) & (low < high)
        low = np.where(is_below, middle + 1, low)
        high = np.where(is_below | (low >= high), high, middle)
    return low


def _numbers(values: pa.Array) -> Any:
    """Numbers, dates or timestamps in a form that numpy compares fast."""
    types = {32: pa.int32(), 64: pa.int64()}
    return to_numpy(values.cast(types[values.type.bit_width]) if pa.types.is_temporal(values.type) else values)
