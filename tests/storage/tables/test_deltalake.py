"""deltalake (delta-rs) and delta_py on one table in S3, in turns and at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import deltalake
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.storage.conftest import new_url
from tests.support.oracles.rows import difference
from tests.support.peers.store_peers import append_ours, append_theirs, peer_options, rows
from tests.support.servers.emulators import Emulator

COMMITS_EACH = 12


@dataclass(frozen=True)
class Peers:
    url: str
    settings: Mapping[str, str]

    def ours(self, data: pa.Table, mode: str = "append", **options: Any) -> int:
        return write_delta(self.url, data, mode=mode, storage_options=self.settings, **options)

    def our_table(self) -> DeltaTable:
        return DeltaTable(self.url, storage_options=self.settings)

    def theirs(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.url, storage_options=peer_options(self.settings))

    def check(self, expected_ids: set[int], what: object) -> None:
        """Both read these rows."""
        ours = self.our_table()
        ours.snapshot.check_integrity()
        read = ours.to_arrow(["id", "name"])
        query = deltalake.QueryBuilder().register("t", self.theirs()).execute("select id, name from t")
        assert difference(pa.table(query.read_all()).cast(read.schema), read) is None, what
        assert sorted(read["id"].to_pylist()) == sorted(expected_ids), what


@pytest.fixture
def peers(emulators: Callable[[str], Emulator]) -> Peers:
    emulator = emulators("s3")
    return Peers(new_url(emulator), emulator.settings())


def merge(peers: Peers) -> None:
    merger = peers.theirs().merge(rows([2, 30]), "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_update({"name": "'merged'"}).when_not_matched_insert_all().execute()


Turn: TypeAlias = tuple[str, Callable[[Peers], object], Callable[[set[int]], set[int]]]

TURNS: list[Turn] = [
    ("ours: create", lambda p: p.ours(rows(range(10))), lambda ids: {*range(10)}),
    ("theirs: append", lambda p: append_theirs(p.url, p.settings, [10, 11]), lambda ids: ids | {10, 11}),
    ("ours: replaceWhere", lambda p: p.ours(rows([4]), "overwrite", replace_where="id IN (3, 4)"), lambda ids: ids - {3}),
    ("theirs: delete", lambda p: p.theirs().delete("id in (1, 10)"), lambda ids: ids - {1, 10}),
    ("ours: append", lambda p: append_ours(p.url, p.settings, range(20, 26)), lambda ids: ids | {*range(20, 26)}),
    ("theirs: merge", merge, lambda ids: ids | {30}),
    ("ours: checkpoint", lambda p: p.our_table().checkpoint(), lambda ids: ids),
    ("ours: optimize", lambda p: p.our_table().optimize.compact(), lambda ids: ids),
    ("theirs: append again", lambda p: append_theirs(p.url, p.settings, [40, 41]), lambda ids: ids | {40, 41}),
    ("theirs: optimize", lambda p: p.theirs().optimize.compact(), lambda ids: ids),
    ("theirs: checkpoint", lambda p: p.theirs().create_checkpoint(), lambda ids: ids),
    ("ours: append at the end", lambda p: append_ours(p.url, p.settings, [50]), lambda ids: ids | {50}),
]


def test_deltalake_and_we_take_turns_in_s3(peers: Peers) -> None:
    ids: set[int] = set()
    for what, act, changed in TURNS:
        act(peers)
        ids = changed(ids)
        peers.check(ids, what)


def test_deltalake_and_we_append_at_once_in_s3(peers: Peers) -> None:
    peers.ours(rows([0]))
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        futures = [
            pool.submit(append, peers.url, dict(peers.settings), range(1000 * number, 1000 * number + COMMITS_EACH))
            for number, append in enumerate((append_ours, append_theirs, append_ours, append_theirs), 1)
        ]
        for future in futures:
            future.result(timeout=300)
    ids = {0, *(1000 * number + place for number in range(1, 5) for place in range(COMMITS_EACH))}
    peers.check(ids, "all have appended")
    assert peers.our_table().version == 4 * COMMITS_EACH
    assert peers.our_table().history()["version"].to_pylist() == list(range(4 * COMMITS_EACH, -1, -1))
