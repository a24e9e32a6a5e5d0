"""A predicate on rows -> which files may hold a row for which it is true.

In: the predicate with physical paths, statistics and typed partition values of many files. Out: one boolean a file.
Every expression is asked two questions, vectorised over the files: may it be true for some row, may it be false for
some row (what NOT needs). Whatever is not known answers yes, so a file is left out only when no row of it can match.

A double's NaN is larger than every number in Spark, and writers leave NaN out of bounds: an upper bound of a floating
point column says nothing about rows above a value.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError
from delta_py.expressions.evaluate import evaluate
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
)
from delta_py.protocol.schema import BOOLEAN, DataType, DecimalType, Path, PrimitiveType, to_arrow_type
from delta_py.protocol.stats import FileStats

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ARROW_REFUSALS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def keep_mask(predicate: Expression, stats: FileStats, partition_values: Mapping[Path, pa.Array]) -> pa.BooleanArray:
    """True for each file that may hold a row for which the predicate is true; never null.

    partition_values: every file's typed value of each partition column that the predicate names.
    For a predicate that `is_exact_on_partitions` the answer is exact: it is true for all rows of the file, or for none.
    """
    return _Files(stats, partition_values).may_be_true(predicate)


def columns_with_stats(predicate: Expression) -> frozenset[Path]:
    """The paths whose statistics can rule out files: bounds, or null counts."""
    return frozenset(_paths_with_stats(predicate))


def _paths_with_stats(expression: Expression) -> Iterator[Path]:
    match expression:
        case Column(path):
            yield path
        case Cast(operand, _):
            yield from _paths_with_stats(operand)
        case Call():
            return
        case _:
            for child in children(expression):
                yield from _paths_with_stats(child)


def is_exact_on_partitions(predicate: Expression, partition_columns: frozenset[Path]) -> bool:
    """Whether partition values alone decide the predicate, and deciding it cannot fail (no casts, no functions)."""
    columns = columns_of(predicate)
    return bool(columns) and columns <= partition_columns and _cannot_fail(predicate)


def _cannot_fail(expression: Expression) -> bool:
    return not isinstance(expression, Cast | Call) and all(_cannot_fail(child) for child in children(expression))


# ---------------------------------------------------------------- intervals


@dataclass(frozen=True, slots=True)
class _Interval:
    """What is known of an operand's non-null values in each file. Bounds are arrays, a scalar, or None for unknown.

    all_null: files in which every row is null. has_null: files in which a row may be null. hidden_nan: values above
    `upper` may be there (floating point). constant: not null and one value for all rows of all files.
    """

    lower: Any
    upper: Any
    all_null: Any
    has_null: Any
    hidden_nan: bool = False
    constant: bool = False


class _Files:
    """The files that a predicate is asked about."""

    def __init__(self, stats: FileStats, partition_values: Mapping[Path, pa.Array]) -> None:
        self._stats = stats
        self._partitions = partition_values
        self._yes = pa.repeat(pa.scalar(True), stats.file_count)
        self._no = pa.repeat(pa.scalar(False), stats.file_count)

    # ------------------------------------------------------------ logic

    def may_be_true(self, expression: Expression) -> pa.BooleanArray:
        decided = self._by_partitions(expression, wanted=True)
        if decided is not None:
            return decided
        match expression:
            case And(operands):
                return self._all(operands, self.may_be_true)
            case Or(operands):
                return self._any(operands, self.may_be_true)
            case Not(operand):
                return self.may_be_false(operand)
            case Literal(value, _):
                return self._yes if value is True else self._no
            case Column() | Cast(_, PrimitiveType("boolean")):
                return self._comparison("=", expression, Literal(True, BOOLEAN))
            case Comparison(op, left, right):
                return self._comparison(op, left, right)
            case In(operand, options):
                return self._in(operand, options)
            case IsNull(operand):
                return self._interval(operand).has_null
            case StringMatch(kind, operand, pattern):
                return self._string_match(kind, operand, pattern)
        return self._yes

    def may_be_false(self, expression: Expression) -> pa.BooleanArray:
        decided = self._by_partitions(expression, wanted=False)
        if decided is not None:
            return decided
        match expression:
            case And(operands):
                return self._any(operands, self.may_be_false)
            case Or(operands):
                return self._all(operands, self.may_be_false)
            case Not(operand):
                return self.may_be_true(operand)
            case Literal(value, _):
                return self._yes if value is False else self._no
            case Column() | Cast(_, PrimitiveType("boolean")):
                return self._comparison("=", expression, Literal(False, BOOLEAN))
            case Comparison("=" | "<=>" as op, left, right):
                return self._differs(left, right, null_safe=op == "<=>")
            case Comparison(op, left, right):
                return self._comparison(_NEGATED[op], left, right)
            case In(operand, options):
                return self._not_in(operand, options)
            case IsNull(operand):
                return pc.invert(self._interval(operand).all_null)
            case StringMatch(kind, operand, pattern):
                return self._no_string_match(kind, operand, pattern)
        return self._yes

    def _all(self, operands: tuple[Expression, ...], ask: Callable[[Expression], pa.BooleanArray]) -> pa.BooleanArray:
        result = self._yes
        for operand in operands:
            result = pc.and_(result, ask(operand))
        return result

    def _any(self, operands: tuple[Expression, ...], ask: Callable[[Expression], pa.BooleanArray]) -> pa.BooleanArray:
        result = self._no
        for operand in operands:
            result = pc.or_(result, ask(operand))
        return result

    def _by_partitions(self, expression: Expression, *, wanted: bool) -> pa.BooleanArray | None:
        """The exact answer where only partition columns are named; None otherwise, or if it cannot be evaluated."""
        columns = columns_of(expression)
        if not columns or not all(path in self._partitions for path in columns):
            return None
        ordered = sorted(columns)
        batch = pa.RecordBatch.from_arrays([self._partitions[path] for path in ordered], names=[path[0] for path in ordered])
        try:
            values = evaluate(expression, batch)
        except DeltaError:
            return None  # a value of one partition may fail a cast that the query never reaches: no partition is left out
        return (values if wanted else pc.invert(values)).fill_null(False)

    # ------------------------------------------------------------ comparisons

    def _comparison(self, op: str, left: Expression, right: Expression) -> pa.BooleanArray:
        if op == "<=>":
            return self._null_safe_equal(left, right)
        if op in (">", ">="):
            op, left, right = {">": "<", ">=": "<="}[op], right, left
        low, high = self._interval(left), self._interval(right)
        some_value = pc.invert(pc.or_(low.all_null, high.all_null))
        if op == "=":
            above = self._surely(pc.greater, low.lower, None if high.hidden_nan and not low.constant else high.upper)
            below = self._surely(pc.less, None if low.hidden_nan and not high.constant else low.upper, high.lower)
            return pc.and_(some_value, pc.invert(pc.or_(above, below)))
        beyond = pc.greater_equal if op == "<" else pc.greater
        return pc.and_not(some_value, self._surely(beyond, low.lower, None if high.hidden_nan else high.upper))

    def _null_safe_equal(self, left: Expression, right: Expression) -> pa.BooleanArray:
        both_null = pc.and_(self._interval(left).has_null, self._interval(right).has_null)
        return pc.or_(both_null, self._comparison("=", left, right))

    def _differs(self, left: Expression, right: Expression, *, null_safe: bool) -> pa.BooleanArray:
        """Files in which the two may differ: not those where both have one and the same value in all rows."""
        a, b = self._interval(left), self._interval(right)
        same = self._no
        if not (a.hidden_nan or b.hidden_nan):
            same = pc.and_(self._surely(pc.equal, a.lower, b.upper), self._surely(pc.equal, a.upper, b.lower))
            same = pc.and_(same, pc.and_(self._surely(pc.equal, a.lower, a.upper), self._surely(pc.equal, b.lower, b.upper)))
        values_differ = pc.and_not(pc.invert(pc.or_(a.all_null, b.all_null)), same)
        if not null_safe:
            return values_differ
        one_null = pc.or_(pc.and_(a.has_null, pc.invert(b.all_null)), pc.and_(b.has_null, pc.invert(a.all_null)))
        return pc.or_(values_differ, one_null)

    def _surely(self, test: Callable[[Any, Any], Any], left: Any, right: Any) -> pa.BooleanArray:
        """Where the test holds for the two bounds; false where either is unknown."""
        if left is None or right is None:
            return self._no
        try:
            held = test(left, right)
        except _ARROW_REFUSALS:
            return self._no
        if isinstance(held, pa.Scalar):
            return self._yes if held.as_py() else self._no
        return held.fill_null(False)

    # ------------------------------------------------------------ IN

    def _in(self, operand: Expression, options: tuple[Literal, ...]) -> pa.BooleanArray:
        values = [option for option in options if option.value is not None]
        if not values:
            return self._no
        interval = self._interval(operand)
        some_value = pc.invert(interval.all_null)
        if len(values) <= 8:
            return self._any(tuple(Comparison("=", operand, value) for value in values), self.may_be_true)
        if interval.hidden_nan or interval.lower is None or interval.upper is None or isinstance(interval.lower, pa.Scalar):
            return some_value
        try:
            sorted_values = _sorted_like(values, interval.lower.type)
            low, high = _comparable(interval.lower), _comparable(interval.upper)
        except (*_ARROW_REFUSALS, TypeError, OverflowError):
            return some_value
        known = np.logical_and(_valid(interval.lower), _valid(interval.upper))
        first = np.searchsorted(sorted_values, low[known], side="left")
        reached = np.minimum(first, len(sorted_values) - 1)
        hit = (first < len(sorted_values)) & (sorted_values[reached] <= high[known])
        result = np.ones(len(known), bool)
        result[known] = hit.astype(bool)
        return pc.and_(some_value, pa.array(result))

    def _not_in(self, operand: Expression, options: tuple[Literal, ...]) -> pa.BooleanArray:
        if any(option.value is None for option in options):
            return self._no
        if len(options) > 64:
            return pc.invert(self._interval(operand).all_null)
        return self._all(tuple(Comparison("=", operand, option) for option in options), self.may_be_false)

    # ------------------------------------------------------------ text

    def _string_match(self, kind: str, operand: Expression, pattern: str) -> pa.BooleanArray:
        interval = self._interval(operand)
        prefix = _prefix(kind, pattern)[0]
        some_value = pc.invert(interval.all_null)
        if not prefix:
            return some_value
        below = self._surely(pc.less, interval.upper, pa.scalar(prefix))
        above = self._surely(pc.greater, interval.lower, pa.scalar(prefix))
        beyond = pc.and_not(above, self._surely(lambda text, start: pc.starts_with(text, start), interval.lower, prefix))
        return pc.and_not(some_value, pc.or_(below, beyond))

    def _no_string_match(self, kind: str, operand: Expression, pattern: str) -> pa.BooleanArray:
        interval = self._interval(operand)
        prefix, prefix_only = _prefix(kind, pattern)
        some_value = pc.invert(interval.all_null)
        if not prefix_only:
            return some_value
        starts = [self._surely(lambda text, start: pc.starts_with(text, start), side, prefix) for side in (interval.lower, interval.upper)]
        return pc.and_not(some_value, pc.and_(*starts))

    # ------------------------------------------------------------ operands

    def _interval(self, expression: Expression) -> _Interval:
        match expression:
            case Literal(None, _):
                return _Interval(None, None, self._yes, self._yes)
            case Literal(value, data_type):
                return self._constant(value, data_type)
            case Column(path) if path in self._partitions:
                values = self._partitions[path]
                null = values.is_null()
                return _Interval(values, values, null, null)
            case Column(path):
                return self._column(path)
            case Cast(operand, data_type):
                return _cast(self._interval(operand), data_type, self._unknown())
        return self._unknown()

    def _unknown(self) -> _Interval:
        return _Interval(None, None, self._no, self._yes, hidden_nan=True)

    def _constant(self, value: Any, data_type: DataType) -> _Interval:
        if isinstance(value, float) and math.isnan(value):
            return _Interval(None, None, self._no, self._no, hidden_nan=True)
        try:
            scalar = pa.scalar(value, to_arrow_type(data_type))
        except (*_ARROW_REFUSALS, OverflowError):
            return self._unknown()
        return _Interval(scalar, scalar, self._no, self._no, constant=True)

    def _column(self, path: Path) -> _Interval:
        lower, upper = self._stats.minimum.get(path), self._stats.maximum.get(path)
        nulls, rows = self._stats.null_count.get(path), self._stats.num_records
        kind = next((bound.type for bound in (lower, upper) if bound is not None), None)
        floating = kind is None or pa.types.is_floating(kind)
        all_null = has_null = None
        if nulls is not None:
            # With wide bounds a count between 0 and all rows may speak of deleted rows; these two are still right.
            all_null = pc.and_(pc.equal(nulls, rows), pc.greater(rows, 0)).fill_null(False)
            has_null = pc.not_equal(nulls, 0).fill_null(True)
        return _Interval(
            lower, upper, self._no if all_null is None else all_null, self._yes if has_null is None else has_null, hidden_nan=floating
        )


def _cast(inner: _Interval, data_type: DataType, unknown: _Interval) -> _Interval:
    """The interval of a cast that keeps order and cannot turn a value into null; unknown bounds for others."""
    bound = inner.lower if inner.lower is not None else inner.upper
    if bound is None or not _keeps_order(bound.type, data_type):
        return _Interval(None, None, inner.all_null, unknown.has_null, hidden_nan=True)
    target = to_arrow_type(data_type)
    try:
        sides = [None if side is None else side.cast(target) for side in (inner.lower, inner.upper)]
    except _ARROW_REFUSALS:
        return _Interval(None, None, inner.all_null, unknown.has_null, hidden_nan=True)
    return _Interval(sides[0], sides[1], inner.all_null, inner.has_null, inner.hidden_nan, inner.constant)


def _keeps_order(source: pa.DataType, target: DataType) -> bool:
    """Widenings that are exact for every value, or at least never reverse an order."""
    types = pa.types
    if to_arrow_type(target) == source:
        return True
    match target:
        case PrimitiveType("short" | "integer" | "long"):
            return bool(types.is_integer(source)) and source.bit_width < to_arrow_type(target).bit_width
        case PrimitiveType("double"):
            return bool(types.is_integer(source) and source.bit_width <= 32) or bool(types.is_float32(source))
        case DecimalType(precision, scale):
            if types.is_integer(source):
                return precision - scale >= {8: 3, 16: 5, 32: 10, 64: 19}[source.bit_width]
            return bool(types.is_decimal(source)) and source.scale <= scale and source.precision - source.scale <= precision - scale
    return False


def _prefix(kind: str, pattern: str) -> tuple[str, bool]:
    """The text that every match starts with, and whether starting with it is all that the match asks."""
    if kind == "startswith":
        return pattern, True
    if kind != "like":
        return "", False
    stop = next((index for index, character in enumerate(pattern) if character in "%_\\"), len(pattern))
    return pattern[:stop], pattern[stop:] == "%"


def _sorted_like(values: list[Literal], kind: pa.DataType) -> Any:
    return np.unique(_comparable(pa.array([value.value for value in values], to_arrow_type(values[0].data_type)).cast(kind)))


def _comparable(array: pa.Array) -> Any:
    """Numbers as int64, anything else as objects that compare as Spark orders them; nulls become some value."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    if pa.types.is_integer(array.type):
        return array.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_string(array.type):
        array = array.cast(pa.binary())
    if pa.types.is_binary(array.type):
        return np.array(array.fill_null(b"").to_pylist(), dtype=object)
    if pa.types.is_decimal(array.type):
        return np.array(array.fill_null(0).to_pylist(), dtype=object)
    raise TypeError(f"no order for {array.type}")


def _valid(array: pa.Array) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)
