"""Log records of pydelta that wait until the work that logs them is done.

    with deferred_logging() as emit_records:
        ...                 # records of this thread wait
    emit_records()

A thread that waits for the work may hold a lock that a record needs: `save`, called by a handler of logging, holds that handler's
lock. The work would then wait for a thread that waits for the work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
def deferred_logging() -> Iterator[Callable[[], None]]:
    """Gives a function that hands the records to their loggers. Call it after the block."""
    records: list[logging.LogRecord] = []

    def emit_records() -> None:
        for record in records:
            logging.getLogger(record.name).handle(record)

    _waiting.records = records
    try:
        yield emit_records
    finally:
        _waiting.records = None
