"""Transactions over a ledger in DynamoDB whose requests are cut, answered late or not at all, and whose processes are killed.
PYDELTA_SEED chooses the faults, PYDELTA_FAULTS_N the number of transfers or transactions of each writer.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.faults.cut_bank import check, open_bank, transfers
from tests.support.faults.killed_transactions import history_of_processes
from tests.support.runs.seeds import seed_of
from tests.support.servers.cutting_proxy import CuttingProxy, FaultPlan
from tests.support.servers.emulators import Emulator, dynamodb_ledger_url

EACH = int(os.environ.get("PYDELTA_FAULTS_N") or 6)
SHARE = 0.1
TIMEOUT = "&request_timeout=1&retry_timeout=20"


@pytest.fixture
def server(emulators: Callable[[str], Emulator]) -> Iterator[Emulator]:
    yield emulators("dynamodb")


def spoiled(server: Emulator, direct: str, proxy: CuttingProxy) -> str:
    return dynamodb_ledger_url(server, proxy.endpoint, urlsplit(direct).netloc) + TIMEOUT


def faults_of(proxy: CuttingProxy) -> Counter[str]:
    return Counter(one.fault.name for one in proxy.exchanges if one.fault is not None)


def test_transfer_happens_once_or_never_as_the_writer_reports(tmp_path: Path, server: Emulator) -> None:
    seed, direct = seed_of("cut requests to DynamoDB"), dynamodb_ledger_url(server)
    bank = open_bank(tmp_path, direct)
    with CuttingProxy(server.port, plan=FaultPlan(seed, SHARE)) as proxy:
        reports = transfers(bank, spoiled(server, direct, proxy), seed, EACH)
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_N={EACH}: {faults_of(proxy)} of {len(proxy.exchanges)}; {reports}")
    assert any(name.endswith("AFTER") for name in faults_of(proxy)), "no reply was lost"
    check(bank, reports)


def test_transactions_of_killed_processes_stay_isolated(tmp_path: Path, server: Emulator) -> None:
    seed, direct = seed_of("histories in DynamoDB"), dynamodb_ledger_url(server)
    with CuttingProxy(server.port, plan=FaultPlan(seed, SHARE / 4)) as proxy:
        history = history_of_processes(spoiled(server, direct, proxy), tmp_path, "serializable", seed, EACH)
    assert faults_of(proxy), "no request was spoiled"
    assert history.anomalies("serializable") == []
