"""VACUUM while other processes read: one that has read half of the rows, and one that is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.checkpoint.leases import Leases
from delta_py.errors import DataFileError
from delta_py.storage.local import LocalStore

ROOT = Path(__file__).parents[3]
VERSIONS = 6

READER = """
import sys
from delta_py import DeltaTable
table = DeltaTable(sys.argv[1], version=int(sys.argv[2]))
with table.lease(seconds=3):
    batches = iter(table.to_batches())
    rows = next(batches)["id"].to_pylist()
    print("half", flush=True)
    sys.stdin.readline()
    print(sorted(rows + [row for batch in batches for row in batch["id"].to_pylist()]), flush=True)
"""


def start(path: Path) -> subprocess.Popen[str]:
    """A reader of version 1, which has read the first of its two files."""
    command = [sys.executable, "-c", READER, str(path), "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "half\n"
    return process


def make(path: Path) -> None:
    for number in range(2):
        write_delta(str(path), pa.table({"id": [number]}), mode="append")
    for number in range(2, VERSIONS):
        write_delta(str(path), pa.table({"id": [number]}), mode="overwrite")
    time.sleep(0.01)


def vacuum(path: Path, lite: bool) -> int:
    deleted_count: int = DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False, lite=lite).num_rows
    return deleted_count


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lite", [False, True], ids=["full", "lite"])
def test_reader_that_is_half_way_reads_to_its_end(tmp_path: Path, lite: bool) -> None:
    make(tmp_path / "t")
    reader = start(tmp_path / "t")
    time.sleep(4)  # longer than its lease, which it renews
    assert vacuum(tmp_path / "t", lite) == 0, "the version before is of one of its files"
    out, _ = reader.communicate("go on\n", timeout=60)
    assert (out, reader.returncode) == ("[0, 1]\n", 0)
    assert vacuum(tmp_path / "t", lite) == VERSIONS - 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lite", [False, True], ids=["full", "lite"])
def test_lease_of_killed_reader_protects_files_until_it_expires(tmp_path: Path, lite: bool) -> None:
    path = tmp_path / "t"
    make(path)
    reader = start(path)
    reader.send_signal(signal.SIGKILL)
    reader.communicate()
    assert vacuum(path, lite) == 0
    assert DeltaTable(str(path), version=1).to_arrow().num_rows == 2
    end = time.monotonic() + 30
    while Leases.read(LocalStore(str(path)), time.time_ns() // 1_000_000).live and time.monotonic() < end:
        time.sleep(0.2)
    assert vacuum(path, lite) == VERSIONS - 1
    assert [*(path / "_delta_log" / "_pydelta_leases").iterdir()] == []
    with pytest.raises(DataFileError):
        DeltaTable(str(path), version=1).to_arrow()
    assert DeltaTable(str(path)).to_arrow()["id"].to_pylist() == [VERSIONS - 1]
