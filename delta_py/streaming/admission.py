"""Streaming reads of a table: which files make up the next batch, and which made up one that is run again.

    source = StreamSource(snapshot, options)
    offset = source.initial_offset(StreamStart())
    end = source.admit(offset, Limits(files=1000))     # the place up to which the next batch goes
    scan = source.plan(offset, end)                    # its files, read like any other Scan

A batch is a function of its two offsets: after a restart the same offsets give the same rows. A stream first reads the
files of the table at the version where it begins, ordered by (modification time, path), and then what each later commit
added. What was found out stays in the source, for the next trigger; none of it is needed to go on after a restart.
Protocol: Add File and Remove File.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.changes.change_feed import CHANGE_COLUMNS, ChangePruner, first_version_from
from delta_py.changes.commit_changes import PLANNED_CHANGES
from delta_py.changes.file_lists import sorted_by
from delta_py.errors import DeltaError, VersionNotFoundError
from delta_py.expressions.tree import Expression, conjunction
from delta_py.log.reader import FILE_SCHEMA
from delta_py.log.segment import LogFile, list_log
from delta_py.protocol.schema import StructType
from delta_py.protocol.stats import parse_stats
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.planning import FilePruner, Scan, ScanOptions, ScanReport, make_state
from delta_py.scan.scan_state import ScanState
from delta_py.snapshot import Snapshot
from delta_py.streaming.batch_limits import Budget, Limits
from delta_py.streaming.changes import ChangeReader
from delta_py.streaming.commits import (
    ChangeRules,
    NumberedFiles,
    ReadState,
    StreamCommit,
    check_rows_only_added,
    check_state,
    check_table,
    stream_schema,
)
from delta_py.streaming.event_time import EventTime
from delta_py.streaming.log import FILES_KEPT, StreamLog
from delta_py.streaming.offset import AFTER_SCHEMA_CHANGE, BEFORE_FIRST, SCHEMA_CHANGE, StreamOffset
from delta_py.streaming.places import PlaceCheck, check_feed
from delta_py.streaming.schema_tracking import SchemaTracker

# Paths are compared as the log spells them, percent-encoded, as the reference's streams do.
_SPELLING = "path_text"
# A stream that finds nothing new in so many commits, or in commits of so long a time, notes its place all the same, lest the log
# be cleaned up to there.
_IDLE_COMMITS, _IDLE_MS = 100, 3_600_000
# Commits whose changes are worked out together.
_READ_AHEAD = 128
# Commits read ahead to tell how far a stream lags behind, and files in them: few enough that the log keeps them all.
_LAG_COMMITS, _LAG_FILES = 1_000, FILES_KEPT // 2


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """exclude: an RE2 pattern; files whose path it finds are left out. fail_on_data_loss: False goes on after commits that are
    gone. change_feed: the changes of rows, not the rows added. has_start: it was said where a new stream begins. event_time: the
    column by whose times the rows that are there at the start are read, None for by the age of their files. columns, predicate,
    scan: as in plan_scan."""

    rules: ChangeRules = field(default_factory=ChangeRules)
    exclude: str | None = None
    fail_on_data_loss: bool = True
    change_feed: bool = False
    has_start: bool = False
    event_time: str | None = None
    columns: StructType | None = None
    predicate: Expression | None = None
    scan: ScanOptions = field(default_factory=ScanOptions)


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a new stream begins; at most one of these. None of them: with the table's rows as they are now.

    version: with what that version added. timestamp_ms: with the first version at or after it. latest: with the next one."""

    version: int | None = None
    timestamp_ms: int | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True)
class Lag:
    """What a stream has still to read. versions: commits. at_least: there is more than was looked for."""

    files: int
    bytes: int
    versions: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class _Idle:
    """From `start` on there is nothing to read before `version`. since_ms: when the first commit was made that brings nothing."""

    start: StreamOffset
    version: int
    since_ms: int


# (commit, first place, place behind the last or None for all)
_Portions = list[tuple[LogFile, int, int | None]]


class _Files(Protocol):
    """The numbered files of one version. is_whole: they belong into one batch."""

    @property
    def is_whole(self) -> bool: ...

    @property
    def last_change(self) -> int | None:
        """The place of a feed's last change, whether it is to be read or not; None for none, and for rows."""

    def places(self, first: int) -> Iterator[tuple[Any, Any]]:
        """(places, sizes in bytes) of those that are to be read, from the place `first` on, in pieces, ascending."""


class StreamSource:
    """One table as a stream. snapshot: its version gives the schema in which all rows come.

    tracker: reads with the schemas of its log, and stops where the schema changes; None: with the snapshot's.
    Methods raise what stops a stream: SchemaMismatchError, UnsupportedOperationError (commits.py),
    LogFileNotFoundError (DELTA_MISSING_FILES_UNEXPECTED_VERSION, DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE), and
    CorruptTableError. Not for sharing between threads.
    """

    def __init__(self, snapshot: Snapshot, options: StreamOptions | None = None, tracker: SchemaTracker | None = None) -> None:
        self._snapshot, self._options, self._tracker = snapshot, options or StreamOptions(), tracker
        self._store, self._config = snapshot.store, snapshot.config if tracker is None else tracker.config
        self._read_state = ReadState(self._config, snapshot.version, self._store.root, self._options.has_start)
        self._pruner = FilePruner.of(self._config, self._options.predicate, self._options.scan)
        self._with_stats = bool(self._pruner.stats_leaves)
        self._schema = stream_schema(with_stats=self._with_stats)
        self._log = StreamLog(snapshot, with_stats=self._with_stats, fail_on_data_loss=self._options.fail_on_data_loss)
        self._first_files: tuple[int, pa.Table] | None = None
        self._idle: _Idle | None = None
        self._changes = ChangeReader(self._store, self._config) if self._options.change_feed else None
        self._places = PlaceCheck(
            self._log,
            self._read_state,
            order=self._options.event_time,
            has_feed=self._options.change_feed,
            tracks_schema=tracker is not None,
        )
        self._event_time = None if self._options.event_time is None else EventTime.of(self._config, self._options.event_time)

    @property
    def state(self) -> ScanState:
        """How an executor reads the files of a batch, unless its scan says otherwise."""
        return self._state(None)

    def _state(self, rows: Expression | None) -> ScanState:
        """rows: which of the files' rows are of the batch."""
        options = self._options
        extra = CHANGE_COLUMNS if options.change_feed else ()
        wanted = tuple(part for part in (options.predicate, rows) if part is not None)
        scan = options.scan if rows is None else replace(options.scan, drop_rows=True)
        predicate = conjunction(wanted) if wanted else None
        return make_state(self._config, self._snapshot.table_root, options.columns, predicate, scan, extra)

    # ------------------------------------------------------------ where it begins

    def initial_offset(self, start: StreamStart) -> StreamOffset:
        """Where a new stream begins now. Raises VersionNotFoundError, TimestampOutOfRangeError for a start that is not there."""
        return replace(self._beginning(start), begins=True)

    def _beginning(self, start: StreamStart) -> StreamOffset:
        table_id, version = self._config.metadata.id, start.version
        if start.latest:
            return StreamOffset(table_id, self.newest_version() + 1)
        if start.timestamp_ms is not None:
            version = first_version_from(self._store, start.timestamp_ms, self._snapshot)
        if version is None:
            return StreamOffset(table_id, self._snapshot.version, is_initial=True, order=self._options.event_time)
        available = list_log(self._store, 0).commits
        if version not in available:
            raise VersionNotFoundError(
                f"startingVersion is {version}, and the log of the table at {self._store.root} has the commits "
                f"{min(available, default=None)} to {max(available, default=None)}. Start with one of them, or without "
                "startingVersion to read the table's rows first.",
                version=version,
                earliest=min(available, default=None),
                latest=max(available, default=None),
            )
        return StreamOffset(table_id, version)

    def newest_version(self) -> int:
        return max([commit.version for commit in self._log.commits_from(self._snapshot.version)], default=self._snapshot.version)

    # ------------------------------------------------------------ admission

    def admit(self, start: StreamOffset, limits: Limits, *, last_version: int | None = None) -> StreamOffset:
        """Where the batch that begins after `start` ends: `start` itself when there is nothing to read.

        last_version: commits after it do not count. At least one file is admitted, whatever its size. A commit that stops the
        stream ends the batch before it, and raises when the next one is asked for.
        """
        if self._tracker is not None and (waits := self._at_schema_change(self._tracker, start)) is not None:
            return waits
        end = self._admitted(start, limits, last_version)
        return replace(end, began=(start.version, start.is_initial)) if start.begins and end != start else end

    def _admitted(self, start: StreamOffset, limits: Limits, last_version: int | None) -> StreamOffset:
        self._go_on_from(start)
        budget, end, idle, last_change = Budget(limits), start, self._idle_since(start), start.last_change
        times_ms = [] if idle is None else [idle.since_ms]
        for version, commit, first, ahead in self._versions_after(start, last_version):
            is_initial = commit is None
            if commit is not None and self._stops_before(commit, start):
                return StreamOffset(start.table_id, version, SCHEMA_CHANGE)
            by_time = is_initial and self._event_time is not None
            try:
                files = self._initial(version) if commit is None else self._added(commit, ahead)
            except DeltaError:
                if budget.has_taken:
                    return end
                raise
            place = budget.take(files.places(first), whole=files.is_whole)
            if by_time:
                place = self._end_of_ties(version, place)
            if place is not None:
                order = self._options.event_time if is_initial else None
                return StreamOffset(start.table_id, version, place, is_initial, order, last_change=last_change)
            last_change = last_change if files.last_change is None else (version, files.last_change)
            end = StreamOffset(start.table_id, version + 1, last_change=last_change)
            times_ms += [] if commit is None else [commit.modification_time_ms]
            if budget.is_spent or (by_time and budget.has_taken):  # a batch of rows by time has a predicate of its own
                return end
        if budget.has_taken or end == start:
            return end
        if end.version - start.version >= _IDLE_COMMITS or (times_ms and max(times_ms) - times_ms[0] >= _IDLE_MS):
            return end
        self._idle = _Idle(start, end.version, times_ms[0]) if times_ms else None
        return start

    def _idle_since(self, start: StreamOffset) -> _Idle | None:
        return self._idle if self._idle is not None and self._idle.start == start else None

    def _end_of_ties(self, version: int, place: int | None) -> int | None:
        """None if the batch takes all that is left."""
        assert self._event_time is not None
        files = self._files_at(version)
        last = None if place is None else self._event_time.end_of_ties(files, place)
        return None if last == files.num_rows - 1 else last

    def _versions_after(
        self, start: StreamOffset, last: int | None
    ) -> Iterator[tuple[int, LogFile | None, int, Sequence[LogFile]]]:
        """(version, its commit or None for the initial snapshot, the first place, some commits behind it) of all that has
        something after `start`."""
        version, first, idle = start.version, start.next_index, self._idle_since(start)
        if idle is not None:
            version, first = idle.version, 0
        elif start.is_initial:
            yield version, None, first, ()
            version, first = version + 1, 0
        commits = self._log.commits_from(version)
        for number, commit in enumerate(commits):
            if last is not None and commit.version > last:
                return
            ahead = commits[number + 1 : number + 1 + _READ_AHEAD]
            yield commit.version, commit, first if commit.version == version else 0, ahead

    def _initial(self, version: int) -> NumberedFiles:
        return NumberedFiles(self._files_at(version), self._kept)

    def _added(self, commit: LogFile, ahead: Sequence[LogFile]) -> _Files:
        if self._changes is None:
            return NumberedFiles(self._rows_of(commit), self._kept)
        return self._changes.of(self._checked(commit).file, ahead)

    def _rows_of(self, file: LogFile) -> pa.Table:
        """The files that a commit added, as far as the stream takes them. Their places do not depend on `filter` and the like."""
        commit = self._checked(file)
        check_rows_only_added(commit, self._options.rules, self._store.root)
        skipped = commit.removed is not None and self._options.rules.skip_change_commits
        return commit.files.slice(0, 0) if skipped else commit.files

    def _kept(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """The files that are to be read: by the predicate and the pattern of paths that are left out."""
        if self._options.exclude is not None:
            files = files.filter(pc.invert(pc.match_substring_regex(files["path"], self._options.exclude)))
        stats = parse_stats(files["stats"], self._pruner.stats_leaves) if self._with_stats else None
        return self._pruner.prune(files, stats)

    # ------------------------------------------------------------ planning

    def plan(self, start: StreamOffset, end: StreamOffset) -> Scan:
        """The files of the batch from `start` (not included) to `end` (included)."""
        start = start.true_start(end)
        self._go_on_from(start)
        self._places.check(end)
        if self._tracker is not None and not self._tracker.is_on:
            self._begin_within(self._tracker, start, end)
        version, first = start.version, start.next_index
        initial, rows = self._initial_batches(start, end) if start.is_initial else ([], None)
        if start.is_initial:
            version, first = version + 1, 0
        commits = [
            (commit, first if commit.version == version else 0, end.next_index if commit.version == end.version else None)
            for commit in self._commits_of(version, end)
        ]
        if self._changes is not None:
            table = pa.Table.from_batches(self._changed_batches(self._changes, start.version, initial, commits), PLANNED_CHANGES)
        else:
            pieces = [*initial, *self._added_batches(commits)]
            table = pa.Table.from_batches([batch.select(_PLANNED) for batch in pieces], _PLANNED_SCHEMA)
        size = pc.sum(table["size"]).as_py() or 0
        return Scan(self._state(rows), table, ScanReport(table.num_rows, size, table.num_rows, size))

    def _initial_batches(self, start: StreamOffset, end: StreamOffset) -> tuple[list[pa.RecordBatch], Expression | None]:
        """The files of the first snapshot that a batch reads, and which of their rows are of it; None: all."""
        files, first = self._files_at(start.version), start.next_index
        stop = end.next_index if end.is_initial else files.num_rows
        if self._event_time is None:
            return list(NumberedFiles(files, self._kept).batches(first, stop)), None
        chosen, rows = self._event_time.files_between(files, start.index, stop - 1)
        return list(NumberedFiles(chosen, self._kept).batches(0, None)) if stop > first else [], rows

    def _added_batches(self, commits: _Portions) -> Iterator[pa.RecordBatch]:
        for commit, first, stop in commits:
            yield from NumberedFiles(self._rows_of(commit), self._kept).batches(first, stop)

    def _changed_batches(
        self, changes: ChangeReader, version: int, initial: list[pa.RecordBatch], commits: _Portions
    ) -> Iterator[pa.RecordBatch]:
        for batch in initial:
            yield changes.as_inserts(batch, version)
        options = self._options
        pruner = ChangePruner.of(self._config, options.predicate, options.scan)
        for number, (commit, first, stop) in enumerate(commits):
            ahead = [other for other, _, _ in commits[number + 1 : number + 1 + _READ_AHEAD]]
            found = changes.of(self._checked(commit).file, ahead)
            yield from found.batches(first, stop, pruner, options.exclude)

    def _commits_of(self, version: int, end: StreamOffset) -> list[LogFile]:
        """The commits from `version` to the one in which a batch ends."""
        last = end.version if end.index > BEFORE_FIRST else end.version - 1
        if end.is_initial or last < version:
            return []
        found = self._log.commits_from(version, last)
        if not found or found[-1].version < last:
            self._log.lost(found[-1].version + 1 if found else version, last + 1)
        return found

    # ------------------------------------------------------------ changes of the schema

    def commit(self, end: StreamOffset) -> None:
        """The batch that ended there is done. Raises SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION) when it ended
        before a change of the schema, which is noted then."""
        if self._tracker is not None and end.is_schema_change:
            commit = self._log.commit_at(end.version)
            if self._tracker.is_change(commit):
                self._tracker.evolve(commit)

    def _at_schema_change(self, tracker: SchemaTracker, start: StreamOffset) -> StreamOffset | None:
        """Where the batch after `start` ends, if that follows from a change of the schema alone; first see to the log."""
        self._go_on_from(start)
        if not tracker.is_on:
            version = start.version - (start.index == BEFORE_FIRST and not start.is_initial and not start.begins)
            version = max(0, min(version, self.newest_version()))
            tracker.begin(self._log.state_at(version).config, version)
        elif start.begins and start.is_initial:
            tracker.begin_anew(self._log.state_at(start.version).config, start.version)
        if start.index == SCHEMA_CHANGE:
            return replace(start, index=AFTER_SCHEMA_CHANGE)
        if start.index == AFTER_SCHEMA_CHANGE and tracker.is_change(self._log.commit_at(start.version)):
            return start
        return None

    def _stops_before(self, file: LogFile, start: StreamOffset) -> bool:
        passed = start.version == file.version and start.index >= SCHEMA_CHANGE and start.index != BEFORE_FIRST
        return self._tracker is not None and not passed and self._tracker.is_change(self._checked(file))

    def _begin_within(self, tracker: SchemaTracker, start: StreamOffset, end: StreamOffset) -> None:
        last = end.version if end.index > BEFORE_FIRST else max(0, end.version - 1)
        first = min(last, start.version)
        config = self._log.state_at(first).config
        states = [(first, config)]
        for file in [] if start.is_initial and end.is_initial else self._log.commits_from(first + 1, last):
            commit = self._log.read(file)
            if commit.protocol is not None or commit.metadata is not None:
                config = TableConfig(commit.protocol or config.protocol, commit.metadata or config.metadata)
                states.append((commit.version, config))
        tracker.begin_within(states, last)

    # ------------------------------------------------------------ lag

    def lag(self, after: StreamOffset) -> Lag:
        """What is there beyond an offset. Files that the options leave out are counted too."""
        files, size, version, first = 0, 0, after.version, after.next_index
        if after.is_initial:
            rest = self._files_at(version).slice(first)
            files, size = rest.num_rows, pc.sum(rest["size"]).as_py() or 0
            version, first = version + 1, 0
        commits = self._log.commits_from(version, version + _LAG_COMMITS)
        counted, behind = 0, files + _LAG_FILES
        for commit in commits[:_LAG_COMMITS]:
            if files >= behind:
                break
            added = self._log.read(commit).files.slice(first if commit.version == version else 0)
            files, size = files + added.num_rows, size + (pc.sum(added["size"]).as_py() or 0)
            counted += 1
        return Lag(files, size, len(commits), counted < len(commits))

    # ------------------------------------------------------------ the log

    def _checked(self, file: LogFile) -> StreamCommit:
        """A commit whose rows can be given as the stream reads them."""
        commit = self._log.read(file)
        if self._tracker is not None:
            check_table(self._config, commit.protocol, commit.metadata, commit.version, self._store.root)
        else:
            check_state(self._read_state, commit.protocol, commit.metadata, commit.version)
        if self._changes is not None and commit.metadata is not None:
            config = TableConfig(commit.protocol or self._config.protocol, commit.metadata)
            check_feed(config, commit.version, self._store.root)
        return commit

    def _go_on_from(self, start: StreamOffset) -> None:
        self._places.check(start)
        if not start.is_initial:
            self._first_files = None

    def _files_at(self, version: int) -> pa.Table:
        """The files of the table at a version, ordered."""
        if self._first_files is None or self._first_files[0] != version:
            self._first_files = version, self._ordered(self._log.state_at(version))
        return self._first_files[1]

    def _ordered(self, snapshot: Snapshot) -> pa.Table:
        if self._event_time is not None:
            return self._event_time.files_of(snapshot, self._schema, with_stats=self._with_stats)
        schema = self._schema.append(FILE_SCHEMA.field(_SPELLING))
        batches = (batch.files.select(schema.names) for batch in snapshot.file_batches(want_whole=self._with_stats))
        return sorted_by(("modification_time", _SPELLING), batches, schema).select(self._schema.names)


_PLANNED_SCHEMA = stream_schema(with_stats=False)
_PLANNED = _PLANNED_SCHEMA.names
