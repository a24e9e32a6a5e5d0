"""Statistics of a data file that another program wrote, from its footer alone, as the JSON text of `add.stats`.

    footer_stats(footer, schema, leaves, columns, string_prefix=32)

A value that the footer does not have for every row group is left out, and readers treat it as unknown. Upper bounds of floats are
left out too, because footers ignore NaN, which is larger than any number. Only leaves outside lists and maps get null counts,
because a footer counts the elements of lists and maps, not the rows.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.statistics.stats import stats_from_parquet_footer
from delta_py.statistics.stats_collector import StatsCollector, is_bounded
from delta_py.types.schema import DOUBLE, FLOAT, Path, StructType, find_path


def footer_stats(
    footer: Any,
    schema: StructType,
    leaves: Mapping[Path, int],
    columns: Sequence[Path],
    *,
    absent: Sequence[Path] = (),
    string_prefix: int,
) -> str:
    """The statistics of one file as JSON text.

    footer: pyarrow.parquet.FileMetaData. schema: the file's columns. leaves: the Parquet column of each leaf outside lists and
    maps. columns: the leaves that get statistics; all are in the file. absent: leaves that get statistics but are missing in the
    file, so that all their rows are null.
    Raises pyarrow.ArrowInvalid for a footer that contradicts itself.
    """
    types = {path: find_path(schema, path)[-1].data_type for path in columns if path in leaves}
    groups = stats_from_parquet_footer(footer, leaves, types)  # one value for each row group
    rows = groups.num_records.to_pylist()  # there are few groups: plain numbers are faster than arrays
    nulls = {path: _null_counts(counts, rows) for path, counts in groups.null_count.items()}
    bounded_types = {path: kind for path, kind in types.items() if is_bounded(kind)}
    # For each leaf and row group: whether it has values that are not null. An unknown null count counts as 0.
    has_values = {
        path: [row_count > (null_count or 0) for row_count, null_count in zip(rows, nulls[path], strict=True)]
        for path in bounded_types
    }
    paths_with_maximum = [path for path, kind in bounded_types.items() if kind not in (FLOAT, DOUBLE)]
    collector = StatsCollector(schema, columns, string_prefix=string_prefix)
    null_counts = {path: sum(n for n in counts if n) for path, counts in nulls.items() if None not in counts}
    minimum = {path: _bound_of_all_groups(groups.minimum[path], has_values[path], "min") for path in bounded_types}
    maximum = {path: _bound_of_all_groups(groups.maximum[path], has_values[path], "max") for path in paths_with_maximum}
    collector.set_statistics(
        footer.num_rows,
        null_counts | dict.fromkeys(absent, footer.num_rows),
        {path: bound for path, bound in minimum.items() if bound is not None},
        {path: bound for path, bound in maximum.items() if bound is not None},
    )
    return collector.to_json()


def _null_counts(counts: pa.Int64Array, rows: Sequence[int]) -> list[int | None]:
    """The null count of a leaf in each row group; None is unknown. counts: as the footer states them. rows: the number of rows of
    each row group. A row group without rows has no nulls, whatever the footer states."""
    return [n if row_count else 0 for n, row_count in zip(counts.to_pylist(), rows, strict=True)]


def _bound_of_all_groups(bounds: pa.Array, has_values: Sequence[bool], side: str) -> pa.Scalar | None:
    """The bound of all row groups together; None if a row group with values has no bound. bounds, has_values: one value for each
    row group. side: "min" or "max"."""
    if bounds.null_count and any(is_needed and not bound.is_valid for is_needed, bound in zip(has_values, bounds, strict=True)):
        return None
    return bounds[0] if len(bounds) == 1 else pc.min_max(bounds)[side]
