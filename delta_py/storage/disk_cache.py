"""The cache directory: on the local disk, copies of what can be had anew, shared by any number of processes.

    cache = DiskCache.of_environment()     # None: switched off
    name = entry_name(meaning, "object")   # a hash of all that the content depends on: entries never grow old
    cache.read(name), cache.mapped(name)   # the content; None where there is no entry that is whole
    cache.put(name, data)                  # or piece by piece: entry = cache.begin(); entry.sink; entry.finish(name)

Entries are written beside their name and renamed, so that processes see whole ones. A checksum over name and content guards
against damaged disks and entries under a wrong name: one that does not keep it counts as missing, and is replaced. For the same
reason nothing is flushed to the disk. What others keep in the directory is not touched: only names of entries are read, written
and removed there, and only regular files are entries, no links. Entries hold data of tables: only the user may read them.

Where the disk is full, read-only or broken, or the directory is gone, there is no cache. So every OSError of a call on the
cache's own files, whatever its number, is a miss when reading and gives up the entry when writing: the content can be had
without the disk. No other call stands where that is caught. What is no regular file in the place of an entry is a miss, too.

Those used longest ago go when all together are too large, a file counted in whole blocks of the disk. Going through the directory
takes a while where there are very many, so it is done by chance, as often as to make it once for every 64th part of the limit
that processes, however short-lived, write; it leaves a quarter free. That more than the limit is there at any time takes 16 of
these parts in a row without it, which has the probability e**-16.

PYDELTA_CACHE_DIR is the directory (by default pydelta in the user's cache directory; empty switches the cache off), and
PYDELTA_CACHE_MB what it may hold (by default 1024). A directory that another user can change or replace is not used: wrong
statistics could be put there. private_directory.py has the rule. All calls on entries are relative to the descriptor
of the directory that was checked.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import mmap
import os
import re
import stat
import time
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path as DiskPath
from typing import Literal, Self

import pyarrow as pa

from delta_py.storage.private_directory import PrivateDirectory, UnsafeDirectoryError

_log = logging.getLogger("delta_py")

_FORM = b"2"
_DEFAULT_MB = 1024
_BLOCK_BYTES = 4096
_SUM_BYTES = 4
_OWN_NAME = re.compile(r"[0-9a-f]{64}\.(?:stats|object)|[0-9]+-[0-9a-f]{16}\.new")
_ABANDONED_SECONDS = 3600.0


def entry_name(meaning: bytes, kind: Literal["stats", "object"]) -> str:
    """The name of an entry. meaning: all that the content depends on."""
    return f"{hashlib.sha256(_FORM + meaning).hexdigest()}.{kind}"


class DiskCache:
    """directory: it is opened by the first call that needs it, unless it is given open."""

    def __init__(self, directory: DiskPath, limit_bytes: int, opened: PrivateDirectory | None = None) -> None:
        self.directory, self.limit_bytes = directory, limit_bytes
        self._opened = opened

    @classmethod
    def of_environment(cls) -> Self | None:
        """The cache that the environment's variables speak of; None where it is switched off or has no place."""
        place = os.environ.get("PYDELTA_CACHE_DIR")
        megabytes = os.environ.get("PYDELTA_CACHE_MB", "")
        limit = int(megabytes) if megabytes.isdigit() else _DEFAULT_MB
        if place == "" or limit == 0:
            return None
        try:
            directory = DiskPath(place) if place else _users_cache()
            return cls(directory, limit << 20, PrivateDirectory.open(directory))
        except UnsafeDirectoryError as error:
            _warn_once(f"{directory} is not used as cache: {error}. Give PYDELTA_CACHE_DIR a directory that only you can change.")
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
            _log.debug("no cache: %s", error)
        return None

    @property
    def descriptor(self) -> int:
        """Of the open directory. Raises OSError."""
        if self._opened is None:
            self._opened = PrivateDirectory.open(self.directory, make=False)
        return self._opened.descriptor

    def read(self, name: str) -> bytes | None:
        try:
            with self._open_entry(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
                whole = file.read()
        except OSError:
            return None
        content = self._checked(name, memoryview(whole))
        return None if content is None else bytes(content)

    def mapped(self, name: str) -> pa.Buffer | None:
        """The content mapped into memory, for large entries."""
        try:
            with self._open_entry(name) as descriptor:
                whole = pa.py_buffer(_mapped(descriptor))
        except OSError:
            return None
        return None if self._checked(name, memoryview(whole)) is None else whole.slice(0, whole.size - _SUM_BYTES)

    @contextlib.contextmanager
    def _open_entry(self, name: str) -> Iterator[int]:
        """A regular file, open for reading. Raises OSError for anything else, a link too; nothing blocks."""
        assert _OWN_NAME.fullmatch(name), name
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", name)
            yield descriptor
        finally:
            os.close(descriptor)

    def _checked(self, name: str, whole: memoryview) -> memoryview | None:
        """The content without its checksum. The entry counts as used now."""
        if len(whole) < _SUM_BYTES or whole[-_SUM_BYTES:].tobytes() != _checksum(name, whole[:-_SUM_BYTES]):
            _log.warning("%s is damaged and passed over", self.directory / name)
            return None
        with contextlib.suppress(OSError):  # one that may only be read serves as well
            os.utime(name, dir_fd=self.descriptor, follow_symlinks=False)
        return whole[:-_SUM_BYTES]

    def put(self, name: str, data: bytes) -> bool:
        """Whether the disk took it."""
        assert _OWN_NAME.fullmatch(name), name
        entry = None
        try:
            entry = self.begin()
            entry.sink.write(data)
            entry.finish(name)
        except OSError as error:
            _log.warning("nothing can be kept in %s: %s", self.directory, error)
            if entry is not None:
                entry.remove()
            return False
        return True

    def begin(self) -> NewEntry:
        """Raises OSError when the disk takes nothing."""
        return NewEntry(self, f"{os.getpid()}-{os.urandom(8).hex()}.new")

    def trim_by_chance(self, written_bytes: int) -> None:
        """After so much was written. Raises OSError."""
        if int.from_bytes(os.urandom(8), "little") % (self.limit_bytes // 64 + 1) < _on_disk(written_bytes):
            self.trim()

    def trim(self) -> None:
        """Remove what was used longest ago, until a quarter is free, and what processes that died left half-written. Raises
        OSError."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for used, size, name in entries:
            unfinished = name.endswith(".new")
            if (used > time.time() - _ABANDONED_SECONDS) if unfinished else (total <= self.limit_bytes * 3 // 4):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                os.unlink(name, dir_fd=self.descriptor)
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        with os.scandir(self.descriptor) as entries:
            for entry in filter(lambda file: _OWN_NAME.fullmatch(file.name), entries):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(status.st_mode):
                        yield status.st_mtime, _on_disk(status.st_size), entry.name


class NewEntry:
    """An entry in the making. What goes wrong with the disk is raised, as OSError or pa.ArrowException."""

    def __init__(self, cache: DiskCache, name: str) -> None:
        self._cache, self._name = cache, name
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = open(os.open(name, flags, 0o600, dir_fd=cache.descriptor), "w+b")  # noqa: SIM115 (finish and remove close it)
        self.sink = pa.PythonFile(self._file, mode="w")

    def finish(self, name: str) -> None:
        self._file.flush()
        content = memoryview(_mapped(self._file.fileno()))
        self._file.write(_checksum(name, content))
        self._file.close()
        directory = self._cache.descriptor
        os.replace(self._name, name, src_dir_fd=directory, dst_dir_fd=directory)
        self._cache.trim_by_chance(len(content) + _SUM_BYTES)

    def remove(self) -> None:
        """As far as the disk lets it: what stays goes when it is old."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._cache.descriptor)


def _mapped(descriptor: int) -> mmap.mmap | bytes:
    is_empty = os.fstat(descriptor).st_size == 0  # which cannot be mapped
    return b"" if is_empty else mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)


def _users_cache() -> DiskPath:
    given = os.environ.get("XDG_CACHE_HOME")
    return (DiskPath(given) if given else DiskPath.home() / ".cache") / "pydelta"


@lru_cache(maxsize=16)
def _warn_once(text: str) -> None:
    """The cache is asked for with every read."""
    _log.warning("%s", text)


def _checksum(name: str, content: memoryview) -> bytes:
    return zlib.crc32(content, zlib.crc32(name.encode())).to_bytes(_SUM_BYTES, "little")


def _on_disk(size_bytes: int) -> int:
    """In whole blocks. An empty file counts as one, so that such entries are trimmed, too."""
    return max(1, -(-size_bytes // _BLOCK_BYTES)) * _BLOCK_BYTES
