"""A store that counts its calls, and fails one of them, or all from one on, before it is carried out or after.

A failure afterwards is a lost reply: the call has taken effect, and the caller cannot know. A writer killed at that point is the
same with an exception that nothing catches.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from delta_py.errors import CommitOutcomeUnknownError, DeltaError
from delta_py.storage.arrow_files import AbortableFile, discard
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")


class Killed(BaseException):
    """The process ended here: no handler may clean up."""


@dataclass(frozen=True)
class Fault:
    """call: the number of the call that fails, from 0. after: carried out first. lasting: all later ones fail too, before they
    are carried out. killed: with Killed instead of OSError; every later call then fails as well, because a dead process does
    nothing more. code: of the OSError."""

    call: int
    after: bool = False
    lasting: bool = False
    killed: bool = False
    code: int = errno.EIO

    def error(self) -> BaseException:
        return Killed() if self.killed else OSError(self.code, f"injected: {os.strerror(self.code)}")


KINDS = {
    "fails before it": {"after": False},
    "reply lost": {"after": True},
    "store is down from it on": {"after": False, "lasting": True},
    "reply lost and then down": {"after": True, "lasting": True},
    "killed before it": {"after": False, "killed": True},
    "killed after it": {"after": True, "killed": True},
}
"""What can happen to one call, by name, as arguments of a Fault."""

_CODES = ("EIO", "ESTALE", "EMFILE", "ENOSPC")

FAULTS = {name: kind for name, kind in KINDS.items() if "killed" in kind} | {
    f"{name}, {code}": {**kind, "code": getattr(errno, code)}
    for (name, kind), code in itertools.product(KINDS.items(), _CODES)
    if "killed" not in kind
}
"""The same with each error that a file system gives and that says nothing of the call's effect by itself."""


def outcome_of(commit: Callable[[], T]) -> tuple[T | None, str]:
    """The result of the commit, None if it did not return; and its outcome: done, unknown, killed or refused."""
    try:
        return commit(), "done"
    except CommitOutcomeUnknownError:
        return None, "unknown"
    except Killed:
        return None, "killed"
    except (DeltaError, OSError):
        return None, "refused"


@dataclass
class FaultyStore:
    inner: ObjectStore
    fault: Fault | None = None
    calls: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        return self.inner.root

    @property
    def options(self) -> StorageOptions:
        return self.inner.options

    @property
    def is_remote(self) -> bool:
        return self.inner.is_remote

    def run(self, name: str, action: Callable[[], T]) -> T:
        number, fault = len(self.calls), self.fault
        self.calls.append(name)
        if fault is not None:
            down = number > fault.call and (fault.lasting or fault.killed)
            if down or (number == fault.call and not fault.after):
                raise fault.error()
        result = action()
        if fault is not None and number == fault.call:
            raise fault.error()
        return result

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        return self._listed(f"list_from {directory}", lambda: self.inner.list_from(directory, start))

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        return self._listed(f"list_recursive {directory}", lambda: self.inner.list_recursive(directory))

    def _listed(self, name: str, objects: Callable[[], Iterator[ObjectInfo]]) -> Iterator[ObjectInfo]:
        """A listing that fails after it is carried out fails at its last page: a caller that has seen all other objects may not
        know."""
        all_objects: list[ObjectInfo] = []
        try:
            self.run(name, lambda: all_objects.extend(objects()))
        except BaseException:
            yield from all_objects
            raise
        yield from all_objects

    def read(self, path: str) -> bytes:
        return self.run(f"read {path}", lambda: self.inner.read(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.run(f"read_range {path}", lambda: self.inner.read_range(path, offset, length))

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        stream = self.run(f"open_input {path}", lambda: self.inner.open_input(path))
        return pa.PythonFile(_FaultyInput(self, path, stream), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        stream = self.run(f"open_output {path}", lambda: self.inner.open_output(path))
        return pa.PythonFile(_FaultyStream(self, path, stream), mode="w")

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        stream = self.run(f"open_atomic_output {path}", lambda: self.inner.open_atomic_output(path))
        return AbortableFile.over(_FaultyStream(self, path, stream))

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        return self.run(f"copy_from {path}", lambda: self.inner.copy_from(source, source_path, path, size_bytes))

    def link(self, path: str, new_path: str) -> bool:
        return self.run(f"link {path}", lambda: self.inner.link(path, new_path))

    def put(self, path: str, data: bytes) -> None:
        self.run(f"put {path}", lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        self.run(f"put_if_absent {path}", lambda: self.inner.put_if_absent(path, data, durably=durably))

    def abort_uploads(self, part_of_name: str) -> None:
        self.run(f"abort_uploads {part_of_name}", lambda: self.inner.abort_uploads(part_of_name))

    def delete(self, path: str) -> None:
        self.run(f"delete {path}", lambda: self.inner.delete(path))


class _FaultyInput:
    """Each read is a call of the store."""

    def __init__(self, store: FaultyStore, path: str, stream: pa.NativeFile) -> None:
        self._store, self._path, self._stream = store, path, stream

    def read(self, count: int = -1) -> bytes:
        return self._store.run(f"input {self._path}", lambda: bytes(self._stream.read(None if count < 0 else count)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _FaultyStream:
    """Each write is a call of the store, and so is closing, by which the object becomes durable."""

    def __init__(self, store: FaultyStore, path: str, stream: Any) -> None:
        self._store, self._path, self._stream = store, path, stream
        self.closed = False

    def write(self, data: Any) -> int:
        return self._store.run(f"output {self._path}", lambda: int(self._stream.write(data)))

    def tell(self) -> int:
        return int(self._stream.tell())

    def flush(self) -> None:
        self._stream.flush()

    def abort(self) -> None:
        self.closed = True
        discard(self._stream)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            try:
                self._store.run(f"close {self._path}", self._stream.close)
            finally:
                self._stream.close()
