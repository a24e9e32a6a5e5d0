"""One Parquet file of a checkpoint -> Arrow batches of files, and the few other actions.

Only the leaf columns that are asked for are read. Parquet's own statistics are not trusted with anything that could lose an
action.
Protocol: Checkpoint Schema.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.log.checkpoint_files import (
    CheckpointUnreadableError,
    RawFiles,
    StatsWanted,
    all_json,
    as_text,
    as_type,
    children,
    decoding,
    deletion_vectors,
    typed_nulls,
)
from delta_py.log.commit_reader import FILE_SCHEMA, PARTITION_VALUES_TYPE
from delta_py.log.stats_cache import LEAST_ROWS, KeptStats, StatsCache
from delta_py.protocol.parquet_ranges import column_ranges
from delta_py.protocol.paths import decode_paths
from delta_py.statistics.parquet_statistics import chunk_null_count
from delta_py.statistics.stats import without_old_times
from delta_py.storage.arrow_files import expect_ranges, is_prefetching
from delta_py.storage.cached_objects import KeptObjects
from delta_py.storage.content_identity import digest_of, has_change_times, is_settled
from delta_py.storage.store import ObjectInfo
from delta_py.types.schema import DataType, Path

# Rows a batch: so many that calls cost nothing; with statistics as text, which is long, so many that the text stays in few
# megabytes. How long it is the footer says, less where texts repeat, so that it is believed within bounds only.
_BATCH_ROWS = 65_536
_BATCH_TEXT_BYTES = 6 * 1024 * 1024
_LEAST_ROWS_WITH_TEXT, _MOST_ROWS_WITH_TEXT = 1_024, 12_288
_OTHER_COLUMNS = ("partitionValues", "size", "modificationTime", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_BOUNDS = ("minValues", "maxValues", "nullCount")

# The leaf of each action that is null where a row is some other action.
_KEY_LEAVES = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "checkpointMetadata": "version",
    "add": "path",
    "remove": "path",
}


class ParquetPart:
    """A Parquet file of a checkpoint: classic, one of several parts, a UUID-named top level, or a sidecar."""

    def __init__(self, objects: KeptObjects, info: ObjectInfo) -> None:
        self.path = path = info.path
        self._store, self._info = objects.store, info
        self._lock = threading.Lock()
        with decoding(path):
            self._source = objects.open_input(info)
            self.size_bytes: int = self._source.size()
            file = self._opened(None)
            self._footer: pq.FileMetaData = file.metadata
            self.row_count: int = self._footer.num_rows
            leaves = self._footer.schema
            self._positions = {leaves.column(i).path: i for i in range(len(leaves))}
            self._instants = frozenset(
                leaves.column(i).path for i in range(len(leaves)) if leaves.column(i).physical_type == "INT96"
            )
            self._is_legacy = _is_legacy(self._footer.metadata or {})
            self.schema: pa.Schema = self._with_zones(file.schema_arrow)
        for action, leaf in _KEY_LEAVES.items():
            if action in self.schema.names and not _has_leaf(self.schema.field(action).type, (leaf,)):
                raise CheckpointUnreadableError.of(path, f"its column {action} has no field {leaf}")

    def _opened(self, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        """One for each reading: pyarrow keeps what it decoded last with the file, which adds up where there are many parts."""
        # INT96, in which Spark writes timestamps, has years that nanoseconds cannot hold.
        unit = "us"
        return pq.ParquetFile(self._source, metadata=footer, page_checksum_verification=True, coerce_int96_timestamp_unit=unit)

    def _with_zones(self, schema: pa.Schema) -> pa.Schema:
        """With the zone that Arrow does not give INT96: all that is stored so are instants."""
        return pa.schema([_in_zone(f, f.name, self._instants) for f in schema]) if self._instants else schema

    def rows(self, action: str) -> list[dict[str, Any]]:
        if action not in self.schema.names:
            return []
        if action in ("protocol", "metaData"):
            # One row among perhaps millions: look where the statistics say it is, and everywhere if it is not there.
            likely = [group for group in self._groups() if not self._is_null(group, f"{action}.{_KEY_LEAVES[action]}")]
            likely_rows = self._rows_in(action, likely)
            if likely_rows:
                return likely_rows
        return self._rows_in(action, self._groups())

    def _rows_in(self, action: str, groups: list[int]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for batch in self._batches([action], groups):
            struct = batch.column(0)
            chosen = struct.filter(pc.is_valid(children(struct)[_KEY_LEAVES[action]]))
            rows.extend(_plain(row, struct.type) for row in chosen.to_pylist())
        return rows

    def files(self, wanted: StatsWanted) -> Iterator[RawFiles]:
        if "add" not in self.schema.names:
            return
        plan = _plan(self, self.schema.field("add").type, wanted)
        kept_stats = self._kept_stats(plan)
        if kept_stats is not None:
            plan = plan.without_known(kept_stats)
        size = self._batch_rows_with_text() if "stats" in plan.columns else _BATCH_ROWS
        rows_read = files_read = 0
        for batch in self._batches([f"add.{leaf}" for leaf in plan.columns], self._groups(), size):
            with decoding(self.path):
                raw = _raw_files(self.path, batch.column(0), plan)
            rows_read += batch.num_rows
            if kept_stats is not None:
                known = kept_stats.known(files_read, raw.files.num_rows)
                raw = replace(raw, known=known, kept=kept_stats, is_last=rows_read == self.row_count)
            files_read += raw.files.num_rows
            yield raw

    def _batch_rows_with_text(self) -> int:
        place = self._positions.get("add.stats")
        if place is None:  # it is no text, which is found when it is read
            return _LEAST_ROWS_WITH_TEXT
        text_bytes: int = sum(self._footer.row_group(group).column(place).total_uncompressed_size for group in self._groups())
        wanted = _BATCH_TEXT_BYTES * self.row_count // max(1, text_bytes)
        return max(_LEAST_ROWS_WITH_TEXT, min(_MOST_ROWS_WITH_TEXT, wanted))

    def _kept_stats(self, plan: _Plan) -> KeptStats | None:
        """What the disk keeps of the statistics that would have to be parsed; None where that is not asked."""
        if not plan.from_json or plan.whole or self.row_count < LEAST_ROWS:
            return None
        if self._store.is_remote and not is_settled(self._info):
            return None
        cache = StatsCache.of_environment()
        return None if cache is None else cache.of(self._identity(), plan.json_leaves)

    def _identity(self) -> bytes:
        """A hash of what the store lists of the file, and of its footer, which tells places, sizes and bounds of all that it
        holds. Where the file system does not tell when files were changed, it is of the whole file."""
        info, is_listed_well = self._info, self._store.is_remote or has_change_times([self._info])
        with decoding(self.path):
            length = int.from_bytes(self._source.read_at(4, self.size_bytes - 8), "little")
            footer = self._source.read_at(length, self.size_bytes - 8 - length)
            content = b"" if is_listed_well else digest_of(self._store, [info])
        listed = (self._store.root, self.path, self.size_bytes, info.modification_time_ms, info.etag, info.file_id)
        return hashlib.sha256(repr(listed).encode() + content + footer).digest()

    def has_leaf(self, action: str, leaf: str) -> bool:
        return action in self.schema.names and self.schema.field(action).type.get_field_index(leaf) >= 0

    def columns(self, action: str, leaves: list[str], size: int) -> Iterator[dict[str, pa.Array]]:
        """The rows of `add` or `remove` batch by batch, as columns by name. leaves: what to read below the action."""
        for rows in self.raw_columns(action, leaves, size):
            chosen = rows["path"].is_valid()
            yield rows if chosen.false_count == 0 else {name: array.filter(chosen) for name, array in rows.items()}

    def raw_columns(self, action: str, leaves: list[str], size: int) -> Iterator[dict[str, pa.Array]]:
        """The same of all rows, null where a row is some other action."""
        for batch in self._batches([f"{action}.{leaf}" for leaf in leaves], self._groups(), size):
            yield children(batch.column(0))

    @property
    def file_count(self) -> int | None:
        """By the statistics; None where they do not say."""
        nulls = self.null_count("path") if "add" in self.schema.names else self.row_count
        return None if nulls is None else self.row_count - nulls

    def _groups(self) -> list[int]:
        return list(range(self._footer.num_row_groups))

    def _batches(self, columns: list[str], groups: list[int], size: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with decoding(self.path):
            with self._lock:
                file = self._opened(self._footer)
            for part in self._fetched(columns, groups):
                batches = file.iter_batches(size, part, columns, use_threads=True)
                while (batch := self._next(batches)) is not None:
                    yield self._sound(batch)

    def _sound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With times that mean what they say."""
        batch = batch.cast(self._with_zones(batch.schema)) if self._instants else batch
        if not self._is_legacy:
            return batch
        return pa.RecordBatch.from_arrays([without_old_times(column) for column in batch.columns], schema=batch.schema)

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """Rows and masks of them are read at the same time, and the source is not made for that."""
        with self._lock:
            return next(batches, None)

    def _fetched(self, columns: list[str], groups: list[int]) -> Iterator[list[int]]:
        """The row groups, as they are read in one go: a few, as pyarrow keeps what it read until the last of them is; of a file
        that is far away, one after the other, each fetched while the one before is read."""
        if not is_prefetching(self._source):
            yield from self._runs(groups)
            return
        prefixes = tuple(f"{column}." for column in columns)
        leaves = [place for path, place in self._positions.items() if f"{path}.".startswith(prefixes)]
        ranges = [column_ranges(self._footer, [group], leaves) for group in groups]
        for number, group in enumerate(groups):
            expect_ranges(self._source, [*ranges[number], *(ranges[number + 1] if number + 1 < len(groups) else [])])
            yield [group]

    def _runs(self, groups: list[int]) -> Iterator[list[int]]:
        """Neighbours that have enough rows for a batch together, or one that has them alone."""
        run: list[int] = []
        row_count = 0
        for group in groups:
            run.append(group)
            row_count += self._footer.row_group(group).num_rows
            if row_count >= _BATCH_ROWS:
                yield run
                run, row_count = [], 0
        if run:
            yield run

    def null_count(self, leaf: str) -> int | None:
        """How many rows have no value for a leaf (dotted, below add) by the statistics; None where they do not say."""
        return total(self._null_count(group, f"add.{leaf}") for group in self._groups())

    def _is_null(self, group: int, leaf: str) -> bool:
        return bool(self._null_count(group, leaf) == self._footer.row_group(group).num_rows)

    def _null_count(self, group: int, leaf: str) -> int | None:
        position = self._positions.get(leaf)
        if position is None:
            return None
        with decoding(self.path):
            return chunk_null_count(self._footer, group, position)


def _is_legacy(said: Mapping[bytes, bytes]) -> bool:
    """Whether Spark wrote some of a file's times in the hybrid calendar. said: in its footer."""
    version = said.get(b"org.apache.spark.version")
    marks = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    return version is not None and (version < b"3.1.0" or any(mark in said for mark in marks))


def _in_zone(f: pa.Field, path: str, instants: Collection[str]) -> pa.Field:
    """path: of the field, dotted. instants: of leaves."""
    if pa.types.is_struct(f.type):
        return f.with_type(pa.struct([_in_zone(inner, f"{path}.{inner.name}", instants) for inner in f.type]))
    return f.with_type(pa.timestamp("us", "UTC")) if path in instants else f


def total(counts: Iterable[int | None]) -> int | None:
    """None where any of them is not known."""
    listed = list(counts)
    return None if None in listed else sum(count for count in listed if count is not None)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """What to_pylist gives -> what the JSON of a commit would hold: maps become dicts."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        return {f.name: _plain(value[f.name], f.type) for f in kind}
    return value


# ---------------------------------------------------------------- which columns are read


@dataclass(frozen=True, slots=True)
class _Plan:
    """columns: leaves (or groups of leaves) below add to read. Which of the statistics come from where: from_json and
    from_struct say whether any do."""

    columns: list[str]
    whole: bool
    from_json: bool
    from_struct: bool
    json_leaves: Mapping[Path, DataType]
    parsed_leaves: Mapping[Path, DataType]

    def without_known(self, kept_stats: KeptStats) -> _Plan:
        """The same, less the statistics that were parsed before."""
        if kept_stats.is_complete:
            columns = [name for name in self.columns if name != "stats"]
            return replace(self, columns=columns, from_json=False, json_leaves={})
        return replace(self, json_leaves=kept_stats.missing)


def _plan(part: ParquetPart, add: pa.StructType, wanted: StatsWanted) -> _Plan:
    names = {f.name for f in add}
    columns = ["path", *(name for name in _OTHER_COLUMNS if name in names)]
    parsed_columns, parsed_leaves = _parsed_columns(part, add, wanted)
    json_leaves = {path: kind for path, kind in wanted.leaves.items() if path not in parsed_leaves}
    from_struct = bool(parsed_columns)
    from_json = bool(json_leaves) or (wanted.records and not from_struct)
    if "stats" in names and (wanted.whole or from_json):
        columns.append("stats")
    if wanted.whole:
        columns += [name for name in ("tags", "clusteringProvider") if name in names]
    if wanted.whole and "stats_parsed" in names and part.null_count("stats") != part.null_count("path"):
        parsed_columns = ["stats_parsed"]  # the text is made from it where there is none
    return _Plan(columns + parsed_columns, wanted.whole, from_json, from_struct, json_leaves, parsed_leaves)


def _parsed_columns(part: ParquetPart, add: pa.StructType, wanted: StatsWanted) -> tuple[list[str], dict[Path, DataType]]:
    """The leaves of stats_parsed to read, and which of the wanted paths they serve."""
    position = add.get_field_index("stats_parsed")
    if not (wanted.leaves or wanted.records) or position < 0 or _json_says_more(part):
        return [], {}
    parsed: pa.StructType = add.field(position).type
    columns: list[str] = []
    served: dict[Path, DataType] = {}
    for path, kind in wanted.leaves.items():
        bounds = [bound for bound in _BOUNDS if _has_leaf(parsed, (bound, *path))]
        if bounds:
            served[path] = kind
            columns += [".".join(("stats_parsed", bound, *path)) for bound in bounds]
    if not served and (wanted.leaves or not _has_leaf(parsed, ("numRecords",))):
        return [], {}
    shared = [f"stats_parsed.{name}" for name in ("numRecords", "tightBounds") if parsed.get_field_index(name) >= 0]
    return shared + columns, served


def _json_says_more(part: ParquetPart) -> bool:
    """Whether more files have statistics as JSON than as a struct: a writer may leave the struct's columns empty."""
    json, parsed = part.null_count("stats"), part.null_count("stats_parsed.numRecords")
    return json is not None and parsed is not None and json < parsed


def _has_leaf(struct: pa.StructType, path: Path) -> bool:
    kind: pa.DataType = struct
    for name in path:
        position = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if position < 0:
            return False
        kind = kind.field(position).type
    return not pa.types.is_struct(kind)


# ---------------------------------------------------------------- what they give


def _raw_files(path: str, add: pa.StructArray, plan: _Plan) -> RawFiles:
    columns = children(add)
    paths = columns["path"]
    if paths.null_count:
        chosen = paths.is_valid()
        columns = {name: array.filter(chosen) for name, array in columns.items()}
    count = len(columns["path"])
    json = as_text(columns["stats"]) if "stats" in columns else None
    kept_json = all_json(json, columns.get("stats_parsed"), count) if plan.whole else typed_nulls(count, pa.string())
    spelled = as_text(columns["path"])
    files = pa.record_batch(
        [
            decode_paths(spelled),
            as_type(columns.get("partitionValues"), PARTITION_VALUES_TYPE, count),
            as_type(columns.get("size"), pa.int64(), count),
            as_type(columns.get("modificationTime"), pa.int64(), count),
            deletion_vectors(columns.get("deletionVector"), count),
            as_type(columns.get("baseRowId"), pa.int64(), count),
            as_type(columns.get("defaultRowCommitVersion"), pa.int64(), count),
            kept_json,
            spelled,
            as_type(columns.get("tags"), PARTITION_VALUES_TYPE, count),
            as_type(columns.get("clusteringProvider"), pa.string(), count),
        ],
        schema=FILE_SCHEMA,
    )
    _check_sizes(path, files)
    struct = columns.get("stats_parsed") if plan.from_struct else None
    return RawFiles(files, json if plan.from_json else None, plan.json_leaves, struct, plan.parsed_leaves)


def _check_sizes(path: str, files: pa.RecordBatch) -> None:
    sizes = files["size"]
    if sizes.null_count or (pc.min(sizes).as_py() or 0) < 0:
        bad = files.filter(pc.or_kleene(pc.is_null(sizes), pc.less(sizes, 0)))
        raise CheckpointUnreadableError.of(path, f"the file {bad['path'][0].as_py()} has size {bad['size'][0].as_py()}")
