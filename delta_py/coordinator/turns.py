"""Writers of a table take turns: a writer that waits for the previous one loses no race, and stages no commit in vain.

    with turns.of(["/data/t"]):       # other writers that take turns at this table wait in the meantime
        ...                           # read the newest ratified version, stage after it, ratify

Turns only save work. Nothing depends on them: the ledger alone decides what is ratified. A writer that does not get its turn in
time continues without it, and a process that dies loses its turn.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import zlib
from collections.abc import Iterable, Iterator

WAIT_SECONDS = 5.0
"""After this time a writer continues without its turn: the process that has the turn may be stopped."""

_PAUSE_SECONDS = 60.0  # how long no writer waits for turns at the table after that
_FIRST_NAP_SECONDS, _LONGEST_NAP_SECONDS = 0.0005, 0.004  # waits between two attempts to get a lock


class FileTurns:
    """Turns among the processes of one machine: locks on bytes of a file, one byte for each table.

    path: of the file, created when it is needed; if it cannot be created, nobody waits. Threads of one process do not wait for
    each other here: the threads of a table have a leader (commit/committer.py).
    """

    def __init__(self, path: str) -> None:
        self._path, self._file = path, -1
        self._skipped_until: dict[str, float] = {}  # tables whose turns are skipped, and until when

    @contextlib.contextmanager
    def of(self, tables: Iterable[str]) -> Iterator[None]:
        """Have the turns of these tables during the block: no other process that waits for turns runs its block then. The wait
        for all of them together takes at most WAIT_SECONDS; then the block runs with the turns that it has.
        """
        locked_positions: list[int] = []
        end = time.monotonic() + WAIT_SECONDS
        try:
            for table in self._tables_to_wait_for(tables):
                if not self._lock_byte(_lock_position(table), end):
                    # Threads share the mapping, so a new one replaces it.
                    self._skipped_until = {**self._skipped_until, table: time.monotonic() + _PAUSE_SECONDS}
                    break
                locked_positions.append(_lock_position(table))
            yield
        finally:
            for position in locked_positions:
                with contextlib.suppress(OSError):  # a file system that was removed has no locks
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, position)

    def _tables_to_wait_for(self, tables: Iterable[str]) -> list[str]:
        """The tables whose turns are not skipped, in an order that is the same for all writers, so that two writers never wait
        for each other."""
        now = time.monotonic()
        self._skipped_until = {table: end for table, end in self._skipped_until.items() if end > now}
        return sorted(set(tables).difference(self._skipped_until))

    def _lock_byte(self, position: int, end: float) -> bool:
        """Lock a byte of the file. Returns whether the lock was acquired before `end` (in time.monotonic). False if locks do not
        work here."""
        nap_seconds = _FIRST_NAP_SECONDS
        try:
            file = self._open_file()
        except OSError:  # the directory is not writable
            return False
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
                return True
            except (BlockingIOError, PermissionError):  # POSIX allows both errors for a lock that another process holds
                if time.monotonic() >= end:
                    return False
            except OSError:  # a file system without locks
                return False
            time.sleep(nap_seconds)
            nap_seconds = min(nap_seconds * 1.5, _LONGEST_NAP_SECONDS)

    def _open_file(self) -> int:
        """One file descriptor for the process, never closed: closing any descriptor would release all locks that the process has
        on the file. If threads open it at the same time, an extra one stays open, without harm. A lock against that might be held
        at a fork."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        return self._file


def _lock_position(table: str) -> int:
    """The position of the byte that stands for a table in the file of locks. Tables that share a position by chance wait for each
    other."""
    return zlib.crc32(table.encode("utf-8", "surrogateescape"))
