"""Find the log files of a version: list `_delta_log`, choose a checkpoint, and check that no commit is missing.

In: a store and a version (None for the newest). Out: a LogSegment, which names the files but has none of their content.
`_last_checkpoint` only shortens the listing. If it is missing, damaged or wrong, the whole directory is listed.
Protocol: Delta Log Entries; Checkpoints; Log Compaction Files.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from delta_py.errors import (
    LogFileNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from delta_py.log.last_checkpoint import LastCheckpoint, load_last_checkpoint, warn_of_refusal
from delta_py.object_stores.open_store import is_in_transaction
from delta_py.protocol.paths import LOG_DIRECTORY, LogKind, LogName, parse_log_name, version_prefix
from delta_py.storage.store import FileId, ObjectInfo, ObjectStore

LONG_AGO = -math.inf  # for a listing of another process, whose time.monotonic cannot be compared
_NAMED_CHECKPOINTS = 3  # how many checkpoints an error message names

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log. path: relative to the table's root. end_version: the last version of a compaction; otherwise equal to
    version. size, time, etag and file_id: as listed; zeros and None if the file was not listed."""

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
class Checkpoint:
    """One complete checkpoint: a single file, or all parts of a multi-part checkpoint in order. checksum: the version checksum of
    its version, if it exists. hint: the content of `_last_checkpoint`, if it names this checkpoint's version."""

    version: int
    kind: LogKind
    files: tuple[LogFile, ...]
    checksum: LogFile | None = None
    hint: LastCheckpoint | None = None

    @property
    def has_empty_file(self) -> bool:
        """Whether a file is empty, for example because its writer died. No reader uses such a checkpoint."""
        return any(file.size_bytes == 0 for file in self.files)


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files from which the state at `version` can be rebuilt.

    checkpoint: the start of the replay; None to start from commit 0. commits: the commits after the checkpoint up to version,
    ascending, without gaps. last_commit: the commit of `version` itself (the checkpoint may already cover it).
    compactions: files that may replace some of `commits`; they do not overlap. checksum: the version checksum of exactly this
    version. last_checksum_version: the newest version with a checksum, from the checkpoint's version to this one.
    listed_at: the start of the listing, by time.monotonic of this process; it is ignored when segments are compared.
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
        """The size of the checkpoint's files (without sidecars) and of the commits."""
        checkpoint_files = () if self.checkpoint is None else self.checkpoint.files
        return sum(file.size_bytes for file in (*checkpoint_files, *self.commits))

    def replay_files(self) -> Iterator[LogFile]:
        """Commits and the compactions that replace some of them, newest first."""
        by_end = {compaction.end_version: compaction for compaction in self.compactions}
        position = len(self.commits) - 1
        while position >= 0:
            compaction = by_end.get(self.commits[position].version)
            yield compaction or self.commits[position]
            position -= 1 if compaction is None else compaction.end_version - compaction.version + 1

    def commits_of(self, compaction: LogFile) -> tuple[LogFile, ...]:
        """The commits that a compaction replaces, newest first."""
        covered = [commit for commit in self.commits if compaction.version <= commit.version <= compaction.end_version]
        return tuple(reversed(covered))


@dataclass(slots=True)
class Listing:
    """The files in the log directory, sorted by kind and version.

    first_listed: the version at which the listing starts. begun_at: start of the listing, by time.monotonic. commits, checksums:
    by version. checkpoints: the complete ones, best first. incomplete: version, number of existing parts and number of all parts
    of each multi-part checkpoint that lacks parts.
    """

    first_listed: int = 0
    begun_at: float = LONG_AGO
    commits: dict[int, LogFile] = field(default_factory=dict)
    checksums: dict[int, LogFile] = field(default_factory=dict)
    compactions: list[LogFile] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    incomplete: list[tuple[int, int, int]] = field(default_factory=list)

    def commits_between(self, start: int, end: int | None) -> list[LogFile]:
        """The commits of versions start to end (both included; None: to the newest), ascending. Gaps are not checked."""
        return [self.commits[v] for v in sorted(self.commits) if v >= start and (end is None or v <= end)]

    def newest(self) -> int | None:
        """The newest version of a commit or checkpoint."""
        versions = [*self.commits, *(checkpoint.version for checkpoint in self.checkpoints)]
        return max(versions, default=None)

    def earliest(self) -> int | None:
        """The oldest version that can be rebuilt and has its commit: 0, or the version of a complete checkpoint, or the next
        version if the checkpoint's own commit is deleted. Log cleanup of other engines deletes that commit too."""
        if 0 in self.commits:
            return 0
        checkpoints = [checkpoint.version for checkpoint in self.checkpoints if not checkpoint.has_empty_file]
        # From a checkpoint, its own version can be rebuilt, and the next one.
        rebuildable_versions = [version for start in checkpoints for version in (start, start + 1) if version in self.commits]
        return min(rebuildable_versions, default=None)


# ---------------------------------------------------------------- the public functions


def load_segment(store: ObjectStore, version: int | None = None, *, unusable: frozenset[str] = frozenset()) -> LogSegment:
    """The files of a version; None for the newest.

    unusable: paths of checkpoint files that turned out to be unreadable; their checkpoints are skipped.
    Raises TableNotFoundError, VersionNotFoundError (with the available versions), VersionsNotContiguousError, and
    LogFileNotFoundError if there is no checkpoint and commits from 0 on are missing.
    """
    refusal: StorageError | None = None  # the store's refusal to read `_last_checkpoint`
    try:
        hint = load_last_checkpoint(store)
    except StorageError as error:
        hint, refusal = None, error
    if hint is not None and (version is None or hint.version <= version):
        listing = list_log(store, hint.version)
        if _choose_checkpoint(listing, version, unusable, hint) is not None:
            return _make_segment(store, listing, version, unusable, hint)
        if not unusable and not is_in_transaction(store):  # a transaction sees no checkpoints of later versions
            _log.warning(
                "%s: _last_checkpoint names version %d, but that has no complete checkpoint; listing the whole log",
                store.root,
                hint.version,
            )
    listing = list_log(store, 0)  # if the store refuses this too, it raises here, and the warning is not needed
    if refusal is not None:
        warn_of_refusal(store, refusal)
    return _make_segment(store, listing, version, unusable, hint)


def list_commits(store: ObjectStore, start: int = 0, end: int | None = None) -> list[LogFile]:
    """The commit files of versions start to end (both included; None: to the newest), ascending. Gaps are not checked."""
    return list_log(store, start).commits_between(start, end)


def available_versions(store: ObjectStore) -> tuple[int, int]:
    """The oldest and the newest version that can be rebuilt. Raises TableNotFoundError, LogFileNotFoundError."""
    return available_in(store, list_log(store, 0))


def available_in(store: ObjectStore, listing: Listing) -> tuple[int, int]:
    """The oldest and the newest version that can be rebuilt, from a listing of the whole log."""
    newest = _require_table(store, listing)
    earliest = listing.earliest()
    if earliest is None:  # there are commits, but neither commit 0 nor a checkpoint from which they follow
        raise _no_start_error(store, listing)
    return earliest, newest


# ---------------------------------------------------------------- listing


def list_log(store: ObjectStore, start: int, end: int | None = None) -> Listing:
    """The files of the versions start to end (None: to the newest). The listing's checkpoints are the complete ones, best first.

    If others write to the directory during the listing, it may show a commit but not the commit before it. It may also show a
    checkpoint or compaction but not its commit. So a listing with a gap is repeated once.
    """
    listing = _list_once(store, start, end)
    return _list_once(store, start, end) if _has_gap(listing, end) else listing


def _has_gap(listing: Listing, end: int | None) -> bool:
    """Whether the listing lacks commits between the oldest and the newest, or commits that a compaction or checkpoint covers.

    With `end`, the commits after it are not listed, but a compaction may cover them. That is not a gap.
    """
    if not listing.commits:
        return False
    oldest, newest = min(listing.commits), max(listing.commits)
    covered_versions = [
        *(file.end_version for file in listing.compactions),
        *(checkpoint.version for checkpoint in listing.checkpoints),
    ]
    return newest - oldest + 1 != len(listing.commits) or (end is None and max(covered_versions, default=newest) > newest)


def _list_once(store: ObjectStore, start: int, end: int | None) -> Listing:
    """List the log once, from version start to end (None: to the newest). A checkpoint in parts counts only if all its parts are
    there; otherwise it is in `incomplete`."""
    listing = Listing(first_listed=start, begun_at=time.monotonic())
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}  # as in _add_to_listing
    for info in store.list_from(LOG_DIRECTORY, version_prefix(start)):
        name = parse_log_name(info.path.rpartition("/")[2])
        if name is not None and name.kind is not LogKind.LAST_CHECKPOINT:
            if end is not None and name.version > end:
                break
            _add_to_listing(listing, parts, name, log_file(info, name))
    for (version, count), files in parts.items():
        if len(files) == count:
            ordered = tuple(files[part] for part in sorted(files))
            listing.checkpoints.append(Checkpoint(version, LogKind.CHECKPOINT_MULTIPART, ordered))
        else:
            listing.incomplete.append((version, len(files), count))
    listing.checkpoints.sort(key=_quality, reverse=True)
    return listing


def log_file(info: ObjectInfo, name: LogName) -> LogFile:
    """Convert the store's entry of a log file."""
    end = name.version if name.end_version is None else name.end_version
    return LogFile(info.path, name.version, end, info.size_bytes, info.modification_time_ms, info.etag, info.file_id)


def _add_to_listing(listing: Listing, parts: dict[tuple[int, int], dict[int, LogFile]], name: LogName, file: LogFile) -> None:
    """Add the file to the files of its kind in the listing. parts: collects the parts of multi-part checkpoints: (version, number
    of all parts) -> part number -> file."""
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


def _quality(checkpoint: Checkpoint) -> tuple[int, int, int, str]:
    """Sort key, best last: the newest version, then the best kind (_KIND_RANK), then any order that is the same for all
    readers."""
    return checkpoint.version, _KIND_RANK[checkpoint.kind], len(checkpoint.files), checkpoint.files[0].path


# ---------------------------------------------------------------- choosing


def _choose_checkpoint(
    listing: Listing, version: int | None, unusable: frozenset[str], hint: LastCheckpoint | None
) -> Checkpoint | None:
    """The newest usable checkpoint up to the version (None: any version), with its checksum and hint; None if there is none.

    The listing's checkpoints are already sorted, best first.
    """
    for checkpoint in listing.checkpoints:
        if version is not None and checkpoint.version > version:
            continue
        if unusable.isdisjoint(file.path for file in checkpoint.files) and not checkpoint.has_empty_file:
            is_hinted = hint is not None and hint.version == checkpoint.version
            return replace(checkpoint, checksum=listing.checksums.get(checkpoint.version), hint=hint if is_hinted else None)
    return None


def _make_segment(
    store: ObjectStore, listing: Listing, requested_version: int | None, unusable: frozenset[str], hint: LastCheckpoint | None
) -> LogSegment:
    """The segment of a version (None: the newest) from a listing. hint: the content of `_last_checkpoint`; None if it cannot be
    used. unusable: as in load_segment. Raises as load_segment."""
    newest = _require_table(store, listing)
    if requested_version is None:  # a reader of an older version does not need the commits that may be lost
        _check_compacted(store, listing, newest)
    version = newest if requested_version is None else requested_version
    if version > newest or version < 0:
        raise _version_not_found_error(store, version)
    checkpoint = _choose_checkpoint(listing, version, unusable, hint)
    # is_cleaned_up: log cleanup has deleted the commits and checkpoints that the version needs, and the remaining log starts
    # later. If checkpoints are unusable, damage is the cause instead, and the checks below report it.
    is_cleaned_up = checkpoint is None and listing.earliest() is not None and 0 not in listing.commits and not unusable
    if is_cleaned_up and requested_version is not None:  # only later versions can still be loaded
        raise _version_not_found_error(store, version)
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
        # A commit of 0 bytes has lost its actions, and its checksum may describe them.
        checksum=listing.checksums.get(version) if listing.commits[version].size_bytes else None,
        last_checksum_version=max((v for v in listing.checksums if start <= v <= version), default=None),
        listed_at=listing.begun_at,
    )


def _choose_compactions(compactions: list[LogFile], first: int, last: int) -> tuple[LogFile, ...]:
    """The compactions that fit into the range and do not overlap, chosen in the order of their names, as in delta-spark."""
    chosen, position = [], first
    for compaction in sorted(compactions, key=lambda file: (file.version, file.end_version)):
        if compaction.version >= position and compaction.end_version <= last:
            chosen.append(compaction)
            position = compaction.end_version + 1
    return tuple(chosen)


def _warn_of_incomplete(store: ObjectStore, listing: Listing, chosen: Checkpoint | None, version: int) -> None:
    """Warn of multi-part checkpoints that would be better than the chosen one if they had all parts. chosen: None if the segment
    has no checkpoint."""
    for checkpoint_version, parts, count in listing.incomplete:
        if checkpoint_version <= version and (chosen is None or checkpoint_version > chosen.version):
            text = "%s: the checkpoint of version %d has %d of %d parts and is skipped"
            _log.warning(text, store.root, checkpoint_version, parts, count)


# ---------------------------------------------------------------- refusals


def _require_table(store: ObjectStore, listing: Listing) -> int:
    """The newest version in the listing. Raises TableNotFoundError if there is no table, and LogFileNotFoundError if only a part
    of a checkpoint remains."""
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


def _version_not_found_error(store: ObjectStore, version: int) -> VersionNotFoundError:
    """The error for a version that cannot be rebuilt. Lists the log again, because a listing may start after the oldest one."""
    earliest, newest = available_versions(store)
    return VersionNotFoundError(
        f"Version {version} of the table at {store.root} is not available. Available versions: [{earliest}, {newest}].",
        version=version,
        earliest=earliest,
        latest=newest,
    )


def _no_start_error(store: ObjectStore, listing: Listing) -> LogFileNotFoundError:
    """The error for a log without a start: neither commit 0 nor a checkpoint that can be used."""
    oldest = min(listing.commits, default=None)
    commits_text = "there is no commit" if oldest is None else f"the oldest commit is {oldest}"
    return LogFileNotFoundError(
        f"The table at {store.root} cannot be rebuilt: {commits_text}, {_checkpoints_text(listing)}, and commit 0 is missing. "
        f"Restore the missing files of {LOG_DIRECTORY}.",
        error_class="DELTA_TRUNCATED_TRANSACTION_LOG",
        oldest_commit=oldest,
    )


def _checkpoints_text(listing: Listing) -> str:
    """The part of an error message that says why no checkpoint can be used."""
    complete = sorted({checkpoint.version for checkpoint in listing.checkpoints if not checkpoint.has_empty_file})
    if not complete:
        return "there is no complete checkpoint"
    if listing.earliest() is not None:
        return "no checkpoint before the version can be read"
    newest_versions = ", ".join(map(str, complete[-_NAMED_CHECKPOINTS:]))
    return f"the commits that follow the checkpoints (of version {newest_versions}) are missing"


def _check_contiguous(store: ObjectStore, listing: Listing, start: int, commits: tuple[LogFile, ...], version: int) -> None:
    """Check that commits start+1 to version exist, and the commit of `version` even if the checkpoint covers it.

    start: the checkpoint's version; -1 without a checkpoint. commits: the existing commits after it, ascending. Raises
    LogFileNotFoundError, VersionsNotContiguousError, VersionNotFoundError.
    """
    if start == -1 and (not commits or commits[0].version != 0):
        raise _no_start_error(store, listing)
    previous = start
    for commit in commits:
        if commit.version != previous + 1:
            raise VersionsNotContiguousError(
                f"Versions ({previous}, {commit.version}) of the table at {store.root} are not contiguous: commit {previous + 1} "
                f"is missing. Restore the missing files of {LOG_DIRECTORY}, or read a version before {previous + 1}.",
                before=previous,
                after=commit.version,
            )
        previous = commit.version
    if version not in listing.commits:  # a checkpoint covers the version, but its commit is deleted
        whole_listing = listing if listing.first_listed == 0 else list_log(store, 0)
        earliest = whole_listing.earliest()
        if earliest is not None and version < earliest:
            raise _version_not_found_error(store, version)
        raise LogFileNotFoundError(
            f"Commit {version} of the table at {store.root} is missing from {LOG_DIRECTORY}, so the version cannot be read. "
            "Restore the file.",
            version=version,
        )


def _check_compacted(store: ObjectStore, listing: Listing, newest: int) -> None:
    """Raise LogFileNotFoundError if a compaction covers versions after `newest`, the newest commit. Then commits were deleted,
    and the compaction would hide the commits that are written in their place."""
    compaction_beyond = next((file for file in listing.compactions if file.end_version > newest), None)
    if compaction_beyond is not None:
        raise LogFileNotFoundError(
            f"Commit {newest + 1} of the table at {store.root} is missing from {LOG_DIRECTORY}, but {compaction_beyond.path} "
            f"contains it: the commits after {newest} existed and are deleted. Restore them; or, to give them up, delete "
            f"{compaction_beyond.path} too.",
            version=newest + 1,
            path=compaction_beyond.path,
        )
