"""The requests of an append to a store: each one is a round trip."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.commit import post_commit
from delta_py.errors import VersionNotFoundError
from delta_py.row_changes import write
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove

ROWS = pa.table({"id": [1]})
OPENED = [("read_range", "_delta_log/_last_checkpoint"), ("list_from", "_delta_log")]


@pytest.fixture
def store() -> MemoryStore:
    """A table of three versions, each with its checksum."""
    store = MemoryStore()
    for _ in range(3):
        append(store)
    return store


@pytest.fixture
def builder_without_checksums() -> TableBuilder:
    """A table of three versions by a writer that writes no checksums."""
    table = TableBuilder(MemoryStore())
    table.create(add("a"))
    table.commit(add("b"))
    table.commit(add("c"), remove("a"))
    return table


def append(store: MemoryStore) -> list[tuple[str, str]]:
    """The store's calls of one append, without the names of data files."""
    store.calls.clear()
    write_delta(store.root, ROWS, mode="append", store=store)
    return [(call, path if path.startswith("_delta_log") else "data") for call, path in store.calls]


def named(version: int, kind: str) -> str:
    return f"_delta_log/{version:020d}.{kind}"


WRITTEN = [("open_output", "data"), ("put", "data")]


def opened(version: int) -> list[tuple[str, str]]:
    """Protocol and metadata come from the checksum; the commit is checked because another one will follow it."""
    return [*OPENED, ("read", named(version, "crc")), ("read", named(version, "json"))]


def committed(version: int) -> list[tuple[str, str]]:
    return [("put_if_absent", named(version, "json")), ("put_if_absent", named(version, "crc"))]


def test_append_reads_new_log_and_writes_data_commit_checksum(store: MemoryStore) -> None:
    assert append(store) == [*opened(2), *WRITTEN, *committed(3)]
    Snapshot.load(store).check_integrity()


def test_append_loads_a_table_again_that_it_read_long_ago(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_MOST_SECONDS_WITHOUT_RELOAD", 0.0)
    assert append(store) == [*opened(2), *WRITTEN, *opened(2), *committed(3)]

    def is_made_again(moment: str, call: str, path: str) -> None:
        if (moment, call) == ("before", "open_output"):
            for version in (1, 2, 3):
                store.objects.pop(named(version, "json"))

    store.hook = is_made_again
    with pytest.raises(VersionNotFoundError):
        append(store)
    assert named(4, "json") not in store.objects


def test_append_behind_writers_of_no_checksums_looks_for_none(builder_without_checksums: TableBuilder) -> None:
    store = builder_without_checksums.store
    assert isinstance(store, MemoryStore)
    calls = append(store)
    assert calls[-4:] == [*WRITTEN, *committed(3)]
    snapshot = Snapshot.load(store)
    assert snapshot.checksum is not None and snapshot.checksum.file_count == 3
    snapshot.check_integrity()


def test_append_to_a_large_log_without_checksums_goes_without(
    builder_without_checksums: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_commit, "_SMALL_LOG_BYTES", 10)
    assert isinstance(builder_without_checksums.store, MemoryStore)
    assert append(builder_without_checksums.store)[-1] == ("put_if_absent", named(3, "json"))


def test_append_finds_the_checksum_before_a_commit_of_others(store: MemoryStore) -> None:
    store.objects.pop(named(2, "crc"))
    commit, checksum = committed(3)
    assert append(store)[-4:] == [commit, ("read", named(1, "crc")), ("read", named(2, "json")), checksum]
    Snapshot.load(store).check_integrity()


def test_append_that_another_writer_was_before_counts_both(store: MemoryStore) -> None:
    """Then the version that was read is not the one before ours."""
    other = MemoryStore(objects=store.objects)

    def loses(moment: str, call: str, path: str) -> None:
        if (moment, call, path) == ("before", "put_if_absent", named(3, "json")):
            store.hook = None
            append(other)

    store.hook = loses
    append(store)
    snapshot = Snapshot.load(store)
    assert snapshot.version == 4 and snapshot.checksum is not None and snapshot.checksum.file_count == 5
    snapshot.check_integrity()
