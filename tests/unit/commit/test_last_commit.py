"""Writers check the newest commit before they follow it: protocol and metadata may come from a checksum or a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.transaction import Transaction
from delta_py.copies.restore import restore
from delta_py.errors import CorruptTableError
from delta_py.log import commit_reader
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
CHECKPOINTED = 10  # nobody reads its commit, because the checkpoint has its actions


def table_of(versions: int) -> MemoryStore:
    """versions: the number of commits; the last one has properties and rules to change."""
    store = MemoryStore(now_ms=time.time_ns() // 1_000_000)  # old commits are deleted
    for _ in range(versions - 3):
        write_delta(store.root, ROWS, mode="append", store=store)
    alter = DeltaTable(store.root, store=store).alter
    alter.set_table_properties({"a.b": "c", "delta.enableDeletionVectors": "true"})
    alter.add_constraint({"small": "id < 100"})
    write_delta(store.root, ROWS, mode="append", store=store)
    return store


def append(store: MemoryStore, **options: str) -> object:
    return write_delta(store.root, ROWS, store=store, **{"mode": "append", **options})


def opened(store: MemoryStore) -> DeltaTable:
    return DeltaTable(store.root, store=store)


WRITERS: dict[str, Callable[[MemoryStore], object]] = {
    "append": append,
    "overwrite": lambda store: append(store, mode="overwrite"),
    "replace where": lambda store: append(store, mode="overwrite", replace_where="id > 0"),
    "delete": lambda store: opened(store).delete("id = 1"),
    "update": lambda store: opened(store).update({"name": "'x'"}),
    "merge": lambda store: opened(store).merge(ROWS, "s.id = t.id", "s", "t").when_matched_delete().execute(),
    "set properties": lambda store: opened(store).alter.set_table_properties({"a.b": "d"}),
    "unset properties": lambda store: opened(store).alter.unset_table_properties(["a.b"]),
    "add column": lambda store: opened(store).alter.add_columns(pa.schema([("more", pa.int64())])),
    "change column": lambda store: opened(store).alter.change_column("id", comment="of the row"),
    "add constraint": lambda store: opened(store).alter.add_constraint({"large": "id > 0"}),
    "drop constraint": lambda store: opened(store).alter.drop_constraint("small"),
    "add feature": lambda store: opened(store).alter.add_feature("timestampNtz"),
    "drop feature": lambda store: opened(store).alter.drop_feature("deletionVectors"),
    "cluster": lambda store: opened(store).cluster_by(["id"]),
    "optimize": lambda store: opened(store).optimize.compact(),
    "restore": lambda store: restore(store, version=0),
    "index": lambda store: opened(store).index.create("id"),
}


def last_commit(store: MemoryStore) -> str:
    return max(path for path in store.objects if path.endswith(".json"))


def damage(store: MemoryStore, change: Callable[[bytes], bytes]) -> dict[str, tuple[bytes, int]]:
    """Returns the content of the store after the change."""
    path = last_commit(store)
    data, time_ms = store.objects[path]
    store.objects[path] = change(data), time_ms
    return dict(store.objects)


def cut(data: bytes) -> bytes:
    return data[: -len(data.splitlines()[-1]) // 2]


@pytest.mark.parametrize("versions", [6, CHECKPOINTED + 1])
@pytest.mark.parametrize("name", WRITERS)
def test_writer_that_comes_upon_half_a_commit_refuses(name: str, versions: int) -> None:
    store = table_of(versions)
    before = damage(store, cut)
    with pytest.raises(CorruptTableError) as refused:
        WRITERS[name](store)
    assert last_commit(store) in refused.value.message and "no JSON" in refused.value.message
    assert store.objects == before


@pytest.mark.parametrize("name", WRITERS)
def test_writer_behind_a_sound_commit_goes_on(name: str) -> None:
    """So the refusals above are caused by the damage."""
    store = table_of(6)
    before = last_commit(store)
    WRITERS[name](store)
    assert last_commit(store) > before


def test_refusal_names_version_and_says_what_to_do() -> None:
    store = table_of(6)
    damage(store, cut)
    with pytest.raises(CorruptTableError) as refused:
        append(store)
    for part in ("Version 5", store.root, "cannot be followed", "Nothing was committed", "Restore the file"):
        assert part in refused.value.message
    assert refused.value.message_parameters["version"] == 5


def test_transaction_that_only_reads_the_table_is_not_refused() -> None:
    store = table_of(CHECKPOINTED + 1)
    damage(store, cut)
    Transaction(Snapshot.load(store)).read_rows().commit_nothing()


@pytest.mark.parametrize(
    "change",
    [lambda data: bytes(len(data)), lambda _: b"[]\n", lambda _: b"\n\n", lambda data: data + b"7\n", lambda data: data[:-3]],
    ids=["zeros", "list", "blank", "number", "end"],
)
def test_commit_that_is_no_lines_of_objects_is_not_followed(change: Callable[[bytes], bytes]) -> None:
    store = table_of(6)
    before = damage(store, change)
    with pytest.raises(CorruptTableError):
        append(store)
    assert store.objects == before


def test_commit_without_the_last_line_break_is_followed() -> None:
    """As delta-rs writes them."""
    store = table_of(6)
    damage(store, bytes.rstrip)
    assert append(store) == 6


def test_commit_that_log_cleanup_deleted_meanwhile_is_not_missed() -> None:
    store = table_of(CHECKPOINTED + 1)
    snapshot = Snapshot.load(store)
    del store.objects[last_commit(store)]
    metadata = replace(snapshot.metadata, description="other")
    assert Transaction(snapshot).set_metadata(metadata).commit("SET", {}) == CHECKPOINTED + 1


# ---------------------------------------------------------------- large commits


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> TableBuilder:
    """A table whose newest commit is so large that only its end is checked. It has a checksum."""
    monkeypatch.setattr(commit_reader, "_REMEMBERED_FILE_BYTES", 2_000)
    monkeypatch.setattr(commit_reader, "_END_BYTES", 500)
    table = TableBuilder(MemoryStore())
    table.create()
    table.commit(*(add(f"file-{number}") for number in range(50)))
    table.checksum()
    return table


def test_large_commit_is_looked_at_by_one_range(large: TableBuilder) -> None:
    store = large.store
    assert isinstance(store, MemoryStore)
    snapshot = Snapshot.load(store)
    store.calls.clear()
    snapshot.check_last_commit()
    snapshot.check_last_commit()
    assert store.calls == [("read_range", last_commit(store))]


@pytest.mark.parametrize("change", [cut, lambda data: data[:-700] + bytes(700), lambda data: data + b"7\n"])
def test_large_commit_with_a_damaged_end_is_not_followed(large: TableBuilder, change: Callable[[bytes], bytes]) -> None:
    assert isinstance(large.store, MemoryStore)
    damage(large.store, change)
    with pytest.raises(CorruptTableError, match="cannot be followed"):
        Snapshot.load(large.store).check_last_commit()


def test_large_commit_that_shrank_after_listing_is_refused(large: TableBuilder) -> None:
    assert isinstance(large.store, MemoryStore)
    snapshot = Snapshot.load(large.store)
    damage(large.store, lambda data: data.splitlines()[0] + b"\n")
    with pytest.raises(CorruptTableError, match="cannot be followed"):
        snapshot.check_last_commit()


@pytest.mark.parametrize("is_whole", [True, False])
def test_large_commit_whose_last_line_is_long_is_read_whole(large: TableBuilder, is_whole: bool) -> None:
    assert isinstance(large.store, MemoryStore)
    damage(large.store, lambda data: data + b'{"commitInfo":{"text":"' + b"x" * 900 + (b'"}}' if is_whole else b"}}"))
    snapshot = Snapshot.load(large.store)
    if is_whole:
        snapshot.check_last_commit()
    else:
        with pytest.raises(CorruptTableError, match="cannot be followed"):
            snapshot.check_last_commit()


def test_commit_that_was_read_for_its_files_is_not_read_again() -> None:
    store = table_of(7)  # the last of six is in a compaction
    snapshot = Snapshot.load(store)
    snapshot.files()
    store.calls.clear()
    snapshot.check_last_commit()
    assert store.calls == []


def test_fsck_looks_at_each_line_of_a_large_commit(large: TableBuilder) -> None:
    assert isinstance(large.store, MemoryStore)
    assert not faults_of_commits(large.store)
    damage(large.store, lambda data: data[:1000] + bytes(300) + data[1300:])
    assert faults_of_commits(large.store)


def faults_of_commits(store: MemoryStore) -> list[str]:
    faults = opened(store).fsck(dry_run=True)
    return [path for kind, path in zip(faults["kind"].to_pylist(), faults["path"].to_pylist(), strict=True) if kind == "commit"]
