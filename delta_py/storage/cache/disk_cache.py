"""The cache directory: copies on the local disk of data that can be read again, shared by any number of processes.

    cache = DiskCache.of_environment()     # None: switched off
    name = entry_name(meaning, "object")   # a hash of everything that the content depends on: entries never become outdated
    cache.read(name), cache.read_mapped(name)   # the content; None if there is no valid entry
    cache.put(name, data)                  # or piece by piece: entry = cache.begin(); entry.sink; entry.finish(name)

Entries are written under a temporary name and renamed, so that processes only see complete ones. A checksum over name and content
protects against damaged disks and entries under a wrong name: an entry with a wrong checksum counts as missing, and is replaced.
Therefore nothing needs to be flushed to the disk. Files of other programs in the directory are not touched: only names of entries
are read, written and removed there, and only regular files are entries, not links. Entries contain data of tables: only the user
may read them.

If the disk is full, read-only or broken, or the directory is missing, there is no cache. So every OSError of a call on the
cache's own files, whatever its number, is a miss when reading, and gives up the entry when writing: the content can be obtained
without the disk. The code that catches these errors contains no other calls. A file that is not a regular file in the place of an
entry is a miss, too.

The least recently used entries are deleted when all together are too large; each file counts as whole blocks of the disk.
Scanning a large directory takes a while, so it is done at random: on average once for every 64th part of the limit that
processes, however short-lived, write. It leaves a quarter of the limit free. The limit is exceeded only if 16 of these parts in a
row are written without a scan, which has the probability e**-16.

PYDELTA_CACHE_DIR is the directory (by default pydelta in the user's cache directory; empty switches the cache off), and
PYDELTA_CACHE_MB its maximum size (by default 1024). A directory that another user can change or replace is not used: wrong
statistics could be put there. private_directory.py contains the rule. All calls on entries are relative to the descriptor of the
directory that was checked.
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

from delta_py.storage.cache.private_directory import PrivateDirectory, UnsafeDirectoryError

_log = logging.getLogger("delta_py")

_FORMAT_VERSION = b"2"  # a part of the entries' names, so entries of another format are never found
_DEFAULT_MB = 1024
_BLOCK_BYTES = 4096  # the disk's unit, for the size that a file takes
_CHECKSUM_BYTES = 4
# A finished entry, or the temporary name of a new one: the process's id and random digits.
_ENTRY_NAME = re.compile(r"[0-9a-f]{64}\.(?:stats|object)|[0-9]+-[0-9a-f]{16}\.new")
_ABANDONED_SECONDS = 3600.0  # an unfinished entry of this age is deleted: its process has probably died


def entry_name(meaning: bytes, kind: Literal["stats", "object"]) -> str:
    """The name of an entry. meaning: everything that the content depends on."""
    return f"{hashlib.sha256(_FORMAT_VERSION + meaning).hexdigest()}.{kind}"


class DiskCache:
    """The entries in one directory. opened: the open directory; None if the first call that needs it should open it. limit_bytes:
    if all entries together are larger, the least recently used ones are deleted."""

    def __init__(self, directory: DiskPath, limit_bytes: int, opened: PrivateDirectory | None = None) -> None:
        self.directory, self.limit_bytes = directory, limit_bytes
        self._open_directory = opened

    @classmethod
    def of_environment(cls) -> Self | None:
        """The cache that the environment variables configure; None if it is switched off or has no directory."""
        directory_text = os.environ.get("PYDELTA_CACHE_DIR")
        megabytes = os.environ.get("PYDELTA_CACHE_MB", "")
        limit_mb = int(megabytes) if megabytes.isdigit() else _DEFAULT_MB
        if directory_text == "" or limit_mb == 0:
            return None
        try:
            directory = DiskPath(directory_text) if directory_text else _default_directory()
            return cls(directory, limit_mb << 20, PrivateDirectory.open(directory))
        except UnsafeDirectoryError as error:
            _warn_once(f"{directory} is not used as cache: {error}. Give PYDELTA_CACHE_DIR a directory that only you can change.")
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
            _log.debug("no cache: %s", error)
        return None

    @property
    def descriptor(self) -> int:
        """The descriptor of the open directory. Raises OSError."""
        if self._open_directory is None:
            self._open_directory = PrivateDirectory.open(self.directory, make=False)
        return self._open_directory.descriptor

    def read(self, name: str) -> bytes | None:
        """The content of an entry; None if there is no valid one."""
        try:
            with self._open_entry(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
                entry = file.read()
        except OSError:
            return None
        content = self._valid_content(name, memoryview(entry))
        return None if content is None else bytes(content)

    def read_mapped(self, name: str) -> pa.Buffer | None:
        """As `read`, but mapped into memory: for large entries."""
        try:
            with self._open_entry(name) as descriptor:
                entry = pa.py_buffer(_mapped(descriptor))
        except OSError:
            return None
        return None if self._valid_content(name, memoryview(entry)) is None else entry.slice(0, entry.size - _CHECKSUM_BYTES)

    @contextlib.contextmanager
    def _open_entry(self, name: str) -> Iterator[int]:
        """Open a regular file for reading. Raises OSError for anything else, including links; it never blocks."""
        assert _ENTRY_NAME.fullmatch(name), name
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", name)
            yield descriptor
        finally:
            os.close(descriptor)

    def _valid_content(self, name: str, entry: memoryview) -> memoryview | None:
        """The content of an entry without its checksum; None if the checksum is wrong. Marks the entry as used now."""
        if len(entry) < _CHECKSUM_BYTES or entry[-_CHECKSUM_BYTES:].tobytes() != _checksum(name, entry[:-_CHECKSUM_BYTES]):
            _log.warning("%s is damaged and passed over", self.directory / name)
            return None
        with contextlib.suppress(OSError):  # a read-only entry can be used as well
            os.utime(name, dir_fd=self.descriptor, follow_symlinks=False)
        return entry[:-_CHECKSUM_BYTES]

    def put(self, name: str, data: bytes) -> bool:
        """Write an entry. Returns whether the disk accepted it; if not, the failure is logged."""
        assert _ENTRY_NAME.fullmatch(name), name
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
        """Begin an entry that is written piece by piece. Raises OSError if the disk accepts no file."""
        return NewEntry(self, f"{os.getpid()}-{os.urandom(8).hex()}.new")

    def trim_by_chance(self, written_bytes: int) -> None:
        """Call this after writing. Trims the cache at random, on average once for every 64th part of the limit that is written.
        Raises OSError."""
        if int.from_bytes(os.urandom(8), "little") % (self.limit_bytes // 64 + 1) < _size_on_disk(written_bytes):
            self.trim()

    def trim(self) -> None:
        """Delete the least recently used entries until a quarter is free, and unfinished files of processes that died. Raises
        OSError."""
        entries = sorted(self._list_entries())  # the least recently used ones first
        total = sum(size for _, size, _ in entries)
        for used_seconds, size, name in entries:
            if name.endswith(".new"):
                is_needed = used_seconds > time.time() - _ABANDONED_SECONDS  # a process may still write it
            else:
                is_needed = total <= self.limit_bytes * 3 // 4  # enough is free already
            if is_needed:
                continue
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                os.unlink(name, dir_fd=self.descriptor)
            total -= size

    def _list_entries(self) -> Iterator[tuple[float, int, str]]:
        """(time of the last use in seconds since 1970, size on the disk in bytes, name) of each file of the cache."""
        with os.scandir(self.descriptor) as entries:
            for entry in filter(lambda file: _ENTRY_NAME.fullmatch(file.name), entries):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(status.st_mode):
                        yield status.st_mtime, _size_on_disk(status.st_size), entry.name


class NewEntry:
    """An unfinished entry. Errors of the disk are raised, as OSError or pa.ArrowException."""

    def __init__(self, cache: DiskCache, name: str) -> None:
        self._cache, self._name = cache, name
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = open(os.open(name, flags, 0o600, dir_fd=cache.descriptor), "w+b")  # noqa: SIM115 (finish and remove close it)
        self.sink = pa.PythonFile(self._file, mode="w")

    def finish(self, name: str) -> None:
        """Append the checksum, and give the entry its name: from then on other processes can read it."""
        self._file.flush()
        content = memoryview(_mapped(self._file.fileno()))
        self._file.write(_checksum(name, content))
        self._file.close()
        directory = self._cache.descriptor
        os.replace(self._name, name, src_dir_fd=directory, dst_dir_fd=directory)
        self._cache.trim_by_chance(len(content) + _CHECKSUM_BYTES)

    def remove(self) -> None:
        """Delete the unfinished entry, as far as the disk allows it. A file that remains is deleted by `trim` when it is old."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._cache.descriptor)


def _mapped(descriptor: int) -> mmap.mmap | bytes:
    """A file's content, mapped into memory."""
    is_empty = os.fstat(descriptor).st_size == 0  # an empty file cannot be mapped
    return b"" if is_empty else mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)


def _default_directory() -> DiskPath:
    """The default cache directory. Raises RuntimeError if the user has no home directory."""
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (DiskPath(cache_home) if cache_home else DiskPath.home() / ".cache") / "pydelta"


@lru_cache(maxsize=16)
def _warn_once(text: str) -> None:
    """Log a warning once for each text, because the cache is opened with every read."""
    _log.warning("%s", text)


def _checksum(name: str, content: memoryview) -> bytes:
    return zlib.crc32(content, zlib.crc32(name.encode())).to_bytes(_CHECKSUM_BYTES, "little")


def _size_on_disk(size_bytes: int) -> int:
    """The size in whole blocks. An empty file counts as one block, so that such entries are trimmed, too."""
    return max(1, -(-size_bytes // _BLOCK_BYTES)) * _BLOCK_BYTES
