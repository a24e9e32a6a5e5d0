"""Work in a child process, in bounded time and memory.

    result = in_child(lambda: read(table))      # Result: the value, or how it failed

The process that forks must never let Arrow start threads, because a fork would lose them: only children read tables.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

SECONDS = 30
MEMORY_BYTES = 2 << 30
_ADDRESSES_BYTES = 6 << 30


@dataclass(frozen=True)
class Result:
    """value: the result of the work, converted to JSON and back. failure: None, or raw (an exception, in detail), memory, hang or
    crash."""

    value: Any = None
    failure: str | None = None
    detail: str = ""


def in_child(work: Callable[[], Any]) -> Result:
    reading, writing = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Result(failure="hang" if number == signal.SIGALRM else "crash", detail=f"signal {number}")
    if usage.ru_maxrss * 1024 > MEMORY_BYTES:
        return Result(failure="memory", detail=f"{usage.ru_maxrss // 1024} MB")
    if time.monotonic() - started > SECONDS:
        return Result(failure="hang", detail=f"{time.monotonic() - started:.0f} s")
    return Result(**json.loads(text))


def _work(work: Callable[[], Any], writing: int) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES_BYTES, _ADDRESSES_BYTES))
    signal.alarm(SECONDS)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        result = Result(work())
    except MemoryError:
        result = Result(failure="memory", detail="MemoryError")
    except BaseException as error:
        result = Result(failure="raw", detail=_told(error))
    with open(writing, "wb") as pipe:
        pipe.write(json.dumps(asdict(result)).encode())
    os._exit(0)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    places = " ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
    return f"{type(error).__name__}: {str(error)[:200]} at {places}"
