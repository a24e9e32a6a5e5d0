"""Processes that run transactions over tables at the same time, some of which are killed, and their history.

    history = history_of_processes(url, tmp_path, "serializable", seed, each=8)
    assert history.anomalies("serializable") == []

The history comes from the files of the processes and from the tables.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from pathlib import Path

from tests.support.generators.random_transactions import Work, counted, create, history_of, run
from tests.support.oracles.serialisability import History

WRITERS = 2
_NEXT_SEED = 1000  # for the processes that are killed, so that their values differ from all others


def _kill_in_the_midst(process: multiprocessing.process.BaseProcess, file: Path, draw: random.Random) -> None:
    """When it has begun a commit, or at another moment."""
    commit_count, deadline = draw.randint(1, 3), time.monotonic() + 120
    while process.is_alive() and time.monotonic() < deadline:
        lines = file.read_text().splitlines() if file.exists() else []
        if sum('"steps"' in line for line in lines) >= commit_count and '"steps"' in lines[-1]:
            break
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.05))
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def history_of_processes(url: str, directory: Path, isolation: str, seed: int, each: int) -> History:
    """each: the number of transactions of a process that is not killed. The tables are made in the directory; the counts of
    transactions are printed."""
    paths = [directory / "a", directory / "b", directory / "c"]
    create(url, paths)
    context, draw, files = multiprocessing.get_context("spawn"), random.Random(seed), list[Path]()

    def start(number: int, count: int | None) -> multiprocessing.process.BaseProcess:
        files.append(directory / f"writer {number}")
        process = context.Process(target=run, args=(Work(url, paths, number, isolation, count), files[-1]))
        process.start()
        return process

    writers = [start(seed + number, each) for number in range(WRITERS)]
    kills = 0
    while any(writer.is_alive() for writer in writers) or kills < 2:
        killed = start(seed + _NEXT_SEED + kills, None)
        _kill_in_the_midst(killed, files[-1], draw)
        kills += 1
    for writer in writers:
        writer.join(600)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    history = history_of(url, paths, files)
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_N={each} {isolation}, {kills} killed: {counted(history)}")
    return history
