"""Turns of writers of a table: who waits for the one before loses no race, and stages nothing in vain.

    with turns.of(["/data/t"]):       # whoever else takes turns at this table waits meanwhile
        ...                           # look what others have ratified, stage behind it, ratify

A turn is a courtesy that spares work. Nothing depends on it: the ledger alone says what is ratified, whoever does not get a turn
in time goes on without one, and a process that dies has none any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import zlib
from collections.abc import Iterable, Iterator

WAIT_SECONDS = 5.0
"""After which a writer goes on without its turn: who has it may be stopped."""

_PAUSE_SECONDS = 60.0  # in which, behind that, no turns are waited for at the table
_FIRST_NAP_SECONDS, _LONGEST_NAP_SECONDS = 0.0005, 0.004


class FileTurns:
    """Among processes of one machine: locks on bytes of a file, one byte a table.

    path: of the file, made when it is needed; where it cannot be, nobody waits. Threads of one process do not wait for each other
    here: those of a table have a leader (commit/committer.py).
    """

    def __init__(self, path: str) -> None:
        self._path, self._file = path, -1
        self._passed_over: dict[str, float] = {}  # tables whose turns are not waited for, and until when

    @contextlib.contextmanager
    def of(self, tables: Iterable[str]) -> Iterator[None]:
        places: list[int] = []
        end = time.monotonic() + WAIT_SECONDS
        try:
            for table in self._waited_for(tables):
                if not self._take(_place(table), end):
                    self._passed_over = {**self._passed_over, table: time.monotonic() + _PAUSE_SECONDS}
                    break
                places.append(_place(table))
            yield
        finally:
            for place in places:
                with contextlib.suppress(OSError):  # a file system that is gone has no locks
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def _waited_for(self, tables: Iterable[str]) -> list[str]:
        """In an order that is the same for all: two writers that want the same turns do not wait for each other."""
        now = time.monotonic()
        self._passed_over = {table: end for table, end in self._passed_over.items() if end > now}
        return sorted(set(tables).difference(self._passed_over))

    def _take(self, place: int, end: float) -> bool:
        """Whether it was got in time."""
        nap = _FIRST_NAP_SECONDS
        try:
            file = self._opened()
        except OSError:  # where nothing may be written
            return False
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                return True
            except (BlockingIOError, PermissionError):  # POSIX allows either for a lock that another process has
                if time.monotonic() >= end:
                    return False
            except OSError:  # a file system without locks
                return False
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST_NAP_SECONDS)

    def _opened(self) -> int:
        """One for the process, and never closed: closing any would give up all locks that the process has on the file. Where
        threads open it at once one too many stays open, without harm; a lock against that might be held at a fork."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        return self._file


def _place(table: str) -> int:
    """Tables that share one by chance wait for each other."""
    return zlib.crc32(table.encode("utf-8", "surrogateescape"))
