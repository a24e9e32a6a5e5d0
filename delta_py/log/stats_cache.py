"""Parsed statistics of checkpoints, kept on the local disk: parsing their JSON is most of the work of opening a large table.

    cache = StatsCache.of_environment()                      # None: switched off
    kept = cache.of(identity, leaves)                        # of one Parquet file of a checkpoint
    kept.known(start, count), kept.missing                   # what need not be parsed again, and what must be
    kept.remember(stats); kept.finish() or kept.abandon()    # what was parsed, batch by batch

A file of a checkpoint never changes, so nothing here grows old: an entry is named by a hash of all that it depends on, the
file's footer among it, and holds one leaf of all rows (or, for the leaf (), the numbers of records). Entries are written
beside their name and renamed, so that processes see whole ones; a checksum guards against a damaged disk, and an entry that
does not keep it counts as missing. The oldest go when all together are too large. Bounds are data: only the user may read them.

PYDELTA_CACHE_DIR is the directory (by default pydelta in the user's cache directory; empty switches the cache off), and
PYDELTA_CACHE_MB what it may hold (by default 1024).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as DiskPath
from typing import Self

import pyarrow as pa

from delta_py.protocol.schema import DataType, Path
from delta_py.protocol.stats import RULES, FileStats, unknown_stats

_log = logging.getLogger("delta_py")

LEAST_ROWS = 10_000
"""Files of fewer rows are parsed as fast as an entry is found."""

_DEFAULT_MB = 1024
_RECORDS: Path = ()
_SUFFIX = ".stats"
_OWN_NAME = re.compile(r"[0-9a-f]{64}\.stats|[0-9]+-[0-9a-f]{16}\.new")
_ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class StatsCache:
    """A directory of entries, shared by any number of processes."""

    directory: DiskPath
    limit_bytes: int

    @classmethod
    def of_environment(cls) -> Self | None:
        """The cache that the environment's variables speak of; None where it is switched off or has no place."""
        place = os.environ.get("PYDELTA_CACHE_DIR")
        megabytes = os.environ.get("PYDELTA_CACHE_MB", "")
        limit = int(megabytes) if megabytes.isdigit() else _DEFAULT_MB
        if place == "" or limit == 0:
            return None
        try:
            directory = DiskPath(place) if place else _users_cache()
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
            _log.debug("no cache of statistics: %s", error)
            return None
        return cls(directory, limit << 20)

    def of(self, identity: bytes, leaves: Mapping[Path, DataType]) -> KeptStats:
        """What is kept of a file. identity: of its content. leaves: those whose statistics are wanted from its JSON."""
        names = {path: self._name(identity, path, kind) for path, kind in leaves.items()}
        names[_RECORDS] = self._name(identity, _RECORDS, None)
        tables = {path: table for path, name in names.items() if (table := self._load(name)) is not None}
        return KeptStats(self, names, tables, {path: kind for path, kind in leaves.items() if path not in tables})

    def _name(self, identity: bytes, path: Path, kind: DataType | None) -> str:
        parts = repr((RULES, pa.__version__, path, kind)).encode()
        return hashlib.sha256(identity + parts).hexdigest() + _SUFFIX

    def _load(self, name: str) -> pa.Table | None:
        """An entry; None where there is none that is whole."""
        path = self.directory / name
        try:
            whole = pa.memory_map(str(path)).read_buffer()
            os.utime(path)
        except OSError:
            return None
        content, kept = whole.slice(0, max(0, whole.size - 4)), whole.slice(max(0, whole.size - 4))
        if kept.to_pybytes() != _checksum(content):
            _log.warning("%s is damaged; the statistics are parsed again", path)
            return None
        return pa.ipc.open_stream(content).read_all()

    def trim(self) -> None:
        """Remove what was used longest ago, until the rest may stay, and what processes that died left half-written. What others
        keep in the directory is not touched."""
        found = sorted(self._entries())
        total = sum(size for _, size, _ in found)
        for used, size, path in found:
            unfinished = not path.name.endswith(_SUFFIX)
            if (used > time.time() - _ABANDONED_SECONDS) if unfinished else (total <= self.limit_bytes):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                path.unlink()
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, DiskPath]]:
        with os.scandir(self.directory) as entries:
            for entry in filter(lambda found: _OWN_NAME.fullmatch(found.name), entries):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    yield status.st_mtime, status.st_size, DiskPath(entry.path)


def _users_cache() -> DiskPath:
    given = os.environ.get("XDG_CACHE_HOME")
    return (DiskPath(given) if given else DiskPath.home() / ".cache") / "pydelta"


def _checksum(content: pa.Buffer) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little")


@dataclass(slots=True)
class KeptStats:
    """The statistics of one file of a checkpoint: those that the cache has, and those that it is to get.

    missing: leaves that must be parsed. Rows are counted as the file's add actions are.
    """

    _cache: StatsCache
    _names: Mapping[Path, str]
    _tables: Mapping[Path, pa.Table]
    missing: Mapping[Path, DataType]
    _entries: dict[Path, _Entry] = field(default_factory=dict)
    _failed: bool = False

    @property
    def is_complete(self) -> bool:
        return not self.missing and _RECORDS in self._tables

    def known(self, start: int, count: int) -> FileStats:
        """What the cache has of `count` rows; the leaves that it lacks are unknown."""
        columns = {path: _columns(table.slice(start, count)) for path, table in self._tables.items()}
        unknown = unknown_stats(count)
        records = columns.pop(_RECORDS, None)
        found = FileStats(
            count,
            unknown.num_records if records is None else records["num_records"],
            unknown.tight_bounds if records is None else records["tight_bounds"],
            {path: named["minimum"] for path, named in columns.items() if "minimum" in named},
            {path: named["maximum"] for path, named in columns.items() if "maximum" in named},
            {path: named["null_count"] for path, named in columns.items() if "null_count" in named},
        )
        assert len(found.num_records) == count, "an entry has fewer rows than its file"
        return found

    def remember(self, stats: FileStats) -> None:
        """Take in the next rows' statistics of the missing leaves. A disk that does not take them is no error."""
        if self._failed:
            return
        try:
            for path in self._to_write():
                batch = _batch(stats, path)
                if path not in self._entries:
                    self._entries[path] = _Entry.begin(self._cache.directory, batch.schema)
                self._entries[path].write(batch)
        except (OSError, pa.ArrowException) as error:
            self._give_up(error)

    def finish(self) -> None:
        """All rows were given: the entries get their names."""
        try:
            for path, entry in self._entries.items():
                entry.finish(self._cache.directory / self._names[path])
            if self._entries:
                self._cache.trim()
            self._entries = {}
        except OSError as error:
            self._give_up(error)

    def abandon(self) -> None:
        """Not all rows were given: nothing is kept."""
        for entry in self._entries.values():
            entry.remove()
        self._entries = {}

    def _to_write(self) -> list[Path]:
        return [*self.missing, *([] if _RECORDS in self._tables else [_RECORDS])]

    def _give_up(self, error: Exception) -> None:
        _log.warning("statistics cannot be kept in %s: %s", self._cache.directory, error)
        self._failed = True
        self.abandon()


def _columns(rows: pa.Table) -> dict[str, pa.Array]:
    return {name: rows[name].combine_chunks() for name in rows.column_names}


def _batch(stats: FileStats, path: Path) -> pa.RecordBatch:
    if path == _RECORDS:
        return pa.record_batch({"num_records": stats.num_records, "tight_bounds": stats.tight_bounds})
    sides = {"minimum": stats.minimum, "maximum": stats.maximum, "null_count": stats.null_count}
    columns = {name: side[path] for name, side in sides.items() if path in side}
    return pa.record_batch(columns or {"nothing": pa.nulls(stats.file_count)})


class _Entry:
    """An entry in the making."""

    def __init__(self, path: DiskPath, sink: pa.NativeFile, schema: pa.Schema) -> None:
        self._path, self._sink = path, sink
        self._writer = pa.ipc.new_stream(sink, schema)

    @classmethod
    def begin(cls, directory: DiskPath, schema: pa.Schema) -> _Entry:
        path = directory / f"{os.getpid()}-{secrets.token_hex(8)}.new"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return cls(path, pa.OSFile(str(path), "wb"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises pa.ArrowInvalid when the batch has other columns than the first."""
        self._writer.write_batch(batch)

    def finish(self, name: DiskPath) -> None:
        self._writer.close()
        self._sink.close()
        with pa.memory_map(str(self._path)) as written:
            kept = _checksum(written.read_buffer())
        with open(self._path, "ab") as file:
            file.write(kept)
        self._path.rename(name)

    def remove(self) -> None:
        self._sink.close()
        self._path.unlink(missing_ok=True)
