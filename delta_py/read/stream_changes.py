"""The change feed as a stream: the changes of one commit as numbered files.

The rules are those of the feed in a batch (changes.py); here they are asked for one commit at a time. A change's place is the
number of its action among the commit's change files, or, where there are none, among all adds and removes that change data:
so a place means the same after a restart, and to the reference's streams. A commit with change files or deletion vectors is
not divided: the rows before and after an update stay together.
Protocol: Change Data Files; Add CDC File.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.tree import Expression
from delta_py.log.history import commit_times
from delta_py.log.reader import CommitReader
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import Action, AddCDCFile, AddFile, RemoveFile
from delta_py.protocol.table_config import TableConfig
from delta_py.read.changes import (
    CHANGE_FIELDS,
    CHANGE_TYPE,
    UNORDERED_COMMITS,
    Change,
    ChangePruner,
    CommitChanges,
    change_constants,
    physical_partitions,
)
from delta_py.read.file_groups import scan_files
from delta_py.read.scan import ScanOptions
from delta_py.read.scan_state import ColumnSource, ScanColumn, ScanFile
from delta_py.storage.store import ObjectStore

CHANGE_COLUMNS = tuple(ScanColumn(f, f, ColumnSource.CONSTANT) for f in CHANGE_FIELDS)

_THREADS = 4
_COMMITS_KEPT, _CHANGES_KEPT = 256, 50_000


class ChangeReader:
    """The changes of single commits. config: of the version whose schema the stream has; its partition columns are those of
    every commit, as check_state makes sure. Keeps what it read last."""

    def __init__(self, store: ObjectStore, config: TableConfig) -> None:
        self._store, self._config = store, config
        self._known: dict[int, tuple[LogFile, CommitFiles]] = {}
        self._times: dict[int, int] = {}

    def of(self, file: LogFile) -> CommitFiles:
        """Raises ChangeDataFeedError, DeletionVectorError, CorruptTableError."""
        known = self._known.pop(file.version, None)
        if known is None or known[0] != file:
            known = file, self._read(file)
        self._known[file.version] = known
        while len(self._known) > 1 and self._is_too_much():
            del self._known[next(iter(self._known))]
        return known[1]

    def as_inserts(self, files: pa.RecordBatch, version: int) -> Iterator[ScanFile]:
        """The rows of a snapshot's files, as the inserts of its version."""
        constants = change_constants("insert", version, self._time(version))
        for file in scan_files(files):
            yield replace(file, constants=constants)

    def _is_too_much(self) -> bool:
        return len(self._known) > _COMMITS_KEPT or sum(len(files.changes) for _, files in self._known.values()) > _CHANGES_KEPT

    def _read(self, file: LogFile) -> CommitFiles:
        actions = list(CommitReader(self._store).actions(file))
        with ThreadPoolExecutor(_THREADS, "delta_py-changes") as pool:
            partitions = physical_partitions(self._config)
            commit = CommitChanges(self._store, pool, file.version, self._time(file.version), partitions)
            changes = list(commit.changes(actions))
        numbered = _numbered(actions)
        places = {(_kind(action), action.path): place for place, action in enumerate(numbered)}
        by_place = {places[_kind(change), change.file.path]: change for change in changes}
        order = sorted(by_place)
        is_whole = any(isinstance(action, AddCDCFile) or action.deletion_vector is not None for action in numbered)
        ordered, last_change = tuple(by_place[place] for place in order), len(numbered) - 1 if numbered else None
        return CommitFiles(np.array(order, np.int64), ordered, is_whole, last_change, self._config)

    def _time(self, version: int) -> int:
        """When a version was committed, as the feed says in a batch."""
        if version not in self._times:
            times = commit_times(self._store, self._config, max(0, version - UNORDERED_COMMITS), version + UNORDERED_COMMITS)
            self._times = {time.version: time.timestamp_ms for time in times}
        return self._times[version]


def _numbered(actions: Sequence[Action]) -> list[AddCDCFile] | list[AddFile | RemoveFile]:
    recorded = [action for action in actions if isinstance(action, AddCDCFile)]
    return recorded or [action for action in actions if isinstance(action, AddFile | RemoveFile) and action.data_change]


def _kind(of: Change | AddCDCFile | AddFile | RemoveFile) -> str | None:
    """The change type of all rows; None where rows say it themselves."""
    match of:
        case Change(recorded=False):
            kind: str = of.file.constants[CHANGE_TYPE][0]
            return kind
        case Change() | AddCDCFile():
            return None
        case AddFile():
            return "insert"
        case RemoveFile():
            return "delete"


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The changes of one commit. numbers: their places, ascending. is_whole: they belong into one batch. last_change: the place
    of the last action that was numbered; None for none."""

    numbers: Any
    changes: tuple[Change, ...]
    is_whole: bool
    last_change: int | None
    config: TableConfig

    def places(self, first: int) -> Iterator[tuple[Any, Any]]:
        """(places, sizes in bytes) from the place `first` on."""
        skipped = int(np.searchsorted(self.numbers, first))
        yield self.numbers[skipped:], np.array([change.file.size_bytes for change in self.changes[skipped:]], np.int64)

    def scan_files(
        self, first: int, stop: int | None, predicate: Expression | None, exclude: str | None, options: ScanOptions
    ) -> Iterator[ScanFile]:
        """The files to read from the place `first` up to `stop`, not included. exclude: an RE2 pattern of paths to leave out."""
        bounds = (first, np.iinfo(np.int64).max if stop is None else stop)
        chosen: Sequence[Change] = self.changes[slice(*np.searchsorted(self.numbers, bounds))]
        if exclude is not None and chosen:
            paths = pa.array([change.file.path for change in chosen], pa.string())
            left_out = pc.match_substring_regex(paths, exclude).to_pylist()
            chosen = [change for change, out in zip(chosen, left_out, strict=True) if not out]
        for change in ChangePruner(self.config, predicate, options).prune(list(chosen)):
            yield change.file
