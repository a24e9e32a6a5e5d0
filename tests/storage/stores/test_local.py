"""What LocalStore adds to the contract: normalised roots, URIs, links, durability, and clear refusals."""

from __future__ import annotations

import errno
import os
import posix
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import InvalidOptionError, StorageError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_store
from delta_py.storage.local import LocalStore


def test_root_given_in_several_spellings_is_one_root(tmp_path: Path) -> None:
    spellings = [str(tmp_path), f"{tmp_path}/", f"{tmp_path}/x/..", f"file://{tmp_path}", f"file:{tmp_path}"]
    assert {open_store(spelling).root for spelling in spellings} == {str(tmp_path)}


def test_root_of_a_percent_encoded_url_is_decoded(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}/a%20b").root == f"{tmp_path}/a b"


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost"])
def test_read_by_file_uri_finds_the_file(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"1")
    assert LocalStore(str(tmp_path / "table")).read(f"{prefix}{tmp_path}/elsewhere/x") == b"1"


def test_read_of_another_kind_of_storage_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="s3://"):
        LocalStore(str(tmp_path)).read("s3://bucket/x")


def test_relative_name_with_a_colon_is_a_file(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("time=10:20/x", b"1")
    assert store.read("time=10:20/x") == b"1"


def test_list_follows_links_to_files_and_passes_over_broken_ones(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("a", b"123")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    assert [(info.path, info.size_bytes) for info in store.list_from("")] == [("a", 3), ("link", 3)]


def test_directory_in_the_place_of_a_file_is_listed_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "_delta_log" / "5.json").mkdir(parents=True)
    (tmp_path / "_delta_log" / "_sidecars").mkdir()
    store = LocalStore(str(tmp_path))
    assert [info.path for info in store.list_from("_delta_log")] == ["_delta_log/5.json"]
    with pytest.raises(StorageError, match=r"5\.json is no regular file"):
        store.read("_delta_log/5.json")


def test_list_recursive_does_not_walk_into_linked_directories(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "loop").symlink_to(tmp_path / "table")
    store = LocalStore(str(tmp_path / "table"))
    store.put("a", b"1")
    assert [info.path for info in store.list_recursive("")] == ["a"]


def test_listing_has_times_in_milliseconds(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("a", b"1")
    os.utime(tmp_path / "a", ns=(0, 1_700_000_000_123_999_999))
    assert [info.modification_time_ms for info in store.list_from("")] == [1_700_000_000_123]


def test_put_if_absent_on_a_broken_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0.json").symlink_to(tmp_path / "none")
    with pytest.raises(FileExistsError):
        LocalStore(str(tmp_path)).put_if_absent("0.json", b"1")


def test_put_if_absent_needs_hard_links_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: str, target: str) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StorageError, match="hard links"):
        LocalStore(str(tmp_path)).put_if_absent("log/0.json", b"1")
    assert list((tmp_path / "log").iterdir()) == []


def test_put_if_absent_recognises_its_link_despite_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def repeated(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", repeated)
    store = LocalStore(str(tmp_path))
    store.put_if_absent("0.json", b"1")
    assert store.read("0.json") == b"1"


def test_put_if_absent_on_a_full_disk_fails_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        LocalStore(str(tmp_path)).put_if_absent("0.json", b"1")
    assert list(tmp_path.iterdir()) == []


def test_put_that_cannot_take_the_name_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        LocalStore(str(tmp_path)).put("d", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_bytes_and_names_are_synced_before_a_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def watched(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        posix.fsync(descriptor)  # os.fsync does nothing in tests

    monkeypatch.setattr(os, "fsync", watched)
    store = LocalStore(str(tmp_path / "t"))
    store.put_if_absent("log/0.json", b"1")
    assert [synced[0], synced[1], synced[-1]] == [tmp_path.name, "t", "log"]
    assert synced[2].startswith(".0.json.")
    synced.clear()
    with store.open_output("part.parquet") as sink:
        sink.write(b"1")
    assert synced == ["part.parquet", "t"]
    synced.clear()
    store.put_if_absent("log/0.crc", b"1", durably=False)
    assert synced == [] and store.read("log/0.crc") == b"1"


@pytest.mark.parametrize("start", ["", "b", "é", "\udcff", "\U0001f600"])
def test_list_starts_at_a_name_and_sorts_by_bytes(tmp_path: Path, start: str) -> None:
    names = ["a", "b", "é", "\uffff", "\U0001f600", "\udcff", "b\udc80"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    expected_names = [name for name in sorted(names, key=os.fsencode) if os.fsencode(name) >= os.fsencode(start)]
    assert [info.path for info in LocalStore(str(tmp_path)).list_from("", start)] == expected_names


def test_file_uri_of_another_host_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = LocalStore(str(tmp_path))
    for read in (store.read, store.open_input, lambda path: store.read_range(path, 0, 1)):
        with pytest.raises(UnsupportedOperationError, match=rf"file://there{tmp_path}/a .*host 'there'"):
            read(f"file://there{tmp_path}/a")
    with pytest.raises(UnsupportedOperationError, match="host 'there'"):
        open_store(f"file://there{tmp_path}")
    assert store.read(f"file://LOCALHOST{tmp_path}/a") == open_store(f"file://LocalHost{tmp_path}").read("a") == b"x"


def test_data_file_of_another_host_is_not_looked_for_here(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(f'"path":"{file.name}"', f'"path":"file://there{file}"'))
    with pytest.raises(UnsupportedOperationError, match=rf"file://there{file} .*host 'there'"):
        DeltaTable(str(tmp_path / "t")).to_arrow()


# ---------------------------------------------------------------- what others may have put into the directory


def changes_by(store: LocalStore) -> list[Callable[[str], object]]:
    """Each way to change a file, by its name."""
    puts = [lambda name: store.put(name, b"1"), lambda name: store.put_if_absent(name, b"1")]
    return [store.delete, store.open_output, *puts]


@pytest.mark.parametrize("path", ["a\0b", "../x", "/etc/x", "a/../../x", "a//x", "./x", "file:///tmp/x", "file:/tmp/x", "a/.."])
def test_nothing_is_written_or_deleted_outside_of_the_root(tmp_path: Path, path: str) -> None:
    store = LocalStore(str(tmp_path / "table"))
    for write in changes_by(store):
        with pytest.raises(StorageError, match="not the name of a file below"):
            write(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["linked/x", "a/linked/x", "linked/b/x"])
def test_nothing_is_written_or_deleted_through_links(tmp_path: Path, path: str) -> None:
    victim, table = tmp_path / "victim", tmp_path / "table"
    for directory in (victim / "b", table / "a"):
        directory.mkdir(parents=True)
    (victim / "x").write_bytes(b"precious")
    (victim / "b" / "x").write_bytes(b"precious")
    for link in (table / "linked", table / "a" / "linked"):
        link.symlink_to(victim)
    store = LocalStore(str(table))
    for write in changes_by(store):
        with pytest.raises(StorageError, match="symbolic link"):
            write(path)
    assert {str(file.relative_to(victim)): file.read_bytes() for file in victim.rglob("*") if file.is_file()} == {
        "x": b"precious",
        "b/x": b"precious",
    }


@pytest.mark.parametrize("odd", ["link", "dangling link", "fifo"])
def test_new_data_file_never_writes_into_existing_link_or_pipe(tmp_path: Path, odd: str) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    (tmp_path / "root").mkdir()
    place = tmp_path / "root" / "x"
    match odd:
        case "link":
            place.symlink_to(other)
        case "dangling link":
            place.symlink_to(tmp_path / "new")
        case "fifo":
            os.mkfifo(place)
    with pytest.raises(StorageError, match="x cannot be written"):
        LocalStore(str(tmp_path / "root")).open_output("x")
    assert other.read_bytes() == b"mine" and not (tmp_path / "new").exists()


def test_root_that_is_a_link_is_the_users_choice(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    LocalStore(str(tmp_path / "root")).put("a/x", b"1")
    assert (tmp_path / "real" / "a" / "x").read_bytes() == b"1"


@pytest.mark.parametrize("odd", ["directory", "fifo", "device", "socket", "circle"])
def test_only_regular_files_are_read(tmp_path: Path, odd: str) -> None:
    place = tmp_path / "x"
    match odd:
        case "directory":
            place.mkdir()
        case "fifo":
            os.mkfifo(place)
        case "device":
            place.symlink_to("/dev/zero")
        case "circle":
            place.symlink_to(place)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(place))
    store = LocalStore(str(tmp_path))
    for read in (store.read, store.open_input, lambda name: store.read_range(name, 0, 1)):
        with pytest.raises(StorageError, match="no regular file"):
            read("x")
    assert [info.path for info in store.list_from("")] == ([] if odd == "directory" else ["x"])


def test_range_asks_for_no_more_memory_than_the_file_has_bytes(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("x", b"123456789")
    assert store.read_range("x", 4, 2**62) == b"56789"
    assert store.read_range("x", 2**62, 2**62) == b""


@pytest.mark.parametrize("path", ["a\0b", "file:/a%00b", "/a\ud800", "http://[", "file://["])
def test_path_that_names_nothing_is_refused(path: str) -> None:
    with pytest.raises((InvalidOptionError, UnsupportedOperationError)):
        open_store(path).read("x")


def test_too_long_path_reads_as_missing(tmp_path: Path) -> None:
    for root in (f"{tmp_path}/{'x' * 300}", f"{tmp_path}{'/x' * 3000}"):
        store = open_store(root)
        assert list(store.list_from("_delta_log")) == [] and list(store.list_recursive("")) == []
        for read in (store.read, store.open_input, lambda path: store.read_range(path, 0, 1)):  # noqa: B023
            with pytest.raises(FileNotFoundError):
                read("_delta_log/0")
    store = open_store(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        store.read("x" * 300)
    with pytest.raises(FileNotFoundError):
        store.read("\ud800")


@pytest.mark.parametrize("name", ["a\0b", "a" * 300, "a/" * 3000 + "a"], ids=["nul", "long name", "long path"])
def test_name_that_no_file_can_have_is_not_there(tmp_path: Path, name: str) -> None:
    store = LocalStore(str(tmp_path))
    for read in (store.read, store.open_input, lambda name: store.read_range(name, 0, 1)):
        with pytest.raises(FileNotFoundError):
            read(name)
    assert list(store.list_from(name)) == list(store.list_recursive(name)) == []


def test_circular_link_is_an_error_that_names_the_directory(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "log")
    with pytest.raises(StorageError, match="log is no directory"):
        list(LocalStore(str(tmp_path)).list_from("log"))


def test_put_takes_hadoops_sum_of_the_old_bytes_away(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("a/x", b"1")
    (tmp_path / "a" / ".x.crc").write_bytes(b"sum of 1")
    (tmp_path / "a" / ".y.crc").write_bytes(b"sum of another")
    store.put("a/x", b"2")
    assert store.read("a/x") == b"2"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [".y.crc", "x"]
