"""The contract of ObjectStore (storage/store.py), run on every store."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from tests.support.memory_store import MemoryStore

STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "memory": lambda path: MemoryStore(root=f"/memory/{path.name}"),
    "local": lambda path: LocalStore(str(path / "table")),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return STORES[request.param](tmp_path)


def names(store: ObjectStore, directory: str, start: str = "") -> list[str]:
    return [info.path for info in store.list_from(directory, start)]


def test_read_what_was_put_gives_its_bytes(store: ObjectStore) -> None:
    store.put("a/b.bin", b"\x00\xff")
    assert store.read("a/b.bin") == b"\x00\xff"


def test_put_over_an_object_replaces_it(store: ObjectStore) -> None:
    store.put("a", b"a long one")
    store.put("a", b"b")
    assert store.read("a") == b"b"


def test_put_of_no_bytes_makes_an_empty_object(store: ObjectStore) -> None:
    store.put("empty", b"")
    assert store.read("empty") == b""
    assert [info.size_bytes for info in store.list_from("")] == [0]


@pytest.mark.parametrize("read", ["read", "read_range", "open_input"])
def test_read_of_a_missing_object_is_file_not_found(store: ObjectStore, read: str) -> None:
    arguments = ("d/none", 0, 1) if read == "read_range" else ("d/none",)
    with pytest.raises(FileNotFoundError):
        getattr(store, read)(*arguments)


def test_read_range_gives_fewer_bytes_only_at_the_end(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.read_range("a", 2, 3) == b"234"
    assert store.read_range("a", 8, 5) == b"89"
    assert store.read_range("a", 10, 1) == b""


def test_open_input_is_seekable(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    with store.open_input("a") as source:
        assert source.size() == 10
        source.seek(4)
        assert source.read(2) == b"45"


def test_open_output_appears_whole_when_it_is_closed(store: ObjectStore) -> None:
    with store.open_output("new/dir/file") as sink:
        sink.write(b"part 1, ")
        sink.write(b"part 2")
    assert store.read("new/dir/file") == b"part 1, part 2"


def test_list_from_is_in_byte_order_and_starts_at_start(store: ObjectStore) -> None:
    for name in ("b", "a", "B", "a.b", "é", "_", "ab"):
        store.put(f"d/{name}", b"x")
    everything = ["d/B", "d/_", "d/a", "d/a.b", "d/ab", "d/b", "d/é"]
    assert names(store, "d") == everything
    assert names(store, "d", "a.b") == everything[3:]
    assert names(store, "d", "a.c") == everything[4:]
    assert names(store, "d", "ü") == []


def test_list_from_gives_only_what_lies_directly_in_the_directory(store: ObjectStore) -> None:
    for path in ("d/x", "d/sub/y", "dd/z", "e"):
        store.put(path, b"1")
    assert names(store, "d") == ["d/x"]
    assert names(store, "") == ["e"]


def test_list_of_a_missing_directory_gives_nothing(store: ObjectStore) -> None:
    assert names(store, "nowhere") == []
    assert list(store.list_recursive("nowhere")) == []
    assert list(store.list_recursive("")) == []


def test_list_recursive_gives_all_depths_with_sizes(store: ObjectStore) -> None:
    for path, size in (("d/x", 1), ("d/sub/y", 2), ("d/sub/deep/z", 3), ("e", 4)):
        store.put(path, b"1" * size)
    assert {(info.path, info.size_bytes) for info in store.list_recursive("d")} == {
        ("d/x", 1),
        ("d/sub/y", 2),
        ("d/sub/deep/z", 3),
    }
    assert {info.path for info in store.list_recursive("")} == {"d/x", "d/sub/y", "d/sub/deep/z", "e"}


def test_put_if_absent_on_a_free_name_writes(store: ObjectStore) -> None:
    store.put_if_absent("_delta_log/0.json", b"first")
    assert store.read("_delta_log/0.json") == b"first"
    assert names(store, "_delta_log") == ["_delta_log/0.json"], "nothing is left beside the object"


def test_put_if_absent_on_a_taken_name_changes_nothing(store: ObjectStore) -> None:
    store.put_if_absent("log/0.json", b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent("log/0.json", b"second")
    assert store.read("log/0.json") == b"first"
    assert names(store, "log") == ["log/0.json"], "nothing is left beside the object"


def test_put_if_absent_by_many_at_once_has_one_winner_a_name(store: ObjectStore) -> None:
    wins: list[tuple[int, int]] = []
    start = threading.Barrier(8)

    def writer(number: int) -> None:
        start.wait()
        for version in range(20):
            try:
                store.put_if_absent(f"log/{version}", b"%d" % number * 1000)
            except FileExistsError:
                continue
            wins.append((version, number))

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(version for version, _ in wins) == list(range(20))
    assert all(store.read(f"log/{version}") == b"%d" % number * 1000 for version, number in wins)


def test_delete_removes_and_a_missing_object_is_no_error(store: ObjectStore) -> None:
    store.put("a", b"1")
    store.delete("a")
    store.delete("a")
    store.delete("no/such")
    with pytest.raises(FileNotFoundError):
        store.read("a")


@pytest.mark.parametrize("name", ["a b", "100%", "%20", "a=b/c=ü", "日本", "x'y\"z", "#?&+"])
def test_names_with_special_characters_stay_as_they_are(store: ObjectStore, name: str) -> None:
    store.put(f"d/{name}", b"1")
    assert store.read(f"d/{name}") == b"1"
    assert [info.path for info in store.list_recursive("d")] == [f"d/{name}"]


def test_absolute_path_below_the_root_is_the_same_object(store: ObjectStore) -> None:
    store.put("d/a", b"1")
    assert store.read(f"{store.root}/d/a") == b"1"


def test_store_that_was_pickled_has_the_same_root_and_objects(store: ObjectStore) -> None:
    store.put("a", b"1")
    again = pickle.loads(pickle.dumps(store))
    assert again.root == store.root
    assert again.read("a") == b"1"
