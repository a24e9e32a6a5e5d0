"""A pool of connections to one database. One thread at a time uses each connection.

A forked process inherits no connection: a fork waits until no connection is in use, and closes all of them. The state that a
database's library has for a connection, such as SQLite's locks, would be inherited too, and would be wrong in the child.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from delta_py.errors import DeltaError

_all_pools: weakref.WeakSet[Connections] = weakref.WeakSet()  # the pools of this process, which a fork pauses
_FORK_SECONDS = 60.0  # how long a fork waits for open transactions


class Connections:
    """The pool of connections to one database. connect: opens a connection."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._unused: list[Any] = []
        self._in_use = 0
        self._condition = threading.Condition()
        _all_pools.add(self)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection that no other thread uses during the block. If the block fails, the connection is closed or rolled back.
        During a fork, this waits until `release`."""
        with self._condition:
            self._in_use += 1
        try:
            with self._take_connection() as connection:
                yield connection
        finally:
            with self._condition:
                self._in_use -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def _take_connection(self) -> Iterator[Any]:
        """A free connection, or a new one. After an error of the database it is closed; after an error of the ledger it is
        used again.
        """
        try:
            connection = self._unused.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except DeltaError:  # the ledger raised this: the connection itself is fine
            connection.rollback()
            self._unused.append(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._unused.append(connection)

    def forget(self) -> None:
        """Close the unused connections, for example because their server was restarted."""
        while self._unused:
            self._unused.pop().close()

    def hold(self) -> None:
        """Wait until no connection is in use, close all, and allow no new one until `release`."""
        self._condition.acquire()
        self._condition.wait_for(lambda: not self._in_use, _FORK_SECONDS)
        self.forget()

    def release(self) -> None:
        """End what `hold` began: connections are allowed again."""
        self._condition.release()


_paused_for_fork: list[Connections] = []


def _before_fork() -> None:
    """Close all connections, so that the child inherits none, and allow no new one until the fork is over."""
    for connections in list(_all_pools):
        connections.hold()
        _paused_for_fork.append(connections)


def _after_fork() -> None:
    """Allow connections again."""
    while _paused_for_fork:
        _paused_for_fork.pop().release()


def _after_fork_in_child() -> None:
    """Allow connections in the child. The fork may have happened while connections were in use, if it waited for too long."""
    for connections in _paused_for_fork:
        connections._in_use = 0  # the threads that used them do not exist in the child
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
