"""Action reconciliation: which files are live, from the newest action on each logical file.

Commits are read newest first and the keys they speak of are remembered; then every checkpoint batch loses, in one vectorised
step, the files that a commit spoke of. Memory is a batch, plus the keys of the commits after the checkpoint.
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
from delta_py.log.checkpoint_files import CheckpointUnreadableError, RawFiles, StatsWanted, raw_from_json
from delta_py.log.checkpoint_reader import CheckpointReader
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import EachOnce, both, file_keys, keys_of, path_of
from delta_py.log.segment import LogFile, LogSegment
from delta_py.log.stats_cache import KeptStats
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.statistics.stats import FileStats, concat_stats, parse_stats, stats_from_struct, unknown_stats
from delta_py.types.arrow_values import NULL, ZERO, all_true, array

_log = logging.getLogger("delta_py")
T = TypeVar("T")

# From this many keys on, a checkpoint is compared many batches at a time.
_MANY_KEYS = 20_000
_JOINED_ROWS = 8_192
# Batches whose statistics are parsed at the same time.
_PARSERS = 2
_MOST_GATHERED_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Live files of a version. files: FILE_SCHEMA. stats: aligned, of the leaves asked for; None if nothing was asked."""

    files: pa.RecordBatch
    stats: FileStats | None

    def filter(self, keep: pa.BooleanArray) -> FileBatch:
        """The files for which keep, never null, is true."""
        return FileBatch(self.files.filter(keep), None if self.stats is None else self.stats.filter(keep))

    def live_rows(self) -> pa.Int64Array:
        """Each file's rows that are not deleted; null where that is not known."""
        if self.stats is None:
            return pa.nulls(self.files.num_rows, pa.int64())
        vectors = self.files["deletion_vector"]
        deleted = pc.struct_field(vectors, "cardinality")
        deleted = pc.if_else(vectors.is_null(), ZERO, deleted.cast(pa.int64()))
        rows = pc.subtract(self.stats.num_records, deleted)
        return pc.if_else(pc.less(rows, ZERO), NULL, rows)


def gathered(batches: Iterable[FileBatch], columns: list[str]) -> Iterator[FileBatch]:
    """The same files, with only some of their columns, in fewer batches: for who works long on a batch and little on a file.
    None has many more rows than all before it together, so that who wants few files does not wait for many."""
    waiting: list[FileBatch] = []
    rows_waiting = rows_given = 0
    for batch in batches:
        waiting.append(FileBatch(batch.files.select(columns), batch.stats))
        rows_waiting += batch.files.num_rows
        if rows_waiting >= min(rows_given, _MOST_GATHERED_ROWS):
            yield _as_one(waiting)
            rows_given += rows_waiting
            waiting, rows_waiting = [], 0
    if waiting:
        yield _as_one(waiting)


def _as_one(batches: list[FileBatch]) -> FileBatch:
    if len(batches) == 1:
        return batches[0]
    files = pa.concat_batches([batch.files for batch in batches])
    if all(batch.stats is None for batch in batches):
        return FileBatch(files, None)
    return FileBatch(files, concat_stats([batch.stats or unknown_stats(batch.files.num_rows) for batch in batches]))


# ---------------------------------------------------------------- files


def commit_files(segment: LogSegment, commits: CommitReader, wanted: StatsWanted, seen: set[str]) -> Iterator[FileBatch]:
    """The live files that the commits after the checkpoint added, newest first; files among the seen are left out.

    seen: keys of newer actions; the keys of all actions read here are added to it.
    """
    for adds in _joined(_fresh_adds(segment, commits, seen)):
        yield _with_stats(raw_from_json(adds, wanted), None).batch


def _fresh_adds(segment: LogSegment, commits: CommitReader, seen: set[str]) -> Iterator[pa.RecordBatch]:
    for _, pieces in replay(segment, commits, commits.file_actions):
        commit_keys: set[str] = set()
        for piece in pieces:
            fresh = [key not in seen for key in piece.add_keys]
            commit_keys.update(piece.add_keys, piece.remove_keys)
            adds = piece.adds if all(fresh) else piece.adds.filter(array(fresh, pa.bool_()))
            if adds.num_rows:
                yield adds
        seen |= commit_keys


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: most commits add a few files, and each batch costs its consumer the same."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _JOINED_ROWS:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


class CheckpointFiles:
    """The live files of a checkpoint: those that no newer action speaks of, each once. Iterate once."""

    def __init__(self, checkpoint: CheckpointReader, wanted: StatsWanted, seen: Set[str]) -> None:
        self._checkpoint, self._wanted, self._seen = checkpoint, wanted, seen
        self._rows_given = 0
        self._keeping: KeptStats | None = None

    def __iter__(self) -> Iterator[FileBatch]:
        masks, each_once = SeenKeys(self._seen).masks(self._checkpoint), EachOnce(self._checkpoint.repeated_keys)
        with ThreadPoolExecutor(_PARSERS, "delta_py-stats") as pool:
            parsing: deque[tuple[RawFiles, Future[_Parsed]]] = deque()
            try:
                for raw in self._checkpoint.files(self._wanted):
                    parsing.append((raw, pool.submit(_with_stats, raw, both(masks(raw.files), each_once.mask(raw.files)))))
                    if len(parsing) > _PARSERS:
                        yield from self._next(parsing)
                while parsing:
                    yield from self._next(parsing)
            finally:
                if self._keeping is not None:
                    self._keeping.abandon()

    def _next(self, parsing: deque[tuple[RawFiles, Future[_Parsed]]]) -> Iterator[FileBatch]:
        raw, future = parsing.popleft()
        parsed = future.result()
        if parsed.of_json is not None:
            self._keep(raw, parsed.of_json)
        self._rows_given += raw.files.num_rows
        if parsed.batch.files.num_rows:
            yield parsed.batch

    def _keep(self, raw: RawFiles, parsed: FileStats) -> None:
        if raw.kept is None:
            return
        raw.kept.remember(parsed)
        if raw.is_last:
            raw.kept.finish()
        self._keeping = None if raw.is_last else raw.kept

    def keys_given(self, error: CheckpointUnreadableError) -> set[str]:
        """The keys of all files up to where the checkpoint broke off with `error`, which is raised if they cannot be read
        again."""
        keys: set[str] = set()
        rows = 0
        batches = self._checkpoint.files(StatsWanted())
        while rows < self._rows_given:
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
    """Each file of the replay, newest first, with what `read` finds in it by means of `commits`; the commits in place of a
    damaged compaction."""
    for file in commits.ahead(segment.replay_files()):
        if file.end_version == file.version:
            yield file, read(file)
            continue
        try:
            whole = list(read(file))
        except CorruptTableError as error:
            _log.warning("%s is passed over and its commits are read instead: %s", file.path, error.message)
            for commit in segment.commits_of(file):
                yield commit, read(commit)
        else:
            yield file, whole


class SeenKeys:
    """The keys of all file actions newer than the checkpoint, for comparison with its batches."""

    def __init__(self, keys: Set[str]) -> None:
        self._count = len(keys)
        self._keys = array(keys, pa.large_string())
        self._paths = array({path_of(key) for key in keys}, pa.string())

    def masks(self, checkpoint: CheckpointReader) -> Callable[[pa.RecordBatch], pa.BooleanArray | None]:
        """A function from each batch of the checkpoint, in order, to the mask of files that no newer action speaks of
        (None for all of them)."""
        if self._count == 0:
            return lambda files: None
        if self._count <= _MANY_KEYS:
            return lambda files: self.unseen([files])
        groups = self._masks_ahead(checkpoint)
        waiting = pa.nulls(0, pa.bool_())

        def take(files: pa.RecordBatch) -> pa.BooleanArray:
            nonlocal waiting
            while len(waiting) < files.num_rows:
                waiting = pa.concat_arrays([waiting, next(groups)])
            mask, waiting = waiting.slice(0, files.num_rows), waiting.slice(files.num_rows)
            return mask

        return take

    def _masks_ahead(self, checkpoint: CheckpointReader) -> Iterator[pa.BooleanArray]:
        """The mask of all rows, from a reading of their own, in large pieces: each comparison hashes all keys anew."""
        group: list[pa.RecordBatch] = []
        for raw in checkpoint.files(StatsWanted()):
            group.append(raw.files)
            if sum(files.num_rows for files in group) >= self._count:
                yield self._mask(group)
                group = []
        if group:
            yield self._mask(group)

    def _mask(self, group: list[pa.RecordBatch]) -> pa.BooleanArray:
        mask = self.unseen(group)
        return all_true(sum(files.num_rows for files in group)) if mask is None else mask

    def unseen(self, group: list[pa.RecordBatch]) -> pa.BooleanArray | None:
        """The mask of some batches one after the other: paths first, whole keys only where a path is among the seen."""
        hit = pc.is_in(pa.chunked_array([files["path"] for files in group]), self._paths).combine_chunks()
        if not hit.true_count:
            return None
        suspects = pa.Table.from_batches(group).select(["path", "deletion_vector"]).filter(hit).combine_chunks()
        seen = pc.is_in(file_keys(suspects), self._keys)
        return pc.invert(pc.replace_with_mask(hit, hit, seen))


@dataclass(frozen=True, slots=True)
class _Parsed:
    """batch: live files. of_json: of all files, live or not, what their JSON said."""

    batch: FileBatch
    of_json: FileStats | None


def _with_stats(raw: RawFiles, keep: pa.BooleanArray | None) -> _Parsed:
    """Parse first, filter then: the numbers are much shorter than the text they come from."""
    of_json = None if raw.json is None else parse_stats(raw.json, raw.json_leaves)
    of_struct = None if raw.parsed is None else stats_from_struct(raw.parsed, raw.parsed_leaves)
    parts = [part for part in (raw.known, of_struct, of_json) if part is not None]
    batch = FileBatch(raw.files, _merged(parts) if parts else None)
    return _Parsed(batch if keep is None else batch.filter(keep), of_json)


def _merged(parts: list[FileStats]) -> FileStats:
    """Statistics of the same files from two sources, for different leaves."""
    first, rest = parts[0], parts[1:]
    for other in rest:
        first = FileStats(
            first.file_count,
            pc.coalesce(first.num_records, other.num_records),
            pc.and_(first.tight_bounds, other.tight_bounds),
            {**first.minimum, **other.minimum},
            {**first.maximum, **other.maximum},
            {**first.null_count, **other.null_count},
        )
    return first


# ---------------------------------------------------------------- the other actions


@dataclass(slots=True)
class SmallState:
    """The newest action of each other kind. domain_metadata holds tombstones too while the log is replayed."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply_older(self, action: object) -> None:
        """Take in an action that is older than all that were taken in before."""
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
    def has_both(self) -> bool:
        return self.protocol is not None and self.metadata is not None


def protocol_and_metadata_of_commits(segment: LogSegment, commits: CommitReader) -> SmallState:
    """The newest protocol and metadata among the commits after the checkpoint; None where they have none."""
    state = SmallState()
    for _, actions in replay(segment, commits, lambda file: commits.actions(file, "protocol", "metaData")):
        for action in reversed(list(actions)):
            state.apply_older(action)
        if state.has_both:
            break
    return state


def protocol_and_metadata(segment: LogSegment, commits: CommitReader, checkpoint: CheckpointReader | None) -> SmallState:
    """The newest protocol and metadata; None where the log holds none."""
    state = protocol_and_metadata_of_commits(segment, commits)
    if checkpoint is not None and not state.has_both:
        for name, parse in (("protocol", Protocol.from_json), ("metaData", Metadata.from_json)):
            for row in checkpoint.rows(name):
                state.apply_older(parse(row))
    return state


def transactions_and_domains(segment: LogSegment, commits: CommitReader, checkpoint: CheckpointReader | None) -> SmallState:
    """The newest transaction identifier of each application and the metadata domains, removed ones left out."""
    state = SmallState()
    for _, actions in replay(segment, commits, lambda file: commits.actions(file, "txn", "domainMetadata")):
        for action in reversed(list(actions)):
            state.apply_older(action)
    if checkpoint is not None:
        for row in checkpoint.rows("txn"):
            state.apply_older(SetTransaction.from_json(row))
        for row in checkpoint.rows("domainMetadata"):
            state.apply_older(DomainMetadata.from_json(row))
    state.domains = {name: domain for name, domain in state.domains.items() if not domain.removed}
    return state
