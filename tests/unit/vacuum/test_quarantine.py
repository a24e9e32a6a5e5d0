"""Quarantine: files that VACUUM moves there stay complete and can be restored, until a later run deletes them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.copies.restore import restore_faults
from delta_py.errors import InvalidOptionError, StorageError
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import QUARANTINE_DIRECTORY, Quarantine, list_quarantine, restore_quarantined
from delta_py.vacuum.vacuum import QUARANTINED, REMOVED, Vacuum, Vacuumed, VacuumKind, VacuumRequest, vacuum
from tests.support.stores.memory_store import MemoryStore

HOUR = 3_600_000
NOW = time.time_ns() // 1_000_000
NO_RETENTION = VacuumRequest(retention_hours=0, check_retention=False)
ASIDE = VacuumRequest(retention_hours=0, check_retention=False, quarantine=True, quarantine_hours=48)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """A table with a row in each of two partitions, and the files of an earlier version."""
    store: ObjectStore = LocalStore(str(tmp_path / "table")) if request.param == "local" else MemoryStore(now_ms=NOW)
    for number in (1, 2):
        rows = pa.table({"id": [number], "day": [f"2024-05-0{number} %/"]})
        write_delta(store.root, rows, mode="overwrite", partition_by=["day"], store=store)
    return store


def run(store: ObjectStore, request: VacuumRequest, hours_later: float) -> Vacuumed:
    return vacuum(store, request, lambda: NOW + int(hours_later * HOUR))


def data(store: ObjectStore) -> dict[str, bytes]:
    paths = [info.path for info in store.list_recursive("") if not info.path.startswith("_")]
    return {path: store.read(path) for path in paths}


def held(store: ObjectStore) -> list[str]:
    return list_quarantine(store)["path"].to_pylist()


def ids(store: ObjectStore, version: int | None = None) -> list[int]:
    return DeltaTable(store.root, version=version, store=store).to_arrow()["id"].to_pylist()


def test_files_are_moved_aside_brought_back_and_deleted(store: ObjectStore) -> None:
    before = data(store)
    result = run(store, ASIDE, 1)
    assert (result.deleted, result.quarantined) == (0, 1)
    (old,) = held(store)
    assert set(data(store)) == set(before) - {old}, "it is not at its place"
    assert ids(store) == [2]
    dry = restore_quarantined(store, dry_run=True)
    assert (dry["path"].to_pylist(), dry["restored"].to_pylist()) == ([old], [True])
    assert held(store) == [old], "a dry run moves nothing"
    back = restore_quarantined(store)
    assert back.select(["path", "size", "restored"]).to_pylist() == [{"path": old, "size": len(before[old]), "restored": True}]
    assert back["quarantined"].to_pylist() == [NOW + HOUR]
    assert (data(store), held(store)) == (before, [])
    assert ids(store, 0) == [1], "the version before can be read again"
    assert restore_quarantined(store).num_rows == 0
    run(store, ASIDE, 1)
    assert run(store, ASIDE, 40).deleted == 0, "not yet"
    assert run(store, ASIDE, 50).deleted == 1
    assert (set(data(store)), held(store)) == (set(before) - {old}, [])


def test_vacuum_without_quarantine_empties_it_after_retention(store: ObjectStore) -> None:
    run(store, ASIDE, 1)
    assert run(store, NO_RETENTION, 2).deleted == 0, "a short retention is not of what is in quarantine"
    removable = Vacuum.begin(store, NO_RETENTION, lambda: NOW + 24 * 8 * HOUR).find()
    assert removable["reason"].to_pylist() == [QUARANTINED]
    assert removable["path"].to_pylist()[0].startswith(f"{QUARANTINE_DIRECTORY}/")
    assert run(store, NO_RETENTION, 24 * 8).deleted == 1
    assert held(store) == []


def test_what_is_needed_again_is_not_deleted_from_quarantine(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    run(store, ASIDE, 1)
    request = VacuumRequest(0, check_retention=False, keep_versions=(0,), quarantine_hours=0)
    assert run(store, request, 100).deleted == 0
    assert "needed" in caplog.text
    restore_quarantined(store)
    assert ids(store, 0) == [1]


def test_another_file_at_the_place_is_not_overwritten(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    run(store, ASIDE, 1)
    (old,) = held(store)
    store.put(old, b"somebody else's")
    assert restore_quarantined(store)["restored"].to_pylist() == [False]
    assert (store.read(old), held(store)) == (b"somebody else's", [old])
    assert "stays in quarantine" in caplog.text


def test_a_file_at_its_place_and_in_quarantine_is_one(store: ObjectStore) -> None:
    """As after a writer that died between the two steps."""
    before = data(store)
    run(store, ASIDE, 1)
    (row,) = list_quarantine(store).to_pylist()
    store.put(row["path"], store.read(row["held_at"]))
    assert restore_quarantined(store)["restored"].to_pylist() == [True]
    assert (data(store), held(store)) == (before, [])


def test_vacuum_lite_quarantines_and_other_runs_skip_the_file(store: ObjectStore) -> None:
    lite = VacuumRequest(0, check_retention=False, kind=VacuumKind.LITE, quarantine=True)
    assert run(store, lite, 1).quarantined == 1
    assert len(held(store)) == 1
    removable = Vacuum.begin(store, NO_RETENTION, lambda: NOW + HOUR).find()
    assert removable.num_rows == 0, "other runs do not see it"
    restore_quarantined(store)
    removable = Vacuum.begin(store, NO_RETENTION, lambda: NOW + HOUR).find()
    assert removable["reason"].to_pylist() == [REMOVED], "a full one finds it again"


def test_the_history_says_that_files_were_moved(store: ObjectStore) -> None:
    run(store, ASIDE, 1)
    end, start = DeltaTable(store.root, store=store).history(2).to_pylist()
    assert dict(start["operationParameters"])["quarantine"] == "true"
    metrics = dict(end["operationMetrics"])
    assert (metrics["numDeletedFiles"], metrics["numQuarantinedFiles"]) == ("0", "1")


@pytest.mark.parametrize("hours", [-1, float("nan"), 2.0**50])
def test_hours_that_make_no_sense_are_refused(store: ObjectStore, hours: float) -> None:
    with pytest.raises(InvalidOptionError, match="quarantine of"):
        Vacuum.begin(store, VacuumRequest(quarantine_hours=hours))


@pytest.mark.parametrize("name", ["_delta_log/00000000000000000009.json", "day=1/_hidden", ".hidden"])
def test_hidden_names_in_quarantine_are_not_brought_back(store: ObjectStore, name: str) -> None:
    """VACUUM never moves such a file there: somebody else has put it there."""
    store.put(f"{QUARANTINE_DIRECTORY}/{NOW:015}-{'0' * 32}/{name}", b"{}")
    assert restore_quarantined(store).num_rows == 0
    assert name not in [info.path for info in store.list_recursive("")]


def test_strange_names_in_quarantine_are_left_alone(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("notes.txt", "x/y", f"{NOW:015}-{'0' * 32}/a.{'1' * 32}.part"):
        store.put(f"{QUARANTINE_DIRECTORY}/{name}", b"x")
    assert restore_quarantined(store).num_rows == 0
    assert "2 files of the quarantine are not VACUUM's" in caplog.text


def test_file_that_cannot_be_restored_is_an_error_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for number in (1, 2):
        write_delta(str(path), pa.table({"id": [number]}), mode="overwrite")
    store = LocalStore(str(path))
    stray = path / "sub" / "stray"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    assert run(store, ASIDE, 1).quarantined == 2
    stray.parent.rmdir()
    os.symlink(tmp_path, stray.parent)
    with pytest.raises(StorageError, match="1 of the 2 files in quarantine"):
        restore_quarantined(store)
    assert held(store) == ["sub/stray"]
    os.unlink(stray.parent)
    restore_quarantined(store)
    assert stray.read_bytes() == b"x" and ids(store, 0) == [1]


def test_fsck_and_restore_name_files_in_quarantine_and_lose_none(store: ObjectStore) -> None:
    run(store, ASIDE, 1)
    (fault,) = restore_faults(store, version=0).to_pylist()
    assert "restore_quarantined" in fault["reason"] and not fault["can_repair"] and fault["rows_lost"] == 0
    for path in DeltaTable(store.root, store=store).files()["path"].to_pylist():  # which should never happen
        Quarantine(store, NOW).add(path)
    (fault,) = DeltaTable(store.root, store=store).fsck(dry_run=False, allow_data_loss=True).to_pylist()
    assert "restore_quarantined" in fault["reason"]
    restore_quarantined(store)
    assert ids(store) == [2] and ids(store, 0) == [1]


@given(steps=st.lists(st.sampled_from(["write", "aside", "back", "delete"]), max_size=8))
@settings(max_examples=25, deadline=None)
def test_no_order_of_steps_before_the_due_time_loses_a_file(steps: list[str]) -> None:
    store, hours = MemoryStore(now_ms=NOW), 1
    write_delta(store.root, pa.table({"id": [0]}), store=store)
    known_data = data(store)
    for number, step in enumerate(steps):
        hours += 1
        if step == "write":
            write_delta(store.root, pa.table({"id": [number]}), mode="overwrite", store=store)
        elif step == "aside":
            run(store, ASIDE, hours)
        elif step == "back":
            restore_quarantined(store)
        else:
            run(store, VacuumRequest(quarantine_hours=48), hours)
        known_data |= data(store)
        live = DeltaTable(store.root, store=store).files()["path"].to_pylist()
        assert set(live) <= data(store).keys()
        assert data(store).keys() | set(held(store)) == known_data.keys()
    restore_quarantined(store)
    assert data(store) == known_data
