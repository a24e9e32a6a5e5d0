"""The command line as a process: pipes, what it needs, how quickly it starts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import write_delta

PYDELTA = [sys.executable, "-m", "pydelta_cli"]
WITHOUT_SPARK = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.argv = ["pydelta", *sys.argv[1:]]
from pydelta_cli.main import main
main()
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_delta(str(tmp_path / "t"), pa.table({"id": range(200_000)}))
    return str(tmp_path / "t")


def test_reader_that_goes_is_no_error(table: str) -> None:
    command = " ".join([*PYDELTA, "cat", table])
    script = f"set -o pipefail; {command} | head -2"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ['"id"', "0"] and done.stderr == "" and done.returncode == 0


CAT = [f"cat --format {name}" for name in ("csv", "json", "parquet", "arrow")]


@pytest.mark.parametrize("command", ["show", "schema", "history --json", "files", *CAT])
def test_reader_that_was_never_there_is_no_error(table: str, command: str) -> None:
    name, *options = command.split()
    script = f"set -o pipefail; {' '.join([*PYDELTA, name, table, *options])} | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stderr == "" and done.returncode == 0


def test_runs_without_spark(table: str) -> None:
    for arguments in (["show", table, "--limit", "1"], ["optimize", table], ["history", table, "--json"]):
        done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK, *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    arguments = ["optimize", table, "--spark"]
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "pydelta[spark]" in done.stderr


def test_starts_without_what_it_does_not_need(table: str) -> None:
    seconds = []
    for _ in range(3):
        begin = time.monotonic()
        done = subprocess.run([*PYDELTA, "--help"], capture_output=True, text=True, timeout=120)
        seconds.append(time.monotonic() - begin)
        assert done.returncode == 0 and "zorder" in done.stdout
    assert min(seconds) < 2.0, seconds


NEVER = {"pyspark", "py4j", "pandas", "pydantic", "pyarrow.dataset", "boto3", "duckdb", "polars", "psycopg", "sqlite3"}
ROWS = {"delta_py.parquet.reader", "delta_py.scan.planning"}
SQL = {"sqlglot", "delta_py.expressions.parse", "delta_py.expressions.evaluate"}
WRITING = {"delta_py.commit.transaction", "delta_py.write.conform", "delta_py.log.checkpoint", "delta_py.changes.change_feed"}
MODULES = """
import sys
from pydelta_cli.main import main
sys.argv = ["pydelta", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "needed", "unwanted"),
    [
        ("--help", "typer", {"delta_py.table", "pyarrow", "numpy", "rich"} | ROWS | SQL | WRITING),
        ("schema --help", "typer", {"delta_py.table", "pyarrow", "numpy", "rich"} | ROWS | SQL | WRITING),
        ("schema TABLE", "delta_py.table", ROWS | SQL | WRITING),
        ("schema TABLE --json", "delta_py.table", {"rich"} | ROWS | SQL | WRITING),
        ("history TABLE --limit 1", "delta_py.log.history", ROWS | SQL | WRITING),
        ("streams TABLE", "delta_py.table", {"rich"} | ROWS | SQL | WRITING),
        ("detail TABLE", "delta_py.commands.detail", {"rich"} | SQL | WRITING),
        ("show TABLE --limit 1", "delta_py.parquet.reader", SQL | WRITING),
        ("cat TABLE --format json --limit 1", "delta_py.parquet.reader", {"rich"} | SQL | WRITING),
        ("files TABLE --filter id=1", "sqlglot", WRITING),
    ],
)
def test_command_imports_nothing_that_it_does_not_need(table: str, arguments: str, needed: str, unwanted: set[str]) -> None:
    words = arguments.replace("TABLE", table).split()
    done = subprocess.run([sys.executable, "-c", MODULES, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert needed in loaded and sorted(loaded & (NEVER | unwanted)) == []
