"""How far a stream is behind its table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from delta_py.streaming.files.initial_files import InitialFiles
from delta_py.streaming.log import MOST_CACHED_FILES, StreamLog
from delta_py.streaming.offset import StreamOffset

# Limits for measuring the lag: commits to read after the offset, and files in them. The log can cache this many.
_LAG_COMMITS, _LAG_FILES = 1_000, MOST_CACHED_FILES // 2


@dataclass(frozen=True, slots=True)
class Lag:
    """What a stream still has to read. versions: the number of commits. bytes: the size of the files. at_least: whether the
    numbers are lower bounds, because there are more commits than the measurement read."""

    files: int
    bytes: int
    versions: int
    at_least: bool


def lag_after(offset: StreamOffset, log: StreamLog, initial: InitialFiles) -> Lag:
    """The unread data after an offset. It includes files that the options leave out."""
    file_count, size_bytes, version, first = 0, 0, offset.version, offset.next_index
    if offset.is_initial:
        remaining_files = initial.files_at(version).slice(first)
        file_count, size_bytes = remaining_files.num_rows, pc.sum(remaining_files["size"]).as_py() or 0
        version, first = version + 1, 0
    commits = log.commits_from(version, version + _LAG_COMMITS)  # one more than are read: it shows whether there are more
    # counted_commits: those whose files were added up. enough_files: the number of files at which the measurement ends.
    counted_commits, enough_files = 0, file_count + _LAG_FILES
    for commit in commits[:_LAG_COMMITS]:
        if file_count >= enough_files:
            break
        added = log.read(commit).files.slice(first if commit.version == version else 0)
        file_count, size_bytes = file_count + added.num_rows, size_bytes + (pc.sum(added["size"]).as_py() or 0)
        counted_commits += 1
    return Lag(files=file_count, bytes=size_bytes, versions=len(commits), at_least=counted_commits < len(commits))
