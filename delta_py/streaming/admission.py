"""Which files make up the next batch of a stream: the offset where it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delta_py.errors import DeltaError
from delta_py.log.segment import LogFile
from delta_py.streaming.batch_limits import Budget, Limits
from delta_py.streaming.files.committed_files import READ_AHEAD, CommittedFiles
from delta_py.streaming.files.initial_files import InitialFiles
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import SCHEMA_CHANGE, StreamOffset
from delta_py.streaming.schema_stops import SchemaStops

# If a stream finds nothing new in this many commits, or in commits that span this much time (1 h), it still records a new offset.
# Otherwise log cleanup could delete the commits after its last offset.
_IDLE_COMMITS, _IDLE_MS = 100, 3_600_000


@dataclass(frozen=True, slots=True)
class _Idle:
    """A part of the log without rows to read, which an earlier trigger has searched: from the offset `start` to the version
    before `version`. since_ms: the time of the first commit in it, ms since 1970."""

    start: StreamOffset
    version: int
    since_ms: int


class Admission:
    """Decides where the batches of a stream end.

    initial: the files that the table has when the stream begins. committed: the files of the commits after that. stops: where the
    schema changes; None for a stream that does not track the schema. order: the column whose times order the initial files; None
    if their age does. Remembers, for the next trigger, up to which version the log has nothing to read.
    """

    def __init__(
        self, log: StreamLog, initial: InitialFiles, committed: CommittedFiles, stops: SchemaStops | None, order: str | None
    ) -> None:
        self._log, self._initial, self._committed, self._stops, self._order = log, initial, committed, stops, order
        self._idle: _Idle | None = None

    def end_of_batch(self, start: StreamOffset, limits: Limits, last_version: int | None) -> StreamOffset:
        """Where the batch that begins after `start` ends; `start` itself if there is nothing to read. (A batch that ends only
        because the schema changes is decided before, by SchemaStops.end_at_change.)

        limits: how much the batch may hold; it gets at least one file. last_version: commits after it do not count; None for all.
        If only commits without rows follow, the end is `start`, so that Spark plans no batch, until there are _IDLE_COMMITS of
        them or they span _IDLE_MS.
        """
        budget, idle = Budget(limits), self._idle_since(start)
        end, last_change = start, start.last_change
        # The times of the commits that were read since `start`, or since the first one of an idle part of the log.
        times_ms = [] if idle is None else [idle.since_ms]
        for version, commit, first_index, next_commits in self._versions_after(start, last_version):
            is_initial = commit is None
            is_by_time = is_initial and self._initial.is_by_time
            try:
                if commit is not None and self._stops is not None and self._stops.must_stop_before(commit, start):
                    return StreamOffset(start.table_id, version, index=SCHEMA_CHANGE)
                files = self._initial.numbered(version) if commit is None else self._committed.numbered(commit, next_commits)
            except DeltaError:
                # The batch ends before a commit that stops the stream. The call for the next batch raises the error.
                if budget.has_taken:
                    return end
                raise
            last_index = budget.take(files.indexes_and_sizes(first_index), all_or_none=files.is_whole)
            if is_by_time:
                last_index = self._initial.end_of_ties(version, last_index)
            if last_index is not None:
                order = self._order if is_initial else None
                return StreamOffset(
                    start.table_id, version, index=last_index, is_initial=is_initial, order=order, last_change=last_change
                )
            last_change = last_change if files.last_change is None else (version, files.last_change)
            end = StreamOffset(start.table_id, version + 1, last_change=last_change)
            times_ms += [] if commit is None else [commit.modification_time_ms]
            if budget.is_spent or (is_by_time and (budget.has_taken or first_index > 0)):
                # A batch by time reads its files with a predicate that must not be applied to the files of commits.
                return end
        # All versions were read. If no file was taken, the rest decides whether the stream records that (see the docstring).
        if budget.has_taken or end == start:
            return end
        if end.version - start.version >= _IDLE_COMMITS or (times_ms and max(times_ms) - times_ms[0] >= _IDLE_MS):
            return end
        self._idle = _Idle(start, end.version, times_ms[0]) if times_ms else None
        return start

    def _idle_since(self, start: StreamOffset) -> _Idle | None:
        """The part of the log without rows that an earlier trigger found after this offset; None if there is none."""
        return self._idle if self._idle is not None and self._idle.start == start else None

    def _versions_after(
        self, start: StreamOffset, last: int | None
    ) -> Iterator[tuple[int, LogFile | None, int, Sequence[LogFile]]]:
        """Yields (version, its commit or None for the initial snapshot, the index of its first file that is not read yet, some
        commits after it) for each version from `start` on, without those that are known to have nothing to read."""
        version, first_index, idle = start.version, start.next_index, self._idle_since(start)
        if idle is not None:
            version, first_index = idle.version, 0
        elif start.is_initial:
            yield version, None, first_index, ()
            version, first_index = version + 1, 0
        commits = self._log.commits_from(version)
        for number, commit in enumerate(commits):
            if last is not None and commit.version > last:
                return
            next_commits = commits[number + 1 : number + 1 + READ_AHEAD]
            yield commit.version, commit, first_index if commit.version == version else 0, next_commits
