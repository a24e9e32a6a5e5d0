"""VACUUM and shallow clones: the files that they read stay, whichever source shows that there is a clone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.checkpoint.leases import Lease
from delta_py.copies.clone import clone_table
from delta_py.copies.restore import restore
from delta_py.errors import DataFileError, StorageError
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.paths import CLONE_DIRECTORY
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.vacuum.quarantine import restore_quarantined
from delta_py.vacuum.vacuum import REMOVED, Vacuum, VacuumKind, VacuumRequest, vacuum
from tests.unit.vacuum.test_vacuum import FEED, VECTORS, append, delete, dry, files_of, ids, in_hours, on_disk

NOW: dict[str, Any] = {"retention_hours": 0, "check_retention": False}
SOON = 0.01  # hours: by then files are old, and notes are young
WEEK = 24 * 7


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def copy(tmp_path: Path) -> str:
    return str(tmp_path / "copy")


@pytest.fixture(params=[VacuumKind.FULL, VacuumKind.LITE], ids=["full", "lite"])
def kind(request: pytest.FixtureRequest) -> VacuumKind:
    kind: VacuumKind = request.param
    return kind


def now(path: str, hours: float = SOON, **options: Any) -> int:
    return vacuum(LocalStore(path), VacuumRequest(**NOW, **options), in_hours(hours)).deleted


def notes(path: str) -> list[Path]:
    return sorted((Path(path) / CLONE_DIRECTORY).glob("*"))


def note(path: str, text: str | bytes, name: str = "note.json") -> None:
    LocalStore(path).put(f"{CLONE_DIRECTORY}/{name}", text.encode() if isinstance(text, str) else text)


def shallow(path: str, copy: str, **options: Any) -> DeltaTable:
    return DeltaTable(path).clone(copy, shallow=True, **options)


def two_files(path: str) -> None:
    append(path, 1)
    append(path, 2)


# ---------------------------------------------------------------- clones that are there


def test_files_that_a_clone_reads_stay_until_it_does_so_no_more(
    path: str, copy: str, kind: VacuumKind, caplog: pytest.LogCaptureFixture
) -> None:
    two_files(path)
    shallow(path, copy)
    append(path, 3, mode="overwrite")
    append(path, 4, mode="overwrite")
    assert now(path, kind=kind) == 1, "the file of 3, which no clone reads"
    assert f"2 files that no version of this table needs stay, because the shallow clone at '{copy}' reads them" in caplog.text
    assert ids(copy) == [1, 2]
    append(copy, 5, mode="overwrite")
    assert now(path, kind=VacuumKind.FULL) == 0
    assert ids(copy, 0) == [1, 2], "the clone's own versions are readable as long as its retention says"
    assert now(path, WEEK + 1) == 2
    assert notes(path) == [], "a clone that has files of its own alone is none any more"
    assert (ids(path), ids(copy)) == ([4], [5])


def test_vectors_that_a_clone_reads_stay(path: str, copy: str) -> None:
    append(path, *range(6), configuration={**VECTORS, **FEED})
    delete(path, lambda number: number == 2)
    shallow(path, copy)
    delete(path, lambda number: number == 3)
    append(path, 9, mode="overwrite")
    assert now(path) == 1, "the vector that the clone does not have"
    assert ids(copy) == [0, 1, 3, 4, 5]
    delete(copy, lambda number: number == 0)
    assert (now(path), ids(copy)) == (0, [1, 3, 4, 5])


def test_request_may_delete_what_clones_read_and_is_told_of_them(
    path: str, copy: str, caplog: pytest.LogCaptureFixture
) -> None:
    two_files(path)
    shallow(path, copy)
    append(path, 3, mode="overwrite")
    append(path, 4, mode="overwrite")
    assert list(dry(path, SOON, **NOW).values()) == [REMOVED]
    reasons = dry(path, SOON, **NOW, keep_clones=False).values()
    assert sorted(reasons) == [REMOVED, *[f"{REMOVED}, and the shallow clone at '{copy}' reads it"] * 2]
    assert ids(copy) == [1, 2], "a dry run deletes nothing"
    caplog.clear()
    assert DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, keep_clones=False).num_rows == 3
    assert f"2 files that no version of this table needs go, though the shallow clone at '{copy}' reads them" in caplog.text
    with pytest.raises(DataFileError):
        ids(copy)


def test_clone_of_an_older_version_keeps_its_files(path: str, copy: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    append(path, 3, mode="overwrite")
    clone_table(Snapshot.load(open_store(path), version=0), open_store(copy))
    assert (now(path, kind=kind), ids(copy)) == (1, [1])


def test_replaced_clone_keeps_files_of_its_two_newest_versions(path: str, copy: str) -> None:
    append(path, 1)
    shallow(path, copy)
    append(path, 2, mode="overwrite")
    shallow(path, copy, replace=True)
    append(path, 3, mode="overwrite")
    assert (now(path), ids(copy), ids(copy, 0)) == (0, [2], [1])
    assert len(notes(path)) == 2
    assert (now(path, WEEK + 1), ids(copy)) == (1, [2])


def test_clone_of_a_clone_keeps_files_of_both(path: str, copy: str, tmp_path: Path) -> None:
    third = str(tmp_path / "third")
    append(path, 1)
    shallow(path, copy)
    append(copy, 2)
    shallow(copy, third)
    for one in (path, copy):
        append(one, 9, mode="overwrite")
    assert (now(copy, WEEK + 1), now(path, WEEK + 1)) == (0, 0)
    assert ids(third) == [1, 2]
    append(third, 9, mode="overwrite")
    assert (now(copy, 2 * WEEK + 2), now(path, 2 * WEEK + 2)) == (1, 1)
    assert notes(path) == notes(copy) == []


def test_clone_of_a_clone_survives_vacuums_of_both_sources(
    path: str, copy: str, tmp_path: Path
) -> None:
    third = str(tmp_path / "third")
    append(path, 1)
    shallow(path, copy)
    shallow(copy, third)
    append(copy, 9, mode="overwrite")
    now(copy, 3 * WEEK)
    append(path, 9, mode="overwrite")
    assert now(path, 3 * WEEK) == 0
    assert ids(third) == [1]


def test_clone_that_gets_files_back_by_restore_keeps_them(path: str, copy: str, kind: VacuumKind) -> None:
    append(path, 1, 2, configuration={**VECTORS})
    delete(path, lambda number: number == 2)
    shallow(path, copy)
    append(copy, 9, mode="overwrite")
    now(path, WEEK + 1)
    assert notes(path) == []
    restore(LocalStore(copy), version=0)
    append(path, 3, mode="overwrite")
    assert (now(path, 2 * WEEK + 2, kind=kind), ids(copy)) == (0, [1])
    append(copy, 9, mode="overwrite")
    assert (now(path, 4 * WEEK), notes(path)) == (2, [])


def test_clone_of_an_old_clone_version_keeps_first_tables_files(path: str, copy: str, tmp_path: Path) -> None:
    third = str(tmp_path / "third")
    write_delta(path, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by="p")
    shallow(path, copy)
    append(copy, 9, mode="overwrite", overwrite_schema=True)
    now(path, WEEK + 1)
    clone_table(Snapshot.load(open_store(copy), version=0), open_store(third))
    assert [len(notes(one)) for one in (path, copy, third)] == [1, 1, 0]
    append(path, 3, mode="overwrite", overwrite_schema=True)
    assert (now(path, 2 * WEEK + 2), ids(third)) == (0, [1, 2])


def test_restore_that_fails_leaves_no_note(path: str, copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, 1)
    shallow(path, copy)
    append(copy, 9, mode="overwrite")
    now(path, WEEK + 1)
    store = LocalStore(copy)
    monkeypatch.setattr(LocalStore, "put_if_absent", refuse)
    with pytest.raises(StorageError):
        restore(store, version=0)
    assert notes(path) == []


def refuse(store: LocalStore, path: str, data: bytes, *, durably: bool = True) -> None:
    raise StorageError(f"{path} is refused")


def test_tables_that_are_clones_of_each_other_end(path: str, copy: str) -> None:
    append(path, 1)
    shallow(path, copy)
    append(copy, 2)
    DeltaTable(copy).clone(path, shallow=True, replace=True)
    assert (ids(path), ids(copy)) == ([1, 2], [1, 2])
    append(copy, 3, mode="overwrite")
    assert (now(path), now(copy)) == (0, 0)
    assert ids(path) == [1, 2]


def test_quarantine_leaves_files_that_a_clone_reads(path: str, copy: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    assert now(path, quarantine=True) == 0
    assert DeltaTable(path).restore_quarantined(dry_run=True).num_rows == 1
    restore_quarantined(LocalStore(path))
    clone_table(Snapshot.load(open_store(path), version=0), open_store(copy))
    assert now(path, quarantine=True) == 0
    assert (ids(copy), DeltaTable(path).restore_quarantined(dry_run=True).num_rows) == ([1], 0)


def test_quarantine_deletes_no_file_that_a_clone_needs(path: str, copy: str) -> None:
    append(path, 1)
    shallow(path, copy)
    append(path, 2, mode="overwrite")
    now(path, quarantine=True, keep_clones=False)
    with pytest.raises(DataFileError):
        ids(copy)
    assert now(path, 2 * WEEK) == 0
    restore_quarantined(LocalStore(path))
    assert ids(copy) == [1]


def test_inventory_spares_what_a_clone_reads(path: str, copy: str) -> None:
    append(path, 1)
    shallow(path, copy)
    append(path, 2, mode="overwrite")
    names = sorted(on_disk(path))
    rows = {"path": [f"{path}/{name}" for name in names], "length": [1] * 2, "isDir": [False] * 2, "modificationTime": [1] * 2}
    assert now(path, inventory=pa.table(rows)) == 0
    assert now(path, inventory=pa.table(rows), keep_clones=False) == 1


def test_clone_made_during_a_vacuum_keeps_its_files(path: str, copy: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    looking = Vacuum.begin(LocalStore(path), VacuumRequest(**NOW), in_hours(SOON))
    removable = looking.find()
    assert removable.num_rows == 1
    clone_table(Snapshot.load(open_store(path), version=0), open_store(copy))
    assert looking.drop_needed_now(removable).num_rows == 0


NO_RETENTION = {"delta.deletedFileRetentionDuration": "interval 0 hours"}


def test_lease_on_a_clone_protects_files_of_its_source(path: str, copy: str, kind: VacuumKind) -> None:
    append(path, *range(6), configuration=VECTORS)
    delete(path, lambda number: number == 2)
    shallow(path, copy, properties=NO_RETENTION)
    for table in (path, copy):
        append(table, 9, mode="overwrite")
    with DeltaTable(copy, version=0).lease():
        assert now(path, kind=kind) == 0
        assert ids(copy, 0) == [0, 1, 3, 4, 5]
        assert len(notes(path)) == 1
    assert now(path) == 2


def test_new_reader_of_a_clone_during_the_search_keeps_files(path: str, copy: str) -> None:
    append(path, 1)
    shallow(path, copy, properties=NO_RETENTION)
    for table in (path, copy):
        append(table, 2, mode="overwrite")
    looking = Vacuum.begin(LocalStore(path), VacuumRequest(**NOW), in_hours(SOON))
    removable = looking.find()
    assert removable.num_rows == 1
    with DeltaTable(copy, version=0).lease():
        assert looking.drop_needed_now(removable).num_rows == 0


def test_clone_with_an_incomplete_log_protects_files_of_that_age(
    path: str, copy: str, caplog: pytest.LogCaptureFixture
) -> None:
    append(path, 1)
    shallow(path, copy, properties=NO_RETENTION)
    for table in (path, copy):
        append(table, 2, mode="overwrite")
    append(copy, 3)
    DeltaTable(copy).checkpoint()
    for version in (0, 1):
        (Path(copy) / "_delta_log" / f"{version:020}.json").unlink()
    Lease(LocalStore(copy), 0).put()
    assert now(path) == 0
    assert "commit 1, which may have removed files of it, is not in the log any more" in caplog.text


def test_partitioned_clone_with_odd_names_keeps_its_files(tmp_path: Path) -> None:
    path, copy = str(tmp_path / "a b%20"), str(tmp_path / "the copy+[x]")
    write_delta(path, pa.table({"id": [1, 2], "day": ["mon", "a b/%"]}), partition_by=["day"])
    shallow(path, copy)
    append_partitioned = pa.table({"id": [3], "day": ["tue"]})
    write_delta(path, append_partitioned, mode="overwrite")
    assert (now(path), ids(copy)) == (0, [1, 2])


# ---------------------------------------------------------------- clones that nobody can ask


def gone(copy: str) -> None:
    shutil.rmtree(copy)


def moved(copy: str) -> None:
    Path(copy).rename(f"{copy}.moved")


def damaged(copy: str) -> None:
    (Path(copy) / "_delta_log" / f"{0:020}.json").write_text("{")


def emptied(copy: str) -> None:
    (Path(copy) / "_delta_log" / f"{0:020}.json").unlink()


@pytest.mark.parametrize("harm", [gone, moved, damaged, emptied])
def test_clone_that_cannot_be_asked_keeps_what_it_may_read(
    path: str, copy: str, harm: Callable[[str], None], kind: VacuumKind, caplog: pytest.LogCaptureFixture
) -> None:
    two_files(path)
    shallow(path, copy)
    time.sleep(0.01)
    append(path, 3, mode="overwrite")
    append(path, 4, mode="overwrite")
    young = files_of(path, 2)
    harm(copy)
    went = dry(path, 2 * WEEK, **NOW, kind=kind)
    assert set(went) == (young if kind is VacuumKind.FULL else set()), "by the log alone nobody knows when files were written"
    (left,) = notes(path)
    assert f"the shallow clone at '{copy}' is not known: " in caplog.text
    assert f"If it is gone, delete {CLONE_DIRECTORY}/{left.name}" in caplog.text
    assert len(dry(path, 2 * WEEK, **NOW, kind=kind, keep_clones=False)) == 3
    left.unlink()
    assert now(path, 2 * WEEK, kind=kind) == 3, "what LITE had to leave is for the next one"


def test_clone_that_is_about_to_be_made_keeps_what_it_may_read(path: str, copy: str) -> None:
    append(copy, 8)
    append(path, 1)
    note(path, json.dumps({"clone": copy, "source": path, "after": 0}))
    time.sleep(0.01)
    append(path, 2, mode="overwrite")
    append(path, 3, mode="overwrite")
    assert set(dry(path, SOON, **NOW)) == files_of(path, 1)
    assert len(dry(path, 25, **NOW)) == 2, "after a day it has failed"
    assert now(path, 25) == 2
    assert notes(path) == []


def test_unfinished_clone_keeps_files_after_vacuum_of_its_path(path: str, copy: str) -> None:
    append(copy, 8)
    append(path, 1)
    note(path, json.dumps({"clone": copy, "source": path, "after": 0}))
    append(path, 2, mode="overwrite")
    vacuum(LocalStore(copy), VacuumRequest())
    assert DeltaTable(copy).version == 2
    assert (now(path), ids(path, 0)) == (0, [1])


# ---------------------------------------------------------------- notes that anybody may have left


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"[1]",
        b'"clone"',
        b"null",
        b"{}",
        b'{"clone": 1, "source": "/a", "after": 0}',
        b'{"clone": "/a", "source": null, "after": 0}',
        b'{"clone": "/a", "source": "/a", "after": "0"}',
        b'{"clone": "/a", "source": "/a", "after": 1e400}',
        b'{"clone": "/a\\u0000", "source": "/a", "after": 0}',
        b'{"clone": "' + b"/a" * 40_000 + b'", "source": "/a", "after": 0}',
        b'{"clone": "relative", "source": "/a", "after": 0}',
        b'{"clone": "file:///etc", "source": "/a", "after": 0}',
        b'{"clone": "s3://somebody/t", "source": "/a", "after": 0}',
        b'{"clone": "abfss://c@somebody.dfs.core.windows.net/t", "source": "/a", "after": 0}',
        b'{"clone": "https://somebody/t", "source": "/a", "after": 0}',
        b'{"clone": "/dev", "source": "/a", "after": 0}',
        b'{"clone": "/proc/self/fd", "source": "/a", "after": 0}',
    ],
)
def test_note_that_leads_nowhere_keeps_files_that_are_as_old(path: str, text: bytes) -> None:
    append(path, 1)
    note(path, text)
    time.sleep(0.01)
    append(path, 2, mode="overwrite")
    append(path, 3, mode="overwrite")
    assert set(dry(path, 2 * WEEK, **NOW)) == files_of(path, 1)
    assert len(dry(path, 2 * WEEK, **NOW, keep_clones=False)) == 2


def test_notes_that_lead_to_other_stores_are_not_followed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from the table nor from a clone of it."""
    opened: list[str] = []

    def opening(url: str, *options: Any) -> Any:
        opened.append(url)
        return open_store(url, *options)

    monkeypatch.setattr("delta_py.vacuum.vacuum_clones.open_store", opening)
    append(path, 1)
    shallow(path, f"{path}.copy")
    for number, place in enumerate(["s3://somebody/t", "gs://somebody/t", "az://c/t", "ftp://host/t", "//host/t"]):
        for holder in (path, f"{path}.copy"):
            note(holder, json.dumps({"clone": place, "source": path, "after": 0}), f"{number}.json")
    now(path)
    assert set(opened) == {f"{path}.copy", "//host/t"}, "which is a directory of this machine"


def test_note_of_a_strange_table_keeps_only_what_that_reads(path: str, tmp_path: Path) -> None:
    """Whatever it says about the table's own place."""
    append(path, 1)
    append(path, 2, mode="overwrite")
    other = str(tmp_path / "other")
    append(other, *range(5))
    for number, source in enumerate(["/", "", path, "(", f"{path}/..", "\0", "\n", "é" * 2_000, "s3://" + "a" * 15_000]):
        note(path, json.dumps({"clone": other, "source": source, "after": -1}), f"{number}.json")
    assert now(path, 25) == 1
    assert notes(path) == []


def test_too_many_notes_are_not_read(path: str, copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.vacuum.vacuum_clones._MOST_NOTES", 3)
    append(path, 1)
    shallow(path, copy)
    for number in range(5):
        note(path, json.dumps({"clone": f"{copy}.{number}", "source": path, "after": 0}), f"{number}.json")
    append(path, 2, mode="overwrite")
    reads: list[str] = []

    class Counting(LocalStore):
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            reads.append(path)
            return super().read_range(path, offset, length)

    Vacuum.begin(Counting(path), VacuumRequest(**NOW), in_hours(SOON)).find()
    assert len([read for read in reads if read.startswith(CLONE_DIRECTORY)]) == 3


def test_source_that_nobody_may_write_to_is_cloned(path: str, copy: str, caplog: pytest.LogCaptureFixture) -> None:
    append(path, 1)

    class ReadOnly(LocalStore):
        def put(self, path: str, data: bytes) -> None:
            raise StorageError("access denied")

    clone_table(Snapshot.load(ReadOnly(path)), open_store(copy))
    assert ids(copy) == [1]
    assert f"VACUUM of this table may not know of the shallow clone at {copy}" in caplog.text
