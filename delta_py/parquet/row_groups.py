"""Which row groups of a file are decoded: those that may hold requested rows, in runs that are read in one go.

A row group is skipped if all its rows are deleted or none is selected, or if its statistics or the file's partition
values rule the predicate out. Statistics are used only for columns that the file stores with the table's type. Statistics of a
legacy calendar, of INT96 and of nanoseconds are not used. A row group with unknown values is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from delta_py.expressions.tree import Column, Expression, columns_of, transform_columns
from delta_py.parquet.file_schema import FileSchema, Shape
from delta_py.parquet.row_selection import RowSelection
from delta_py.parquet.values.buffers import Ndarray
from delta_py.parquet.values.conform_batch import Match
from delta_py.parquet.values.rebase import LegacyCalendar
from delta_py.scan.char_padding import is_char
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanState
from delta_py.statistics.stats import FileStats, stats_from_parquet_footer
from delta_py.types.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, Path, StructType


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive row groups. groups: their indexes in the file. first_row: the position in the file of their first row.
    byte_count: the size of all their columns, encoded but not compressed."""

    groups: tuple[int, ...]
    first_row: int
    row_count: int
    byte_count: int


def find_runs(footer: Any, selection: RowSelection, group_mask: Ndarray | None) -> Iterator[Run]:
    """The row groups to decode, consecutive ones together. footer: pyarrow.parquet.FileMetaData. group_mask: one boolean per row
    group; None for all. A row group whose rows are all deleted, or none selected, is left out too."""
    run: Run | None = None
    position = 0
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        start, position = position, position + group.num_rows
        if (group_mask is not None and not group_mask[index]) or not selection.remaining_count(start, position):
            if run is not None:
                yield run
            run = None
        elif run is None:
            run = Run((index,), start, group.num_rows, group.total_byte_size)
        else:
            run = Run((*run.groups, index), run.first_row, run.row_count + group.num_rows, run.byte_count + group.total_byte_size)
    if run is not None:
        yield run


def split_run(footer: Any, run: Run) -> Iterator[Run]:
    """The run's row groups, each by itself."""
    position = run.first_row
    for index in run.groups:
        group = footer.row_group(index)
        yield Run((index,), position, group.num_rows, group.total_byte_size)
        position += group.num_rows


def groups_in_part(footer: Any, part: tuple[int, int] | None, size: int) -> Ndarray | None:
    """One boolean per row group: whether its middle lies in a part of the file (ScanFile.part). None for all. size: the file's
    size in the log, by which the file was cut into parts. The last part also has everything after that size.

    Parquet's readers on the JVM use the same rule, but may have other parts: each row group is in exactly one part.
    """
    if part is None:
        return None
    start, length = part
    middles = np.array([_middle_position(footer.row_group(index)) for index in range(footer.num_row_groups)], np.int64)
    is_before_end = middles < start + length if start + length < size else np.ones(len(middles), np.bool_)
    is_after_start = middles >= start if start else np.ones(len(middles), np.bool_)
    result: Ndarray = is_after_start & is_before_end
    return result


def _middle_position(group: Any) -> int:
    """The file position of a row group's middle: a task reads the row groups whose middle is in its part of the file."""
    columns = [group.column(index) for index in range(group.num_columns)]
    # The row group begins with its first column, which begins with its dictionary, if it has one.
    first_column = columns[0]
    start = int(first_column.data_page_offset)
    if first_column.has_dictionary_page and 0 < first_column.dictionary_page_offset < start:
        start = int(first_column.dictionary_page_offset)
    return start + sum(int(column.total_compressed_size) for column in columns) // 2


# ---------------------------------------------------------------- by statistics


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column or nested field in the predicate. column: the place of its top-level column among the scan's columns. inner: the
    positions of the struct fields below that column."""

    column: int
    inner: tuple[int, ...]
    data_type: DataType


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """The predicate of a scan, ready to be evaluated on any file's row groups. Its columns are by physical path."""

    predicate: Expression
    leaves: Mapping[Path, _Leaf]

    def evaluate(self, footer: Any, file: FileSide) -> Ndarray | None:
        """One boolean per row group: whether the predicate may be true for one of its rows. None if all groups must be read."""
        count = footer.num_row_groups
        constants = {
            path: pa.repeat(file.constants[leaf.column], count)
            for path, leaf in self.leaves.items()
            if leaf.column in file.constants
        }
        matches = {path: _inner_match(file.matches[leaf.column], leaf.inner) for path, leaf in self.leaves.items()}
        stats = self._stats(footer, file, {path: match for path, match in matches.items() if match is not None})
        if stats is None and not constants:
            return None
        from delta_py.expressions.skipping_conditions import keep_mask  # not needed by a scan without a predicate

        mask = keep_mask(self.predicate, stats or _row_counts_only(footer), constants)
        result: Ndarray = mask.to_numpy(zero_copy_only=False)
        return result

    def _stats(self, footer: Any, file: FileSide, matches: Mapping[Path, Match]) -> FileStats | None:
        """The row groups' statistics of the predicate's columns; None if they say nothing. A column that the file lacks is null
        in every row. A column without usable statistics is left out, and so unknown. matches: by physical path."""
        indexes = {
            path: match.source.first_leaf for path, match in matches.items() if match.source and file.has_usable_statistics(match)
        }
        missing_paths = [path for path, match in matches.items() if match.source is None]
        if not indexes and not missing_paths:
            return None
        stats = stats_from_parquet_footer(footer, indexes, {path: self.leaves[path].data_type for path in indexes})
        return replace(stats, null_count={**stats.null_count, **dict.fromkeys(missing_paths, stats.num_records)})


@dataclass(frozen=True, slots=True)
class FileSide:
    """The facts about one file that GroupFilter needs.

    matches: for each column of the scan, its field in the file; None for a column that files do not store. constants: typed
    scalars of the columns that have one value in the whole file, by the column's place.
    """

    schema: FileSchema
    calendar: LegacyCalendar
    matches: Sequence[Match | None]
    constants: Mapping[int, Any]

    def has_usable_statistics(self, match: Match) -> bool:
        """Whether the statistics of a field describe its values as they are read.

        They do not if reading converts the values: INT96 and nanoseconds to microseconds, and days of a legacy calendar. Only
        leaf columns have statistics.
        """
        assert match.source is not None
        if match.source.shape is not Shape.LEAF:
            return False
        column = self.schema.parquet.column(match.source.first_leaf)
        if column.physical_type == "INT96" or "nanoseconds" in str(column.logical_type):
            return False
        return not (self.calendar.datetime and match.data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ))


def _row_counts_only(footer: Any) -> FileStats:
    """Statistics of the row groups without those of any column."""
    return stats_from_parquet_footer(footer, {}, {})


def _inner_match(match: Match | None, inner: Sequence[int]) -> Match | None:
    """The match of a field inside of a struct. If the file lacks a struct around it, the match of that struct."""
    for position in inner:
        if match is None:
            return None
        if match.source is None:
            return match
        match = match.parts[position]
    return match


def make_group_filter(state: ScanState, columns: Sequence[ScanColumn]) -> GroupFilter | None:
    """The filter for a scan's predicate; None without a predicate. columns: all columns that the scan reads, in the order of the
    matches of each file."""
    if state.predicate is None:
        return None
    leaves: dict[Path, _Leaf] = {}
    physical_paths: dict[Path, Path] = {}
    for path in columns_of(state.predicate):
        leaf = find_leaf(columns, path)
        # This path stands for a column without statistics, because no file has it: physical names are never empty.
        physical_paths[path] = ("", *path)
        # CHAR values are padded when they are read, so statistics of the stored values do not describe them.
        if leaf is not None and not is_char(columns[leaf[0]].logical, path[1:]):
            place, inner = leaf
            physical, data_type = _physical_path(columns[place], inner)
            if columns[place].source in (ColumnSource.DATA, ColumnSource.PARTITION):
                physical_paths[path] = physical
            leaves[physical_paths[path]] = _Leaf(place, inner, data_type)
    return GroupFilter(transform_columns(state.predicate, lambda path: Column(physical_paths[path])), leaves)


def find_leaf(columns: Sequence[ScanColumn], path: Path) -> tuple[int, tuple[int, ...]] | None:
    """(column's place, positions of struct fields below it) of a logical path; None if no column holds all of it."""
    for exact in (True, False):  # a name that differs only in case counts if no column has exactly this name
        for place, column in enumerate(columns):
            if not _is_same_name(column.logical.name, path[0], exact):
                continue
            inner = _field_positions(column.logical.data_type, path[1:])
            if inner is not None:
                return place, inner
    return None


def _is_same_name(name: str, expected_name: str, exact: bool) -> bool:
    """Whether the names are equal, without regard to case unless `exact`."""
    return name == expected_name if exact else name.lower() == expected_name.lower()


def _field_positions(data_type: DataType, path: Path) -> tuple[int, ...] | None:
    """The positions of the fields along the path; None if there is no such field."""
    if not path:
        return ()
    if not isinstance(data_type, StructType):
        return None
    place = data_type.position(path[0])
    if place is None:
        return None
    inner_positions = _field_positions(data_type.fields[place].data_type, path[1:])
    return None if inner_positions is None else (place, *inner_positions)


def _physical_path(column: ScanColumn, inner: Sequence[int]) -> tuple[Path, DataType]:
    """The names in the file, and the type, of a field. inner: its positions in the column's structs."""
    logical, physical = column.logical, column.physical
    path = [physical.name]
    for position in inner:
        assert isinstance(logical.data_type, StructType) and isinstance(physical.data_type, StructType)
        logical, physical = logical.data_type.fields[position], physical.data_type.fields[position]
        path.append(physical.name)
    return tuple(path), logical.data_type
