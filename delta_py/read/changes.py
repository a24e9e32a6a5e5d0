"""Change data feed: which rows changed between two versions, planned as a scan of files.

    scan = plan_changes(store, starting_version=3, ending_version=7)     # read like any other Scan

Every row has the table's columns and _change_type (insert, delete, update_preimage, update_postimage), _commit_version,
_commit_timestamp. A commit's change files are read where it has any; else its changes follow from the data files that it
added and removed: a file that was removed and added again in one commit changed the rows that its deletion vectors differ in.
Protocol: Change Data Files; Add CDC File; Reader Requirements for AddCDCFile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from delta_py.errors import (
    ChangeDataFeedError,
    DeletionVectorError,
    InvalidOptionError,
    LogFileNotFoundError,
    TimestampOutOfRangeError,
)
from delta_py.expressions.skipping import columns_with_stats, keep_mask
from delta_py.expressions.tree import Column, Expression, columns_of, conjunction, conjuncts, transform_columns
from delta_py.log.history import CommitTime, commit_at_timestamp, commit_times, time_text, version_at_timestamp
from delta_py.log.reader import CommitReader
from delta_py.log.segment import LogFile, list_commits
from delta_py.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from delta_py.protocol.column_mapping import physical_name, physical_path
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, read_deletion_vector
from delta_py.protocol.schema import LONG, STRING, TIMESTAMP, DataType, Path, StructField, StructType, find_path, to_arrow_type
from delta_py.protocol.stats import parse_stats
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.read.scan import Scan, ScanOptions, ScanReport, is_char_along, make_state, typed_partition_values
from delta_py.read.scan_state import ColumnSource, ScanColumn, ScanFile
from delta_py.read.schema_changes import why_incompatible
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
CHANGE_FIELDS = (StructField(CHANGE_TYPE, STRING), StructField(COMMIT_VERSION, LONG), StructField(COMMIT_TIMESTAMP, TIMESTAMP))
_CHANGE_TYPES: Mapping[str, DataType] = {f.name: f.data_type for f in CHANGE_FIELDS}
# Files' times may run backwards over so many commits and still be put in order.
UNORDERED_COMMITS = 100
_THREADS = 8
_PRUNED_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class _Bounds:
    """first, last: versions, both included; `last` is asked_last cut to the newest version, below `first` for no change.
    latest: the newest snapshot. read: the snapshot whose schema the changes have. start: the snapshot of `first`."""

    first: int
    last: int
    asked_last: int
    latest: Snapshot
    read: Snapshot
    start: Snapshot | None

    @property
    def is_empty(self) -> bool:
        return self.start is None


def changes_schema(
    store: ObjectStore,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp_ms: int | None = None,
    ending_timestamp_ms: int | None = None,
) -> StructType:
    """The columns of the changes: the table's, then the three of the feed.

    They are those of the newest version; of the last version of the range where the table has or had column mapping.
    Raises as plan_changes does for bounds that make no range.
    """
    bounds = _resolve(store, starting_version, ending_version, starting_timestamp_ms, ending_timestamp_ms)
    return StructType((*bounds.read.schema.fields, *CHANGE_FIELDS))


def plan_changes(
    store: ObjectStore,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp_ms: int | None = None,
    ending_timestamp_ms: int | None = None,
    columns: Sequence[str] | StructType | None = None,
    predicate: Expression | None = None,
    options: ScanOptions | None = None,
) -> Scan:
    """The files that hold the changes of all versions from start to end, both included.

    One starting bound is needed; a time means the first commit at or after it. Without an ending bound the newest version
    ends the range, as does one beyond it; an ending time means the last commit at or before it. Times are ms since 1970.
    columns, predicate: over changes_schema. options: rows are dropped by the predicate unless they say otherwise.
    Raises ChangeDataFeedError: DELTA_NO_START_FOR_CDC_READ, DELTA_CDC_START_VERSION_AFTER_LATEST, DELTA_INVALID_CDC_RANGE,
    DELTA_MISSING_CHANGE_DATA when the feed was off for a version of the range, and
    DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE; TimestampOutOfRangeError; LogFileNotFoundError for commits that are
    gone.
    """
    options = options or ScanOptions(drop_rows=True)
    bounds = _resolve(store, starting_version, ending_version, starting_timestamp_ms, ending_timestamp_ms)
    config = bounds.read.config
    extra = tuple(ScanColumn(f, f, ColumnSource.CONSTANT) for f in CHANGE_FIELDS)
    state = make_state(config, bounds.read.table_root, columns, predicate, options, extra)
    changes = [] if bounds.is_empty else list(_changes(store, bounds))
    kept = ChangePruner(config, predicate, options).prune(changes)
    report = ScanReport(len(changes), _size(changes), len(kept), _size(kept))
    return Scan(state, tuple(change.file for change in kept), report)


# ---------------------------------------------------------------- the range


def _resolve(store: ObjectStore, first: int | None, last: int | None, first_ms: int | None, last_ms: int | None) -> _Bounds:
    _check_bounds(first, last, first_ms, last_ms)
    latest = Snapshot.load(store)
    if first is None:
        assert first_ms is not None
        first = first_version_from(store, first_ms, latest)
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
        last = version_at_timestamp(store, last_ms, latest.config)
        if first_ms is not None and first_ms <= last_ms and last == first - 1:
            return _Bounds(first, last, last, latest, latest, None)  # both times lie between two commits
    asked_last = latest.version if last is None else last
    if asked_last < first:
        raise ChangeDataFeedError(
            f"The change data feed range from version {first} to version {asked_last} ends before it starts. Swap the bounds.",
            error_class="DELTA_INVALID_CDC_RANGE",
            sql_state="22003",
            start_version=first,
            end_version=asked_last,
        )
    return _with_schema(store, first, min(asked_last, latest.version), asked_last, latest)


def _check_bounds(first: int | None, last: int | None, first_ms: int | None, last_ms: int | None) -> None:
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


def first_version_from(store: ObjectStore, timestamp_ms: int, latest: Snapshot) -> int:
    """The first commit at or after a time."""
    found = commit_at_timestamp(store, timestamp_ms, latest.config, recreatable=False)
    if found.timestamp_ms >= timestamp_ms:
        return found.version
    if found.version < latest.version:
        return found.version + 1
    raise TimestampOutOfRangeError(
        f"The time {time_text(timestamp_ms)} is after the latest version of the table at {store.root}: version "
        f"{found.version} of {time_text(found.timestamp_ms)}. No change is that new: start at or before it.",
        timestamp_ms=timestamp_ms,
        latest_version=found.version,
        latest_timestamp_ms=found.timestamp_ms,
    )


def _with_schema(store: ObjectStore, first: int, last: int, asked_last: int, latest: Snapshot) -> _Bounds:
    def at(version: int) -> Snapshot:
        return latest if version == latest.version else Snapshot.load(store, version)

    start, end = at(first), at(last)
    mapped = any(snapshot.config.column_mapping_mode != "none" for snapshot in (start, end, latest))
    return _Bounds(first, last, asked_last, latest, end if mapped else latest, start)


# ---------------------------------------------------------------- the changes of each commit


@dataclass(frozen=True, slots=True)
class Change:
    """A file to read. stats: JSON of statistics that hold for the rows read of it, or None. recorded: it is a change file,
    whose rows say their change type themselves."""

    file: ScanFile
    stats: str | None
    recorded: bool


def _changes(store: ObjectStore, bounds: _Bounds) -> Iterator[Change]:
    assert bounds.start is not None
    config = bounds.start.config
    _check_feed_is_on(config, bounds.first, bounds)
    times = {time.version: time.timestamp_ms for time in _times(store, bounds)}
    reader = CommitReader(store)
    with ThreadPoolExecutor(_THREADS, "delta_py-changes") as pool:
        for commit in _commits(store, bounds):
            actions = list(reader.actions(commit))
            config = _config_after(config, actions, commit.version, bounds)
            commit_changes = CommitChanges(store, pool, commit.version, times[commit.version], physical_partitions(config))
            yield from commit_changes.changes(actions)
    _check_schema(bounds.start.metadata, bounds.first, bounds)


def _commits(store: ObjectStore, bounds: _Bounds) -> list[LogFile]:
    commits = list_commits(store, bounds.first, bounds.last)
    found = {commit.version for commit in commits}
    missing = next((version for version in range(bounds.first, bounds.last + 1) if version not in found), None)
    if missing is not None:
        raise LogFileNotFoundError(
            f"The changes of version {missing} of the table at {store.root} are gone: its commit is no longer in the log. "
            "Start at a later version.",
            version=missing,
        )
    return commits


def _times(store: ObjectStore, bounds: _Bounds) -> list[CommitTime]:
    config = bounds.latest.config
    always_stamped = config.enabled("inCommitTimestamp") and "delta.inCommitTimestampEnablementVersion" not in config.properties
    start = bounds.first if always_stamped else max(0, bounds.first - UNORDERED_COMMITS)
    return commit_times(store, config, start, bounds.last)


def _config_after(config: TableConfig, actions: Sequence[Action], version: int, bounds: _Bounds) -> TableConfig:
    """The table's configuration after a commit, checked: readable, the feed on, the schema one that can be read as asked."""
    protocol = next((action for action in actions if isinstance(action, Protocol)), None)
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    if protocol is None and metadata is None:
        return config
    config = TableConfig(protocol or config.protocol, metadata or config.metadata)
    config.require(Operation.READ)
    _check_feed_is_on(config, version, bounds)
    if metadata is not None and version > bounds.first:
        _check_schema(metadata, version, bounds)
    return config


def _check_feed_is_on(config: TableConfig, version: int, bounds: _Bounds) -> None:
    if config.enabled("delta.enableChangeDataFeed") or config.enabled("delta.enableChangeDataCapture"):
        return
    raise ChangeDataFeedError(
        f"Error getting change data for range [{bounds.first} , {bounds.asked_last}] as change data was not "
        f"recorded for version [{version}]. The table property delta.enableChangeDataFeed has to be true from the first "
        "version of the range to the last. Choose a range in which it was.",
        error_class="DELTA_MISSING_CHANGE_DATA",
        sql_state="KD002",
        start_version=bounds.first,
        end_version=bounds.asked_last,
        version=version,
    )


def _check_schema(metadata: Metadata, version: int, bounds: _Bounds) -> None:
    """Refuse a version whose rows cannot be given the columns of the read version."""
    reason = why_incompatible(metadata, bounds.read.metadata)
    if reason is None:
        return
    what = "SCHEMA_CHANGE" if version > bounds.first else "DATA_SCHEMA"
    raise ChangeDataFeedError(
        f"Changes of versions {bounds.first} to {bounds.asked_last} cannot be read with the schema of version "
        f"{bounds.read.version}: since version {version} more happened than that columns were added ({reason}). Read the "
        "versions before the change of the schema and those from it on apart.",
        error_class=f"DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_{what}",
        sql_state="0AKDC",
        start_version=bounds.first,
        end_version=bounds.asked_last,
        read_version=bounds.read.version,
        incompatible_version=version,
        reason=reason,
    )


def physical_partitions(config: TableConfig) -> frozenset[str]:
    fields = (find_path(config.schema, (name,))[0] for name in config.partition_columns)
    return frozenset(physical_name(field, config.column_mapping_mode) for field in fields)


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """Works out the changes of one commit. partitions: physical names of the table's partition columns after it."""

    store: ObjectStore
    pool: ThreadPoolExecutor
    version: int
    timestamp_ms: int
    partitions: frozenset[str]

    def changes(self, actions: Sequence[Action]) -> Iterator[Change]:
        recorded = [action for action in actions if isinstance(action, AddCDCFile)]
        if recorded:
            for action in recorded:
                yield self._recorded(action)
        elif not any(isinstance(action, CommitInfo) and _is_idle_merge(action) for action in actions):
            yield from self._inferred(actions)

    def _inferred(self, actions: Sequence[Action]) -> Iterator[Change]:
        adds = {action.path: action for action in actions if isinstance(action, AddFile) and action.data_change}
        removes = {action.path: action for action in actions if isinstance(action, RemoveFile) and action.data_change}
        if not any(isinstance(action, Metadata) for action in actions):
            removes = {path: self._with_nulls(remove) for path, remove in removes.items()}
        for path, add in adds.items():
            if path not in removes:
                yield self._insert(add)
        for path, remove in removes.items():
            if path not in adds:
                yield self._delete(remove)
        both = [(removes[path], add) for path, add in adds.items() if path in removes]
        for changes in self.pool.map(self._differences, both):
            yield from changes

    def _with_nulls(self, remove: RemoveFile) -> RemoveFile:
        """delta-spark leaves partition values that are null out of removes. Not of a commit that changes the columns."""
        values = remove.partition_values
        if values is None or not values.keys() < self.partitions:
            return remove
        return replace(remove, partition_values={**dict.fromkeys(self.partitions), **values})

    def _insert(self, add: AddFile, only: DeletionVectorDescriptor | None = None) -> Change:
        file = ScanFile(
            add.path,
            add.size_bytes,
            add.modification_time_ms,
            add.partition_values,
            add.deletion_vector,
            only,
            add.base_row_id,
            add.default_row_commit_version,
            self._constants("insert"),
        )
        return Change(file, add.stats, recorded=False)

    def _delete(self, remove: RemoveFile, only: DeletionVectorDescriptor | None = None) -> Change:
        if remove.partition_values is None and self.partitions:
            raise ChangeDataFeedError(
                f"The remove of {remove.path} in version {self.version} does not say the file's partition values, so the rows "
                "that it deleted cannot be given back. Leave the version out of the range.",
                error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
                sql_state="XXKDS",
                path=remove.path,
                version=self.version,
            )
        if remove.partition_values is not None and remove.partition_values.keys() != self.partitions:
            raise ChangeDataFeedError(
                f"Version {self.version} replaced rows and changed the partition columns: {remove.path}, which it removed, is "
                f"partitioned by ({', '.join(remove.partition_values)}), the table by ({', '.join(sorted(self.partitions))}). "
                "The rows that it deleted cannot be given back with the new columns. Leave the version out of the range.",
                error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
                sql_state="0AKDC",
                path=remove.path,
                version=self.version,
            )
        file = ScanFile(
            remove.path,
            remove.size_bytes or 0,
            0,
            remove.partition_values or {},
            remove.deletion_vector,
            only,
            remove.base_row_id,
            remove.default_row_commit_version,
            self._constants("delete"),
        )
        return Change(file, remove.stats, recorded=False)

    def _recorded(self, change: AddCDCFile) -> Change:
        file = ScanFile(change.path, change.size_bytes, 0, change.partition_values, constants=self._constants(None))
        return Change(file, None, recorded=True)

    def _differences(self, pair: tuple[RemoveFile, AddFile]) -> list[Change]:
        """The file stays, and rows went (only the new deletion vector has them) or came back (only the old one has them)."""
        remove, add = pair
        old, new = remove.deletion_vector, add.deletion_vector
        old_rows, new_rows = self._deleted_rows(old, add.path), self._deleted_rows(new, add.path)
        went = [self._delete(remove, new)] if len(new_rows - old_rows) else []
        came_back = [self._insert(add, old)] if len(old_rows - new_rows) else []
        return went + came_back

    def _deleted_rows(self, vector: DeletionVectorDescriptor | None, path: str) -> BitMap64:
        try:
            return BitMap64() if vector is None else read_deletion_vector(self.store, vector)
        except FileNotFoundError as error:
            raise DeletionVectorError(
                f"A deletion vector of data file {path}, which version {self.version} changed, is missing, so the rows that "
                "changed cannot be told. VACUUM may have removed it: leave the version out of the range.",
                error_class="DELTA_DELETION_VECTOR_FILE_NOT_FOUND",
                path=path,
                version=self.version,
            ) from error

    def _constants(self, change_type: str | None) -> dict[str, tuple[Any, DataType]]:
        return change_constants(change_type, self.version, self.timestamp_ms)


def change_constants(change_type: str | None, version: int, timestamp_ms: int) -> dict[str, tuple[Any, DataType]]:
    """The feed's own columns of a file. change_type: None where the rows say it themselves."""
    known: dict[str, tuple[Any, DataType]] = {} if change_type is None else {CHANGE_TYPE: (change_type, STRING)}
    return {**known, COMMIT_VERSION: (version, LONG), COMMIT_TIMESTAMP: (timestamp_ms * 1000, TIMESTAMP)}


def _is_idle_merge(info: CommitInfo) -> bool:
    """A MERGE that rewrote files without changing a row: it counts none, and its adds and removes are no changes."""
    metrics = info.values.get("operationMetrics")
    if info.values.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(f"numTargetRows{what}")) == "0" for what in ("Inserted", "Updated", "Deleted"))


# ---------------------------------------------------------------- pruning


@dataclass(frozen=True, slots=True)
class ChangePruner:
    """Drops files in which no row can satisfy the predicate: by partition values, by the feed's own columns, by statistics.

    Conjuncts that partition values decide are decided here alone, so no file may pass by this.
    """

    config: TableConfig
    predicate: Expression | None
    options: ScanOptions

    def prune(self, changes: list[Change]) -> list[Change]:
        if self.predicate is None:
            return changes
        kept: list[Change] = []
        for start in range(0, len(changes), _PRUNED_AT_ONCE):
            some = changes[start : start + _PRUNED_AT_ONCE]
            for recorded in (False, True):
                alike = [change for change in some if change.recorded == recorded]
                kept.extend(self._keep(alike, recorded) if alike else [])
        return sorted(kept, key=lambda change: change.file.constants[COMMIT_VERSION][0])

    def _keep(self, changes: list[Change], recorded: bool) -> list[Change]:
        """changes: all recorded or none; of a recorded file the change type is not known before it is read."""
        assert self.predicate is not None
        told = tuple(part for part in conjuncts(self.predicate) if self._is_told(part, recorded))
        paths = {path: self._physical(path) for path in columns_of(conjunction(told))}
        predicate = transform_columns(conjunction(told), lambda path: Column(paths[path]))
        values = {
            physical: self._values(changes, path, physical) for path, physical in paths.items() if self._is_whole_file(path)
        }
        helpful = columns_with_stats(predicate)
        leaves = {
            physical: self._along(path)[-1].data_type
            for path, physical in paths.items()
            if physical in helpful and physical not in values and not is_char_along(self._along(path))
        }
        stats = parse_stats(pa.array([change.stats for change in changes], pa.string()), leaves)
        mask = keep_mask(predicate, stats, values).to_pylist()
        return [change for change, keep in zip(changes, mask, strict=True) if keep]

    def _is_told(self, part: Expression, recorded: bool) -> bool:
        """Whether a file can say anything of the conjunct: of `_metadata` it cannot."""
        paths = columns_of(part)
        known = all(path[0] in _CHANGE_TYPES or self.config.schema.find(path[0]) is not None for path in paths)
        return known and not (recorded and (CHANGE_TYPE,) in paths)

    def _physical(self, path: Path) -> Path:
        return path if path[0] in _CHANGE_TYPES else physical_path(self.config.schema, path, self.config.column_mapping_mode)

    def _is_whole_file(self, path: Path) -> bool:
        return path[0] in _CHANGE_TYPES or path[0] in self.config.partition_columns

    def _along(self, path: Path) -> tuple[StructField, ...]:
        return find_path(self.config.schema, path)

    def _values(self, changes: list[Change], path: Path, physical: Path) -> pa.Array:
        """The one value that each file has for all its rows."""
        kind = _CHANGE_TYPES.get(path[0])
        if kind is not None:
            return pa.array([change.file.constants[path[0]][0] for change in changes], to_arrow_type(kind))
        texts = pa.array([change.file.partition_values.get(physical[0]) for change in changes], pa.string())
        return typed_partition_values(texts, self._along(path)[0], self.options.timezone)


def _size(changes: list[Change]) -> int:
    return sum(change.file.size_bytes for change in changes)
