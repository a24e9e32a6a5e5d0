"""Partial rows: what a task of a read gives where Spark only adds up what is in its rows.

    partial_batches(batches, wanted, schema) -> batches with a row for each group of rows in them

A row has the values of the group's columns, the number of its rows, and what was asked of their columns: how many have a value,
the smallest, the largest, the sum. The same group may come more than once: Spark puts partial rows together. So a batch that has
about as many groups as rows is given row by row, as groups of one row each, and so is one whose sums might not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

_MOST_HELD = 65_536
_FEW = 1_024  # rows of a batch too small to tell from how many groups there are
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PartialRows:
    """What is wanted of rows, as names of columns. by: whose values make a group, nulls being one. The partial rows have these,
    then the number of rows (int64), then columns for `valued`, `minima`, `maxima` and `sums`."""

    by: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    minima: tuple[str, ...] = ()
    maxima: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()


def partial_batches(batches: Iterable[pa.RecordBatch], wanted: PartialRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """schema: of the partial rows. A sum is int64 for integers, and for decimals whose point is left out; else a decimal that is
    wide enough for 10^10 rows."""
    adding = _Adding(wanted, schema)
    held: list[pa.Table] = []
    is_worth_it = True
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = adding.rows(batch)
        groups = adding.grouped(rows) if is_worth_it and adding.fits(rows) else None
        if groups is None:
            yield from rows.to_batches()
            continue
        is_worth_it = rows.num_rows < _FEW or groups.num_rows <= rows.num_rows // 2
        held.append(groups)
        if sum(part.num_rows for part in held) > _MOST_HELD or not is_worth_it:
            held = [adding.together(held)]
            if held[0].num_rows > _MOST_HELD // 2 or not is_worth_it:
                yield from held.pop().to_batches()
    if held:
        yield from adding.together(held).to_batches()


class _Adding:
    """Groups of rows, and of groups: both are tables of the schema, whose columns are known by their places."""

    def __init__(self, wanted: PartialRows, schema: pa.Schema) -> None:
        self._wanted, self._schema = wanted, schema
        self._keys = [str(place) for place in range(len(wanted.by))]
        kinds = ["sum", *("sum" for _ in wanted.valued), *("min" for _ in wanted.minima), *("max" for _ in wanted.maxima)]
        kinds += ["sum" for _ in wanted.sums]
        self._added = [(str(place), kind) for place, kind in enumerate(kinds, len(wanted.by))]
        self._names = [str(place) for place in range(len(schema))]
        assert len(self._names) == len(self._keys) + len(self._added), f"{schema} is not of {wanted}"
        sums = range(len(schema) - len(wanted.sums), len(schema))
        self._long_sums = [place for place in sums if schema.field(place).type == pa.int64()]

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        """Each row as a group of its own."""
        wanted, types = self._wanted, iter(self._schema.types)
        columns = [batch[name] for name in wanted.by]
        columns.append(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows))
        columns += [batch[name].is_valid() for name in wanted.valued]
        columns += [batch[name] for name in (*wanted.minima, *wanted.maxima, *wanted.sums)]
        return pa.table([_as(column, next(types)) for column in columns], schema=self._schema)

    def grouped(self, rows: pa.Table) -> pa.Table:
        added = pa.TableGroupBy(rows.rename_columns(self._names), self._keys, use_threads=False).aggregate(self._added)
        columns = [*self._keys, *(f"{name}_{kind}" for name, kind in self._added)]
        arrays = [_as(added[name], kind) for name, kind in zip(columns, self._schema.types, strict=True)]
        return pa.table(arrays, schema=self._schema)

    def together(self, parts: list[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(parts)
        return self.grouped(rows) if len(parts) > 1 and self.fits(rows) else rows

    def fits(self, rows: pa.Table) -> bool:
        """Whether no sum of the rows can leave int64, where Spark would raise an error or wrap as the session has it."""
        for place in self._long_sums:
            ends = pc.min_max(rows.column(place)).as_py()
            if ends["min"] is not None and max(-ends["min"], ends["max"]) * rows.num_rows > _LONG_MAX:
                return False
        return True


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if column.type == kind:
        return column
    if pa.types.is_decimal(column.type) and kind == pa.int64():
        return _unscaled(column)
    return column.cast(kind)


def _unscaled(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Decimals without their point, as Spark's UnscaledValue."""
    factor = pa.scalar(Decimal(10**column.type.scale), pa.decimal128(column.type.scale + 1, 0))
    return pc.multiply(column, factor).cast(pa.decimal128(38, 0)).cast(pa.int64())
