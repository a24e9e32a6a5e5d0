"""Matching of a MERGE's source rows with rows of the table.

    condition = JoinCondition.of(expression)                 # t.id = s.id AND t.day > s.day ...
    index = SourceIndex(source, condition)                   # the source's keys, once
    condition.restriction(source)                            # a condition on the table's rows, derived from the keys
    for target_rows, source_rows in index.matches(batch): ...    # row numbers of matches, a slice at a time

Parts of the condition that require equal values of both sides are keys. Their values become numbers, the same on both sides for
values that Spark treats as equal (NaN is NaN, -0.0 is 0.0). Sorting and binary search pair the rows with the same numbers, and
the rest of the condition is evaluated on these pairs. Without a key it is evaluated on all pairs, a slice of them at a time:
memory is bounded, the time is that of the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.nodes import python_value
from delta_py.expressions.parse import type_of
from delta_py.expressions.tree import (
    FALSE,
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Or,
    columns_of,
    conjunction,
    conjuncts,
    transform_columns,
)
from delta_py.parquet.values.buffers import Ndarray
from delta_py.row_changes.sql_scope import SOURCE, TARGET
from delta_py.types.schema import DataType, DecimalType, PrimitiveType, StructType

# The most pairs of rows on which the rest of the condition is evaluated at a time.
_MOST_PAIRS = 1 << 18
# Up to this many key values of the source, the condition on the table names each of them; otherwise it names the least and the
# greatest.
_MOST_LISTED_KEYS = 1000
# The operator after the sides of a comparison have been exchanged.
_EXCHANGED_OPERATORS = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE_NUMBERS = frozenset({"byte", "short", "integer", "long", "boolean", "date", "timestamp", "timestamp_ntz"})
_FLOAT_TYPES = frozenset({"float", "double"})
_BYTE_TYPES = frozenset({"string", "binary"})


@dataclass(frozen=True, slots=True)
class SideComparison:
    """A comparison of a value of the table with one of the source: target <op> source. data_type: the type of both values."""

    op: str
    target: Expression
    source: Expression
    data_type: DataType

    @property
    def is_key(self) -> bool:
        """Whether the comparison requires equal values, of a type whose values can be numbered."""
        kind = self.data_type
        is_supported = isinstance(kind, DecimalType) or (
            isinstance(kind, PrimitiveType) and kind.name in _WHOLE_NUMBERS | _FLOAT_TYPES | _BYTE_TYPES
        )
        return self.op in ("=", "<=>") and is_supported


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """The condition, whose parts all have to be true. keys: equalities that pair rows; comparisons: all parts that compare the
    sides, also the keys; target_parts, source_parts: parts about one side; other_parts: parts that are evaluated on pairs.
    """

    keys: tuple[SideComparison, ...]
    comparisons: tuple[SideComparison, ...]
    target_parts: tuple[Expression, ...]
    source_parts: tuple[Expression, ...]
    other_parts: tuple[Expression, ...]

    @classmethod
    def of(cls, condition: Expression, rows: StructType) -> JoinCondition:
        """Sort the parts of a condition by the sides that they name. rows: the columns of both sides."""
        keys, comparisons, target_parts, source_parts, other_parts = [], [], [], [], []
        for part in conjuncts(condition):
            sides = _sides(part)
            comparison = _side_comparison(part, rows) if sides == {TARGET, SOURCE} else None
            if comparison is not None:
                comparisons.append(comparison)
            if comparison is not None and comparison.is_key:
                keys.append(comparison)
            elif sides == {TARGET}:
                target_parts.append(part)
            elif sides == {SOURCE}:
                source_parts.append(part)
            else:
                other_parts.append(part)
        return cls(tuple(keys), tuple(comparisons), tuple(target_parts), tuple(source_parts), tuple(other_parts))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of both sides that are needed to find matches."""
        parts = [*self.target_parts, *self.source_parts, *self.other_parts]
        parts += [value for key in self.keys for value in (key.target, key.source)]
        return frozenset(path[0] for part in parts for path in columns_of(part))

    def restriction(self, source: pa.RecordBatch) -> Expression | None:
        """A condition that is true for each row of the table that matches a source row, with the table's names of columns. None
        if every row may match; FALSE if no row can match.
        """
        matching_source = source.filter(pa.array(_all_true(self.source_parts, source)))
        value_conditions = (part for comparison in self.comparisons for part in _value_conditions(comparison, matching_source))
        parts = [*self.target_parts, *value_conditions]
        # No source row can match, whatever the table holds.
        if matching_source.num_rows == 0:
            return FALSE
        return transform_columns(conjunction(tuple(parts)), _without_side) if parts else None


def _without_side(path: tuple[str, ...]) -> Expression:
    """The table's column at the path, without the prefix of its side."""
    return Column((path[0].removeprefix(TARGET), *path[1:]))


def _sides(expression: Expression) -> set[str]:
    """The sides whose columns the expression names, by their prefixes TARGET and SOURCE."""
    return {TARGET if path[0].startswith(TARGET) else SOURCE for path in columns_of(expression)}


def _side_comparison(part: Expression, rows: StructType) -> SideComparison | None:
    """The comparison with the table's side on the left; None if the part does not compare the two sides."""
    if not isinstance(part, Comparison):
        return None
    left, right = _sides(part.left), _sides(part.right)
    if left == {TARGET} and right == {SOURCE}:
        return SideComparison(part.op, part.left, part.right, type_of(part.left, rows))
    if left == {SOURCE} and right == {TARGET}:
        return SideComparison(_EXCHANGED_OPERATORS[part.op], part.right, part.left, type_of(part.left, rows))
    return None


def _all_true(parts: Sequence[Expression], rows: pa.RecordBatch) -> Ndarray:
    """One boolean per row: whether all parts are true."""
    if not parts:
        return np.ones(rows.num_rows, bool)
    answers: Ndarray = pc.fill_null(evaluate(conjunction(tuple(parts)), rows), False).to_numpy(zero_copy_only=False)
    return answers


# ---------------------------------------------------------------- conditions on the table from the keys


def _value_conditions(comparison: SideComparison, source: pa.RecordBatch) -> list[Expression]:
    """A condition on the comparison's target that is true for each row of the table that matches a source row, derived from the
    source's values. A list of one condition, or an empty one if the type or the values allow none.
    """
    kind = comparison.data_type
    is_supported_primitive = isinstance(kind, PrimitiveType) and kind.name in _WHOLE_NUMBERS | _FLOAT_TYPES | {"string"}
    if not (is_supported_primitive or isinstance(kind, DecimalType)):
        return []
    values = evaluate(comparison.source, source)
    known_values = values.drop_null()
    try:
        bound = _matching_condition(comparison, known_values)
    except (ValueError, OverflowError):  # a date or time outside the range of Python's own types
        return []
    if bound is None:
        return []
    matches_null = comparison.op == "<=>" and len(known_values) < len(values)
    return [Or((bound, IsNull(comparison.target))) if matches_null else bound]


def _matching_condition(comparison: SideComparison, known_values: pa.Array) -> Expression | None:
    """The condition that the target's value must fulfil to match any of the source's values that are not null; None if any value
    of the target may match."""
    if not len(known_values):
        return FALSE
    kind = comparison.data_type
    if kind in (PrimitiveType("float"), PrimitiveType("double")):
        if pc.any(pc.is_nan(known_values)).as_py():
            return None  # NaN is greater than all other values, so min and max are no bounds
        known_values = pc.add(known_values, pa.scalar(0.0, known_values.type))  # makes -0.0 0.0: they are equal
    elif comparison.op in ("=", "<=>"):
        distinct = known_values.unique()
        if len(distinct) <= _MOST_LISTED_KEYS:
            return In(comparison.target, tuple(Literal(python_value(value), kind) for value in distinct))
    least, greatest = (Literal(python_value(pc.min_max(known_values)[end]), kind) for end in ("min", "max"))
    if comparison.op in ("=", "<=>"):
        return And((Comparison(">=", comparison.target, least), Comparison("<=", comparison.target, greatest)))
    # target < source is true for some source value only if it is true for the greatest one.
    return Comparison(comparison.op, comparison.target, greatest if comparison.op in ("<", "<=") else least)


# ---------------------------------------------------------------- values as numbers


class _KeyNumbers:
    """Numbers the values of a key: the distinct values in the source get numbers from 0 on, and equal values of the table get the
    same numbers; all other values get -1. nulls_match: null has a number too, because the key is compared by <=>.
    """

    def __init__(self, values: pa.Array, kind: DataType, *, nulls_match: bool) -> None:
        self._is_plain = isinstance(kind, PrimitiveType) and kind.name in _WHOLE_NUMBERS | _FLOAT_TYPES
        self._is_float = isinstance(kind, PrimitiveType) and kind.name in _FLOAT_TYPES
        self._nulls_match = nulls_match
        known_values = values.drop_null()
        self._distinct_values: Any = np.unique(self._bits(known_values)) if self._is_plain else known_values.unique()
        # How many numbers there are: one for each distinct value, and the last one for null.
        self.count = len(self._distinct_values) + 1

    def number_values(self, values: pa.Array) -> Ndarray:
        """The number of each key; -1 for keys that match none."""
        if self._is_plain:
            numbers = _sorted_positions(self._distinct_values, self._bits(values))
        else:
            places = pc.fill_null(pc.index_in(values, value_set=self._distinct_values), -1)
            numbers = places.to_numpy(zero_copy_only=False).astype(np.int64)
        if values.null_count:
            numbers[values.is_null().to_numpy(zero_copy_only=False)] = self.count - 1 if self._nulls_match else -1
        return numbers

    def _bits(self, values: pa.Array) -> Ndarray:
        """64 bits that are equal exactly if the values are equal. The bits of a null are undefined."""
        if self._is_float:
            doubles = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
            doubles[np.isnan(doubles)] = np.nan
            double_bits: Ndarray = doubles.view(np.int64)
            return double_bits
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        bits: Ndarray = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return bits


def _take_rows(rows: pa.RecordBatch, numbers: Ndarray) -> pa.RecordBatch:
    """The rows with these numbers. The numbers are distinct and ascending, so if there are as many numbers as rows, they name all
    rows, and nothing has to be copied."""
    return rows if len(numbers) == rows.num_rows else rows.take(pa.array(numbers))


def _sorted_positions(ordered: Ndarray, values: Ndarray) -> Ndarray:
    """The positions of the values in the sorted array; -1 for values that it does not contain."""
    if not len(ordered):
        return np.full(len(values), -1, np.int64)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[places] == values, places, -1)


class _RowNumbers:
    """Gives each row one number for all of its keys: rows match only if they have the same number; -1 is the number of a row that
    cannot match. Without keys all rows have the number 0. source_numbers: the numbers of the source rows.

    The numbers of the keys are combined one key after another. After each key, the combined numbers of the source are replaced
    by their positions in `distinct`, so that they stay below the number of rows.
    """

    def __init__(self, keys: Sequence[SideComparison], source: pa.RecordBatch) -> None:
        self._keys = keys
        self._numbers: list[_KeyNumbers] = []
        self._distinct: list[Ndarray] = []
        self.source_numbers: Ndarray = np.zeros(source.num_rows, np.int64)
        for key in keys:
            values = evaluate(key.source, source)
            numbers = _KeyNumbers(values, key.data_type, nulls_match=key.op == "<=>")
            combined = _combined_numbers(self.source_numbers, numbers.number_values(values), numbers.count)
            distinct = np.unique(combined[combined >= 0])
            self._numbers.append(numbers)
            self._distinct.append(distinct)
            self.source_numbers = _sorted_positions(distinct, combined)

    def number_target_rows(self, rows: pa.RecordBatch) -> Ndarray:
        """The number of each of the table's rows; -1 for a row that matches no source row."""
        row_numbers: Ndarray = np.zeros(rows.num_rows, np.int64)
        for key, numbers, distinct in zip(self._keys, self._numbers, self._distinct, strict=True):
            key_numbers = numbers.number_values(evaluate(key.target, rows))
            row_numbers = _sorted_positions(distinct, _combined_numbers(row_numbers, key_numbers, numbers.count))
        return row_numbers


def _combined_numbers(first: Ndarray, second: Ndarray, count: int) -> Ndarray:
    """One number for each pair of numbers; -1 if one of them is -1. count: more than the largest number in `second`."""
    return np.where((first < 0) | (second < 0), -1, first * count + second)


# ---------------------------------------------------------------- pairs


class SourceIndex:
    """The source rows, indexed by the numbers of their keys, to find those that match rows of the table. Threads may share it."""

    def __init__(self, source: pa.RecordBatch, condition: JoinCondition) -> None:
        """source: the source rows, whose columns have their prefix."""
        self._source, self._condition = source, condition
        allowed_rows = np.flatnonzero(_all_true(condition.source_parts, source))
        self._rows = _RowNumbers(condition.keys, _take_rows(source, allowed_rows))
        numbers = self._rows.source_numbers
        # The source rows in the order of their numbers, without those that have none (-1).
        self._order = allowed_rows[np.argsort(numbers, kind="stable")[int((numbers < 0).sum()) :]]
        # For each number: how many source rows have it, and where they begin in _order.
        self._counts = np.bincount(numbers[numbers >= 0], minlength=1)
        self._starts = np.cumsum(self._counts) - self._counts
        column_names = {path[0] for part in condition.other_parts for path in columns_of(part)}
        self._paired_columns = sorted(column_names)

    def matches(self, rows: pa.RecordBatch) -> Iterator[tuple[Ndarray, Ndarray]]:
        """Pair the rows of a batch of the table with the source rows that they match. Returns slices of the pairs, in the order
        of the batch: the row numbers in the batch, and the row numbers in the source.
        """
        candidate_rows = np.flatnonzero(_all_true(self._condition.target_parts, rows))
        numbers = self._rows.number_target_rows(_take_rows(rows, candidate_rows))
        candidate_rows, numbers = candidate_rows[numbers >= 0], numbers[numbers >= 0]
        # The pairs are numbered through all rows: those of row i are ends[i] - counts[i] up to ends[i], exclusive.
        counts = self._counts[numbers]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, _MOST_PAIRS):
            pairs = np.arange(start, min(total, start + _MOST_PAIRS))
            row_of_pair = np.searchsorted(ends, pairs, side="right")
            source = self._order[self._starts[numbers[row_of_pair]] + pairs - (ends[row_of_pair] - counts[row_of_pair])]
            yield self._filter_pairs(rows, candidate_rows[row_of_pair], source)

    def _filter_pairs(self, rows: pa.RecordBatch, target: Ndarray, source: Ndarray) -> tuple[Ndarray, Ndarray]:
        """The pairs of rows for which the parts of the condition that are not keys are true too. target, source: the row numbers
        of the pairs in the batch and in the source."""
        other_parts = self._condition.other_parts
        if not other_parts:
            return target, source
        is_match = _all_true(other_parts, paired_rows(rows, target, self._source, source, self._paired_columns))
        return target[is_match], source[is_match]


def paired_rows(
    rows: pa.RecordBatch, target: Ndarray, source_rows: pa.RecordBatch, source: Ndarray, names: Sequence[str]
) -> pa.RecordBatch:
    """Pairs of rows as one batch. target, source: the row numbers of each pair in `rows` and in `source_rows`. names: the columns
    of the result, with their side's prefix; the result also has a column "" with the row numbers in `rows`."""
    places = {TARGET: pa.array(target), SOURCE: pa.array(source)}
    columns = {"": places[TARGET]}  # without any column a batch would not know its row count
    for name in names:
        side, batch = (TARGET, rows) if name.startswith(TARGET) else (SOURCE, source_rows)
        columns[name] = batch.column(name).take(places[side])
    return pa.record_batch(columns)
