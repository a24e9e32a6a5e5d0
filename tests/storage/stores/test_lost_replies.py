"""Eight processes commit to one table while requests and answers get lost: no commit is lost or doubled, and no commit exists
whose writer got a refusal.

PYDELTA_STORAGE_ROUNDS (make storage ROUNDS=) is the number of commits that each process tries; PYDELTA_SEED chooses the faults.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import CommitOutcomeUnknownError, DeltaError
from delta_py.log.history import history
from delta_py.object_stores.open_store import open_store
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from tests.storage.conftest import REMOTE_STORES, new_url, remote_settings, started_emulators
from tests.support.runs.seeds import seed_of
from tests.support.servers.cutting_proxy import CuttingProxy, Fault, FaultPlan, Request
from tests.support.servers.emulators import Emulator

WRITERS = 8
ROUNDS = int(os.environ.get("PYDELTA_STORAGE_ROUNDS") or 6)
ROUNDS_OF_A_TABLE = 25  # a table of very many commits takes longer to open than to write to
# Every ten minutes Azurite scans all its data, and answers no request for longer than a client waits.
ROUNDS_OF_AN_EMULATOR = 100
# The client waits for an answer that does not come.
TIMEOUTS = {"storage.request_timeout": "1", "storage.retry_timeout": "60"}


def is_commit(request: Request) -> bool:
    """A write of a new object under `_delta_log`, or of a new item that decides one."""
    if "x-amz-target" in request.headers:
        return b"attribute_not_exists" in request.body
    is_new = "if-none-match" in request.headers or "ifGenerationMatch=0" in request.target
    return is_new and (b"_delta_log" in request.body[:4000] or "_delta_log" in request.target)


def is_any(request: Request) -> bool:
    return True


@dataclass(frozen=True)
class Attempt:
    """What a writer knows about one commit. version: None if it was not confirmed. error: the message instead."""

    row_id: int
    version: int | None
    is_unknown: bool = False
    error: str = ""


def append_rows(store: ObjectStore, row_ids: list[int], start: Any, finished: Any) -> None:
    os.environ["PYDELTA_POST_COMMIT_ERRORS"] = "mistakes"  # faults after a commit are not errors of the commit
    attempts = []
    start.wait(60)
    for row_id in row_ids:
        try:
            version = write_delta(store.root, pa.table({"id": [row_id]}), mode="append", store=store)
            attempts.append(Attempt(row_id, version))
        except CommitOutcomeUnknownError as error:
            attempts.append(Attempt(row_id, None, is_unknown=True, error=str(error)))
        except (DeltaError, OSError) as error:
            attempts.append(Attempt(row_id, None, error=repr(error)))
    finished.put(attempts)


def commit_at_once(store: ObjectStore, rounds: int) -> list[Attempt]:
    """The reports of all writers, each of `rounds` commits."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["delta_py", "boto3", "google.cloud.storage", "azure.storage.blob"])
    start, finished = context.Barrier(WRITERS), context.SimpleQueue()
    row_ids = [[turn * WRITERS + writer for turn in range(rounds)] for writer in range(WRITERS)]
    processes = [context.Process(target=append_rows, args=(store, mine, start, finished)) for mine in row_ids]
    for process in processes:
        process.start()
    attempts = [attempt for _ in processes for attempt in finished.get()]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    return attempts


def check_table(store: ObjectStore, attempts: list[Attempt]) -> None:
    """store: reaches the table without faults."""
    table = DeltaTable(store.root, store=store)
    table.snapshot.check_integrity()
    id_counts = Counter(table.to_arrow()["id"].to_pylist())
    assert max(id_counts.values()) == 1, f"doubled: {[row_id for row_id, count in id_counts.items() if count > 1]}"
    confirmed = {attempt.row_id: attempt.version for attempt in attempts if attempt.version is not None}
    assert confirmed.keys() <= id_counts.keys(), f"lost: {sorted(confirmed.keys() - id_counts.keys())}"
    refused = {attempt.row_id: attempt for attempt in attempts if attempt.version is None and not attempt.is_unknown}
    phantoms = [refused[row_id] for row_id in refused.keys() & id_counts.keys()]
    assert not phantoms, f"there, and said not to be: {phantoms}"
    assert id_counts.keys() <= {-1, *(attempt.row_id for attempt in attempts)}

    versions = history(store)["version"].to_pylist()
    assert versions == list(range(table.version, -1, -1))
    assert table.version == len(id_counts) - 1, "one row a version, and the row of the first"
    assert len(set(confirmed.values())) == len(confirmed), "each was told a version of its own"
    for row_id, version in list(confirmed.items())[::7]:
        assert count_at(store, version, row_id) == 1
        assert count_at(store, version - 1, row_id) == 0


def count_at(store: ObjectStore, version: int, row_id: int) -> int:
    """How often a version has a row: only the files that may have it are read."""
    return DeltaTable(store.root, store=store, version=version).to_arrow(filter=f"id = {row_id}").num_rows


@contextlib.contextmanager
def proxies(
    name: str, emulators: Callable[[str], Emulator], plan: FaultPlan
) -> Iterator[tuple[dict[str, str], list[CuttingProxy]]]:
    """The settings that reach a store through proxies, one before each of its servers; and the proxies."""
    with contextlib.ExitStack() as stack:
        settings, started = dict[str, str](), list[CuttingProxy]()
        for server in ("s3", name) if name == "dynamodb" else (name,):
            started.append(stack.enter_context(CuttingProxy(emulators(server).port, plan=plan)))
            settings |= emulators(server).settings(started[-1].endpoint)
        yield {**remote_settings(name, emulators), **settings}, started


def run_rounds(rounds: int, url: str, direct: StorageOptions, spoiled: StorageOptions) -> list[Attempt]:
    """Tables of some rounds each, one after the other."""
    attempts: list[Attempt] = []
    for number, first in enumerate(range(0, rounds, ROUNDS_OF_A_TABLE)):
        root = f"{url}/{number}"
        write_delta(root, pa.table({"id": [-1]}), store=open_store(root, direct))
        reports = commit_at_once(open_store(root, spoiled), min(ROUNDS_OF_A_TABLE, rounds - first))
        check_table(open_store(root, direct), reports)
        attempts += reports
    return attempts


@pytest.mark.timeout(120 + 30 * ROUNDS)
@pytest.mark.parametrize("chosen", [is_commit, is_any], ids=["commits", "all requests"])
@pytest.mark.parametrize("name", REMOTE_STORES)
def test_no_commit_is_lost_or_doubled_while_answers_get_lost(
    emulators: Callable[[str], Emulator], name: str, chosen: Callable[[Request], bool]
) -> None:
    seed = seed_of(f"lost replies {name}")
    rounds, share = (ROUNDS, 0.25) if chosen is is_commit else (max(2, ROUNDS // 4), 0.08)
    print(f"seed {seed}, {rounds} rounds")
    attempts, faults = list[Attempt](), Counter[str]()
    for number, first in enumerate(range(0, rounds, ROUNDS_OF_AN_EMULATOR)):
        plan = FaultPlan(seed + number, share, tuple(Fault), chosen)
        emulators_of_round = started_emulators() if number else contextlib.nullcontext(emulators)
        with emulators_of_round as servers, proxies(name, servers, plan) as (settings, started):
            attempts += run_rounds(
                min(ROUNDS_OF_AN_EMULATOR, rounds - first),
                new_url(servers(name)),
                StorageOptions.of(remote_settings(name, servers)),
                StorageOptions.of({**settings, **TIMEOUTS}),
            )
            exchanges = [exchange for proxy in started for exchange in proxy.exchanges]
            faults.update(exchange.fault.name for exchange in exchanges if exchange.fault is not None)
    print(summary(attempts), *(f"{count} {fault}" for fault, count in sorted(faults.items())), sep=", ")
    assert sum(faults.values()) >= len(attempts) * share / 3, "the proxy has spoiled what it should"
    assert sum(attempt.version is not None for attempt in attempts) > len(attempts) * 0.9, "stores that come back are used"


def summary(attempts: list[Attempt]) -> str:
    confirmed = sum(attempt.version is not None for attempt in attempts)
    unknown = sum(attempt.is_unknown for attempt in attempts)
    return f"{len(attempts)} commits, {confirmed} confirmed, {unknown} unknown, {len(attempts) - confirmed - unknown} refused"
