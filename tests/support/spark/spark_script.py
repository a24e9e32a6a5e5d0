"""Runs a script in a separate Python, for tests that need a Spark session of another kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.support.spark.connect_port import connect_port

ROOT = Path(__file__).resolve().parents[3]


def run_script(script: str, *arguments: str, timeout_seconds: int = 300) -> dict[str, Any]:
    """The JSON object that the script prints as its last line. arguments: its sys.argv[1:].

    If the script ends in an error, fails the test with the script's stderr.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    with connect_port() if '.remote("local' in script else nullcontext():
        process = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            env=environment,
            check=False,
        )
    assert process.returncode == 0, process.stderr[-5000:]
    last: dict[str, Any] = json.loads(process.stdout.strip().rpartition("\n")[2])
    return {**last, "stderr": process.stderr}
