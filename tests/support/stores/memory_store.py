"""A store in memory: the ObjectStore contract without a disk, for unit tests and simulated schedules.

Times do not come from a clock: every object gets the store's `now_ms`, which tests set. `hook` is called before and after each
call of the store, with the moment, the call's name and its path; it may raise, and it may pause.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from delta_py.storage.arrow_files import AbortableFile
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions

T = TypeVar("T")


@dataclass
class MemoryStore:
    root: str = "/memory/table"
    is_remote: bool = True
    has_etags: bool = False
    options: StorageOptions = NO_OPTIONS
    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    now_ms: int = 1_700_000_000_000
    hook: Callable[[str, str, str], None] | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "hook": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def _run(self, name: str, path: str, action: Callable[[], T]) -> T:
        self.calls.append((name, path))
        if self.hook is not None:
            self.hook("before", name, path)
        with self._lock:
            result = action()
        if self.hook is not None:
            self.hook("after", name, path)
        return result

    def _key(self, path: str) -> str:
        return path.removeprefix(f"{self.root}/")

    def _data(self, path: str) -> bytes:
        if self._key(path) not in self.objects:
            raise FileNotFoundError(2, "No such object", path)
        return self.objects[self._key(path)][0]

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        prefix = f"{directory}/" if directory else ""

        def found() -> list[ObjectInfo]:
            names = {key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)}
            chosen = sorted((name for name in names if "/" not in name and name.encode() >= start.encode()), key=str.encode)
            return [self._info(prefix + name) for name in chosen]

        return iter(self._run("list_from", directory, found))

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        prefix = f"{directory}/" if directory else ""
        infos = self._run(
            "list_recursive", directory, lambda: [self._info(key) for key in self.objects if key.startswith(prefix)]
        )
        return iter(infos)

    def _info(self, key: str) -> ObjectInfo:
        data, time_ms = self.objects[key]
        return ObjectInfo(key, len(data), time_ms, hashlib.md5(data).hexdigest() if self.has_etags else None)

    def read(self, path: str) -> bytes:
        return self._run("read", path, lambda: self._data(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._run("read_range", path, lambda: self._data(path)[offset : offset + length])

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        return self._run("open_input", path, lambda: pa.BufferReader(self._data(path)))

    def open_output(self, path: str) -> pa.NativeFile:
        return self._run("open_output", path, lambda: pa.PythonFile(_Output(self, path), mode="w"))

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        return self._run("open_atomic_output", path, lambda: AbortableFile.over(_WholeOutput(self, path)))

    def copy_from(self, source: Any, source_path: str, path: str, size_bytes: int) -> bool:
        return False

    def link(self, path: str, new_path: str) -> bool:
        return False

    def put(self, path: str, data: bytes) -> None:
        def store() -> None:
            self.objects[self._key(path)] = (bytes(data), self.now_ms)

        self._run("put", path, store)

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        def store() -> None:
            if self._key(path) in self.objects:
                raise FileExistsError(17, "Object exists", path)
            self.objects[self._key(path)] = (bytes(data), self.now_ms)

        self._run("put_if_absent", path, store)

    def abort_uploads(self, part_of_name: str) -> None:
        pass

    def delete(self, path: str) -> None:
        self._run("delete", path, lambda: self.objects.pop(self._key(path), None))


class _Output(io.BytesIO):
    """The object appears when it is closed."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def close(self) -> None:
        if not self.closed:
            self._store.put(self._path, self.getvalue())
            super().close()


class _WholeOutput(_Output):
    """If it is dropped before it is closed, or aborted, it leaves nothing."""

    def abort(self) -> None:
        io.BytesIO.close(self)

    def __del__(self) -> None:
        self.abort()
