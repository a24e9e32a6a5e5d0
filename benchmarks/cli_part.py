"""The part `cli`: how long `pydelta` takes for an answer about a small table, from the start of its process, beside a program of
deltalake that looks at the same table."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

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
    own = [sys.executable, "-m", "pydelta_cli"]
    commands: dict[str, Sequence[str]] = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`import pyarrow`": [sys.executable, "-c", "import pyarrow"],
        "deltalake, schema": [sys.executable, "-c", _SCHEMA_OF_DELTALAKE, table],
        "`pydelta --help`": [*own, "--help"],
        "`pydelta schema`": [*own, "schema", table],
        "`pydelta history`": [*own, "history", table],
        "`pydelta detail`": [*own, "detail", table],
        "`pydelta show`": [*own, "show", table],
        "`pydelta files --filter`": [*own, "files", table, "--filter", "id > 5"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_RUNS):
        for name, command in commands.items():
            taken[name].append(_seconds(command))
    # The first run of each compiles what was not compiled yet.
    rows = [[name, f"{statistics.median(seconds[1:]):.2f} s", f"{min(seconds):.2f} s"] for name, seconds in taken.items()]
    return Part(
        [
            "## The command line: from the start of a process to its end, a table of ten commits",
            "",
            table_text(["what", "median", "quickest"], rows),
            "",
            f"Target for commands that need no Spark: {_TARGET_SECONDS} s. The runs took turns.",
            "",
        ]
    )


def _seconds(command: Sequence[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun
