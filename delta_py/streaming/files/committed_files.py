"""The files of single commits for a stream, as numbered files: the files that they added, or the changes of a change feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from delta_py.changes.change_feed import ChangePruner
from delta_py.log.segment import LogFile
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore
from delta_py.streaming.commits import ReadState, StreamCommit, check_rows_only_added, check_state, check_table
from delta_py.streaming.files.change_batches import ChangeReader
from delta_py.streaming.files.numbered_files import FileChoice, NumberedFiles, VersionFiles
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset_check import check_feed
from delta_py.streaming.stream_options import StreamOptions

# How many commits after a commit are passed along with it, so that their changes can be computed together.
READ_AHEAD = 128

# Parts of commits: (commit, index of the first file, stop index (exclusive) or None for all).
Portions = Sequence[tuple[LogFile, int, int | None]]


class CommittedFiles:
    """Finds the files of commits that the stream reads, after it has checked these commits.

    read_state: the version with whose schema the stream reads. tracks_schema: whether the stream stops where the schema changes,
    so that commits with another schema are not refused. changes: reads the changes of rows for a change feed; None for a stream
    of added rows.

    Methods raise SchemaMismatchError, UnsupportedOperationError, UnsupportedTableFeatureError (commits.py), ChangeDataFeedError,
    LogFileNotFoundError, CorruptTableError.
    """

    def __init__(
        self,
        store: ObjectStore,
        log: StreamLog,
        read_state: ReadState,
        options: StreamOptions,
        choice: FileChoice,
        *,
        tracks_schema: bool,
    ) -> None:
        self._log, self._read_state, self._options, self._choice = log, read_state, options, choice
        self._tracks_schema = tracks_schema
        self.changes = ChangeReader(store, read_state.config) if options.change_feed else None

    def read_checked(self, file: LogFile) -> StreamCommit:
        """Read a commit, and check that the stream can read its rows: their schema, the table's id, and, for a change feed, that
        the commit recorded changes. Raises as the class says."""
        commit, read_state = self._log.read(file), self._read_state
        if self._tracks_schema:
            check_table(read_state.config, commit.protocol, commit.metadata, commit.version, read_state.root)
        else:
            check_state(read_state, commit.protocol, commit.metadata, commit.version)
        if self.changes is not None and commit.metadata is not None:
            config = TableConfig(commit.protocol or read_state.config.protocol, commit.metadata)
            check_feed(config, commit.version, read_state.root)
        return commit

    def numbered(self, file: LogFile, next_commits: Sequence[LogFile]) -> VersionFiles:
        """The numbered files of a commit: the added files, or the changes of a change feed. next_commits: some commits after it,
        which may be read next."""
        if self.changes is None:
            return self._added_files(file)
        return self.changes.read_changes(self.read_checked(file).file, next_commits)

    def _added_files(self, file: LogFile) -> NumberedFiles:
        """The files that a commit added and that the stream reads."""
        commit, rules = self.read_checked(file), self._options.rules
        check_rows_only_added(commit, rules, self._read_state.root)
        is_skipped = commit.removed_path is not None and rules.skip_change_commits
        return NumberedFiles(commit.files.slice(0, 0) if is_skipped else commit.files, self._choice)

    def added_between(self, portions: Portions) -> Iterator[pa.RecordBatch]:
        """The added files to read, in the order of the portions."""
        for file, first_index, stop in portions:
            yield from self._added_files(file).batches(first_index, stop)

    def changed_between(self, changes: ChangeReader, portions: Portions) -> Iterator[pa.RecordBatch]:
        """The changes to read, in batches of PLANNED_CHANGES, in the order of the portions."""
        pruner = ChangePruner.of(self._read_state.config, self._options.predicate, self._options.scan.timezone)
        for number, (file, first_index, stop) in enumerate(portions):
            next_commits = [next_commit for next_commit, _, _ in portions[number + 1 : number + 1 + READ_AHEAD]]
            commit = changes.read_changes(self.read_checked(file).file, next_commits)
            yield from commit.batches(first_index, stop, pruner, self._options.exclude)
