"""Statistics of partition columns from the log, for Spark's estimates of joins.

partition_numbers(files, {"day": column}, timezone) -> {"day": {"distinct": 12, "nulls": 0, "min": 19000, "max": 19011}}
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.partition_values import find_malformed
from delta_py.scan.file_pruner import partition_texts, typed_partition_values
from delta_py.scan.scan_state import ScanColumn
from delta_py.types.schema import PrimitiveType

# Types with a least and a greatest value for Spark, and types with only a number of values.
_WITH_BOUNDS = frozenset({"byte", "short", "integer", "long", "date"})
_WITHOUT_BOUNDS = frozenset({"string", "binary"})


def partition_numbers(files: pa.Table, columns: Mapping[str, ScanColumn], timezone: str) -> dict[str, dict[str, int]]:
    """Statistics of partition columns, by the column's name: how many distinct values the files have (distinct), and the least
    and the greatest value as a number (min, max; days for dates). nulls is 0 if no file has null in the column; otherwise it is
    left out, because it is a number of rows, and only files are counted here.

    files: the files of a scan. columns: partition columns, by name. Two kinds of columns are left out: those with an invalid
    value in a file; and those whose type has no bounds, unless they hold texts, because Spark treats a column with a number of
    values but without bounds as empty.
    """
    numbers_by_column: dict[str, dict[str, int]] = {}
    for name, column in columns.items():
        kind = column.logical.data_type
        if isinstance(kind, PrimitiveType) and kind.name in _WITH_BOUNDS | _WITHOUT_BOUNDS:
            numbers = _column_numbers(files, column, timezone, has_bounds=kind.name in _WITH_BOUNDS)
            if numbers is not None:
                numbers_by_column[name] = numbers
    return numbers_by_column


def _column_numbers(files: pa.Table, column: ScanColumn, timezone: str, *, has_bounds: bool) -> dict[str, int] | None:
    """The entry of partition_numbers for one column; None if a file has an invalid value in it. has_bounds: whether the entry has
    min and max."""
    texts_by_batch = [partition_texts(batch, column.physical.name).unique() for batch in files.to_batches()]
    texts = pa.chunked_array(texts_by_batch, pa.string()).unique()
    values = typed_partition_values(texts, column.logical, timezone)
    if pc.any(find_malformed(texts, values)).as_py():
        return None
    numbers = {"distinct": pc.count_distinct(values).as_py()}
    if values.null_count == 0:
        numbers["nulls"] = 0
    if has_bounds and values.null_count < len(values):
        ends = pc.min_max(values.cast(pa.int32()) if pa.types.is_date(values.type) else values).as_py()
        numbers |= {"min": ends["min"], "max": ends["max"]}
    return numbers
