"""Leases: small files in `_delta_log/_pydelta_leases`. With them, active readers tell VACUUM which version they read.

    with HeldLease(Lease(store, version=12)):             # a thread renews it until the end
        ...
    leased = Leases.read(store, now_ms).version           # 12: files that commits after 12 removed are needed

A lease says that somebody reads a version, or continues from it. VACUUM then keeps the files that later commits removed, and the
change data that they wrote. A lease ends when its file is deleted, or a fixed time after the file was last written: a killed
reader no longer renews it. The file name holds the version and that time, and the store knows when the file was written. So one
listing is enough, and the only clocks that are compared are the store's and VACUUM's. The content of the file is for people. A
name that cannot be parsed may belong to any version: it counts as a lease of version 0 that lasts for the longest possible time.
Other engines ignore the directory.

A batch read holds a lease from the start of its planning, and its tasks renew it. A stream holds one in the process that plans
its batches.
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

# The name of a lease file: version, duration in seconds, id.
_FILE_NAME = re.compile(r"([0-9]{20})-([0-9]{1,6})s-[0-9a-f]{32}\.lease", re.ASCII)
_RENEWALS = 3  # how many renewals are due in the time for which a lease lasts, so that one of them may fail

_log = logging.getLogger("delta_py")


# ---------------------------------------------------------------- all leases of a table


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of a table at one time. live: path -> version of the leases that have not ended. expired: the paths of lease
    files whose time is over."""

    live: dict[str, int]
    expired: tuple[str, ...]

    @classmethod
    def read(cls, store: ObjectStore, now_ms: int) -> Leases:
        """Read the leases of a table with one listing. now_ms: since 1970. Raises OSError, StorageError."""
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
        """The earliest version of the live leases, whose files VACUUM must keep; None if there is no live lease."""
        return min(self.live.values(), default=None)


def _read_name(info: ObjectInfo) -> tuple[int, int]:
    """The version and the duration in seconds, from the file's name."""
    name = _FILE_NAME.fullmatch(info.path.rpartition("/")[2])
    return (0, MOST_SECONDS) if name is None else (int(name[1]), min(int(name[2]), MOST_SECONDS))


def _is_unfinished(info: ObjectInfo) -> bool:
    """Whether this is a local file that does not have its final name yet. Its writer does not rely on it yet."""
    return info.path.rpartition("/")[2].startswith(".")


def delete_expired(store: ObjectStore, leases: Leases, now_ms: int) -> None:
    """List the leases again and delete those that are still expired: a reader that could not renew its lease for long may have
    renewed it since. A failure is only logged, because expired leases have no effect."""
    if not leases.expired:
        return
    try:
        for path in Leases.read(store, now_ms).expired:
            store.delete(path)
    except (OSError, StorageError) as error:
        _log.warning("%s: leases that have ended, such as %s, could not be deleted: %s", store.root, leases.expired[0], error)


# ---------------------------------------------------------------- one lease


def _version_for_vacuum(store: ObjectStore, version: int) -> int:
    """The version in the lease of a reader of `version`. It is the same version, unless the reader is in an open multi-table
    transaction.

    Such a transaction may read a version that it wrote itself, which VACUUM does not know yet. Apart from the files that the
    transaction wrote, this version consists of files of the version with which the transaction began. So the lease names that
    one.
    """
    coordinated = coordination_of(store)
    tail = None if coordinated is None or coordinated.transaction is None else coordinated.last_tail
    return version if tail is None or tail.base is None else min(version, tail.base)


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease, as a value that can be sent to other processes. Every process that has it may renew the lease. began_ms: when
    the lease was created, ms since 1970. seconds: how long the lease lasts after it was written."""

    store: ObjectStore
    version: int
    seconds: int = DEFAULT_SECONDS
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def __post_init__(self) -> None:
        """Raises InvalidOptionError if the time is too short to renew the lease, or longer than a day."""
        if not LEAST_SECONDS <= self.seconds <= MOST_SECONDS:
            raise InvalidOptionError(
                f"A lease of {self.seconds} seconds makes no sense: it can last {LEAST_SECONDS} to {MOST_SECONDS} seconds, and "
                "its reader renews it.",
                option="readLease",
            )

    @property
    def path(self) -> str:
        return f"{LEASE_DIRECTORY}/{_version_for_vacuum(self.store, self.version):020}-{self.seconds}s-{self.id}.lease"

    @property
    def pause_seconds(self) -> float:
        """The time between two renewals."""
        return self.seconds / _RENEWALS

    def put(self) -> bool:
        """Write the lease file, for the first time or again. If that fails, log a warning and return False: reading continues."""
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
        """Delete the lease file. A failure is only logged, because the lease ends by itself."""
        try:
            self.store.delete(self.path)
        except (OSError, StorageError) as error:
            _log.warning("%s: %s could not be deleted, and ends by itself: %s", self.store.root, self.path, error)


class HeldLease:
    """The lease of one active reader. A thread renews it.

    is_shared: other processes renew the lease too, and its file was written when the lease was created. So the file is not
    deleted at the end. If the file cannot be written, because the reader has no permission, the thread tries again at the next
    renewal.
    """

    def __init__(self, lease: Lease, *, is_shared: bool = False) -> None:
        self._lease, self._is_shared = lease, is_shared
        self._version = lease.version
        self._lock = threading.Lock()  # guards _lease and _version, and writing
        self._ended = threading.Event()
        # A shared lease was written when it was created, so its first renewal is due one pause after that.
        due_ms = lease.began_ms + lease.pause_seconds * 1000 - time.time_ns() // 1_000_000
        wait_seconds = max(0.0, due_ms / 1000) if is_shared else lease.pause_seconds
        self._is_written = is_shared or lease.put()
        threading.Thread(target=self._renew_until_end, args=(wait_seconds,), name="delta_py-lease", daemon=True).start()

    def move(self, version: int) -> None:
        """Record which version the reader reads now. A later version is written at the next renewal: until then, the lease of the
        earlier version protects more files than necessary. An earlier version is written at once, because its files are not
        protected yet."""
        with self._lock:
            self._version = version
            if version < self._lease.version and not self._ended.is_set():
                self._write()

    def release(self) -> None:
        """End the lease. Only the first call deletes its file, and no call does if other processes renew it."""
        with self._lock:
            has_ended = self._ended.is_set()
            self._ended.set()
        if self._is_written and not self._is_shared and not has_ended:
            self._lease.end()

    def _renew_until_end(self, wait_seconds: float) -> None:
        """Write the lease again and again, so that it does not expire."""
        while not self._ended.wait(wait_seconds):
            wait_seconds = self._lease.pause_seconds
            with self._lock:
                if not self._ended.is_set():
                    self._write()

    def _write(self) -> None:
        """Write the lease with the version that is read now. The earlier file is removed only when the new one exists."""
        current_lease, new_lease = self._lease, replace(self._lease, version=self._version)
        if new_lease.put():
            self._lease, was_written, self._is_written = new_lease, self._is_written, True
            if was_written and current_lease.path != new_lease.path:  # the same version has the same path
                current_lease.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
