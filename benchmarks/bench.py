"""Measure pydelta beside deltalake, delta-spark and Spark's own Parquet reader, and write RESULTS.md.

    make bench                          everything; wants a quiet machine, about 4 GB of disk and half an hour
    make bench BENCH="--quick"          the same on small tables, printed and not written: shows that it runs

State: a fresh process for every run opens a table of very many files and prunes it to one file, the readers taking turns.
Scans: one Spark session for each version of Spark, the readers taking turns. Medians are given, and the targets beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

STATE_READERS = ("pydelta", "deltalake-actions", "deltalake-query")
# The file that holds this id is in the middle of the smallest table measured.
ROWS_PER_FILE = 1000


@dataclass(frozen=True)
class Sizes:
    """What is measured: numbers of files for state, rows for scans, and runs of each."""

    state_files: tuple[int, ...]
    scan_rows: int
    runs: int


FULL = Sizes((300_000, 1_000_000), 8_000_000, 5)
QUICK = Sizes((5_000, 20_000), 160_000, 2)


def main() -> None:
    arguments = parse_arguments()
    sizes = QUICK if arguments.quick else FULL
    load = os.getloadavg()[0]
    if load > 0.5 and not arguments.quick:
        print(f"warning: the machine is busy (load {load:.1f}): the numbers will be worse than they should", file=sys.stderr)
    report = [header(load)]
    with work_directory(arguments.directory) as directory:
        if "state" in arguments.only:
            report += [state_section(directory, files, sizes.runs) for files in sizes.state_files]
        if "scan" in arguments.only:
            report += scan_sections(directory, sizes, Path(arguments.peer))
    text = "\n".join(report)
    print(text)
    if not arguments.quick:
        (HERE / "RESULTS.md").write_text(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="state,scan", type=lambda text: text.split(","))
    parser.add_argument("--peer", default=str(ROOT / ".venv-peer"), help="environment of pyspark 4.2 and delta-spark")
    parser.add_argument("--directory", help="keep the tables here instead of a temporary directory")
    return parser.parse_args()


@contextmanager
def work_directory(kept: str | None) -> Iterator[Path]:
    directory = Path(kept) if kept else Path(tempfile.mkdtemp(prefix="pydelta-bench-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield directory
    finally:
        if kept is None:
            shutil.rmtree(directory)


# ---------------------------------------------------------------- state


def state_section(directory: Path, files: int, runs: int) -> str:
    from benchmarks.make_log_table import make_table

    table = directory / f"log-{files}"
    make_table(str(table), files=files, columns=10, commits=20)
    value = files // 2 * ROWS_PER_FILE + ROWS_PER_FILE // 2
    results: dict[str, list[dict[str, Any]]] = {reader: [] for reader in STATE_READERS}
    for _ in range(runs + 1):
        for reader in STATE_READERS:
            results[reader].append(run_json([sys.executable, str(HERE / "state_run.py"), reader, str(table), str(value)]))
    medians = {reader: _medians(measured[1:]) for reader, measured in results.items()}
    for reader, median in medians.items():
        assert median["files"] == 1, f"{reader} kept {median['files']} files of {files}, not 1"
    return state_text(files, medians)


def _medians(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: statistics.median(result[name] for result in results) for name in results[0]}


def state_text(files: int, medians: dict[str, dict[str, float]]) -> str:
    """The peer's quicker way counts for time and its leaner one for memory."""
    ours = medians["pydelta"]
    peers = [medians[reader] for reader in STATE_READERS if reader != "pydelta"]
    time_ratio = ours["seconds"] / min(peer["seconds"] for peer in peers)
    memory_ratio = ours["peak_mb"] / min(peer["peak_mb"] for peer in peers)
    rows = [
        [
            reader,
            f"{median['seconds']:.2f} s",
            f"{median['cpu_seconds']:.2f} s",
            f"{median['peak_mb']:.0f} MB",
            f"{median['import_seconds']:.2f} s",
        ]
        for reader, median in medians.items()
    ]
    return "\n".join(
        [
            f"## State: open {files:,} files and prune to one",
            "",
            table_text(["reader", "open and prune", "of that CPU, all threads", "peak memory", "import (not counted)"], rows),
            "",
            f"Time {time_ratio:.2f}x of deltalake (target: at most 0.6x), memory {memory_ratio:.2f}x (target: at most 1x).",
            "",
        ]
    )


# ---------------------------------------------------------------- scans


def scan_sections(directory: Path, sizes: Sizes, peer: Path) -> list[str]:
    from benchmarks.make_scan_table import make_table

    table = directory / "scan"
    rows_left = make_table(str(table), rows=sizes.scan_rows)
    environments = [(Path(sys.executable), "parquet,pydelta"), (peer / "bin" / "python", "parquet,pydelta,delta")]
    return [scan_section(table, sizes, rows_left, python, readers, peer) for python, readers in environments if python.exists()]


def scan_section(table: Path, sizes: Sizes, rows_left: int, python: Path, readers: str, peer: Path) -> str:
    command = [str(python), str(HERE / "scan_run.py"), str(table), "--rows", str(sizes.scan_rows)]
    environment = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "PYDELTA_PEER_JARS": str(peer / "jars"),
    }
    result = run_json([*command, "--readers", readers, "--rounds", str(sizes.runs)], environment)
    check_counts(result["counts"], sizes.scan_rows, rows_left)
    medians = {name: statistics.median(seconds) for name, seconds in result["seconds"].items()}
    native = medians["parquet: whole rows"]
    rows = [[name, str(f"{result['counts'][name]:,}"), f"{seconds:.2f} s"] for name, seconds in medians.items()]
    whole = medians["pydelta: whole rows"] / native
    deleted = medians["pydelta: whole rows, 10 % deleted"] / medians["pydelta: whole rows"]
    return "\n".join(
        [
            f"## Scan: {sizes.scan_rows:,} rows x 10 columns, Spark {result['spark']}, to the noop sink",
            "",
            table_text(["scan", "rows", "median"], rows),
            "",
            f"Whole rows {whole:.2f}x of Spark's Parquet reader (target: at most 1.15x); "
            f"with 10 % of rows deleted {deleted:.2f}x of without (target: at most 1.2x).",
            "",
        ]
    )


def check_counts(counts: dict[str, int], rows: int, rows_left: int) -> None:
    """A reader that gives other rows than it should has no time to be proud of."""
    wanted = {"whole rows": rows, "two columns": rows, "whole rows, 10 % deleted": rows_left, "1 % of ids": rows // 100}
    for name, count in counts.items():
        assert count == wanted[name.partition(": ")[2]], f"{name} gave {count} rows"


# ---------------------------------------------------------------- helpers


def run_json(command: Sequence[str], environment: dict[str, str] | None = None) -> Any:
    """Run a command to its end; its last line is JSON."""
    whole_environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=whole_environment, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with exit status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def header(load: float) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "deltalake"))
    return "\n".join(
        [
            "# Measurements",
            "",
            "Made by `make bench`; how is in bench.py. Medians; files are in the machine's page cache.",
            "",
            f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"- Machine: {cpu_model()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB; load before: {load:.1f}",
            f"- Versions: Python {platform.python_version()}, {packages}; delta-spark 4.4.0 where Spark is 4.2",
            "",
        ]
    )


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


if __name__ == "__main__":
    main()
