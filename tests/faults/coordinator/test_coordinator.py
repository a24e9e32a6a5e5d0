"""Commits and transactions of coordinated tables while any call of a store or of the ledger fails, loses its reply, or is the
last before the process dies. The outcome is known, a transaction is in all tables or in none, and the next writer can continue.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.ledger import Ledger
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.transactions import DeltaTransaction
from tests.support.runs.sampling import sampled
from tests.support.stores.coordination import Calls, call_count, clock_ahead, coordinated, create_coordinated, ledger_url, rows_of
from tests.support.stores.faulty_store import KINDS, Fault, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits", "publication_at_once")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


def tables(tmp_path: Path, url: str) -> tuple[Path, Path]:
    paths = tmp_path / "a", tmp_path / "b"
    for path in paths:
        create_coordinated(path, url, {"id": [0, 1]}, delta__enableDeletionVectors="true")
    return paths


def append(path: Path, url: str) -> int:
    return write_delta(str(path), pa.table({"id": [7]}), mode="append", store=coordinated(path, url))


def transfer(a: Path, b: Path, url: str) -> bool:
    with DeltaTransaction(url) as tx:
        tx.read(str(a), filter="id = 1")
        tx.delete(str(a), "id = 1")
        tx.append(str(b), pa.table({"id": [1]}))
    return True


@pytest.mark.parametrize("kind", sampled(KINDS, 2))
def test_commit_under_every_fault(tmp_path: Path, kind: str) -> None:
    counted, _ = tables(tmp_path / "count", url := ledger_url(tmp_path))
    calls = call_count(url, lambda: append(counted, url))
    ends = Counter[str]()
    for number in range(calls):
        path, _ = tables(tmp_path / str(number), url)
        with pytest.MonkeyPatch.context() as patch:
            Calls(patch, url, Fault(number, **KINDS[kind]))
            version, end = outcome_of(lambda path=path: append(path, url))
        ends[end] += 1
        actual_rows = rows_of(path, url)
        assert actual_rows.count(7) <= 1
        if end == "done":
            assert actual_rows.count(7) == 1 and version == 1
        if end == "refused":
            assert actual_rows.count(7) == 0
        append(path, url)
        DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
        assert rows_of(path, url).count(7) == actual_rows.count(7) + 1
    assert ends["killed" if "killed" in kind else "done"], ends


@pytest.mark.parametrize("kind", sampled(KINDS, 3))
def test_transaction_under_any_fault_is_in_all_tables_or_none(tmp_path: Path, kind: str) -> None:
    url = ledger_url(tmp_path)
    a, b = tables(tmp_path / "count", url)
    calls = call_count(url, lambda: transfer(a, b, url))
    ends = Counter[str]()
    for number in range(calls):
        a, b = tables(tmp_path / str(number), url)
        with pytest.MonkeyPatch.context() as patch:
            Calls(patch, url, Fault(number, **KINDS[kind]))
            _, end = outcome_of(lambda a=a, b=b: transfer(a, b, url))
        ends[end] += 1
        actual_rows = rows_of(a, url), rows_of(b, url)
        assert actual_rows in (([0, 1], [0, 1]), ([0], [0, 1, 1])), (number, end)
        if end == "done":
            assert actual_rows[0] == [0]
        if end == "refused" and "lost" not in kind and "down" not in kind:
            assert actual_rows[0] == [0, 1], number
        for path in (a, b):  # the next writer continues
            append(path, url)
            DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
        if actual_rows[0] == [0, 1]:
            transfer(a, b, url)
        assert (rows_of(a, url), rows_of(b, url)) == ([0, 7], [0, 1, 1, 7])
    assert ends["killed" if "killed" in kind else "done"], ends


@pytest.mark.parametrize("kind", ["fails before it", "reply lost"])
def test_abort_after_fault_leaves_all_tables_changed_or_none(tmp_path: Path, kind: str) -> None:
    """Immediately, with a clock that is days ahead: so the ledger no longer knows whether the transaction was committed."""
    url = ledger_url(tmp_path)
    a, b = tables(tmp_path / "count", url)
    calls = call_count(url, lambda: transfer(a, b, url))
    ledger = open_ledger(url)
    ends = Counter[str]()
    for number in range(calls):
        a, b = tables(tmp_path / str(number), url)
        with pytest.MonkeyPatch.context() as patch:
            Calls(patch, url, Fault(number, **KINDS[kind]), after=lambda: give_up_all(ledger))
            _, end = outcome_of(lambda a=a, b=b: transfer(a, b, url))
        ends[end] += 1
        actual_rows = rows_of(a, url), rows_of(b, url)
        moved = {"done": True, "refused": False}.get(end, actual_rows[0] == [0])
        assert actual_rows == (([0], [0, 1, 1]) if moved else ([0, 1], [0, 1])), (number, end)
        for path in (a, b):
            append(path, url)
            DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
    assert ends["refused"] and ends["done"], ends


def give_up_all(ledger: Ledger) -> None:
    with clock_ahead(3 * 24 * 3600.0):
        ledger.begin(60)


# ---------------------------------------------------------------- a bank


ACCOUNTS = 6
START = 100


def transfer_money(seed: int, url: str, accounts: str, entries: str, count: int, finished: Any) -> None:
    draw, committed = random.Random(seed), 0
    while committed < count:
        giver, taker = draw.sample(range(ACCOUNTS), 2)
        try:
            with DeltaTransaction(url) as tx:
                balances = tx.read(accounts, filter=f"id IN ({giver}, {taker})")
                assert balances.num_rows == 2
                change = f"CASE WHEN id = {giver} THEN balance - 1 ELSE balance + 1 END"
                tx.update(accounts, {"balance": change}, predicate=f"id IN ({giver}, {taker})")
                tx.append(entries, pa.table({"id": [seed * 1000 + committed]}))
            committed += 1
        except DeltaConcurrentModificationException:
            continue
    finished.put(seed)


def test_bank_has_the_same_total_at_every_moment(tmp_path: Path, url: str) -> None:
    accounts, entries = tmp_path / "accounts", tmp_path / "entries"
    create_coordinated(
        accounts, url, {"id": list(range(ACCOUNTS)), "balance": [START] * ACCOUNTS}, delta__enableDeletionVectors="true"
    )
    create_coordinated(entries, url, {"id": [-1]})
    context = multiprocessing.get_context("forkserver")
    finished = context.SimpleQueue()
    arguments = [(seed, url, str(accounts), str(entries), count, finished) for seed, count in enumerate([3, 3, 3, 1000])]
    *writers, killed = [context.Process(target=transfer_money, args=each) for each in arguments]
    for writer in (*writers, killed):
        writer.start()
    readings = 0
    while any(writer.is_alive() for writer in writers):
        if len(rows_of(entries, url)) > 4:
            killed.kill()  # wherever the process is
        with DeltaTransaction(url) as tx:
            balances, written = tx.read(str(accounts)), tx.table(str(entries))
            assert sum(balances["balance"].to_pylist()) == START * ACCOUNTS
            assert tx.table(str(accounts)).version == written.version, "each transfer is one commit of each table"
            tx.abort()
        readings += 1
    killed.kill()
    for writer in (*writers, killed):
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 3 and killed.exitcode == -signal.SIGKILL and readings
    written_by = Counter(entry // 1000 for entry in rows_of(entries, url))
    assert [written_by[seed] for seed in range(3)] == [3, 3, 3]
    balances = DeltaTable(str(accounts), store=coordinated(accounts, url))
    assert sum(balances.to_arrow()["balance"].to_pylist()) == START * ACCOUNTS
    assert balances.version == len(rows_of(entries, url)) - 1, "each transfer is in both tables"
    balances.snapshot.check_integrity()
