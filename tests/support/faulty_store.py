"""A store that counts its calls, and fails one of them, or all from one on: before it is carried out or after.

Failing after is a lost reply: the call has taken effect, and the caller cannot know. A writer killed at that point is
the same with an exception that nothing catches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from delta_py.storage.store import ObjectInfo, ObjectStore

T = TypeVar("T")


class Killed(BaseException):
    """The process ended here: no handler may clean up."""


@dataclass(frozen=True)
class Fault:
    """call: number of the call that fails, from 0. after: carried out first. lasting: all later ones fail too, before.
    killed: as Killed instead of OSError; every later call then fails as well, for a dead process does nothing more."""

    call: int
    after: bool = False
    lasting: bool = False
    killed: bool = False

    def error(self) -> BaseException:
        return Killed() if self.killed else OSError(5, "injected failure")


KINDS = {
    "fails before it": {"after": False},
    "reply lost": {"after": True},
    "store is down from it on": {"after": False, "lasting": True},
    "reply lost and then down": {"after": True, "lasting": True},
    "killed before it": {"after": False, "killed": True},
    "killed after it": {"after": True, "killed": True},
}
"""What can happen to one call, by name, as arguments of a Fault."""


@dataclass
class FaultyStore:
    inner: ObjectStore
    fault: Fault | None = None
    calls: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        return self.inner.root

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
        return iter(self.run(f"list_from {directory}", lambda: list(self.inner.list_from(directory, start))))

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        return iter(self.run(f"list_recursive {directory}", lambda: list(self.inner.list_recursive(directory))))

    def read(self, path: str) -> bytes:
        return self.run(f"read {path}", lambda: self.inner.read(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.run(f"read_range {path}", lambda: self.inner.read_range(path, offset, length))

    def open_input(self, path: str) -> pa.NativeFile:
        return self.run(f"open_input {path}", lambda: self.inner.open_input(path))

    def open_output(self, path: str) -> pa.NativeFile:
        stream = self.run(f"open_output {path}", lambda: self.inner.open_output(path))
        return pa.PythonFile(_FaultyStream(self, path, stream), mode="w")

    def put(self, path: str, data: bytes) -> None:
        self.run(f"put {path}", lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.run(f"put_if_absent {path}", lambda: self.inner.put_if_absent(path, data))

    def delete(self, path: str) -> None:
        self.run(f"delete {path}", lambda: self.inner.delete(path))


class _FaultyStream:
    """Closing is a call of the store, for then the object becomes durable; single writes are not."""

    def __init__(self, store: FaultyStore, path: str, stream: Any) -> None:
        self._store, self._path, self._stream = store, path, stream
        self.closed = False

    def write(self, data: Any) -> int:
        return int(self._stream.write(data))

    def tell(self) -> int:
        return int(self._stream.tell())

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            try:
                self._store.run(f"close {self._path}", self._stream.close)
            finally:
                self._stream.close()
