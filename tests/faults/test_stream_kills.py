"""Streams of a Spark driver, which is killed at any moment, and its Python workers alone: each row and each change comes once.

PYDELTA_FAULTS_KILLS kills, 4 by default; PYDELTA_SEED chooses their moments. The engine without Spark, which is killed
far more often in the same time, is in test_stream_crashes.
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
def test_streams_of_a_killed_driver_give_each_row_and_each_change_once(tmp_path: Path) -> None:
    print(f"PYDELTA_SEED={SEED} PYDELTA_FAULTS_KILLS={KILLS}")
    print(run_with_kills(tmp_path, KILLS, SEED))
