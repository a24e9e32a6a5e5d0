"""The examples for users of deltalake print the same with deltalake and with as_deltalake: one line of them differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OURS = "import delta_py.as_deltalake as deltalake\n"


def output(source: str, directory: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["from_deltalake", "from_deltalake_merges"])
def test_program_prints_the_same_with_both_libraries(name: str, tmp_path: Path) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text()
    assert source.count(OURS) == 1
    printed = output(source, tmp_path)
    assert printed.count("\n") > 40
    assert printed == output(source.replace(OURS, "import deltalake\n"), tmp_path)
