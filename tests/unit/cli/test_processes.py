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
    code = f"import sys; sys.argv = ['pydelta', 'schema', {table!r}]\nfrom pydelta_cli.main import app\n"
    code += "app(standalone_mode=False)\nprint(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120).stderr.split()
    assert "delta_py.table" in loaded
    assert not {"pyspark", "pandas", "sqlglot", "boto3", "duckdb"} & set(loaded)
