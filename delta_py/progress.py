"""The progress of a long command: one line on a terminal or in a notebook, from the start of the command to its end.

    with progress("VACUUM", "files"):             # the command; how much work it has becomes known later
        ...
        with steps(3_000, "files") as count:      # here, or in a function that is called inside
            count(1)                              # from any thread

Work is counted in the unit of the command. Work in other units counts only in a `part` of known size: the steps inside a part are
a fraction of it, whatever their unit.

    with progress("OPTIMIZE", "bytes"), part(3_000_000, "bytes"):
        with share(0.1), steps(20, "samples") as count: ...
        with share(0.9), steps(7_000, "rows") as count: ...

The line is shown if stderr is a terminal or the program is a notebook, if rich is installed (the extra `progress`), and if the
environment does not set PYDELTA_PROGRESS=0. It appears after half a second. If several commands run at once, only the first one
has a line. Errors of the line are logged and never reach the command.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TextIO

from delta_py.types.sizes import byte_unit

if TYPE_CHECKING:
    from rich.progress import Progress

SETTING = "PYDELTA_PROGRESS"
_OFF = ("0", "false", "off", "no")
_SHOWN_AFTER_SECONDS = 0.5
REFRESH_SECONDS = 0.2
"""How often samples are taken, and the line is drawn."""
_BAR_WIDTH = 20  # characters
_MOST_SECONDS_TO_END = 2.0  # how long a finished command waits for the thread that draws its line

_line_lock = Lock()  # held while a command shows its line, so that there is only one line
_log = logging.getLogger("delta_py")


# ---------------------------------------------------------------- for commands


@contextmanager
def progress(what: str, unit: str) -> Iterator[None]:
    """Show the progress of a command. what: the command's name. unit: what its work is counted in: bytes, files or tasks. A
    command inside another one only adds to the work of the outer one."""
    if _current.get() is not None or not _is_enabled() or not _line_lock.acquire(blocking=False):
        yield
        return
    try:
        work = _Work(what, unit)
        with _with_current_part(_Part(work, None)), _Line(work):
            yield
            work.finish()
    finally:
        _line_lock.release()


@contextmanager
def part(amount: float, unit: str) -> Iterator[None]:
    """Add work to the command: `amount` in the command's unit. The steps inside the block are fractions of this work, and at the
    end of the block all of it counts as done. Does nothing if the command counts in another unit, or if the block is already
    inside a part."""
    command_part = _current.get()
    if command_part is None or not command_part.counts_in(unit) or amount <= 0:
        yield
        return
    inner_part = command_part.new_part(amount)
    with _with_current_part(inner_part):
        yield
        inner_part.fill(1)


@contextmanager
def share(fraction: float) -> Iterator[None]:
    """The steps inside the block are this fraction of the current part, from 0 to 1. Does nothing outside of a part, and if no
    line is shown."""
    outer_part = _current.get()
    if outer_part is None or outer_part.amount is None:
        yield
        return
    inner_part = _Part(outer_part.work, outer_part.amount * fraction, outer_part)
    with _with_current_part(inner_part):
        yield
        inner_part.fill(1)


@contextmanager
def steps(total: float, unit: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that counts finished steps. total: their number, which may be an estimate. Outside of a part, the steps
    become work of the command, if they have the command's unit; if not, the function counts nothing."""
    outer_part = _current.get()
    if outer_part is None or total <= 0 or not (outer_part.amount is not None or outer_part.counts_in(unit)):
        yield _count_nothing
        return
    # Inside of a part, the steps fill that part; otherwise they become a part of their own.
    counted_part = outer_part if outer_part.amount is not None else outer_part.new_part(total)
    finished_total, lock = 0.0, Lock()

    def count(finished: float) -> None:
        nonlocal finished_total
        with lock:
            finished_total += finished
        counted_part.fill(finished_total / total)

    yield count
    counted_part.fill(1)


def count_listed_files(files: int) -> None:
    """Count more listed files. The line shows the number of listed files as long as the command's work is not known."""
    current = _current.get()
    if current is not None:
        current.work.listed += files


@contextmanager
def sampled(sample: Callable[[], tuple[float, float]]) -> Iterator[None]:
    """While the block runs, the thread that draws the line calls `sample` at each refresh, to learn how much is done. sample:
    returns the number of finished tasks, and the number of all known tasks."""
    current = _current.get()
    assert current is not None, "nobody sees the samples"  # callers ask can_be_sampled first
    take_sample = current.make_sampler(sample)
    current.work.samplers.append(take_sample)
    current.is_sampled = True
    try:
        yield
    finally:
        current.is_sampled = False
        current.work.samplers.remove(take_sample)


def can_be_sampled() -> bool:
    """Whether a command shows its progress, and its current part can count tasks and is not sampled yet."""
    current = _current.get()
    return current is not None and not current.is_sampled and (current.amount is not None or current.counts_in("tasks"))


def _count_nothing(finished: float) -> None:
    """Counts nothing, because nothing is shown."""


def _is_enabled() -> bool:
    if os.environ.get(SETTING, "").lower() in _OFF:
        return False
    stream = sys.stderr
    return (_is_notebook() or (stream is not None and stream.isatty())) and importlib.util.find_spec("rich") is not None


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


# ---------------------------------------------------------------- the work of a command


class _Work:
    """How much work a command has done, and how much it has to do as far as this is known. done, total: in the command's unit;
    total is 0 while nothing is known. listed: the number of listed files. samplers: functions that update the numbers; the
    thread of the line calls them."""

    def __init__(self, what: str, unit: str) -> None:
        self.what, self.unit = what, unit
        self.done, self.total = 0.0, 0.0
        self.listed = 0
        self.lock = Lock()
        self.samplers: list[Callable[[], None]] = []
        self._began = time.monotonic()
        self._known_since = self._began  # `expect` and `set` move it to when work became known: from then on the speed counts

    def expect(self, amount: float) -> None:
        """Add work that is still to be done."""
        with self.lock:
            if not self.total:
                self._known_since = time.monotonic()
            self.total += amount

    def set(self, done: float, total: float) -> None:
        """Replace both numbers; `done` never becomes less."""
        if not self.total and total:
            self._known_since = time.monotonic()
        with self.lock:
            self.done = max(self.done, done)
            self.total = max(self.done, total)

    def finish(self) -> None:
        """Count all known work as done."""
        with self.lock:
            self.done = self.total

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._began

    def status(self) -> str:
        """The text of the line after the bar."""
        elapsed = _duration_text(self.elapsed_seconds)
        with self.lock:
            done, total = self.done, self.total
        if not total:
            return f"{self.listed:,} files listed, {elapsed}" if self.listed else elapsed
        amount = _amounts_text(done, total, self.unit)
        if done <= 0:
            return f"{amount}, {elapsed}"
        per_second = done / max(time.monotonic() - self._known_since, 0.001)
        end = elapsed if done >= total else f"{_duration_text((total - done) / per_second)} left"
        return f"{amount}, {_rate_text(per_second, self.unit)}, {end}"


class _Part:
    """A part of a command's work. amount: how much work it is, in the unit of the command; None for the whole command, whose work
    becomes known step by step. outer: the part that contains this one, if this one is a share of it."""

    def __init__(self, work: _Work, amount: float | None, outer: _Part | None = None) -> None:
        self.work, self.amount, self._outer = work, amount, outer
        self.is_sampled = False
        self._filled = 0.0

    def counts_in(self, unit: str) -> bool:
        """Whether work in this unit can be added to the command here: not inside of a part, whose amount is fixed."""
        return self.amount is None and self.work.unit == unit

    def new_part(self, amount: float) -> _Part:
        """Add work to the command, and return the part that stands for it."""
        self.work.expect(amount)
        return _Part(self.work, amount)

    def fill(self, fraction: float) -> None:
        """Record that this fraction of the part, from 0 to 1, is done. A smaller fraction than before changes nothing."""
        assert self.amount is not None, "the amount of this work is not known"
        with self.work.lock:
            self._add(max(0.0, self.amount * min(fraction, 1) - self._filled))

    def _add(self, amount: float) -> None:
        """Add finished work to this part and to the parts around it. The outermost part adds it to the work of the command, which
        the line shows."""
        self._filled += amount
        if self._outer is None:
            self.work.done += amount
        else:
            self._outer._add(amount)

    def make_sampler(self, sample: Callable[[], tuple[float, float]]) -> Callable[[], None]:
        """Return a function that calls `sample` and counts the result. sample: returns how much is done, and of how much."""

        def take_sample() -> None:
            """Show the sampled numbers as they are if this is the whole command, and else as a fraction of this part."""
            done, total = sample()
            if self.amount is None:
                self.work.set(done, total)
            elif total:
                self.fill(done / total)

        return take_sample


_current: ContextVar[_Part | None] = ContextVar("the part of a command that runs", default=None)


@contextmanager
def _with_current_part(inner_part: _Part) -> Iterator[None]:
    """Let the steps and samples in the block count for this part."""
    token = _current.set(inner_part)
    try:
        yield
    finally:
        _current.reset(token)


# ---------------------------------------------------------------- the line


class _Line:
    """Shows the work of a command while the block runs. A thread takes the samples and draws, so that the line also moves while
    the command waits."""

    def __init__(self, work: _Work) -> None:
        self._work, self._stream = work, sys.stderr
        self._ended = Event()
        self._thread = Thread(target=self._run, name="delta_py-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join(_MOST_SECONDS_TO_END)

    def _run(self) -> None:
        try:
            self._draw_until_the_end()
        except Exception:
            _log.info("The progress of %s is not shown any more", self._work.what, exc_info=True)

    def _draw_until_the_end(self) -> None:
        """Take samples and draw the line at each refresh, until the block ends. The first line appears after half a second, so a
        short command shows none."""
        drawing: _Terminal | _Notebook | None = None
        try:
            while not self._ended.wait(REFRESH_SECONDS):
                for take_sample in list(self._work.samplers):
                    take_sample()
                if drawing is None and self._work.elapsed_seconds >= _SHOWN_AFTER_SECONDS:
                    drawing = _Notebook(self._work) if _is_notebook() else _Terminal(self._work, self._stream)
                if drawing is not None:
                    drawing.draw()
        finally:
            if drawing is not None:
                drawing.end()


class _Terminal:
    """The line at the end of a terminal's text. When the command ends, the line stays there as text."""

    def __init__(self, work: _Work, stream: TextIO) -> None:
        from rich.console import Console

        self._work, self._bar = work, _rich_bar(work, Console(file=stream))
        self._bar.start()

    def draw(self) -> None:
        _update(self._bar, self._work)
        self._bar.refresh()

    def end(self) -> None:
        _update(self._bar, self._work)
        self._bar.stop()


class _Notebook:
    """The line as an output of a notebook's cell."""

    def __init__(self, work: _Work) -> None:
        from IPython.display import display

        self._work, self._bar = work, _rich_bar(work, None)
        self._display = display(self._bar, display_id=True)

    def draw(self) -> None:
        _update(self._bar, self._work)
        self._display.update(self._bar)

    def end(self) -> None:
        self.draw()


def _rich_bar(work: _Work, console: Any) -> Progress:
    """A bar of rich that draws only when its `refresh` is called. console: where it draws; None for rich's own console."""
    from rich.progress import BarColumn, Progress, TextColumn  # its import takes too long for a command without a line

    columns = (TextColumn("{task.description}"), BarColumn(_BAR_WIDTH), TextColumn("{task.fields[status]}", markup=False))
    # Text that the program prints meanwhile goes where the program sends it.
    bar = Progress(*columns, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    bar.add_task(work.what, total=None, status="")
    _update(bar, work)
    return bar


def _update(bar: Progress, work: _Work) -> None:
    bar.update(bar.task_ids[0], completed=work.done, total=work.total or None, status=work.status())


# ---------------------------------------------------------------- numbers as text


def _duration_text(seconds: float) -> str:
    """`1:02:03`, or `2:03` for less than an hour."""
    minutes, seconds_part = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_part:02}" if hours else f"{minutes}:{seconds_part:02}"


def _amounts_text(done: float, total: float, unit: str) -> str:
    """How much is done, and of how much."""
    if unit != "bytes":
        return f"{int(done):,}/{round(total):,} {unit}"
    scale, name = byte_unit(total)
    digits = 0 if scale == 1 else 1
    return f"{done / scale:,.{digits}f}/{total / scale:,.{digits}f} {name}"


def _rate_text(per_second: float, unit: str) -> str:
    """The speed, per minute if it is less than one per second."""
    if unit == "bytes":
        scale, name = byte_unit(per_second)
        return f"{per_second / scale:,.1f} {name}/s"
    if per_second >= 1:
        return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"
    return f"{per_second * 60:.1f}/min"
