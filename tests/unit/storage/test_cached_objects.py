"""Objects of a remote store from the cache directory: which ones, how many requests go to the store, and other answers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from delta_py.storage.cache import cached_objects
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.cache.disk_cache import DiskCache
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions
from tests.support.stores.memory_store import MemoryStore

BLOCK = 100
CONTENT = bytes(number * 7 % 251 for number in range(5 * BLOCK + 30))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_objects, "_WHOLE_BYTES", 2 * BLOCK)
    monkeypatch.setattr(cached_objects, "_BLOCK_BYTES", BLOCK)


@pytest.fixture
def store() -> MemoryStore:
    new_store = MemoryStore()
    new_store.put("a", CONTENT)
    new_store.calls.clear()
    return new_store


def listed(store: MemoryStore, path: str = "a") -> ObjectInfo:
    (info,) = [info for info in store.list_from("") if info.path == path]
    store.calls.clear()
    return info


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.exists() else []


def test_a_second_reader_asks_the_store_for_nothing(store: MemoryStore) -> None:
    info = listed(store)
    assert CachedObjects.of(store).read(info) == CONTENT
    assert CachedObjects.of(store).read(info) == CONTENT
    assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert store.calls == [("read", "a")]


@pytest.mark.parametrize("difference", ["path", "root", "size", "time", "etag", "endpoint", "endpoint of the environment"])
def test_another_object_is_not_answered_with_this_one(
    store: MemoryStore, difference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.has_etags = difference == "etag"
    CachedObjects.of(store).read(listed(store))
    new = b"new" + (CONTENT if difference == "size" else CONTENT[3:])
    if difference == "root":
        store.root = "/memory/other"
    if difference == "endpoint":
        store.options = StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000"})
    if difference == "endpoint of the environment":
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000")
    store.now_ms += 1000 if difference == "time" else 0
    path = "b" if difference == "path" else "a"
    store.put(path, new)
    assert CachedObjects.of(store).read(listed(store, path)) == new


@pytest.mark.parametrize("has_etags", [False, True])
def test_a_young_object_is_kept_only_by_its_etag(store: MemoryStore, cache: Path, has_etags: bool) -> None:
    """Within one tick of the store's clock a table may be deleted and made again: only an etag shows that."""
    store.now_ms, store.has_etags = int(time.time() * 1000), has_etags
    for content in (CONTENT, CONTENT[::-1]):
        store.put("a", content)
        info = listed(store)
        assert [CachedObjects.of(store).read(info) for _ in range(2)] == [content] * 2
        assert len(store.calls) == (1 if has_etags else 2)
    assert len(entries(cache)) == (2 if has_etags else 0)


@pytest.mark.parametrize(("size", "modified"), [(0, 0), (len(CONTENT), 0), (len(CONTENT), 1), (0, 1_700_000_000_000), (-1, -1)])
def test_what_was_not_listed_is_not_kept(store: MemoryStore, cache: Path, size: int, modified: int) -> None:
    info = ObjectInfo("a", size, modified)
    assert [CachedObjects.of(store).read(info) for _ in range(2)] == [CONTENT] * 2
    assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert entries(cache) == []


def test_nothing_is_kept_of_a_store_on_this_machine(tmp_path: Path, cache: Path) -> None:
    store = LocalStore(str(tmp_path / "table"))
    store.put("a", CONTENT)
    (info,) = store.list_from("")
    old = ObjectInfo("a", info.size_bytes, 1_700_000_000_000)
    assert CachedObjects.of(store).read(old) == CONTENT
    assert not cache.exists()


def test_nothing_is_kept_where_the_cache_is_switched_off(
    store: MemoryStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    info = listed(store)
    assert [CachedObjects.of(store).read(info) for _ in range(2)] == [CONTENT] * 2
    assert len(store.calls) == 2 and not cache.exists()


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("off_by", [-250, -1, 1, 250])
def test_an_object_of_another_size_than_listed_is_read_as_it_is(store: MemoryStore, cache: Path, off_by: int) -> None:
    info = ObjectInfo("a", len(CONTENT) + off_by, 1_700_000_000_000)
    for _ in range(2):
        assert CachedObjects.of(store).read(info) == CONTENT
        assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert entries(cache) == []


def test_missing_object_is_not_found_unless_it_is_cached(store: MemoryStore) -> None:
    info = listed(store)
    store.delete("a")
    with pytest.raises(FileNotFoundError):
        CachedObjects.of(store).read(info)
    store.put("a", CONTENT)
    CachedObjects.of(store).read(info)
    store.delete("a")
    assert CachedObjects.of(store).read(info) == CONTENT


# ---------------------------------------------------------------- blocks


def lengths(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(offset, length) of each range that is requested from here on."""
    ranges: list[tuple[int, int]] = []
    read_range = MemoryStore.read_range

    def noted(self: MemoryStore, path: str, offset: int, length: int) -> bytes:
        ranges.append((offset, length))
        return read_range(self, path, offset, length)

    monkeypatch.setattr(MemoryStore, "read_range", noted)
    return ranges


@pytest.mark.usefixtures("blocks")
def test_only_required_blocks_are_fetched_neighbours_together(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, ranges = listed(store), lengths(store, monkeypatch)
    source = CachedObjects.of(store).open_input(info)
    assert source.size() == len(CONTENT)
    assert ranges == [(500, 31)]  # the end, and that it is the end
    assert source.read_at(120, 150) == CONTENT[150:270]
    assert ranges[1:] == [(100, 200)]
    assert source.read_at(450, 20) == CONTENT[20:470]
    assert ranges[2:] == [(0, 100), (300, 200)]
    assert source.read_at(100, 500) == CONTENT[500:] and source.read_at(10, 1000) == b""
    assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert len(ranges) == 4
    assert {name for name, _ in store.calls} == {"read_range"}


@pytest.mark.usefixtures("blocks")
def test_a_damaged_block_is_fetched_again(store: MemoryStore, cache: Path) -> None:
    info = listed(store)
    CachedObjects.of(store).open_input(info).read()
    for entry in entries(cache)[::2]:
        entry.write_bytes(b"damaged" + entry.read_bytes())
    store.calls.clear()
    assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert store.calls
    store.calls.clear()
    assert CachedObjects.of(store).open_input(info).read() == CONTENT
    assert store.calls == []


@pytest.mark.usefixtures("blocks")
def test_large_object_that_shrinks_during_a_read_is_an_error(store: MemoryStore) -> None:
    source = CachedObjects.of(store).open_input(listed(store))
    store.put("a", CONTENT[:250])
    with pytest.raises(OSError, match="it was replaced"):
        source.read_at(200, 100)


@pytest.mark.usefixtures("blocks")
def test_failures_of_the_store_are_not_taken_for_the_disks(store: MemoryStore) -> None:
    info = listed(store)
    source = CachedObjects.of(store).open_input(info)

    def fail(*_: str) -> None:
        raise OSError(28, "No space left, says the store")

    store.hook = fail
    with pytest.raises(OSError, match="says the store"):
        source.read_at(10, 0)
    with pytest.raises(OSError, match="says the store"):
        CachedObjects.of(store).read(info)


@pytest.mark.usefixtures("blocks")
def test_a_full_disk_is_tried_once_by_each_reader(
    store: MemoryStore, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DiskCache, "begin", full)
    objects, info = CachedObjects.of(store), listed(store)
    assert objects.open_input(info).read() == CONTENT and objects.read(info) == CONTENT
    assert caplog.text.count("No space left") == 1
    assert entries(cache) == []
