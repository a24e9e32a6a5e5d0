"""Notes of shallow clones: what tells VACUUM of a table that another one reads its files, by small files in
`_delta_log/_pydelta_clones`.

    with noted(clone_store, -1, source_store, 12, paths): ...    # the commit of the clone
    for note in read_notes(source_store): ...

A note says where the clone lies. It is a hint of where to look: what the clone needs is asked of the clone's own log
(vacuum/vacuum_clones.py). It does not end by itself: VACUUM deletes it once the clone reads none of the table's files. So a
clone that gets such files again, or from a clone that had them once, leaves a note with each table in which they lie. Other
engines pass over the directory.

Anybody who may write beside the table may leave one, so it is looked at as such: it is read only if it is small, and it counts
only if it leads to where the table itself lies, this machine's directories or the same account of the same kind of store.
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
from delta_py.storage.addresses import in_reach
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.json_text import parse_json

_MOST_BYTES = 16_384

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class CloneNote:
    """path: of the note. written_ms: when, as the store says. clone: the root of the clone. source: the root of the table, as its
    name was then. after: the version that the clone had before, -1 for none."""

    path: str
    written_ms: int
    clone: str
    source: str
    after: int


@dataclass(frozen=True, slots=True)
class UnreadableNote:
    """One that does not say which clone it is of, or says one that is not to be looked at."""

    path: str
    written_ms: int
    reason: str


@contextmanager
def noted(clone: ObjectStore, after: int, source: ObjectStore | None, version: int, paths: Iterable[str]) -> Iterator[None]:
    """A clone gets files of other tables by the commit within; notes with these tables tell their VACUUM, and go if it fails.

    after: the version that the clone has before, -1 for none. source: the table that is cloned, None where none is. version: the
    one whose files the clone gets, of the source or of itself. paths: of the files; those in its own directory do not count.
    """
    tables = () if source is None else (source,)
    notes = [(table, leave_note(table, clone.root, version, after)) for table in (*tables, *_tables_of(clone, paths, tables))]
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except (DeltaError, OSError):
        for table, note in notes:
            delete_notes(table, () if note is None else (note,))
        raise


def _tables_of(clone: ObjectStore, paths: Iterable[str], known: Iterable[ObjectStore]) -> Iterator[ObjectStore]:
    """The tables in whose directories files lie that have absolute paths, but for the clone and those that are known. What
    cannot be looked at is left out, with a warning."""
    roots, looked_at = [table.root for table in (clone, *known)], set[str]()
    for directory in sorted({path.rpartition("/")[0] for path in paths if is_absolute(path)}):
        while not _is_within(directory, roots) and directory not in looked_at and in_reach(clone.root, directory):
            looked_at.add(directory)
            try:
                table = open_store(directory, clone.options)
                is_table = next(table.list_from(LOG_DIRECTORY), None) is not None
            except (DeltaError, OSError) as error:
                _log.warning("%s: which table has the files in %s was not seen: %s", clone.root, directory, error)
                break
            if is_table:
                roots.append(directory)
                yield table
            directory = directory.rpartition("/")[0]


def _is_within(directory: str, roots: Iterable[str]) -> bool:
    return any(f"{directory}/".startswith(f"{root}/") for root in roots)


def leave_note(store: ObjectStore, clone: str, version: int, after: int) -> str | None:
    """Tell the VACUUM of the table of a clone that is about to have its files; returns the note's path.

    version, after: as of `noted`. None where none is written, as the clone lies where VACUUM would not look, or this user may not
    write there. A warning says so; the clone is as good as with it until VACUUM runs.
    """
    path = f"{CLONE_DIRECTORY}/{version:020}-{uuid.uuid4().hex}.json"
    if not in_reach(store.root, clone):
        _warn(store, clone, "it lies in another kind of store, or in another account")
        return None
    now_ms = time.time_ns() // 1_000_000
    text = {"clone": clone, "source": store.root, "version": version, "after": after, "clonedAt": now_ms}
    try:
        store.put(path, json.dumps(text).encode())
    except StorageError as error:
        _warn(store, clone, error.message)
        return None
    except OSError as error:  # it may be there all the same
        _warn(store, clone, str(error))
    return path


def _warn(store: ObjectStore, clone: str, reason: str) -> None:
    what = "VACUUM of this table may not know of the shallow clone at"
    _log.warning("%s: %s %s, and then deletes files that it reads: %s", store.root, what, clone, reason)


def delete_notes(store: ObjectStore, paths: Iterable[str]) -> None:
    """That this fails is logged: VACUUM looks at them once more."""
    for path in paths:
        try:
            store.delete(path)
        except FileNotFoundError:
            continue
        except (OSError, StorageError) as error:
            _log.warning("%s: the note %s of a clone could not be deleted: %s", store.root, path, error)
            return


def list_notes(store: ObjectStore) -> list[ObjectInfo]:
    """Files that are notes or may be: not those that do not have their names yet. Raises OSError, StorageError."""
    return [info for info in store.list_from(CLONE_DIRECTORY) if not info.path.rpartition("/")[2].startswith(".")]


def read_note(store: ObjectStore, info: ObjectInfo) -> CloneNote | UnreadableNote | None:
    """None for one that has gone meanwhile."""
    try:
        text = store.read_range(info.path, 0, _MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            return UnreadableNote(info.path, info.modification_time_ms, "it is too long for a note")
        found = parse_json(text)
        clone, source, after = found["clone"], found["source"], found["after"]
        if not (isinstance(clone, str) and isinstance(source, str) and type(after) is int):
            raise TypeError("its fields have other types")
        if not in_reach(store.root, clone):
            return UnreadableNote(info.path, info.modification_time_ms, "it names a place that is not looked at from here")
    except FileNotFoundError:
        return None
    except (OSError, DeltaError, ValueError, TypeError, KeyError) as error:
        return UnreadableNote(info.path, info.modification_time_ms, f"it cannot be read: {type(error).__name__}")
    return CloneNote(info.path, info.modification_time_ms, clone, source, after)
