"""Memory does not grow with the number of files: parts of a checkpoint that were read are freed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pyarrow as pa
import pytest

from benchmarks.tables.make_log_table import make_table
from delta_py.log.checkpoint_content import parquet_part
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.types.schema import LONG

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("sidecars", [False, True])
@pytest.mark.parametrize("parts", [1, 20])
@pytest.mark.parametrize("stats_json", [False, True])
def test_batches_of_a_checkpoint_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecars: bool, parts: int, stats_json: bool
) -> None:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    monkeypatch.setattr(parquet_part, "_BATCH_ROWS", 2_048)
    monkeypatch.setattr(parquet_part, "_MOST_ROWS_WITH_TEXT", 2_048)
    make_table(
        str(tmp_path / "t"),
        files=200_000,
        columns=2,
        row_group_rows=5_000,
        parts=parts,
        sidecars=sidecars,
        stats_json=stats_json,
        stats_struct=not stats_json,
    )
    snapshot = Snapshot.load(open_store(str(tmp_path / "t")))
    before, allocated_bytes = pa.total_allocated_bytes(), []
    for _ in snapshot.file_batches({("id",): LONG}):
        allocated_bytes.append(pa.total_allocated_bytes() - before)
    quarter = len(allocated_bytes) // 4
    assert quarter > 20
    assert median(allocated_bytes[-quarter:]) < median(allocated_bytes[:quarter]) + 2_500_000, (
        allocated_bytes
    )  # temporary memory differs


def test_files_that_come_twice_are_looked_for_in_little_memory(tmp_path: Path) -> None:
    """Nothing says how many files the checkpoint has, so all keys are compared."""
    grown = peak_mb(tmp_path / "many", 500_000) - peak_mb(tmp_path / "few", 5_000)
    assert grown < 130


def peak_mb(path: Path, files: int) -> float:
    """The peak memory of a process that prunes such a table to one file."""
    make_table(str(path), files=files, columns=1, stats_json=False, stats_struct=True, parts=5, sidecars=True)
    (path / "_delta_log" / "_last_checkpoint").unlink()
    process = subprocess.run(
        [sys.executable, "benchmarks/library/state_run.py", "pydelta", str(path), str(files // 2 * 1000 + 500)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYDELTA_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    result = json.loads(process.stdout)
    assert result["files"] == 1
    return float(result["peak_mb"])
