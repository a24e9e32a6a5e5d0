"""examples/delta_spark_scripts, as each engine runs them: a process with an empty directory of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ONE_LINE = "import spark_plugin.as_delta  # the line for pydelta\n"
_SCRIPTS = ROOT / "examples" / "delta_spark_scripts"
_PRINTED = Path(__file__).parent / "printed_by_scripts"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # of 10,000 tasks in which delta-spark lists directories
}
_NOTE = re.compile(r"(Deleted|Found) \d+ files")
NAMES = sorted(script.stem for script in _SCRIPTS.glob("*.py"))


def printed(name: str) -> str:
    """What both engines print."""
    return (_PRINTED / f"{name}.txt").read_text()


def of_pydelta(name: str) -> str:
    return (_SCRIPTS / f"{name}.py").read_text()


def of_delta_spark(name: str) -> str:
    """The script without pydelta's line. delta-spark's own function would fetch its jars from Maven."""
    script = of_pydelta(name)
    assert script.count(ONE_LINE) == 1
    own_jars = "import delta; delta.configure_spark_with_delta_pip = lambda builder: builder\n"
    return own_jars + script.replace(ONE_LINE, "")


def without_notes(text: str) -> str:
    """The text without the lines in which delta-spark tells what VACUUM did."""
    return "".join(line for line in text.splitlines(keepends=True) if not _NOTE.match(line))


def run(script: str, directory: Path, settings: dict[str, str]) -> str:
    """Return what the script prints. settings: of Spark. If the script ends in an error, fails the test with its stderr."""
    settings = _SETTINGS | {"spark.sql.warehouse.dir": str(directory / "warehouse")} | settings
    arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {arguments} pyspark-shell",
        "TMPDIR": str(directory),
        "PYTHONUNBUFFERED": "1",  # what a query prints to the console comes from the JVM
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    return done.stdout
