"""Shows the progress of a long command on a terminal.

    with progress("VACUUM", total=3_000) as step:
        ...
        step(1)                         # from any thread

A bar on stderr, if that is a terminal, rich is installed (`pip install 'pydelta-lake[progress]'`), and the environment does not
set PYDELTA_PROGRESS=0. It appears after half a second, and disappears when the command ends. If several commands run at once,
only the first one has a bar. Nothing is written otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

SETTING = "PYDELTA_PROGRESS"
_OFF = ("0", "false", "off", "no")
_SHOWN_AFTER_SECONDS = 0.5

_shown = Lock()  # held by the command whose bar is shown


@contextmanager
def progress(what: str, total: int, unit: str = "files") -> Iterator[Callable[[int], None]]:
    """what: the command. total: the number of steps. Returns a function that counts finished steps."""
    if not _is_wanted() or total < 2:
        yield _pass_over
        return
    bar = _Bar(f"{what}, {unit}", total)
    try:
        yield bar.advance
    finally:
        bar.end()


def _pass_over(steps: int) -> None:
    """Counts nothing, because no bar is shown."""


def _is_wanted() -> bool:
    if os.environ.get(SETTING, "").lower() in _OFF:
        return False
    stream = sys.stderr
    return stream is not None and stream.isatty() and importlib.util.find_spec("rich") is not None


class _Bar:
    def __init__(self, text: str, total: int) -> None:
        self._text, self._total = text, total
        self._began, self._lock = time.monotonic(), Lock()
        self._done = 0
        self._bar: Progress | None = None

    def advance(self, steps: int) -> None:
        with self._lock:
            self._done += steps
            if self._bar is None and time.monotonic() - self._began >= _SHOWN_AFTER_SECONDS and _shown.acquire(blocking=False):
                self._bar = _started(self._text, self._total)
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=self._done)

    def end(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
                _shown.release()


def _started(text: str, total: int) -> Progress:
    from rich.console import Console  # its import takes too long for a command without a bar
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(text, total=total)
    bar.start()
    return bar
