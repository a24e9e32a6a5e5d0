"""A bank whose ledger in PostgreSQL is used over connections that are cut: before a request, instead of its answer, or so that
the request arrives late. PYDELTA_SEED chooses the cuts, PYDELTA_FAULTS_N the number of transfers of each writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.faults.cut_bank import check, open_bank, transfers
from tests.support.runs.seeds import seed_of
from tests.support.servers import postgres as postgres_server
from tests.support.servers.cutting_tcp import RandomCuts, TcpProxy

EACH = int(os.environ.get("PYDELTA_FAULTS_N") or 6)
SHARE = 0.02


@pytest.fixture
def server() -> Iterator[str]:
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    with postgres_server.running() as url:
        yield url


def test_transfer_happens_once_or_never_as_the_writer_reports(tmp_path: Path, server: str) -> None:
    seed, bank = seed_of("cut connections"), open_bank(tmp_path, server)
    port = urlsplit(server).port
    assert port is not None
    with TcpProxy(port, RandomCuts(seed, SHARE)) as proxy:
        reports = transfers(bank, server.replace(f":{port}", f":{proxy.port}"), seed, EACH)
    cuts = {cut.name: count for cut, count in proxy.counts.items()}
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_N={EACH}: {cuts}; {reports}")
    assert proxy.counts, "nothing was cut"
    check(bank, reports)
