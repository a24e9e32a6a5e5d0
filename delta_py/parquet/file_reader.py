"""Reading data files on an executor: one ScanState and some ScanFiles in, Arrow batches of the logical columns out.

A file is decoded in batches, only the requested leaf columns, and only the row groups that may hold requested rows. Each
batch drops its deleted rows, then the rows that the predicate rules out, and only then columns are converted to the
table's types; columns that already have them are not changed. Memory holds a batch and the pages that it comes from.
Protocol: Reader Requirements for Deletion Vectors; Reader Requirements for Column Mapping; Row Tracking.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.errors import DataFileError
from delta_py.parquet.batch_size import BatchSizer, dictionary_bytes
from delta_py.parquet.decode_budget import DecodeBudget
from delta_py.parquet.read_columns import BatchRows, FileColumns, FilePlan, plan_file
from delta_py.parquet.row_filter import LookAhead, make_row_filter
from delta_py.parquet.row_groups import FileSide, Run, find_runs, groups_in_part, make_group_filter, split_run
from delta_py.parquet.row_selection import RowPick, RowSelection, load_selection
from delta_py.parquet.values.buffers import without_views
from delta_py.parquet.values.conform_values import CannotRead
from delta_py.parquet.values.rebase import legacy_calendar
from delta_py.scan.char_padding import padded_chars
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanFile, ScanState
from delta_py.storage.arrow_files import expect_ranges, is_prefetching
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.parquet_ranges import column_ranges
from delta_py.storage.store import ObjectInfo
from delta_py.types.schema import LONG, StructField, StructType, to_arrow_schema

_log = logging.getLogger("delta_py")

# Up to this size the column chunks of a file are read whole, which is a little faster. Larger chunks are read through one buffer
# per column.
_WHOLE_CHUNKS_BYTES = 16 * 1024 * 1024
_BUFFERS_BYTES = 16 * 1024 * 1024
# At most this many bytes of a remote file are fetched in addition to the row group being decoded. The limit is large, because
# each request takes time, however little it reads.
_AHEAD_BYTES = 64 * 1024 * 1024
_MOST_MATCHING_SHARE = 0.8  # if at least this share of the rows matches, the others are not dropped unless they must be
_RECENT_PLANS = 8  # plans for schemas of recent files that are retained


def read_files(
    state: ScanState, files: Iterable[ScanFile], *, use_threads: bool = False, budget: DecodeBudget | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of the files, file after file, and within a file in the file's order.

    use_threads: decode columns in parallel. budget: None for no limit.
    Every batch has exactly the schema that to_arrow_schema returns for the logical fields of state.columns; batches without
    rows are left out. If a file lacks a column, its values are null, even if the table declares it not null.
    Raises DataFileError for a file that is missing, cannot be decoded or does not match the table's types,
    DeletionVectorError, ExpressionError for a predicate that cannot be evaluated, if state.drop_rows, and OverBudgetError.
    """
    reader = ScanReader(state, use_threads, budget)
    for file in files:
        yield from reader.read(file)


class ScanReader:
    """Reads the files of one scan, one by one. It holds everything that is the same for all files. The parameters are those of
    read_files.

    `_columns` are all columns that are read, in this order: the output columns, those of the predicate, and the materialized row
    tracking columns. A column's place is its index there. `_counted_places`: the places of the columns that the query only counts
    (count(column)), so that only the presence of a value matters.
    """

    def __init__(self, state: ScanState, use_threads: bool = False, budget: DecodeBudget | None = None) -> None:
        self._state, self._store, self._use_threads, self._budget = state, state.store, use_threads, budget
        self._objects = CachedObjects.of(state.store, state.table_id)
        self._tracking = _tracking_columns(state)
        self._columns = (*state.columns, *state.filter_columns, *self._tracking.values())
        self._char_types = [padded_chars(column.logical) for column in self._columns]
        self._schema = to_arrow_schema(StructType(tuple(column.logical for column in state.columns)))
        self._row_filter = make_row_filter(state, self._columns)
        self._group_filter = make_group_filter(state, self._columns)
        self._counted_places = [place for place, column in enumerate(state.columns) if column.logical.name in state.counted]
        # Looking ahead decodes only the predicate's columns, so a row has another size then.
        self._sizer, self._look_ahead_sizer = (BatchSizer(state.batch_rows, state.batch_bytes) for _ in range(2))
        self._look_ahead = LookAhead()
        self._plans: list[FilePlan] = []
        self._has_warned = False

    def read(self, file: ScanFile) -> Iterator[pa.RecordBatch]:
        """The rows of one file, in batches. A missing file is skipped if the scan allows it. Raises as read_files."""
        has_begun = False
        try:
            with _errors_naming(file), contextlib.ExitStack() as stack:
                for batch in self._read_rows(file, self._open_file(file, stack)):
                    has_begun = True
                    yield batch
        except FileNotFoundError as error:
            # A file cannot be skipped any more if some of its rows were already returned.
            if has_begun or not self._state.ignore_missing_files:
                raise _missing_file_error(file, self._state) from error
            self._warn_of_missing(file)

    def _warn_of_missing(self, file: ScanFile) -> None:
        """Only the first missing file gets a warning: there may be very many."""
        if self._has_warned:
            return
        _log.warning(
            "Data file %s of table %s is missing and skipped, as ignoreMissingFiles asks. "
            "More missing files of this task are skipped without a message.",
            file.path,
            self._store.root,
        )
        self._has_warned = True

    def _open_file(self, file: ScanFile, stack: contextlib.ExitStack) -> _DataFile:
        """Open a data file; `stack` closes it. If the footer of a remote file is in the cache, this sends no request: if the file
        is missing, the first read of it fails."""
        info = ObjectInfo(file.path, file.size_bytes, file.modification_time_ms)
        footer = self._objects.footer(info)
        source = stack.enter_context(self._objects.open_data(info, is_size_verified=footer is not None))
        buffer_size = 0  # column chunks are read whole
        if file.size_bytes > _WHOLE_CHUNKS_BYTES and not is_prefetching(source):
            # From 64 KiB to 1 MiB for each column.
            buffer_size = min(1024 * 1024, max(64 * 1024, _BUFFERS_BYTES // max(1, len(self._columns))))
        parquet = pq.ParquetFile(
            source,
            metadata=footer,
            pre_buffer=False,
            buffer_size=buffer_size,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=self._state.verify_checksums,
        )
        return _DataFile(source, stack.enter_context(parquet))

    def _read_rows(self, file: ScanFile, data: _DataFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an open file: choose row groups, decode them, drop deleted rows. A column whose values are only
        counted is not decoded if it has no nulls.
        """
        parquet = data.parquet
        footer = parquet.metadata
        if footer.num_rows == 0:
            return
        plan = self._find_or_make_plan(parquet)
        if self._budget is not None:
            self._budget.spend_on_vectors(file)
        selection = load_selection(self._store, file, footer.num_rows)
        # Places of the columns whose values are only counted, and that have a value in each row of this file.
        undecoded_places = frozenset(place for place in self._counted_places if plan.has_no_nulls(footer, place))
        if undecoded_places:
            plan = plan.restrict_to(parquet, set(range(len(self._columns))) - undecoded_places)
        columns = FileColumns(self._state, self._columns, self._char_types, self._tracking, plan, file, undecoded_places)
        group_mask = groups_in_part(footer, file.part, file.size_bytes)
        if self._group_filter is not None:
            filter_mask = self._group_filter.evaluate(
                footer, FileSide(plan.schema, plan.calendar, plan.matches, columns.constants())
            )
            if filter_mask is not None:
                group_mask = filter_mask if group_mask is None else group_mask & filter_mask
        runs: Iterable[Run] = find_runs(footer, selection, group_mask)
        if self._budget is not None:
            runs = list(runs)  # an iterator, which is also needed below
            self._budget.spend_on_runs(footer, runs, plan.leaves)
        for run in self._matching_runs(file, data, plan, selection, runs):
            for decoded in self._decode(data, plan, run, self._sizer):
                if self._budget is not None:
                    self._budget.spend_on_batch(decoded.row_count, decoded.byte_count)
                pick = selection.pick(decoded.start, decoded.start + decoded.row_count)
                if pick is None or len(pick):
                    batch = self._make_batch(columns, decoded, pick)
                    if batch is not None:
                        yield batch

    def _find_or_make_plan(self, parquet: pq.ParquetFile) -> FilePlan:
        """The plan for files with this schema: a recent plan if possible, because most files of a table have the same schema."""
        calendar = legacy_calendar(parquet.metadata.metadata, self._state.timezone)
        for plan in self._plans:
            if plan.matches_file(parquet, calendar):
                return plan
        plan = plan_file(parquet, self._columns, calendar, by_id=self._state.match_by_id)
        self._plans = [plan, *self._plans[: _RECENT_PLANS - 1]]
        return plan

    def _decode(self, data: _DataFile, plan: FilePlan, run: Run, sizer: BatchSizer) -> Iterator[BatchRows]:
        """Decode a run in parts. Without columns to decode there are only row counts. Arrow decodes nested dictionaries one
        row group at a time.
        """
        if not plan.leaves:
            for start in range(0, run.row_count, self._state.batch_rows):
                yield BatchRows(run.first_row + start, min(self._state.batch_rows, run.row_count - start), None)
            return
        runs = split_run(data.parquet.metadata, run) if plan.has_inner_dictionaries else [run]
        for decoded_run in runs:
            for part in data.fetch_parts(decoded_run, plan.leaves):
                yield from self._decode_part(data.parquet, plan, part, sizer)

    def _decode_part(self, parquet: pq.ParquetFile, plan: FilePlan, run: Run, sizer: BatchSizer) -> Iterator[BatchRows]:
        """Decode a run in batches. Each batch sets the size of the next one. Raises CannotRead if the row groups do not have as
        many rows as the footer says."""
        position, end = run.first_row, run.first_row + run.row_count
        bytes_in_dictionaries = dictionary_bytes(parquet.metadata.row_group(run.groups[0]), plan.text_leaves)
        batches = parquet.reader.iter_batches(
            sizer.start_range(run.row_count, run.byte_count, bytes_in_dictionaries),
            row_groups=list(run.groups),
            column_indices=plan.leaves,
            use_threads=self._use_threads,
        )
        for batch in map(without_views, batches):
            pieces = sizer.split_batch(batch)
            parquet.reader.set_batch_size(sizer.rows)
            for piece in pieces:
                yield BatchRows(position, piece.num_rows, piece)
                position += piece.num_rows
        if position != end:
            raise CannotRead(f"its row groups hold {position - run.first_row} rows where the footer says {run.row_count}")

    def _matching_runs(
        self, file: ScanFile, data: _DataFile, plan: FilePlan, selection: RowSelection, runs: Iterable[Run]
    ) -> Iterator[Run]:
        """The runs or, if that is likely to save work, only those of their row groups in which the predicate may be true for
        some row.

        For matching row groups the predicate's columns are decoded twice. So this is tried only if they are a small part
        of the decoded data, and only as long as it continues to save work.
        """
        look_ahead, parquet, row_filter = self._look_ahead, data.parquet, self._row_filter
        if row_filter is None:
            yield from runs
            return
        if not look_ahead.is_promising(parquet.metadata, plan.leaves_of(row_filter.columns), plan.leaves):
            yield from runs
            return
        predicate_plan = plan.restrict_to(parquet, row_filter.columns)
        columns = FileColumns(self._state, self._columns, self._char_types, self._tracking, predicate_plan, file)
        for run in runs:
            for group in split_run(parquet.metadata, run):
                decoded = self._decode(data, predicate_plan, group, self._look_ahead_sizer)
                if look_ahead.record_match(any(self._may_match(columns, selection, rows) for rows in decoded)):
                    yield group

    def _may_match(self, columns: FileColumns, selection: RowSelection, decoded: BatchRows) -> bool:
        """Whether the predicate is true for one of the decoded rows that are not deleted, or this is not known."""
        assert self._row_filter is not None
        rows = decoded.with_pick(selection.pick(decoded.start, decoded.start + decoded.row_count))
        mask = self._row_filter.evaluate(
            {place: columns.make_column(place, rows) for place in self._row_filter.columns}, len(rows)
        )
        return mask is None or bool(mask.any())

    def _make_batch(self, columns: FileColumns, decoded: BatchRows, pick: RowPick | None) -> pa.RecordBatch | None:
        """The output batch, None if no row remains. pick: the rows that are not deleted; None for all."""
        rows, decoded_arrays = decoded.with_pick(pick), {}
        if self._row_filter is not None:
            decoded_arrays = {place: columns.make_column(place, rows) for place in self._row_filter.columns}
            mask = self._row_filter.evaluate(decoded_arrays, len(rows))
            remaining_count = len(rows) if mask is None else int(mask.sum())
            if remaining_count == 0:
                return None
            # Dropping a few rows costs more than it saves, so rows that do not match are left to the caller if it allows that.
            if mask is not None and (
                remaining_count < len(rows) * _MOST_MATCHING_SHARE or (remaining_count < len(rows) and self._row_filter.must_drop)
            ):
                matching_pick = RowPick.of(mask)
                rows = decoded.with_pick(matching_pick if pick is None else pick.narrowed(mask))
                # The predicate's columns are decoded already: drop rows of those that are part of the output. The columns after
                # the output columns were only read for the predicate.
                output_arrays = {place: array for place, array in decoded_arrays.items() if place < len(self._schema)}
                decoded_arrays = {place: matching_pick.rows_of(array) for place, array in output_arrays.items()}
        places = range(len(self._schema))
        arrays = [decoded_arrays[place] if place in decoded_arrays else columns.make_column(place, rows) for place in places]
        if not arrays:  # a batch without columns that still has its number of rows
            return pa.RecordBatch.from_arrays([pa.nulls(len(rows))], names=[""]).select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


@dataclass(frozen=True, slots=True)
class _DataFile:
    """An open data file. source: the open input, from which `parquet` reads."""

    source: pa.NativeFile
    parquet: pq.ParquetFile

    def fetch_parts(self, run: Run, leaves: Sequence[int]) -> Iterator[Run]:
        """The ranges of a run that are decoded in one go: the run itself for a local file. For a remote file, these are its row
        groups, one by one: the bytes of the following row groups are fetched while the caller decodes one.

        leaves: the Parquet columns to fetch.
        """
        if not is_prefetching(self.source):
            yield run
            return
        footer = self.parquet.metadata
        groups = list(split_run(footer, run))
        ranges = [column_ranges(footer, group.groups, leaves) for group in groups]
        sizes = [sum(length for _, length in group_ranges) for group_ranges in ranges]
        end = 0  # of the row groups that are fetched, or being fetched
        for number, group in enumerate(groups):
            # More is fetched when at most half of the bytes that may be fetched ahead remain to be decoded.
            if end <= number or (end < len(groups) and sum(sizes[number + 1 : end]) <= _AHEAD_BYTES // 2):
                end = _end_of_window(sizes, number)
                expect_ranges(self.source, [part for group_ranges in ranges[number:end] for part in group_ranges])
            yield group


def _end_of_window(sizes: Sequence[int], first: int) -> int:
    """The index after the last row group that is fetched together with the first. sizes: the bytes to fetch of each row group."""
    end, window_bytes = first + 1, 0
    while end < len(sizes) and window_bytes + sizes[end] <= _AHEAD_BYTES:
        window_bytes += sizes[end]
        end += 1
    return end


def _tracking_columns(state: ScanState) -> dict[str, ScanColumn]:
    """The materialized row tracking columns that the metadata columns of the scan need: metadata field (row_id or
    row_commit_version) -> the column in the files."""
    names = {"row_id": state.row_id_column, "row_commit_version": state.row_commit_version_column}
    needed_fields: set[str] = set()
    for column in (*state.columns, *state.filter_columns):
        if column.source is ColumnSource.METADATA and isinstance(column.logical.data_type, StructType):
            needed_fields.update(column.logical.data_type.names)
    stored_columns = {}
    for metadata_field, name in names.items():
        if name is not None and metadata_field in needed_fields:
            stored_field = StructField(name, LONG)
            stored_columns[metadata_field] = ScanColumn(stored_field, stored_field)
    return stored_columns


# ---------------------------------------------------------------- errors


@contextlib.contextmanager
def _errors_naming(file: ScanFile) -> Iterator[None]:
    """Converts decoding errors to errors that name the file. FileNotFoundError is for the caller, which may skip the file;
    MemoryError says nothing about the file."""
    try:
        yield
    except CannotRead as error:
        raise DataFileError(
            f"Data file {file.path} does not go with the table: {error}. Compare the file's schema with the table's; "
            "if another program wrote the file, rewrite it with the table's types.",
            error_class="FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            sql_state="KD001",
            path=file.path,
        ) from error
    except (FileNotFoundError, MemoryError):
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataFileError(
            f"Data file {file.path} cannot be read: {error}. It may be cut short or damaged, or its storage failed. "
            "Restore the file from a backup, or restore the table to a version without it.",
            error_class="FAILED_READ_FILE.NO_HINT",
            sql_state="KD001",
            path=file.path,
        ) from error


def _missing_file_error(file: ScanFile, state: ScanState) -> DataFileError:
    """The error for a missing data file. If the scan is for a commit, it does not advise to skip the file: the commit would
    remove the file's rows from the table for good."""
    cure = (
        "Restore the file from a backup; or, to give its rows up, take it out of the table (FSCK REPAIR TABLE), which allows "
        "the change then. No option lets a change of the table leave missing files out."
        if state.to_write
        else "Restore the file, read a newer version, or skip missing files with the option ignoreMissingFiles=true "
        "(in Python ignore_missing_files=True)."
    )
    return DataFileError(
        f"Data file {file.path} is missing, though the table's log lists it. It was removed by hand, or by VACUUM with a "
        f"retention shorter than this query or version is old. {cure}",
        path=file.path,
    )
