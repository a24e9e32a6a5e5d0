"""Connections to one database, used again: each by one thread at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from delta_py.errors import DeltaError


class Connections:
    """connect: makes one. What a process has inherited is left to its parent."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect, self._pid = connect, os.getpid()
        self._free: list[Any] = []

    @contextlib.contextmanager
    def one(self) -> Iterator[Any]:
        """A connection that nobody else has meanwhile. One under which the block fails is closed, or rolled
        back."""
        if self._pid != os.getpid():
            self._free, self._pid = [], os.getpid()
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
