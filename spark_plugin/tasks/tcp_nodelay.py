"""Tasks in Spark's Python workers that do not wait 40 ms before their first row, and do not collect garbage while they import.

    class Reader(PromptTask, DataSourceReader)         # unpickled in each task
    answer_promptly()                                  # first in a function that a task calls

Spark sends a worker the description of a task, and then the rows, or the partition to read. The connection delays such small
messages until the earlier ones are acknowledged (Nagle's algorithm). Linux acknowledges 40 ms later, unless the reading program
sends something itself or requests a quick acknowledgement (tcp(7), TCP_QUICKACK). A pydelta task requests it as soon as it
starts. What a worker imports for its first task stays for its life. Otherwise Python would search all of it for garbage during
the import, which takes a fourth of the import's time.
"""

from __future__ import annotations

import gc
import os
import socket
from importlib import import_module
from typing import Any

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_OPEN_FILES = "/proc/self/fd"


class PromptTask:
    """The base of objects that Spark pickles into each task. A task unpickles its object before it receives rows, and so
    acknowledges data promptly from then on, and imports the object's class without garbage collections."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        default_reduction: Any = super().__reduce_ex__(protocol)
        _, _, *state = default_reduction  # _new_task replaces the function and the arguments that make the object
        return _new_task, (type(self).__module__, type(self).__qualname__), *state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        answer_promptly()


def _new_task(module: str, name: str) -> Any:
    """Return an object of a class without its state. This imports the class and everything that it needs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        kind = getattr(import_module(module), name)
    finally:
        if was_on:
            gc.enable()
    return kind.__new__(kind)


def answer_promptly() -> None:
    """Acknowledge at once all data that arrived on this process's TCP connections. Has no effect if the system has no such
    option or does not list open files, and over Unix sockets (spark.python.unix.domain.socket.enabled), which delay nothing.
    """
    if _QUICKACK is None:
        return
    try:
        open_files = os.listdir(_OPEN_FILES)
    except OSError:
        return
    for name in open_files:
        _acknowledge(int(name), _QUICKACK)


def _acknowledge(file: int, option: int) -> None:
    """Set the option on a TCP connection; any other file is not changed."""
    try:
        # Python does not change the mode of a socket that is declared non-blocking. It sets the mode of other sockets if the user
        # has a default timeout, and that mode would also apply to Spark's own object for the connection.
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0, file)
    except OSError:  # no socket, or the file of the listing itself
        return
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    except OSError:  # another kind of socket
        return
    finally:
        connection.detach()
