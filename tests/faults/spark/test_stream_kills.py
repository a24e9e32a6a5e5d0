"""Streams of a Spark driver. The driver is killed at any moment, or only its Python workers: each row and each change arrives
once.

PYDELTA_FAULTS_KILLS is the number of kills, 4 by default; PYDELTA_SEED chooses their moments. test_stream_crashes has the engine
without Spark, which can be killed far more often in the same time.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.faults.stream_kills import run_with_kills
from tests.support.runs.seeds import run_seed

KILLS = int(os.environ.get("PYDELTA_FAULTS_KILLS") or 4)
SEED = run_seed() or random.randrange(10**6)


@pytest.mark.timeout(600 + 60 * KILLS)
def test_streams_of_a_killed_driver_give_rows_and_changes_once(tmp_path: Path) -> None:
    print(f"PYDELTA_SEED={SEED} PYDELTA_FAULTS_KILLS={KILLS}")
    print(run_with_kills(tmp_path, KILLS, SEED))
