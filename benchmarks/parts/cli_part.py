"""The part `cli`: how long `pydelta` takes for an answer about a small table, from the start of its process. It is compared with
a program of deltalake that reads the same table.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pyarrow as pa

from benchmarks.common import Part, Sizes, table_text
from delta_py import write_delta

_RUNS = 11
_TARGET_SECONDS = 0.3
_SCHEMA_OF_DELTALAKE = "import sys, deltalake; print(deltalake.DeltaTable(sys.argv[1]).schema())"


def cli_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    table = str(directory / "cli")
    if not Path(table).exists():
        for number in range(10):
            write_delta(table, pa.table({"id": [number], "name": [f"n{number}"]}), mode="append")
    pydelta_command = [sys.executable, "-m", "pydelta_cli"]
    commands: dict[str, Sequence[str]] = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`import pyarrow`": [sys.executable, "-c", "import pyarrow"],
        "deltalake, schema": [sys.executable, "-c", _SCHEMA_OF_DELTALAKE, table],
        "`pydelta --help`": [*pydelta_command, "--help"],
        "`pydelta schema`": [*pydelta_command, "schema", table],
        "`pydelta history`": [*pydelta_command, "history", table],
        "`pydelta detail`": [*pydelta_command, "detail", table],
        "`pydelta show`": [*pydelta_command, "show", table],
        "`pydelta files --filter`": [*pydelta_command, "files", table, "--filter", "id > 5"],
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(_RUNS):
        for name, command in commands.items():
            times[name].append(_seconds(command))
    # The first run of each compiles modules that are not compiled yet.
    rows = []
    for name, runs in times.items():
        seconds, cpu_seconds = zip(*runs, strict=True)
        rows.append([name, *(f"{value:.2f} s" for value in (statistics.median(seconds[1:]), min(seconds), min(cpu_seconds)))])
    return Part(
        [
            "## The command line: from the start of a process to its end, a table of ten commits",
            "",
            table_text(["what", "median", "quickest", "least CPU"], rows),
            "",
            f"Target for commands that need no Spark: {_TARGET_SECONDS} s. The runs took turns. CPU seconds say more if other "
            "work kept the machine busy. docs/design-notes.md explains the time, under What the start of a command costs.",
            "",
        ]
    )


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    """Seconds from the start of the process to its end, and its CPU seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun, cpu_before = time.perf_counter(), _cpu_seconds()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun, _cpu_seconds() - cpu_before


def _cpu_seconds() -> float:
    """CPU seconds of all processes that this one started and that ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
