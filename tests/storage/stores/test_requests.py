"""The number of requests to a store: each request takes longer than all processing of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.object_stores.open_store import open_store
from delta_py.storage.cache import content_identity
from delta_py.storage.store import ObjectStore
from tests.storage.conftest import new_url
from tests.support.servers.cutting_proxy import CuttingProxy
from tests.support.servers.emulators import Emulator
from tests.support.stores.store_requests import Operation, operations

HINT = "_delta_log/_last_checkpoint"
CHECKPOINT = 10

# How many requests may be made at most.
CHECKPOINT_READS = 1  # of a small one: its end has all of it
CHECKSUM_READS = 2  # the version's, which is compared with the replay, and the checkpoint's, with which that is compared
COLUMN_READS = 1  # neighbouring pages, with one request
FOOTER_READS = 1


class Watched:
    """A table's store behind a proxy, and the requests to it."""

    def __init__(self, emulator: Emulator, proxy: CuttingProxy) -> None:
        self.root = new_url(emulator)
        self.direct: ObjectStore = open_store(self.root, emulator.options())
        self.store: ObjectStore = open_store(self.root, emulator.options(proxy.endpoint))
        self.proxy = proxy

    def asked(self, action: Callable[[], object]) -> list[Operation]:
        """The requests of an action, all of them below the table's root: no SDK sends requests of its own."""
        with self.proxy.counted() as exchanges:
            action()
        requests = operations(exchanges, self.root)
        assert len(requests) == len(exchanges), [exchange.request.target for exchange in exchanges]
        return requests

    def append(self, store: ObjectStore, count: int) -> None:
        for number in range(count):
            write_delta(self.root, pa.table({"id": [number]}), mode="append", store=store)

    def open(self) -> DeltaTable:
        """Including all that reading its rows needs of the log."""
        table = DeltaTable(self.root, store=self.store)
        table.snapshot.files()
        return table


@pytest.fixture
def watched(emulator: Emulator) -> Iterator[Watched]:
    with CuttingProxy(emulator.port) as proxy:
        yield Watched(emulator, proxy)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def at(requests: list[Operation], path: str) -> list[str]:
    """The verbs of requests for one object, or for objects with this end of their name."""
    return [one.verb for one in requests if one.path.endswith(path)]


@pytest.mark.parametrize("commits", [0, 1, 5])
def test_open_reads_the_checkpoint_and_each_later_commit_once(watched: Watched, commits: int) -> None:
    watched.append(watched.direct, CHECKPOINT + 1 + commits)
    requests = watched.asked(watched.open)
    assert len(at(requests, HINT)) == 1
    assert [one.path for one in requests if one.verb == "LIST"] == ["_delta_log"]
    read = [one.path for one in requests if one.path.endswith(".json")]
    if commits < 5:  # these are compacted
        assert sorted(read) == [commit_path(version) for version in range(CHECKPOINT + 1, CHECKPOINT + 1 + commits)]
    assert len(set(read)) == len(read) <= commits
    assert len(at(requests, ".checkpoint.parquet")) <= CHECKPOINT_READS
    assert len(at(requests, ".crc")) <= CHECKSUM_READS
    assert len(requests) <= 2 + commits + CHECKPOINT_READS + CHECKSUM_READS


def test_second_open_with_cache_only_checks_for_new_commits(watched: Watched, cache: None) -> None:
    watched.append(watched.direct, CHECKPOINT + 4)
    watched.open()
    requests = watched.asked(watched.open)
    assert sorted(one.path for one in requests) == ["_delta_log", HINT]
    assert at(requests, "_delta_log") == ["LIST"]


def test_open_with_cache_after_a_commit_reads_only_that_commit(watched: Watched, cache: None) -> None:
    watched.append(watched.direct, CHECKPOINT + 4)
    watched.open()
    watched.append(watched.direct, 1)
    requests = watched.asked(watched.open)
    read = [one.path for one in requests if one.path not in ("_delta_log", HINT)]
    assert sorted(read) == [f"_delta_log/{CHECKPOINT + 4:020}.crc", commit_path(CHECKPOINT + 4)]


def test_commit_is_one_conditional_write_when_nobody_else_writes(watched: Watched) -> None:
    watched.append(watched.store, 3)  # which also tests the endpoint, once per process
    requests = watched.asked(lambda: watched.append(watched.store, 1))
    (commit,) = [place for place, one in enumerate(requests) if one.path == commit_path(3)]
    (data,) = [place for place, one in enumerate(requests) if one.path.endswith(".parquet")]
    assert requests[commit].verb == "PUT NEW"
    assert requests[data].verb == "PUT"
    assert requests[data + 1 : commit] == []
    assert len([one for one in requests[:data] if one.verb == "LIST"]) == 1, "the table is opened once"


def test_what_follows_a_commit_asks_for_little(watched: Watched) -> None:
    """The version checksum, made from the previous one."""
    watched.append(watched.store, 3)
    requests = watched.asked(lambda: watched.append(watched.store, 1))
    (commit,) = [place for place, one in enumerate(requests) if one.path == commit_path(3)]
    after = requests[commit + 1 :]
    assert [one.path for one in after if one.verb.startswith("PUT")] == [f"_delta_log/{3:020}.crc"]
    assert [one for one in after if one.verb == "LIST"] == []
    assert len(after) <= 2


def write_columns(watched: Watched) -> None:
    """One file of ten columns, each far from the footer and longer than an extra request is worth."""
    random = np.random.default_rng(1)
    columns = {f"c{number}": random.random(200_000) for number in range(10)}
    write_delta(watched.root, pa.table(columns), store=watched.direct)


def test_scan_of_one_column_reads_the_footer_and_that_column(watched: Watched) -> None:
    write_columns(watched)
    table = watched.open()
    requests = watched.asked(lambda: table.to_arrow(["c3"]))
    assert at(requests, ".parquet") == ["RANGE"] * (FOOTER_READS + COLUMN_READS)
    assert at(requests, "_delta_log") == []


def test_second_scan_with_the_cache_reads_the_column_only(
    watched: Watched, cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_identity, "_SETTLED_MS", -60_000)  # a file without an etag is cached from its second minute on
    write_columns(watched)
    watched.open().to_arrow(["c3"])
    table = watched.open()
    requests = watched.asked(lambda: table.to_arrow(["c3"]))
    assert [one.verb for one in requests] == ["RANGE"] * COLUMN_READS


def test_scan_of_one_column_fetches_little_more_than_its_bytes(watched: Watched) -> None:
    write_columns(watched)
    table = watched.open()
    with watched.proxy.counted() as exchanges:
        table.to_arrow(["c3"])
    assert sum(exchange.answer_bytes for exchange in exchanges) < 1.3 * 200_000 * 8 + 2**18
