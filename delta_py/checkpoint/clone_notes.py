"""Notes of shallow clones: small files in `_delta_log/_pydelta_clones` of a table. They tell VACUUM that another table reads the
table's files.

    with leaving_clone_notes(clone_store, -1, source_store, 12, paths): ...    # the commit of the clone
    for note in read_notes(source_store): ...

A note holds the location of the clone. It is only a hint: VACUUM reads the clone's own log to see which files the clone needs
(vacuum/vacuum_clones.py). A note does not expire. VACUUM deletes it when the clone reads none of the table's files any more. So
a clone leaves a note in each table that contains its files, whenever it gets such files again or gets them from another clone.
Other engines ignore the directory.

Anybody with write access next to the table can leave a note, so a note is not trusted. It is read only if it is small. It counts
only if its location is where the table itself may be: in this machine's directories, or in the same account of the same kind of
store.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from delta_py.errors import CommitOutcomeUnknownError, DeltaError, StorageError
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.paths import CLONE_DIRECTORY, LOG_DIRECTORY, is_absolute
from delta_py.storage.addresses import can_reach
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.json_text import parse_json

_MOST_BYTES = 16_384  # a longer file is not read as a note

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class CloneNote:
    """The content of a note. path: of the note. written_ms: the note's modification time in the store, ms since 1970. clone: the
    root of the clone. source: the root of the table that has the note, as the clone's writer named it. after: the version that
    the clone had before the commit that refers to the table's files; -1 if the clone was created by it."""

    path: str
    written_ms: int
    clone: str
    source: str
    after: int


@dataclass(frozen=True, slots=True)
class UnreadableNote:
    """A note that does not name a clone, or names a clone that must not be read."""

    path: str
    written_ms: int
    reason: str


@contextmanager
def leaving_clone_notes(
    clone: ObjectStore, after: int, source: ObjectStore | None, version: int, paths: Iterable[str]
) -> Iterator[None]:
    """Leave notes in other tables, then let the body commit a clone that refers to their files. Delete the notes if that fails.

    after: the version that the clone has before the commit, -1 if none. source: the table that is cloned, None if none is.
    version: the version, of the source or of the clone itself, whose files the clone gets. paths: of the files; paths in the
    clone's own directory do not count.
    """
    tables = () if source is None else (source,)
    # Pairs of a table and the path of its note, None if no note could be written.
    notes = [
        (table, leave_note(table, clone.root, version, after)) for table in (*tables, *_tables_with_files(clone, paths, tables))
    ]
    try:
        yield
    except CommitOutcomeUnknownError:  # the commit may exist, so the notes must remain
        raise
    except (DeltaError, OSError):
        for table, note in notes:  # nothing was committed, so no clone refers to the files
            delete_notes(table, () if note is None else (note,))
        raise


def _tables_with_files(clone: ObjectStore, paths: Iterable[str], known_tables: Iterable[ObjectStore]) -> Iterator[ObjectStore]:
    """The tables whose directories contain files of the clone, except the clone itself and the known tables.

    paths: of the clone's files; only absolute ones count, because the others are in the clone's own directory. A directory that
    cannot be read is left out, with a warning.
    """
    roots, checked_directories = [table.root for table in (clone, *known_tables)], set[str]()
    for directory in sorted({path.rpartition("/")[0] for path in paths if is_absolute(path)}):
        # Go up from the files' directory until a table's root is reached.
        while not _is_within(directory, roots) and directory not in checked_directories and can_reach(clone.root, directory):
            checked_directories.add(directory)
            try:
                table = open_store(directory, clone.options)
                is_table = next(table.list_from(LOG_DIRECTORY), None) is not None
            except (DeltaError, OSError) as error:
                _log.warning("%s: the table of the files in %s could not be determined: %s", clone.root, directory, error)
                break
            if is_table:
                roots.append(directory)
                yield table
            directory = directory.rpartition("/")[0]


def _is_within(directory: str, roots: Iterable[str]) -> bool:
    return any(f"{directory}/".startswith(f"{root}/") for root in roots)


def leave_note(store: ObjectStore, clone_root: str, version: int, after: int) -> str | None:
    """Tell the table's VACUUM about a clone that is going to refer to the table's files. Returns the note's path.

    clone_root: the root of the clone. version, after: as in `leaving_clone_notes`. Returns None, and logs a warning, if no note
    is written: VACUUM would not read the clone's location, or this user may not write here. The clone works without a note until
    VACUUM runs.
    """
    path = f"{CLONE_DIRECTORY}/{version:020}-{uuid.uuid4().hex}.json"
    if not can_reach(store.root, clone_root):
        _warn_of_missing_note(store, clone_root, "it lies in another kind of store, or in another account")
        return None
    now_ms = time.time_ns() // 1_000_000
    text = {"clone": clone_root, "source": store.root, "version": version, "after": after, "clonedAt": now_ms}
    try:
        store.put(path, json.dumps(text).encode())
    except StorageError as error:
        _warn_of_missing_note(store, clone_root, error.message)
        return None
    except OSError as error:  # the note may have been written nevertheless
        _warn_of_missing_note(store, clone_root, str(error))
    return path


def _warn_of_missing_note(store: ObjectStore, clone_root: str, reason: str) -> None:
    """Log that a clone may lose files, because its note is missing. store: of the table whose files it reads."""
    subject = "VACUUM of this table may not know of the shallow clone at"
    _log.warning("%s: %s %s, and then deletes files that it reads: %s", store.root, subject, clone_root, reason)


def delete_notes(store: ObjectStore, paths: Iterable[str]) -> None:
    """Delete notes. A failure is only logged, because VACUUM reads the notes again later."""
    for path in paths:
        try:
            store.delete(path)
        except FileNotFoundError:
            continue
        except (OSError, StorageError) as error:
            _log.warning("%s: the note %s of a clone could not be deleted: %s", store.root, path, error)
            return  # leave the other notes to VACUUM, too


def list_notes(store: ObjectStore) -> list[ObjectInfo]:
    """Files that are or may be notes, without files that are still being written. Raises OSError, StorageError."""
    return [info for info in store.list_from(CLONE_DIRECTORY) if not info.path.rpartition("/")[2].startswith(".")]


def read_note(store: ObjectStore, info: ObjectInfo) -> CloneNote | UnreadableNote | None:
    """Read one note. info: the note as list_notes returns it. Returns None if it was deleted in the meantime."""
    try:
        text = store.read_range(info.path, 0, _MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            return UnreadableNote(info.path, info.modification_time_ms, "it is too long for a note")
        fields = parse_json(text)
        clone, source, after = fields["clone"], fields["source"], fields["after"]
        if not (isinstance(clone, str) and isinstance(source, str) and type(after) is int):
            raise TypeError("its fields have other types")
        if not can_reach(store.root, clone):
            return UnreadableNote(info.path, info.modification_time_ms, "it names a location that VACUUM must not read from here")
    except FileNotFoundError:
        return None
    except (OSError, DeltaError, ValueError, TypeError, KeyError) as error:
        return UnreadableNote(info.path, info.modification_time_ms, f"it cannot be read: {type(error).__name__}")
    return CloneNote(path=info.path, written_ms=info.modification_time_ms, clone=clone, source=source, after=after)
