"""The tables that the benchmarks measure are what they say, so that a number is the number of the right thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

from benchmarks import bench, make_log_table, make_scan_table, state_run
from delta_py import DeltaTable

ROOT = Path(__file__).parents[2]


def test_log_table_has_the_files_and_prunes_to_one(tmp_path: Path) -> None:
    make_log_table.make_table(str(tmp_path / "t"), files=3_000, columns=10, commits=20)
    table = DeltaTable(str(tmp_path / "t"))
    assert table.version == 20
    assert table.files().num_rows == 3_000 + 20 * make_log_table.ADDS_PER_COMMIT
    assert table.scan(filter="id = 1500500").report.files_kept == 1


@pytest.mark.parametrize("reader", bench.STATE_READERS)
def test_state_run_prints_what_it_measured(reader: str, tmp_path: Path) -> None:
    assert set(bench.STATE_READERS) == set(state_run.READERS)
    make_log_table.make_table(str(tmp_path / "t"), files=300, columns=10, commits=2)
    command = [sys.executable, "benchmarks/state_run.py", reader, str(tmp_path / "t"), "150500"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(done.stdout)
    assert result["files"] == 1
    assert result["seconds"] > 0
    assert result["peak_mb"] > 20


def test_scan_table_loses_a_tenth_of_its_rows_to_deletion_vectors(tmp_path: Path) -> None:
    left = make_scan_table.make_table(str(tmp_path / "t"), rows=16_000)
    assert 14_000 < left < 14_800
    whole = DeltaTable(str(tmp_path / "t"), version=0).to_arrow()
    assert whole.num_rows == 16_000
    assert pc.count_distinct(whole["id"]).as_py() == 16_000
    assert DeltaTable(str(tmp_path / "t")).to_arrow().num_rows == left


def test_report_names_the_ratios_and_their_targets() -> None:
    ours = {"files": 1, "seconds": 0.5, "cpu_seconds": 0.6, "peak_mb": 300.0, "import_seconds": 0.3}
    peers = {**ours, "seconds": 1.0, "peak_mb": 400.0}
    text = bench.state_text(300_000, {"pydelta": ours, "deltalake-actions": peers, "deltalake-query": peers})
    assert "Time 0.50x of deltalake (target: at most 0.6x), memory 0.75x" in text


@pytest.mark.parametrize("writer", ["pydelta", "deltalake"])
def test_checkpoint_run_writes_a_checkpoint_and_prints_what_it_measured(writer: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make_log_table.make_table(path, files=200, commits=3)
    command = [sys.executable, "benchmarks/checkpoint_run.py", writer, path, "--both-forms"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(done.stdout)
    assert result["files"] == 200 + 3 * make_log_table.ADDS_PER_COMMIT and result["seconds"] > 0
    assert os.path.exists(os.path.join(path, "_delta_log", f"{4:020d}.checkpoint.parquet"))
