"""Ratified commits go to their places behind the backs of their writers: one thread of the process, all that wait at once.
Where no thread can be had their writers do it.

    later(store)                  # store.publish() before long
    finish()                      # all of it now

A process that ends publishes what is left; one that is killed leaves it to the next writer of the table.
Protocol: Publishing Commits.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from typing import Protocol

_log = logging.getLogger("delta_py")

_GATHER_SECONDS = 0.02  # commits that come meanwhile are published with those that wait
_IDLE_SECONDS = 5.0  # after which the thread ends


class Publishing(Protocol):
    """A coordinated store. place: of its table."""

    place: str

    def publish(self) -> None:
        """Publish what is ratified and is not yet; what fails is logged."""


class _Publisher:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Publishing] = {}
        self._at_work = 0
        self._thread: threading.Thread | None = None

    def add(self, store: Publishing) -> None:
        with self._changed:
            self._waiting[store.place] = store
            self._changed.notify_all()
            has_thread = self._thread is not None or self._start()
        if not has_thread:
            self._publish_waiting()

    def _start(self) -> bool:
        """Whether there is a thread now. Where none can be had, as in a process that ends, the commit stands nevertheless."""
        thread = threading.Thread(target=self._run, name="delta_py-publication", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _log.info("no thread could be started, and commits are published without one: %s", error)
            return False
        self._thread = thread
        return True

    def finish(self) -> None:
        self._publish_waiting()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work)

    def _run(self) -> None:
        try:
            while self._has_work():
                time.sleep(_GATHER_SECONDS)
                self._publish_waiting()
        except BaseException:
            self._thread = None
            raise

    def _has_work(self) -> bool:
        with self._changed:
            if self._changed.wait_for(lambda: self._waiting, _IDLE_SECONDS):
                return True
            self._thread = None  # under the lock: who adds something from here on starts another
            return False

    def _publish_waiting(self) -> None:
        with self._changed:
            stores = list(self._waiting.values())
            self._waiting.clear()
            self._at_work += 1
        try:
            for store in stores:
                store.publish()
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()


_publisher = _Publisher()


def later(store: Publishing) -> None:
    """Have a table's ratified commits published before long."""
    _publisher.add(store)


def finish() -> None:
    """Publish now what waits, and return when all of it was tried."""
    _publisher.finish()


def _in_child() -> None:
    global _publisher
    _publisher = _Publisher()  # what waits is the parent's


atexit.register(finish)
os.register_at_fork(after_in_child=_in_child)
