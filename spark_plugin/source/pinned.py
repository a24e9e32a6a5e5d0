"""The content that a DataFrame reads, fixed when the DataFrame is made.

    pinned = pin(options)              # in the process that returns the schema
    pinned.schema                      # the columns on offer
    pinned.plan(columns, predicate)    # in another process, any number of times: the same version each time

A pinned value pickles to some KB: file names of the log, protocol and metadata, but no list of data files. Planning does not look
up protocol and metadata again, but it lists the version's own commit, because another table may be there by then
(Snapshot.check_log).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_py.checkpoint.leases import Lease
from delta_py.definition.detail import detail_rows
from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.tree import And, Expression
from delta_py.protocol.identity_columns import is_equal_ignoring_marks
from delta_py.protocol.paths import LogKind
from delta_py.scan.planning import (
    METADATA_COLUMN,
    Scan,
    ScanOptions,
    metadata_scan_column,
    plan_listed_files,
    plan_scan,
    row_address_column,
)
from delta_py.scan.time_travel import named_version
from delta_py.snapshot import Snapshot, replaced_table_error
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, find_path
from spark_plugin.options import read_limits
from spark_plugin.options.read_options import ChangeRange, ReadOptions
from spark_plugin.source.view_source import VIEW_SCHEMAS, history_rows

if TYPE_CHECKING:
    from delta_py.scan.log_answers import Question


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at one version.

    snapshot: this version; with the option followLatest, the version from which Spark took the columns, while each read
    takes the newest version. schema: the columns that Spark sees in the DataFrame: all that a query can request (`everything`),
    unless options.columns names some."""

    options: ReadOptions
    snapshot: Snapshot
    schema: StructType

    @property
    def everything(self) -> StructType:
        """All columns that a query can request, whatever options.columns names."""
        return _columns_on_offer(self.options, self.snapshot)

    def with_metadata_column(self) -> PinnedTable:
        """Return the same table, with `_metadata` among the columns that `plan` and `answer` know.

        Raises UnsupportedOperationError if the table has a column of this name, even one that is not on offer here.
        """
        if self.snapshot.schema.find(METADATA_COLUMN) is not None:
            raise UnsupportedOperationError(
                f"The table at {self.snapshot.table_root} has a column {METADATA_COLUMN} of its own, which this read leaves out. "
                f"It hides what {METADATA_COLUMN} says of files and rows elsewhere. Rename the column to have that.",
                path=self.snapshot.table_root,
            )
        return replace(self, options=replace(self.options, metadata_column=True))

    def plan(
        self,
        columns: StructType,
        predicate: Expression | None,
        limit: int | None = None,
        *,
        count_rows: bool = False,
        is_exact: bool = False,
        counted: frozenset[str] = frozenset(),
    ) -> Scan:
        """Return the files to read. The predicate is combined with the filter of the options.

        limit: this many rows are enough, whichever they are. count_rows: the report must contain the row count, as it does for
        tables with a small log. is_exact: the tasks leave out rows for which the predicate is not true; otherwise Spark does.
        counted: columns for which only the presence of a value matters; tasks need not decode the values.
        """
        snapshot, full_predicate = self._version_and_predicate(predicate)
        if self.options.files is not None:
            return self._plan_files(self.options.files, columns, full_predicate)
        settings = scan_options(self.options)
        settings = replace(
            settings,
            metadata_column=self.options.metadata_column,
            limit=limit,
            count_rows=count_rows or _has_small_log(snapshot),
            drop_rows=settings.drop_rows or is_exact,
            counted=counted,
        )
        return plan_scan(snapshot, columns, full_predicate, settings)

    def answer(self, question: Question, predicate: Expression | None) -> pa.Table | None:
        """Return what the log says about the rows that `plan` would read, or None if the log does not say it exactly."""
        if self.options.files is not None:
            return None  # these rows come from files that a DML operation has chosen, and the log describes all files
        from delta_py.scan.log_answers import answer_from_log  # few scans need it

        snapshot, full_predicate = self._version_and_predicate(predicate)
        return answer_from_log(snapshot, question, full_predicate, scan_options(self.options))

    def has_few_groups(self, by: Sequence[str], predicate: Expression | None) -> bool:
        """Return whether rows grouped by these columns likely form few groups. Then it pays to aggregate in the tasks that
        read."""
        from delta_py.scan.group_estimate import has_few_groups  # few scans need it

        snapshot, full_predicate = self._version_and_predicate(predicate)
        return has_few_groups(snapshot, by, full_predicate, scan_options(self.options).timezone)

    def with_snapshot_cache(self) -> PinnedTable:
        """Return the same table, with a snapshot that caches what it reads of the log."""
        from delta_py.cached_snapshots import CachedSnapshot  # only the driver's Python lives long enough to use a cache

        return replace(self, snapshot=CachedSnapshot.of(self.snapshot))

    def lease(self) -> Lease | None:
        """Return a lease that tells VACUUM about the read, if the options ask for one."""
        return _lease(self.options, self.snapshot.store, self.snapshot.version)

    def _plan_files(self, file_list: str, columns: StructType, predicate: Expression | None) -> Scan:
        """Plan the files that a DML operation has chosen. file_list: the path of an Arrow stream that lists these files: an
        absolute path on this machine, or a path in the table. The rows get the address that DML needs to delete them."""
        settings = replace(scan_options(self.options), row_address=True, metadata_column=self.options.metadata_column)
        is_local = os.path.isabs(file_list)
        with pa.OSFile(file_list, "rb") if is_local else self.snapshot.store.open_input(file_list) as source:
            files = pa.ipc.open_stream(source)
            return plan_listed_files(self.snapshot.config, self.snapshot.store, files, columns, predicate, settings)

    def _version_and_predicate(self, predicate: Expression | None) -> tuple[Snapshot, Expression | None]:
        """Return the version to read, and the predicate combined with the filter of the options."""
        snapshot = self._newest_snapshot() if self.options.follow_latest else self.snapshot
        return snapshot, with_filter(self.options, _columns_on_offer(self.options, snapshot), predicate)

    def _newest_snapshot(self) -> Snapshot:
        """Load the newest version. Raises SchemaMismatchError if it does not have the columns for which Spark made the query."""
        pinned, newest = self.snapshot, type(self.snapshot).load(self.snapshot.store)
        if newest.metadata.id != pinned.metadata.id or not is_equal_ignoring_marks(newest.schema, pinned.schema):
            raise SchemaMismatchError(
                f"The table at {pinned.table_root} changed its schema, or was replaced, between version {pinned.version}, for "
                f"which this DataFrame was made, and version {newest.version}, the newest. Load it again.",
                error_class="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                sql_state="KD007",
                version=pinned.version,
                newest=newest.version,
            )
        return newest


@dataclass(frozen=True, slots=True)
class PinnedChanges:
    """A change feed with a fixed end. table_id: from the table's metadata; `plan` compares it to notice that another table has
    replaced this one. range: the bounds of the feed, versions or times. everything: all columns that a query can request.
    schema: the columns that Spark sees in the DataFrame; fewer than `everything` if options.columns names some."""

    options: ReadOptions
    table_id: str
    range: ChangeRange
    everything: StructType
    schema: StructType

    def plan(
        self, columns: StructType, predicate: Expression | None, limit: int | None = None, *, count_rows: bool = False
    ) -> Scan:
        """Return the files that contain the changes. limit, count_rows: not used here, as changes have no statistics."""
        from delta_py.changes.change_feed import plan_changes  # few reads are of changes

        store = self.options.open_store()
        if Snapshot.load(store).metadata.id != self.table_id:
            raise replaced_table_error(store.root, "this DataFrame was made")
        return plan_changes(
            store,
            **self.range.bounds,
            columns=columns,
            predicate=with_filter(self.options, self.everything, predicate),
            options=scan_options(self.options),
        )

    def lease(self) -> Lease | None:
        """Return a lease on the version before the first change and all later versions; None if the options ask for none.

        VACUUM keeps what commits after the version of a lease removed or wrote, and the first change is such a commit."""
        if self.options.lease_seconds is None:
            return None
        from delta_py.changes.change_feed import first_version_from

        store, first_version = self.options.open_store(), self.range.starting_version
        if first_version is None:
            assert self.range.starting_timestamp_ms is not None, "a feed has a start"
            first_version = first_version_from(
                store,
                self.range.starting_timestamp_ms,
                Snapshot.load(store),
                or_after_latest=self.range.allow_out_of_range,
            )
        return _lease(self.options, store, max(0, first_version - 1))


@dataclass(frozen=True, slots=True)
class PinnedView:
    """A table's history, or its detail at one version, as a DataFrame. Making it checks only that the table exists; `rows` reads
    the rows when Spark plans the read."""

    options: ReadOptions
    snapshot: Snapshot

    @property
    def schema(self) -> StructType:
        return VIEW_SCHEMAS[self.options.view]

    def rows(self) -> pa.Table:
        """Read the rows: one for each commit, or the only one of the detail."""
        if self.options.view == "history":
            return history_rows(self.snapshot.store, self.options.view_limit)
        return detail_rows(self.snapshot)


Pinned = PinnedTable | PinnedChanges | PinnedView


def pin(options: ReadOptions, snapshots: type[Snapshot] = Snapshot) -> Pinned:
    """Fix what a DataFrame reads. snapshots: the class that loads a version of the table: one that caches, or Snapshot itself.

    Raises the errors of Snapshot.load; SchemaMismatchError for a column in options.columns that does not exist;
    InvalidOptionError for a version both in the path and in the options.
    """
    options = _resolve_suffix(options)
    store = options.open_store()
    if options.changes is not None:
        return _pin_changes(options, store, options.changes)
    snapshot = snapshots.load(store, version=options.version, timestamp_ms=options.timestamp_ms)
    if options.view != "table":
        return PinnedView(options, snapshot)
    return PinnedTable(options, snapshot, selected(options, _columns_on_offer(options, snapshot)))


def _pin_changes(options: ReadOptions, store: ObjectStore, change_range: ChangeRange) -> PinnedChanges:
    """Fix the end of a change feed: if the options name no end, it is the newest version at the time of the call."""
    # For a start after the newest version the end stays open, so that changes_schema raises the error about that start.
    # If the options allow such a start, there is no error, and the end is fixed as usual.
    newest = Snapshot.load(store)
    is_open = change_range.ending_version is None and change_range.ending_timestamp_ms is None
    starts_later = change_range.starting_version is not None and change_range.starting_version > newest.version
    if is_open and (change_range.allow_out_of_range or not starts_later):
        change_range = replace(change_range, ending_version=newest.version)
    from delta_py.changes.change_feed import changes_schema

    everything = changes_schema(store, **change_range.bounds)
    return PinnedChanges(options, newest.metadata.id, change_range, everything, selected(options, everything))


def _resolve_suffix(options: ReadOptions) -> ReadOptions:
    """Split `path@v12` into its parts, unless a table exists at exactly this path."""
    path_version = named_version(options.path, options.session.time_zone, options.storage)
    if path_version is None:
        return options
    if options.version is not None or options.timestamp_ms is not None or options.changes is not None or options.follow_latest:
        raise InvalidOptionError(
            f"The path {options.path} names a version, and so do the options. Leave one of them out.",
            error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            sql_state="42613",
            path=options.path,
        )
    return replace(options, path=path_version.path, version=path_version.version, timestamp_ms=path_version.timestamp_ms)


def _columns_on_offer(options: ReadOptions, snapshot: Snapshot) -> StructType:
    """Return all columns that a query can request. Files that a DML operation has chosen have the address of each row too."""
    columns = offered(options, snapshot.schema)
    return columns if options.files is None else StructType((*columns.fields, row_address_column().logical))


def _lease(options: ReadOptions, store: ObjectStore, version: int) -> Lease | None:
    """Return a lease on a version and all later ones, which tells VACUUM to keep their files; None if the options ask for
    none."""
    return None if options.lease_seconds is None else Lease(store, version, options.lease_seconds)


# ---------------------------------------------------------------- options of every read, also of streams


def offered(options: ReadOptions, columns: StructType) -> StructType:
    """Return the columns that a query can request: these, and `_metadata` if the options request it."""
    return StructType((*columns.fields, metadata_scan_column().logical)) if options.metadata_column else columns


def selected(options: ReadOptions, columns: StructType) -> StructType:
    """Return the columns on offer that options.columns names. Raises SchemaMismatchError for one that does not exist."""
    if options.columns is None:
        return columns
    return StructType(tuple(find_path(columns, (name,))[0] for name in options.columns))


def scan_options(options: ReadOptions) -> ScanOptions:
    """Return all scan options except `_metadata`, which not every kind of read has."""
    return ScanOptions(
        drop_rows=options.filter is not None,
        ignore_missing_files=options.ignore_missing_files,
        verify_checksums=options.verify_checksums,
        timezone=options.session.time_zone,
    )


def with_filter(options: ReadOptions, columns: StructType, predicate: Expression | None) -> Expression | None:
    """Return a predicate that is true where the option `filter` and the predicate of Spark are; None if there is neither.
    columns: those that the filter may name. Raises the errors of parse_predicate."""
    if options.filter is None:
        return predicate
    from delta_py.expressions.parse import parse_predicate  # a plain read should not pay for the import of sqlglot

    parsed = parse_predicate(options.filter, columns, session_timezone=options.session.time_zone)
    return parsed if predicate is None else And((parsed, predicate))


def _has_small_log(snapshot: Snapshot) -> bool:
    """Return whether the listed files of the log have at most SMALL_LOG_BYTES. A V2 checkpoint may have sidecars, and the listing
    does not show their size, so such a log counts as large."""
    checkpoint = snapshot.segment.checkpoint
    is_listed = checkpoint is None or checkpoint.kind is not LogKind.CHECKPOINT_V2
    return is_listed and snapshot.segment.size_bytes <= read_limits.SMALL_LOG_BYTES
