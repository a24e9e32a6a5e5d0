"""Partial rows: what a read task returns if Spark only aggregates its rows.

    partial_batches(batches, aggregates, schema) -> batches with a row for each group of rows in them

A row has the values of the group columns, the number of its rows, and the requested aggregates of their columns: the number of
values, the smallest, the largest, the sum. The same group may occur more than once, because Spark merges partial rows. So a
batch that has about as many groups as rows is returned row by row, as groups of one row each. So is a batch whose sums might
overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError
from delta_py.scan.summands import LONG_MAX, Numbers, Summand, with_decimal_point

_MAX_PENDING_GROUPS = 65_536  # in memory; with more, the groups of several batches are added up
_MIN_ROWS_TO_ESTIMATE = 1_024  # a smaller batch does not show whether grouping is worth it


@dataclass(frozen=True, slots=True)
class PartialRows:
    """The requested aggregates, as names of columns. by: the group columns; all nulls are one group. valued: columns whose values
    that are not null are counted. minima, maxima: columns whose smallest or largest value is requested. sums: the sums.

    The partial rows have the group columns, then the number of rows (int64), then columns for `valued`, `minima`, `maxima` and
    `sums`, in this order.
    """

    by: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    minima: tuple[str, ...] = ()
    maxima: tuple[str, ...] = ()
    sums: tuple[Summand, ...] = ()

    @property
    def counted(self) -> frozenset[str]:
        """Columns for which only the presence of a value matters, as ScanState.counted needs them."""
        used = {*self.by, *self.minima, *self.maxima}.union(*(summand.columns for summand in self.sums))
        return frozenset(self.valued) - used


def partial_batches(batches: Iterable[pa.RecordBatch], aggregates: PartialRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Aggregate the rows of each batch, and return partial rows. schema: the schema of the partial rows. In it, a sum is int64
    for integers, and for decimals stored without their point; other sums are decimals with room for 10^10 rows, or with 38
    digits. Raises DeltaError for a value with more digits (NUMERIC_VALUE_OUT_OF_RANGE)."""
    adder = _GroupAdder(aggregates, schema)
    pending_groups: list[pa.Table] = []
    is_grouping_worth_it = True  # becomes false, and stays so, after a batch with more than half as many groups as rows
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = [summand.numbers(batch) for summand in aggregates.sums]
        rows = adder.rows_to_group(batch, numbers) if is_grouping_worth_it else None
        if rows is None:
            yield from adder.row_by_row(batch, numbers).to_batches()
            continue
        groups = adder.group(rows)
        is_grouping_worth_it = rows.num_rows < _MIN_ROWS_TO_ESTIMATE or groups.num_rows <= rows.num_rows // 2
        pending_groups.append(groups)
        if sum(part.num_rows for part in pending_groups) > _MAX_PENDING_GROUPS or not is_grouping_worth_it:
            pending_groups = [adder.merge_groups(pending_groups)]
            # Groups that hardly became fewer are returned, so that adding them up again does not take ever more time.
            if pending_groups[0].num_rows > _MAX_PENDING_GROUPS // 2 or not is_grouping_worth_it:
                yield from adder.in_output_form(pending_groups.pop()).to_batches()
    if pending_groups:
        yield from adder.in_output_form(adder.merge_groups(pending_groups)).to_batches()


class _GroupAdder:
    """Aggregates rows, and groups of rows. Both are tables with the columns of the partial rows, identified by position. All sums
    are whole numbers (int64): decimals are added up without their point."""

    def __init__(self, aggregates: PartialRows, schema: pa.Schema) -> None:
        self._aggregates, self._output_schema = aggregates, schema
        # Arrow's group_by needs names that are unique: the positions as text.
        self._keys = [str(position) for position in range(len(aggregates.by))]
        kinds = ["sum", *("sum" for _ in aggregates.valued)]
        kinds += [*("min" for _ in aggregates.minima), *("max" for _ in aggregates.maxima), *("sum" for _ in aggregates.sums)]
        self._aggregated = [(str(position), kind) for position, kind in enumerate(kinds, len(aggregates.by))]
        self._names = [str(position) for position in range(len(schema))]
        assert len(self._names) == len(self._keys) + len(self._aggregated), f"{schema} is not of {aggregates}"
        self._sums = range(len(schema) - len(aggregates.sums), len(schema))
        # The schema of rows and groups in this class: the output's, but with all sums as int64.
        self._schema = schema
        for position in self._sums:
            self._schema = self._schema.set(position, schema.field(position).with_type(pa.int64()))

    def rows_to_group(self, batch: pa.RecordBatch, numbers: list[Numbers | None]) -> pa.Table | None:
        """Each row as a group of its own, for `group`. None if a sum of them might overflow int64: then they must not be added up
        here, because Spark raises an error or wraps, depending on the session's settings.

        numbers: the summands' values in the batch; None for one that does not fit int64.
        """
        present_numbers = [number for number in numbers if number is not None]
        if len(present_numbers) < len(numbers) or not all(_sum_fits(number.bounds, batch.num_rows) for number in present_numbers):
            return None
        sums = [_as_array(number, batch) for number in present_numbers]
        return pa.table([*self._other_columns(batch), *sums], schema=self._schema)

    def _other_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """All columns except the sums."""
        aggregates = self._aggregates
        columns = [batch[name] for name in aggregates.by]
        columns.append(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows))
        columns += [batch[name].is_valid() for name in aggregates.valued]
        columns += [batch[name] for name in (*aggregates.minima, *aggregates.maxima)]
        # strict=False: the schema continues with the sums.
        return [_cast(column, data_type) for column, data_type in zip(columns, self._schema.types, strict=False)]

    def row_by_row(self, batch: pa.RecordBatch, numbers: list[Numbers | None]) -> pa.Table:
        """One partial row for each row, with sums in the requested form. numbers: as for rows_to_group."""
        columns = self._other_columns(batch)
        for position, summand, number in zip(self._sums, self._aggregates.sums, numbers, strict=True):
            data_type = self._output_schema.field(position).type
            if number is None:
                columns.append(_wide_sums(summand, batch, data_type))
            else:
                columns.append(_with_point(_as_array(number, batch), data_type))
        return pa.table(columns, schema=self._output_schema)

    def group(self, rows: pa.Table) -> pa.Table:
        """One row for each group. rows: as rows_to_group returns them, or groups in which a group may occur more than once."""
        groups = pa.TableGroupBy(rows.rename_columns(self._names), self._keys, use_threads=False).aggregate(self._aggregated)
        # Arrow names the result of an aggregation after the column and the function, such as `3_sum`.
        columns = [*self._keys, *(f"{name}_{kind}" for name, kind in self._aggregated)]
        arrays = [_cast(groups[name], data_type) for name, data_type in zip(columns, self._schema.types, strict=True)]
        return pa.table(arrays, schema=self._schema)

    def merge_groups(self, parts: list[pa.Table]) -> pa.Table:
        """The groups of all parts, added up. If a sum might overflow, or there is only one part, they are only concatenated."""
        rows = pa.concat_tables(parts)
        return self.group(rows) if len(parts) > 1 and self._sums_fit(rows) else rows

    def _sums_fit(self, rows: pa.Table) -> bool:
        """Whether no sum of so many rows can overflow 64 bits."""
        for position in self._sums:
            ends = pc.min_max(rows.column(position)).as_py()
            if ends["min"] is not None and not _sum_fits((ends["min"], ends["max"]), rows.num_rows):
                return False
        return True

    def in_output_form(self, groups: pa.Table) -> pa.Table:
        """The groups with sums in the requested form: decimals with their point, if the output has decimals."""
        for position in self._sums:
            field = self._output_schema.field(position)
            if field.type != pa.int64():
                groups = groups.set_column(position, field, _with_point(groups.column(position).combine_chunks(), field.type))
        return groups


def _sum_fits(bounds: tuple[int, int], count: int) -> bool:
    """Whether the sum of `count` numbers fits int64. bounds: the smallest and the largest number."""
    return max(-bounds[0], bounds[1]) * count <= LONG_MAX


def _as_array(number: Numbers, batch: pa.RecordBatch) -> pa.Array:
    """One value for each row of the batch, also if all rows share one value."""
    return pa.repeat(number.values, batch.num_rows) if isinstance(number.values, pa.Scalar) else number.values


def _with_point(values: pa.Int64Array, data_type: pa.DataType) -> pa.Array:
    """The values as decimals if the type is one; unchanged otherwise."""
    return with_decimal_point(values, data_type) if pa.types.is_decimal(data_type) else values


def _wide_sums(summand: Summand, batch: pa.RecordBatch, data_type: pa.Decimal128Type) -> pa.Array:
    """The summand's values as decimals, for values that may not fit int64. Raises DeltaError for one with too many digits."""
    try:
        return summand.decimals(batch, data_type)
    except pa.ArrowInvalid as error:
        raise DeltaError(
            f"A product of decimals has more than {data_type.precision} digits, of which {data_type.scale} are behind the point: "
            f"{error}. Nothing was added up. Cast the columns to DOUBLE, or set spark.sql.ansi.enabled to false, which gives "
            "NULL.",
            error_class="NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
            sql_state="22003",
        ) from error


def _cast(column: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == data_type else column.cast(data_type)
