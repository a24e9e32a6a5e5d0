"""The change feed as a stream: the changes of one commit as numbered files.

The rules are those of the batch change feed (commit_changes.py), applied to one commit at a time. A commit with change files or
deletion vectors is not divided: the rows before and after an update stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.changes.change_feed import UNORDERED_COMMITS, ChangePruner
from delta_py.changes.commit_changes import PLACE, CommitChanges, inserts_of, read_actions
from delta_py.errors import DeltaError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import commit_times
from delta_py.log.segment import LogFile
from delta_py.protocol.paths import encode_paths
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_groups import COMMIT_VERSION
from delta_py.storage.store import ObjectStore

_THREADS = 4
_MOST_CACHED_COMMITS, _MOST_CACHED_CHANGES = 256, 50_000  # changes: rows of CHANGED_FILES


class ChangeReader:
    """Reads the changes of single commits, and caches the commits that it read last. config: of the version whose schema the
    stream has; every commit has the same partition columns, as check_state ensures."""

    def __init__(self, store: ObjectStore, config: TableConfig) -> None:
        self._store, self._config = store, config
        self._cached_commits: dict[int, tuple[LogFile, CommitFiles]] = {}
        self._times_ms: dict[int, int] = {}

    def read_changes(self, file: LogFile, next_commits: Sequence[LogFile] = ()) -> CommitFiles:
        """The changes of a commit. next_commits: commits after it, which may be read next. Raises ChangeDataFeedError,
        DeletionVectorError, CorruptTableError."""
        cached = self._cached_commits.get(file.version)
        if cached is None or cached[0] != file:
            if cached is not None:  # another file for the same version: the log was replaced, and its commits have other times
                self._times_ms = {}
            try:
                commits = self._read([file, *next_commits])
            except DeltaError:  # the error may be in a later commit, which the caller does not need yet
                commits = self._read([file])
            self._cache(commits)
            cached = commits[0]
        return cached[1]

    def as_inserts(self, files: pa.RecordBatch, version: int) -> pa.RecordBatch:
        """PLANNED_CHANGES: the rows of a snapshot's files, as the inserts of its version."""
        return inserts_of(files, version, self._commit_time_ms(version))

    def _cache(self, commits: Sequence[tuple[LogFile, CommitFiles]]) -> None:
        """Cache the commits for the next trigger, within bounds; these commits are cached even if they exceed the bounds."""
        for file, files in commits:
            self._cached_commits.pop(file.version, None)
            self._cached_commits[file.version] = file, files
        change_count = sum(files.changed.num_rows for _, files in self._cached_commits.values())
        while len(self._cached_commits) > len(commits) and (
            len(self._cached_commits) > _MOST_CACHED_COMMITS or change_count > _MOST_CACHED_CHANGES
        ):
            change_count -= self._cached_commits.pop(next(iter(self._cached_commits)))[1].changed.num_rows

    def _read(self, files: Sequence[LogFile]) -> list[tuple[LogFile, CommitFiles]]:
        """The changes of the first commit, and of those after it that are computed together with it: some of `files`, in
        order."""
        actions = next(read_actions(CommitReader(self._store), files))
        with ThreadPoolExecutor(_THREADS, "delta_py-changes") as pool:
            times_ms = {commit.version: self._commit_time_ms(commit.version) for commit in actions.commits}
            partitions = frozenset(self._config.physical_partition_columns)
            changed_files = CommitChanges(self._store, pool, times_ms, partitions).find_changed_files(actions)
        action_versions, change_versions = (table[COMMIT_VERSION].to_numpy() for table in (actions.files, changed_files))
        commits = []
        for file, commit in zip(files, actions.commits, strict=False):
            commit_actions = actions.files.slice(*_find_version(action_versions, commit.version))
            # A commit with change files or deletion vectors is not divided (see the docstring of this file).
            is_whole = commit.has_change_files or commit_actions["deletion_vector"].null_count < commit_actions.num_rows
            last_change = commit_actions.num_rows - 1 if commit_actions.num_rows else None
            part = changed_files.slice(*_find_version(change_versions, commit.version))
            commits.append((file, CommitFiles(part, is_whole, last_change)))
        return commits

    def _commit_time_ms(self, version: int) -> int:
        """When a version was committed, as the batch change feed reports it."""
        if version not in self._times_ms:
            # The commits before have an influence on the time (see UNORDERED_COMMITS). Those after it are probably read next.
            times = commit_times(self._store, self._config, max(0, version - UNORDERED_COMMITS), version + UNORDERED_COMMITS)
            self._times_ms = {time.version: time.timestamp_ms for time in times}
        return self._times_ms[version]


def _find_version(versions: Any, version: int) -> tuple[int, int]:
    """(start, length) of the rows of a version in a table. versions: of the table's rows, ascending; a numpy array."""
    start, stop = np.searchsorted(versions, [version, version + 1])
    return int(start), int(stop - start)


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The changes of one commit. changed: CHANGED_FILES. is_whole: they belong into one batch, so that the two images of an
    updated row are not separated. last_change: the index of the last numbered action; None if there is none."""

    changed: pa.Table
    is_whole: bool
    last_change: int | None

    def indexes_and_sizes(self, first_index: int) -> Iterator[tuple[Any, Any]]:
        """(indexes, sizes in bytes) of the changed files from the index `first_index` on: one pair of arrays."""
        files = self._between(first_index, None)
        yield files[PLACE].to_numpy(), files["size"].to_numpy()

    def batches(self, first_index: int, stop: int | None, pruner: ChangePruner, exclude: str | None) -> Iterator[pa.RecordBatch]:
        """PLANNED_CHANGES to read from the index `first_index` up to `stop` (exclusive). exclude: as in FileChoice."""
        files = self._between(first_index, stop)
        if exclude is not None:
            files = files.filter(pc.invert(pc.match_substring_regex(encode_paths(files["path"]), exclude)))
        yield from pruner.prune(files)

    def _between(self, first_index: int, stop: int | None) -> pa.Table:
        """The changed files from an index up to `stop` (exclusive); None for all that follow."""
        indexes = self.changed[PLACE].to_numpy()
        start = int(np.searchsorted(indexes, first_index))
        end = self.changed.num_rows if stop is None else int(np.searchsorted(indexes, stop))
        return self.changed.slice(start, max(0, end - start))
