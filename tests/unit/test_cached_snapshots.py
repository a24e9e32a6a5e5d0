"""Snapshots that cache what they read: only if the listing of the log is unchanged, and within a limit of memory."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, cached_snapshots, write_delta
from delta_py.cached_snapshots import CachedSnapshot, SnapshotCache
from delta_py.errors import SchemaMismatchError, TableNotFoundError
from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import FileId, ObjectInfo
from delta_py.types.schema import LONG
from tests.support.tables.small_table import append, make_table, reproducible_table

LEAVES = {("id",): LONG}


@pytest.fixture(autouse=True)
def snapshot_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[SnapshotCache]:
    """The cache, for one test alone. Tables of any age are cached."""
    cache = SnapshotCache()
    monkeypatch.setattr(cached_snapshots, "SNAPSHOT_CACHE", cache)
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 0)
    yield cache
    cache.forget()
    assert cache.memory_bytes == 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of logs that are read, without listings."""
    from delta_py.storage.local import LocalStore

    paths_read: list[str] = []
    read = LocalStore.read

    def noted(self: LocalStore, path: str) -> bytes:
        paths_read.append(path)
        return read(self, path)

    monkeypatch.setattr(LocalStore, "read", noted)
    return paths_read


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def load(path: str, **which: Any) -> CachedSnapshot:
    return CachedSnapshot.load(open_store(path), **which)


def paths(snapshot: Snapshot, leaves: Any = LEAVES) -> list[str]:
    return [path for batch in snapshot.file_batches(leaves) for path in batch.files["path"].to_pylist()]


def age(path: Path, seconds: float) -> None:
    """Set the modification time of the log to this long ago. Its change time cannot be set."""
    for file in (path / "_delta_log").iterdir():
        os.utime(file, (time.time() - seconds,) * 2)


def replace_by(path: Path, other: Path, how: str) -> None:
    match how:
        case "copied":
            shutil.rmtree(path)
            shutil.copytree(other, path)
        case "moved":
            path.rename(path.with_name("aside"))
            other.rename(path)
        case "written over":
            for file in other.rglob("*.*"):
                shutil.copy2(file, path / file.relative_to(other))


def rows_where(path: Path, low: int) -> list[int]:
    return rows_of(load(str(path)), low)


def rows_of(snapshot: Snapshot, low: int) -> list[int]:
    scan = plan_scan(snapshot, None, Comparison(">=", Column(("id",)), Literal(low, LONG)))
    return sorted(row["id"] for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist())


def listed_times(root: Path) -> list[tuple[str, int, int]]:
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted((str(path.relative_to(root)), path.stat().st_size, path.stat().st_mtime_ns) for path in files)


FILE_SYSTEMS: dict[str, Callable[[os.stat_result], FileId | None]] = {
    "usual": lambda status: FileId(status.st_dev, status.st_ino, status.st_ctime_ns),
    "image built in the same way": lambda status: FileId(7, 12, status.st_mtime_ns),
    "change time is that of the mount": lambda status: FileId(7, 12, 1_700_000_000_000_000_000),
    "no change time": lambda status: FileId(7, 12, 0),
    "nothing": lambda status: None,
}
"""What a file system says of a file."""


@pytest.fixture(params=FILE_SYSTEMS)
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    from delta_py.storage import local

    def info(entry: os.DirEntry[str], path: str) -> ObjectInfo | None:
        status = entry.stat()
        file_id = FILE_SYSTEMS[request.param](status)
        return None if entry.is_dir() else ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000, file_id=file_id)

    monkeypatch.setattr(local, "_info", info)
    return str(request.param)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of the log, in a store that is treated as remote."""
    from delta_py.storage.local import LocalStore

    listed_from: list[str] = []
    list_from = LocalStore.list_from

    def noted(self: LocalStore, directory: str, start: str = "") -> Any:
        listed_from.append(start)
        return list_from(self, directory, start)

    monkeypatch.setattr(LocalStore, "list_from", noted)
    monkeypatch.setattr(LocalStore, "is_remote", True)
    return listed_from


# ---------------------------------------------------------------- what is kept


def test_second_load_reads_nothing_of_the_log_and_gives_the_same(tmp_path: Path, reads: list[str]) -> None:
    path = make_table(tmp_path / "t", [rows(1), rows(2)])
    first = load(path)
    files = paths(first)
    assert reads, "the first one reads"
    reads.clear()
    reloaded = load(path)
    assert (paths(reloaded), reloaded.num_files, reloaded.version, reloaded.schema) == (files, 2, 1, first.schema)
    assert paths(CachedSnapshot.of(pickle.loads(pickle.dumps(reloaded)))) == files
    assert reads == []
    assert sorted(files) == sorted(Snapshot.load(open_store(path)).files()["path"].to_pylist())


def test_statistics_that_were_not_asked_for_before_are_read(tmp_path: Path, reads: list[str]) -> None:
    path = make_table(tmp_path / "t", [rows(1), rows(2)])
    paths(load(path), None)
    reads.clear()
    predicate = Comparison("=", Column(("id",)), Literal(2, LONG))
    assert plan_scan(load(path), None, predicate).report.files_kept == 1
    assert reads
    reads.clear()
    assert plan_scan(load(path), None, predicate).report.files_kept == 1
    assert reads == []


def test_pickle_is_of_a_plain_snapshot_and_the_same_each_time(tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [rows(1)])
    pickles = [pickle.dumps(load(path)) for _ in range(3)]
    assert type(pickle.loads(pickles[0])) is Snapshot
    assert len(set(pickles)) == 1


def test_new_commit_is_seen_and_old_versions_stay(tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [rows(1)])
    assert len(paths(load(path))) == 1
    append(tmp_path / "t", rows(2))
    assert [len(paths(load(path))), len(paths(load(path, version=0)))] == [2, 1]


def test_list_that_was_not_taken_whole_is_not_kept(tmp_path: Path, snapshot_cache: SnapshotCache) -> None:
    path = make_table(tmp_path / "t", [rows(1), rows(2)])
    reading = load(path).file_batches(LEAVES)
    next(reading)
    assert snapshot_cache.memory_bytes > 0, "what is being read counts"
    reading.close()
    assert snapshot_cache.memory_bytes == 0
    assert len(paths(load(path))) == 2


# ---------------------------------------------------------------- another table in its place


def test_recreated_table_of_equal_sizes_has_a_new_snapshot(tmp_path: Path) -> None:
    root = tmp_path / "t"
    seen = []
    for _ in range(3):
        path = make_table(root, [rows(1)])
        snapshot = load(path)
        seen.append((snapshot.metadata.id, *paths(snapshot)))
        time.sleep(0.01)  # longer than the clock resolution of this machine's disks
        shutil.rmtree(root)
    assert len(set(seen)) == 3


@pytest.mark.parametrize("commits", [0, 2])
@pytest.mark.parametrize("how", ["copied", "moved", "written over"])
def test_replacement_with_equal_file_metadata_has_new_snapshot(
    tmp_path: Path, reads: list[str], file_system: str, how: str, commits: int
) -> None:
    if file_system == "change time is that of the mount" and not commits:
        pytest.skip("of a single file nobody can tell that its change time is no such")
    more = [rows(90)] * commits  # the newest commits are the same
    one = reproducible_table(tmp_path / "one", [rows(10, 11), *more])
    two = reproducible_table(tmp_path / "two", [rows(50, 51), *more])
    assert listed_times(one) == listed_times(two)
    live = tmp_path / "live"
    shutil.copytree(one, live)
    kept_rows = [90] * commits
    assert [rows_where(live, 0), rows_where(live, 50)] == [[10, 11, *kept_rows], kept_rows]
    reads.clear()
    assert rows_where(live, 50) == kept_rows and reads == [], "it is kept"
    pinned = pickle.loads(pickle.dumps(load(str(live))))
    replace_by(live, two, how)
    assert [rows_where(live, 0), rows_where(live, 50)] == [[50, 51, *kept_rows]] * 2
    assert rows_of(CachedSnapshot.of(pinned), 50) == [50, 51, *kept_rows], "the list of files of the replaced table is not used"


def test_held_table_reads_the_log_that_is_there_now(tmp_path: Path) -> None:
    """A table that claims to be the same one, with the same schema."""
    one, two = (reproducible_table(tmp_path / str(day), [rows(day, day + 1)]) for day in (10, 50))
    live = tmp_path / "live"
    shutil.copytree(one, live)
    held_table = DeltaTable(str(live))
    assert held_table.to_arrow(filter="id >= 50")["id"].to_pylist() == []
    replace_by(live, two, "copied")
    assert held_table.to_arrow(filter="id >= 50")["id"].to_pylist() == [50, 51]
    assert held_table.to_arrow(filter="id < 50")["id"].to_pylist() == []


def test_log_is_not_kept_before_its_last_change_is_a_minute_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    """A copy with old times is young: within one step of the clock, another copy may replace it and get its inode."""
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 60_000)
    path, now = make_table(tmp_path / "t", [rows(1)]), time.time()
    age(tmp_path / "t", 1000)
    for seconds, is_kept in ((0, False), (50, False), (70, True)):
        monkeypatch.setattr("time.time", lambda seconds=seconds: now + seconds)
        paths(load(path))
        reads.clear()
        paths(load(path))
        assert bool(reads) != is_kept, seconds


def test_log_with_a_second_link_is_read_again_with_equal_files(tmp_path: Path, reads: list[str]) -> None:
    """A backup by links changes the change time."""
    path = make_table(tmp_path / "t", [rows(1)])
    held_snapshot = load(path)
    files = paths(held_snapshot)
    os.link(tmp_path / "t" / "_delta_log" / f"{0:020d}.json", tmp_path / "backup")
    assert paths(held_snapshot) == files
    assert paths(load(path)) == files
    reads.clear()
    assert paths(load(path)) == files and reads == []


def test_young_log_is_not_cached_because_times_may_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 60_000)
    path, now = make_table(tmp_path / "t", [rows(1)]), time.time()
    age(tmp_path / "t", 0)
    for seconds, is_kept in ((0, False), (50, False), (70, True)):
        monkeypatch.setattr("time.time", lambda seconds=seconds: now + seconds)
        paths(load(path))
        reads.clear()
        paths(load(path))
        assert bool(reads) != is_kept, seconds


def test_file_of_another_size_time_or_name_is_another_log(tmp_path: Path, reads: list[str]) -> None:
    path = make_table(tmp_path / "t", [rows(1), rows(2)])
    commit = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
    paths(load(path))

    def is_read() -> bool:
        reads.clear()
        paths(load(path))
        return bool(reads)

    assert not is_read()
    commit.write_text(commit.read_text() + "\n")
    assert is_read() and not is_read()
    os.utime(commit, ns=(time.time_ns() - 10**9,) * 2)
    assert is_read() and not is_read()
    first = commit.with_name(f"{0:020d}.json")
    commit.with_name(f"{0:020d}.{1:020d}.compacted.json").write_text(first.read_text() + commit.read_text())
    assert is_read() and not is_read()


def test_snapshot_read_after_a_directory_swap_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is moved away after its log was checked, another one replaces it and is read, and the first one comes back."""
    root, other = tmp_path / "t", tmp_path / "other"
    path, aside = make_table(root, [rows(1)], times_ms=[1_700_000_000_000]), tmp_path / "aside"
    make_table(other, [rows(2)], times_ms=[1_700_000_000_001])
    own_paths = Snapshot.load(open_store(path)).files()["path"].to_pylist()
    pinned = CachedSnapshot.of(pickle.loads(pickle.dumps(load(path))))

    def swapped(_: Snapshot) -> None:
        root.rename(aside)
        other.rename(root)

    with monkeypatch.context() as patched:
        patched.setattr(Snapshot, "check_log", swapped)
        assert paths(pinned) != own_paths, "as a plain snapshot does"
    root.rename(other)
    aside.rename(root)
    assert paths(load(path)) == own_paths


def test_metadata_of_a_swapped_directory_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, other, aside = tmp_path / "t", tmp_path / "other", tmp_path / "aside"
    path = make_table(root, [rows(1)], times_ms=[1_700_000_000_000])
    make_table(other, [rows(2)], times_ms=[1_700_000_000_001])
    own_id = Snapshot.load(open_store(path)).metadata.id
    original = Snapshot.of_segment.__func__  # type: ignore[attr-defined]

    def in_between(cls: type[Snapshot], store: Any, segment: Any) -> Snapshot:
        root.rename(aside)
        other.rename(root)
        return original(cls, store, segment)  # type: ignore[no-any-return]

    with monkeypatch.context() as patched:
        patched.setattr(Snapshot, "of_segment", classmethod(in_between))
        assert load(path).metadata.id != own_id
    root.rename(other)
    aside.rename(root)
    assert load(path).metadata.id == own_id


# ---------------------------------------------------------------- the bound of memory


def test_memory_is_bounded_and_what_was_used_last_stays(
    tmp_path: Path, snapshot_cache: SnapshotCache, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [make_table(tmp_path / name, [rows(1)]) for name in "abc"]
    paths(load(tables[0]))
    one = snapshot_cache.memory_bytes
    assert one > 0
    snapshot_cache.most_bytes = int(2.5 * one)
    paths(load(tables[1]))
    paths(load(tables[0]))
    paths(load(tables[2]))  # replaces the second
    assert snapshot_cache.memory_bytes <= snapshot_cache.most_bytes
    for table, is_read in zip(tables, (False, True, False), strict=True):
        reads.clear()
        CachedSnapshot.load(open_store(table))
        assert reads == [], "protocol and metadata of all are kept"
        if not is_read:
            paths(load(table))
            assert reads == []
    snapshot_cache.most_bytes_of_one = one - 1
    snapshot_cache.forget()
    assert len(paths(load(tables[0]))) == 1
    assert snapshot_cache.memory_bytes == 0


def test_versions_are_bounded(tmp_path: Path, snapshot_cache: SnapshotCache, reads: list[str]) -> None:
    snapshot_cache.most_versions = 2
    path = make_table(tmp_path / "t", [rows(number) for number in range(4)])
    for version in range(4):
        load(path, version=version)
    reads.clear()
    load(path, version=3), load(path, version=2)
    assert reads == []
    load(path, version=0)
    assert reads


def test_lists_that_are_read_at_once_count_together(tmp_path: Path, snapshot_cache: SnapshotCache) -> None:
    path = make_table(tmp_path / "t", [rows(1)])
    paths(load(path))
    one = snapshot_cache.memory_bytes
    snapshot_cache.forget()
    snapshot_cache.most_bytes = int(1.5 * one)
    first, second = load(path).file_batches(LEAVES), load(path).file_batches(LEAVES)
    next(first), next(second)
    assert snapshot_cache.memory_bytes == one, "the second one is not kept"
    assert [list(first), list(second)] == [[], []]
    assert snapshot_cache.memory_bytes == one


def test_threads_share_what_is_kept(tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [rows(number) for number in range(20)])
    expected_paths, path_lists = sorted(Snapshot.load(open_store(path)).files()["path"].to_pylist()), []

    def work() -> None:
        for _ in range(10):
            path_lists.append(sorted(paths(load(path))) == expected_paths)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path_lists == [True] * 60


# ---------------------------------------------------------------- whether the log is still the one that was listed


def test_log_is_listed_once_in_a_second_by_whoever_lists_it(
    tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = make_table(tmp_path / "t", [rows(1)]), time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now)
    paths(load(path))
    for _ in range(2):
        listings.clear()
        now += 2
        paths(CachedSnapshot.of(pickle.loads(pickle.dumps(load(path)))))
        assert len(listings) == 1
    listings.clear()
    now += 2
    paths(CachedSnapshot.of(load(path).for_another_thread()))
    assert len(listings) == 1


def test_reading_the_log_for_long_is_not_listing_it(
    tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other, now = make_table(tmp_path / "t", [rows(1)]), make_table(tmp_path / "other", [rows(1)]), time.monotonic()
    age(tmp_path / "other", 5)  # both may be made within one step of the disk's clock
    monkeypatch.setattr("time.monotonic", lambda: now)
    original = Snapshot.of_segment.__func__  # type: ignore[attr-defined]

    def slow(cls: type[Snapshot], store: Any, segment: Any) -> Snapshot:
        nonlocal now
        snapshot: Snapshot = original(cls, store, segment)
        now += 2
        shutil.rmtree(path)
        Path(other).rename(path)
        return snapshot

    with monkeypatch.context() as patched:
        patched.setattr(Snapshot, "of_segment", classmethod(slow))
        snapshot = load(path)
    with pytest.raises(SchemaMismatchError, match="deleted and created again"):
        paths(CachedSnapshot.of(snapshot))


def test_table_that_is_gone_is_not_answered_from_memory(tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [rows(1)])
    snapshots = [load(path), Snapshot.load(open_store(path))]
    assert [len(paths(snapshot)) for snapshot in snapshots] == [1, 1]
    shutil.rmtree(path)
    for snapshot in snapshots:
        with pytest.raises(TableNotFoundError, match="DELTA_PATH_DOES_NOT_EXIST"):
            paths(snapshot)


def test_log_that_went_on_otherwise_is_another_one(tmp_path: Path) -> None:
    path, backup = str(tmp_path / "t"), tmp_path / "backup"
    write_delta(path, rows(1))
    shutil.copytree(path, backup)
    write_delta(path, rows(2), mode="append")
    held_snapshot, info = load(path), Path(path, "_delta_log", f"{1:020}.json").stat()
    shutil.rmtree(path)
    backup.rename(path)
    write_delta(path, rows(3), mode="append")
    assert Path(path, "_delta_log", f"{1:020}.json").stat().st_size == info.st_size
    with pytest.raises(SchemaMismatchError, match="replaced by another"):
        paths(held_snapshot)


def test_log_that_was_found_alike_is_not_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_table(tmp_path / "t", [rows(1)])
    held_snapshot = Snapshot.load(open_store(path))
    age(Path(path), 10)
    assert len(paths(held_snapshot)) == 1
    monkeypatch.setattr("delta_py.snapshot.load_segment", lambda *_: pytest.fail("the log was loaded again"))
    assert len(paths(held_snapshot)) == 1
