"""Tasks in Spark's Python workers that do not wait for 40 ms before their first row.

    class Reader(PromptTask, DataSourceReader)         # unpickled in each task
    answer_promptly()                                  # first in a function that a task calls

Spark tells a worker what a task is, and then sends the rows, or the partition that is to be read. The connection holds back such
few bytes until those before them are acknowledged (Nagle's algorithm), and Linux acknowledges 40 ms later unless the program that
reads has something to send, or asks for haste (tcp(7), TCP_QUICKACK). A task of ours asks as soon as it is there.
"""

from __future__ import annotations

import os
import socket
import stat
from typing import Any

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_OPEN_FILES = "/proc/self/fd"


class PromptTask:
    """What Spark pickles into each task, and a task unpickles before it has rows."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        answer_promptly()


def answer_promptly() -> None:
    """Has what came over this process's TCP connections acknowledged now. Without effect where the system has no such option, and
    over Unix sockets (spark.python.unix.domain.socket.enabled), which hold nothing back."""
    if _QUICKACK is None:
        return
    for name in os.listdir(_OPEN_FILES):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # that of the listing itself
            continue
        _acknowledge(descriptor, _QUICKACK)


def _acknowledge(descriptor: int, option: int) -> None:
    """Closes the descriptor."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return
    with socket.socket(fileno=descriptor) as connection:
        if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)
