"""What the parts of the benchmark share: their sizes, the environments that they run in, tables of text."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Sizes:
    """The sizes of all parts: numbers of files for state, rows for scans, runs of each, commits and seconds of races; the scale
    of the TPC-H-like warehouse, commits of a log without a checkpoint, batches of a stream, commits before its idle triggers;
    rows in a row group of a file in an object store, row groups of a large one; files of the largest log; columns of the wide
    tables."""

    state_files: tuple[int, ...]
    scan_rows: int
    runs: int
    commits: int
    race_seconds: float
    warehouse_scale: float
    commits_without_checkpoint: int
    small_batches: int
    idle_commits: int
    store_group_rows: int
    store_large_groups: int
    scale_files: int
    wide_columns: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """The result of one part of the benchmark. text: lines of Markdown. ratios: pydelta's time over delta-spark's, by
    workload."""

    text: list[str]
    ratios: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_all(cls, parts: Iterable[Part]) -> Part:
        parts = list(parts)
        return cls([line for part in parts for line in part.text], {k: v for part in parts for k, v in part.ratios.items()})


def environments(peer: Path) -> list[tuple[Path, str]]:
    """The available Pythons, and the formats that their Spark knows."""
    pairs = [(Path(sys.executable), "parquet,pydelta"), (peer / "bin" / "python", "parquet,pydelta,delta")]
    return [(python, formats) for python, formats in pairs if python.exists()]


def peer_python(peer: Path) -> Path:
    """Raises SystemExit if there is no delta-spark to compare with."""
    python = peer / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"There is no environment with delta-spark at {peer}: `make bench` makes one.")
    return python


# The settings of a session: the defaults of Spark and delta-spark, or the settings of somebody who knows the number of cores
# (session.py). The ratio that counts compares two tuned sessions.
DEFAULTS, TUNED = "defaults", "tuned"
SETTINGS = (DEFAULTS, TUNED)


def spark_environment(python: Path, peer: Path, settings: str = TUNED) -> dict[str, str]:
    return {
        "PYDELTA_BENCH_SETTINGS": settings,
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "PYDELTA_PEER_JARS": str(peer / "jars"),
    }


def log_table(directory: Path, files: int, *, commits: int = 20) -> Path:
    """The log of a table with this number of files; made if it does not exist yet."""
    from benchmarks.tables.make_log_table import make_table

    table = directory / f"log-{files}-{commits}"
    if not table.exists():
        make_table(str(table), files=files, columns=10, commits=commits)
    return table


def query_tables(directory: Path, sizes: Sizes) -> Path:
    """The directory of make_query_tables' tables; made if it does not exist yet."""
    from benchmarks.tables.make_query_tables import make_tables

    tables = directory / "queries"
    if not (tables / "parted").exists():
        make_tables(tables, sizes.scan_rows, sizes.warehouse_scale)
    return tables


def run_json(command: Sequence[str], environment: dict[str, str] | None = None) -> Any:
    """Run a command to its end, and parse its last line as JSON."""
    whole_environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=whole_environment, cwd=ROOT)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with exit status {process.returncode}")
    return json.loads(process.stdout.splitlines()[-1])


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
