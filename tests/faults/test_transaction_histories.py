"""Processes that carry out transactions over tables at once, some of which are killed: each isolation holds, by what each process
says that it has read and written. PYDELTA_SEED and PYDELTA_FAULTS_N choose the transactions, and how many each process makes."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.coordination import ledger_url
from tests.support.random_transactions import Work, counted, create, history_of, run
from tests.support.seeds import seed_of

EACH = int(os.environ.get("PYDELTA_FAULTS_N") or 8)
WRITERS = 2
_NEXT_SEED = 1000  # for the processes that are killed, so that their values are their own


def kill_in_the_midst(process: multiprocessing.process.BaseProcess, file: Path, draw: random.Random) -> None:
    """When it has begun some commit, or somewhere else."""
    wanted, deadline = draw.randint(1, 3), time.monotonic() + 120
    while process.is_alive() and time.monotonic() < deadline:
        lines = file.read_text().splitlines() if file.exists() else []
        if sum('"steps"' in line for line in lines) >= wanted and '"steps"' in lines[-1]:
            break
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.05))
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_transactions_of_processes_that_may_be_killed_are_isolated(tmp_path: Path, isolation: str) -> None:
    url, paths, seed = ledger_url(tmp_path), [tmp_path / "a", tmp_path / "b", tmp_path / "c"], seed_of(f"histories {isolation}")
    create(url, paths)
    context, draw, files = multiprocessing.get_context("spawn"), random.Random(seed), list[Path]()

    def start(number: int, count: int | None) -> multiprocessing.process.BaseProcess:
        files.append(tmp_path / f"writer {number}")
        process = context.Process(target=run, args=(Work(url, paths, number, isolation, count), files[-1]))
        process.start()
        return process

    writers = [start(seed + number, EACH) for number in range(WRITERS)]
    kills = 0
    while any(writer.is_alive() for writer in writers) or kills < 2:
        killed = start(seed + _NEXT_SEED + kills, None)
        kill_in_the_midst(killed, files[-1], draw)
        kills += 1
    for writer in writers:
        writer.join(600)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    history = history_of(url, paths, files)
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_N={EACH} {isolation}, {kills} killed: {counted(history)}")
    assert history.anomalies(isolation) == []
