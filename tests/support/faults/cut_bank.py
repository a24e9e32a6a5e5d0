"""A bank whose writers use their ledger over connections that are cut: each transfer is done once or not at all, as its writer
reports.

    told = transfers(bank, cut_url, seed, each=6)       # over a proxy
    check(bank, told)                                   # at the ledger's own address
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.ledger import CoordinatorUnavailableError
from delta_py.errors import CommitOutcomeUnknownError, DeltaConcurrentModificationException, DeltaError
from delta_py.transactions import DeltaTransaction
from tests.support.stores.coordination import coordinated, create_coordinated, rows_of

WRITERS, ACCOUNTS, START = 3, 6, 100
_NUMBERS = 10_000


@dataclass(frozen=True)
class Bank:
    """Two tables, known to the ledger at an address that is not cut."""

    url: str
    accounts: Path
    entries: Path


def open_bank(directory: Path, url: str) -> Bank:
    accounts, entries = directory / "accounts", directory / "entries"
    balances = {"id": list(range(ACCOUNTS)), "balance": [START] * ACCOUNTS}
    create_coordinated(accounts, url, balances, delta__enableDeletionVectors="true")
    create_coordinated(entries, url, {"id": [-1]})
    return Bank(url, accounts, entries)


@dataclass
class Told:
    """The numbers of transfers and deposits, by the results that their writers got."""

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


def _transfer(url: str, bank: Bank, number: int, draw: random.Random) -> None:
    giver, taker = draw.sample(range(ACCOUNTS), 2)
    accounts, entries = bank.accounts, bank.entries
    with DeltaTransaction(url) as tx:
        assert tx.read(str(accounts), filter=f"id IN ({giver}, {taker})").num_rows == 2
        change = f"CASE WHEN id = {giver} THEN balance - 1 ELSE balance + 1 END"
        tx.update(str(accounts), {"balance": change}, predicate=f"id IN ({giver}, {taker})")
        tx.append(str(entries), pa.table({"id": [number]}))


def _work(url: str, bank: Bank, seed: int, writer: int, each: int) -> Told:
    draw, report = random.Random(seed + writer), Told()
    for count in range(each):
        number = (writer + 1) * _NUMBERS + count
        error: Exception | None = None
        try:
            if count % 2:  # alone: a commit of one table, by the committer
                store = coordinated(bank.entries, url)
                write_delta(str(bank.entries), pa.table({"id": [number]}), mode="append", store=store)
            else:
                _transfer(url, bank, number, draw)
        except DeltaError as raised:
            error = raised
        report.note(number, error)
    return report


def transfers(bank: Bank, url: str, seed: int, each: int) -> Told:
    """Some writers at the same time, each with this number of transfers. url: the address by which they reach the bank's
    ledger."""
    with ThreadPoolExecutor(WRITERS) as pool:
        reports = list(pool.map(lambda writer: _work(url, bank, seed, writer, each), range(WRITERS)))
    return Told(*(set[int]().union(*(getattr(report, name) for report in reports)) for name in ("done", "refused", "unknown")))


def check(bank: Bank, reports: Told) -> None:
    entry_counts = Counter(rows_of(bank.entries, bank.url))
    assert reports.done, "nothing was done"
    assert set(entry_counts.values()) == {1} and reports.done <= entry_counts.keys() and not reports.refused & entry_counts.keys()
    assert entry_counts.keys() <= {-1} | reports.done | reports.unknown
    table = DeltaTable(str(bank.accounts), store=coordinated(bank.accounts, bank.url))
    assert sum(table.to_arrow()["balance"].to_pylist()) == START * ACCOUNTS
    finished = [number for number in entry_counts if number > 0 and number % _NUMBERS % 2 == 0]
    assert table.version == len(finished), "a transfer is in both tables or in none"
    for path in (bank.accounts, bank.entries):
        DeltaTable(str(path), store=coordinated(path, bank.url)).snapshot.check_integrity()
