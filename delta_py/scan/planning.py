"""Planning a scan on the driver: which files of a snapshot may hold the rows, and how an executor reads them.

    plan_scan(snapshot, columns, predicate) -> Scan: a ScanState and the files that survive pruning

The files stay an Arrow table; they become ScanFile values where they are read (FileGroup.scan_files), so planning costs
no Python object per file. Pruning is by partition values, by statistics, and by the table's indexes (index/lookup.py); what is
unknown keeps the file.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, SchemaMismatchError
from delta_py.expressions.tree import Column, Expression, columns_of, conjunction, conjuncts, transform_columns
from delta_py.index.lookup import IndexLookup
from delta_py.log.reader import FILE_SCHEMA, ONLY_FOR_COMMITS, PARTITION_VALUES_TYPE
from delta_py.log.reconciliation import gathered
from delta_py.protocol.actions import AddFile
from delta_py.protocol.arrow_values import all_false, all_true, scalar
from delta_py.protocol.column_mapping import physical_path, to_physical
from delta_py.protocol.partition_values import malformed, malformed_value, parse_partition_values
from delta_py.protocol.schema import (
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
from delta_py.protocol.stats import FileStats, parse_stats, unknown_stats
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.char_padding import ends_in_char, pad, padded_chars
from delta_py.scan.file_groups import PART_BYTES, PART_START, SELECTION, FileGroup, bytes_to_read, scan_files
from delta_py.scan.filtered_columns import FILTERED
from delta_py.scan.scan_state import METADATA_FIELDS, ColumnSource, ScanColumn, ScanFile, ScanState
from delta_py.snapshot import FileBatch, Snapshot
from delta_py.storage.store import ObjectStore

METADATA_COLUMN = "_metadata"
ROW_ADDRESS = "__pydelta"
"""The struct column of scans for DML: where a row is (number of the file in the plan, position in it), and its row ids."""

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

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What pruning kept: numbers of files and their bytes, of how many. rows_kept: rows that are not deleted, where the plan
    has learned them of all files."""

    files_total: int
    bytes_total: int
    files_kept: int
    bytes_kept: int
    rows_kept: int | None = None

    def __str__(self) -> str:
        return f"{self.files_kept:,} of {self.files_total:,} files, {self.bytes_kept:,} of {self.bytes_total:,} bytes"


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned scan. files, in the log's order: FILE_SCHEMA, without what only commits need unless it was asked for; or
    PLANNED_CHANGES (commit_changes.py). ruled_out: of the bytes that partition values left, the share that bounds of columns
    ruled out, 0 to 1. Where it is large, rows that match lie beside one another."""

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

    def pack(self, *, max_group_bytes: int, open_cost_bytes: int, wanted_groups: int) -> list[FileGroup]:
        """The files in groups, as pack_files makes them."""
        return [FileGroup.of(files) for files in pack_files(self.files, max_group_bytes, open_cost_bytes, wanted_groups)]

    def cut_files(self, max_part_bytes: int, open_cost_bytes: int, wanted_groups: int) -> pa.Table:
        """The files, with PART_START and PART_BYTES: a row for each part of those that have more bytes than two groups should
        have, or than max_part_bytes. The parts of a file follow one another, and each is at least open_cost_bytes long.

        Where row groups begin only the file says, so a part may have none. Files are whole where jobs need them so, as for DML.
        """
        sizes = self.files["size"].to_numpy()
        counts = self._parts(sizes, max_part_bytes, open_cost_bytes, wanted_groups)
        whole = np.repeat(np.arange(len(sizes)), counts)
        number = np.arange(len(whole)) - np.repeat(np.cumsum(counts) - counts, counts)
        size, count = sizes[whole], counts[whole]
        start = size // count * number
        stop = np.where(number + 1 == count, size, start + size // count)
        files = self.files if len(whole) == len(sizes) else self.files.take(pa.array(whole))
        return files.append_column(PART_START, pa.array(start)).append_column(PART_BYTES, pa.array(stop - start))

    def _parts(self, sizes: Integers, max_part_bytes: int, open_cost_bytes: int, wanted_groups: int) -> Integers:
        """Of each file how many. A log may say any size: no file has more than _MOST_PARTS."""
        one = np.ones(len(sizes), np.int64)
        if self.state.to_write or _NEEDED_WHOLE.intersection(self.files.column_names):
            return one
        total = min(2**62, int(sizes.sum(dtype=np.float64)))
        share = max(1, open_cost_bytes, total // max(1, wanted_groups))
        most = max(1, open_cost_bytes, max_part_bytes)
        counts: Integers = np.maximum(np.maximum(sizes // share, sizes // most + (sizes % most > 0)), one)
        return np.minimum(counts, _MOST_PARTS)


_NEEDED_WHOLE = frozenset({"number", SELECTION})
_MOST_PARTS = 1_000


def pack_files(files: pa.Table, max_group_bytes: int, open_cost_bytes: int, wanted_groups: int) -> list[pa.Table]:
    """Split a scan's files, or parts of them (Scan.cut_files), into groups of about equal bytes, in order, at least one each.

    A group holds at most max_group_bytes (a larger file stands alone), counting open_cost_bytes for each file; wanted_groups come
    out, or a file each, when the table is small. [] when there is no file.
    """
    sizes = bytes_to_read(files).to_numpy() + open_cost_bytes
    bounds = _group_bounds(sizes, max(1, wanted_groups), max(1, max_group_bytes)) if len(sizes) else ()
    return [files.slice(start, stop - start) for start, stop in bounds]


def _group_bounds(sizes: Integers, wanted: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut positions of `wanted` runs of about equal sums, or more, so that no sum is above `limit` but of one element."""
    ends = np.cumsum(sizes)
    total = max(1, int(ends[-1]))
    wanted = max(wanted, -(-total // limit))
    # An element belongs to the run into which its middle falls.
    numbers = ((ends - sizes / 2) * (wanted / total)).astype(np.int64)
    for start, last in equal_runs(numbers):
        yield from cut(ends, start, last, limit)


def equal_runs(numbers: Integers) -> Iterator[tuple[int, int]]:
    """Where equal neighbours begin and end. numbers: rising from 0 or later."""
    return pairwise([*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)])


def cut(ends: Integers, start: int, last: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut the elements start to last (not included) into runs of sums of at most `limit`, or of one element. ends: cumulative
    sums of all elements."""
    while start < last:
        before = int(ends[start - 1]) if start else 0
        stop = min(last, max(start + 1, int(np.searchsorted(ends, before + limit, side="right"))))
        yield start, stop
        start = stop


# ---------------------------------------------------------------- planning


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """metadata_column: offer `_metadata`. drop_rows: the scan itself must drop rows for which the predicate is not true.
    timezone: in which partition values of timestamps without an offset are read. keep_all: the files carry their statistics,
    tags, clustering provider and the log's spelling of their paths, for a commit that speaks of them. row_address: offer
    ROW_ADDRESS. limit: so many rows are enough, whichever they are: planning stops at the files that surely have them, and the
    report speaks of the files up to there. Without effect where rows may be dropped, or files may be missing. count_rows: the
    report says how many rows there are, where the log knows it. counted: as in ScanState, but for columns of the predicate.
    to_write: as in ScanState; scans with row addresses are so by themselves."""

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


def plan_scan(
    snapshot: Snapshot,
    columns: Sequence[str] | StructType | None = None,
    predicate: Expression | None = None,
    options: ScanOptions | None = None,
) -> Scan:
    """Choose the files that may hold rows for which the predicate is true.

    columns: names in the order wanted, or a schema whose structs hold only the nested fields wanted; None for all.
    predicate: over logical paths of the table's schema; None for all rows.
    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for a column that is not there.
    """
    options = options or ScanOptions()
    state = make_state(snapshot.config, snapshot.store, columns, predicate, options)
    if predicate is not None and not options.keep_all:
        FILTERED.note(snapshot, predicate)
    pruner = FilePruner.of(snapshot.config, predicate, options.timezone)
    dropped = frozenset() if options.keep_all else ONLY_FOR_COMMITS
    wanted = options.limit if state.predicate is None and not options.ignore_missing_files else None
    index = IndexLookup.of(snapshot, state.predicate)
    schema = pa.schema([f for f in FILE_SCHEMA if f.name not in dropped])
    kept_files = _KeptFiles(schema, wanted, index)
    leaves, counted = pruner.stats_leaves, options.count_rows or wanted is not None
    batches = snapshot.file_batches(stats_leaves=leaves, want_whole=options.keep_all, want_records=counted)
    for batch in batches if predicate is None or options.keep_all else gathered(batches, schema.names):
        kept_files.add(batch, *pruner.pruned_from(batch))
        if kept_files.are_enough:
            break
    return kept_files.scan(state)


NUMBERED_FILE_SCHEMA = FILE_SCHEMA.append(pa.field("number", pa.int32()))


def plan_given(
    config: TableConfig,
    store: ObjectStore,
    files: Iterable[pa.RecordBatch],
    columns: StructType,
    predicate: Expression | None,
    options: ScanOptions,
) -> Scan:
    """plan_scan of files that were chosen before. files: NUMBERED_FILE_SCHEMA."""
    state = make_state(config, store, columns, predicate, options)
    pruner = FilePruner.of(config, predicate, options.timezone)
    kept_files = _KeptFiles(pa.schema([f for f in NUMBERED_FILE_SCHEMA if f.name not in ONLY_FOR_COMMITS]), None)
    for batch in files:
        file_batch = FileBatch(batch, parse_stats(batch["stats"], pruner.stats_leaves))
        kept_files.add(file_batch, *pruner.pruned_from(file_batch))
    return kept_files.scan(state)


class _KeptFiles:
    """The files that a plan keeps, batch by batch. wanted: rows that are enough; None for all. index: has the last word."""

    def __init__(self, schema: pa.Schema, wanted: int | None, index: IndexLookup | None = None) -> None:
        assert wanted is None or index is None, "rows would be counted of files that are left out"
        self._schema, self._wanted, self._index = schema, wanted, index
        self._batches: list[pa.RecordBatch] = []
        self._row_counts: list[pa.Array] = []
        self._files_total = self._bytes_total = self._rows = 0
        self._bytes_in_partitions = self._bytes_in_bounds = 0

    @property
    def are_enough(self) -> bool:
        return self._wanted is not None and self._rows >= self._wanted

    def add(self, batch: FileBatch, pruned: FileBatch, bytes_in_partitions: int) -> None:
        self._files_total += batch.files.num_rows
        self._bytes_total += file_bytes(batch.files)
        self._bytes_in_partitions += bytes_in_partitions
        self._bytes_in_bounds += file_bytes(pruned.files)
        files, rows = pruned.files, pruned.live_rows()
        if self._wanted is not None:
            # Up to the first file with which there surely are so many rows.
            ends = np.cumsum(rows.fill_null(0).to_numpy())
            stop = int(np.searchsorted(ends, self._wanted - self._rows)) + 1
            files, rows = files.slice(0, stop), rows.slice(0, stop)
        self._rows += pc.sum(rows).as_py() or 0
        if files.num_rows:
            self._batches.append(files.select(self._schema.names))
            self._row_counts.append(rows)

    def scan(self, state: ScanState) -> Scan:
        table = pa.Table.from_batches(self._batches, schema=self._schema)
        rows = pa.chunked_array(self._row_counts, pa.int64())
        if self._index is not None:
            is_kept = self._index.keeps(table)
            table, rows = table.filter(is_kept), rows.filter(is_kept)
        rows_kept = None if rows.null_count else pc.sum(rows).as_py() or 0
        report = ScanReport(self._files_total, self._bytes_total, table.num_rows, file_bytes(table), rows_kept)
        ruled_out = self._bytes_in_partitions - self._bytes_in_bounds
        return Scan(state, table, report, ruled_out / max(1, self._bytes_in_partitions))


def file_bytes(files: pa.RecordBatch | pa.Table) -> int:
    """The sum of `size`."""
    return int(pc.sum(files["size"]).as_py() or 0)


def make_state(
    config: TableConfig,
    store: ObjectStore,
    columns: Sequence[str] | StructType | None,
    predicate: Expression | None,
    options: ScanOptions,
    extra: tuple[ScanColumn, ...] = (),
) -> ScanState:
    """The ScanState of a scan over one table state; `extra` are columns beyond the table's (change data feed)."""
    known = {column.logical.name: column for column in extra}
    if options.metadata_column:
        known[METADATA_COLUMN] = metadata_scan_column()
    if options.row_address:
        known[ROW_ADDRESS] = row_address_column()
    wanted = _wanted_fields(config.schema, columns, known)
    scan_columns = tuple(_scan_column(config, known, f) for f in wanted)
    left = row_predicate(config, predicate)
    state = ScanState(
        store=store,
        columns=scan_columns,
        filter_columns=_filter_columns(config, known, scan_columns, left),
        match_by_id=config.column_mapping_mode == "id",
        predicate=left,
        drop_rows=options.drop_rows and left is not None,
        counted=options.counted - ({path[0] for path in columns_of(left)} if left is not None else set()),
        ignore_missing_files=options.ignore_missing_files,
        timezone=options.timezone,
        to_write=options.to_write or options.row_address,
    )
    return replace(
        state,
        row_id_column=config.properties.get("delta.rowTracking.materializedRowIdColumnName"),
        row_commit_version_column=config.properties.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
    )


def metadata_scan_column() -> ScanColumn:
    return _from_the_plan(METADATA_COLUMN, METADATA_FIELDS)


def row_address_column() -> ScanColumn:
    return _from_the_plan(ROW_ADDRESS, ("file_number", "row_index", "row_id", "row_commit_version"))


def _from_the_plan(name: str, fields: Sequence[str]) -> ScanColumn:
    struct = StructType(tuple(StructField(inner, _METADATA_TYPES[inner]) for inner in fields))
    whole = StructField(name, struct, nullable=False)
    return ScanColumn(whole, whole, ColumnSource.METADATA)


def _wanted_fields(
    schema: StructType, columns: Sequence[str] | StructType | None, known: Mapping[str, ScanColumn]
) -> list[StructField]:
    """The table's own fields (with their metadata), cut down to what was asked for."""
    everything = StructType((*schema.fields, *(c.logical for name, c in known.items() if schema.find(name) is None)))
    if columns is None:
        return list(everything.fields)
    if isinstance(columns, StructType):
        return list(cut_to(everything, columns).fields)
    return [find_path(everything, (name,))[0] for name in columns]


def cut_to(schema: StructType, wanted: StructType) -> StructType:
    """`schema` with only the columns and struct fields that `wanted` has, at any depth, in `wanted`'s order.

    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for one that is not there.
    """
    return StructType(tuple(_prune(find_path(schema, (f.name,))[0], f) for f in wanted.fields))


def _prune(column: StructField, wanted: StructField) -> StructField:
    return replace(column, data_type=_prune_type(column.data_type, wanted.data_type))


def _prune_type(table_type: DataType, wanted: DataType) -> DataType:
    match table_type, wanted:
        case StructType(), StructType():
            return cut_to(table_type, wanted)
        case ArrayType(), ArrayType():
            return replace(table_type, element_type=_prune_type(table_type.element_type, wanted.element_type))
        case MapType(), MapType():
            key, value = _prune_type(table_type.key_type, wanted.key_type), _prune_type(table_type.value_type, wanted.value_type)
            return replace(table_type, key_type=key, value_type=value)
    return table_type


def _scan_column(config: TableConfig, known: Mapping[str, ScanColumn], column: StructField) -> ScanColumn:
    special = known.get(column.name)
    if special is not None:
        return ScanColumn(column, column, special.source)
    source = ColumnSource.PARTITION if column.name in config.partition_columns else ColumnSource.DATA
    return ScanColumn(column, to_physical(column, config.column_mapping_mode), source)


# ---------------------------------------------------------------- predicates


def row_predicate(config: TableConfig, predicate: Expression | None) -> Expression | None:
    """What is left for rows once whole files were decided by their partition values."""
    if predicate is None:
        return None
    from delta_py.expressions.skipping import is_exact_on_partitions  # a process that only reads rows would pay for it

    partitions = frozenset((name,) for name in config.partition_columns)
    left = tuple(part for part in conjuncts(predicate) if not is_exact_on_partitions(part, partitions))
    return conjunction(left) if left else None


def _filter_columns(
    config: TableConfig, known: Mapping[str, ScanColumn], columns: tuple[ScanColumn, ...], predicate: Expression | None
) -> tuple[ScanColumn, ...]:
    """Columns that the predicate needs and the output lacks. A struct of which the output has other fields is read for
    the predicate once more, with the predicate's fields."""
    if predicate is None:
        return ()
    output = StructType(tuple(column.logical for column in columns))
    paths = columns_of(predicate)
    lacking = {path[0] for path in paths if not has_path(output, path)}
    lacking_columns = {name: known[name].logical if name in known else find_path(config.schema, (name,))[0] for name in lacking}
    needed = [_only_paths(lacking_columns[name], paths) for name in sorted(lacking)]
    return tuple(_scan_column(config, known, f) for f in needed)


def has_path(schema: StructType, path: Path) -> bool:
    try:
        find_path(schema, path)
    except SchemaMismatchError:
        return False
    return True


def _only_paths(column: StructField, paths: frozenset[Path]) -> StructField:
    """The field with only the nested fields on one of the paths (which start with its name)."""
    inner = {path[1:] for path in paths if path[0] == column.name}
    if () in inner or not isinstance(column.data_type, StructType):
        return column
    wanted = frozenset(inner)
    fields = [f for f in column.data_type.fields if any(path[0] == f.name for path in wanted)]
    return replace(column, data_type=StructType(tuple(_only_paths(f, wanted) for f in fields)))


@dataclass(frozen=True, slots=True)
class FilePruner:
    """Decides which files may hold rows for which a predicate is true. Everything in it is by physical path.

    same_in_file: columns of the list of files that hold, under their names, the one value that all rows of a file have."""

    predicate: Expression | None
    partition_fields: Mapping[Path, StructField] = field(default_factory=dict)
    stats_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    timezone: str = "UTC"
    same_in_file: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: TableConfig,
        predicate: Expression | None,
        timezone: str = "UTC",
        same_in_file: Mapping[str, StructField] | None = None,
    ) -> FilePruner:
        """timezone: as of ScanOptions. same_in_file: columns that are none of the table's."""
        if predicate is None:
            return cls(None)
        from delta_py.expressions.skipping import columns_with_stats

        mode, schema, same = config.column_mapping_mode, config.schema, dict(same_in_file or {})
        pruning = conjunction(tuple(part for part in conjuncts(predicate) if _prunable(schema, part, same)))
        named = [path for path in columns_of(pruning) if path[0] not in same]
        fields = {physical_path(schema, path, mode): find_path(schema, path) for path in named}
        partitions = {physical_path(schema, (name,), mode) for name in config.partition_columns}
        telling = {path: along[-1].data_type for path, along in fields.items() if not ends_in_char(along)}
        paths = {path: physical_path(schema, path, mode) for path in named}
        physical = transform_columns(pruning, lambda path: Column(paths.get(path, path)))
        return cls(
            physical,
            {path: along[0] for path, along in fields.items() if path in partitions},
            {path: telling[path] for path in columns_with_stats(physical) if path in telling and path not in partitions},
            timezone,
            tuple(sorted({path[0] for path in columns_of(pruning)} & same.keys())),
        )

    def prune(self, files: pa.RecordBatch, stats: FileStats | None) -> pa.RecordBatch:
        return self.pruned(FileBatch(files, stats)).files

    def pruned(self, batch: FileBatch) -> FileBatch:
        """The files that may hold such a row, with their statistics.

        Raises CorruptTableError (CAST_INVALID_INPUT) for a file whose partition value in a column of the predicate is no value of
        the column's type: whether its rows match is unknown, also to those who take whole files by the partition alone.
        """
        return batch if self.predicate is None else batch.filter(self.keeps(batch))

    def pruned_from(self, batch: FileBatch) -> tuple[FileBatch, int]:
        """As pruned, and of how many bytes that partition values left. Raises as pruned."""
        if self.predicate is None:
            return batch, file_bytes(batch.files)
        values = self._sound_partition_values(batch.files)
        pruned = batch.filter(self._mask(self.predicate, batch.files, batch.stats, values))
        if not values:
            return pruned, file_bytes(batch.files)
        if not self.stats_leaves:
            return pruned, file_bytes(pruned.files)
        in_partitions = self._mask(self.predicate, batch.files, None, values)
        return pruned, file_bytes(batch.files.select(["size"]).filter(in_partitions))

    def keeps(self, batch: FileBatch) -> pa.BooleanArray:
        """True for each file that may hold such a row, never null. Raises as pruned."""
        if self.predicate is None:
            return all_true(batch.files.num_rows)
        return self._mask(self.predicate, batch.files, batch.stats, self._sound_partition_values(batch.files))

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each file of a commit whether it may hold such a row; one with a partition value that is none may hold any."""
        if self.predicate is None or not adds:
            return [True] * len(adds)
        partitions = pa.array([list(add.partition_values.items()) for add in adds], PARTITION_VALUES_TYPE)
        stats = parse_stats(pa.array([add.stats for add in adds], pa.string()), self.stats_leaves)
        files = pa.record_batch({"partition_values": partitions})
        values, unknown = self._partition_values(files)
        answers: list[bool] = pc.or_(self._mask(self.predicate, files, stats, values), unknown).to_pylist()
        return answers

    def _sound_partition_values(self, files: pa.RecordBatch) -> dict[Path, pa.Array]:
        """Raises as pruned."""
        values, unknown = self._partition_values(files)
        if pc.any(unknown).as_py():
            raise self._malformed(files.filter(unknown).slice(0, 1))
        return values

    def _partition_values(self, files: pa.RecordBatch) -> tuple[dict[Path, pa.Array], pa.BooleanArray]:
        """Typed values by path, and which files have one that is no value of its column's type."""
        values: dict[Path, pa.Array] = {}
        unknown = all_false(files.num_rows)
        for path, column in self.partition_fields.items():
            texts = partition_texts(files, path[0])
            values[path] = typed_partition_values(texts, column, self.timezone)
            unknown = pc.or_(unknown, malformed(texts, values[path]))
        return values, unknown

    def _malformed(self, file: pa.RecordBatch) -> CorruptTableError:
        """The error of one such file."""
        for path, column in self.partition_fields.items():
            texts = partition_texts(file, path[0])
            if malformed(texts, typed_partition_values(texts, column, self.timezone))[0].as_py():
                return malformed_value(file["path"][0].as_py(), column.name, texts[0].as_py(), column.data_type)
        raise AssertionError("no partition value of the file is malformed")

    def _mask(
        self, predicate: Expression, files: pa.RecordBatch, stats: FileStats | None, values: Mapping[Path, pa.Array]
    ) -> pa.BooleanArray:
        from delta_py.expressions.skipping import keep_mask

        same: dict[Path, pa.Array] = {(name,): files[name] for name in self.same_in_file}
        return keep_mask(predicate, stats or unknown_stats(files.num_rows), {**values, **same})


def partition_texts(files: pa.RecordBatch, physical_name: str) -> pa.Array:
    return pc.map_lookup(files["partition_values"], scalar(physical_name, pa.string()), "first")


def typed_partition_values(texts: pa.Array, column: StructField, timezone: str) -> pa.Array:
    """As rows have them; null for a text that is no value of the type too (malformed says which)."""
    return pad(parse_partition_values(texts, column.data_type, timezone=timezone, errors="null"), padded_chars(column))


def _prunable(schema: StructType, part: Expression, same_in_file: Container[str]) -> bool:
    """Whether a file can say something of every column of the conjunct; it says nothing of `_metadata`."""
    return all(path[0] in same_in_file or has_path(schema, path) for path in columns_of(part))
