"""Action reconciliation: decide which files are live, from the newest action on each logical file.

Commits are read newest first, and the keys in their actions are collected. Then one vectorised step removes from each checkpoint
batch the files that a commit names. Memory holds a batch, plus the keys of the commits after the checkpoint.
Protocol: Action Reconciliation.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RawFiles, RequestedStats, raw_from_json
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checkpoint_content.stats_cache import CachedStats
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import DuplicateFilter, file_keys, intersect_masks, keys_of, path_of
from delta_py.log.segment import LogFile, LogSegment
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.statistics.stats import FileStats, concat_stats, parse_stats, stats_from_struct, unknown_stats
from delta_py.types.arrow_values import NULL, ZERO, all_true, array

_log = logging.getLogger("delta_py")
T = TypeVar("T")

# With more keys than this, many checkpoint batches are compared at a time, because each comparison hashes all keys.
_MANY_KEYS = 20_000
# The adds of small commits are combined until a batch has so many rows.
_JOINED_ROWS = 8_192
# Batches whose statistics are parsed at the same time.
_PARSERS = 2
# The function `gather_batches` yields a batch at the latest when it has so many rows.
_MOST_GATHERED_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Live files of a version. files: FILE_SCHEMA. stats: statistics of the requested leaves, aligned with files; None if no leaf
    was requested."""

    files: pa.RecordBatch
    stats: FileStats | None

    def filter(self, keep: pa.BooleanArray) -> FileBatch:
        """The files for which keep is true. keep must not have nulls."""
        return FileBatch(self.files.filter(keep), None if self.stats is None else self.stats.filter(keep))

    def live_rows(self) -> pa.Int64Array:
        """The number of rows of each file that are not deleted; null if it is unknown, or if the log states more deleted rows
        than rows."""
        if self.stats is None:
            return pa.nulls(self.files.num_rows, pa.int64())
        vectors = self.files["deletion_vector"]
        deleted = pc.struct_field(vectors, "cardinality")
        deleted = pc.if_else(vectors.is_null(), ZERO, deleted.cast(pa.int64()))
        rows = pc.subtract(self.stats.num_records, deleted)
        return pc.if_else(pc.less(rows, ZERO), NULL, rows)


def gather_batches(batches: Iterable[FileBatch], columns: list[str]) -> Iterator[FileBatch]:
    """The same files, with only some of their columns, in fewer batches: for callers whose cost is per batch, not per file.

    A batch is yielded as soon as it has as many rows as all batches before it together, or _MOST_GATHERED_ROWS. So a caller who
    needs few files does not wait long.
    """
    waiting: list[FileBatch] = []
    rows_waiting = rows_yielded = 0
    for batch in batches:
        waiting.append(FileBatch(batch.files.select(columns), batch.stats))
        rows_waiting += batch.files.num_rows
        if rows_waiting >= min(rows_yielded, _MOST_GATHERED_ROWS):
            yield _concat_batches(waiting)
            rows_yielded += rows_waiting
            waiting, rows_waiting = [], 0
    if waiting:
        yield _concat_batches(waiting)


def _concat_batches(batches: list[FileBatch]) -> FileBatch:
    """Combine batches. If only some of them have statistics, those of the others are unknown."""
    if len(batches) == 1:
        return batches[0]
    files = pa.concat_batches([batch.files for batch in batches])
    if all(batch.stats is None for batch in batches):
        return FileBatch(files, None)
    return FileBatch(files, concat_stats([batch.stats or unknown_stats(batch.files.num_rows) for batch in batches]))


# ---------------------------------------------------------------- files


def commit_files(
    segment: LogSegment, commits: CommitReader, requested_stats: RequestedStats, seen: set[str]
) -> Iterator[FileBatch]:
    """The live files that the commits after the checkpoint added, newest commit first, without files whose key is in seen.

    seen: keys (file_keys.py) of file actions that are newer than these commits. The iterator adds the keys of all
    actions that it reads. So after the last batch, seen has the keys that hide files of the checkpoint.
    """
    for adds in _join_batches(_surviving_adds(segment, commits, seen)):
        yield _parse_batch(raw_from_json(adds, requested_stats), None).batch


def _surviving_adds(segment: LogSegment, commits: CommitReader, seen: set[str]) -> Iterator[pa.RecordBatch]:
    """The adds that no newer action undoes, newest commit first. seen: as in commit_files."""
    for _, pieces in replay(segment, commits, commits.file_actions):
        commit_keys: set[str] = set()
        for piece in pieces:
            is_unseen = [key not in seen for key in piece.add_keys]
            commit_keys.update(piece.add_keys, piece.remove_keys)
            adds = piece.adds if all(is_unseen) else piece.adds.filter(array(is_unseen, pa.bool_()))
            if adds.num_rows:
                yield adds
        seen |= commit_keys  # only now: the pieces of one commit do not undo each other (commit_reader.py)


def _join_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: most commits add a few files, and the consumer's cost per batch is fixed."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _JOINED_ROWS:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


class CheckpointFiles:
    """Iterates over the live files of a checkpoint: the files that no newer action names, each of them once. Iterate only once.

    seen: the keys (file_keys.py) of all newer file actions. While the caller uses a batch, threads parse the statistics of the
    next.
    """

    def __init__(self, checkpoint: CheckpointReader, requested_stats: RequestedStats, seen: Set[str]) -> None:
        self._checkpoint, self._requested_stats, self._seen = checkpoint, requested_stats, seen
        self._yielded_rows = 0
        self._unfinished_entry: CachedStats | None = None  # a cache entry that does not have all rows of its file yet

    def __iter__(self) -> Iterator[FileBatch]:
        unseen_mask_of_next = SeenKeys(self._seen).masks(self._checkpoint)
        duplicate_filter = DuplicateFilter(self._checkpoint.repeated_keys)
        with ThreadPoolExecutor(_PARSERS, "delta_py-stats") as pool:
            parsing: deque[tuple[RawFiles, Future[_ParsedBatch]]] = deque()
            try:
                for raw in self._checkpoint.files(self._requested_stats):
                    # The masks are computed in this thread, because they need the batches in order.
                    live_mask = intersect_masks(unseen_mask_of_next(raw.files), duplicate_filter.keep_mask(raw.files))
                    parsing.append((raw, pool.submit(_parse_batch, raw, live_mask)))
                    if len(parsing) > _PARSERS:
                        yield from self._next_batch(parsing)
                while parsing:
                    yield from self._next_batch(parsing)
            finally:
                if self._unfinished_entry is not None:
                    self._unfinished_entry.abandon()

    def _next_batch(self, parsing: deque[tuple[RawFiles, Future[_ParsedBatch]]]) -> Iterator[FileBatch]:
        """Wait until the first batch in the queue is parsed, remove it from the queue, and yield its live files if it has any."""
        raw, future = parsing.popleft()
        parsed = future.result()
        if parsed.json_stats is not None:
            self._cache_stats(raw, parsed.json_stats)
        self._yielded_rows += raw.files.num_rows
        if parsed.batch.files.num_rows:
            yield parsed.batch

    def _cache_stats(self, raw: RawFiles, parsed: FileStats) -> None:
        """Remember parsed statistics for later snapshots, if there is a cache for them."""
        if raw.cache_entry is None:
            return
        raw.cache_entry.remember(parsed)
        if raw.is_last:
            raw.cache_entry.finish()
        self._unfinished_entry = None if raw.is_last else raw.cache_entry

    def yielded_keys(self, error: CheckpointUnreadableError) -> set[str]:
        """The keys of all files before the position where reading the checkpoint failed with `error`. The caller then continues
        with an older checkpoint and must not yield these files again. Raises `error` if they cannot be read again."""
        keys: set[str] = set()
        rows = 0
        batches = self._checkpoint.files(RequestedStats())  # from the start again, without statistics, which keys do not need
        while rows < self._yielded_rows:
            try:
                files = next(batches).files
            except (CheckpointUnreadableError, StopIteration):
                raise error from None
            keys.update(keys_of(files).to_pylist())
            rows += files.num_rows
        return keys


def replay(
    segment: LogSegment, commits: CommitReader, read: Callable[[LogFile], Iterator[T]]
) -> Iterator[tuple[LogFile, Iterable[T]]]:
    """Yield each commit and compaction after the checkpoint, newest first, with the result of `read`, which must read the file
    through `commits`. If a compaction is damaged, its commits are yielded instead."""
    for file in commits.with_read_ahead(segment.replay_files()):
        if file.end_version == file.version:
            yield file, read(file)
            continue
        try:
            # Read the whole compaction before anything is yielded: no action of a damaged compaction may count.
            all_results = list(read(file))
        except CorruptTableError as error:
            _log.warning("%s is ignored and its commits are read instead: %s", file.path, error.message)
            for commit in segment.commits_of(file):
                yield commit, read(commit)
        else:
            yield file, all_results


class SeenKeys:
    """The keys of all file actions that are newer than the checkpoint, for comparison with its batches."""

    def __init__(self, keys: Set[str]) -> None:
        self._count = len(keys)
        self._keys = array(keys, pa.large_string())
        self._paths = array({path_of(key) for key in keys}, pa.string())

    def masks(self, checkpoint: CheckpointReader) -> Callable[[pa.RecordBatch], pa.BooleanArray | None]:
        """A function that takes the batches of the checkpoint in order. It returns the mask of files that no newer action names
        (None if that is all files)."""
        if self._count == 0:
            return lambda files: None
        if self._count <= _MANY_KEYS:
            return lambda files: self.unseen_mask([files])
        # The keys are many, so they are not hashed again for each batch: a second pass through the checkpoint computes long
        # masks.
        groups = self._masks_ahead(checkpoint)
        waiting = pa.nulls(0, pa.bool_())  # values of the mask that are computed and not returned yet

        def take_mask(files: pa.RecordBatch) -> pa.BooleanArray:
            """The next values of the mask, as many as there are files. Groups of values do not end where batches end."""
            nonlocal waiting
            while len(waiting) < files.num_rows:
                waiting = pa.concat_arrays([waiting, next(groups)])
            mask, waiting = waiting.slice(0, files.num_rows), waiting.slice(files.num_rows)
            return mask

        return take_mask

    def _masks_ahead(self, checkpoint: CheckpointReader) -> Iterator[pa.BooleanArray]:
        """The mask of all rows, in large pieces, because each comparison hashes all keys again. This reads the checkpoint a
        second time."""
        group: list[pa.RecordBatch] = []
        for raw in checkpoint.files(RequestedStats()):
            group.append(raw.files)
            if sum(files.num_rows for files in group) >= self._count:
                yield self._mask(group)
                group = []
        if group:
            yield self._mask(group)

    def _mask(self, group: list[pa.RecordBatch]) -> pa.BooleanArray:
        """The mask of files that no newer action names, for some batches in order, with a value for each file."""
        mask = self.unseen_mask(group)
        return all_true(sum(files.num_rows for files in group)) if mask is None else mask

    def unseen_mask(self, group: list[pa.RecordBatch]) -> pa.BooleanArray | None:
        """The mask of files that no newer action names, for some batches in order; None if that is all files.

        Compares paths first, and complete keys only for files whose path is in a newer action.
        """
        is_path_named = pc.is_in(pa.chunked_array([files["path"] for files in group]), self._paths).combine_chunks()
        if not is_path_named.true_count:
            return None
        suspects = pa.Table.from_batches(group).select(["path", "deletion_vector"]).filter(is_path_named).combine_chunks()
        seen = pc.is_in(file_keys(suspects), self._keys)
        # `seen` has one value for each true value of `is_path_named`.
        return pc.invert(pc.replace_with_mask(is_path_named, is_path_named, seen))


@dataclass(frozen=True, slots=True)
class _ParsedBatch:
    """A batch of a checkpoint whose statistics are parsed. batch: its live files. json_stats: the statistics that were parsed
    from JSON, of all its files, live or not, for the cache; None if no JSON was parsed."""

    batch: FileBatch
    json_stats: FileStats | None


def _parse_batch(raw: RawFiles, keep: pa.BooleanArray | None) -> _ParsedBatch:
    """Parse the statistics, and select the files for which keep is true; None keeps all files.

    Parses first and then filters, because the numbers are much shorter than their text.
    """
    json_stats = None if raw.json is None else parse_stats(raw.json, raw.json_leaves)
    struct_stats = None if raw.parsed is None else stats_from_struct(raw.parsed, raw.parsed_leaves)
    parts = [part for part in (raw.cached_stats, struct_stats, json_stats) if part is not None]
    batch = FileBatch(raw.files, _merge_stats(parts) if parts else None)
    return _ParsedBatch(batch if keep is None else batch.filter(keep), json_stats)


def _merge_stats(parts: list[FileStats]) -> FileStats:
    """Combine statistics of the same files from several sources. Each source has other leaves, but all may have row counts."""
    merged = parts[0]
    for part in parts[1:]:
        merged = FileStats(
            file_count=merged.file_count,
            num_records=pc.coalesce(merged.num_records, part.num_records),
            tight_bounds=pc.and_(merged.tight_bounds, part.tight_bounds),
            minimum={**merged.minimum, **part.minimum},
            maximum={**merged.maximum, **part.maximum},
            null_count={**merged.null_count, **part.null_count},
        )
    return merged


# ---------------------------------------------------------------- the other actions


@dataclass(slots=True)
class StateWithoutFiles:
    """The newest action of each kind other than file actions. transactions: by application. domains: by name; while the log is
    replayed, removed domains too, because they hide older ones."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply_older(self, action: object) -> None:
        """Apply an action that is older than all actions applied before: it counts only if there is no newer one of its kind and
        key."""
        match action:
            case Protocol():
                self.protocol = self.protocol or action
            case Metadata():
                self.metadata = self.metadata or action
            case SetTransaction():
                self.transactions.setdefault(action.app_id, action)
            case DomainMetadata():
                self.domains.setdefault(action.domain, action)

    @property
    def has_protocol_and_metadata(self) -> bool:
        """Whether the protocol and the metadata are known, so that older actions do not change them."""
        return self.protocol is not None and self.metadata is not None


def protocol_and_metadata_of_commits(segment: LogSegment, commits: CommitReader) -> StateWithoutFiles:
    """The newest protocol and metadata in the commits after the checkpoint; each is None if the commits have none. Transactions
    and domains of the result are not filled."""
    state = StateWithoutFiles()
    for _, actions in replay(segment, commits, lambda file: commits.actions(file, "protocol", "metaData")):
        for action in reversed(list(actions)):  # the last action of a file is the newest
            state.apply_older(action)
        if state.has_protocol_and_metadata:
            break
    return state


def protocol_and_metadata(segment: LogSegment, commits: CommitReader, checkpoint: CheckpointReader | None) -> StateWithoutFiles:
    """The newest protocol and metadata; each is None if the log has none. Transactions and domains of the result are not
    filled."""
    state = protocol_and_metadata_of_commits(segment, commits)
    if checkpoint is not None and not state.has_protocol_and_metadata:
        for name, parse in (("protocol", Protocol.from_json), ("metaData", Metadata.from_json)):
            for row in checkpoint.rows(name):
                state.apply_older(parse(row))
    return state


def transactions_and_domains(
    segment: LogSegment, commits: CommitReader, checkpoint: CheckpointReader | None
) -> StateWithoutFiles:
    """The newest transaction identifier of each application, and the metadata domains without removed ones. Protocol and metadata
    of the result are not filled."""
    state = StateWithoutFiles()
    for _, actions in replay(segment, commits, lambda file: commits.actions(file, "txn", "domainMetadata")):
        for action in reversed(list(actions)):  # the last action of a file is the newest
            state.apply_older(action)
    if checkpoint is not None:
        for row in checkpoint.rows("txn"):
            state.apply_older(SetTransaction.from_json(row))
        for row in checkpoint.rows("domainMetadata"):
            state.apply_older(DomainMetadata.from_json(row))
    state.domains = {name: domain for name, domain in state.domains.items() if not domain.removed}
    return state
