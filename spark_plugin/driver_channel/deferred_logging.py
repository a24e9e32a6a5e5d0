"""Log records of pydelta that wait until the work that logs them is done.

    with deferred_logging() as records:
        ...                 # records of this thread wait
    log_thread.emit(records)

A thread that waits for the work may hold a lock that a record needs: `save`, called by a handler of logging, holds that handler's
lock. The work would then wait for a thread that waits for the work. So would the next work of the thread that emits the records:
they have a LogThread of their own.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from delta_py.errors import LOGGERS


class _Waiting(threading.local):
    records: list[logging.LogRecord] | None = None


class _Deferring(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if _waiting.records is None:
            return True
        _waiting.records.append(record)
        return False


_waiting = _Waiting()
_deferring = _Deferring()
for _name in LOGGERS:
    logging.getLogger(_name).filters.insert(0, _deferring)  # before the user's filters, which may take locks too


@contextmanager
def deferred_logging() -> Iterator[list[logging.LogRecord]]:
    """Gives the records. Hand them to a LogThread after the block."""
    records: list[logging.LogRecord] = []
    _waiting.records = records
    try:
        yield records
    finally:
        _waiting.records = None


class LogThread:
    """Hands records to their loggers, one after another, in a thread that nobody waits for. It starts with the first record."""

    def __init__(self) -> None:
        self._records: SimpleQueue[Sequence[logging.LogRecord] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def emit(self, records: Sequence[logging.LogRecord]) -> None:
        """Raises RuntimeError if no thread can be started."""
        if not records:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pydelta-channel-log", daemon=True)
                self._thread.start()
        self._records.put(records)

    def stop(self) -> None:
        """After the records that wait."""
        self._records.put(None)

    def _run(self) -> None:
        while (records := self._records.get()) is not None:
            for record in records:
                try:
                    logging.getLogger(record.name).handle(record)
                except Exception:  # of a user's filter; logging itself prints those of handlers
                    traceback.print_exc(file=sys.stderr)
