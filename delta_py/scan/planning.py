"""Planning a scan on the driver: which files of a snapshot may hold the rows, and how an executor reads them.

    plan_scan(snapshot, columns, predicate) -> Scan: a ScanState and the files that survive pruning

The files stay an Arrow table. They become ScanFile values where they are read (FileGroup.scan_files), so planning creates
no Python object per file. Files are pruned by partition values and statistics (file_pruner.py), and by the table's indexes
(index/lookup.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.tree import Expression, columns_of
from delta_py.index.lookup import IndexLookup
from delta_py.log.commit_reader import FILE_SCHEMA, ONLY_FOR_COMMITS
from delta_py.log.reconciliation import gather_batches
from delta_py.protocol.column_mapping import to_physical
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_groups import PART_BYTES, PART_START, SELECTION, FileGroup, scan_files
from delta_py.scan.file_pruner import FilePruner, file_bytes, has_path, row_predicate
from delta_py.scan.filtered_columns import FILTERED
from delta_py.scan.packing import Integers, pack_files
from delta_py.scan.scan_state import METADATA_FIELDS, ColumnSource, ScanColumn, ScanFile, ScanState
from delta_py.snapshot import FileBatch, Snapshot
from delta_py.statistics.stats import parse_stats
from delta_py.storage.store import ObjectStore
from delta_py.types.arrow_values import from_numpy
from delta_py.types.schema import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    MapType,
    Path,
    StructField,
    StructType,
    find_path,
)

METADATA_COLUMN = "_metadata"
ROW_ADDRESS = "__pydelta"
"""The struct column of scans for DML: where a row is (number of the file in the plan, position in the file), and its row ids."""

_METADATA_TYPES: Mapping[str, DataType] = {
    "file_number": INTEGER,
    "file_path": STRING,
    "file_name": STRING,
    "file_size": LONG,
    "file_modification_time": TIMESTAMP,
    "row_index": LONG,
    "row_id": LONG,
    "row_commit_version": LONG,
}


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The result of pruning: numbers of files and bytes, of all files (total) and of the files to read (kept). rows_kept: how
    many rows the files to read have, without deleted ones; None if this number is unknown for a file."""

    files_total: int
    bytes_total: int
    files_kept: int
    bytes_kept: int
    rows_kept: int | None = None

    def __str__(self) -> str:
        return f"{self.files_kept:,} of {self.files_total:,} files, {self.bytes_kept:,} of {self.bytes_total:,} bytes"


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned scan. state: how each file is read. files: the files to read, in the log's order: FILE_SCHEMA, without the
    columns that only commits need unless they were requested; or PLANNED_CHANGES (commit_changes.py). ruled_out: of the bytes
    that partition values did not rule out, the share that statistics ruled out, 0 to 1. If it is large, matching rows are stored
    close together."""

    state: ScanState
    files: pa.Table
    report: ScanReport
    ruled_out: float = 0.0

    @property
    def output_schema(self) -> StructType:
        return StructType(tuple(column.logical for column in self.state.columns))

    def paths(self) -> list[str]:
        """The paths of the files, decoded."""
        paths: list[str] = self.files["path"].to_pylist()
        return paths

    def scan_files(self) -> Iterator[ScanFile]:
        for batch in self.files.to_batches(max_chunksize=4096):
            yield from scan_files(batch)

    def pack(self, *, max_group_bytes: int, open_cost_bytes: int, target_groups: int) -> list[FileGroup]:
        """The files in groups, as pack_files builds them."""
        return [FileGroup.of(files) for files in pack_files(self.files, max_group_bytes, open_cost_bytes, target_groups)]

    def cut_files(self, max_part_bytes: int, open_cost_bytes: int, target_groups: int) -> pa.Table:
        """The files, with PART_START and PART_BYTES. A file with more bytes than two groups should have, or than max_part_bytes,
        gets one row for each of its parts. The parts of a file are consecutive, and each is at least open_cost_bytes long.

        Only the file itself contains where row groups begin, so a part may contain none. Files are not split if a job needs whole
        files, such as DML.
        """
        sizes = self.files["size"].to_numpy()
        part_counts = self._part_counts(sizes, max_part_bytes, open_cost_bytes, target_groups)
        # The arrays from here on have one element for each part.
        file_numbers = np.repeat(np.arange(len(sizes)), part_counts)
        first_parts = np.cumsum(part_counts) - part_counts  # for each file, the position of its first part
        number_in_file = np.arange(len(file_numbers)) - np.repeat(first_parts, part_counts)
        size, count = sizes[file_numbers], part_counts[file_numbers]
        start = size // count * number_in_file
        stop = np.where(number_in_file + 1 == count, size, start + size // count)  # the last part gets the remainder
        files = self.files if len(file_numbers) == len(sizes) else self.files.take(pa.array(file_numbers))
        return files.append_column(PART_START, pa.array(start)).append_column(PART_BYTES, pa.array(stop - start))

    def _part_counts(self, sizes: Integers, max_part_bytes: int, open_cost_bytes: int, target_groups: int) -> Integers:
        """The number of parts of each file. The log may contain any size: no file gets more than _MAX_PARTS.

        A file of less than two shares is not cut to make groups equal; it is only cut if it is larger than max_part_bytes. A
        share is the size that each group has if all groups are equal.
        """
        single_parts = np.ones(len(sizes), np.int64)
        if self.state.to_write or _COLUMNS_OF_UNCUT_FILES.intersection(self.files.column_names):
            return single_parts
        total = min(2**62, int(sizes.sum(dtype=np.float64)))  # int64 might overflow: the log may contain any size
        share = max(1, open_cost_bytes, total // max(1, target_groups))
        max_bytes = max(1, open_cost_bytes, max_part_bytes)
        counts: Integers = np.maximum(np.maximum(sizes // share, sizes // max_bytes + (sizes % max_bytes > 0)), single_parts)
        return np.minimum(counts, _MAX_PARTS)


# Files of plans with one of these columns are not cut: DML numbers its files, and change feeds select rows of a file.
_COLUMNS_OF_UNCUT_FILES = frozenset({"number", SELECTION})
_MAX_PARTS = 1_000


# ---------------------------------------------------------------- planning


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to plan a scan.

    metadata_column: offer the column `_metadata`. row_address: offer the column ROW_ADDRESS.
    drop_rows: the scan must drop rows for which the predicate is not true; otherwise it may return some of them.
    timezone: the zone in which partition values of timestamps without an offset are read.
    keep_all: the files carry their statistics, tags, clustering provider and the log's spelling of their paths, for a commit that
    refers to them.
    limit: this number of rows is enough, in any order. Planning stops at the files that surely have them, and the report covers
    the files up to there. It has no effect if rows may be dropped, or files may be missing.
    count_rows: the report has the number of rows, if the log contains it.
    ignore_missing_files: a missing data file is skipped, with a warning. It has no effect if rows are read to be written, because
    a commit would lose the rows for good.
    counted: as in ScanState, but columns of the predicate are left out. to_write: as in ScanState; always set for scans with row
    addresses. verify_checksums: as in ScanState.
    """

    metadata_column: bool = False
    row_address: bool = False
    limit: int | None = None
    drop_rows: bool = False
    ignore_missing_files: bool = False
    timezone: str = "UTC"
    keep_all: bool = False
    count_rows: bool = False
    counted: frozenset[str] = frozenset()
    to_write: bool = False
    verify_checksums: bool = False


def plan_scan(
    snapshot: Snapshot,
    columns: Sequence[str] | StructType | None = None,
    predicate: Expression | None = None,
    options: ScanOptions | None = None,
) -> Scan:
    """Choose the files that may hold rows for which the predicate is true.

    columns: names in the requested order, or a schema whose structs hold only the requested nested fields; None for all.
    predicate: over logical paths of the table's schema; None for all rows.
    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for a column that does not exist, and what
    Snapshot.file_batches raises.
    """
    options = options or ScanOptions()
    state = make_state(snapshot.config, snapshot.store, columns, predicate, options)
    if predicate is not None and not options.keep_all:
        FILTERED.count_filter(snapshot, predicate)
    pruner = FilePruner.of(snapshot.config, predicate, options.timezone)
    omitted_columns = frozenset() if options.keep_all else ONLY_FOR_COMMITS
    # With rows that a predicate drops, or files that may be missing, nobody knows which files have enough rows.
    row_limit = options.limit if state.predicate is None and not state.ignore_missing_files else None
    index = IndexLookup.of(snapshot, state.predicate)
    schema = pa.schema([f for f in FILE_SCHEMA if f.name not in omitted_columns])
    selected_files = _SelectedFiles(schema, row_limit, index)
    leaves, needs_row_counts = pruner.stats_leaves, options.count_rows or row_limit is not None
    batches = snapshot.file_batches(stats_leaves=leaves, want_whole=options.keep_all, want_records=needs_row_counts)
    if predicate is not None and not options.keep_all:
        # Evaluating a predicate costs most per batch, so fewer batches are faster.
        batches = gather_batches(batches, schema.names)
    for batch in batches:
        selected_files.add(batch, *pruner.prune_and_measure_partitions(batch))
        if selected_files.are_enough:
            break
    return selected_files.to_scan(state)


NUMBERED_FILE_SCHEMA = FILE_SCHEMA.append(pa.field("number", pa.int32()))


def plan_listed_files(
    config: TableConfig,
    store: ObjectStore,
    files: Iterable[pa.RecordBatch],
    columns: StructType,
    predicate: Expression | None,
    options: ScanOptions,
) -> Scan:
    """plan_scan for files that are already chosen. files: NUMBERED_FILE_SCHEMA."""
    state = make_state(config, store, columns, predicate, options)
    pruner = FilePruner.of(config, predicate, options.timezone)
    selected_files = _SelectedFiles(pa.schema([f for f in NUMBERED_FILE_SCHEMA if f.name not in ONLY_FOR_COMMITS]), None)
    for batch in files:
        file_batch = FileBatch(batch, parse_stats(batch["stats"], pruner.stats_leaves))
        selected_files.add(file_batch, *pruner.prune_and_measure_partitions(file_batch))
    return selected_files.to_scan(state)


class _SelectedFiles:
    """Collects the files that a plan keeps, batch by batch.

    schema: the schema of the list of these files. row_limit: the number of rows that is enough; None for all rows. index: the
    table's indexes, if they can rule out files. They are checked last, by `to_scan`.
    """

    def __init__(self, schema: pa.Schema, row_limit: int | None, index: IndexLookup | None = None) -> None:
        assert row_limit is None or index is None, "rows would be counted of files that are left out"
        self._schema, self._row_limit, self._index = schema, row_limit, index
        self._batches: list[pa.RecordBatch] = []
        self._row_counts: list[pa.Array] = []
        self._files_total = self._bytes_total = self._rows = 0
        self._bytes_in_partitions = self._bytes_in_bounds = 0

    @property
    def are_enough(self) -> bool:
        """Whether the files so far surely have row_limit rows."""
        return self._row_limit is not None and self._rows >= self._row_limit

    def add(self, batch: FileBatch, pruned: FileBatch, bytes_in_partitions: int) -> None:
        """Add the files that pruning left. batch: the files before pruning. pruned, bytes_in_partitions: the result of
        FilePruner.prune_and_measure_partitions."""
        self._files_total += batch.files.num_rows
        self._bytes_total += file_bytes(batch.files)
        self._bytes_in_partitions += bytes_in_partitions
        self._bytes_in_bounds += file_bytes(pruned.files)
        files, rows = pruned.files, pruned.live_rows()
        if self._row_limit is not None:
            # Keep files until they surely have enough rows. A file without a row count counts as having none.
            cumulative_rows = np.cumsum(rows.fill_null(0).to_numpy())
            stop = int(np.searchsorted(cumulative_rows, self._row_limit - self._rows)) + 1
            if stop < files.num_rows:
                first_files = from_numpy(np.arange(stop))
                files, rows = files.take(first_files), rows.take(first_files)  # a slice would keep the whole batch in memory
        self._rows += pc.sum(rows).as_py() or 0
        if files.num_rows:
            self._batches.append(files.select(self._schema.names))
            self._row_counts.append(rows)

    def to_scan(self, state: ScanState) -> Scan:
        """The scan of the collected files, after the index has ruled out files too."""
        table = pa.Table.from_batches(self._batches, schema=self._schema)
        rows = pa.chunked_array(self._row_counts, pa.int64())
        if self._index is not None:
            may_match = self._index.find_possible_matches(table)
            table, rows = table.filter(may_match), rows.filter(may_match)
        rows_kept = None if rows.null_count else pc.sum(rows).as_py() or 0
        report = ScanReport(self._files_total, self._bytes_total, table.num_rows, file_bytes(table), rows_kept)
        ruled_out = self._bytes_in_partitions - self._bytes_in_bounds
        return Scan(state, table, report, ruled_out / max(1, self._bytes_in_partitions))


def make_state(
    config: TableConfig,
    store: ObjectStore,
    columns: Sequence[str] | StructType | None,
    predicate: Expression | None,
    options: ScanOptions,
    extra: tuple[ScanColumn, ...] = (),
) -> ScanState:
    """The ScanState of a scan over one table state; `extra` are columns beyond the table's (change data feed)."""
    columns_by_name = {column.logical.name: column for column in extra}
    if options.metadata_column and METADATA_COLUMN not in config.schema.names:  # a column of the table comes first
        columns_by_name[METADATA_COLUMN] = metadata_scan_column()
    if options.row_address:
        columns_by_name[ROW_ADDRESS] = row_address_column()
    output_fields = _requested_fields(config.schema, columns, columns_by_name)
    scan_columns = tuple(_scan_column(config, columns_by_name, f) for f in output_fields)
    remaining_predicate = row_predicate(config, predicate)
    to_write = options.to_write or options.row_address
    state = ScanState(
        store=store,
        columns=scan_columns,
        filter_columns=_filter_columns(config, columns_by_name, scan_columns, remaining_predicate),
        match_by_id=config.column_mapping_mode == "id",
        predicate=remaining_predicate,
        drop_rows=options.drop_rows and remaining_predicate is not None,
        counted=options.counted
        - ({path[0] for path in columns_of(remaining_predicate)} if remaining_predicate is not None else set()),
        ignore_missing_files=options.ignore_missing_files and not to_write,
        timezone=options.timezone,
        to_write=to_write,
        table_id=config.metadata.id,
        verify_checksums=options.verify_checksums or to_write,
    )
    return replace(
        state,
        row_id_column=config.properties.get("delta.rowTracking.materializedRowIdColumnName"),
        row_commit_version_column=config.properties.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
    )


def metadata_scan_column() -> ScanColumn:
    """The column `_metadata`, as Spark offers it to users."""
    return _metadata_struct(METADATA_COLUMN, METADATA_FIELDS)


def row_address_column() -> ScanColumn:
    """The column ROW_ADDRESS."""
    return _metadata_struct(ROW_ADDRESS, ("file_number", "row_index", "row_id", "row_commit_version"))


def _metadata_struct(name: str, fields: Sequence[str]) -> ScanColumn:
    """A struct column that is made from the file and the row's position, not read. fields: names in _METADATA_TYPES."""
    struct = StructType(tuple(StructField(field_name, _METADATA_TYPES[field_name]) for field_name in fields))
    column = StructField(name, struct, nullable=False)
    return ScanColumn(column, column, ColumnSource.METADATA)


def _requested_fields(
    schema: StructType, columns: Sequence[str] | StructType | None, columns_by_name: Mapping[str, ScanColumn]
) -> list[StructField]:
    """The table's fields (with their metadata), reduced to the requested columns. columns: None for all. columns_by_name: special
    columns beyond the table's, such as `_metadata`."""
    all_columns = StructType((*schema.fields, *(c.logical for name, c in columns_by_name.items() if schema.find(name) is None)))
    if columns is None:
        return list(all_columns.fields)
    if isinstance(columns, StructType):
        return list(select_requested_fields(all_columns, columns).fields)
    return [find_path(all_columns, (name,))[0] for name in columns]


def select_requested_fields(schema: StructType, requested: StructType) -> StructType:
    """`schema` with only the columns and struct fields that `requested` has, at any depth, in `requested`'s order.

    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for one that does not exist.
    """
    return StructType(tuple(_select_fields(find_path(schema, (f.name,))[0], f) for f in requested.fields))


def _select_fields(column: StructField, requested_column: StructField) -> StructField:
    """The table's column with only the requested struct fields."""
    return replace(column, data_type=_select_fields_of_type(column.data_type, requested_column.data_type))


def _select_fields_of_type(table_type: DataType, requested_type: DataType) -> DataType:
    """The table's type with only the requested struct fields; the table's own type where the two have different shapes."""
    match table_type, requested_type:
        case StructType(), StructType():
            return select_requested_fields(table_type, requested_type)
        case ArrayType(), ArrayType():
            return replace(table_type, element_type=_select_fields_of_type(table_type.element_type, requested_type.element_type))
        case MapType(), MapType():
            key, value = (
                _select_fields_of_type(table_type.key_type, requested_type.key_type),
                _select_fields_of_type(table_type.value_type, requested_type.value_type),
            )
            return replace(table_type, key_type=key, value_type=value)
    return table_type


def _scan_column(config: TableConfig, columns_by_name: Mapping[str, ScanColumn], column: StructField) -> ScanColumn:
    """Where the values of a column come from: special columns, partition values or data."""
    special = columns_by_name.get(column.name)
    if special is not None:
        return ScanColumn(column, column, special.source)
    source = ColumnSource.PARTITION if column.name in config.partition_columns else ColumnSource.DATA
    return ScanColumn(column, to_physical(column, config.column_mapping_mode), source)


def _filter_columns(
    config: TableConfig, columns_by_name: Mapping[str, ScanColumn], columns: tuple[ScanColumn, ...], predicate: Expression | None
) -> tuple[ScanColumn, ...]:
    """Columns that the predicate needs and the output lacks. If the output has a struct without a field that the predicate needs,
    the struct is read a second time, with the predicate's fields."""
    if predicate is None:
        return ()
    output = StructType(tuple(column.logical for column in columns))
    paths = columns_of(predicate)
    missing_columns = {path[0] for path in paths if not has_path(output, path)}
    whole_columns = {
        name: columns_by_name[name].logical if name in columns_by_name else find_path(config.schema, (name,))[0]
        for name in missing_columns
    }
    needed_fields = [_select_paths(whole_columns[name], paths) for name in sorted(missing_columns)]
    return tuple(_scan_column(config, columns_by_name, f) for f in needed_fields)


def _select_paths(column: StructField, paths: frozenset[Path]) -> StructField:
    """The column with only the nested fields on one of the paths, which start with the column's name. A column that a path names
    itself remains whole."""
    inner_paths = frozenset(path[1:] for path in paths if path[0] == column.name)
    if () in inner_paths or not isinstance(column.data_type, StructType):
        return column
    fields = [f for f in column.data_type.fields if any(path[0] == f.name for path in inner_paths)]
    return replace(column, data_type=StructType(tuple(_select_paths(f, inner_paths) for f in fields)))
