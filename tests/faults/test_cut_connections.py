"""A bank whose writers reach their ledger over connections that are cut: before a request, instead of its answer, or so that the
server sees it late. Each transfer is done once or not at all, as its writer was told. PYDELTA_SEED chooses the cuts,
PYDELTA_FAULTS_N how many transfers each writer makes."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.ledger import CoordinatorUnavailableError
from delta_py.errors import CommitOutcomeUnknownError, DeltaConcurrentModificationException, DeltaError
from delta_py.transactions import DeltaTransaction
from tests.support import postgres as postgres_server
from tests.support.coordination import coordinated, create_coordinated, rows_of
from tests.support.cutting_tcp import RandomCuts, TcpProxy
from tests.support.seeds import seed_of

EACH = int(os.environ.get("PYDELTA_FAULTS_N") or 6)
WRITERS, ACCOUNTS, START, SHARE = 3, 6, 100, 0.02
_NUMBERS = 10_000


@pytest.fixture
def server() -> Iterator[str]:
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    with postgres_server.running() as url:
        yield url


@dataclass
class Told:
    """The numbers of transfers and deposits, by what their writers were told."""

    done: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)

    def note(self, number: int, error: Exception | None) -> None:
        match error:
            case None:
                self.done.add(number)
            case CommitOutcomeUnknownError():
                self.unknown.add(number)
            case CoordinatorUnavailableError() | DeltaConcurrentModificationException():
                self.refused.add(number)
            case _:
                raise error


def transfer(url: str, accounts: Path, entries: Path, number: int, draw: random.Random) -> None:
    giver, taker = draw.sample(range(ACCOUNTS), 2)
    with DeltaTransaction(url) as tx:
        assert tx.read(str(accounts), filter=f"id IN ({giver}, {taker})").num_rows == 2
        change = f"CASE WHEN id = {giver} THEN balance - 1 ELSE balance + 1 END"
        tx.update(str(accounts), {"balance": change}, predicate=f"id IN ({giver}, {taker})")
        tx.append(str(entries), pa.table({"id": [number]}))


def work(url: str, accounts: Path, entries: Path, seed: int, writer: int) -> Told:
    draw, told = random.Random(seed + writer), Told()
    for count in range(EACH):
        number = (writer + 1) * _NUMBERS + count
        error: Exception | None = None
        try:
            if count % 2:  # by itself: a commit of one table, by the committer
                write_delta(str(entries), pa.table({"id": [number]}), mode="append", store=coordinated(entries, url))
            else:
                transfer(url, accounts, entries, number, draw)
        except DeltaError as raised:
            error = raised
        told.note(number, error)
    return told


def test_each_transfer_is_done_once_or_not_at_all_as_its_writer_was_told(tmp_path: Path, server: str) -> None:
    seed = seed_of("cut connections")
    accounts, entries = tmp_path / "accounts", tmp_path / "entries"
    balances = {"id": list(range(ACCOUNTS)), "balance": [START] * ACCOUNTS}
    create_coordinated(accounts, server, balances, delta__enableDeletionVectors="true")
    create_coordinated(entries, server, {"id": [-1]})
    port = urlsplit(server).port
    assert port is not None
    with TcpProxy(port, RandomCuts(seed, SHARE)) as proxy:
        url = server.replace(f":{port}", f":{proxy.port}")
        with ThreadPoolExecutor(WRITERS) as pool:
            all_told = list(pool.map(lambda writer: work(url, accounts, entries, seed, writer), range(WRITERS)))
    found = Counter(rows_of(entries, server))
    done, refused, unknown = (
        set[int]().union(*(getattr(told, name) for told in all_told)) for name in ("done", "refused", "unknown")
    )
    cuts = {cut.name: count for cut, count in proxy.counts.items()}
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_N={EACH}: {cuts}; {len(done)} done, {len(refused)} refused, {unknown=}")
    assert proxy.counts and done, "nothing was cut, or everything"
    assert set(found.values()) == {1} and done <= found.keys() and not refused & found.keys()
    assert found.keys() <= {-1} | done | unknown
    table = DeltaTable(str(accounts), store=coordinated(accounts, server))
    assert sum(table.to_arrow()["balance"].to_pylist()) == START * ACCOUNTS
    transfers = [number for number in found if number > 0 and number % _NUMBERS % 2 == 0]
    assert table.version == len(transfers), "a transfer is in both tables or in none"
    for path in (accounts, entries):
        DeltaTable(str(path), store=coordinated(path, server)).snapshot.check_integrity()
