"""The quarantine of a table: files that VACUUM has moved aside, and that can be brought back until it deletes them.

    aside = Quarantine(store, now_ms)
    aside.take("day=2024-05-01/part-1.parquet")        # -> _pydelta_quarantine/001714521600000-<id>/day=2024-05-01/part-1.parquet
    restore_quarantined(store)                          # all of them are at their places again

The name of a file in quarantine says where it was and since when it is there, so nothing else is kept. VACUUM and readers of all
engines pass over directories that begin with `_`. A file is at its place, in quarantine, or for a moment at both: whoever
dies loses none, and the next run of either does the rest.
Protocol: Data Files.
"""

from __future__ import annotations

import contextlib
import logging
import uuid

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import StorageError
from delta_py.snapshot import Snapshot
from delta_py.storage.copying import move_object
from delta_py.storage.listing import listed_objects
from delta_py.storage.parallel_files import for_each_file
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.vacuum_paths import HiddenNames, Paths

QUARANTINE_DIRECTORY = "_pydelta_quarantine"

# path: where the file was, below the table's root. size: bytes. quarantined: ms since 1970. held_at: where it is now.
QUARANTINED_SCHEMA = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("quarantined", pa.int64()), ("held_at", pa.string())]
)

# restored: whether it is at its place again; false where another file is there, or the file has gone meanwhile.
RESTORED_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("quarantined", pa.int64()), ("restored", pa.bool_())])

_RUN = rf"^{QUARANTINE_DIRECTORY}/[0-9]{{15}}-[0-9a-f]{{32}}/"
_UNFINISHED = r"\.[0-9a-f]{32}\.part$"  # a copy of somebody who died

_log = logging.getLogger("delta_py")


class Quarantine:
    """Where one run of VACUUM moves files to."""

    def __init__(self, store: ObjectStore, now_ms: int) -> None:
        self._store, self._directory = store, f"{QUARANTINE_DIRECTORY}/{now_ms:015}-{uuid.uuid4().hex}"

    def take(self, path: str) -> None:
        """Move a file aside; one that is missing is no error. Raises OSError, StorageError: then it may still be at its place."""
        with contextlib.suppress(FileNotFoundError):
            move_object(self._store, path, f"{self._directory}/{path}")


def are_quarantined(paths: Paths) -> Paths:
    return pc.match_substring_regex(paths, _RUN)


def places_of(paths: Paths) -> Paths:
    """Where files were before they came into quarantine; others' paths as they are."""
    return pc.replace_substring_regex(paths, _RUN, "")


def list_quarantine(store: ObjectStore) -> pa.Table:
    """What is in quarantine: QUARANTINED_SCHEMA, the newest first. Files whose names do not say where they were stay out, with a
    warning. Raises OSError, StorageError."""
    listed = listed_objects(store, QUARANTINE_DIRECTORY)
    listed = listed.filter(pc.invert(pc.match_substring_regex(listed["path"], _UNFINISHED)))
    is_ours = are_quarantined(listed["path"])
    if strange := listed.num_rows - (pc.sum(is_ours).as_py() or 0):
        example = listed["path"].filter(pc.invert(is_ours))[0].as_py()
        _log.warning("%s: %d files of the quarantine are not VACUUM's, such as %r", store.root, strange, example)
    listed = listed.filter(is_ours)
    since = pc.replace_substring_regex(listed["path"], rf"(?s)^{QUARANTINE_DIRECTORY}/0*([0-9]+)-.*", r"\1").cast(pa.int64())
    held = pa.table([places_of(listed["path"]), listed["size"], since, listed["path"]], QUARANTINED_SCHEMA)
    return held.sort_by([("quarantined", "descending"), ("held_at", "ascending")])


def restore_quarantined(store: ObjectStore, *, dry_run: bool = False) -> pa.Table:
    """Bring all files in quarantine back to their places, unless another file is there; returns RESTORED_SCHEMA, by path.

    A file with the same bytes in number at the place is the file itself, which an earlier run has brought back, or a copy of it;
    one with other bytes stays as it is, and so does the one in quarantine. dry_run: change nothing, only tell.
    Raises TableNotFoundError where there is no table; StorageError when some could not be brought back, after all others are.
    """
    hidden = HiddenNames.of(Snapshot.load(store).config)
    held = list_quarantine(store)
    held = held.filter(pc.invert(hidden.hide(held["path"])))  # VACUUM takes none of those
    kept: set[str] = set()
    if not dry_run:
        rows = {row["held_at"]: row for row in held.to_pylist()}

        def bring_back(held_at: str) -> None:
            if not _bring_back(store, held_at, rows[held_at]["path"], rows[held_at]["size"]):
                kept.add(held_at)

        why = "could not be brought back from quarantine:"
        failed = for_each_file(store, held["held_at"], bring_back, "bringing back", why)
        if failed:
            path, error = next(iter(failed.items()))
            raise StorageError(
                f"{len(failed)} of the {held.num_rows} files in quarantine of the table at {store.root} could not be brought "
                f"back, such as {path}: {error}. None is lost: each is in quarantine or at its place. Run it again."
            ) from error
    restored = pc.invert(pc.is_in(held["held_at"], pa.array(kept, pa.string())))
    found = pa.table([held["path"], held["size"], held["quarantined"], restored], RESTORED_SCHEMA)
    return found.sort_by([("path", "ascending"), ("quarantined", "descending")])


def _bring_back(store: ObjectStore, held_at: str, place: str, size_bytes: int) -> bool:
    """False where another file is at the place, or none, as the file has gone from quarantine meanwhile."""
    try:
        move_object(store, held_at, place)
    except FileNotFoundError:
        return _size_at(store, place) == size_bytes  # somebody else has brought it back, or VACUUM has deleted it
    except FileExistsError:
        if _size_at(store, place) != size_bytes:
            _log.warning("%s: another file is at %s, so %s stays in quarantine", store.root, place, held_at)
            return False
        store.delete(held_at)
    return True


def _size_at(store: ObjectStore, path: str) -> int | None:
    directory, _, name = path.rpartition("/")
    there = next(store.list_from(directory, name), None)
    return there.size_bytes if there is not None and there.path == path else None
