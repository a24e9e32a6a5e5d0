"""Snapshots that cache what they read of the log, for a process that plans many queries.

    snapshot = CachedSnapshot.load(store)           # as Snapshot.load
    snapshot = CachedSnapshot.of(snapshot)          # the same version, from the cache if this process has read it before

Each load lists the log of the table again. Cached data is used only if the listing is the same, file by file with sizes, times
and etags; local files also need the same inodes and change times (FileId). The cache has protocol and metadata, and the list of
files as Arrow for each requested set of statistics, up to a limit of memory. The least recently used entries are dropped first.

Without etags a log is cached only if its files were last changed at least a minute ago, so that later files of the same names
have other times. If the file system has no change times, a hash of the log's content is compared: this takes less time than
reading the log. On local disks a directory can be moved away and back in one step. So data from local disks is cached
only if the log is listed the same afterwards. A table with a coordinator is always read, and so is a table in a store
without times.
Protocol: Action Reconciliation.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError
from delta_py.log.reconciliation import FileBatch
from delta_py.log.segment import LogFile, LogSegment, load_segment
from delta_py.object_stores.open_store import coordination_of
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import FileStats
from delta_py.storage.cache.content_identity import digest_of, has_change_times, is_settled
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import DataType, Path

_VersionKey: TypeAlias = "tuple[ObjectStore, LogSegment, bytes | None]"
"""What identifies the content of one version: its store, its listed log files, and a hash of their content. The hash is None if
the listing alone identifies the content."""
_BatchArguments: TypeAlias = "tuple[tuple[tuple[Path, DataType], ...], bool, bool]"
"""The arguments of Snapshot.file_batches: stats_leaves, want_whole, want_records."""


@dataclass(frozen=True, slots=True)
class _FileList:
    """All live files of a version. memory_bytes: the Arrow memory of the batches. size_bytes: the sum of the sizes of the
    files."""

    batches: tuple[FileBatch, ...]
    memory_bytes: int
    size_bytes: int


class SnapshotCache:
    """The cache of a process. Threads may share it.

    most_versions: the maximum number of versions whose protocol and metadata are cached. most_bytes: the maximum memory for all
    lists of files, including those that are being read. most_bytes_of_one: a list that needs more memory is not cached.
    """

    def __init__(self, most_versions: int = 32, most_bytes: int = 256 << 20, most_bytes_of_one: int = 128 << 20) -> None:
        self.most_versions, self.most_bytes, self.most_bytes_of_one = most_versions, most_bytes, most_bytes_of_one
        self._lock = threading.Lock()
        self._snapshots: OrderedDict[_VersionKey, CachedSnapshot] = OrderedDict()
        self._lists: OrderedDict[tuple[_VersionKey, _BatchArguments], _FileList] = OrderedDict()
        self._bytes = 0  # of the cached lists, and of reservations

    @property
    def memory_bytes(self) -> int:
        """The memory of all lists, including those that are being read."""
        return self._bytes

    def find_snapshot(self, version_key: _VersionKey, listed_at: float) -> CachedSnapshot | None:
        """A copy of the cached snapshot that only the caller uses; None if the version is not cached. listed_at: the time
        (time.monotonic) at which the caller listed the log. The cached snapshot remembers this time, so that the log need not be
        listed again so soon."""
        with self._lock:
            cached = self._snapshots.get(version_key)
            if cached is not None:
                self._snapshots.move_to_end(version_key)
                cached._listed_at = max(cached._listed_at, listed_at)
        return None if cached is None else cached.for_another_thread()

    def add_snapshot(self, version_key: _VersionKey, snapshot: CachedSnapshot) -> None:
        """Cache the protocol and metadata of a version, and drop the least recently used versions if there are too many."""
        with self._lock:
            self._snapshots.setdefault(version_key, snapshot.for_another_thread())
            while len(self._snapshots) > self.most_versions:
                self._snapshots.popitem(last=False)

    def find_files(self, version_key: _VersionKey, arguments: _BatchArguments) -> _FileList | None:
        """The cached list of a version with the columns and statistics of these arguments; None if it is not cached."""
        with self._lock:
            cached = self._lists.get((version_key, arguments))
            if cached is not None:
                self._lists.move_to_end((version_key, arguments))
            return cached

    def add_files(self, version_key: _VersionKey, arguments: _BatchArguments, files: _FileList) -> None:
        """Add a list whose memory was reserved before. If another thread has added the same list in the meantime, this one
        replaces it, and the memory of the other one is released."""
        with self._lock:
            previous = self._lists.pop((version_key, arguments), None)
            self._lists[version_key, arguments] = files
            if previous is not None:
                self._bytes -= previous.memory_bytes

    def reserve(self, size_bytes: int) -> bool:
        """Reserve memory for a list that is being read, and return True. If necessary, drop the least recently used lists.
        Returns False, and reserves nothing, if the lists that are being read leave too little memory."""
        with self._lock:
            while self._bytes + size_bytes > self.most_bytes and self._lists:
                self._bytes -= self._lists.popitem(last=False)[1].memory_bytes
            if self._bytes + size_bytes > self.most_bytes:
                return False
            self._bytes += size_bytes
            return True

    def release(self, size_bytes: int) -> None:
        """Give back memory that was reserved for a list which is not cached."""
        with self._lock:
            self._bytes -= size_bytes

    def forget(self) -> None:
        """Drop everything except lists that are being read."""
        with self._lock:
            self._bytes -= sum(files.memory_bytes for files in self._lists.values())
            self._lists.clear()
            self._snapshots.clear()


SNAPSHOT_CACHE = SnapshotCache()
"""The cache of this process."""


class CachedSnapshot(Snapshot):
    """A Snapshot that takes protocol, metadata and files from the cache of this process, if they are there. It has the same
    guarantees as Snapshot, and pickles as a plain Snapshot."""

    @classmethod
    def of_segment(cls, store: ObjectStore, segment: LogSegment) -> Self:
        """As Snapshot.of_segment; from the cache if possible."""
        version_key = _version_key(store, segment)
        cached = None if version_key is None else SNAPSHOT_CACHE.find_snapshot(version_key, segment.listed_at)
        if isinstance(cached, cls):
            return cached
        snapshot = super().of_segment(store, segment)
        if version_key is not None and _is_unchanged(version_key):
            SNAPSHOT_CACHE.add_snapshot(version_key, snapshot)
        return snapshot

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The same version as a CachedSnapshot: the cached one, or else a new one with the snapshot's protocol and metadata."""
        version_key = _version_key(snapshot.store, snapshot.segment)
        cached = None if version_key is None else SNAPSHOT_CACHE.find_snapshot(version_key, snapshot.segment.listed_at)
        return cached if isinstance(cached, cls) else cls(snapshot.store, *snapshot.parts)

    def file_batches(
        self,
        stats_leaves: Mapping[Path, DataType] | None = None,
        want_whole: bool = False,
        want_records: bool = False,
    ) -> Iterator[FileBatch]:
        """As Snapshot.file_batches. The batches come from the cache, or are cached when all of them were consumed."""
        version_key = _version_key(self.store, self.segment)
        if version_key is None:
            yield from super().file_batches(stats_leaves, want_whole, want_records)
            return
        arguments = (tuple((stats_leaves or {}).items()), want_whole, want_records)
        files = SNAPSHOT_CACHE.find_files(version_key, arguments)
        if files is not None:
            self.check_log()
            # check_log also accepts a log that was copied. Then the cached list of files may not be that of this log.
            is_log_copied = self._last_listed != self.segment.last_commit.info
            if is_log_copied:
                files = None
        if files is None:
            batches_from_log = super().file_batches(stats_leaves, want_whole, want_records)
            yield from self._cache_while_read(version_key, arguments, batches_from_log)
        else:
            yield from files.batches
            self._num_files, self._size_bytes = sum(batch.files.num_rows for batch in files.batches), files.size_bytes

    def _cache_while_read(
        self, version_key: _VersionKey, arguments: _BatchArguments, batches_from_log: Iterator[FileBatch]
    ) -> Iterator[FileBatch]:
        """Yield the same batches. Memory for them is reserved while they are read. When the caller has consumed all of them, they
        are cached; if the caller stops earlier, the memory is released."""
        batches: list[FileBatch] | None = []  # None: the list is too long for the cache
        reserved_bytes = size_bytes = 0
        try:
            for batch in batches_from_log:
                memory_bytes = _memory_bytes(batch)
                if (
                    batches is not None
                    and reserved_bytes + memory_bytes <= SNAPSHOT_CACHE.most_bytes_of_one
                    and SNAPSHOT_CACHE.reserve(memory_bytes)
                ):
                    reserved_bytes += memory_bytes
                    size_bytes += pc.sum(batch.files["size"]).as_py() or 0
                    batches.append(batch)
                else:  # there is no room: return the batches, but do not cache them
                    batches = None
                    SNAPSHOT_CACHE.release(reserved_bytes)
                    reserved_bytes = 0
                yield batch
            if batches is not None and _is_unchanged(version_key):
                SNAPSHOT_CACHE.add_files(version_key, arguments, _FileList(tuple(batches), reserved_bytes, size_bytes))
                reserved_bytes = 0
        finally:
            SNAPSHOT_CACHE.release(reserved_bytes)


def _version_key(store: ObjectStore, segment: LogSegment) -> _VersionKey | None:
    """The key of a version in the cache; None if the version must not be cached: its table has a coordinator, or the listing
    would not show that a file was changed."""
    file_infos = [file.info for file in _files_of(segment)]
    if coordination_of(store) is not None or not all(map(is_settled, file_infos)):
        return None
    if store.is_remote or has_change_times(file_infos):
        return store, segment, None
    try:
        return store, segment, digest_of(store, file_infos)
    except (DeltaError, OSError):  # the code that reads the log will get the same error
        return None


def _files_of(segment: LogSegment) -> list[LogFile]:
    """All log files from which the version can be read. Each may occur more than once."""
    checkpoint = segment.checkpoint
    files = [*segment.commits, *segment.compactions, segment.last_commit]
    files += [] if checkpoint is None else [*checkpoint.files, *filter(None, [checkpoint.checksum])]
    return [*files, *filter(None, [segment.checksum])]


def _is_unchanged(version_key: _VersionKey) -> bool:
    """Whether the data that was read is surely the data of the listed files: listing a local log again must give the same
    key, because its directory may have been moved away and back. Remote stores cannot move directories in one step."""
    store, segment, _ = version_key
    if store.is_remote:
        return True
    try:
        return _version_key(store, load_segment(store, segment.version)) == version_key
    except (DeltaError, OSError):
        return False


def _memory_bytes(batch: FileBatch) -> int:
    """The Arrow memory of a batch: the columns of the files, and their statistics."""
    arrays = [] if batch.stats is None else _stats_arrays(batch.stats)
    return int(batch.files.get_total_buffer_size() + sum(array.get_total_buffer_size() for array in arrays))


def _stats_arrays(stats: FileStats) -> list[pa.Array]:
    """All arrays of the statistics."""
    by_leaf = (stats.minimum, stats.maximum, stats.null_count)
    return [stats.num_records, stats.tight_bounds, *(array for arrays in by_leaf for array in arrays.values())]
