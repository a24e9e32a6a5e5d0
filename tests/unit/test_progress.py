"""Progress of long commands: shown on a terminal or in a notebook, if the command takes a while, and nowhere else."""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py import progress as module
from delta_py.progress import SETTING, can_be_sampled, count_listed_files, part, progress, sampled, share, steps
from tests.support.documents.terminals import counts_in, screen_of, shown_lines, written_to_terminal

ROOT = Path(__file__).parents[2]
SLOW_VACUUM = """
import time
from delta_py.progress import progress, steps
with progress("VACUUM", "files"), steps(1_000, "files") as count:
    for _ in range(20):
        time.sleep(0.06)
        count(50)
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Replaces stderr while `seen` runs: pytest replaces stderr after a fixture has set it."""
    new_terminal = Terminal()
    monkeypatch.setattr(module, "_SHOWN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv(SETTING, raising=False)
    yield new_terminal
    assert module._line_lock.acquire(blocking=False), "the line has ended"
    module._line_lock.release()


def seen(stream: Any, action: Callable[[], object]) -> str:
    with redirect_stderr(stream):
        action()
    return stream.getvalue() if stream is not None else ""


def wait_until_drawn(terminal: Terminal) -> None:
    """More than once: the drawing that ends first may have begun before."""
    for _ in range(3):
        length, end = len(terminal.getvalue()), time.monotonic() + 10
        while len(terminal.getvalue()) == length:
            assert time.monotonic() < end, "the line is not drawn"
            time.sleep(0.002)


def work(count: int = 20) -> None:
    with progress("VACUUM", "files"), steps(count, "files") as step, ThreadPoolExecutor(4) as pool:
        list(pool.map(step, [1] * count))
        time.sleep(0.2)  # so that the line is drawn


@pytest.mark.parametrize("columns", [80, 200])
def test_line_grows_to_its_total_and_ends(columns: int) -> None:
    text = written_to_terminal(SLOW_VACUUM, columns, cwd=ROOT)
    counts = counts_in(text, "files")
    assert len(counts) > 3 and counts == sorted(counts) and {total for _, total in counts} == {1_000}
    assert min(counts[-1]) == 1_000
    line, cursor = screen_of(text)
    assert line.startswith("VACUUM ━") and "1,000/1,000 files" in line and cursor == ""
    assert max(map(len, shown_lines(text))) < columns


def test_line_shows_rate_and_time_left() -> None:
    (*earlier, last) = shown_lines(written_to_terminal(SLOW_VACUUM, 80, cwd=ROOT))
    assert any("/s, 0:0" in line and line.rstrip().endswith("left") for line in earlier)
    assert last.rstrip().endswith(("/s, 0:01", "/s, 0:02"))


def test_line_stays_where_a_failed_command_stopped(terminal: Terminal) -> None:
    def fail() -> None:
        with pytest.raises(ZeroDivisionError), progress("FSCK", "files"), steps(3, "files") as step:
            step(1)
            wait_until_drawn(terminal)
            step(1 // 0)

    shown = seen(terminal, fail)
    assert "FSCK" in screen_of(shown)[0] and "1/3 files" in screen_of(shown)[0] and screen_of(shown)[-1] == ""


def test_first_of_two_commands_is_shown(terminal: Terminal) -> None:
    def both() -> None:
        with progress("OPTIMIZE", "tasks"), steps(3, "tasks") as step, ThreadPoolExecutor(1) as pool:
            step(1)
            pool.submit(work).result()
            step(2)

    shown = seen(terminal, both)
    assert "OPTIMIZE" in shown and "3/3 tasks" in shown and "VACUUM" not in shown


def test_command_in_a_command_adds_to_its_work(terminal: Terminal) -> None:
    def both() -> None:
        with progress("RESTORE", "files"), steps(3, "files") as step:
            step(3)
        with progress("RESTORE", "files"):
            work()
            work()

    shown = seen(terminal, both)
    assert "40/40 files" in shown and "VACUUM" not in shown


@pytest.mark.parametrize("value", ["0", "false", "OFF"])
def test_setting_turns_it_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(SETTING, value)
    assert seen(terminal, work) == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["file", "none"])
def test_nothing_is_written_to_what_is_no_terminal(terminal: Terminal, stream: io.StringIO | None) -> None:
    assert seen(stream, work) == ""


def test_quick_command_and_one_without_rich_show_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "_SHOWN_AFTER_SECONDS", 60.0)
        assert seen(terminal, work) == ""
    with monkeypatch.context() as patch:
        patch.setattr(module.importlib.util, "find_spec", lambda name: None)
        assert seen(terminal, work) == ""
    assert seen(terminal, work) != ""


def test_shares_are_fractions_of_a_part(terminal: Terminal) -> None:
    def optimize() -> None:
        with progress("OPTIMIZE", "bytes"):
            with steps(7, "rows") as count:  # not bytes, and in no part
                count(7)
            with part(4 << 20, "bytes"):
                with share(0.25), steps(5, "samples") as count:
                    count(2)
                    wait_until_drawn(terminal)
                wait_until_drawn(terminal)
                with share(0.75), steps(10, "rows") as count:
                    count(5)
                    wait_until_drawn(terminal)
                    count(50)  # more than expected
                    wait_until_drawn(terminal)
            wait_until_drawn(terminal)

    counts = dict.fromkeys(counts_in(seen(terminal, optimize), "MiB"))
    assert list(counts) == [(0.4, 4.0), (1.0, 4.0), (2.5, 4.0), (4.0, 4.0)]


class Samples:
    """Each of these once, and then the last one again and again."""

    def __init__(self, *samples: tuple[int, int]) -> None:
        self._coming, self._last = iter(samples), samples[-1]
        self.are_taken = Event()

    def take(self) -> tuple[int, int]:
        sample = next(self._coming, None)
        if sample is None:
            self.are_taken.set()
        return self._last if sample is None else sample


def test_samples_of_a_part_never_go_back(terminal: Terminal) -> None:
    samples = Samples((0, 0), (1, 4), (1, 8), (6, 8))

    def clone() -> None:
        with progress("CLONE", "files"), part(100, "files"), sampled(samples.take):
            assert not can_be_sampled(), "somebody samples it already"
            assert samples.are_taken.wait(10)

    counts = [done for done, _ in counts_in(seen(terminal, clone), "files")]
    assert counts == sorted(counts) and {25, 75, 100} <= set(counts)


def test_samples_of_a_command_are_its_work(terminal: Terminal) -> None:
    samples = Samples((0, 2), (1, 2), (3, 10), (4, 7))

    def merge() -> None:
        with progress("MERGE", "tasks"):
            assert can_be_sampled()
            with sampled(samples.take):
                assert samples.are_taken.wait(10)

    counts = counts_in(seen(terminal, merge), "tasks")
    assert [done for done, _ in counts] == sorted(done for done, _ in counts)
    assert (4, 7) in counts and counts[-1] == (7, 7)


def test_listed_files_are_shown_while_the_work_is_unknown(terminal: Terminal) -> None:
    def vacuum() -> None:
        with progress("VACUUM", "files"):
            count_listed_files(1_200)
            wait_until_drawn(terminal)

    assert "1,200 files listed" in seen(terminal, vacuum)


def test_error_of_the_line_does_not_reach_the_command(terminal: Terminal, caplog: pytest.LogCaptureFixture) -> None:
    def merge() -> None:
        with progress("MERGE", "tasks"), sampled(lambda: (1 // 0, 1)):
            time.sleep(0.2)

    with caplog.at_level(logging.INFO, "delta_py"):
        assert seen(terminal, merge) == ""
    assert "The progress of MERGE is not shown any more" in caplog.text and "ZeroDivisionError" in caplog.text


def test_notebook_has_one_output_that_changes(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[str] = []

    class Handle:
        def update(self, shown: Any) -> None:
            outputs.append(shown._repr_mimebundle_([], [])["text/html"])

    def display(shown: Any, *, display_id: bool) -> Handle:
        assert display_id
        return Handle()

    ipython, parts = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    parts.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    assert seen(io.StringIO(), work) == ""
    assert outputs[-1].startswith("<pre") and "VACUUM" in outputs[-1] and "20/20 files" in outputs[-1]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "table")
    for number in range(3):
        write_delta(path, pa.table({"id": [number]}), mode="append")
    return DeltaTable(path)


@pytest.mark.parametrize(
    ("unit", "shown", "run"),
    [
        ("files", "3/3 files", lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False)),
        ("bytes", "bytes", lambda table: table.optimize.compact()),
        ("bytes", "bytes", lambda table: table.optimize.z_order(["id"])),
        ("files", "3/3 files", lambda table: table.fsck()),
    ],
    ids=["vacuum", "compact", "z_order", "fsck"],
)
def test_command_counts_its_work(
    terminal: Terminal, table: DeltaTable, unit: str, shown: str, run: Callable[[DeltaTable], object]
) -> None:
    if unit == "files" and "vacuum" in str(run.__code__.co_names):
        table.optimize.compact()  # the three files are not needed any more
        time.sleep(0.01)

    def command() -> None:
        with progress("COMMAND", unit):
            run(table)
            wait_until_drawn(terminal)  # a small table is done before anything is drawn

    text = seen(terminal, command)
    done, total = counts_in(text, unit)[-1]
    assert shown in text and done == total > 0
