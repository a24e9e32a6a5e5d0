"""How a cache knows that a file still has the content that it read: by the listed attributes of the file, or by the content
itself.

    is_settled(info)                 # other content under this name would be listed with another etag, FileId or time
    has_change_times(infos)          # the file system of these local files records when each was changed
    digest_of(store, infos)          # if it does not: a hash of their content

Names, sizes and modification times are not enough. Archives, image layers and deployments set the same time for every file, and
two releases of a table easily have log files of the same names and sizes. For a local file, the time of its last change (ctime)
and its inode distinguish them, because no program can choose these. Some file systems have neither: images that are built the
same way number their files the same way, and network mounts often derive ctime from the modification time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from delta_py.storage.store import ObjectInfo, ObjectStore

_SETTLED_MS = 60_000
"""After this time a new write gets a later time: no clock of a file system or store is coarser, or differs more from this
machine's clock."""

_FIRST_TIME_MS = 1_000_000_000_000  # in 2001: smaller numbers are not real times
_PIECE_BYTES = 1 << 20


def is_settled(info: ObjectInfo) -> bool:
    """Whether the listing would show that the content changed under the same name: because there is an etag, or because all
    times are at least a minute ago.
    """
    if info.etag is not None:
        return True
    latest_ms = time.time() * 1000 - _SETTLED_MS
    changed_ms = info.modification_time_ms if info.file_id is None else info.file_id.change_time_ns // 1_000_000
    return _FIRST_TIME_MS <= info.modification_time_ms <= latest_ms and changed_ms <= latest_ms


def has_change_times(infos: Sequence[ObjectInfo]) -> bool:
    """Whether the file system of these files, which are in one directory, records the time of the last change by itself. This is
    so if a file was changed after its content was written, for example when it got its name, and if not all files were changed at
    the same moment, for example when the file system was mounted."""
    ids = [info.file_id for info in infos]
    changes = {file_id.change_time_ns for file_id in ids if file_id is not None}
    if None in ids or (len(infos) > 1 and len(changes) == 1):
        return False
    return any(i.file_id is not None and i.file_id.change_time_ns // 1_000_000 > i.modification_time_ms for i in infos)


def digest_of(store: ObjectStore, infos: Sequence[ObjectInfo]) -> bytes:
    """A hash of the content of all files. Raises as ObjectStore.open_input and its file."""
    digest = hashlib.sha256()
    for info in infos:
        with store.open_input(info.path, info.size_bytes) as file:
            digest.update(f"{info.path}\n{file.size()}\n".encode())
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.digest()
