"""Log records of pydelta that wait until the work that logs them has finished.

    with deferred_logging() as records:
        ...                 # records of this thread wait
    log_thread.emit(records)

A thread that waits for the work may hold a lock that a record needs. For example, a logging handler that calls `save` holds that
handler's lock. Then the work would wait for a thread that waits for the work. The next work of the thread that emits the records
would wait too, so the records have their own LogThread.
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


class _WaitingRecords(threading.local):
    """The records of each thread that wait; None outside of deferred_logging."""

    records: list[logging.LogRecord] | None = None


class _DeferringFilter(logging.Filter):
    """Takes the records of a thread that is in deferred_logging, and lets all others pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _waiting_records.records is None:
            return True
        _waiting_records.records.append(record)
        return False


_waiting_records = _WaitingRecords()
_deferring_filter = _DeferringFilter()
for _name in LOGGERS:
    logging.getLogger(_name).filters.insert(0, _deferring_filter)  # before the user's filters, which may take locks too


@contextmanager
def deferred_logging() -> Iterator[list[logging.LogRecord]]:
    """Make the records that this thread logs inside wait, and yield the list of them. Pass it to a LogThread after the block."""
    records: list[logging.LogRecord] = []
    _waiting_records.records = records
    try:
        yield records
    finally:
        _waiting_records.records = None


class LogThread:
    """Passes records to their loggers, one after another, in a thread that no code waits for. It starts with the first record."""

    def __init__(self) -> None:
        self._records: SimpleQueue[Sequence[logging.LogRecord] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def emit(self, records: Sequence[logging.LogRecord]) -> None:
        """Pass the records to the thread, which logs them later. Raises RuntimeError if no thread can be started."""
        if not records:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pydelta-channel-log", daemon=True)
                self._thread.start()
        self._records.put(records)

    def stop(self) -> None:
        """End the thread after it has logged the waiting records."""
        self._records.put(None)

    def _run(self) -> None:
        while (records := self._records.get()) is not None:
            for record in records:
                try:
                    logging.getLogger(record.name).handle(record)
                except Exception:  # of a user's filter; logging itself prints the errors of handlers
                    traceback.print_exc(file=sys.stderr)
