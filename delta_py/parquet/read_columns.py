"""The columns of a scan for one file: made from decoded data, from the log's values, and from rows' positions.

A plan holds everything that is the same for all files of one Parquet schema; most files of a table share one schema. A column is
identified by its place: its index among all columns that the scan reads.
Protocol: Reader Requirements for Row Tracking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.parquet.file_schema import FileSchema, Shape, read_file_schema
from delta_py.parquet.row_selection import RowPick
from delta_py.parquet.values.conform_batch import (
    Convert,
    FileContext,
    Match,
    apply_converter,
    make_converter,
    match_columns,
    needed_leaves,
    null_values,
)
from delta_py.parquet.values.conform_values import CannotRead
from delta_py.parquet.values.rebase import LegacyCalendar
from delta_py.protocol.partition_values import find_malformed, malformed_value_error, parse_partition_values
from delta_py.protocol.paths import encode_path, resolve
from delta_py.scan.char_padding import pad
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanFile, ScanState
from delta_py.statistics.parquet_statistics import chunk_null_count
from delta_py.types.char_types import CharTypes
from delta_py.types.schema import StructType, to_arrow_type, type_name

_ARROW_SCHEMA = b"ARROW:schema"
# A constant column is stored in the files that have no constant for it (change files contain their rows' change types).
_STORED = (ColumnSource.DATA, ColumnSource.CONSTANT)


# ---------------------------------------------------------------- plans


class FilePlan:
    """How the scan's columns are read from files of one Parquet schema.

    schema, calendar: of these files. matches: for each column of the scan, its field in the file (a match without a source if the
    file lacks the field); None for a column that files do not store. leaves: the Parquet leaf columns to decode, in order.
    text_leaves: the leaves whose values vary in length. has_inner_dictionaries: whether a nested column contains a dictionary.
    Arrow decodes such a column one row group at a time, because each row group has its own dictionary.
    """

    def __init__(
        self, parquet: pq.ParquetFile, schema: FileSchema, calendar: LegacyCalendar, matches: Sequence[Match | None]
    ) -> None:
        self.schema, self.calendar, self.matches = schema, calendar, tuple(matches)
        self.leaves = sorted(set().union(*(needed_leaves(match, schema) for match in matches if match is not None)))
        self.text_leaves = [leaf for leaf in self.leaves if schema.parquet.column(leaf).physical_type == "BYTE_ARRAY"]
        self.has_inner_dictionaries = any(_has_inner_dictionary(f.type) for f in parquet.schema_arrow)
        self._arrow_schema = _stored_arrow_schema(parquet)
        self._context = FileContext(schema, calendar, frozenset(self.leaves))
        self._plans_by_places: dict[frozenset[int], FilePlan] = {}
        self._converters: dict[int, Convert | None] = {}
        decoded = self._context.positions(schema.fields)
        # By place of a column: its position in a decoded batch; None if the batch does not have it.
        self._positions = [None if m is None or m.source is None else decoded[m.source.first_leaf] for m in self.matches]

    def restrict_to(self, parquet: pq.ParquetFile, places: AbstractSet[int]) -> FilePlan:
        """The plan for decoding only the leaves that the columns at these places need."""
        place_set = frozenset(places)
        if place_set not in self._plans_by_places:
            matches = [match if place in place_set else None for place, match in enumerate(self.matches)]
            self._plans_by_places[place_set] = FilePlan(parquet, self.schema, self.calendar, matches)
        return self._plans_by_places[place_set]

    def has_no_nulls(self, footer: pq.FileMetaData, place: int) -> bool:
        """Whether the file's footer shows that each row has a value in the column. This is known only of a column that is a
        single leaf of the file."""
        match = self.matches[place]
        if match is None or match.source is None or match.source.shape is not Shape.LEAF:
            return False
        leaf, groups = match.source.first_leaf, range(footer.num_row_groups)
        return all(chunk_null_count(footer, group, leaf) == 0 for group in groups)

    def leaves_of(self, places: AbstractSet[int]) -> set[int]:
        """The Parquet leaf columns that the columns at these places need."""
        matches = [self.matches[place] for place in places]
        return set().union(*(needed_leaves(match, self.schema) for match in matches if match is not None))

    def matches_file(self, parquet: pq.ParquetFile, calendar: LegacyCalendar) -> bool:
        """Whether a file has the schema and the calendar of this plan."""
        return bool(
            parquet.schema.equals(self.schema.parquet)
            and _stored_arrow_schema(parquet) == self._arrow_schema
            and calendar == self.calendar
        )

    def position(self, place: int) -> int | None:
        """The position of a column in a decoded batch; None if the file lacks it."""
        return self._positions[place]

    def convert(self, place: int, array: pa.Array) -> pa.Array:
        """A decoded column in the table's type. Raises CannotRead if the types or values do not allow it."""
        match = self.matches[place]
        assert match is not None
        if place not in self._converters:
            self._converters[place] = make_converter(match, array.type, self._context)
        try:
            return apply_converter(self._converters[place], array)
        except (pa.ArrowInvalid, ValueError) as error:
            raise CannotRead(f"column {match.path} cannot be read as {type_name(match.data_type)}: {error}") from error


def _has_inner_dictionary(kind: pa.DataType) -> bool:
    """Whether a nested type contains a dictionary."""
    inner = [kind.field(place).type for place in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return any(pa.types.is_dictionary(part) or _has_inner_dictionary(part) for part in inner)


def _stored_arrow_schema(parquet: pq.ParquetFile) -> bytes | None:
    """The Arrow schema that the writer stored in the footer. It decides to which Arrow types pyarrow decodes the file."""
    footer = parquet.metadata.metadata
    return footer.get(_ARROW_SCHEMA) if footer else None


def plan_file(parquet: pq.ParquetFile, columns: Sequence[ScanColumn], calendar: LegacyCalendar, *, by_id: bool) -> FilePlan:
    """A plan for files with the schema of this one. columns: all columns that the scan reads. by_id: find them by field id."""
    schema = read_file_schema(parquet)
    stored_fields = ((column.logical, column.physical) if column.source in _STORED else None for column in columns)
    return FilePlan(parquet, schema, calendar, match_columns(stored_fields, schema, by_id=by_id))


# ---------------------------------------------------------------- rows


class BatchRows:
    """Decoded rows of a file, and which of them to return. Its length is the number of rows to return.

    start: the position in the file of the first decoded row. row_count: the number of decoded rows. decoded: the decoded columns;
    None if no column of the file is needed. pick: the rows to return; None for all.
    """

    def __init__(self, start: int, row_count: int, decoded: pa.RecordBatch | None, pick: RowPick | None = None) -> None:
        self.start, self.row_count = start, row_count
        self._decoded, self._pick = decoded, pick
        self._picked_columns: dict[int, pa.Array] = {}

    def with_pick(self, pick: RowPick | None) -> BatchRows:
        """The same decoded rows with another choice of rows to return. pick: None for all."""
        return BatchRows(self.start, self.row_count, self._decoded, pick)

    def __len__(self) -> int:
        return self.row_count if self._pick is None else len(self._pick)

    @property
    def byte_count(self) -> int:
        """The size of all decoded data, in Arrow."""
        return 0 if self._decoded is None else int(self._decoded.nbytes)

    def column(self, position: int) -> pa.Array:
        """The rows to return of a decoded column. position: in the decoded batch."""
        assert self._decoded is not None
        if self._pick is None:
            return self._decoded.column(position)
        if position not in self._picked_columns:
            self._picked_columns[position] = self._pick.rows_of(self._decoded.column(position))
        return self._picked_columns[position]

    def indexes(self) -> pa.Array:
        """The positions in the file of the rows to return, int64."""
        if self._pick is None:
            return pa.array(np.arange(self.start, self.start + self.row_count))
        return pa.array(self._pick.indices + np.int64(self.start))


# ---------------------------------------------------------------- columns


class FileColumns:
    """Makes columns of a scan for rows of one file. Columns are identified by their place among all columns that
    the scan reads."""

    def __init__(
        self,
        state: ScanState,
        columns: Sequence[ScanColumn],
        chars: Sequence[CharTypes],
        tracking: Mapping[str, ScanColumn],
        plan: FilePlan,
        file: ScanFile,
        undecoded_places: frozenset[int] = frozenset(),
    ) -> None:
        """columns: all columns that the scan reads. chars: for each of them, the result of padded_chars: where it has CHAR types.

        tracking: metadata field (row_id or row_commit_version) -> the materialized column, which is one of `columns`.
        undecoded_places: places of columns that are not decoded, because the scan only needs to know that each row has a value.
        """
        self._state, self._columns, self._plan, self._file, self._undecoded_places = state, columns, plan, file, undecoded_places
        self._tracking = {name: columns.index(column) for name, column in tracking.items()}
        self._char_types = chars
        self._scalars: dict[int, Any] = {}
        self._constant_arrays: dict[int, pa.Array] = {}

    def make_column(self, place: int, rows: BatchRows) -> pa.Array:
        """The values of a column for the picked rows, in the table's type."""
        column = self._columns[place]
        if column.source is ColumnSource.METADATA:
            return self._make_metadata(column, rows)
        is_constant = place in self._undecoded_places or self._is_constant(column)
        values = self._constant_values(place, len(rows)) if is_constant else self._stored_values(place, rows)
        return pad(values, self._char_types[place])

    def _is_constant(self, column: ScanColumn) -> bool:
        """Whether the log, not the file, has the column's value, the same for all rows of the file."""
        has_constant = column.source is ColumnSource.CONSTANT and column.logical.name in self._file.constants
        return has_constant or column.source is ColumnSource.PARTITION

    def constants(self) -> dict[int, Any]:
        """Typed scalars of the partition columns and the constant ones, by place."""
        return {place: self._scalar(place) for place, column in enumerate(self._columns) if self._is_constant(column)}

    def _stored_values(self, place: int, rows: BatchRows) -> pa.Array:
        """The values that the file has for a column; nulls if it lacks the column."""
        position = self._plan.position(place)
        if position is None:
            match = self._plan.matches[place]
            assert match is not None
            return null_values(match, len(rows))
        return self._plan.convert(place, rows.column(position))

    def _scalar(self, place: int) -> Any:
        """The Arrow scalar that a column has in all rows of the file, in the table's type. A partition value that is not valid is
        null, or an error if the rows are read to be written again."""
        if place not in self._scalars:
            column, arrow = self._columns[place], to_arrow_type(self._columns[place].logical.data_type)
            if place in self._undecoded_places:  # the query counts the values and ignores which they are
                scalar = _some_value(arrow)
            elif column.source is ColumnSource.PARTITION:
                text = self._file.partition_values.get(column.physical.name)
                values = pa.array([text], pa.string())
                parsed = parse_partition_values(values, column.logical.data_type, timezone=self._state.timezone, errors="null")
                if self._state.to_write and text is not None and find_malformed(values, parsed)[0].as_py():
                    raise malformed_value_error(self._file.path, column.logical.name, text, column.logical.data_type)
                scalar = parsed[0]
            else:
                value, data_type = self._file.constants[column.logical.name]
                scalar = pa.scalar(value, to_arrow_type(data_type)).cast(arrow)
            self._scalars[place] = scalar
        return self._scalars[place]

    def _constant_values(self, place: int, row_count: int) -> pa.Array:
        """The column's constant in each of the rows. All batches of the file share one array, which is sliced to their length."""
        array = self._constant_arrays.get(place)
        if array is None or len(array) < row_count:
            array = self._constant_arrays[place] = _repeat(self._scalar(place), row_count)
        return array.slice(0, row_count)

    # ------------------------------------------------------------ the column _metadata

    def _make_metadata(self, column: ScanColumn, rows: BatchRows) -> pa.Array:
        """The struct `_metadata`, with the fields that the scan requests."""
        assert isinstance(column.logical.data_type, StructType)
        children = [
            self._make_metadata_field(f.name, rows).cast(to_arrow_type(f.data_type)) for f in column.logical.data_type.fields
        ]
        target = to_arrow_type(column.logical.data_type)
        return pa.Array.from_buffers(target, len(rows), [None], 0, children=children)

    def _make_metadata_field(self, name: str, rows: BatchRows) -> pa.Array:
        """The values of one field of `_metadata`, not yet in its declared type."""
        file = self._file
        match name:
            case "file_path":
                return _repeat(pa.scalar(self._file_uri()), len(rows))
            case "file_name":
                return _repeat(pa.scalar(self._file_uri().rpartition("/")[2]), len(rows))
            case "file_size":
                return _repeat(pa.scalar(file.size_bytes, pa.int64()), len(rows))
            case "file_modification_time":
                return _repeat(pa.scalar(file.modification_time_ms * 1000, pa.timestamp("us", "UTC")), len(rows))
            case "file_number":
                return _repeat(pa.scalar(file.number, pa.int32()), len(rows))
            case "row_index":
                return rows.indexes()
            case "row_id":
                base = file.base_row_id
                # The id of a row that was never moved; null if the file has no base id.
                values_from_log = pa.nulls(len(rows), pa.int64()) if base is None else pc.add(rows.indexes(), base)
                return self._tracking_values(name, rows, values_from_log)
            case "row_commit_version":
                values_from_log = _repeat(pa.scalar(file.default_row_commit_version, pa.int64()), len(rows))
                return self._tracking_values(name, rows, values_from_log)
        raise ValueError(f"no such metadata field: {name}")

    def _file_uri(self) -> str:
        """The URI of the file, in the form of Spark's own file sources."""
        return encode_path(resolve(self._state.store.root, self._file.path))

    def _tracking_values(self, name: str, rows: BatchRows, values_from_log: pa.Array) -> pa.Array:
        """The materialized value for rows that were moved; for all other rows the value that follows from the log."""
        place = self._tracking.get(name)
        return values_from_log if place is None else pc.coalesce(self._stored_values(place, rows), values_from_log)


def _some_value(kind: pa.DataType) -> Any:
    """A value that is not null and has no other meaning, made of zero bytes: 16 are enough for a decimal, the widest type, and
    for the offsets of an empty text. kind: a type of fixed width, text or binary."""
    return pa.Array.from_buffers(kind, 1, [None, *[pa.py_buffer(bytes(16))] * (kind.num_buffers - 1)])[0]


def _repeat(scalar: Any, row_count: int) -> pa.Array:
    return pa.repeat(scalar, row_count) if scalar.is_valid else pa.nulls(row_count, scalar.type)
