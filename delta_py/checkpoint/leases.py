"""Leases: what readers that are at work tell VACUUM, by small files in `_delta_log/_pydelta_leases`.

    with HeldLease(Lease(store, version=12)):             # renewed by a thread until the end
        ...
    leased = Leases.read(store, now_ms).version           # 12: files that commits after 12 removed are needed

A lease says that somebody reads a version, or goes on from it: VACUUM keeps what the commits after it removed, and the change
data that they wrote. It ends when its file is deleted, and otherwise a certain time after the file was last written: a reader
that is killed renews it no more. Version and time are in the file's name, and when it was written is what the store says, so a
listing tells all, and no clocks are compared but the store's and VACUUM's. What is in the file is for people. A name that cannot
be read may be of any version: it counts as one of version 0, for as long as a lease can last at most. Other engines pass over the
directory.

A batch read holds a lease from its planning on, and its tasks renew it. A stream holds one in the process that plans its batches.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from typing import Self

from delta_py.errors import InvalidOptionError, StorageError
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.paths import LEASE_DIRECTORY
from delta_py.storage.store import ObjectInfo, ObjectStore

DEFAULT_SECONDS = 3_600
MOST_SECONDS = 86_400
LEAST_SECONDS = 3

_NAME = re.compile(r"([0-9]{20})-([0-9]{1,6})s-[0-9a-f]{32}\.lease", re.ASCII)
_RENEWALS = 3  # in the time of a lease: one may fail

_log = logging.getLogger("delta_py")


# ---------------------------------------------------------------- what there is


@dataclass(frozen=True, slots=True)
class Leases:
    """live: paths and versions of the leases that hold. expired: paths of files that nobody needs any more."""

    live: dict[str, int]
    expired: tuple[str, ...]

    @classmethod
    def read(cls, store: ObjectStore, now_ms: int) -> Leases:
        """Those of a table, by one listing. now_ms: since 1970. Raises OSError, StorageError."""
        live: dict[str, int] = {}
        expired: list[str] = []
        for info in store.list_from(LEASE_DIRECTORY):
            version, seconds = _read_name(info)
            if info.modification_time_ms + seconds * 1000 <= now_ms:
                expired.append(info.path)
            elif not _is_unfinished(info):
                live[info.path] = version
        return cls(live, tuple(expired))

    @property
    def version(self) -> int | None:
        """The earliest one of those that hold."""
        return min(self.live.values(), default=None)


def _read_name(info: ObjectInfo) -> tuple[int, int]:
    """Version and seconds."""
    name = _NAME.fullmatch(info.path.rpartition("/")[2])
    return (0, MOST_SECONDS) if name is None else (int(name[1]), min(int(name[2]), MOST_SECONDS))


def _is_unfinished(info: ObjectInfo) -> bool:
    """A local file that does not have its name yet: whoever writes it does not rely on it."""
    return info.path.rpartition("/")[2].startswith(".")


def delete_expired(store: ObjectStore, leases: Leases, now_ms: int) -> None:
    """Those that have ended still: a reader that could not renew one for long may have done so since. That this fails is logged:
    they mean nothing."""
    if not leases.expired:
        return
    try:
        for path in Leases.read(store, now_ms).expired:
            store.delete(path)
    except (OSError, StorageError) as error:
        _log.warning("%s: leases that have ended, such as %s, could not be deleted: %s", store.root, leases.expired[0], error)


# ---------------------------------------------------------------- one lease


def _version_of_all(store: ObjectStore, version: int) -> int:
    """The version as VACUUM knows it, which does not know those that a transaction over tables has made itself: what that reads
    beside its own is of the version with which it began."""
    coordinated = coordination_of(store)
    tail = None if coordinated is None or coordinated.transaction is None else coordinated.last_tail
    return version if tail is None or tail.base is None else min(version, tail.base)


@dataclass(frozen=True, slots=True)
class Lease:
    """A value that travels: whoever has it may renew the lease. began_ms: when it was made, ms since 1970."""

    store: ObjectStore
    version: int
    seconds: int = DEFAULT_SECONDS
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def __post_init__(self) -> None:
        """Raises InvalidOptionError for a time in which it could not be renewed, or that is longer than a day."""
        if not LEAST_SECONDS <= self.seconds <= MOST_SECONDS:
            raise InvalidOptionError(
                f"A lease of {self.seconds} seconds makes no sense: it can be of {LEAST_SECONDS} to {MOST_SECONDS} seconds, and "
                "its reader renews it.",
                option="readLease",
            )

    @property
    def path(self) -> str:
        return f"{LEASE_DIRECTORY}/{_version_of_all(self.store, self.version):020}-{self.seconds}s-{self.id}.lease"

    @property
    def pause_seconds(self) -> float:
        """Between two renewals."""
        return self.seconds / _RENEWALS

    def put(self) -> bool:
        """Write its file, for the first time or once more, and say whether that is done. A failure is logged: reading goes on."""
        now_ms = time.time_ns() // 1_000_000
        text = {
            "version": self.version,
            "beganAt": self.began_ms,
            "renewedAt": now_ms,
            "expiresAt": now_ms + self.seconds * 1000,
            "holder": f"{socket.gethostname()}:{os.getpid()}",
        }
        try:
            self.store.put(self.path, json.dumps(text).encode())
        except (OSError, StorageError) as error:
            _log.warning(
                "%s: the lease that keeps VACUUM from files of version %d could not be written. Reading goes on without it: %s",
                self.store.root,
                self.version,
                error,
            )
            return False
        return True

    def end(self) -> None:
        """Delete its file. A failure is logged: it ends by itself."""
        try:
            self.store.delete(self.path)
        except (OSError, StorageError) as error:
            _log.warning("%s: %s could not be deleted, and ends by itself: %s", self.store.root, self.path, error)


class HeldLease:
    """A lease while one reader is at work, renewed by a thread.

    is_shared: others renew it too, and it was written when it was made; so it is not deleted at the end. Where it cannot be
    written, as the reader has no right to, that is tried again when it would be renewed.
    """

    def __init__(self, lease: Lease, *, is_shared: bool = False) -> None:
        self._lease, self._is_shared = lease, is_shared
        self._version = lease.version
        self._lock = threading.Lock()  # of the two above, and of writing
        self._ended = threading.Event()
        due_ms = lease.began_ms + lease.pause_seconds * 1000 - time.time_ns() // 1_000_000
        wait_seconds = max(0.0, due_ms / 1000) if is_shared else lease.pause_seconds
        self._is_written = is_shared or lease.put()
        threading.Thread(target=self._keep, args=(wait_seconds,), name="delta_py-lease", daemon=True).start()

    def move(self, version: int) -> None:
        """The reader has come to a version. A later one is written when the lease is renewed, for the one before keeps more; an
        earlier one at once."""
        with self._lock:
            self._version = version
            if version < self._lease.version and not self._ended.is_set():
                self._write()

    def release(self) -> None:
        with self._lock:
            already = self._ended.is_set()
            self._ended.set()
        if self._is_written and not self._is_shared and not already:
            self._lease.end()

    def _keep(self, wait_seconds: float) -> None:
        while not self._ended.wait(wait_seconds):
            wait_seconds = self._lease.pause_seconds
            with self._lock:
                if not self._ended.is_set():
                    self._write()

    def _write(self) -> None:
        before, moved = self._lease, replace(self._lease, version=self._version)
        if moved.put():
            self._lease, was_written, self._is_written = moved, self._is_written, True
            if was_written and before.path != moved.path:
                before.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
