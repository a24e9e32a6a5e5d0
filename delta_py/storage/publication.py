"""Publish ratified commits in the background: one thread of the process publishes all waiting commits. If no thread can be
started, the writers publish them.

    publish_later(store)                  # store.publish() soon
    finish()                      # publish everything now

A process that ends normally publishes the remaining commits. If a process is killed, the table's next writer publishes them.
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

_GATHER_SECONDS = 0.02  # commits that arrive within this time are published together
_IDLE_SECONDS = 5.0  # the idle thread ends after this time


class Publishing(Protocol):
    """A coordinated store. place: of its table."""

    place: str

    def publish(self) -> None:
        """Publish the ratified commits that are not published yet; failures are logged."""


class _Publisher:
    """The tables with commits to publish, and the thread that publishes them. `_waiting_stores`: the stores of these tables, by
    the table's place. `_publishing_threads`: how many threads publish now; callers without a thread publish too. `_thread`: None
    if it has not begun, or has ended."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting_stores: dict[str, Publishing] = {}
        self._publishing_threads = 0
        self._thread: threading.Thread | None = None

    def add(self, store: Publishing) -> None:
        """Let the thread publish the store's commits; if it cannot be started, publish them now."""
        with self._condition:
            self._waiting_stores[store.place] = store
            self._condition.notify_all()
            has_thread = self._thread is not None or self._start()
        if not has_thread:
            self._publish_waiting()

    def _start(self) -> bool:
        """Start the thread. Returns whether it runs now. If none can be started, for example while the process ends, the commit
        has still succeeded.
        """
        thread = threading.Thread(target=self._run, name="delta_py-publication", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _log.info("no thread could be started, and commits are published without one: %s", error)
            return False
        self._thread = thread
        return True

    def finish(self) -> None:
        """Publish the waiting commits, and wait until other threads have published the commits that they took."""
        self._publish_waiting()
        with self._condition:
            self._condition.wait_for(lambda: not self._publishing_threads)

    def _run(self) -> None:
        """The thread: publish until nothing has come for _IDLE_SECONDS. After an error, the next `add` starts another thread."""
        try:
            while self._has_work():
                time.sleep(_GATHER_SECONDS)
                self._publish_waiting()
        except BaseException:
            self._thread = None
            raise

    def _has_work(self) -> bool:
        """Wait for commits. Returns False, and gives up the thread, if none came for _IDLE_SECONDS."""
        with self._condition:
            if self._condition.wait_for(lambda: self._waiting_stores, _IDLE_SECONDS):
                return True
            self._thread = None  # under the lock: a later `add` starts another thread
            return False

    def _publish_waiting(self) -> None:
        """Publish the waiting commits in this thread, unless another thread has taken them already."""
        with self._condition:
            stores = list(self._waiting_stores.values())
            self._waiting_stores.clear()
            self._publishing_threads += 1
        try:
            for store in stores:
                store.publish()
        finally:  # `finish` waits until no thread is at work
            with self._condition:
                self._publishing_threads -= 1
                self._condition.notify_all()


_publisher = _Publisher()


def publish_later(store: Publishing) -> None:
    """Have a table's ratified commits published soon."""
    _publisher.add(store)


def finish() -> None:
    """Publish all waiting commits now, and return when each was tried."""
    _publisher.finish()


def _reset_in_child() -> None:
    global _publisher
    _publisher = _Publisher()  # the waiting commits belong to the parent


atexit.register(finish)
os.register_at_fork(after_in_child=_reset_in_child)
