"""The rows that a table has when a stream begins, in the order of a time column.

Files are ordered by their minimum time in the statistics, and then by path. A batch that ends after a file contains all rows,
of any file, whose time is before the minimum time of the files that follow. So a watermark that moves with the batches finds
no late row. A file without statistics may contain any time: it comes first, and each batch reads it. Rows without a time are in
the last batch.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.changes.spilling_file_list import sorted_by
from delta_py.errors import InvalidOptionError
from delta_py.expressions.tree import And, Column, Comparison, Expression, IsNull, Literal, Not, Or
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.types.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, Path, StructField, find_path, type_name

# Bounds of the times in a file, and whether it may contain rows without a time.
LEAST, MOST, TIMELESS = "event_min", "event_max", "event_null"
# Before and after every time that a bound can express.
_BEFORE_ALL, _AFTER_ALL = -(2**63), 2**63 - 1
# The times that Python can express, so that predicates can name them.
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column of a table whose times order its rows. path: physical."""

    column: str
    path: Path
    data_type: DataType

    @classmethod
    def of(cls, config: TableConfig, column: str) -> EventTime:
        """The column of a table by which a stream orders rows. Raises SchemaMismatchError for a column that does not exist,
        InvalidOptionError for one that cannot order rows."""
        f: StructField = find_path(config.schema, (column,))[0]
        if f.data_type not in (TIMESTAMP, TIMESTAMP_NTZ, DATE) or f.name in config.partition_columns:
            what = "a partition column" if f.name in config.partition_columns else f"of type {type_name(f.data_type)}"
            raise InvalidOptionError(
                f"eventTimeColumn is {column}, which is {what}: rows can be ordered by a column of type timestamp, "
                "timestamp_ntz or date that is stored in the files. Name the column of withWatermark.",
                option="eventTimeColumn",
                column=column,
            )
        return cls(f.name, physical_path(config.schema, (f.name,), config.column_mapping_mode), f.data_type)

    # ------------------------------------------------------------ order

    def files_of(self, snapshot: Snapshot, schema: pa.Schema, *, with_stats: bool) -> pa.Table:
        """The files of a snapshot, ordered by their minimum time: the columns of `schema`, LEAST and MOST (the bounds of the
        times as whole numbers), and TIMELESS. with_stats: whether `schema` has the statistics as text."""
        schema_with_times = pa.schema([*schema, (LEAST, pa.int64()), (MOST, pa.int64()), (TIMELESS, pa.bool_())])
        return sorted_by((LEAST, "path"), self._batches(snapshot, schema_with_times, with_stats), schema_with_times)

    def _batches(self, snapshot: Snapshot, schema: pa.Schema, with_stats: bool) -> Iterator[pa.RecordBatch]:
        """The snapshot's files, with the columns that files_of adds, in any order. Unknown bounds include all times."""
        for batch in snapshot.file_batches({self.path: self.data_type}, want_whole=with_stats):
            assert batch.stats is not None, "statistics of the column were asked for"
            minima = self._times_as_numbers(batch.stats.minimum.get(self.path), batch.files.num_rows, _BEFORE_ALL)
            maxima = self._times_as_numbers(batch.stats.maximum.get(self.path), batch.files.num_rows, _AFTER_ALL)
            nulls = batch.stats.null_count.get(self.path, pa.nulls(batch.files.num_rows, pa.int64()))
            may_have_nulls = pc.fill_null(pc.greater(nulls, 0), True)
            has_only_nulls = pc.fill_null(pc.equal(nulls, batch.stats.num_records), False)
            # A file with only nulls has no times, so its range is empty.
            minima = pc.if_else(has_only_nulls, pa.scalar(_AFTER_ALL, pa.int64()), minima)
            maxima = pc.if_else(has_only_nulls, pa.scalar(_BEFORE_ALL, pa.int64()), maxima)
            files = batch.files.select(schema.names[:-3])  # without LEAST, MOST and TIMELESS
            yield pa.RecordBatch.from_arrays([*files.columns, minima, maxima, may_have_nulls], schema=schema)

    def _times_as_numbers(self, bounds: pa.Array | None, count: int, unknown: int) -> pa.Array:
        """Bounds as numbers; `unknown` for missing bounds and for times outside of the years 1 to 9999."""
        if bounds is None:
            return pa.array(np.full(count, unknown), pa.int64())
        numbers = bounds.cast(pa.int32()).cast(pa.int64()) if self.data_type == DATE else bounds.cast(pa.int64())
        first, last = (self._time_as_number(time) for time in (_FIRST, _LAST))
        is_in_range = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
        return pc.if_else(pc.fill_null(is_in_range, False), numbers, pa.scalar(unknown, pa.int64()))

    def _time_as_number(self, time: datetime) -> int:
        """The number that stands for the time in files: days since 1970 for a date, microseconds otherwise."""
        duration = time - _EPOCH
        return duration.days if self.data_type == DATE else duration // timedelta(microseconds=1)

    # ------------------------------------------------------------ batches

    def end_of_ties(self, files: pa.Table, index: int) -> int:
        """The index of the last file with the same minimum time as the file at `index`. A batch that ends between such files
        could have no rows, because the times at which it begins and ends may be equal."""
        # Binary search: the files are ordered by LEAST.
        least = files[LEAST]
        low, high = index, len(least) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if least[middle].as_py() == least[index].as_py() else (low, middle - 1)
        return low

    def files_between(self, files: pa.Table, after: int, last: int) -> tuple[pa.Table, Expression | None]:
        """The files that may hold rows of a batch, and a predicate for the rows that belong to it (None: all rows).

        files: ordered, as files_of returns them. after: the index of the last file before the batch; negative if there is none.
        last: the index of the last file of the batch.
        """
        begin = self._minimum_time(files, after + 1) if after >= 0 else None
        end = self._minimum_time(files, last + 1)
        batch_files, is_last = files.slice(0, last + 1), last + 1 == files.num_rows
        if begin is not None:
            is_in_batch = pc.greater_equal(batch_files[MOST], begin)
            batch_files = batch_files.filter(pc.or_(is_in_batch, batch_files[TIMELESS]) if is_last else is_in_batch)
        return batch_files, self._rows_predicate(begin, end, is_last)

    def _minimum_time(self, files: pa.Table, index: int) -> int | None:
        """The minimum time of the file at an index; None if there is no such file, or its minimum is not known."""
        least: int | None = files[LEAST][index].as_py() if index < files.num_rows else None
        return None if least == _BEFORE_ALL else least

    def _rows_predicate(self, begin: int | None, end: int | None, is_last: bool) -> Expression | None:
        """The predicate for the rows of a batch; None for all rows.

        begin (inclusive), end (exclusive): times as numbers; None for no bound. is_last: it is the last batch, which also has the
        rows without a time. Files with only nulls come after all others, at _AFTER_ALL.
        """
        column = Column((self.column,))
        if is_last:
            if begin is None:
                return None
            has_no_time = IsNull(column)
            return has_no_time if begin == _AFTER_ALL else Or((has_no_time, Comparison(">=", column, self._time_literal(begin))))
        assert end is not None, "files of unknown times are in one batch, which ends before a known one or is the last"
        to_end = Not(IsNull(column)) if end == _AFTER_ALL else Comparison("<", column, self._time_literal(end))
        return to_end if begin is None else And((Comparison(">=", column, self._time_literal(begin)), to_end))

    def _time_literal(self, number: int) -> Literal:
        """The inverse of _time_as_number, as a literal of the column's type."""
        value: Any
        if self.data_type == DATE:
            value = date(1970, 1, 1) + timedelta(days=number)
        else:
            value = _EPOCH + timedelta(microseconds=number)
            value = value.replace(tzinfo=UTC) if self.data_type == TIMESTAMP else value
        return Literal(value, self.data_type)
