"""How well a table's files let readers skip: for each column the share of files that a query has to read.

    table_layout(snapshot)             # LAYOUT_SCHEMA, a row for each column that can have statistics

A query reads a file if its value lies between the file's minimum and maximum. The positions of values within a file are unknown:
the report assumes an even spread, and weights a file by its rows. Distances of texts are counted in bounds of files: no file
begins or ends between two neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.filtered_columns import FILTERED
from delta_py.snapshot import FileBatch, Snapshot
from delta_py.statistics.stats import FileStats, concat_stats, unknown_stats
from delta_py.types.schema import ArrayType, MapType, Path, find_named, find_path, leaves, type_name

# files: number of the table's files. with_bounds: those with a minimum and a maximum of the column.
# point_share, range_share: share of the files that a query for one value, or for a tenth of the values, reads on average; null if
# unknown. queries: scans of this process (scan/filtered_columns.py) that compared the column. advice: a recommendation, or null.
LAYOUT_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("files", pa.int64()),
        ("with_bounds", pa.int64()),
        ("point_share", pa.float64()),
        ("range_share", pa.float64()),
        ("queries", pa.int64()),
        ("advice", pa.string()),
    ]
)
_RANGE_PART = 0.1  # an assumed query for a range wants this part of the distance from the smallest to the largest value
_POINTS_PER_FILE = 8  # for so many values in each file a query is assumed, at equal distances
_POOR_POINT_SHARE = 0.5  # there is advice if a query for one value reads a larger share of the files
_FARTHEST = 1e300  # for larger numbers, differences may be infinite, so ranks take their place
_FEW_FILES = 4  # with fewer files there is no advice
# Types whose columns have no minimum and maximum in the statistics.
_NO_BOUNDS = ("boolean", "binary", "variant", "void")


def table_layout(
    snapshot: Snapshot, columns: Sequence[str] | None = None, filtered: Mapping[Path, int] | None = None
) -> pa.Table:
    """The report about each column: LAYOUT_SCHEMA, in the schema's order. columns: names, nested ones dotted; None for all except
    partition columns. filtered: the number of other queries that compared each column, in addition to those of this process.
    Raises SchemaMismatchError for a column that does not exist. Memory: the bounds of all files.
    """
    config = snapshot.config
    paths = _requested_paths(config, columns)
    stats = concat_stats([batch.stats for batch in bounded_batches(snapshot, paths) if batch.stats is not None])
    return layout_of(snapshot, paths, stats, filtered)


def bounded_batches(snapshot: Snapshot, paths: Sequence[Path]) -> Iterator[FileBatch]:
    """The table's files in batches, with their record counts and the bounds of these columns. Paths are logical, in the argument
    and in the statistics. Each batch has statistics; for a file without statistics they are null.
    """
    config = snapshot.config
    physical = {path: physical_path(config.schema, path, config.column_mapping_mode) for path in paths}
    types = {physical[path]: find_path(config.schema, path)[-1].data_type for path in paths}

    def by_logical_path(arrays: Mapping[Path, pa.Array]) -> dict[Path, pa.Array]:
        return {path: arrays[physical[path]] for path in paths if physical[path] in arrays}

    for batch in snapshot.file_batches(stats_leaves=types, want_records=True):
        stats = batch.stats or unknown_stats(batch.files.num_rows)
        low, high, nulls = by_logical_path(stats.minimum), by_logical_path(stats.maximum), by_logical_path(stats.null_count)
        yield replace(batch, stats=replace(stats, minimum=low, maximum=high, null_count=nulls))


def layout_of(
    snapshot: Snapshot, paths: Sequence[Path], stats: FileStats, filtered: Mapping[Path, int] | None = None
) -> pa.Table:
    """The report of table_layout from statistics that the caller has read. stats: the statistics of all files, for these columns
    or more, by logical paths (from bounded_batches)."""
    queries = FILTERED.of(snapshot)
    queries.update(filtered or {})
    type_names = {path: type_name(find_path(snapshot.schema, path)[-1].data_type) for path in paths}
    rows = [_report_row(path, type_names[path], stats, queries) for path in paths]
    for path in set(paths).difference(bounded_columns(snapshot.config)):
        rows[paths.index(path)]["advice"] = None  # a column that cannot have bounds: there is nothing to recommend
    return pa.Table.from_pylist(rows, LAYOUT_SCHEMA)


def _requested_paths(config: TableConfig, columns: Sequence[str] | None) -> list[Path]:
    """The paths of the named columns; of all that can have bounds if columns is None. Raises SchemaMismatchError."""
    if columns is not None:
        return [tuple(field.name for field in find_named(config.schema, name)) for name in columns]
    return bounded_columns(config)


def bounded_columns(config: TableConfig) -> list[Path]:
    """The columns that can have a minimum and a maximum."""
    return [
        path
        for path, leaf in leaves(config.schema)
        if path[0] not in config.partition_columns and not isinstance(leaf.data_type, ArrayType | MapType)
        if type_name(leaf.data_type) not in _NO_BOUNDS
    ]


def _report_row(path: Path, type_name_text: str, stats: FileStats, queries: Mapping[Path, int]) -> dict[str, Any]:
    """The column's row of the report: how many files have bounds, and the shares of files that queries would read."""
    count, low, high = stats.file_count, stats.minimum.get(path), stats.maximum.get(path)
    shares: tuple[float, float] | None = None
    bounded_count = 0
    if low is not None and high is not None and count:
        has_bounds = pc.and_(low.is_valid(), high.is_valid())
        bounded_count = has_bounds.true_count
        if bounded_count:
            records = pc.fill_null(stats.num_records, 1).filter(has_bounds).to_numpy(zero_copy_only=False)
            shares = _read_shares(low.filter(has_bounds), high.filter(has_bounds), records, count - bounded_count)
    return {
        "column": ".".join(path),
        "type": type_name_text,
        "files": count,
        "with_bounds": bounded_count,
        "point_share": None if shares is None else shares[0],
        "range_share": None if shares is None else shares[1],
        "queries": queries.get(path, 0),
        "advice": _advice(".".join(path), count, bounded_count, shares and shares[0], queries.get(path, 0)),
    }


def _read_shares(
    low: pa.Array, high: pa.Array, records: np.ndarray[Any, np.dtype[np.int64]], unbounded_count: int
) -> tuple[float, float]:
    """The shares of files that a query reads: for one value, and for a range of a tenth of all values. Queries look for values as
    often as rows have them, evenly spread within a file. low, high, records: the bounds and the number of rows of each file with
    bounds. unbounded_count: the number of files without bounds, which every query reads."""
    count = len(low)
    positions = places(pa.chunked_array([low, high]).combine_chunks())
    begins, ends = positions[:count], positions[count:]
    firsts, lasts = np.sort(begins), np.sort(ends)
    points = np.concatenate([begins + (ends - begins) * (step + 0.5) / _POINTS_PER_FILE for step in range(_POINTS_PER_FILE)])
    weights = np.tile(np.maximum(records, 1), _POINTS_PER_FILE).astype(np.float64)
    width = (positions.max() - positions.min()) * _RANGE_PART

    def share_read(until: np.ndarray[Any, np.dtype[np.float64]]) -> float:
        """The share of the files that overlap a range, from each point to `until`: those that begin before its end, without those
        that end before its start."""
        overlapping = np.searchsorted(firsts, until, "right") - np.searchsorted(lasts, points, "left")
        return float((np.average(overlapping, weights=weights) + unbounded_count) / (count + unbounded_count))

    return share_read(points), share_read(np.minimum(points + width, positions.max()))


def places(bounds: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers that rise with the values, with the same distances if the values have distances. bounds: no nulls, not empty."""
    arrow_type = bounds.type
    if pa.types.is_date32(arrow_type):
        bounds = bounds.view(pa.int32())
    elif pa.types.is_timestamp(arrow_type):
        bounds = bounds.view(pa.int64())
    elif not (pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type)):
        bounds = pc.rank(bounds, tiebreaker="dense")
    numbers = bounds.cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(numbers).all() or np.abs(numbers).max() > _FARTHEST:  # infinite, not a number, or too far apart
        numbers = pc.rank(bounds, tiebreaker="dense").to_numpy().astype(np.float64)
    return np.asarray(numbers)


def _advice(column: str, file_count: int, bounded_count: int, point_share: float | None, query_count: int) -> str | None:
    """What to do about a column that lets queries skip few files; None if there is nothing to do. bounded_count: the number of
    files with bounds. point_share: the share of the files that a query for one value reads; None if unknown. query_count: the
    number of recent queries that compared the column."""
    if file_count < _FEW_FILES:
        return None
    usage = f", and {query_count} recent queries were filtered by it" if query_count else ""
    if bounded_count < file_count / 2:
        finding = f"most files have no minimum and maximum of {column}{usage}"
        return f"{finding}: name it in delta.dataSkippingStatsColumns, and run OPTIMIZE"
    if point_share is not None and point_share > _POOR_POINT_SHARE:
        finding = f"a query for one value of {column} reads {point_share:.0%} of the files"
        return (
            f"{finding}{usage}: Z-order or cluster by it"
            if query_count
            else f"{finding}: Z-order or cluster if it is filtered by"
        )
    return None
