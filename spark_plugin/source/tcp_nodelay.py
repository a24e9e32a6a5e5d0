"""Tasks in Spark's Python workers that do not wait for 40 ms before their first row, nor search for garbage while they import.

    class Reader(PromptTask, DataSourceReader)         # unpickled in each task
    answer_promptly()                                  # first in a function that a task calls

Spark tells a worker what a task is, and then sends the rows, or the partition that is to be read. The connection holds back such
few bytes until those before them are acknowledged (Nagle's algorithm), and Linux acknowledges 40 ms later unless the program that
reads has something to send, or asks for haste (tcp(7), TCP_QUICKACK). A task of ours asks as soon as it is there.
What a worker imports for its first task stays for its life: Python would look through all that it has for garbage meanwhile, a
fourth of the import's time.
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
    """What Spark pickles into each task, and a task unpickles before it has rows."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        usual: Any = super().__reduce_ex__(protocol)
        _, _, *state = usual
        return _new_task, (type(self).__module__, type(self).__qualname__), *state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        answer_promptly()


def _new_task(module: str, name: str) -> Any:
    """An object of a class without its state; the class, and all that it needs, is imported here."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        kind = getattr(import_module(module), name)
    finally:
        if was_on:
            gc.enable()
    return kind.__new__(kind)


def answer_promptly() -> None:
    """Has what came over this process's TCP connections acknowledged now. Without effect where the system has no such option or
    does not list open files, and over Unix sockets (spark.python.unix.domain.socket.enabled), which hold nothing back."""
    if _QUICKACK is None:
        return
    try:
        open_files = os.listdir(_OPEN_FILES)
    except OSError:
        return
    for name in open_files:
        _acknowledge(int(name), _QUICKACK)


def _acknowledge(file: int, option: int) -> None:
    """Of a file that is no such connection nothing is changed."""
    try:
        # Python leaves the mode of a socket as it is that is said to be non-blocking. That of others it sets where the user has a
        # default timeout, and it is the mode of Spark's own object for the connection too.
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0, file)
    except OSError:  # no socket, or that of the listing itself
        return
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    except OSError:  # of another kind
        return
    finally:
        connection.detach()
