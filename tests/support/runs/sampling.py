"""Which of very many similar cases a run takes: a slice that the commit chooses, or all with PYDELTA_ALL=1 (make nightly).

The slice moves from commit to commit, so that each case runs at some time, and is the same in all processes of a run.
PYDELTA_SAMPLE=<number> chooses it by hand: the number that a run prints replays its slice. At its end a run prints how many of
how many cases it took (conftest.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# For each call, in the order of collection: the calling file, the number of cases that it got, and the number of all.
taken: list[tuple[str, int, int]] = []


def sampled(cases: Iterable[T], every: int) -> list[T]:
    """One in `every` of the cases, in their order; all if the run takes all."""
    listed = list(cases)
    chosen = listed if takes_all() else listed[sample_number() % every :: every]
    if listed and not chosen:  # fewer cases than `every`: the slice would be empty for most numbers
        chosen = [listed[sample_number() % len(listed)]]
    taken.append((Path(sys._getframe(1).f_code.co_filename).name, len(chosen), len(listed)))
    return chosen


def examples(count: int, of: int | None = None) -> int:
    """The number of random examples of a slow property test: `count`, or `of` (four times as many) if the run takes all."""
    return (of or 4 * count) if takes_all() else count


def takes_all() -> bool:
    """Whether the run takes every case (ALL=1, make nightly)."""
    return bool(os.environ.get("PYDELTA_ALL"))


@cache
def sample_number() -> int:
    """PYDELTA_SAMPLE, otherwise a number from the commit that is checked out, otherwise (without a repository) 0."""
    number_text = os.environ.get("PYDELTA_SAMPLE")
    if number_text:
        return int(number_text)
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=7", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        return 0
    return int(commit.stdout.strip(), 16) if commit.returncode == 0 else 0


def summary() -> list[str]:
    """A line for each file that took a sample."""
    files: dict[str, tuple[int, int]] = {}
    for file, chosen, listed in taken:
        before = files.get(file, (0, 0))
        files[file] = (before[0] + chosen, before[1] + listed)
    return [f"{file}: {chosen} of {listed} cases" for file, (chosen, listed) in sorted(files.items())]
