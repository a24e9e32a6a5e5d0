"""Where a stream with a log of schemas stops for changes of the schema, and when it records them in that log.

A batch ends before each commit that changes the schema. When Spark reports that this batch is done, the stream records the
change and stops the query, so that the next run reads the following commits with the new schema.
"""

from __future__ import annotations

from dataclasses import replace

from delta_py.log.segment import LogFile
from delta_py.protocol.table_config import TableConfig
from delta_py.streaming.files.committed_files import CommittedFiles
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import AFTER_SCHEMA_CHANGE, BEFORE_FIRST, SCHEMA_CHANGE, StreamOffset
from delta_py.streaming.schema_tracking import SchemaTracker


class SchemaStops:
    """Decides where a stream stops for changes of the schema. tracker: the stream's log of schemas, in which the changes are
    recorded. Methods raise SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION) when they record a new schema."""

    def __init__(self, tracker: SchemaTracker, log: StreamLog, committed: CommittedFiles) -> None:
        self._tracker, self._log, self._committed = tracker, log, committed

    def commit(self, end: StreamOffset) -> None:
        """Called when the batch that ended there is done."""
        if end.is_schema_change:
            commit = self._log.commit_at(end.version)
            if self._tracker.is_change(commit):
                self._tracker.evolve(commit)

    def end_at_change(self, start: StreamOffset) -> StreamOffset | None:
        """Where the batch after `start` ends, if that follows from a change of the schema alone; None otherwise.

        This also updates the log of schemas. If it is empty, it gets the schema of the rows that the stream has read last. If the
        stream begins again with the initial files, it gets their schema. If a run died before it recorded a change, this records
        the change, and raises.
        """
        tracker = self._tracker
        if not tracker.has_schema:
            # Before the first file of a version, the stream has only read the version before it.
            has_read_version = start.index != BEFORE_FIRST or start.is_initial or start.begins
            version = start.version if has_read_version else start.version - 1
            version = max(0, min(version, self._log.newest_version()))
            tracker.begin(self._log.state_at(version).config, version)
        elif start.begins and start.is_initial:
            tracker.begin_again(self._log.state_at(start.version).config, start.version)
        if start.index == SCHEMA_CHANGE:
            # An empty batch: when it begins, Spark reports that the batch before the change is done (see offset.py).
            return replace(start, index=AFTER_SCHEMA_CHANGE)
        if start.index == AFTER_SCHEMA_CHANGE:  # a run that died before it recorded the change has read everything before it
            self.commit(start)
        return None

    def must_stop_before(self, file: LogFile, start: StreamOffset) -> bool:
        """Whether the batch after `start` has to end before a commit."""
        # is_passed: the stream has already stopped before this commit (SCHEMA_CHANGE or later), or has read a part of its files.
        is_passed = start.version == file.version and start.index >= SCHEMA_CHANGE and start.index != BEFORE_FIRST
        return not is_passed and self._tracker.is_change(self._committed.read_checked(file))

    def begin_in_batch(self, start: StreamOffset, end: StreamOffset) -> None:
        """Record the schema of a batch that was planned before there was a log of schemas, and that Spark runs again."""
        if self._tracker.has_schema:
            return
        # BEFORE_FIRST: the batch ends before the version's first file, so it does not read this version.
        last = end.version if end.index > BEFORE_FIRST else max(0, end.version - 1)
        first = min(last, start.version)
        config = self._log.state_at(first).config
        states = [(first, config)]
        # A batch within the initial snapshot reads no commits.
        commits = [] if start.is_initial and end.is_initial else self._log.commits_from(first + 1, last)
        for file in commits:
            commit = self._log.read(file)
            if commit.protocol is not None or commit.metadata is not None:
                config = TableConfig(commit.protocol or config.protocol, commit.metadata or config.metadata)
                states.append((commit.version, config))
        self._tracker.begin_in_batch(states, last)
