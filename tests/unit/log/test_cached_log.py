"""Tables of remote stores, opened with the cache directory: which requests remain, and that nothing else changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from delta_py.checkpoint import checkpoint_v2
from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.checkpoint.cleanup import clean_log
from delta_py.log import commit_reader
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.snapshot import Snapshot
from delta_py.storage.cache import cached_objects
from delta_py.storage.store import ObjectStore
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove, stats

DAY_MS = 86_400_000
START_MS = 1_700_006_400_000  # a midnight
KINDS = [("classic", 0), ("multipart", 0), ("v2-json", 2), ("v2-parquet", 2), ("v2-classic", 0)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def build(store: MemoryStore, kind: str = "classic", sidecars: int = 0, prefix: str = "file", later_ms: int = 0) -> TableBuilder:
    """Ten commits before a checkpoint, two that a compaction replaces, and two more."""
    table = TableBuilder(store, START_MS + later_ms)
    table.create(add(f"{prefix}-0"), {"txn": {"appId": "x", "version": 3}})
    for number in range(1, 14):
        table.commit(add(f"{prefix}-{number}", stats=stats(5, number, number + 3)), remove(f"{prefix}-{number - 4}"))
    table.checkpoint(9, kind=kind, sidecars=sidecars)
    table.last_checkpoint(9)
    table.compact(10, 11)
    return table


def state(store: MemoryStore) -> Any:
    snapshot = Snapshot.load(store)
    rows = sorted(snapshot.files().to_pylist(), key=lambda row: row["path"])
    return snapshot.version, snapshot.protocol, snapshot.metadata, snapshot.set_transactions(), rows


def requests(store: MemoryStore) -> list[tuple[str, str]]:
    """The requests of opening the table."""
    store.calls.clear()
    state(store)
    return list(store.calls)


ALWAYS = [("read_range", "_delta_log/_last_checkpoint"), ("list_from", "_delta_log")]


def always(sidecars: int) -> list[tuple[str, str]]:
    return [*ALWAYS, ("list_from", "_delta_log/_sidecars")] if sidecars else ALWAYS


@pytest.mark.parametrize("large", [False, True])  # so large that checkpoints are read in blocks, and JSON piece by piece
@pytest.mark.parametrize(("kind", "sidecars"), KINDS)
def test_a_second_process_asks_only_for_what_may_change(
    kind: str, sidecars: int, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    table = build(store, kind, sidecars)
    with monkeypatch.context() as patch:
        patch.setenv("PYDELTA_CACHE_DIR", "")
        expected, without = state(store), requests(store)
        assert len(without) > len(ALWAYS)
    assert {row["path"] for row in expected[4]} == {path for path, _ in table.live()}
    if large:
        monkeypatch.setattr(cached_objects, "_WHOLE_BYTES", 100)
        monkeypatch.setattr(cached_objects, "_BLOCK_BYTES", 1000)
        monkeypatch.setattr(commit_reader, "_PIECE_BYTES", 300)
    cold = requests(store)
    assert len(cold) > len(ALWAYS) and (large or len(cold) <= len(without) + len(always(sidecars)) - len(ALWAYS))
    assert state(store) == expected
    assert requests(store) == always(sidecars)


def test_new_commits_alone_are_fetched() -> None:
    store = MemoryStore()
    table = build(store)
    state(store)
    table.commit(add("new"))
    assert requests(store) == [*ALWAYS, ("read", "_delta_log/00000000000000000014.json")]


@pytest.mark.parametrize(("kind", "sidecars"), KINDS)
def test_a_table_made_again_at_the_same_place_has_its_own_rows(kind: str, sidecars: int) -> None:
    """All names and sizes are equal, also of sidecars; the times are not."""
    remake(MemoryStore(), kind, sidecars, 100_000)


@pytest.mark.parametrize(("kind", "sidecars"), KINDS)
def test_etags_distinguish_a_table_recreated_at_the_same_time(kind: str, sidecars: int) -> None:
    remake(MemoryStore(has_etags=True), kind, sidecars, 0)


def remake(store: MemoryStore, kind: str, sidecars: int, later_ms: int) -> None:
    build(store, kind, sidecars, prefix="old")
    before, sizes = state(store), {path: len(data) for path, (data, _) in store.objects.items()}
    store.objects.clear()
    rebuilt = build(store, kind, sidecars, prefix="new", later_ms=later_ms)
    assert {path: len(data) for path, (data, _) in store.objects.items()} == sizes
    after = state(store)
    assert {row["path"] for row in after[4]} == {path for path, _ in rebuilt.live()}
    assert not {row["path"] for row in after[4]} & {row["path"] for row in before[4]}


@pytest.mark.parametrize("damage", ["flipped", "cut", "a directory", "gone"])
def test_damaged_entries_change_nothing(cache: Path, damage: str) -> None:
    store = MemoryStore()
    build(store, "v2-parquet", 2)
    expected = state(store)
    for entry in cache.iterdir():
        content = entry.read_bytes()
        entry.unlink()
        if damage == "a directory":
            entry.mkdir()
        elif damage != "gone":
            entry.write_bytes(bytes([content[0] ^ 1]) + content[1:] if damage == "flipped" else content[: len(content) // 2])
    assert len(requests(store)) > len(ALWAYS)
    assert state(store) == expected
    if damage != "a directory":
        assert requests(store) == always(2)


def test_a_cache_without_a_place_changes_nothing(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache.write_bytes(b"a file in its place")
    store = MemoryStore()
    table = build(store)
    assert {row["path"] for row in state(store)[4]} == {path for path, _ in table.live()}
    assert cache.read_bytes() == b"a file in its place" and caplog.text == ""


# ---------------------------------------------------------------- what must not rely on the cache


@pytest.fixture
def lost_sidecar(monkeypatch: pytest.MonkeyPatch) -> TableBuilder:
    """One commit per day, our V2 checkpoint of version 3, and one of its sidecars deleted since the table was read. A new
    checkpoint reuses sidecars that it need not change."""
    monkeypatch.setattr(checkpoint_v2, "SIDECAR_ROWS", 2)
    monkeypatch.setattr(checkpoint_v2, "REUSED_ROWS", 1)
    store = MemoryStore()
    table = TableBuilder(store)
    properties = {"delta.logRetentionDuration": "interval 1 days", "delta.checkpointPolicy": "v2"}
    for number in range(8):
        head = [table.protocol(features=["v2Checkpoint"]), table.metadata(configuration=properties)] if number == 0 else []
        table.time_ms = START_MS + number * DAY_MS
        table.commit(*head, add(f"file-{number}"))
        if number == 3:
            new_checkpoint(store, table)
    expected = state(store)
    store.delete(next(info.path for info in store.list_from("_delta_log/_sidecars")))
    assert state(store) == expected, "the sidecar is not kept: the test is of no use"
    return table


def new_checkpoint(store: ObjectStore, table: TableBuilder) -> None:
    writer = LogWriter(store, Snapshot.load(store).config)
    write_checkpoint(store, writer, load_segment(store), now_ms=table.time_ms)


def test_cleanup_checks_the_store_before_it_trusts_a_checkpoint(
    lost_sidecar: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    store, table = lost_sidecar.store, lost_sidecar
    assert isinstance(store, MemoryStore)
    before, config = set(store.objects), Snapshot.load(store).config
    assert clean_log(store, LogWriter(store, config), config, now_ms=table.time_ms).first_version is None
    assert set(store.objects) == before
    assert "does not rely on the checkpoint" in caplog.text


def test_new_checkpoint_copies_nothing_that_the_store_lost(lost_sidecar: TableBuilder, cache: Path) -> None:
    store, table = lost_sidecar.store, lost_sidecar
    assert isinstance(store, MemoryStore)
    new_checkpoint(store, table)
    shutil.rmtree(cache)
    for version in range(7):
        table.delete(f"{version:020d}.json")
    assert {row["path"] for row in state(store)[4]} == {path for path, _ in table.live()}
