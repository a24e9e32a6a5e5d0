"""The files of one batch of a stream, as a Scan."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from delta_py.changes.change_feed import CHANGE_COLUMNS
from delta_py.changes.commit_changes import PLANNED_CHANGES
from delta_py.errors import InvalidOptionError, shown
from delta_py.expressions.tree import Expression, conjunction
from delta_py.log.segment import LogFile
from delta_py.scan.file_pruner import FilePruner, file_bytes
from delta_py.scan.planning import Scan, ScanReport, make_state
from delta_py.scan.scan_state import ScanState
from delta_py.streaming.commits import ReadState, stream_schema
from delta_py.streaming.files.committed_files import CommittedFiles
from delta_py.streaming.files.initial_files import InitialFiles
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import BEFORE_FIRST, StreamOffset
from delta_py.streaming.stream_options import StreamOptions
from delta_py.types.schema import StructType

_PLANNED_SCHEMA = stream_schema(with_stats=False)


class BatchPlanner:
    """Finds the files of a batch from its two offsets. read_state: the version whose schema the rows get. initial: the files that
    the table has when the stream begins. committed: the files of the commits after that."""

    def __init__(
        self, read_state: ReadState, options: StreamOptions, log: StreamLog, initial: InitialFiles, committed: CommittedFiles
    ) -> None:
        self._read_state, self._options, self._log = read_state, options, log
        self._initial, self._committed = initial, committed

    def state(
        self, columns: StructType | None = None, predicate: Expression | None = None, batch_predicate: Expression | None = None
    ) -> ScanState:
        """How an executor reads the files of a batch. columns: None for all columns of the stream. predicate: rows for which it
        is not true may be left out. batch_predicate: which rows of the files belong to the batch; None for all."""
        options = self._options
        change_columns = CHANGE_COLUMNS if options.change_feed else ()
        parts = tuple(part for part in (options.predicate, predicate, batch_predicate) if part is not None)
        scan = options.scan if batch_predicate is None else replace(options.scan, drop_rows=True)
        requested_columns = options.columns if columns is None else columns
        config, store = self._read_state.config, self._read_state.store
        return make_state(config, store, requested_columns, conjunction(parts) if parts else None, scan, change_columns)

    def plan(
        self, start: StreamOffset, end: StreamOffset, columns: StructType | None = None, predicate: Expression | None = None
    ) -> Scan:
        """The files from `start` (exclusive) to `end` (inclusive). columns, predicate: as in `state`; the predicate prunes
        files by their partition values. Raises InvalidOptionError (DELTA_INVALID_SOURCE_OFFSET_FORMAT) for offsets that do not
        bound one batch."""
        version, first_index = start.version, start.next_index
        initial_batches, batch_predicate = self._initial.files_of_batch(start, end) if start.is_initial else ([], None)
        if start.is_initial:
            version, first_index = version + 1, 0
        # For each commit: the index of the first file to read, and where to stop (exclusive; None: at the end).
        portions = [
            (commit, first_index if commit.version == version else 0, end.next_index if commit.version == end.version else None)
            for commit in self._commits(version, end)
        ]
        # batch_predicate selects rows of the files that the table had at the start. It must not be applied to files of commits,
        # so a batch cannot have both.
        if batch_predicate is not None and portions:
            raise _mixed_batch_error(start, end)
        changes = self._committed.changes
        if changes is not None:
            inserts = [changes.as_inserts(batch, start.version) for batch in initial_batches]
            batches = [*inserts, *self._committed.changed_between(changes, portions)]
            files = pa.Table.from_batches(batches, PLANNED_CHANGES)
        else:
            batches = [*initial_batches, *self._committed.added_between(portions)]
            files = pa.Table.from_batches([batch.select(_PLANNED_SCHEMA.names) for batch in batches], _PLANNED_SCHEMA)
        pruned_files = files
        if predicate is not None:
            pruner = FilePruner.of(self._read_state.config, predicate, self._options.scan.timezone)
            pruned_files = pa.Table.from_batches([pruner.prune(batch, None) for batch in files.to_batches()], files.schema)
        report = ScanReport(files.num_rows, file_bytes(files), pruned_files.num_rows, file_bytes(pruned_files))
        return Scan(self.state(columns, predicate, batch_predicate), pruned_files, report)

    def _commits(self, version: int, end: StreamOffset) -> list[LogFile]:
        """The commits from `version` to the one in which the batch ends. A batch that ends before the first file of a version
        does not read this version."""
        last = end.version if end.index > BEFORE_FIRST else end.version - 1
        if end.is_initial or last < version:
            return []
        commits = self._log.commits_from(version, last)
        if not commits or commits[-1].version < last:
            self._log.report_data_loss(commits[-1].version + 1 if commits else version, last + 1)
        return commits


def _mixed_batch_error(start: StreamOffset, end: StreamOffset) -> InvalidOptionError:
    """The error for a batch of two kinds of files: those that the table had when the stream began, of which a batch reads the
    rows of a time range (withEventTimeOrder), and files of later commits."""
    return InvalidOptionError(
        f"The stream's checkpoint has a batch from {shown(start.to_json())} to {shown(end.to_json())}. pydelta "
        "makes no such batch: with withEventTimeOrder a batch reads rows that the table had when the stream began, or later "
        "commits, and not both. The checkpoint was changed or is damaged: restore it, or start a new one.",
        error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        sql_state="XXKDS",
    )
