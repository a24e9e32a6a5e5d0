"""Records of pydelta's loggers, kept until the work that logs them is done.

    with held() as emit:
        ...                 # what this thread logs waits
    emit()

Who waits for the work may hold what a record needs: a save from within a handler of logging has that handler's lock, and so would
wait for a thread that waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGERS = ("delta_py", "pydelta", "pydelta.pruning")
"""All that delta_py and spark_plugin log with."""


class _Held(threading.local):
    records: list[logging.LogRecord] | None = None


class _Hold(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if _held.records is None:
            return True
        _held.records.append(record)
        return False


_held = _Held()
_hold = _Hold()
for _name in LOGGERS:
    logging.getLogger(_name).filters.insert(0, _hold)  # before the user's, who may take locks too


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """What gives the records to their loggers, to be called behind it."""
    records: list[logging.LogRecord] = []

    def emit() -> None:
        for record in records:
            logging.getLogger(record.name).handle(record)

    _held.records = records
    try:
        yield emit
    finally:
        _held.records = None
