"""How well files can be skipped, for a report: a share for each column, and the files as rectangles over two columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.layout.skipping_report import bounded_columns, layout_of, places
from delta_py.protocol.clustering import clustering_columns
from delta_py.report.facts import ColumnSkipping, FileMap, SkippingFacts, Unknown, known
from delta_py.report.words import day_text, moment_text
from delta_py.scan.filtered_columns import FILTERED
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import FileStats
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import Path

MOST_COLUMNS = 40
_MOST_RECTANGLES = 400
_CELLS = 40  # of the map, on each axis, if there are too many files for rectangles
_DIGITS = 4  # of the corners of rectangles, after the point
_DAY_MS = 86_400_000
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def columns_to_look_at(snapshot: Snapshot, z_order: Sequence[str], filtered: Mapping[Path, int]) -> list[Path]:
    """At most MOST_COLUMNS columns, in the schema's order. If there are more, those of the clustering or the Z-order come first,
    then those that queries compared, then the others. filtered: how many queries compared each column, in addition to those of
    this process.
    """
    bounded = bounded_columns(snapshot.config)
    roles = roles_of(snapshot, z_order)
    queries = FILTERED.of(snapshot)
    queries.update(filtered)
    selected_paths = sorted(bounded, key=lambda path: (path not in roles, -queries.get(path, 0)))[:MOST_COLUMNS]
    return [path for path in bounded if path in set(selected_paths)]


def roles_of(snapshot: Snapshot, z_order: Sequence[str]) -> dict[Path, str]:
    """The columns by which rows were ordered, in order, each with its role: `clustering`, or else `Z-order` for the columns of
    the newest Z-order. z_order: their names, as the log spells them."""
    clustering = known(lambda: clustering_columns(snapshot.schema, snapshot.clustering_domain()))
    if not isinstance(clustering, Unknown) and clustering:
        names, role = clustering, "clustering"
    else:
        names, role = tuple(z_order), "Z-order"
    bounded = {tuple(part.lower() for part in path): path for path in bounded_columns(snapshot.config)}
    column_paths = (bounded.get(tuple(part.lower() for part in _name_parts(name))) for name in names)
    return {path: role for path in column_paths if path is not None}


def _name_parts(name: str) -> Path:
    """The parts of a column's name; empty if the name, which is from the log, cannot be parsed."""
    parts = known(lambda: split_name(name))
    return () if isinstance(parts, Unknown) else tuple(parts)


def skipping_facts(
    snapshot: Snapshot, paths: Sequence[Path], stats: FileStats, z_order: Sequence[str], filtered: Mapping[Path, int]
) -> SkippingFacts:
    """How well queries can skip files by each column. paths: of columns_to_look_at. stats: of all files, with their bounds by
    logical paths."""
    roles = roles_of(snapshot, z_order)
    rows = layout_of(snapshot, paths, stats, filtered).to_pylist()
    columns = tuple(
        ColumnSkipping(**row, sql_name=_sql_name(path), role=roles.get(path)) for row, path in zip(rows, paths, strict=True)
    )
    return SkippingFacts(
        columns=columns,
        left_out=len(bounded_columns(snapshot.config)) - len(paths),
        map=_file_map(paths, columns, roles, stats),
        source=f"add actions of version {snapshot.version}: stats.minValues, maxValues and numRecords; DeltaTable.layout()",
    )


def _sql_name(path: Path) -> str:
    """The name of a column as in SQL, with backticks only where they are needed."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in path)


def _file_map(
    paths: Sequence[Path], columns: Sequence[ColumnSkipping], roles: Mapping[Path, str], stats: FileStats
) -> FileMap | Unknown:
    """The files over two columns: those that order the table, then those that queries use most, then those that separate files
    best.
    """
    columns_with_bounds = {path: column for path, column in zip(paths, columns, strict=True) if column.with_bounds}
    if len(columns_with_bounds) < 2:
        return Unknown("the map needs two columns with minima and maxima")
    ordering_paths = [path for path in roles if path in columns_with_bounds]
    preferred_paths = sorted(
        columns_with_bounds, key=lambda path: (-columns_with_bounds[path].queries, columns_with_bounds[path].point_share or 0.0)
    )
    x, y = [*ordering_paths, *(path for path in preferred_paths if path not in ordering_paths)][:2]
    why = "the columns that separate files best"
    if len(ordering_paths) >= 2:
        why = f"the first two columns of the {roles[x]}"
    elif ordering_paths:
        why = f"the column of the {roles[x]}, and of the others the one that separates files best"
    elif columns_with_bounds[x].queries:
        why = "the columns that queries of this process filtered by most"
    low_x, high_x, low_y, high_y = stats.minimum[x], stats.maximum[x], stats.minimum[y], stats.maximum[y]
    has_both = pc.and_(pc.and_(low_x.is_valid(), high_x.is_valid()), pc.and_(low_y.is_valid(), high_y.is_valid()))
    count = has_both.true_count
    if not count:
        return Unknown(f"no file has minima and maxima of both {'.'.join(x)} and {'.'.join(y)}")
    (x0, x1, x_low, x_high), (y0, y1, y_low, y_high) = (
        _axis(low.filter(has_both), high.filter(has_both)) for low, high in ((low_x, high_x), (low_y, high_y))
    )
    density = _density(x0, y0, x1, y1)
    has_few_files = count <= _MOST_RECTANGLES
    corners = np.round(np.stack([x0, y0, x1, y1], axis=1), _DIGITS)
    return FileMap(
        x=".".join(x),
        y=".".join(y),
        why=why,
        x_low=x_low,
        x_high=x_high,
        y_low=y_low,
        y_high=y_high,
        files=count,
        without=stats.file_count - count,
        rectangles=tuple(map(tuple, corners.tolist())) if has_few_files else (),
        density=() if has_few_files else tuple(map(tuple, density.tolist())),
        mean_depth=float(density.mean()),
        mean_area=float(((x1 - x0) * (y1 - y0)).mean()),
    )


def _axis(low: pa.Array, high: pa.Array) -> tuple[Any, Any, str, str]:
    """(where each file begins on the axis, where it ends, the axis's low end as text, its high end). Positions are shares of the
    axis. low, high: minima and maxima of the files. If a minimum is above its maximum, the two are swapped."""
    ends_of_files = pa.chunked_array([low, high]).combine_chunks()  # minima and maxima on one axis
    positions = places(ends_of_files)
    low_end, high_end = positions.min(), positions.max()
    shares = (positions - low_end) / (high_end - low_end) if high_end > low_end else np.full(len(positions), 0.5)
    low_index, high_index = int(positions.argmin()), int(positions.argmax())
    begins, ends = shares[: len(low)], shares[len(low) :]
    return (
        np.minimum(begins, ends),
        np.maximum(begins, ends),
        _end_text(ends_of_files, low_index),
        _end_text(ends_of_files, high_index),
    )


def _end_text(values: pa.Array, place: int) -> str:
    """The value at an index as text for people: times to the second, floats to six digits."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return moment_text(values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())[place].as_py())
    if pa.types.is_date32(kind):
        return day_text(values.cast(pa.int32())[place].as_py() * _DAY_MS)
    if pa.types.is_floating(kind):
        return f"{values[place].as_py():.6g}"
    return str(values[place].as_py())


def _density(x0: Any, y0: Any, x1: Any, y1: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of rectangles over each cell, rows by y.

    Each rectangle adds 1 at its first cell, and takes it back in the row and the column after its end. The sums of these steps,
    by row and by column, are the numbers. So the time does not depend on the size of the rectangles. x0 to y1: shares of the
    axes.
    """
    first_x, first_y, last_x, last_y = (np.minimum((shares * _CELLS).astype(np.int64), _CELLS - 1) for shares in (x0, y0, x1, y1))
    changes = np.zeros((_CELLS + 1, _CELLS + 1), np.int64)
    np.add.at(changes, (first_y, first_x), 1)
    np.add.at(changes, (first_y, last_x + 1), -1)
    np.add.at(changes, (last_y + 1, first_x), -1)
    np.add.at(changes, (last_y + 1, last_x + 1), 1)
    return np.asarray(changes.cumsum(axis=0).cumsum(axis=1)[:_CELLS, :_CELLS])
