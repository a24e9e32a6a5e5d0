"""The time of each test file: a table in the repository, by which a run begins with its slowest files.

Processes share the files of a run. If the slow ones come first, the fast ones at the end fill all processes to the same moment.
PYDELTA_WRITE_SECONDS=1 (make seconds) writes the table again from the times of a run. A file that the table does not name comes
first, because nobody knows how slow it is.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("file_seconds.txt")
_TESTS = TABLE.parents[2]
_UNKNOWN = float("inf")


def read_table() -> dict[str, float]:
    """Seconds by a file's path below tests/."""
    rows = (line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: float(seconds) for seconds, name in rows}


def slowest_files_first(items: list[pytest.Item], tests: Path) -> None:
    """Sort the tests by their files; within a file they keep their order."""
    seconds = read_table()
    names = {item.path: item.path.relative_to(tests).as_posix() for item in items if item.path.is_relative_to(tests)}
    items.sort(key=lambda item: (-seconds.get(names.get(item.path, ""), _UNKNOWN), str(item.path)))


class SecondsOfFiles:
    """A pytest plug-in that adds up the times of the tests of each file, and writes the table when the run ends."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0].removeprefix("tests/")] += report.duration

    def pytest_sessionfinish(self) -> None:
        there = {name: seconds for name, seconds in (read_table() | self.seconds).items() if (_TESTS / name).exists()}
        rows = sorted(there.items(), key=lambda row: (-row[1], row[0]))
        lines = ["# Seconds that each test file takes in `make test`, 2 cores (make seconds). Slow files go first."]
        TABLE.write_text("\n".join([*lines, *(f"{seconds:.1f} {name}" for name, seconds in rows)]) + "\n")
