"""Notes of shallow clones: what tells VACUUM of a table that another one reads its files, by small files in
`_delta_log/_pydelta_clones`.

    note = leave_note(source_store, clone_store.root, version=12, after=-1)    # before the clone is committed
    for note in read_notes(source_store): ...

A note says where the clone lies. It is a hint of where to look: what the clone needs is asked of the clone's own log
(commands/vacuum_clones.py). It does not end by itself. Other engines pass over the directory.

Anybody who may write beside the table may leave one, so it is looked at as such: it is read only if it is small, and it counts
only if it leads to where the table itself lies, this machine's directories or the same account of the same kind of store.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from delta_py.errors import DeltaError, StorageError
from delta_py.protocol.json_text import parse_json
from delta_py.protocol.paths import LOG_DIRECTORY
from delta_py.storage.addresses import in_reach
from delta_py.storage.store import ObjectInfo, ObjectStore

CLONE_DIRECTORY = f"{LOG_DIRECTORY}/_pydelta_clones"
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


def leave_note(store: ObjectStore, clone: str, version: int, after: int) -> str | None:
    """Tell the VACUUM of the table of a clone that is about to be made of a version; returns the note's path.

    after: the version that the clone has before, -1 for none. None where none is written, as the clone lies where VACUUM would
    not look, or this user may not write there. A warning says so; the clone is as good as with it until VACUUM runs.
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
