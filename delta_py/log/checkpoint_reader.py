"""Checkpoints of every kind -> Arrow batches of files, and their few other actions.

Only the leaf columns that are asked for are read, and the next batch is decoded in a thread while the caller works on the
present one. Checkpoints by any writer are taken: columns may be missing, strings large or dictionary-encoded, structs
nullable or not. Parquet's own statistics are not trusted with anything that could lose an action.
Protocol: Checkpoints; Checkpoint Schema; V2 Spec; Sidecar File Information.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeAlias, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.ahead import ahead
from delta_py.errors import CorruptTableError, StorageError, shown
from delta_py.log.file_keys import NO_KEYS, keys_of, path_of, repeated_keys
from delta_py.log.reader import DELETION_VECTOR_TYPE, FILE_SCHEMA, ONLY_FOR_COMMITS, PARTITION_VALUES_TYPE, CommitReader, FileRows
from delta_py.log.segment import Checkpoint, LogFile
from delta_py.log.stats_cache import LEAST_ROWS, KeptStats, StatsCache
from delta_py.protocol.parquet_ranges import column_ranges
from delta_py.protocol.parquet_statistics import chunk_statistics
from delta_py.protocol.paths import SIDECAR_DIRECTORY, LogKind, decode_path, decode_paths
from delta_py.protocol.schema import DataType, Path
from delta_py.protocol.stats import FileStats
from delta_py.protocol.stats_text import struct_to_json
from delta_py.storage.files import expect_ranges, is_prefetching
from delta_py.storage.kept_objects import KeptObjects
from delta_py.storage.store import ObjectInfo

_log = logging.getLogger("delta_py")

# Rows a batch: so many that calls cost nothing; with statistics as text, which is long, so many that the text stays in few
# megabytes. How long it is the footer says, less where texts repeat, so that it is believed within bounds only.
_BATCH_ROWS = 65_536
_BATCH_TEXT_BYTES = 4 * 1024 * 1024
_LEAST_ROWS_WITH_TEXT, _MOST_ROWS_WITH_TEXT = 1_024, 8_192
_SHARED_NULLS = 65_536
_LONG_DIGITS = 19

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


class CheckpointUnreadableError(CorruptTableError):
    """This checkpoint cannot be read; an older one, or the commits, may still give the state."""

    @classmethod
    def of(cls, path: str, why: object) -> CheckpointUnreadableError:
        return cls(
            f"The checkpoint file {path} cannot be read: {why}. If older checkpoints or all commits are there, move the file "
            "away and the state is rebuilt from them; otherwise restore it from a backup.",
            path=path,
        )


@dataclass(frozen=True, slots=True)
class StatsWanted:
    """leaves: physical paths whose statistics are wanted, with their types. whole: whether statistics as JSON, tags and the
    clustering provider are, for a commit that names the file again. records: whether the numbers of records are, even if no
    leaf is."""

    leaves: Mapping[Path, DataType] = field(default_factory=dict)
    whole: bool = False
    records: bool = False


@dataclass(frozen=True, slots=True)
class RawFiles:
    """Files as a checkpoint holds them, before reconciliation.

    files: FILE_SCHEMA; stats, tags and clustering_provider null unless they were wanted whole. json, parsed: statistics aligned
    with files, each with the leaves that are to be taken from it; None where nothing is. known: statistics that were parsed
    before. kept: takes those that are parsed from the JSON now, in order; is_last: there are no more files in the same file of
    the checkpoint.
    """

    files: pa.RecordBatch
    json: pa.Array | None = None
    json_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    parsed: pa.StructArray | None = None
    parsed_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    known: FileStats | None = None
    kept: KeptStats | None = None
    is_last: bool = False


class CheckpointReader:
    """One opened checkpoint: footers (or the JSON top level) are read, and all its sidecars are there.

    Raises CheckpointUnreadableError, from the constructor where possible, naming the file.
    """

    def __init__(self, checkpoint: Checkpoint, commits: CommitReader) -> None:
        self.checkpoint, self._table_root = checkpoint, commits.objects.store.root
        self.top: list[Part] = [_open_part(file, commits) for file in checkpoint.files]
        infos = {info.path: info for info in map(self.sidecar_of, self.rows("sidecar"))}  # one that is named twice counts once
        self.sidecars = [ParquetPart(commits.objects, info) for info in infos.values()]
        holds_files = any(isinstance(part, JsonPart) or "add" in part.schema.names for part in self.top)
        if not (holds_files or self.sidecars or checkpoint.kind is LogKind.CHECKPOINT_V2):
            raise CheckpointUnreadableError.of(checkpoint.files[0].path, "it has no column add")
        self.names_each_file_once = False  # set by whoever knows; otherwise it is looked for

    @cached_property
    def file_count(self) -> int | None:
        """How many adds it holds, by the footers; None where they do not say."""
        return _total(part.file_count for part in (*self.top, *self.sidecars))

    @property
    def action_count(self) -> int | None:
        """How many actions it holds, by the footers; None where its top level is JSON."""
        return _total(None if isinstance(part, JsonPart) else part.row_count for part in (*self.top, *self.sidecars))

    def count_files(self) -> int:
        """How many files it holds, those that it names more than once counted once. Reads the keys of all."""
        return self._counted[0]

    @property
    def repeated_keys(self) -> pa.Array:
        """The keys (file_keys) that it names more than once. Reads the keys of all, unless it is known to have none."""
        return NO_KEYS if self.names_each_file_once else self._counted[1]

    @cached_property
    def _counted(self) -> tuple[int, pa.Array]:
        """How many keys there are, and those that come more than once."""
        count, repeated = repeated_keys(lambda: (keys_of(raw.files) for raw in self.files(StatsWanted())))
        if len(repeated):
            text = "%s: the checkpoint of version %d names %d files more than once; they count once: %s"
            shown_keys = [path_of(key) for key in repeated.slice(0, 3).to_pylist()]
            _log.warning(text, self._table_root, self.checkpoint.version, len(repeated), shown(shown_keys))
        return count, repeated

    def rows(self, action: str) -> list[dict[str, Any]]:
        """All actions of a kind other than add and remove, as the JSON objects they would be in a commit."""
        return [row for part in self.top for row in part.rows(action)]

    def sidecar_of(self, row: Mapping[str, Any]) -> ObjectInfo:
        """The file that a sidecar action names. It always lies in the table's own directory; some writers put a whole URI before
        the name."""
        path = row.get("path")
        size, time = (number if isinstance(number := row.get(name), int) else 0 for name in ("sizeInBytes", "modificationTime"))
        fault = CheckpointUnreadableError.of(self.checkpoint.files[0].path, f"a sidecar's path is {shown(path)}")
        if not isinstance(path, str):
            raise fault
        try:
            return ObjectInfo(f"{SIDECAR_DIRECTORY}/{decode_path(path).rpartition('/')[2]}", size, time)
        except CorruptTableError as error:
            raise fault from error

    def files(self, wanted: StatsWanted) -> Iterator[RawFiles]:
        """All add actions, batch by batch."""
        return ahead(batch for part in [*self.top, *self.sidecars] for batch in part.files(wanted))


def _total(counts: Iterable[int | None]) -> int | None:
    """None where any of them is not known."""
    listed = list(counts)
    return None if None in listed else sum(count for count in listed if count is not None)


def _open_part(file: LogFile, commits: CommitReader) -> Part:
    return JsonPart(file, commits) if file.path.endswith(".json") else ParquetPart(commits.objects, file.info)


T = TypeVar("T")


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """What pyarrow raises on a damaged file becomes CheckpointUnreadableError."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError, StorageError) as error:
        raise CheckpointUnreadableError.of(path, error) from error


# ---------------------------------------------------------------- JSON top level


class JsonPart:
    """A UUID-named checkpoint in JSON."""

    def __init__(self, file: LogFile, commits: CommitReader) -> None:
        self.file, self._commits = file, commits
        self._check_whole()

    def _check_whole(self) -> None:
        """A file cut short after a whole line still parses: look for what a checkpoint cannot lack."""
        rows_by_action = {name: self.rows(name) for name in ("checkpointMetadata", "protocol", "metaData", "sidecar")}
        for name in ("checkpointMetadata", "protocol", "metaData"):
            if not rows_by_action[name]:
                raise CheckpointUnreadableError.of(self.file.path, f"it holds no {name} action, so it was cut short")
        tags = rows_by_action["checkpointMetadata"][0].get("tags") or {}
        if not isinstance(tags, dict):
            raise CheckpointUnreadableError.of(self.file.path, "the tags of its checkpointMetadata are no object")
        recorded = tags.get("sidecarSizeInBytes")
        total = sum(size for row in rows_by_action["sidecar"] if isinstance(size := row.get("sizeInBytes"), int))
        if isinstance(recorded, str) and recorded.isdecimal() and (len(recorded) > _LONG_DIGITS or total < int(recorded)):
            why = f"its sidecars have {total} bytes of the {recorded} that it speaks of, so it was cut short"
            raise CheckpointUnreadableError.of(self.file.path, why)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        with decoding(self.file.path):
            try:
                yield
            except CheckpointUnreadableError:
                raise
            except CorruptTableError as error:
                raise CheckpointUnreadableError.of(self.file.path, error.message) from error

    def rows(self, action: str) -> list[dict[str, Any]]:
        needle, rows = f'"{action}"'.encode(), []
        with self._decoding():
            for first, lines in self._commits.pieces(self.file):
                for number, line in enumerate(lines, first):
                    row = self._value(number, line).get(action) if needle in line else None
                    if isinstance(row, dict):
                        rows.append(row)
                    elif row is not None:
                        raise CheckpointUnreadableError.of(self.file.path, f"line {number}: its {action} is no object")
        return rows

    @property
    def file_count(self) -> int | None:
        """0 where all files are in sidecars; None where they would have to be counted."""
        with self._decoding():
            return None if any(b'"add"' in line for _, lines in self._commits.pieces(self.file) for line in lines) else 0

    def _value(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CheckpointUnreadableError.of(self.file.path, f"line {number}: {error}") from error
        if not isinstance(value, dict):
            raise CheckpointUnreadableError.of(self.file.path, f"line {number} is no object")
        return value

    def files(self, wanted: StatsWanted) -> Iterator[RawFiles]:
        with self._decoding():
            for piece in self._commits.file_actions(self.file):
                yield raw_from_json(piece.adds, wanted)

    def file_rows(self) -> Iterator[FileRows]:
        """The file actions with all their fields."""
        with self._decoding():
            yield from self._commits.file_rows(self.file)


def raw_from_json(adds: pa.RecordBatch, wanted: StatsWanted) -> RawFiles:
    """Adds that carry their statistics as JSON (FILE_SCHEMA with stats) in the form of a checkpoint's."""
    json = adds["stats"] if wanted.leaves or wanted.records else None
    if not wanted.whole:
        for name in _WHOLE_COLUMNS:
            place, kind = adds.schema.get_field_index(name), FILE_SCHEMA.field(name).type
            adds = adds.set_column(place, name, pa.nulls(adds.num_rows, kind))
    return RawFiles(adds, json, wanted.leaves)


# ---------------------------------------------------------------- Parquet


class ParquetPart:
    """A Parquet file of a checkpoint: classic, one of several parts, a UUID-named top level, or a sidecar."""

    def __init__(self, objects: KeptObjects, info: ObjectInfo) -> None:
        self.path = path = info.path
        self._table_root = objects.store.root
        self._lock = threading.Lock()
        with decoding(path):
            self._source = objects.open_input(info)
            self.size_bytes: int = self._source.size()
            file = self._opened(None)
            self._footer: pq.FileMetaData = file.metadata
            self.row_count: int = self._footer.num_rows
            self.schema: pa.Schema = file.schema_arrow
            leaves = self._footer.schema
            self._positions = {leaves.column(i).path: i for i in range(len(leaves))}
        for action, leaf in _KEY_LEAVES.items():
            if action in self.schema.names and not _has_leaf(self.schema.field(action).type, (leaf,)):
                raise CheckpointUnreadableError.of(path, f"its column {action} has no field {leaf}")

    def _opened(self, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        """One for each reading: pyarrow keeps what it decoded last with the file, which adds up where there are many parts."""
        return pq.ParquetFile(self._source, metadata=footer, page_checksum_verification=True)

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
        cache = StatsCache.of_environment()
        return None if cache is None else cache.of(self._identity(), plan.json_leaves)

    def _identity(self) -> bytes:
        """The file's footer, which tells places, sizes and bounds of all that it holds, as a hash."""
        with decoding(self.path):
            length = int.from_bytes(self._source.read_at(4, self.size_bytes - 8), "little")
            footer = self._source.read_at(length, self.size_bytes - 8 - length)
        name = f"{self._table_root}\n{self.path}\n{self.size_bytes}\n".encode()
        return hashlib.sha256(name + footer).digest()

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
                    yield batch

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
        return _total(self._null_count(group, f"add.{leaf}") for group in self._groups())

    def _is_null(self, group: int, leaf: str) -> bool:
        return bool(self._null_count(group, leaf) == self._footer.row_group(group).num_rows)

    def _null_count(self, group: int, leaf: str) -> int | None:
        position = self._positions.get(leaf)
        if position is None:
            return None
        with decoding(self.path):
            statistics = chunk_statistics(self._footer, group, position)
        return int(statistics.null_count) if statistics is not None and statistics.has_null_count else None


Part: TypeAlias = ParquetPart | JsonPart


def _plain(value: Any, kind: pa.DataType) -> Any:
    """What to_pylist gives -> what the JSON of a commit would hold: maps become dicts."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        return {f.name: _plain(value[f.name], f.type) for f in kind}
    return value


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


_OTHER_COLUMNS = ("partitionValues", "size", "modificationTime", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_WHOLE_COLUMNS = ONLY_FOR_COMMITS - {"path_text"}  # which streams put files in order by
_BOUNDS = ("minValues", "maxValues", "nullCount")


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


def _raw_files(path: str, add: pa.StructArray, plan: _Plan) -> RawFiles:
    columns = children(add)
    paths = columns["path"]
    if paths.null_count:
        chosen = paths.is_valid()
        columns = {name: array.filter(chosen) for name, array in columns.items()}
    count = len(columns["path"])
    json = as_text(columns["stats"]) if "stats" in columns else None
    kept_json = all_json(json, columns.get("stats_parsed"), count) if plan.whole else _nulls(count, pa.string())
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


def all_json(json: pa.Array | None, struct: pa.StructArray | None, count: int) -> pa.Array:
    """The statistics as text, made from the struct where there is no text."""
    text = pa.nulls(count, pa.string()) if json is None else json
    return text if struct is None or text.null_count == 0 else pc.coalesce(text, struct_to_json(struct))


def children(struct: pa.StructArray) -> dict[str, pa.Array]:
    """The fields by name, null where the struct is: a required field under a null struct holds arbitrary values."""
    return {f.name: child for f, child in zip(struct.type, struct.flatten(), strict=True)}


def _check_sizes(path: str, files: pa.RecordBatch) -> None:
    sizes = files["size"]
    if sizes.null_count or (pc.min(sizes).as_py() or 0) < 0:
        bad = files.filter(pc.or_kleene(pc.is_null(sizes), pc.less(sizes, 0)))
        raise CheckpointUnreadableError.of(path, f"the file {bad['path'][0].as_py()} has size {bad['size'][0].as_py()}")


def as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == pa.string() else array.cast(pa.string())


def as_type(array: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    if array is None or array.null_count == count:
        return _nulls(count, kind)
    return array if array.type == kind else array.cast(kind)


def _nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Most batches of most tables have columns without a value: they share the memory of one, as a plan may hold all batches."""
    is_shared = count <= _SHARED_NULLS and kind in FILE_SCHEMA.types
    return _shared_nulls(kind).slice(0, count) if is_shared else pa.nulls(count, kind)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_SHARED_NULLS, kind)


def deletion_vectors(vectors: pa.StructArray | None, count: int) -> pa.Array:
    if vectors is None:
        return _nulls(count, DELETION_VECTOR_TYPE)
    given = children(vectors) if pa.types.is_struct(vectors.type) else {}
    for name in ("storageType", "pathOrInlineDv"):
        if name not in given:
            raise pa.ArrowInvalid(f"add.deletionVector has no field {name}")
    missing = given["storageType"].is_null()
    if missing.true_count == count:
        return _nulls(count, DELETION_VECTOR_TYPE)
    fields = [
        as_text(given[f.name]) if f.type == pa.string() else as_type(given.get(f.name), f.type, count)
        for f in DELETION_VECTOR_TYPE
    ]
    return pa.StructArray.from_arrays(fields, fields=list(DELETION_VECTOR_TYPE), mask=missing)
