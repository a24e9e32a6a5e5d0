"""Parsed statistics of checkpoints, kept on the local disk: parsing their JSON is most of the work of opening a large table.

    cache = StatsCache.of_environment()                      # None: switched off
    kept = cache.of(identity, leaves)                        # of one Parquet file of a checkpoint
    kept.known(start, count), kept.missing                   # what need not be parsed again, and what must be
    kept.remember(stats); kept.finish() or kept.abandon()    # what was parsed, batch by batch

A file of a checkpoint never changes: an entry of the cache directory (storage/disk_cache.py) is named by all that it depends on,
the file's footer among it, and holds one leaf of all rows (or, for the leaf (), the numbers of records).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from delta_py.statistics.stats import RULES, FileStats, unknown_stats
from delta_py.storage.disk_cache import DiskCache, NewEntry, entry_name
from delta_py.types.schema import DataType, Path

_log = logging.getLogger("delta_py")

LEAST_ROWS = 10_000
"""Files of fewer rows are parsed as fast as an entry is found."""

_RECORDS: Path = ()


@dataclass(frozen=True, slots=True)
class StatsCache:
    disk: DiskCache

    @classmethod
    def of_environment(cls) -> Self | None:
        disk = DiskCache.of_environment()
        return None if disk is None else cls(disk)

    def of(self, identity: bytes, leaves: Mapping[Path, DataType]) -> KeptStats:
        """What is kept of a file. identity: of its content. leaves: those whose statistics are wanted from its JSON."""
        names = {path: _name(identity, path, kind) for path, kind in leaves.items()}
        names[_RECORDS] = _name(identity, _RECORDS, None)
        entries = {path: self.disk.mapped(name) for path, name in names.items()}
        kept_tables = {path: _table(names[path], content) for path, content in entries.items() if content is not None}
        tables = {path: table for path, table in kept_tables.items() if table is not None}
        return KeptStats(self.disk, names, tables, {path: kind for path, kind in leaves.items() if path not in tables})


def _table(name: str, content: pa.Buffer) -> pa.Table | None:
    """None, with a warning, for content that is no table, though its checksum is right."""
    try:
        return pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError) as error:
        _log.warning("the entry %s of the cache is passed over: %s", name, error)
        return None


def _name(identity: bytes, path: Path, kind: DataType | None) -> str:
    return entry_name(identity + repr((RULES, pa.__version__, path, kind)).encode(), "stats")


@dataclass(slots=True)
class KeptStats:
    """The statistics of one file of a checkpoint: those that the cache has, and those that it is to get.

    missing: leaves that must be parsed. Rows are counted as the file's add actions are.
    """

    _disk: DiskCache
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
        stats = FileStats(
            count,
            unknown.num_records if records is None else records["num_records"],
            unknown.tight_bounds if records is None else records["tight_bounds"],
            {path: named["minimum"] for path, named in columns.items() if "minimum" in named},
            {path: named["maximum"] for path, named in columns.items() if "maximum" in named},
            {path: named["null_count"] for path, named in columns.items() if "null_count" in named},
        )
        assert len(stats.num_records) == count, "an entry has fewer rows than its file"
        return stats

    def remember(self, stats: FileStats) -> None:
        """Take in the next rows' statistics of the missing leaves. A disk that does not take them is no error."""
        if self._failed:
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
        """All rows were given: the entries get their names."""
        try:
            for path, entry in self._entries.items():
                entry.finish(self._names[path])
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
        _log.warning("statistics cannot be kept in %s: %s", self._disk.directory, error)
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
    """One leaf's entry in the making."""

    def __init__(self, entry: NewEntry, schema: pa.Schema) -> None:
        self._entry = entry
        self._writer = pa.ipc.new_stream(entry.sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises pa.ArrowInvalid when the batch has other columns than the first."""
        self._writer.write_batch(batch)

    def finish(self, name: str) -> None:
        self._writer.close()
        self._entry.finish(name)

    def remove(self) -> None:
        self._entry.remove()
