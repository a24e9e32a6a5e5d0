"""Which log files make up a version: list `_delta_log`, choose a checkpoint, and check that no commit is missing.

In: a store and a version (None for the newest). Out: a LogSegment, which names files and holds nothing read from them.
`_last_checkpoint` only shortens the listing; when it is missing, damaged or wrong the whole directory is listed.
Protocol: Delta Log Entries; Checkpoints; Log Compaction Files; Last Checkpoint File.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from delta_py.errors import (
    LogFileNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
    VersionsNotContiguousError,
    shown,
)
from delta_py.log.limits import HINT_BYTES
from delta_py.object_stores.open_store import is_in_transaction
from delta_py.protocol.paths import LAST_CHECKPOINT, LOG_DIRECTORY, LogKind, LogName, parse_log_name, version_prefix
from delta_py.storage.store import FileId, ObjectInfo, ObjectStore

LAST_CHECKPOINT_PATH = f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"

LONG_AGO = -math.inf
_NAMED_CHECKPOINTS = 3

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log. path: relative to the table's root. end_version: of a compaction; else equal to version. size, time,
    etag and file_id: as listed; zeros and None for a file that was not listed."""

    path: str
    version: int
    end_version: int
    size_bytes: int
    modification_time_ms: int
    etag: str | None = None
    file_id: FileId | None = None

    @property
    def info(self) -> ObjectInfo:
        return ObjectInfo(self.path, self.size_bytes, self.modification_time_ms, self.etag, self.file_id)


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """What `_last_checkpoint` says of a checkpoint; counts are null where it does not. file_count: live files, whoever writes the
    checkpoint. action_count: of the writer's own, with as many tombstones as it kept.
    Protocol: Last Checkpoint File Schema."""

    version: int
    action_count: int | None = None
    file_count: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One complete checkpoint: a single file, or all parts of a multi-part checkpoint in order. checksum, hint: the version
    checksum of its version, and `_last_checkpoint`, if they are there and speak of it."""

    version: int
    kind: LogKind
    files: tuple[LogFile, ...]
    checksum: LogFile | None = None
    hint: LastCheckpoint | None = None

    @property
    def has_empty_file(self) -> bool:
        """Such as one whose writer died: no reader takes it."""
        return any(file.size_bytes == 0 for file in self.files)


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files from which the state at `version` can be rebuilt.

    checkpoint: what to start from, None to start from commit 0. commits: those after the checkpoint up to version,
    ascending, without gaps. last_commit: the commit of `version` itself (the checkpoint may already cover it).
    compactions: files that may stand for some of `commits`; they do not overlap. checksum: the version checksum of
    exactly this version. last_checksum_version: the newest one, up to this, that has a checksum from the checkpoint on.
    listed_at: when the listing began, by time.monotonic of this process; it makes no difference between segments.
    """

    table_root: str
    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    last_commit: LogFile
    compactions: tuple[LogFile, ...] = ()
    checksum: LogFile | None = None
    last_checksum_version: int | None = None
    listed_at: float = field(default=LONG_AGO, compare=False)

    @property
    def size_bytes(self) -> int:
        """Of the checkpoint's own files and of the commits."""
        checkpoint_files = () if self.checkpoint is None else self.checkpoint.files
        return sum(file.size_bytes for file in (*checkpoint_files, *self.commits))

    def replay_files(self) -> Iterator[LogFile]:
        """Commits and the compactions that stand for them, newest first."""
        by_end = {compaction.end_version: compaction for compaction in self.compactions}
        position = len(self.commits) - 1
        while position >= 0:
            compaction = by_end.get(self.commits[position].version)
            yield compaction or self.commits[position]
            position -= 1 if compaction is None else compaction.end_version - compaction.version + 1

    def commits_of(self, compaction: LogFile) -> tuple[LogFile, ...]:
        """The commits that a compaction stands for, newest first."""
        covered = [commit for commit in self.commits if compaction.version <= commit.version <= compaction.end_version]
        return tuple(reversed(covered))


@dataclass(slots=True)
class Listing:
    """What was found in the log directory, sorted by kind and version. begun_at: by time.monotonic."""

    first_listed: int = 0
    begun_at: float = LONG_AGO
    commits: dict[int, LogFile] = field(default_factory=dict)
    checksums: dict[int, LogFile] = field(default_factory=dict)
    compactions: list[LogFile] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    incomplete: list[tuple[int, int, int]] = field(default_factory=list)

    def commits_between(self, start: int, end: int | None) -> list[LogFile]:
        """Of versions start to end (both included; None: to the newest), ascending, gaps not checked."""
        return [self.commits[v] for v in sorted(self.commits) if v >= start and (end is None or v <= end)]

    def newest(self) -> int | None:
        """The newest version that the files speak of."""
        versions = [*self.commits, *(checkpoint.version for checkpoint in self.checkpoints)]
        return max(versions, default=None)

    def earliest(self) -> int | None:
        """The oldest version that can be rebuilt and has its commit: 0, or that of a complete checkpoint, or the next one where
        the checkpoint's own commit is gone. Clean-up of other engines deletes that too."""
        if 0 in self.commits:
            return 0
        checkpoints = [checkpoint.version for checkpoint in self.checkpoints if not checkpoint.has_empty_file]
        reached = [version for start in checkpoints for version in (start, start + 1) if version in self.commits]
        return min(reached, default=None)


# ---------------------------------------------------------------- the public functions


def load_segment(store: ObjectStore, version: int | None = None, *, unusable: frozenset[str] = frozenset()) -> LogSegment:
    """The files of a version; None for the newest.

    unusable: paths of checkpoint files that turned out to be unreadable; their checkpoints are passed over.
    Raises TableNotFoundError, VersionNotFoundError (naming the versions there are), VersionsNotContiguousError, and
    LogFileNotFoundError when neither a checkpoint nor all commits from 0 on are there.
    """
    hint = read_last_checkpoint(store)
    if hint is not None and (version is None or hint.version <= version):
        listing = list_log(store, hint.version)
        if _choose_checkpoint(listing, version, unusable, hint) is not None:
            return _make_segment(store, listing, version, unusable, hint)
        if not unusable and not is_in_transaction(store):  # which sees no checkpoints of later versions
            _log.warning(
                "%s: _last_checkpoint names version %d, but no complete checkpoint is there; listing the whole log",
                store.root,
                hint.version,
            )
    return _make_segment(store, list_log(store, 0), version, unusable, hint)


def list_commits(store: ObjectStore, start: int = 0, end: int | None = None) -> list[LogFile]:
    """The commit files of versions start to end (both included; None: to the newest), ascending, gaps not checked."""
    return list_log(store, start).commits_between(start, end)


def available_versions(store: ObjectStore) -> tuple[int, int]:
    """The oldest and the newest version that can be rebuilt. Raises TableNotFoundError, LogFileNotFoundError."""
    return available_in(store, list_log(store, 0))


def available_in(store: ObjectStore, listing: Listing) -> tuple[int, int]:
    """The same, by a listing of the whole log."""
    newest = _require_table(store, listing)
    earliest = listing.earliest()
    if earliest is None:
        raise _truncated(store, listing)
    return earliest, newest


# ---------------------------------------------------------------- listing


def list_log(store: ObjectStore, start: int, end: int | None = None) -> Listing:
    """The files of the versions start to end (None: to the newest). checkpoints: the complete ones, best first.

    A directory that is listed while others write to it may show a commit and not the one before it, or what was made of a commit
    and not the commit, if both were made since the listing began. So one with a gap is listed once more.
    """
    listing = _listed(store, start, end)
    return _listed(store, start, end) if _has_gap(listing, end) else listing


def _has_gap(listing: Listing, end: int | None) -> bool:
    if not listing.commits:
        return False
    oldest, newest = min(listing.commits), max(listing.commits)
    spoken_of = [*(file.end_version for file in listing.compactions), *(one.version for one in listing.checkpoints)]
    return newest - oldest + 1 != len(listing.commits) or (end is None and max(spoken_of, default=newest) > newest)


def _listed(store: ObjectStore, start: int, end: int | None) -> Listing:
    listing = Listing(first_listed=start, begun_at=time.monotonic())
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}
    for info in store.list_from(LOG_DIRECTORY, version_prefix(start)):
        name = parse_log_name(info.path.rpartition("/")[2])
        if name is not None and name.kind is not LogKind.LAST_CHECKPOINT:
            if end is not None and name.version > end:
                break
            _file_away(listing, parts, name, log_file(info, name))
    for (version, count), files in parts.items():
        if len(files) == count:
            ordered = tuple(files[part] for part in sorted(files))
            listing.checkpoints.append(Checkpoint(version, LogKind.CHECKPOINT_MULTIPART, ordered))
        else:
            listing.incomplete.append((version, len(files), count))
    listing.checkpoints.sort(key=_preference, reverse=True)
    return listing


def log_file(info: ObjectInfo, name: LogName) -> LogFile:
    """A listed file of the log."""
    end = name.version if name.end_version is None else name.end_version
    return LogFile(info.path, name.version, end, info.size_bytes, info.modification_time_ms, info.etag, info.file_id)


def _file_away(listing: Listing, parts: dict[tuple[int, int], dict[int, LogFile]], name: LogName, file: LogFile) -> None:
    match name.kind:
        case LogKind.COMMIT:
            listing.commits[file.version] = file
        case LogKind.CHECKSUM:
            listing.checksums[file.version] = file
        case LogKind.COMPACTION:
            listing.compactions.append(file)
        case LogKind.CHECKPOINT_CLASSIC | LogKind.CHECKPOINT_V2:
            listing.checkpoints.append(Checkpoint(file.version, name.kind, (file,)))
        case LogKind.CHECKPOINT_MULTIPART:
            assert name.part is not None and name.part_count is not None
            parts.setdefault((file.version, name.part_count), {})[name.part] = file


_KIND_RANK = {LogKind.CHECKPOINT_MULTIPART: 0, LogKind.CHECKPOINT_CLASSIC: 1, LogKind.CHECKPOINT_V2: 2}


def _preference(checkpoint: Checkpoint) -> tuple[int, int, int, str]:
    """Sort key, best last: newest; then the kind with the least that can go wrong; then any fixed order."""
    return checkpoint.version, _KIND_RANK[checkpoint.kind], len(checkpoint.files), checkpoint.files[0].path


# ---------------------------------------------------------------- choosing


def _choose_checkpoint(
    listing: Listing, version: int | None, unusable: frozenset[str], hint: LastCheckpoint | None
) -> Checkpoint | None:
    for checkpoint in listing.checkpoints:
        if version is not None and checkpoint.version > version:
            continue
        if unusable.isdisjoint(file.path for file in checkpoint.files) and not checkpoint.has_empty_file:
            is_hinted = hint is not None and hint.version == checkpoint.version
            return replace(checkpoint, checksum=listing.checksums.get(checkpoint.version), hint=hint if is_hinted else None)
    return None


def _make_segment(
    store: ObjectStore, listing: Listing, wanted: int | None, unusable: frozenset[str], hint: LastCheckpoint | None
) -> LogSegment:
    newest = _require_table(store, listing)
    if wanted is None:
        _check_compacted(store, listing, newest)
    version = newest if wanted is None else wanted
    if version > newest or version < 0:
        raise _version_not_found(store, version)
    checkpoint = _choose_checkpoint(listing, version, unusable, hint)
    if checkpoint is None and listing.earliest() is not None and wanted is not None and not unusable and 0 not in listing.commits:
        raise _version_not_found(store, version)
    _warn_of_incomplete(store, listing, checkpoint, version)
    start = -1 if checkpoint is None else checkpoint.version
    commits = tuple(listing.commits[v] for v in sorted(listing.commits) if start < v <= version)
    _check_contiguous(store, listing, start, commits, version)
    return LogSegment(
        table_root=store.root,
        version=version,
        checkpoint=checkpoint,
        commits=commits,
        last_commit=listing.commits[version],
        compactions=_choose_compactions(listing.compactions, start + 1, version),
        checksum=listing.checksums.get(version) if listing.commits[version].size_bytes else None,
        last_checksum_version=max((v for v in listing.checksums if start <= v <= version), default=None),
        listed_at=listing.begun_at,
    )


def _choose_compactions(compactions: list[LogFile], first: int, last: int) -> tuple[LogFile, ...]:
    """Those that fit into the range and do not overlap, in the order of their names, as the reference takes them."""
    chosen, position = [], first
    for compaction in sorted(compactions, key=lambda file: (file.version, file.end_version)):
        if compaction.version >= position and compaction.end_version <= last:
            chosen.append(compaction)
            position = compaction.end_version + 1
    return tuple(chosen)


def _warn_of_incomplete(store: ObjectStore, listing: Listing, chosen: Checkpoint | None, version: int) -> None:
    for checkpoint_version, parts, count in listing.incomplete:
        if checkpoint_version <= version and (chosen is None or checkpoint_version > chosen.version):
            text = "%s: the checkpoint of version %d has %d of %d parts and is passed over"
            _log.warning(text, store.root, checkpoint_version, parts, count)


# ---------------------------------------------------------------- refusals


def _require_table(store: ObjectStore, listing: Listing) -> int:
    """The newest version; raises TableNotFoundError when there is none."""
    newest = listing.newest()
    if newest is not None:
        return newest
    if listing.incomplete:
        version, parts, count = listing.incomplete[0]
        raise LogFileNotFoundError(
            f"The table at {store.root} cannot be rebuilt: there is no commit, and the checkpoint of version {version} has only "
            f"{parts} of its {count} parts. Restore the missing files of {LOG_DIRECTORY}.",
            error_class="DELTA_MISSING_PART_FILES",
            sql_state="42KD6",
            version=version,
        )
    if next(store.list_recursive(""), None) is None and next(store.list_from(LOG_DIRECTORY), None) is None:
        raise TableNotFoundError(
            f"{store.root} does not exist or is empty. Check the path.",
            error_class="DELTA_PATH_DOES_NOT_EXIST",
            sql_state="42K03",
            path=store.root,
        )
    raise TableNotFoundError(
        f"{store.root} is not a Delta table: there is no commit in its {LOG_DIRECTORY}. Check the path, or create the table.",
        path=store.root,
    )


def _version_not_found(store: ObjectStore, version: int) -> VersionNotFoundError:
    earliest, newest = available_versions(store)
    return VersionNotFoundError(
        f"Version {version} of the table at {store.root} is not there. Available versions: [{earliest}, {newest}].",
        version=version,
        earliest=earliest,
        latest=newest,
    )


def _truncated(store: ObjectStore, listing: Listing) -> LogFileNotFoundError:
    oldest = min(listing.commits, default=None)
    have = "there is no commit" if oldest is None else f"the oldest commit is {oldest}"
    return LogFileNotFoundError(
        f"The table at {store.root} cannot be rebuilt: {have}, {_checkpoints_text(listing)}, and commit 0 is missing. "
        f"Restore the missing files of {LOG_DIRECTORY}.",
        error_class="DELTA_TRUNCATED_TRANSACTION_LOG",
        oldest_commit=oldest,
    )


def _checkpoints_text(listing: Listing) -> str:
    """Why none of the checkpoints is enough."""
    complete = sorted({checkpoint.version for checkpoint in listing.checkpoints if not checkpoint.has_empty_file})
    if not complete:
        return "there is no complete checkpoint"
    if listing.earliest() is not None:
        return "no checkpoint before the version can be read"
    some = ", ".join(map(str, complete[-_NAMED_CHECKPOINTS:]))
    return f"the commits that follow the checkpoints (of version {some}) are missing"


def _check_contiguous(store: ObjectStore, listing: Listing, start: int, commits: tuple[LogFile, ...], version: int) -> None:
    """Commits start+1 to version must all be there, and version's own commit even if the checkpoint covers it."""
    if start == -1 and (not commits or commits[0].version != 0):
        raise _truncated(store, listing)
    before = start
    for commit in commits:
        if commit.version != before + 1:
            raise VersionsNotContiguousError(
                f"Versions ({before}, {commit.version}) of the table at {store.root} are not contiguous: commit {before + 1} is "
                f"missing. Restore the missing files of {LOG_DIRECTORY}, or read a version before {before + 1}.",
                before=before,
                after=commit.version,
            )
        before = commit.version
    if version not in listing.commits:
        whole = listing if listing.first_listed == 0 else list_log(store, 0)
        earliest = whole.earliest()
        if earliest is not None and version < earliest:
            raise _version_not_found(store, version)
        raise LogFileNotFoundError(
            f"Commit {version} of the table at {store.root} is missing from {LOG_DIRECTORY}, so the version cannot be read. "
            "Restore the file.",
            version=version,
        )


def _check_compacted(store: ObjectStore, listing: Listing, newest: int) -> None:
    """Commits that a compaction stands for must not be gone: those that came in their place would be hidden by it."""
    beyond = next((file for file in listing.compactions if file.end_version > newest), None)
    if beyond is not None:
        raise LogFileNotFoundError(
            f"Commit {newest + 1} of the table at {store.root} is missing from {LOG_DIRECTORY}, and {beyond.path} stands for it: "
            f"the commits after {newest} were there and are gone. Restore them; or, to give them up, delete {beyond.path} too.",
            version=newest + 1,
            path=beyond.path,
        )


# ---------------------------------------------------------------- _last_checkpoint


def read_last_checkpoint(store: ObjectStore) -> LastCheckpoint | None:
    """What `_last_checkpoint` says; None, with a warning, when the file is damaged; None when missing.

    Protocol: Last Checkpoint File Schema.
    """
    try:
        text = store.read_range(LAST_CHECKPOINT_PATH, 0, HINT_BYTES + 1)
    except FileNotFoundError:
        return None
    except StorageError as error:
        _log.warning("%s: _last_checkpoint is not read (%s); listing the whole log", store.root, error.message)
        return None
    try:
        if len(text) > HINT_BYTES:
            raise ValueError(f"it has more than {HINT_BYTES} bytes")
        value = json.loads(text, object_pairs_hook=_object, parse_int=_Number, parse_float=_Number)
        return _checked_hint(value)
    except (ValueError, RecursionError) as error:
        _log.warning("%s: _last_checkpoint is damaged (%s); listing the whole log", store.root, error)
        return None


class _Number(str):
    """A JSON number as it is written: the checksum is over its text."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _checked_hint(value: Any) -> LastCheckpoint:
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    checksum = value.get("checksum")
    if checksum is not None and checksum != json_checksum(value):
        raise ValueError("its checksum is wrong")
    version = _count(value.get("version"))
    if version is None:
        raise ValueError(f"its version is {shown(value.get('version'))}")
    return LastCheckpoint(version, _count(value.get("size")), _count(value.get("numOfAddFiles")))


def _count(value: Any) -> int | None:
    """A count as it was written; None for anything else."""
    is_count = isinstance(value, _Number) and value.isdecimal() and len(value) < 20 and int(value) < 2**63
    return int(value) if is_count else None


def json_checksum(value: Mapping[str, Any]) -> str:
    """MD5 of the canonical form of a `_last_checkpoint` object, its own `checksum` left out. Protocol: JSON checksum."""
    return hashlib.md5(canonical_json(value).encode(), usedforsecurity=False).hexdigest()


def canonical_json(value: Mapping[str, Any]) -> str:
    """One `path=value` for each leaf, sorted by the bytes of the path, joined by commas. Protocol: JSON checksum."""
    leaves = (leaf for name, item in value.items() if name != "checksum" for leaf in _canonical_leaves(_quoted(name), item))
    return ",".join(f"{path}={text}" for path, text in sorted(leaves, key=lambda leaf: leaf[0].encode()))


def _canonical_leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _canonical_leaves(f"{path}+{_quoted(name)}", item)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _canonical_leaves(f"{path}+{position}", item)
    elif isinstance(value, str) and not isinstance(value, _Number):
        yield path, _quoted(value)
    else:
        yield path, value if isinstance(value, _Number) else json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
