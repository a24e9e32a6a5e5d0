"""The sources from which VACUUM takes candidates: the table's directories, an inventory of them, or the commits of its log.

    for batch in list_files(store): ...                # all existing files
    for batch in read_inventory(store, rows): ...      # files of a listing that the caller made
    removed = RemovedFiles.begin(snapshot, cutoff_ms)
    for batch in removed.batches(): ...                # files that old commits removed; reads only the log
    for files in removed_since(store, 12, 15): ...     # files that a reader of version 12 needs in addition to version 15

The first three give batches of FOUND_SCHEMA. They do not check whether a version references a file.
Protocol: Add File and Remove File; Add CDC File.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.tombstones import TOMBSTONE_SCHEMA, tombstones_of_commit
from delta_py.errors import InvalidOptionError, LogFileNotFoundError, UnsupportedOperationError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import newest_commit_at
from delta_py.log.last_vacuum import read_last_vacuum
from delta_py.log.segment import LogFile, list_commits, list_log
from delta_py.protocol.actions import AddCDCFile
from delta_py.protocol.paths import are_plain
from delta_py.row_rules.plain_layout import plain_batches
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import root_pattern
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.arrow_layouts import plain_schema
from delta_py.vacuum.vacuum_paths import is_text, vector_files

UNKNOWN = "no version that the log knows of has it"
REMOVED = "it was removed"
CHANGE_DATA = "it is change data"
QUARANTINED = "it was in quarantine long enough"

# path: below the table's root. size: bytes. modification_time: ms since 1970; from the log alone, when the file was removed. Both
# are null if unknown. reason: one of the above.
FOUND_SCHEMA = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("modification_time", pa.int64()), ("reason", pa.string())]
)

_log = logging.getLogger("delta_py")

_INVENTORY = "path string, length bigint, isDir boolean, modificationTime bigint"
_LISTED_AT_ONCE = 10_000  # files in a batch of candidates


# ---------------------------------------------------------------- by listing


def list_files(store: ObjectStore) -> Iterator[pa.RecordBatch]:
    """All files below the table's root whose names are valid text (no log can name others); reason: UNKNOWN."""
    for infos in _in_groups(info for info in store.list_recursive("") if is_text(info.path)):
        sizes, times = [info.size_bytes for info in infos], [info.modification_time_ms for info in infos]
        paths = pa.array([info.path for info in infos], pa.string())
        yield _found_batch(paths, pa.array(sizes, pa.int64()), pa.array(times, pa.int64()), UNKNOWN)


def _in_groups(infos: Iterable[ObjectInfo]) -> Iterator[Sequence[ObjectInfo]]:
    """Groups of _LISTED_AT_ONCE files; the last one may be smaller, or empty."""
    group: list[ObjectInfo] = []
    for info in infos:
        group.append(info)
        if len(group) == _LISTED_AT_ONCE:
            yield group
            group = []
    yield group


def _found_batch(path: pa.Array, size: pa.Array | None, time: pa.Array | None, reason: str) -> pa.RecordBatch:
    """FOUND_SCHEMA. size, time: None if they are unknown."""
    numbers = [pa.nulls(len(path), pa.int64()) if column is None else column for column in (size, time)]
    return pa.RecordBatch.from_arrays([path, *numbers, pa.repeat(reason, len(path))], schema=FOUND_SCHEMA)


# ---------------------------------------------------------------- by an inventory


def check_inventory(schema: pa.Schema) -> None:
    """Check the columns of an inventory. Additional columns and different Arrow layouts are accepted. Raises InvalidOptionError
    (DELTA_INVALID_INVENTORY_SCHEMA)."""
    schema = plain_schema(schema)
    kinds = {name: schema.field(name).type for name in _INVENTORY_KINDS if len(schema.get_all_field_indices(name)) == 1}
    if not all(name in kinds and is_kind(kinds[name]) for name, is_kind in _INVENTORY_KINDS.items()):
        raise InvalidOptionError(
            f"The inventory has the columns {', '.join(f'{field.name} {field.type}' for field in schema)}. VACUUM needs "
            f"{_INVENTORY}: the whole path of each file, its bytes, and when it was written, in ms since 1970. Nothing was "
            "deleted.",
            error_class="DELTA_INVALID_INVENTORY_SCHEMA",
            sql_state="42000",
            option="inventory",
        )


# The columns of an inventory, and the check of each column's type.
_INVENTORY_KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "path": pa.types.is_string,
    "length": pa.types.is_signed_integer,
    "isDir": pa.types.is_boolean,
    "modificationTime": pa.types.is_signed_integer,
}


def read_inventory(store: ObjectStore, inventory: Any) -> Iterator[pa.RecordBatch]:
    """Read the files below the table's root from an inventory: an Arrow table, or any object that gives a stream of Arrow
    batches.
    Paths are full paths, with the table's root. A file may come more than once. Raises as check_inventory.
    """
    rows, root = pa.RecordBatchReader.from_stream(inventory), root_pattern(store.root)
    check_inventory(rows.schema)
    row_count = file_count = 0
    for batch in (piece for listed in rows for piece in plain_batches(listed.select([*_INVENTORY_KINDS]))):
        row_count += batch.num_rows
        batch = batch.filter(pc.and_(pc.invert(batch["isDir"]), pc.match_substring_regex(batch["path"], root)))
        columns = (batch["length"].cast(pa.int64()), batch["modificationTime"].cast(pa.int64()))
        path = pc.replace_substring_regex(batch["path"], root, "")
        files = _found_batch(path, *columns, UNKNOWN).filter(are_plain(path))
        file_count += files.num_rows
        yield files
    if file_count < row_count:
        _log.warning(
            "%s: %d of the %d rows of the inventory name no file below the table", store.root, row_count - file_count, row_count
        )


# ---------------------------------------------------------------- by the log


def newest_version_before(snapshot: Snapshot, cutoff_ms: int) -> int | None:
    """The newest version that was committed before the cutoff, up to the snapshot's version; None if the log has no such version.
    Raises CorruptTableError.
    """
    commits = [commit for commit in list_commits(snapshot.store) if commit.version <= snapshot.version]
    # If all commits are too late, this is the first one.
    newest = newest_commit_at(snapshot.store, commits, cutoff_ms - 1, snapshot.config)
    return newest.version if newest.timestamp_ms < cutoff_ms else None


class RemovedFiles:
    """The files that commits before a time removed, and their change data, from the commits that no VACUUM has handled.

    last_read_version: the last version that `batches` has read; None if it has read none. Reading ends at a commit that has a
    file with a removal time at or after the cutoff (from another clock): the next VACUUM handles this commit.
    """

    def __init__(self, store: ObjectStore, commits: Sequence[LogFile], cutoff_ms: int) -> None:
        self._store, self._commits, self._cutoff_ms = store, commits, cutoff_ms
        self.last_read_version: int | None = None

    @classmethod
    def begin(cls, snapshot: Snapshot, cutoff_ms: int) -> RemovedFiles:
        """The files that commits after the last VACUUM removed before the cutoff. Raises UnsupportedOperationError
        (DELTA_CANNOT_VACUUM_LITE) if one of these commits no longer exists."""
        store, last = snapshot.store, newest_version_before(snapshot, cutoff_ms)
        vacuumed_version = read_last_vacuum(store)
        # A record of a version that the table does not have is ignored.
        first = 0 if vacuumed_version is None or vacuumed_version > snapshot.version else vacuumed_version + 1
        if last is None or first > last:
            return cls(store, (), cutoff_ms)
        commits = list_log(store, first, last).commits
        missing_version = next((version for version in range(first, last + 1) if version not in commits), None)
        if missing_version is not None:
            raise _lite_error(store, missing_version, vacuumed_version)
        return cls(store, [commits[version] for version in range(first, last + 1)], cutoff_ms)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """FOUND_SCHEMA; a file may come more than once. Raises CorruptTableError, LogFileNotFoundError."""
        reader = CommitReader(self._store, uses_cache=False)
        for commit in reader.with_read_ahead(self._commits):
            removed, changes = files_of_commit(reader, commit)
            if pc.any(pc.greater_equal(removed["deletion_timestamp"], self._cutoff_ms)).as_py():
                return
            for files, reason in ((removed, REMOVED), (changes, CHANGE_DATA)):
                paths, sizes, times = (files[name].combine_chunks() for name in ("path", "size", "deletion_timestamp"))
                yield _found_batch(paths, sizes, times, reason)
            yield _found_batch(vector_files(removed), None, None, REMOVED)
            self.last_read_version = commit.version


def files_of_commit(reader: CommitReader, commit: LogFile) -> tuple[pa.Table, pa.Table]:
    """The files that a commit removed, and its change data, which no commit removes: TOMBSTONE_SCHEMA. Raises CorruptTableError,
    LogFileNotFoundError.
    """
    removed = pa.Table.from_batches(tombstones_of_commit(reader, commit), TOMBSTONE_SCHEMA)
    changes = [action for action in reader.actions(commit, "cdc") if isinstance(action, AddCDCFile)]
    rows = [{"path": change.path, "size": change.size_bytes} for change in changes]
    return removed, pa.Table.from_pylist(rows, schema=TOMBSTONE_SCHEMA)


def removed_since(store: ObjectStore, version: int, newest: int) -> Iterator[pa.Table]:
    """The files that the commits after a version up to the newest one removed, and their change data: a lease of the version
    retains them. TOMBSTONE_SCHEMA. Raises CorruptTableError, LogFileNotFoundError for a commit that is gone.
    """
    listing = list_log(store, version + 1, newest)
    reader = CommitReader(store, uses_cache=False)
    for number in range(version + 1, newest + 1):
        if number not in listing.commits:
            raise LogFileNotFoundError(
                f"Somebody reads version {version} of the table at {store.root}, as a lease says, and commit {number}, which may "
                "have removed files of it, is not in the log any more.",
                version=number,
            )
        yield from files_of_commit(reader, listing.commits[number])


def _lite_error(store: ObjectStore, missing_version: int, vacuumed_version: int | None) -> UnsupportedOperationError:
    """The error for a VACUUM LITE that would have to read a missing commit. vacuumed_version: that of the last VACUUM, if
    known."""
    progress = (
        "no VACUUM has noted how far it came"
        if vacuumed_version is None
        else f"the last VACUUM came as far as version {vacuumed_version}"
    )
    return UnsupportedOperationError(
        f"VACUUM LITE of the table at {store.root} cannot find all files that may go: {progress}, and commit {missing_version}, "
        "which it would have to read, is not in the log any more. Nothing was deleted. Run a full VACUUM, which lists the "
        "table's directory; LITE goes on from there.",
        error_class="DELTA_CANNOT_VACUUM_LITE",
        sql_state="55000",
        version=missing_version,
    )
