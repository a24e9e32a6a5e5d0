"""A cache of parsed checkpoint statistics on the local disk: parsing their JSON is most of the work of opening a large table.

    cache = StatsCache.of_environment()                      # None: switched off
    stats = cache.of(identity, leaves)                       # of one Parquet file of a checkpoint
    stats.of_rows(start, count), stats.missing               # cached statistics, and the leaves that must be parsed
    stats.remember(parsed); stats.finish() or stats.abandon()    # store parsed statistics, batch by batch

A checkpoint file never changes. The name of an entry of the cache directory (storage/cache/disk_cache.py) is derived from
everything on which the entry depends, including the file's footer. An entry holds one leaf for all rows (for the leaf (), the
record counts).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from delta_py.statistics.stats import RULES, FileStats, unknown_stats
from delta_py.storage.cache.disk_cache import DiskCache, NewEntry, entry_name
from delta_py.types.schema import DataType, Path

_log = logging.getLogger("delta_py")

LEAST_ROWS = 10_000
"""Parsing a file with fewer rows is as fast as finding its entry."""

_RECORDS: Path = ()  # stands for the record counts where a leaf's path is expected


@dataclass(frozen=True, slots=True)
class StatsCache:
    """The cache of all checkpoint files' statistics, in the cache directory `disk`."""

    disk: DiskCache

    @classmethod
    def of_environment(cls) -> Self | None:
        """The cache that the environment variables set up; None if it is switched off or has no directory."""
        disk = DiskCache.of_environment()
        return None if disk is None else cls(disk)

    def of(self, identity: bytes, leaves: Mapping[Path, DataType]) -> CachedStats:
        """The cached statistics of a file. identity: of its content. leaves: the leaves whose statistics are requested from its
        JSON."""
        names = {path: _entry_name(identity, path, kind) for path, kind in leaves.items()}
        names[_RECORDS] = _entry_name(identity, _RECORDS, None)
        entries = {path: self.disk.read_mapped(name) for path, name in names.items()}  # None: the cache has no such entry
        readable_tables = {path: _read_table(names[path], content) for path, content in entries.items() if content is not None}
        tables = {path: table for path, table in readable_tables.items() if table is not None}
        return CachedStats(self.disk, names, tables, {path: kind for path, kind in leaves.items() if path not in tables})


def _read_table(name: str, content: pa.Buffer) -> pa.Table | None:
    """The table in an entry; None, with a warning, if the content is not a table although its checksum is right."""
    try:
        return pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError) as error:
        _log.warning("the entry %s of the cache is ignored: %s", name, error)
        return None


def _entry_name(identity: bytes, path: Path, kind: DataType | None) -> str:
    """The name of the entry for a leaf: it depends on everything that the parsed statistics depend on."""
    return entry_name(identity + repr((RULES, pa.__version__, path, kind)).encode(), "stats")


@dataclass(slots=True)
class CachedStats:
    """The statistics of one checkpoint file: those in the cache, and those that will be added to it.

    missing: leaves that must be parsed. _names: the name of each leaf's entry in the cache. _tables: the cached columns by leaf.
    _entries: the entries that are being written, by leaf. Row numbers count the file's add actions.
    """

    _disk: DiskCache
    _names: Mapping[Path, str]
    _tables: Mapping[Path, pa.Table]
    missing: Mapping[Path, DataType]
    _entries: dict[Path, _Entry] = field(default_factory=dict)
    _has_failed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the cache has all requested leaves and the record counts, so that no JSON must be parsed."""
        return not self.missing and _RECORDS in self._tables

    def of_rows(self, start: int, count: int) -> FileStats:
        """The cached statistics of `count` rows from row `start` on. Leaves that the cache does not have are unknown."""
        columns = {path: _columns(table.slice(start, count)) for path, table in self._tables.items()}
        unknown = unknown_stats(count)
        records = columns.pop(_RECORDS, None)
        stats = FileStats(
            file_count=count,
            num_records=unknown.num_records if records is None else records["num_records"],
            tight_bounds=unknown.tight_bounds if records is None else records["tight_bounds"],
            minimum={path: named["minimum"] for path, named in columns.items() if "minimum" in named},
            maximum={path: named["maximum"] for path, named in columns.items() if "maximum" in named},
            null_count={path: named["null_count"] for path, named in columns.items() if "null_count" in named},
        )
        assert len(stats.num_records) == count, "an entry has fewer rows than its file"
        return stats

    def remember(self, stats: FileStats) -> None:
        """Add the statistics of the next rows for the missing leaves. It is not an error if the disk cannot store them."""
        if self._has_failed:
            return
        try:
            for path in self._to_write():
                batch = _batch(stats, path)
                if path not in self._entries:
                    self._entries[path] = _Entry(self._disk.begin(), batch.schema)
                self._entries[path].write(batch)
        except (OSError, pa.ArrowException) as error:
            self._give_up(error)

    def finish(self) -> None:
        """Store the new entries under their names, so that later readers find them. Call when all rows were added."""
        try:
            for path, entry in self._entries.items():
                entry.finish(self._names[path])
            self._entries = {}
        except OSError as error:
            self._give_up(error)

    def abandon(self) -> None:
        """Delete the new entries. Call when not all rows were added."""
        for entry in self._entries.values():
            entry.remove()
        self._entries = {}

    def _to_write(self) -> list[Path]:
        """The leaves for which the cache gets a new entry: the missing ones, and _RECORDS if the cache lacks the record
        counts."""
        return [*self.missing, *([] if _RECORDS in self._tables else [_RECORDS])]

    def _give_up(self, error: Exception) -> None:
        """Cache no more statistics of this file, and delete the entries that were begun."""
        _log.warning("statistics cannot be cached in %s: %s", self._disk.directory, error)
        self._has_failed = True
        self.abandon()


def _columns(rows: pa.Table) -> dict[str, pa.Array]:
    """The columns by name, each in one chunk."""
    return {name: rows[name].combine_chunks() for name in rows.column_names}


def _batch(stats: FileStats, path: Path) -> pa.RecordBatch:
    """The statistics of one leaf as a batch, in columns that are named like the fields of FileStats. If the leaf has no
    statistics, a column of nulls gives the batch its number of rows."""
    if path == _RECORDS:
        return pa.record_batch({"num_records": stats.num_records, "tight_bounds": stats.tight_bounds})
    sides = {"minimum": stats.minimum, "maximum": stats.maximum, "null_count": stats.null_count}
    columns = {name: side[path] for name, side in sides.items() if path in side}
    return pa.record_batch(columns or {"nothing": pa.nulls(stats.file_count)})


class _Entry:
    """The entry of one leaf while it is being written."""

    def __init__(self, entry: NewEntry, schema: pa.Schema) -> None:
        self._entry = entry
        self._writer = pa.ipc.new_stream(entry.sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises pa.ArrowInvalid if the batch has other columns than the first batch."""
        self._writer.write_batch(batch)

    def finish(self, name: str) -> None:
        self._writer.close()
        self._entry.finish(name)

    def remove(self) -> None:
        self._entry.remove()
