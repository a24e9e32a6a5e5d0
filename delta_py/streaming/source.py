"""Streaming reads of a table: which files make up the next batch, and which files made up a batch that is run again.

    source = StreamSource(snapshot, options)
    offset = source.initial_offset(StreamStart())
    end = source.admit(offset, Limits(files=1000))     # the offset where the next batch ends
    scan = source.plan(offset, end)                    # its files, read like any other Scan
    source.commit(end)                                 # when the batch is done

The two offsets of a batch determine its rows: after a restart the same offsets give the same rows. A stream first reads the
files of the table at the version where it begins, ordered by (modification time, path), and then the files that each later
commit added. The source caches what it has read for the next trigger; a restart needs none of it.
Protocol: Add File and Remove File.
"""

from __future__ import annotations

from dataclasses import replace

from delta_py.changes.change_feed import first_version_from
from delta_py.errors import VersionNotFoundError
from delta_py.expressions.tree import Expression
from delta_py.log.segment import list_log
from delta_py.scan.file_pruner import FilePruner
from delta_py.scan.planning import Scan
from delta_py.scan.scan_state import ScanState
from delta_py.snapshot import Snapshot
from delta_py.streaming.admission import Admission
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.batch_plan import BatchPlanner
from delta_py.streaming.commits import ReadState
from delta_py.streaming.files.committed_files import CommittedFiles
from delta_py.streaming.files.event_time import EventTime
from delta_py.streaming.files.initial_files import InitialFiles
from delta_py.streaming.files.numbered_files import FileChoice
from delta_py.streaming.lag import Lag, lag_after
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import StreamOffset
from delta_py.streaming.offset_check import OffsetCheck
from delta_py.streaming.schema_stops import SchemaStops
from delta_py.streaming.schema_tracking import SchemaTracker
from delta_py.streaming.stream_options import StreamOptions, StreamStart
from delta_py.types.schema import StructType


class StreamSource:
    """One table as a stream. snapshot: its version sets the schema of all rows.

    tracker: the stream reads with the schemas of its log, and stops where the schema changes; None: with the snapshot's schema.
    Methods raise the errors that stop a stream: SchemaMismatchError, UnsupportedOperationError (commits.py),
    LogFileNotFoundError (DELTA_MISSING_FILES_UNEXPECTED_VERSION, DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE), and
    CorruptTableError. Threads must not share an instance.
    """

    def __init__(self, snapshot: Snapshot, options: StreamOptions | None = None, tracker: SchemaTracker | None = None) -> None:
        options = options or StreamOptions()
        order, tracks_schema = options.event_time, tracker is not None
        config = snapshot.config if tracker is None else tracker.config
        choice = FileChoice(FilePruner.of(config, options.predicate, options.scan.timezone), options.exclude)
        read_state = ReadState(config, snapshot.version, snapshot.store, options.has_start)
        log = StreamLog(snapshot, with_stats=choice.needs_stats, fail_on_data_loss=options.fail_on_data_loss)
        initial = InitialFiles(log, choice, None if order is None else EventTime.of(config, order))
        committed = CommittedFiles(snapshot.store, log, read_state, options, choice, tracks_schema=tracks_schema)
        self._snapshot, self._config, self._order = snapshot, config, order
        self._log, self._initial = log, initial
        self._offset_check = OffsetCheck(log, read_state, order=order, has_feed=options.change_feed, tracks_schema=tracks_schema)
        self._stops = None if tracker is None else SchemaStops(tracker, log, committed)
        self._admission = Admission(log, initial, committed, self._stops, order)
        self._planner = BatchPlanner(read_state, options, log, initial, committed)

    def state(self, columns: StructType | None = None) -> ScanState:
        """How an executor reads the files of a batch, unless the batch's scan differs. columns: None for all
        columns of the stream."""
        return self._planner.state(columns)

    # ------------------------------------------------------------ start

    def initial_offset(self, start: StreamStart) -> StreamOffset:
        """Where a new stream begins now. Raises VersionNotFoundError, TimestampOutOfRangeError for a start that
        does not exist."""
        return replace(self._find_start(start), begins=True)

    def _find_start(self, start: StreamStart) -> StreamOffset:
        """Where the stream starts: after the newest version, at a version or time, or with the whole current table."""
        table_id, store, version = self._config.metadata.id, self._snapshot.store, start.version
        if start.latest:
            return StreamOffset(table_id, self.newest_version() + 1)
        if start.timestamp_ms is not None:
            version = first_version_from(store, start.timestamp_ms, self._snapshot)
        if version is None:
            return StreamOffset(table_id, self._snapshot.version, is_initial=True, order=self._order)
        available = list_log(store, 0).commits
        if version not in available:
            raise VersionNotFoundError(
                f"startingVersion is {version}, and the log of the table at {store.root} has the commits "
                f"{min(available, default=None)} to {max(available, default=None)}. Start with one of them, or without "
                "startingVersion to read the table's rows first.",
                version=version,
                earliest=min(available, default=None),
                latest=max(available, default=None),
            )
        return StreamOffset(table_id, version)

    def newest_version(self) -> int:
        return self._log.newest_version()

    # ------------------------------------------------------------ batches

    def admit(self, start: StreamOffset, limits: Limits, *, last_version: int | None = None) -> StreamOffset:
        """Where the batch that begins after `start` ends: `start` itself if there is nothing to read.

        last_version: commits after it do not count. At least one file is admitted, whatever its size. If a commit stops the
        stream, the batch ends before that commit, and the call for the next batch raises.
        """
        self._check_start(start)
        if self._stops is not None and (end_at_change := self._stops.end_at_change(start)) is not None:
            return end_at_change
        end = self._admission.end_of_batch(start, limits, last_version)
        return replace(end, began=(start.version, start.is_initial)) if start.begins and end != start else end

    def plan(
        self, start: StreamOffset, end: StreamOffset, columns: StructType | None = None, predicate: Expression | None = None
    ) -> Scan:
        """The files of the batch from `start` (exclusive) to `end` (inclusive). columns: the columns to read; None for all of the
        stream. predicate: rows for which it is not true may be left out; None for all rows."""
        start = start.true_start(end)
        self._check_start(start)
        self._offset_check.check(end)
        if self._stops is not None:
            self._stops.begin_in_batch(start, end)
        return self._planner.plan(start, end, columns, predicate)

    def commit(self, end: StreamOffset) -> None:
        """Called when the batch that ended there is done. If it ended before a change of the schema, the change is recorded now
        and this raises SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION)."""
        if self._stops is not None:
            self._stops.commit(end)

    def lag(self, after: StreamOffset) -> Lag:
        """The unread data after an offset. It includes files that the options leave out."""
        return lag_after(after, self._log, self._initial)

    def _check_start(self, start: StreamOffset) -> None:
        """Check that the stream can continue from the offset. After the initial snapshot, release its files."""
        self._offset_check.check(start)
        if not start.is_initial:
            self._initial.release()
