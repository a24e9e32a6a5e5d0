"""Read one Parquet file of a checkpoint into Arrow batches of files, and read its few other actions.

Only the requested leaf columns are read. Parquet's own statistics are not trusted where a mistake could lose an action.
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

from delta_py.log.checkpoint_content.checkpoint_files import (
    CheckpointUnreadableError,
    RawFiles,
    RequestedStats,
    all_json,
    as_text,
    as_type,
    children,
    decoding,
    deletion_vectors,
    typed_nulls,
)
from delta_py.log.checkpoint_content.stats_cache import LEAST_ROWS, CachedStats, StatsCache
from delta_py.log.commit_reader import FILE_SCHEMA, PARTITION_VALUES_TYPE
from delta_py.protocol.paths import decode_paths
from delta_py.statistics.parquet_statistics import chunk_null_count
from delta_py.statistics.stats import without_old_times
from delta_py.storage.arrow_files import expect_ranges, is_prefetching
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.cache.content_identity import digest_of, has_change_times, is_settled
from delta_py.storage.parquet_ranges import column_ranges
from delta_py.storage.store import ObjectInfo
from delta_py.types.schema import DataType, Path

# Rows per batch: enough that the cost of calls does not matter. Statistics as text are long, so with them a batch is limited to a
# few megabytes of text. The footer has the text's size, but it is too small if texts repeat, so it counts only within bounds.
_BATCH_ROWS = 65_536
_BATCH_TEXT_BYTES = 6 * 1024 * 1024
_LEAST_ROWS_WITH_TEXT, _MOST_ROWS_WITH_TEXT = 1_024, 12_288
_OTHER_COLUMNS = ("partitionValues", "size", "modificationTime", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_BOUNDS = ("minValues", "maxValues", "nullCount")

# For each action, a leaf that is null exactly in rows of other actions.
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

    def __init__(self, objects: CachedObjects, info: ObjectInfo) -> None:
        self.path = path = info.path
        self._store, self._info = objects.store, info
        self._lock = threading.Lock()
        with decoding(path):
            self._source = objects.open_input(info)
            self.size_bytes: int = self._source.size()
            file = self._open_file(None)
            self._footer: pq.FileMetaData = file.metadata
            self.row_count: int = self._footer.num_rows
            leaves = self._footer.schema
            self._positions = {leaves.column(i).path: i for i in range(len(leaves))}  # dotted path of a leaf -> its column number
            # The paths of leaves of type INT96, which are all timestamps.
            self._int96_leaves = frozenset(
                leaves.column(i).path for i in range(len(leaves)) if leaves.column(i).physical_type == "INT96"
            )
            self._is_legacy = _is_legacy(self._footer.metadata or {})
            self.schema: pa.Schema = self._with_zones(file.schema_arrow)
        # Without its key leaf, the rows of an action could not be told from the rows of other actions.
        for action, leaf in _KEY_LEAVES.items():
            if action in self.schema.names and not _has_leaf(self.schema.field(action).type, (leaf,)):
                raise CheckpointUnreadableError.of(path, f"its column {action} has no field {leaf}")

    def _open_file(self, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        """Open the file. footer: None to read it. Each read opens the file again, because pyarrow keeps the last decoded data
        with the file, which adds up with many parts."""
        # Spark writes timestamps as INT96, which has years that nanoseconds cannot represent.
        unit = "us"
        return pq.ParquetFile(self._source, metadata=footer, page_checksum_verification=True, coerce_int96_timestamp_unit=unit)

    def _with_zones(self, schema: pa.Schema) -> pa.Schema:
        """Add the time zone that Arrow does not give to INT96 columns. All INT96 values are instants."""
        return pa.schema([_with_zone(f, f.name, self._int96_leaves) for f in schema]) if self._int96_leaves else schema

    def rows(self, action: str) -> list[dict[str, Any]]:
        """All actions of one kind, as the JSON objects that a commit would hold. Empty if the file has no column for them."""
        if action not in self.schema.names:
            return []
        if action in ("protocol", "metaData"):
            # One row among perhaps millions: first read the row groups that have it according to Parquet's statistics. They may
            # be wrong, so read all groups if it is not there.
            likely_groups = [
                group for group in self._all_groups() if not self._is_all_null(group, f"{action}.{_KEY_LEAVES[action]}")
            ]
            likely_rows = self._rows_in(action, likely_groups)
            if likely_rows:
                return likely_rows
        return self._rows_in(action, self._all_groups())

    def _rows_in(self, action: str, groups: list[int]) -> list[dict[str, Any]]:
        """The actions of one kind in some row groups, as the JSON objects that a commit would hold."""
        rows: list[dict[str, Any]] = []
        for batch in self._batches([action], groups):
            struct = batch.column(0)
            action_rows = struct.filter(pc.is_valid(children(struct)[_KEY_LEAVES[action]]))
            rows.extend(_as_commit_json(row, struct.type) for row in action_rows.to_pylist())
        return rows

    def files(self, requested_stats: RequestedStats) -> Iterator[RawFiles]:
        """The add actions, batch by batch, with the requested statistics."""
        if "add" not in self.schema.names:
            return
        plan = _plan(self, self.schema.field("add").type, requested_stats)
        cache_entry = self._cache_entry(plan)
        if cache_entry is not None:
            plan = plan.without_cached(cache_entry)
        size = self._batch_rows_with_text() if "stats" in plan.columns else _BATCH_ROWS
        # rows_read counts all rows, to know the last batch; files_read only the adds, which the rows of a cache entry stand for.
        rows_read = files_read = 0
        for batch in self._batches([f"add.{leaf}" for leaf in plan.columns], self._all_groups(), size):
            with decoding(self.path):
                raw = _raw_files(self.path, batch.column(0), plan)
            rows_read += batch.num_rows
            if cache_entry is not None:
                known_stats = cache_entry.of_rows(files_read, raw.files.num_rows)
                raw = replace(raw, cached_stats=known_stats, cache_entry=cache_entry, is_last=rows_read == self.row_count)
            files_read += raw.files.num_rows
            yield raw

    def _batch_rows_with_text(self) -> int:
        """How many rows a batch may have so that its statistics' texts stay within _BATCH_TEXT_BYTES."""
        place = self._positions.get("add.stats")
        if place is None:  # the column is not text, which is reported when it is read
            return _LEAST_ROWS_WITH_TEXT
        text_bytes: int = sum(self._footer.row_group(group).column(place).total_uncompressed_size for group in self._all_groups())
        rows_per_batch = _BATCH_TEXT_BYTES * self.row_count // max(1, text_bytes)
        return max(_LEAST_ROWS_WITH_TEXT, min(_MOST_ROWS_WITH_TEXT, rows_per_batch))

    def _cache_entry(self, plan: _Plan) -> CachedStats | None:
        """The entry of this file in the cache of parsed statistics, for the leaves that the plan reads from JSON; None if the
        cache is not used.

        It is not used if no JSON must be parsed, if the JSON itself is requested (`whole`), for small files, and for a remote
        file that changed so recently that its listing does not identify its content (is_settled).
        """
        if not plan.from_json or plan.whole or self.row_count < LEAST_ROWS:
            return None
        if self._store.is_remote and not is_settled(self._info):
            return None
        cache = StatsCache.of_environment()
        return None if cache is None else cache.of(self._identity(), plan.json_leaves)

    def _identity(self) -> bytes:
        """A hash of the file's listing and of its footer, which has the positions, sizes and bounds of all columns. If the file
        system does not record change times, the hash covers the whole file."""
        info, is_listed_well = self._info, self._store.is_remote or has_change_times([self._info])
        with decoding(self.path):
            # The last 8 bytes of a Parquet file: the length of the footer in 4 bytes, and the text PAR1.
            length = int.from_bytes(self._source.read_at(4, self.size_bytes - 8), "little")
            footer = self._source.read_at(length, self.size_bytes - 8 - length)
            content = b"" if is_listed_well else digest_of(self._store, [info])
        listing_facts = (self._store.root, self.path, self.size_bytes, info.modification_time_ms, info.etag, info.file_id)
        return hashlib.sha256(repr(listing_facts).encode() + content + footer).digest()

    def has_leaf(self, action: str, leaf: str) -> bool:
        return action in self.schema.names and self.schema.field(action).type.get_field_index(leaf) >= 0

    def columns(self, action: str, leaves: list[str], size: int) -> Iterator[dict[str, pa.Array]]:
        """The rows of `add` or `remove`, batch by batch, as columns by name. leaves: the fields of the action to read, with
        `path`. size: the number of rows of a batch."""
        for rows in self.raw_columns(action, leaves, size):
            is_action = rows["path"].is_valid()
            yield rows if is_action.false_count == 0 else {name: array.filter(is_action) for name, array in rows.items()}

    def raw_columns(self, action: str, leaves: list[str], size: int) -> Iterator[dict[str, pa.Array]]:
        """All rows of the file, batch by batch, as columns by name. Rows of other actions are null. Parameters as in
        `columns`."""
        for batch in self._batches([f"{action}.{leaf}" for leaf in leaves], self._all_groups(), size):
            yield children(batch.column(0))

    @property
    def file_count(self) -> int | None:
        """The number of adds, from the Parquet statistics; None if the statistics lack it."""
        nulls = self.null_count("path") if "add" in self.schema.names else self.row_count
        return None if nulls is None else self.row_count - nulls

    def _all_groups(self) -> list[int]:
        return list(range(self._footer.num_row_groups))

    def _batches(self, columns: list[str], groups: list[int], size: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of the row groups in these columns, which are dotted paths of leaves or of structs. size: the number of rows
        of a batch."""
        with decoding(self.path):
            with self._lock:  # the source is not thread-safe
                file = self._open_file(self._footer)
            for part in self._groups_to_read(columns, groups):
                batches = file.iter_batches(size, part, columns, use_threads=True)
                while (batch := self._next_batch(batches)) is not None:
                    yield self._with_correct_times(batch)

    def _with_correct_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Correct the times: add time zones, and in files of the hybrid calendar replace old times by null."""
        batch = batch.cast(self._with_zones(batch.schema)) if self._int96_leaves else batch
        if not self._is_legacy:
            return batch
        return pa.RecordBatch.from_arrays([without_old_times(column) for column in batch.columns], schema=batch.schema)

    def _next_batch(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """The next batch. The lock is needed because rows and their masks are read at the same time, and the source is not
        thread-safe."""
        with self._lock:
            return next(batches, None)

    def _groups_to_read(self, columns: list[str], groups: list[int]) -> Iterator[list[int]]:
        """Divide the row groups into lists that are read together. The lists are short, because pyarrow keeps the data until the
        last row group of a list is read. A remote file is read one row group at a time, and the next one is fetched during the
        read."""
        if not is_prefetching(self._source):
            yield from self._split_into_runs(groups)
            return
        prefixes = tuple(f"{column}." for column in columns)
        leaves = [place for path, place in self._positions.items() if f"{path}.".startswith(prefixes)]
        ranges = [column_ranges(self._footer, [group], leaves) for group in groups]
        for number, group in enumerate(groups):
            expect_ranges(self._source, [*ranges[number], *(ranges[number + 1] if number + 1 < len(groups) else [])])
            yield [group]

    def _split_into_runs(self, groups: list[int]) -> Iterator[list[int]]:
        """Divide the row groups into runs of neighbours. The groups of a run together have enough rows for a batch."""
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
        """The number of nulls in a leaf (dotted, below add), from the Parquet statistics; None if they do not have it."""
        return sum_if_known(self._null_count(group, f"add.{leaf}") for group in self._all_groups())

    def _is_all_null(self, group: int, leaf: str) -> bool:
        """Whether the leaf is known to be null in all rows of the row group."""
        return bool(self._null_count(group, leaf) == self._footer.row_group(group).num_rows)

    def _null_count(self, group: int, leaf: str) -> int | None:
        """The number of nulls in the row group's chunk of a leaf; None if it is not known."""
        position = self._positions.get(leaf)
        if position is None:
            return None
        with decoding(self.path):
            return chunk_null_count(self._footer, group, position)


def _is_legacy(footer_metadata: Mapping[bytes, bytes]) -> bool:
    """Whether Spark may have written the file's times in the hybrid calendar (Julian before 1582). Then old times are wrong, and
    must not be used.
    footer_metadata: the key-value pairs of its footer."""
    version = footer_metadata.get(b"org.apache.spark.version")
    marks = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    return version is not None and (version < b"3.1.0" or any(mark in footer_metadata for mark in marks))


def _with_zone(f: pa.Field, path: str, int96_leaves: Collection[str]) -> pa.Field:
    """Add the time zone to instants. path: of the field, dotted. int96_leaves: paths of the leaves of type INT96, which are
    instants."""
    if pa.types.is_struct(f.type):
        return f.with_type(pa.struct([_with_zone(inner, f"{path}.{inner.name}", int96_leaves) for inner in f.type]))
    return f.with_type(pa.timestamp("us", "UTC")) if path in int96_leaves else f


def sum_if_known(counts: Iterable[int | None]) -> int | None:
    """The sum of the counts; None if any count is unknown (None)."""
    all_counts = list(counts)
    return None if None in all_counts else sum(count for count in all_counts if count is not None)


def _as_commit_json(value: Any, kind: pa.DataType) -> Any:
    """Convert a value of to_pylist to the value in a commit's JSON: maps become dicts."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        return {f.name: _as_commit_json(value[f.name], f.type) for f in kind}
    return value


# ---------------------------------------------------------------- which columns are read


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which columns of `add` to read, and the source of each statistic: the JSON text (stats) or the struct (stats_parsed).

    columns: the fields below `add` to read, as dotted paths. json_leaves, parsed_leaves: the table's columns whose statistics
    come from the JSON and from the struct. from_json, from_struct: whether any statistics come from that source; it may be only
    the number of rows. whole: as in RequestedStats.
    """

    columns: list[str]
    whole: bool
    from_json: bool
    from_struct: bool
    json_leaves: Mapping[Path, DataType]
    parsed_leaves: Mapping[Path, DataType]

    def without_cached(self, cache_entry: CachedStats) -> _Plan:
        """The plan without the statistics that the cache already holds."""
        if cache_entry.is_complete:
            columns = [name for name in self.columns if name != "stats"]
            return replace(self, columns=columns, from_json=False, json_leaves={})
        return replace(self, json_leaves=cache_entry.missing)


def _plan(part: ParquetPart, add: pa.StructType, requested_stats: RequestedStats) -> _Plan:
    """Which columns of `add` to read, and whether statistics come from JSON text, from structs, or from both."""
    names = {f.name for f in add}
    columns = ["path", *(name for name in _OTHER_COLUMNS if name in names)]
    parsed_columns, parsed_leaves = _parsed_columns(part, add, requested_stats)
    json_leaves = {path: kind for path, kind in requested_stats.leaves.items() if path not in parsed_leaves}
    from_struct = bool(parsed_columns)
    from_json = bool(json_leaves) or (requested_stats.records and not from_struct)
    if "stats" in names and (requested_stats.whole or from_json):
        columns.append("stats")
    if requested_stats.whole:
        columns += [name for name in ("tags", "clusteringProvider") if name in names]
    if requested_stats.whole and "stats_parsed" in names and part.null_count("stats") != part.null_count("path"):
        parsed_columns = ["stats_parsed"]  # missing text is built from the struct
    return _Plan(
        columns=columns + parsed_columns,
        whole=requested_stats.whole,
        from_json=from_json,
        from_struct=from_struct,
        json_leaves=json_leaves,
        parsed_leaves=parsed_leaves,
    )


def _parsed_columns(
    part: ParquetPart, add: pa.StructType, requested_stats: RequestedStats
) -> tuple[list[str], dict[Path, DataType]]:
    """The leaves of stats_parsed to read, and the requested paths for which they have statistics. Both are empty if the JSON is
    the better source for everything."""
    position = add.get_field_index("stats_parsed")
    if not (requested_stats.leaves or requested_stats.records) or position < 0 or _json_says_more(part):
        return [], {}
    parsed: pa.StructType = add.field(position).type
    columns: list[str] = []
    paths_with_stats: dict[Path, DataType] = {}
    for path, kind in requested_stats.leaves.items():
        bounds = [bound for bound in _BOUNDS if _has_leaf(parsed, (bound, *path))]
        if bounds:
            paths_with_stats[path] = kind
            columns += [".".join(("stats_parsed", bound, *path)) for bound in bounds]
    # Without a bound of a requested column, stats_parsed is of use only for the number of rows.
    if not paths_with_stats and (requested_stats.leaves or not _has_leaf(parsed, ("numRecords",))):
        return [], {}
    shared = [f"stats_parsed.{name}" for name in ("numRecords", "tightBounds") if parsed.get_field_index(name) >= 0]
    return shared + columns, paths_with_stats


def _json_says_more(part: ParquetPart) -> bool:
    """Whether more files have JSON statistics than struct statistics: a writer may leave the struct's columns empty."""
    json_nulls, struct_nulls = part.null_count("stats"), part.null_count("stats_parsed.numRecords")
    return json_nulls is not None and struct_nulls is not None and json_nulls < struct_nulls


def _has_leaf(struct: pa.StructType, path: Path) -> bool:
    """Whether the path leads from the struct to a field that is no struct itself."""
    kind: pa.DataType = struct
    for name in path:
        position = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if position < 0:
            return False
        kind = kind.field(position).type
    return not pa.types.is_struct(kind)


# ---------------------------------------------------------------- conversion to FILE_SCHEMA


def _raw_files(path: str, add: pa.StructArray, plan: _Plan) -> RawFiles:
    """Convert a batch of the column `add`, without the rows of other actions. path: of the checkpoint file, for errors."""
    columns = children(add)
    paths = columns["path"]
    if paths.null_count:
        is_add = paths.is_valid()
        columns = {name: array.filter(is_add) for name, array in columns.items()}
    count = len(columns["path"])
    json = as_text(columns["stats"]) if "stats" in columns else None
    stats_json = all_json(json, columns.get("stats_parsed"), count) if plan.whole else typed_nulls(count, pa.string())
    path_texts = as_text(columns["path"])
    files = pa.record_batch(
        [
            decode_paths(path_texts),
            as_type(columns.get("partitionValues"), PARTITION_VALUES_TYPE, count),
            as_type(columns.get("size"), pa.int64(), count),
            as_type(columns.get("modificationTime"), pa.int64(), count),
            deletion_vectors(columns.get("deletionVector"), count),
            as_type(columns.get("baseRowId"), pa.int64(), count),
            as_type(columns.get("defaultRowCommitVersion"), pa.int64(), count),
            stats_json,
            path_texts,
            as_type(columns.get("tags"), PARTITION_VALUES_TYPE, count),
            as_type(columns.get("clusteringProvider"), pa.string(), count),
        ],
        schema=FILE_SCHEMA,
    )
    _check_sizes(path, files)
    struct = columns.get("stats_parsed") if plan.from_struct else None
    return RawFiles(
        files=files,
        json=json if plan.from_json else None,
        json_leaves=plan.json_leaves,
        parsed=struct,
        parsed_leaves=plan.parsed_leaves,
    )


def _check_sizes(path: str, files: pa.RecordBatch) -> None:
    """Raise CheckpointUnreadableError if a file's size is missing or negative. path: of the checkpoint file."""
    sizes = files["size"]
    if sizes.null_count or (pc.min(sizes).as_py() or 0) < 0:
        bad = files.filter(pc.or_kleene(pc.is_null(sizes), pc.less(sizes, 0)))
        raise CheckpointUnreadableError.of(path, f"the file {bad['path'][0].as_py()} has size {bad['size'][0].as_py()}")
