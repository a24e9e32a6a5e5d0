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
from delta_py.scan.summands import LONG_MAX, Numbers, Summand, pointed

_MOST_PENDING_GROUPS = 65_536  # in memory; with more, the groups of several batches are added up
_FEW = 1_024  # a batch with fewer rows is too small to estimate the number of groups


@dataclass(frozen=True, slots=True)
class PartialRows:
    """The requested aggregates, as names of columns. by: the group columns; all nulls are one group. The partial rows have these,
    then the number of rows (int64), then columns for `valued`, `minima`, `maxima` and `sums`."""

    by: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    minima: tuple[str, ...] = ()
    maxima: tuple[str, ...] = ()
    sums: tuple[Summand, ...] = ()

    @property
    def counted(self) -> frozenset[str]:
        """Columns for which only the presence of a value matters."""
        used = {*self.by, *self.minima, *self.maxima}.union(*(summand.columns for summand in self.sums))
        return frozenset(self.valued) - used


def partial_batches(batches: Iterable[pa.RecordBatch], aggregates: PartialRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """schema: of the partial rows. A sum is int64 for integers, and for decimals stored without their point. Other sums are
    decimals with room for 10^10 rows, or with 38 digits. Raises DeltaError for a value with more digits
    (NUMERIC_VALUE_OUT_OF_RANGE)."""
    adding = _Adding(aggregates, schema)
    pending_groups: list[pa.Table] = []
    is_worth_it = True  # becomes false, and stays so, after a batch with more than half as many groups as rows
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = [summand.numbers(batch) for summand in aggregates.sums]
        rows = adding.rows(batch, numbers) if is_worth_it else None
        if rows is None:
            yield from adding.row_by_row(batch, numbers).to_batches()
            continue
        groups = adding.grouped(rows)
        is_worth_it = rows.num_rows < _FEW or groups.num_rows <= rows.num_rows // 2
        pending_groups.append(groups)
        if sum(part.num_rows for part in pending_groups) > _MOST_PENDING_GROUPS or not is_worth_it:
            pending_groups = [adding.together(pending_groups)]
            # Groups that hardly became fewer are returned, so that adding them up again does not take ever more time.
            if pending_groups[0].num_rows > _MOST_PENDING_GROUPS // 2 or not is_worth_it:
                yield from adding.in_output_form(pending_groups.pop()).to_batches()
    if pending_groups:
        yield from adding.in_output_form(adding.together(pending_groups)).to_batches()


class _Adding:
    """Aggregates rows, and groups of rows: both are tables whose columns are identified by position, with sums as
    whole numbers."""

    def __init__(self, aggregates: PartialRows, schema: pa.Schema) -> None:
        self._aggregates, self._output_schema = aggregates, schema
        self._keys = [str(place) for place in range(len(aggregates.by))]
        kinds = ["sum", *("sum" for _ in aggregates.valued)]
        kinds += [*("min" for _ in aggregates.minima), *("max" for _ in aggregates.maxima), *("sum" for _ in aggregates.sums)]
        self._added = [(str(place), kind) for place, kind in enumerate(kinds, len(aggregates.by))]
        self._names = [str(place) for place in range(len(schema))]
        assert len(self._names) == len(self._keys) + len(self._added), f"{schema} is not of {aggregates}"
        self._sums = range(len(schema) - len(aggregates.sums), len(schema))
        # As the output, but with all sums as int64: decimals are added up without their point.
        self._schema = schema
        for place in self._sums:
            self._schema = self._schema.set(place, schema.field(place).with_type(pa.int64()))

    def rows(self, batch: pa.RecordBatch, numbers: list[Numbers | None]) -> pa.Table | None:
        """Each row as a group of its own. None if a sum of them might overflow int64: then Spark raises an error or wraps,
        depending on the session's settings."""
        present_numbers = [number for number in numbers if number is not None]
        if len(present_numbers) < len(numbers) or not all(_fits(number.bounds, batch.num_rows) for number in present_numbers):
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
        return [_as(column, kind) for column, kind in zip(columns, self._schema.types, strict=False)]

    def row_by_row(self, batch: pa.RecordBatch, numbers: list[Numbers | None]) -> pa.Table:
        """One partial row for each row."""
        columns = self._other_columns(batch)
        for place, summand, number in zip(self._sums, self._aggregates.sums, numbers, strict=True):
            kind = self._output_schema.field(place).type
            columns.append(_wide(summand, batch, kind) if number is None else _in_form(_as_array(number, batch), kind))
        return pa.table(columns, schema=self._output_schema)

    def grouped(self, rows: pa.Table) -> pa.Table:
        added = pa.TableGroupBy(rows.rename_columns(self._names), self._keys, use_threads=False).aggregate(self._added)
        columns = [*self._keys, *(f"{name}_{kind}" for name, kind in self._added)]
        arrays = [_as(added[name], kind) for name, kind in zip(columns, self._schema.types, strict=True)]
        return pa.table(arrays, schema=self._schema)

    def together(self, parts: list[pa.Table]) -> pa.Table:
        """The groups of all parts, added up. If a sum might overflow, they are only concatenated."""
        rows = pa.concat_tables(parts)
        return self.grouped(rows) if len(parts) > 1 and self._fit(rows) else rows

    def _fit(self, rows: pa.Table) -> bool:
        """Whether no sum of so many rows can overflow 64 bits."""
        for place in self._sums:
            ends = pc.min_max(rows.column(place)).as_py()
            if ends["min"] is not None and not _fits((ends["min"], ends["max"]), rows.num_rows):
                return False
        return True

    def in_output_form(self, groups: pa.Table) -> pa.Table:
        """The groups with sums in the requested form."""
        for place in self._sums:
            field = self._output_schema.field(place)
            if field.type != pa.int64():
                groups = groups.set_column(place, field, _in_form(groups.column(place).combine_chunks(), field.type))
        return groups


def _fits(bounds: tuple[int, int], count: int) -> bool:
    return max(-bounds[0], bounds[1]) * count <= LONG_MAX


def _as_array(number: Numbers, batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(number.values, batch.num_rows) if isinstance(number.values, pa.Scalar) else number.values


def _in_form(values: pa.Int64Array, kind: pa.DataType) -> pa.Array:
    return pointed(values, kind) if pa.types.is_decimal(kind) else values


def _wide(summand: Summand, batch: pa.RecordBatch, kind: pa.Decimal128Type) -> pa.Array:
    try:
        return summand.decimals(batch, kind)
    except pa.ArrowInvalid as error:
        raise DeltaError(
            f"A product of decimals has more than {kind.precision} digits, of which {kind.scale} are behind the point: {error}. "
            "Nothing was added up. Cast the columns to DOUBLE, or set spark.sql.ansi.enabled to false, which gives NULL.",
            error_class="NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
            sql_state="22003",
        ) from error


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)
