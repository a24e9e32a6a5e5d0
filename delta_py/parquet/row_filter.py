"""Drops rows for which the predicate is not true, while a file is read.

If rows must be dropped, the whole predicate is evaluated. If rows may be dropped (Spark filters again), only the parts
that can be evaluated exactly are evaluated, because a row that is dropped here need not be converted nor sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError, SchemaMismatchError
from delta_py.expressions.tree import Column, Expression, columns_of, conjunction, conjuncts, transform_columns
from delta_py.parquet.row_groups import find_leaf
from delta_py.parquet.values.buffers import Ndarray
from delta_py.scan.scan_state import ScanColumn, ScanState
from delta_py.types.schema import Path, StructField, StructType

_TRIAL_GROUPS = 4  # LookAhead decides after this many row groups whether looking ahead saves work
_SMALLER_BY = 4  # the predicate's columns may have at most this fraction (1/4) of the bytes of the other columns


@dataclass(frozen=True, slots=True)
class _Input:
    """One column of the predicate. name: the flat name that the predicate uses for it. column: the place of its top-level column
    among the columns of the scan. inner: the positions of the struct fields below that column."""

    name: str
    column: int
    inner: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The predicate of a scan, ready to be evaluated on decoded rows.

    predicate: names its columns by the flat names of `inputs`. must_drop: whether the output may not contain rows for which the
    predicate is not true; otherwise Spark filters again.
    """

    predicate: Expression
    inputs: tuple[_Input, ...]
    must_drop: bool

    @property
    def columns(self) -> frozenset[int]:
        """Places of the columns that `evaluate` needs."""
        return frozenset(column_input.column for column_input in self.inputs)

    def evaluate(self, arrays: Mapping[int, pa.Array], row_count: int) -> Ndarray | None:
        """One boolean per row: whether the predicate is true. None: not known, and rows need not be dropped.

        arrays: the values of the columns by their places, one for each of `columns`.
        """
        from delta_py.expressions.evaluate import evaluate

        values = [_inner_values(arrays[column_input.column], column_input.inner) for column_input in self.inputs]
        batch = pa.RecordBatch.from_arrays(values, names=[column_input.name for column_input in self.inputs])
        if not self.inputs:  # a batch without columns that still has its number of rows
            batch = pa.RecordBatch.from_arrays([pa.nulls(row_count)], names=[""]).select([])
        try:
            result = evaluate(self.predicate, batch)
        except ExpressionError:
            # The query may never evaluate this for the row: Spark filters again, decides, and reports the error.
            if self.must_drop:
                raise
            return None
        mask: Ndarray = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
        return mask


class LookAhead:
    """Decides whether to look ahead: to decode the predicate's columns of a row group alone, and the other columns only if the
    predicate is true for some row."""

    def __init__(self) -> None:
        # The row groups whose predicate was evaluated first, and those of them without a match: there it saved work.
        self._tried_groups = self._groups_without_match = 0

    def is_promising(self, footer: Any, predicate_leaves: AbstractSet[int], leaves: Sequence[int]) -> bool:
        """Whether the leaf columns of the predicate are small compared to the others, and looking ahead has saved work so far."""
        if self._tried_groups >= _TRIAL_GROUPS and self._groups_without_match * 2 < self._tried_groups:
            return False
        other_leaves = [leaf for leaf in leaves if leaf not in predicate_leaves]
        if not predicate_leaves or not other_leaves:
            return False
        group = footer.row_group(0)  # the other row groups are assumed to be similar
        predicate_bytes = sum(group.column(leaf).total_compressed_size for leaf in predicate_leaves)
        return bool(predicate_bytes * _SMALLER_BY <= sum(group.column(leaf).total_compressed_size for leaf in other_leaves))

    def record_match(self, has_match: bool) -> bool:
        """Record whether looking ahead found a match; returns its argument."""
        self._tried_groups += 1
        self._groups_without_match += not has_match
        return has_match


def _inner_values(array: pa.Array, inner: Sequence[int]) -> pa.Array:
    """The values of a field inside of a struct; the array itself if `inner` is empty. inner: the field's positions."""
    return pc.struct_field(array, list(inner)) if inner else array


def make_row_filter(state: ScanState, columns: Sequence[ScanColumn]) -> RowFilter | None:
    """The filter for a scan's predicate; None if there is nothing to evaluate. columns: all columns that the scan reads.

    Raises SchemaMismatchError for a predicate over columns that are not read, and ExpressionError for one that cannot be
    evaluated, if rows must be dropped.
    """
    if state.predicate is None:
        return None
    inputs: dict[Path, _Input] = {}
    schema: list[StructField] = []
    for path in sorted(columns_of(state.predicate)):
        leaf = find_leaf(columns, path)
        if leaf is not None:
            # The number distinguishes a nested field from a top-level column whose name contains dots.
            name = path[0] if len(path) == 1 else f"{'.'.join(path)} ({len(inputs)})"
            place, inner = leaf
            inputs[path] = _Input(name, place, inner)
            schema.append(_flat_field(name, columns[place].logical, inner))
        elif state.drop_rows:
            raise SchemaMismatchError(
                f"The predicate names column {'.'.join(path)}, which the scan does not read.",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                sql_state="42703",
            )
    parts = [part for part in conjuncts(state.predicate) if columns_of(part) <= inputs.keys()]
    flat_parts = [transform_columns(part, lambda path: Column((inputs[path].name,))) for part in parts]
    if not state.drop_rows:
        from delta_py.expressions.evaluate import can_evaluate  # not needed by a scan without a predicate

        flat_parts = [part for part in flat_parts if can_evaluate(part, StructType(tuple(schema)))]
    if not flat_parts:
        return None
    used_names = {path[0] for part in flat_parts for path in columns_of(part)}
    used_inputs = tuple(column_input for column_input in inputs.values() if column_input.name in used_names)
    return RowFilter(conjunction(tuple(flat_parts)), used_inputs, state.drop_rows)


def _flat_field(name: str, logical: StructField, inner: Sequence[int]) -> StructField:
    """A field of this name with the type of a field inside of a column. inner: the field's positions in the column's structs."""
    for position in inner:
        assert isinstance(logical.data_type, StructType)
        logical = logical.data_type.fields[position]
    return StructField(name, logical.data_type)
