"""Connections to one database, used again: each by one thread at a time.

No process inherits one: a fork waits until no connection is in use, and closes all of them. What a database's library keeps of a
connection beside it, such as SQLite's locks, would be inherited too, and would not be true there.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from delta_py.errors import DeltaError

_all: weakref.WeakSet[Connections] = weakref.WeakSet()
_FORK_SECONDS = 60.0  # for transactions that are under way


class Connections:
    """connect: makes one."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._free: list[Any] = []
        self._in_use = 0
        self._turn = threading.Condition()
        _all.add(self)

    @contextlib.contextmanager
    def one(self) -> Iterator[Any]:
        """A connection that nobody else has meanwhile. One under which the block fails is closed, or rolled back."""
        with self._turn:
            self._in_use += 1
        try:
            with self._taken() as connection:
                yield connection
        finally:
            with self._turn:
                self._in_use -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def _taken(self) -> Iterator[Any]:
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except DeltaError:  # the ledger's own answer: the connection is well
            connection.rollback()
            self._free.append(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._free.append(connection)

    def forget(self) -> None:
        """Close those that nobody uses: they may be of a server that is gone."""
        while self._free:
            self._free.pop().close()

    def hold(self) -> None:
        """Wait until none is in use, close all, and let none be made before `release`."""
        self._turn.acquire()
        self._turn.wait_for(lambda: not self._in_use, _FORK_SECONDS)
        self.forget()

    def release(self) -> None:
        self._turn.release()


_held: list[Connections] = []


def _before_fork() -> None:
    for connections in list(_all):
        connections.hold()
        _held.append(connections)


def _after_fork() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    for connections in _held:
        connections._in_use = 0  # by threads that the child does not have
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
