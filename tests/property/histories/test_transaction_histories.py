"""Transactions over tables that take steps in turn: each isolation level holds, judged by what each transaction has read and
written.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py.errors import DeltaConcurrentModificationException
from delta_py.transactions import DeltaTransaction
from tests.support.generators.random_transactions import Work, counted, create, history_of, transactions
from tests.support.oracles.serialisability import History
from tests.support.runs.sampling import examples
from tests.support.runs.seeds import seed_of
from tests.support.stores.coordination import ledger_url

WRITERS, EACH = 3, 8


def interleaved(directory: Path, seed: int, isolation: str) -> History:
    """The seed chooses which writer takes each step: the same seed repeats a run."""
    url, paths, draw = ledger_url(directory), [directory / "a", directory / "b"], random.Random(seed)
    create(url, paths)
    files = [directory / f"writer {number}" for number in range(WRITERS)]
    with ExitStack() as stack:
        writers = [
            transactions(Work(url, paths, seed * WRITERS + number, isolation, EACH), stack.enter_context(file.open("w")))
            for number, file in enumerate(files)
        ]
        while writers:
            writer = draw.choice(writers)
            if next(writer, "ended") == "ended":
                writers.remove(writer)
    return history_of(url, paths, files)


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_transactions_that_take_turns_are_isolated(tmp_path: Path, isolation: str) -> None:
    for number in range(examples(1, 40)):
        (directory := tmp_path / str(number)).mkdir()
        seed = seed_of("transactions that take turns") + number
        history = interleaved(directory, seed, isolation)
        print(seed, isolation, counted(history))
        assert history.anomalies(isolation) == [], seed
        assert {"committed", "aborted"} <= {one.outcome for one in history.transactions}


@pytest.mark.usefixtures("no_waits")
def test_checker_finds_write_skew_of_snapshot_transactions(tmp_path: Path) -> None:
    """So the random transactions would show a broken guarantee."""
    seed = seed_of("transactions that skew")
    for number in range(20):
        (directory := tmp_path / str(number)).mkdir()
        anomalies = interleaved(directory, seed + number, "snapshot").anomalies("serializable")
        if anomalies:
            assert [anomaly.kind for anomaly in anomalies] == ["cycle"] and anomalies[0].what.count("rw") > 1
            return
    raise AssertionError("no write skew in 20 runs")


def test_only_snapshot_isolation_allows_write_skew(tmp_path: Path) -> None:
    url, path = ledger_url(tmp_path), tmp_path / "a"
    create(url, [path])

    def skew(isolation: str) -> None:
        with DeltaTransaction(url, isolation=isolation) as one, DeltaTransaction(url, isolation=isolation) as other:
            for number, tx in enumerate((one, other)):
                assert tx.read(str(path), filter="id <= 2").num_rows == 2
                tx.update(str(path), {"value": "-1"}, predicate=f"id = {2 * number}")

    skew("snapshot")
    with pytest.raises(DeltaConcurrentModificationException):
        skew("serializable")


@pytest.mark.parametrize("statement", ["update", "delete", "merge"])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_statement_that_finds_no_row_is_a_read(tmp_path: Path, isolation: str, statement: str) -> None:
    url, paths = ledger_url(tmp_path), [tmp_path / "a", tmp_path / "b"]
    create(url, paths)

    def run(key: int) -> dict[str, int]:
        with DeltaTransaction(url, isolation=isolation) as tx:
            match statement:
                case "update":
                    assert tx.update(str(paths[0]), {"value": "-1"}, predicate="id = 99")["numUpdatedRows"] == 0
                case "delete":
                    assert tx.delete(str(paths[0]), "id = 99")["numDeletedRows"] == 0
                case "merge":
                    source = pa.table({"id": [99]})
                    tx.merge(str(paths[0]), source, "source.id = target.id").when_matched_delete().execute()
            tx.append(str(paths[1]), pa.table({"id": [50], "grp": [0], "value": [50]}))
            with DeltaTransaction(url) as other:
                other.append(str(paths[0]), pa.table({"id": [key], "grp": [0], "value": [key]}))
                other.delete(str(paths[0]), "id = 2")
        return dict(tx.versions)

    assert run(77) == {str(paths[1]): 1}, "a row that it would not have found"
    if isolation == "snapshot":
        assert run(99) == {str(paths[1]): 2}
    else:
        with pytest.raises(DeltaConcurrentModificationException):
            run(99)
