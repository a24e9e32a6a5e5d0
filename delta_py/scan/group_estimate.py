"""Whether consecutive rows likely have few values of integer columns: an estimate from the log, which never affects results.

    has_few_groups(snapshot, ["store_id"], predicate) -> True

The statistics of a file contain the range of each column's values. If the ranges of all files together contain few values, there
are few groups. If the ranges of the files hardly overlap, as in a table that is sorted or grows by a rising number, this module
assumes that rows rise within a file too. Then a batch of rows has few groups if a file has many rows for each of its values.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.tree import Expression
from delta_py.protocol.column_mapping import physical_path
from delta_py.scan.file_pruner import FilePruner
from delta_py.snapshot import Snapshot
from delta_py.types.schema import DataType, Path, PrimitiveType, find_path

_TYPES_WITH_MANY_VALUES = frozenset({"integer", "long"})
_FEW_VALUES = 16_384
_ROWS_FOR_A_VALUE = 2  # the same limit that partial_batches uses for a batch
_MOST_OVERLAP = 1.5  # the sum of the value counts of the single files, divided by the value count of all files together
_MIN_FILES = 4  # fewer files may fail to overlap by chance
_MOST_FILES = 50_000  # reading the statistics of more files takes as long as some queries


def has_few_groups(snapshot: Snapshot, names: Sequence[str], predicate: Expression | None = None, timezone: str = "UTC") -> bool:
    """Whether consecutive rows likely have few combinations of values in these columns. names: the top-level columns to group by.

    This function assumes few values for columns of other types than INT and BIGINT, for partition columns, and for columns
    without statistics. It returns False for integer columns of a table with more than 50,000 files.

    Raises SchemaMismatchError for a column that does not exist, and what FilePruner.prune_batch raises.
    """
    columns = _columns_with_many_values(snapshot, names)
    if not columns:
        return True
    pruner = FilePruner.of(snapshot.config, predicate, timezone)
    ranges_by_column = [list[pa.RecordBatch]() for _ in columns]  # with one row for each file
    file_count = 0
    for batch in snapshot.file_batches(stats_leaves={**pruner.stats_leaves, **columns}, want_records=True):
        file_count += batch.files.num_rows
        if file_count > _MOST_FILES:
            return False
        stats = pruner.prune_batch(batch).stats
        for path, ranges in zip(columns, ranges_by_column, strict=True):
            if stats is not None and path in stats.minimum and path in stats.maximum:
                arrays = [stats.minimum[path], stats.maximum[path], stats.num_records]
                ranges.append(pa.record_batch(arrays, names=["low", "high", "rows"]).drop_null())
    return _have_few_groups([pa.Table.from_batches(ranges) for ranges in ranges_by_column if ranges])


def _columns_with_many_values(snapshot: Snapshot, names: Sequence[str]) -> dict[Path, DataType]:
    """The integer columns of the table among these top-level columns, with their types, by physical path. Partition columns are
    left out, because all rows of a file have the same value in them."""
    schema, mode = snapshot.schema, snapshot.config.column_mapping_mode
    columns = [find_path(schema, (name,))[0] for name in names if name not in snapshot.config.partition_columns]
    return {
        physical_path(schema, (column.name,), mode): column.data_type
        for column in columns
        if isinstance(column.data_type, PrimitiveType) and column.data_type.name in _TYPES_WITH_MANY_VALUES
    }


def _have_few_groups(columns: list[pa.Table]) -> bool:
    """Whether consecutive rows likely have few combinations of values.

    columns: one table for each column. It has a row for each file that has statistics for the column: the smallest and the
    largest value (low, high) and the number of rows.
    """
    # few_values: how many combinations the columns with few values have. rows_for_a_value: how many rows a file has for each
    # value of the one column with many values, if its files hardly overlap. If two columns have many values, there are many
    # groups.
    few_values, rows_for_a_value = 1.0, None
    for files in columns:
        if not files.num_rows:
            continue
        # Doubles, because the difference of two integers may exceed 64 bits.
        low, high = (files[end].cast(pa.float64(), safe=False).to_numpy() for end in ("low", "high"))
        values_of_all = max(1.0, high.max() - low.min() + 1)
        sum_of_values = np.maximum(high - low + 1, 1).sum()  # close to values_of_all if files have different values
        hardly_overlap = files.num_rows >= _MIN_FILES and sum_of_values <= _MOST_OVERLAP * values_of_all
        if values_of_all <= _FEW_VALUES:
            few_values *= values_of_all
        elif hardly_overlap and rows_for_a_value is None:
            rows_for_a_value = pc.sum(files["rows"]).as_py() / sum_of_values
        else:
            return False
    return few_values <= (_FEW_VALUES if rows_for_a_value is None else rows_for_a_value / _ROWS_FOR_A_VALUE)
