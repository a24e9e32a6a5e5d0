"""The files of the table at the version where a stream begins, in the order in which it reads them.

They are ordered by (modification time, path), or by the times in their rows (event_time.py). The sorted files stay in memory
until the stream has read them all.
"""

from __future__ import annotations

import pyarrow as pa

from delta_py.changes.spilling_file_list import sorted_by
from delta_py.expressions.tree import Expression
from delta_py.log.commit_reader import FILE_SCHEMA
from delta_py.snapshot import Snapshot
from delta_py.streaming.commits import stream_schema
from delta_py.streaming.files.event_time import EventTime
from delta_py.streaming.files.numbered_files import FileChoice, NumberedFiles
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import StreamOffset

# Paths are compared as the log spells them, percent-encoded, as delta-spark's streams do.
_SPELLING = "path_text"


class InitialFiles:
    """The files of the table at the version where a stream begins, in the order in which the stream reads them.

    choice: which of the files the stream reads. event_time: the column whose times order the files; None to order them by age.
    _sorted: the version and its ordered files, until the stream has read them.
    """

    def __init__(self, log: StreamLog, choice: FileChoice, event_time: EventTime | None) -> None:
        self._log, self._choice, self._event_time = log, choice, event_time
        self._schema = stream_schema(with_stats=choice.needs_stats)
        self._sorted: tuple[int, pa.Table] | None = None

    @property
    def is_by_time(self) -> bool:
        return self._event_time is not None

    def files_at(self, version: int) -> pa.Table:
        """All files of the table at a version, ordered: stream_schema, and EventTime's columns if it orders them.

        Raises LogFileNotFoundError (DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE)."""
        if self._sorted is None or self._sorted[0] != version:
            self._sorted = version, self._sort_files(self._log.state_at(version))
        return self._sorted[1]

    def numbered(self, version: int) -> NumberedFiles:
        """The ordered files of a version with their indexes."""
        return NumberedFiles(self.files_at(version), self._choice)

    def release(self) -> None:
        """Release the files, because the stream has read them."""
        self._sorted = None

    def _sort_files(self, snapshot: Snapshot) -> pa.Table:
        """The snapshot's files in the order in which the stream reads them: by event time, or by age."""
        with_stats = self._choice.needs_stats
        if self._event_time is not None:
            return self._event_time.files_of(snapshot, self._schema, with_stats=with_stats)
        schema = self._schema.append(FILE_SCHEMA.field(_SPELLING))
        batches = (batch.files.select(schema.names) for batch in snapshot.file_batches(want_whole=with_stats))
        return sorted_by(("modification_time", _SPELLING), batches, schema).select(self._schema.names)

    def end_of_ties(self, version: int, index: int | None) -> int | None:
        """The index of the file after which a batch that takes the file at `index` may end: the last file with the same minimum
        time. None if the batch takes all remaining files. index: None if it takes them anyway."""
        assert self._event_time is not None
        files = self.files_at(version)
        # Without an index all files were taken; the index of the last file means the same.
        last_index = None if index is None else self._event_time.end_of_ties(files, index)
        return None if last_index == files.num_rows - 1 else last_index

    def files_of_batch(self, start: StreamOffset, end: StreamOffset) -> tuple[list[pa.RecordBatch], Expression | None]:
        """The files that a batch reads, and which of their rows belong to it (None: all). start: initial, exclusive."""
        files, first_index = self.files_at(start.version), start.next_index
        stop = end.next_index if end.is_initial else files.num_rows
        if self._event_time is None:
            return list(NumberedFiles(files, self._choice).batches(first_index, stop)), None
        batch_files, rows_predicate = self._event_time.files_between(files, start.index, stop - 1)
        return list(NumberedFiles(batch_files, self._choice).batches(0, None)) if stop > first_index else [], rows_predicate
