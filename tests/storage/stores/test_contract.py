"""The contract of ObjectStore (storage/store.py), run on every store."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from delta_py.storage.arrow_files import discard
from delta_py.storage.copying import OtherSizeError, copy_object, move_object
from delta_py.storage.store import ObjectStore
from tests.support.stores.memory_store import MemoryStore


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
    assert store.read_range("a", 0, 10) == store.read_range("a", 0, 11) == b"0123456789"
    assert store.read_range("a", 10, 1) == store.read_range("a", 1000, 5) == b""
    assert store.read_range("a", 3, 0) == b""


def test_read_range_of_an_empty_object_gives_no_bytes(store: ObjectStore) -> None:
    store.put("empty", b"")
    assert store.read_range("empty", 0, 1) == store.read_range("empty", 5, 1) == b""


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


def test_open_whole_replaces_an_object_only_when_closed(store: ObjectStore) -> None:
    store.put("d/file", b"old")
    sink = store.open_atomic_output("d/file")
    sink.write(b"x" * 9_000_000)
    assert store.read("d/file") == b"old"
    sink.close()
    assert store.read("d/file") == b"x" * 9_000_000
    given_up = store.open_atomic_output("d/file")
    given_up.write(b"half")
    discard(given_up)
    forgotten = store.open_atomic_output("d/file")
    forgotten.write(b"half")
    del forgotten
    assert store.read("d/file") == b"x" * 9_000_000
    assert [info.path for info in store.list_from("d")] == ["d/file"]


def test_copies_have_the_bytes_of_their_source(store: ObjectStore) -> None:
    data = bytes(range(256)) * 70_000  # more than two chunks
    for name, content in (("large", data), ("small", b"1"), ("empty", b"")):
        store.put(f"from/{name}", content)
        assert copy_object(store, f"from/{name}", store, f"to/a b%/{name}", len(content)) == len(content)
        assert store.read(f"to/a b%/{name}") == content
    store.put("to/taken", b"old")
    assert copy_object(store, "from/small", store, "to/taken") == 1
    assert store.read("to/taken") == b"1"


def test_moved_object_has_only_its_new_name_and_replaces_none(store: ObjectStore) -> None:
    store.put("from/a b%", b"1")
    store.put("from/c", b"2")
    move_object(store, "from/a b%", "to/day=1 %/a b%")
    assert store.read("to/day=1 %/a b%") == b"1"
    assert names(store, "from") == ["from/c"]
    with pytest.raises(FileExistsError):
        move_object(store, "from/c", "to/day=1 %/a b%")
    with pytest.raises(FileNotFoundError):
        move_object(store, "from/d", "to/d")
    assert (store.read("to/day=1 %/a b%"), store.read("from/c")) == (b"1", b"2")
    assert names(store, "to") == []


def test_copy_of_missing_or_resized_object_leaves_nothing(store: ObjectStore) -> None:
    store.put("from/a", b"123")
    with pytest.raises(FileNotFoundError):
        copy_object(store, "from/b", store, "to/b")
    with pytest.raises(OtherSizeError, match="3 bytes"):
        copy_object(store, "from/a", store, "to/a", 4)
    assert list(store.list_from("to")) == []


def test_copies_go_to_stores_of_other_kinds_and_back(store: ObjectStore) -> None:
    other = MemoryStore(root="/memory/copies")
    data = bytes(range(256)) * 70_000
    other.put("there", data)
    copy_object(other, "there", store, "here")
    copy_object(store, "here", other, "back")
    assert other.read("back") == data


def test_open_input_of_an_empty_object_is_an_empty_file(store: ObjectStore) -> None:
    store.put("empty", b"")
    with store.open_input("empty") as source:
        assert source.size() == 0
        assert source.read() == b""


@pytest.mark.parametrize("believed", [0, 3, 10, 1000])
def test_open_input_with_a_wrong_size_reads_the_whole_object(store: ObjectStore, believed: int) -> None:
    store.put("a", b"0123456789")
    with store.open_input("a", believed) as source:
        assert source.read() == b"0123456789"
        assert source.size() == 10


def test_open_output_without_a_write_makes_an_empty_object(store: ObjectStore) -> None:
    store.open_output("empty").close()
    assert store.read("empty") == b""


def test_list_from_is_in_byte_order_and_starts_at_start(store: ObjectStore) -> None:
    for name in ("b", "a", "B", "a.b", "é", "_", "ab"):
        store.put(f"d/{name}", b"x")
    everything = ["d/B", "d/_", "d/a", "d/a.b", "d/ab", "d/b", "d/é"]
    assert names(store, "d") == everything
    assert names(store, "d", "a.b") == everything[3:]
    assert names(store, "d", "a.c") == everything[4:]
    assert names(store, "d", "ü") == []


def test_list_from_gives_only_direct_objects_of_the_directory(store: ObjectStore) -> None:
    for path in ("d/x", "d/sub/y", "dd/z", "e"):
        store.put(path, b"1")
    assert names(store, "d") == ["d/x"]
    assert names(store, "") == ["e"]


def test_list_after_a_write_has_it_at_once(store: ObjectStore) -> None:
    for number in range(10):
        store.put(f"log/{number}", b"1")
        assert names(store, "log", str(number)) == [f"log/{number}"]
    for number in range(10):
        store.delete(f"log/{number}")
        assert names(store, "log") == [f"log/{rest_start}" for rest_start in range(number + 1, 10)]


def test_list_of_more_objects_than_a_page_holds_gives_each_once(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 has the largest pages; the pages of other stores are made smaller."""
    monkeypatch.setattr("delta_py.object_stores.azure._PAGE", 100)
    monkeypatch.setattr("delta_py.object_stores.gcs._PAGE", 100)
    count = 1100 if store.root.startswith("s3:") else 230
    expected_names = [f"log/{number:05d}.json" for number in range(count)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda path: store.put(path, b"{}"), expected_names))
        store.put("log/_sidecars/x", b"1")
        store.put("log-2/x", b"1")
    assert names(store, "log") == expected_names
    for start in (1, 99, 100, 101, 150, 199, 200, count - 1, count):
        assert names(store, "log", f"{start:05d}.json") == expected_names[start:]
        assert names(store, "log", f"{start:05d}") == expected_names[start:], "a start that is no name"
    assert names(store, "log", f"{150:05d}.jsonl") == expected_names[151:]
    assert sorted(info.path for info in store.list_recursive("log")) == sorted([*expected_names, "log/_sidecars/x"])


def test_list_recursive_goes_to_any_depth(store: ObjectStore) -> None:
    deep = "/".join(f"p{level}=v {level}" for level in range(40))
    store.put(f"{deep}/file.parquet", b"1")
    assert store.read(f"{deep}/file.parquet") == b"1"
    assert [info.path for info in store.list_recursive("")] == [f"{deep}/file.parquet"]
    assert [info.path for info in store.list_recursive("p0=v 0/p1=v 1")] == [f"{deep}/file.parquet"]
    assert names(store, "") == names(store, "p0=v 0") == []


def test_names_of_listings_have_single_slashes(store: ObjectStore) -> None:
    for path in ("x", "d/x", "d/e/x"):
        store.put(path, b"1")
    directories = ("", "d", "d/e")
    assert [name for directory in directories for name in names(store, directory)] == ["x", "d/x", "d/e/x"]
    deep = [info.path for directory in directories for info in store.list_recursive(directory)]
    assert sorted(deep) == sorted(["x", "d/x", "d/e/x", "d/x", "d/e/x", "d/e/x"])


def test_directory_of_a_like_name_is_another_one(store: ObjectStore) -> None:
    for path in ("d/x", "d.e/x", "d-e", "de/x", "D/x"):
        store.put(path, b"1")
    assert names(store, "d") == ["d/x"]
    assert [info.path for info in store.list_recursive("d")] == ["d/x"]


def test_list_of_directory_with_only_directories_is_empty(store: ObjectStore) -> None:
    store.put("d/e/x", b"1")
    assert names(store, "d") == []


def test_listed_times_are_those_of_the_write(store: ObjectStore) -> None:
    """Stores have their own clocks, some with whole seconds; those in memory get the time from the test."""
    before = time.time() * 1000
    store.put("a", b"1")
    if not isinstance(store, MemoryStore):
        (info,) = store.list_from("")
        assert before - 2000 <= info.modification_time_ms <= time.time() * 1000 + 2000


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
    copy = pickle.loads(pickle.dumps(store))
    assert copy.root == store.root
    assert copy.read("a") == b"1"


def test_store_equals_another_of_the_same_root_and_options(store: ObjectStore) -> None:
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.options == store.options
