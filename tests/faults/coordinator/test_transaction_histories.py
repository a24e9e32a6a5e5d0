"""Processes run transactions over several tables at the same time, and some of them are killed. Each isolation level holds,
judged by the reads and writes that each process reports. PYDELTA_SEED and PYDELTA_FAULTS_N choose the transactions and their
number for each process.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.faults.killed_transactions import history_of_processes
from tests.support.runs.seeds import seed_of
from tests.support.stores.coordination import ledger_url

EACH = int(os.environ.get("PYDELTA_FAULTS_N") or 8)


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_transactions_of_killed_processes_stay_isolated(tmp_path: Path, isolation: str) -> None:
    history = history_of_processes(ledger_url(tmp_path), tmp_path, isolation, seed_of(f"histories {isolation}"), EACH)
    assert history.anomalies(isolation) == []
