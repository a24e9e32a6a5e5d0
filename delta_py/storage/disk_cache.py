"""The cache directory: on the local disk, copies of what can be had anew, shared by any number of processes.

    cache = DiskCache.of_environment()     # None: switched off
    cache.mapped(name)                     # the content of an entry; None where there is none that is whole
    entry = cache.begin()                  # entry.sink is written to; then entry.finish(name) or entry.remove()

An entry never grows old: its name, from `entry_name`, is a hash of all that its content depends on. Entries are written beside
their name and renamed, so that processes see whole ones; a checksum guards against a damaged disk, and an entry that does not
keep it counts as missing. Those used longest ago go when all together are too large. What others keep in the directory is not
touched. Entries hold data of tables: only the user may read them.

PYDELTA_CACHE_DIR is the directory (by default pydelta in the user's cache directory; empty switches the cache off), and
PYDELTA_CACHE_MB what it may hold (by default 1024).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as DiskPath
from typing import Self

import pyarrow as pa

_log = logging.getLogger("delta_py")

_DEFAULT_MB = 1024
_FINISHED = "stats"
_OWN_NAME = re.compile(rf"[0-9a-f]{{64}}\.{_FINISHED}|[0-9]+-[0-9a-f]{{16}}\.new")
_ABANDONED_SECONDS = 3600.0


def entry_name(meaning: bytes) -> str:
    """The name of an entry. meaning: all that the content depends on."""
    return f"{hashlib.sha256(meaning).hexdigest()}.{_FINISHED}"


@dataclass(frozen=True, slots=True)
class DiskCache:
    directory: DiskPath
    limit_bytes: int

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
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
            _log.debug("no cache: %s", error)
            return None
        return cls(directory, limit << 20)

    def mapped(self, name: str) -> pa.Buffer | None:
        """The content of an entry, mapped into memory; None where there is none that is whole."""
        path = self.directory / name
        try:
            whole = pa.memory_map(str(path)).read_buffer()
            os.utime(path)
        except OSError:
            return None
        content, kept = whole.slice(0, max(0, whole.size - 4)), whole.slice(max(0, whole.size - 4))
        if kept.to_pybytes() != _checksum(content):
            _log.warning("%s is damaged and passed over", path)
            return None
        return content

    def begin(self) -> NewEntry:
        """Raises OSError when the disk takes nothing."""
        path = self.directory / f"{os.getpid()}-{secrets.token_hex(8)}.new"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return NewEntry(self, path)

    def trim(self) -> None:
        """Remove what was used longest ago, until the rest may stay, and what processes that died left half-written."""
        found = sorted(self._entries())
        total = sum(size for _, size, _ in found)
        for used, size, path in found:
            unfinished = path.suffix == ".new"
            if (used > time.time() - _ABANDONED_SECONDS) if unfinished else (total <= self.limit_bytes):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                path.unlink()
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, DiskPath]]:
        with os.scandir(self.directory) as entries:
            for entry in filter(lambda found: _OWN_NAME.fullmatch(found.name), entries):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    yield status.st_mtime, status.st_size, DiskPath(entry.path)


class NewEntry:
    """An entry in the making. What goes wrong with the disk is raised, as OSError or pa.ArrowException."""

    def __init__(self, cache: DiskCache, path: DiskPath) -> None:
        self._cache, self._path = cache, path
        self.sink = pa.OSFile(str(path), "wb")

    def finish(self, name: str) -> None:
        self.sink.close()
        with pa.memory_map(str(self._path)) as written:
            kept = _checksum(written.read_buffer())
        with open(self._path, "ab") as file:
            file.write(kept)
        self._path.rename(self._cache.directory / name)

    def remove(self) -> None:
        self.sink.close()
        self._path.unlink(missing_ok=True)


def _users_cache() -> DiskPath:
    given = os.environ.get("XDG_CACHE_HOME")
    return (DiskPath(given) if given else DiskPath.home() / ".cache") / "pydelta"


def _checksum(content: pa.Buffer) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little")
