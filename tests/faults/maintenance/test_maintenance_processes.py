"""OPTIMIZE while other processes write, and OPTIMIZE and VACUUM that are killed at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.log.history import history
from delta_py.storage.local import LocalStore
from tests.support.faults.maintenance_processes import left
from tests.support.runs.seeds import seed_of

ROOT = Path(__file__).parents[3]
KILLS = 6


def start(role: str, path: Path, number: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.faults.maintenance_processes", role, str(path), str(number)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ids(path: Path, version: int | None = None) -> list[int]:
    sorted_ids: list[int] = sorted(DeltaTable(str(path), version=version).to_arrow()["id"].to_pylist())
    return sorted_ids


@pytest.mark.timeout(300)
def test_optimize_beside_writers_loses_and_doubles_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_delta(str(path), pa.table({"id": pa.array([0], pa.int64())}), configuration={"delta.enableDeletionVectors": "true"})
    writers = [start("write", path, number) for number in (1, 2)]
    optimizers = [start("optimize", path), start("order", path)]
    try:
        for writer in writers:
            _, errors = writer.communicate(timeout=240)
            assert writer.returncode == 0, errors[-3000:]
    finally:
        Path(f"{path}.stop").touch()
        ended = [optimizer.communicate(timeout=60) for optimizer in optimizers]
    assert [optimizer.returncode for optimizer in optimizers] == [0, 0], ended
    assert ids(path) == sorted({0} | left(1) | left(2))
    DeltaTable(str(path)).snapshot.check_integrity()
    log = history(LocalStore(str(path)))
    assert log["version"].to_pylist() == list(range(log.num_rows - 1, -1, -1))
    assert sum(int(out) for out, _ in ended) >= log["operation"].to_pylist().count("OPTIMIZE") >= 3


def make(path: Path) -> None:
    """Two files in each of twenty partitions; some of their rows are replaced."""
    for number in range(2):
        rows = {"id": range(40 * number, 40 * number + 40), "p": [place % 20 for place in range(40)]}
        write_delta(str(path), pa.table(rows), mode="append", partition_by=["p"])
    write_delta(str(path), pa.table({"id": [0, 20], "p": [0, 0]}), mode="overwrite", replace_where="p = 0 AND id < 40")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["batches", "orders", "vacuum", "lite"])
def test_killed_command_loses_no_rows_and_the_next_run_completes(tmp_path: Path, role: str) -> None:
    chosen, seconds = random.Random(seed_of(role)), time_of(role, tmp_path / "timed")
    commit_count, killed = 0, 0
    for number in range(KILLS):
        path = tmp_path / str(number)
        make(path)
        before = ids(path)
        process = start(role, path)
        time.sleep(chosen.uniform(0.3, 1.05) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        was_killed = process.returncode == -signal.SIGKILL
        killed += was_killed
        seconds *= 1 if was_killed else 0.75  # this run was faster than the timed one
        assert ids(path) == before, number
        DeltaTable(str(path)).snapshot.check_integrity()
        commit_count += DeltaTable(str(path)).version > 2
        process = start(role, path)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors[-3000:]
        assert ids(path) == before, number
        check_done(role, path)
    assert killed >= KILLS // 2, f"{killed} of {KILLS} were killed, {commit_count} had committed something"


@pytest.mark.timeout(300)
def test_killed_deep_clone_is_no_table_and_the_next_run_resumes(tmp_path: Path) -> None:
    path, chosen = tmp_path / "t", random.Random(seed_of("clone"))
    seconds, killed, partial_count = time_of("clone", path), 0, 0
    for number in range(1, KILLS + 1):
        target = Path(f"{path}-{number}")
        process = start("clone", path, number)
        time.sleep(chosen.uniform(0.5, 1.0) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        was_killed = process.returncode == -signal.SIGKILL
        killed += was_killed
        seconds *= 1 if was_killed else 0.75  # this run was faster than the timed one
        copies = {file: file.stat().st_mtime_ns for file in target.rglob("cloned-*.parquet")}
        partial_count += 0 < len(copies) < len(DeltaTable(str(path)).files())
        if not list(target.glob("_delta_log/*.json")):
            process = start("clone", path, number)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors[-3000:]
        assert ids(target) == ids(path), number
        assert {file: file.stat().st_mtime_ns for file in copies} == copies, "a copy that was whole was made anew"
        assert DeltaTable(str(target)).fsck().num_rows == 0
    assert killed >= KILLS // 2, f"{killed} of {KILLS} were killed, {partial_count} with some of the files copied"


def time_of(role: str, path: Path) -> float:
    make(path)
    began = time.monotonic()
    process = start(role, path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors[-3000:]
    check_done(role, path)
    return time.monotonic() - began


def check_done(role: str, path: Path) -> None:
    live = set(DeltaTable(str(path)).files()["path"].to_pylist())
    if role == "clone":
        assert ids(Path(f"{path}-0")) == ids(path)
    elif role in ("batches", "orders"):
        assert len(live) == 20
    else:
        assert {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in str(file)} == live
