"""The rules of the cache directory: entries are complete or missing, what is deleted, what stays, and how it is switched off."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py.storage.cache.disk_cache import DiskCache, NewEntry, entry_name

NAME = entry_name(b"what it is", "object")
MANY = 1 << 40


@pytest.mark.parametrize("content", [b"", b"x", bytes(100), b"long" * 100_000], ids=["empty", "short", "zeros", "long"])
def test_an_entry_is_read_as_it_was_put(tmp_path: Path, content: bytes) -> None:
    cache = DiskCache(tmp_path, MANY)
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None
    assert cache.put(NAME, content)
    mapped = cache.read_mapped(NAME)
    assert cache.read(NAME) == content
    assert mapped is not None and mapped.to_pybytes() == content
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def flipped(entry: bytes) -> bytes:
    return bytes([entry[0] ^ 1]) + entry[1:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": flipped,
    "flipped checksum": lambda entry: entry[:-1] + bytes([entry[-1] ^ 1]),
    "cut": lambda entry: entry[: len(entry) // 2],
    "one byte less": lambda entry: entry[:-1],
    "longer": lambda entry: entry + b"\0",
    "shorter than a checksum": lambda entry: entry[:3],
    "empty": lambda entry: b"",
    "zeros": lambda entry: bytes(len(entry)),
    "four zeros": lambda entry: bytes(4),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_none_and_is_replaced(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    cache = DiskCache(tmp_path, MANY)
    cache.put(NAME, b"content of the entry")
    (tmp_path / NAME).write_bytes(DAMAGES[damage]((tmp_path / NAME).read_bytes()))
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None
    assert "is damaged" in caplog.text
    assert cache.put(NAME, b"new") and cache.read(NAME) == b"new"


def test_an_entry_under_another_name_is_none(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, MANY)
    cache.put(entry_name(b"something else", "object"), b"of something else")
    next(tmp_path.iterdir()).rename(tmp_path / NAME)
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None


@pytest.mark.parametrize("odd", ["link", "fifo", "device"])
def test_non_file_at_an_entry_reads_as_none_and_is_not_followed(tmp_path: Path, odd: str) -> None:
    cache, outside = DiskCache(tmp_path / "cache", 1), tmp_path / "outside"
    cache.directory.mkdir()
    DiskCache(tmp_path, MANY).put(NAME, b"content")
    (tmp_path / NAME).rename(outside)
    os.utime(outside, (1, 1))
    match odd:
        case "link":
            (cache.directory / NAME).symlink_to(outside)
        case "fifo":
            os.mkfifo(cache.directory / NAME)
        case "device":
            (cache.directory / NAME).symlink_to("/dev/zero")
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None
    cache.trim()
    assert outside.stat().st_mtime == 1 and outside.read_bytes()[:7] == b"content"
    assert DiskCache(cache.directory, MANY).put(NAME, b"new") and cache.read(NAME) == b"new"
    assert outside.read_bytes()[:7] == b"content"


@pytest.mark.parametrize("name", ["../x.object", "/etc/passwd", "x", NAME + "/..", NAME.upper()])
def test_entries_have_names_of_their_own_form_alone(tmp_path: Path, name: str) -> None:
    cache = DiskCache(tmp_path, MANY)
    for use in (cache.read, cache.read_mapped, lambda name: cache.put(name, b"")):
        with pytest.raises(AssertionError):
            use(name)


def test_a_directory_in_the_place_of_an_entry_is_none_and_stays(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, MANY)
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "of somebody").write_bytes(b"x")
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None
    assert not cache.put(NAME, b"new")
    assert [path.name for path in tmp_path.rglob("*")] == [NAME, "of somebody"]


PLACES: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "directory": Path.mkdir,
}


@pytest.mark.timeout(20)  # opening a pipe would wait forever
@pytest.mark.parametrize("place", PLACES)
def test_non_file_entry_reads_as_none_and_trim_reaches_others(tmp_path: Path, place: str) -> None:
    cache, other = DiskCache(tmp_path, 0), entry_name(b"another", "object")
    (tmp_path / other).write_bytes(b"x")
    PLACES[place](tmp_path / NAME)
    PLACES[place](tmp_path / "1-0123456789abcdef.new")
    assert cache.read(NAME) is None and cache.read_mapped(NAME) is None
    cache.trim()
    assert not (tmp_path / other).exists()


def refuse(number: int) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("step", ["open", "finish", "replace", "scandir"])
def test_a_disk_that_takes_nothing_is_no_error_and_keeps_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int, step: str
) -> None:
    cache = DiskCache(tmp_path, 0)  # so that each entry makes it look for old ones
    place: Any = {"finish": NewEntry}.get(step, os)
    monkeypatch.setattr(place, step, refuse(number))
    assert not cache.put(NAME, b"content")
    assert os.strerror(number) in caplog.text
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ([NAME] if step == "scandir" else [])


def test_a_device_without_room_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = DiskCache.begin

    def on_a_full_device(cache: DiskCache) -> NewEntry:
        entry = begin(cache)
        entry._file.close()
        entry._file = open("/dev/full", "w+b")  # noqa: SIM115 (the entry closes it)
        entry.sink = pa.PythonFile(entry._file, mode="w")
        return entry

    monkeypatch.setattr(DiskCache, "begin", on_a_full_device)
    assert not DiskCache(tmp_path, MANY).put(NAME, b"content")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_may_only_be_read_serves_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, MANY)
    cache.put(NAME, b"content")
    monkeypatch.setattr(os, "utime", refuse(errno.EROFS))
    assert cache.read(NAME) == b"content"
    assert cache.read_mapped(NAME) is not None


def test_a_directory_that_is_gone_is_an_empty_cache(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "gone", MANY)
    assert cache.read(NAME) is None and not cache.put(NAME, b"content")


def test_other_errors_are_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(NewEntry, "finish", killed)
    with pytest.raises(MemoryError):
        DiskCache(tmp_path, MANY).put(NAME, b"content")


def _content(number: int) -> bytes:
    return bytes([number]) * (number * 997)


def _put_and_read(directory: Path, limit: int, rounds: int) -> int:
    """The number of complete entries that were found: all, otherwise it raises."""
    cache, complete_count = DiskCache(directory, limit), 0
    for number in [*range(1, 40)] * rounds:
        name = entry_name(bytes([number]), "object")
        content = cache.read(name)
        if content is None:
            assert cache.put(name, _content(number))
        else:
            assert content == _content(number)
            complete_count += 1
    return complete_count


def test_processes_that_write_equal_entries_read_whole_ones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        counts = pool.starmap(_put_and_read, [(tmp_path, MANY, 10)] * 3)
    assert sum(counts) >= 3 * 9 * 39  # each process writes an entry at most once
    cache = DiskCache(tmp_path, MANY)
    assert all(cache.read(entry_name(bytes([number]), "object")) == _content(number) for number in range(1, 40))
    assert len(list(tmp_path.iterdir())) == 39 and "damaged" not in caplog.text


def test_processes_that_write_more_than_the_limit_keep_it(tmp_path: Path) -> None:
    limit = 256 * 1024
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.starmap(_put_and_read, [(tmp_path, limit, 5)] * 3)
    assert 0 < sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit


def test_small_entries_by_short_lived_processes_keep_the_limit(tmp_path: Path) -> None:
    """No process writes enough to start a trim. In disk blocks, twice the limit is written."""
    limit, most = 4 << 20, 0
    for number in range(2_000):
        assert DiskCache(tmp_path, limit).put(entry_name(str(number).encode(), "object"), b"small")
        if number % 100 == 99:
            most = max(most, 4096 * sum(1 for _ in os.scandir(tmp_path)))
    assert limit // 2 < most <= limit


def test_empty_entries_and_what_is_no_file_go_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{'a' * 64}.object")
    (tmp_path / f"{'b' * 64}.object").touch()
    DiskCache(tmp_path, 0).trim()
    assert list(tmp_path.iterdir()) == []


def test_trim_deletes_unused_entries_and_files_of_dead_writers(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 12_000)  # blocks of 4096 bytes, a quarter has to be free: two
    oldest, newer, newest = (f"{digit * 64}.stats" for digit in "abc")
    dead, alive = (f"{process}-{'0' * 16}.new" for process in (1, 2))
    put(tmp_path, {oldest: 300, newer: 200, newest: 100, dead: 7200, alive: 1})
    cache.trim()
    assert {path.name for path in tmp_path.iterdir()} == {newest, alive}


def test_what_others_keep_in_the_directory_stays(tmp_path: Path) -> None:
    strange = {"notes.txt": 9000, "old.stats": 9000, "1-draft.new": 9000, "f" * 64: 9000, f"{'a' * 64}.stats.bak": 9000}
    put(tmp_path, {**strange, f"{'a' * 64}.stats": 10})
    (tmp_path / "directory").mkdir()
    DiskCache(tmp_path, 50).trim()
    assert {path.name for path in tmp_path.iterdir()} == {*strange, "directory"}


def put(directory: Path, ages: dict[str, int]) -> None:
    """Files of 100 bytes, last used this many seconds ago."""
    now = time.time()
    for name, age in ages.items():
        (directory / name).write_bytes(b"x" * 100)
        os.utime(directory / name, (now - age, now - age))


def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYDELTA_CACHE_DIR")
    cache = DiskCache.of_environment()
    assert cache is not None and cache.directory == tmp_path / "pydelta" and cache.limit_bytes == 1 << 30
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("PYDELTA_CACHE_MB", "0")
    assert DiskCache.of_environment() is None
    monkeypatch.setenv("PYDELTA_CACHE_MB", "16")
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    assert DiskCache.of_environment() is None


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    assert DiskCache.of_environment() is None
    assert f"{tmp_path / 'cache'} can be changed by other users (mode {mode:o})" in caplog.text


def test_cache_below_a_directory_writable_by_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who may write to an ancestor can replace the cache by another directory."""
    (tmp_path / "a" / "cache").mkdir(parents=True)
    (tmp_path / "a").chmod(0o777)
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "a" / "cache"))
    assert [DiskCache.of_environment(), DiskCache.of_environment()] == [None, None]
    assert caplog.text.count(f"{tmp_path / 'a'} can be changed by other users (mode 777)") == 1, "it is said once"


def test_directory_swapped_after_open_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    cache = DiskCache(tmp_path / "cache", MANY)
    assert cache.put(NAME, b"content")
    (tmp_path / "cache").rename(tmp_path / "aside")
    (tmp_path / "cache").mkdir()
    assert DiskCache(tmp_path / "cache", MANY).put(NAME, b"of another")
    assert cache.read(NAME) == b"content"
    cache.trim()
    assert cache.put(entry_name(b"more", "object"), b"more")
    assert (len(list((tmp_path / "aside").iterdir())), len(list((tmp_path / "cache").iterdir()))) == (2, 1)


def test_a_directory_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner = tmp_path.stat().st_uid
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert DiskCache.of_environment() is None
    assert f"belongs to user {owner}" in caplog.text


def test_a_directory_that_others_may_only_read_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir(mode=0o755)
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    assert DiskCache.of_environment() is not None
