"""The quarantine of a table: VACUUM moves files to it, and they can be restored until a later VACUUM deletes them.

    quarantine = Quarantine(store, now_ms)
    quarantine.add("day=2024-05-01/part-1.parquet")   # -> _pydelta_quarantine/001714521600000-<id>/day=2024-05-01/part-1.parquet
    restore_quarantined(store)                          # moves all of them back to their original paths

The name of a quarantined file tells its original path and when it was moved, so no other record exists. VACUUM and readers of all
engines skip directories that begin with `_`. A file is at its original path, in quarantine, or for a moment at both. A process
that dies loses no file, and the next run of either operation finishes the work.
Protocol: Data Files.
"""

from __future__ import annotations

import contextlib
import logging
import uuid

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import StorageError
from delta_py.progress import progress
from delta_py.snapshot import Snapshot
from delta_py.storage.copying import move_object
from delta_py.storage.listing import listed_objects
from delta_py.storage.parallel_files import for_each_file
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.vacuum_paths import HiddenNames, Paths

QUARANTINE_DIRECTORY = "_pydelta_quarantine"

# path: the original path, below the table's root. size: bytes. quarantined: ms since 1970. held_at: the current path.
QUARANTINED_SCHEMA = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("quarantined", pa.int64()), ("held_at", pa.string())]
)

# restored: whether the file is at its original path again; false if another file is at that path, or the file was deleted
# during the run.
RESTORED_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("quarantined", pa.int64()), ("restored", pa.bool_())])

# The beginning of the path of a file in quarantine: the directory of one run, with its time in ms and a random id.
_RUN_PREFIX = rf"^{QUARANTINE_DIRECTORY}/[0-9]{{15}}-[0-9a-f]{{32}}/"
_UNFINISHED = r"\.[0-9a-f]{32}\.part$"  # an unfinished copy of a process that died

_log = logging.getLogger("delta_py")


class Quarantine:
    """The directory to which one run of VACUUM moves files."""

    def __init__(self, store: ObjectStore, now_ms: int) -> None:
        self._store, self._directory = store, f"{QUARANTINE_DIRECTORY}/{now_ms:015}-{uuid.uuid4().hex}"

    def add(self, path: str) -> None:
        """Move a file to quarantine. A missing file is not an error. Raises OSError, StorageError; then the file may be at its
        path, in quarantine, or at both.
        """
        with contextlib.suppress(FileNotFoundError):
            move_object(self._store, path, f"{self._directory}/{path}")


def are_quarantined(paths: Paths) -> Paths:
    """Whether each path is that of a file in quarantine."""
    return pc.match_substring_regex(paths, _RUN_PREFIX)


def original_paths(paths: Paths) -> Paths:
    """The original paths of quarantined files; other paths are returned unchanged."""
    return pc.replace_substring_regex(paths, _RUN_PREFIX, "")


def list_quarantine(store: ObjectStore) -> pa.Table:
    """List the files in quarantine: QUARANTINED_SCHEMA, the newest first. Files whose names do not tell an original path are left
    out, with a warning. Raises OSError, StorageError.
    """
    listing = listed_objects(store, QUARANTINE_DIRECTORY)
    listing = listing.filter(pc.invert(pc.match_substring_regex(listing["path"], _UNFINISHED)))
    is_ours = are_quarantined(listing["path"])
    if unknown_count := listing.num_rows - (pc.sum(is_ours).as_py() or 0):
        example = listing["path"].filter(pc.invert(is_ours))[0].as_py()
        _log.warning("%s: %d files of the quarantine are not VACUUM's, such as %r", store.root, unknown_count, example)
    listing = listing.filter(is_ours)
    quarantined_ms = pc.replace_substring_regex(listing["path"], rf"(?s)^{QUARANTINE_DIRECTORY}/0*([0-9]+)-.*", r"\1").cast(
        pa.int64()
    )
    columns = [original_paths(listing["path"]), listing["size"], quarantined_ms, listing["path"]]
    quarantined = pa.table(columns, QUARANTINED_SCHEMA)
    return quarantined.sort_by([("quarantined", "descending"), ("held_at", "ascending")])


@progress("RESTORE QUARANTINED", "files")
def restore_quarantined(store: ObjectStore, *, dry_run: bool = False) -> pa.Table:
    """Move all quarantined files back to their original paths, unless another file is there; returns RESTORED_SCHEMA, by path.

    If the file at the original path has the same size in bytes, it is the file itself, which an earlier run restored, or a copy
    of it. If the size differs, both that file and the quarantined one stay as they are. dry_run: change nothing, only report.
    Raises TableNotFoundError if there is no table; StorageError if some files could not be restored, after all others are.
    """
    hidden = HiddenNames.of(Snapshot.load(store).config)
    quarantined = list_quarantine(store)
    quarantined = quarantined.filter(pc.invert(hidden.are_hidden(quarantined["path"])))  # VACUUM moves no hidden files
    unrestored_paths: set[str] = set()
    if not dry_run:
        rows = {row["held_at"]: row for row in quarantined.to_pylist()}

        def bring_back(held_at: str) -> None:
            """Restore one file, or note that it was not restored."""
            if not _move_back(store, held_at, rows[held_at]["path"], rows[held_at]["size"]):
                unrestored_paths.add(held_at)

        why = "could not be brought back from quarantine:"
        errors = for_each_file(store, quarantined["held_at"], bring_back, why)
        if errors:
            path, error = next(iter(errors.items()))
            raise StorageError(
                f"{len(errors)} of the {quarantined.num_rows} files in quarantine of the table at {store.root} could not be "
                f"brought back, such as {path}: {error}. None is lost: each is in quarantine or at its place. Run it again."
            ) from error
    restored = pc.invert(pc.is_in(quarantined["held_at"], pa.array(unrestored_paths, pa.string())))
    result = pa.table([quarantined["path"], quarantined["size"], quarantined["quarantined"], restored], RESTORED_SCHEMA)
    return result.sort_by([("path", "ascending"), ("quarantined", "descending")])


def _move_back(store: ObjectStore, held_at: str, original_path: str, size_bytes: int) -> bool:
    """Move a quarantined file to its original path. Returns whether it is there now: False if another file is at that path, or if
    the quarantined file was deleted. held_at: its path in quarantine."""
    try:
        move_object(store, held_at, original_path)
    except FileNotFoundError:
        return _size_at(store, original_path) == size_bytes  # another process has restored it, or VACUUM has deleted it
    except FileExistsError:
        if _size_at(store, original_path) != size_bytes:
            _log.warning("%s: another file is at %s, so %s stays in quarantine", store.root, original_path, held_at)
            return False
        store.delete(held_at)
    return True


def _size_at(store: ObjectStore, path: str) -> int | None:
    """The size of a file in bytes; None if there is no file."""
    directory, _, name = path.rpartition("/")
    info = next(store.list_from(directory, name), None)
    return info.size_bytes if info is not None and info.path == path else None
