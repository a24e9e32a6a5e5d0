"""Progress of long commands: shown on a terminal, if the command takes a while, and nowhere else."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py import progress as module
from delta_py.progress import SETTING, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Replaces stderr while `seen` runs: pytest replaces stderr after a fixture has set it."""
    new_terminal = Terminal()
    monkeypatch.setattr(module, "_SHOWN_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    yield new_terminal
    assert module._shown.acquire(blocking=False), "the bar has ended"
    module._shown.release()


def seen(stream: Any, action: Callable[[], object]) -> str:
    with redirect_stderr(stream):
        action()
    return stream.getvalue() if stream is not None else ""


def work(steps: int = 20) -> None:
    with progress("VACUUM", steps) as step, ThreadPoolExecutor(4) as pool:
        list(pool.map(step, [1] * steps))


def test_a_bar_is_shown_on_a_terminal_and_goes(terminal: Terminal) -> None:
    shown = seen(terminal, work)
    assert "VACUUM, files" in shown and "20/20" in shown


def test_it_goes_when_the_command_fails(terminal: Terminal) -> None:
    def fail() -> None:
        with pytest.raises(ZeroDivisionError), progress("FSCK", 3) as step:
            step(1)
            step(1 // 0)

    assert "FSCK" in seen(terminal, fail)


def test_of_two_at_once_the_first_is_shown(terminal: Terminal) -> None:
    def both() -> None:
        with progress("OPTIMIZE", 3, "tasks") as step:
            step(1)
            work()
            step(2)

    shown = seen(terminal, both)
    assert "OPTIMIZE, tasks" in shown and "VACUUM" not in shown


@pytest.mark.parametrize("value", ["0", "false", "OFF"])
def test_a_setting_turns_it_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(SETTING, value)
    assert seen(terminal, work) == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["file", "none"])
def test_nothing_is_written_to_what_is_no_terminal(terminal: Terminal, stream: io.StringIO | None) -> None:
    assert seen(stream, work) == ""


def test_nothing_is_shown_of_what_is_quick_or_without_rich(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(terminal, lambda: work(1)) == ""
    with monkeypatch.context() as patch:
        patch.setattr(module, "_SHOWN_AFTER_SECONDS", 60.0)
        assert seen(terminal, work) == ""
    with monkeypatch.context() as patch:
        patch.setattr(module.importlib.util, "find_spec", lambda name: None)
        assert seen(terminal, work) == ""
    assert seen(terminal, work) != ""


def test_vacuum_shows_its_files(terminal: Terminal, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(3):
        write_delta(path, pa.table({"id": [number]}), mode="overwrite")
    vacuum = partial(DeltaTable(path).vacuum, 0, dry_run=False, enforce_retention_duration=False)
    time.sleep(0.01)
    assert "2/2" in seen(terminal, vacuum)
