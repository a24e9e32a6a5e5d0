"""Change data feed: the rows that changed between two versions, planned as a scan of files.

    scan = plan_changes(store, starting_version=3, ending_version=7)     # read like any other Scan

Every row has the table's columns and _change_type (insert, delete, update_preimage, update_postimage), _commit_version,
_commit_timestamp. commit_changes.py finds the changes of one commit.
Protocol: Change Data Files; Reader Requirements for AddCDCFile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.changes.commit_changes import (
    CHANGED_FILES,
    PLACE,
    PLANNED_CHANGES,
    CommitChanges,
    CommitFacts,
    read_actions,
)
from delta_py.changes.schema_changes import why_incompatible
from delta_py.changes.spilling_file_list import collect_batches
from delta_py.errors import ChangeDataFeedError, InvalidOptionError, LogFileNotFoundError, TimestampOutOfRangeError
from delta_py.expressions.tree import Expression
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import CommitTime, commit_at_timestamp, commit_times, time_text, version_at_timestamp
from delta_py.log.segment import LogFile, list_commits
from delta_py.protocol.actions import Metadata
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.scan.file_groups import CHANGE_FIELDS, CHANGE_TYPE, COMMIT_VERSION
from delta_py.scan.file_pruner import FilePruner, file_bytes
from delta_py.scan.planning import Scan, ScanOptions, ScanReport, make_state
from delta_py.scan.scan_state import ColumnSource, ScanColumn
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import parse_stats
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType

# The columns that the feed adds. Their values are constants of each file, except the type of change in change files.
CHANGE_COLUMNS = tuple(ScanColumn(f, f, ColumnSource.CONSTANT) for f in CHANGE_FIELDS)
# The files of commits may have times that decrease from version to version. Then commit_times adjusts them so that they increase.
# So the time of a commit depends on the commits before it, and the times of this many of them are read too.
UNORDERED_COMMITS = 100
_THREADS = 8
# The statistics of this many changed files are parsed at a time.
_PRUNED_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The range of versions whose changes are read. first, last: versions, both inclusive; `last` is requested_last, limited to
    the newest version. If there is no change, `last` is below `first`. latest_snapshot: the newest version. read_snapshot: the
    version whose schema the rows get. start_snapshot: the version `first`; None if there is no change."""

    first: int
    last: int
    requested_last: int
    latest_snapshot: Snapshot
    read_snapshot: Snapshot
    start_snapshot: Snapshot | None

    @property
    def is_empty(self) -> bool:
        return self.start_snapshot is None


def changes_schema(
    store: ObjectStore,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp_ms: int | None = None,
    ending_timestamp_ms: int | None = None,
    allow_out_of_range: bool = False,
) -> StructType:
    """The columns of the changes: the table's columns, then the three of the feed.

    They are those of the newest version, or of the last version of the range if the table has or had column mapping.
    Raises as plan_changes does for bounds that do not form a range.
    """
    bounds = _resolve_bounds(
        store, starting_version, ending_version, starting_timestamp_ms, ending_timestamp_ms, allow_out_of_range=allow_out_of_range
    )
    return StructType((*bounds.read_snapshot.schema.fields, *CHANGE_FIELDS))


def plan_changes(
    store: ObjectStore,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp_ms: int | None = None,
    ending_timestamp_ms: int | None = None,
    allow_out_of_range: bool = False,
    columns: Sequence[str] | StructType | None = None,
    predicate: Expression | None = None,
    options: ScanOptions | None = None,
) -> Scan:
    """The files that hold the changes of all versions from start to end, both inclusive.

    One starting bound is required; a time means the first commit at or after it. Without an ending bound, or with an
    ending_version after the newest version, the newest version ends the range. An ending time means the last commit at or before
    it. Times are ms since 1970.
    allow_out_of_range: a start after the newest version or after ending_version gives no changes, and an ending time after the
    newest version means the newest version; without it, each of these is an error.
    columns, predicate: they may name the columns of changes_schema. options: by default, rows for which the predicate is not
    true are dropped.
    Raises ChangeDataFeedError: DELTA_NO_START_FOR_CDC_READ, DELTA_CDC_START_VERSION_AFTER_LATEST,
    DELTA_INVALID_CDC_RANGE, DELTA_MISSING_CHANGE_DATA if the feed was off for a version of the range, and
    DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE; TimestampOutOfRangeError; LogFileNotFoundError for missing commits.
    """
    options = options or ScanOptions(drop_rows=True)
    bounds = _resolve_bounds(
        store, starting_version, ending_version, starting_timestamp_ms, ending_timestamp_ms, allow_out_of_range=allow_out_of_range
    )
    state = make_state(bounds.read_snapshot.config, bounds.read_snapshot.store, columns, predicate, options, CHANGE_COLUMNS)
    pruner = ChangePruner.of(bounds.read_snapshot.config, predicate, options.timezone)
    file_count = size_bytes = 0

    def pruned_batches() -> Iterator[pa.RecordBatch]:
        nonlocal file_count, size_bytes
        for changed_files in [] if bounds.is_empty else _changed_files(store, bounds):
            file_count, size_bytes = file_count + changed_files.num_rows, size_bytes + file_bytes(changed_files)
            yield from pruner.prune(changed_files)

    files = collect_batches(pruned_batches(), PLANNED_CHANGES)
    return Scan(state, files, ScanReport(file_count, size_bytes, files.num_rows, file_bytes(files)))


# ---------------------------------------------------------------- the range


def _resolve_bounds(
    store: ObjectStore,
    first: int | None,
    last: int | None,
    first_ms: int | None,
    last_ms: int | None,
    *,
    allow_out_of_range: bool,
) -> _Bounds:
    """The range as versions, also if the bounds are times (first_ms, last_ms). If no commit is in the range, the range ends at
    first - 1. Raises as plan_changes."""
    _check_bounds(first, last, first_ms, last_ms)
    latest = Snapshot.load(store)
    if first is None:
        assert first_ms is not None
        first = first_version_from(store, first_ms, latest, or_after_latest=allow_out_of_range)
    # The range is empty. If the end is a time, its version is not known yet; it is compared below.
    if allow_out_of_range and first > (latest.version if last is None else min(last, latest.version)):
        return _Bounds(first, first - 1, first - 1, latest, latest, None)
    if first > latest.version:
        raise ChangeDataFeedError(
            f"Start version {first} for change data feed exceeds the latest table version {latest.version}. "
            "Start at or before it.",
            error_class="DELTA_CDC_START_VERSION_AFTER_LATEST",
            sql_state="22003",
            start_version=first,
            latest_version=latest.version,
        )
    if last is None and last_ms is not None:
        last = version_at_timestamp(store, last_ms, latest.config, or_last=allow_out_of_range)
        if first_ms is not None and first_ms <= last_ms and last == first - 1:
            return _Bounds(first, last, last, latest, latest, None)  # both times lie between two commits
    requested_last = latest.version if last is None else last
    if requested_last < first:
        raise ChangeDataFeedError(
            f"The change data feed range from version {first} to version {requested_last} ends before it starts. Swap the "
            "bounds.",
            error_class="DELTA_INVALID_CDC_RANGE",
            sql_state="22003",
            start_version=first,
            end_version=requested_last,
        )
    return _choose_read_schema(store, first, min(requested_last, latest.version), requested_last, latest)


def _check_bounds(first: int | None, last: int | None, first_ms: int | None, last_ms: int | None) -> None:
    """Raise unless there is one start and at most one end."""
    if first is None and first_ms is None:
        raise ChangeDataFeedError(
            "A change data feed read needs a start: give startingVersion or startingTimestamp.",
            error_class="DELTA_NO_START_FOR_CDC_READ",
            sql_state="42601",
        )
    for version, timestamp_ms, side in ((first, first_ms, "starting"), (last, last_ms, "ending")):
        if version is not None and timestamp_ms is not None:
            raise InvalidOptionError(
                f"Give {side}Version or {side}Timestamp, not both.",
                error_class="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
                sql_state="42613",
            )
        if version is not None and version < 0:
            raise InvalidOptionError(f"{side}Version is {version}; versions start at 0.", option=f"{side}Version")


def first_version_from(store: ObjectStore, timestamp_ms: int, latest: Snapshot, *, or_after_latest: bool = False) -> int:
    """The version of the first commit at or after a time in ms since 1970. latest: the newest snapshot.

    or_after_latest: a time after the newest version means the version after the newest one; without it, such a time raises
    TimestampOutOfRangeError.
    """
    commit = commit_at_timestamp(store, timestamp_ms, latest.config, recreatable=False)
    if commit.timestamp_ms >= timestamp_ms:
        return commit.version
    if commit.version < latest.version or or_after_latest:
        return commit.version + 1
    raise TimestampOutOfRangeError(
        f"The time {time_text(timestamp_ms)} is after the latest version of the table at {store.root}: version "
        f"{commit.version} of {time_text(commit.timestamp_ms)}. No change is that new: start at or before it.",
        timestamp_ms=timestamp_ms,
        latest_version=commit.version,
        latest_timestamp_ms=commit.timestamp_ms,
    )


def _choose_read_schema(store: ObjectStore, first: int, last: int, requested_last: int, latest: Snapshot) -> _Bounds:
    """Complete the bounds: the rows get the schema of the last version if the table has or had column mapping, and otherwise the
    newest schema."""

    def snapshot_at(version: int) -> Snapshot:
        return latest if version == latest.version else Snapshot.load(store, version)

    start, end = snapshot_at(first), snapshot_at(last)
    is_mapped = any(snapshot.config.column_mapping_mode != "none" for snapshot in (start, end, latest))
    return _Bounds(first, last, requested_last, latest, end if is_mapped else latest, start)


# ---------------------------------------------------------------- the changes of each commit


def _changed_files(store: ObjectStore, bounds: _Bounds) -> Iterator[pa.Table]:
    """Yield the files to read, as tables of CHANGED_FILES: each for one commit or several consecutive ones. Raises
    ChangeDataFeedError if the feed was off in a version, or a version's rows cannot be read with the schema of the read."""
    assert bounds.start_snapshot is not None
    config = bounds.start_snapshot.config
    _check_feed_is_on(config, bounds.first, bounds)
    times = {time.version: time.timestamp_ms for time in _commit_times_of_range(store, bounds)}
    reader = CommitReader(store)
    with ThreadPoolExecutor(_THREADS, "delta_py-changes") as pool:
        for actions in read_actions(reader, _commits_of_range(store, bounds)):
            for commit in actions.commits:
                config = _config_after(config, commit, bounds)
            yield CommitChanges(store, pool, times, frozenset(config.physical_partition_columns)).find_changed_files(actions)
    # The first version is checked last: if a commit in the range changes the schema, the error names that commit.
    _check_schema(bounds.start_snapshot.metadata, bounds.first, bounds)


def _commits_of_range(store: ObjectStore, bounds: _Bounds) -> list[LogFile]:
    """The commits of the range, ascending. Raises LogFileNotFoundError if one is missing."""
    commits = list_commits(store, bounds.first, bounds.last)
    versions = {commit.version for commit in commits}
    missing = next((version for version in range(bounds.first, bounds.last + 1) if version not in versions), None)
    if missing is not None:
        raise LogFileNotFoundError(
            f"The changes of version {missing} of the table at {store.root} are gone: its commit is no longer in the log. "
            "Start at a later version.",
            version=missing,
        )
    return commits


def _commit_times_of_range(store: ObjectStore, bounds: _Bounds) -> list[CommitTime]:
    """The times of the commits in the range, and perhaps of some before it. If all commits of the table have in-commit
    timestamps, no commit before the range is needed (see UNORDERED_COMMITS)."""
    config = bounds.latest_snapshot.config
    always_stamped = config.enabled("inCommitTimestamp") and "delta.inCommitTimestampEnablementVersion" not in config.properties
    start = bounds.first if always_stamped else max(0, bounds.first - UNORDERED_COMMITS)
    return commit_times(store, config, start, bounds.last)


def _config_after(config: TableConfig, commit: CommitFacts, bounds: _Bounds) -> TableConfig:
    """The table's configuration after a commit. config: before the commit. Raises if the table may not be read, the feed is off,
    or the schema is not compatible with the read."""
    protocol, metadata, version = commit.protocol, commit.metadata, commit.version
    if protocol is None and metadata is None:
        return config
    config = TableConfig(protocol or config.protocol, metadata or config.metadata)
    config.require(Operation.READ)
    _check_feed_is_on(config, version, bounds)
    if metadata is not None and version > bounds.first:  # _changed_files checks the schema of the first version
        _check_schema(metadata, version, bounds)
    return config


def _check_feed_is_on(config: TableConfig, version: int, bounds: _Bounds) -> None:
    """Raises ChangeDataFeedError if the change data feed was off in this version."""
    if config.enabled("delta.enableChangeDataFeed"):
        return
    raise ChangeDataFeedError(
        f"Error getting change data for range [{bounds.first} , {bounds.requested_last}] as change data was not "
        f"recorded for version [{version}]. The table property delta.enableChangeDataFeed has to be true from the first "
        "version of the range to the last. Choose a range in which it was.",
        error_class="DELTA_MISSING_CHANGE_DATA",
        sql_state="KD002",
        start_version=bounds.first,
        end_version=bounds.requested_last,
        version=version,
    )


def _check_schema(metadata: Metadata, version: int, bounds: _Bounds) -> None:
    """Raises ChangeDataFeedError for a version whose rows cannot be read with the schema of the read."""
    reason = why_incompatible(metadata, bounds.read_snapshot.metadata)
    if reason is None:
        return
    error_suffix = "SCHEMA_CHANGE" if version > bounds.first else "DATA_SCHEMA"
    raise ChangeDataFeedError(
        f"Changes of versions {bounds.first} to {bounds.requested_last} cannot be read with the schema of version "
        f"{bounds.read_snapshot.version}: since version {version} more happened than that columns were added ({reason}). Read "
        "the versions before the change of the schema and those from it on apart.",
        error_class=f"DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_{error_suffix}",
        sql_state="0AKDC",
        start_version=bounds.first,
        end_version=bounds.requested_last,
        read_version=bounds.read_snapshot.version,
        incompatible_version=version,
        reason=reason,
    )


# ---------------------------------------------------------------- pruning


@dataclass(frozen=True, slots=True)
class ChangePruner:
    """Drops files in which no row can satisfy a predicate: by partition values, by the feed's columns, by statistics.

    The parts of the predicate that these values decide are evaluated only here, so every file must pass through here.
    of_data_files: knows all three columns of the feed for each file. of_change_files: knows the version and the time only,
    because the rows of a change file have different change types.
    """

    of_data_files: FilePruner
    of_change_files: FilePruner

    @classmethod
    def of(cls, config: TableConfig, predicate: Expression | None, timezone: str) -> ChangePruner:
        """The pruner for a predicate on the changes of a table. predicate: over the table's columns and those of the feed; None
        for all rows."""
        fields = {f.name: f for f in CHANGE_FIELDS}
        data_file_pruner = FilePruner.of(config, predicate, timezone, fields)
        del fields[CHANGE_TYPE]
        return cls(data_file_pruner, FilePruner.of(config, predicate, timezone, fields))

    def prune(self, changed_files: pa.Table) -> Iterator[pa.RecordBatch]:
        """PLANNED_CHANGES: the remaining rows of CHANGED_FILES, in their order."""
        if self.of_data_files.predicate is None:
            yield from changed_files.select(PLANNED_CHANGES.names).to_batches()
            return
        is_change_file = pc.is_null(changed_files[CHANGE_TYPE])
        change_files = _files_with_possible_matches(self.of_change_files, changed_files.filter(is_change_file))
        data_files = _files_with_possible_matches(self.of_data_files, changed_files.filter(pc.invert(is_change_file)))
        retained_files = pa.concat_tables([change_files, data_files])
        if change_files.num_rows and data_files.num_rows:
            retained_files = retained_files.sort_by([(COMMIT_VERSION, "ascending"), (PLACE, "ascending")])
        yield from retained_files.select(PLANNED_CHANGES.names).to_batches()


def _files_with_possible_matches(pruner: FilePruner, changed_files: pa.Table) -> pa.Table:
    """The changed files that may have rows for which the predicate is true, as CHANGED_FILES."""
    batches = []
    for batch in changed_files.to_batches(max_chunksize=_PRUNED_AT_ONCE):
        stats = parse_stats(batch["stats"], pruner.stats_leaves) if pruner.stats_leaves else None
        batches.append(pruner.prune(batch, stats))
    return pa.Table.from_batches(batches, CHANGED_FILES)
