"""VACUUM and readers that hold leases: batch reads of Spark's tasks, streams, and readers without Spark."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable
from delta_py.checkpoint.leases import HeldLease, Lease, Leases
from delta_py.copies.restore import restore
from delta_py.errors import DataFileError, DeletionVectorError, UnsupportedOperationError
from delta_py.log.last_vacuum import read_last_vacuum
from delta_py.protocol.paths import LEASE_DIRECTORY
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.vacuum import Vacuum, VacuumKind, VacuumRequest, vacuum
from spark_plugin.data_source import DeltaSource
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.streaming.stream_reader import DeltaStreamReader, make_stream_reader, pin_stream
from tests.unit.vacuum.test_vacuum import (
    ACTIONS,
    FEED,
    UPDATED,
    VECTORS,
    append,
    dml,
    files_of,
    ids,
    in_hours,
    on_disk,
    vector_files,
)

SOON = 0.01  # hours: by then files are old, and leases are valid


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture(params=[VacuumKind.FULL, VacuumKind.LITE], ids=["full", "lite"])
def kind(request: pytest.FixtureRequest) -> VacuumKind:
    kind: VacuumKind = request.param
    return kind


def now(path: str, kind: VacuumKind = VacuumKind.FULL, hours: float = SOON) -> int:
    request = VacuumRequest(retention_hours=0, check_retention=False, kind=kind)
    return vacuum(LocalStore(path), request, in_hours(hours)).deleted


def lease_files(path: str) -> list[str]:
    directory = Path(path) / LEASE_DIRECTORY
    return sorted(os.listdir(directory)) if directory.exists() else []


# ---------------------------------------------------------------- what is kept


def test_version_that_is_read_stays_until_its_reader_is_done(path: str, kind: VacuumKind) -> None:
    for number in range(5):
        append(path, number, mode="overwrite")
    reader = DeltaTable(path, version=2)
    with reader.lease():
        assert now(path, kind) == 2
        assert [ids(path, version) for version in (2, 3, 4)] == [[2], [3], [4]]
        assert read_last_vacuum(LocalStore(path)) == 2, "what was kept is for the next one"
    assert lease_files(path) == []
    assert now(path, kind) == 2
    assert on_disk(path) == files_of(path)


def test_vectors_and_change_data_of_later_commits_stay(path: str, kind: VacuumKind) -> None:
    append(path, *range(6), configuration={**VECTORS, **FEED})
    for number in (1, 2, 3):
        dml(path, "UPDATE", UPDATED, lambda row, number=number: row == number, lambda row: {"id": row["id"] + 100})  # type: ignore[misc]
    with DeltaTable(path, version=1).lease():
        now(path, kind)
        assert ids(path, 1) == [0, 2, 3, 4, 5, 101]
        assert DeltaTable(path).changes(starting_version=2).read_all().num_rows == 4
    assert now(path, kind) > 0
    with pytest.raises(DeletionVectorError):
        ids(path, 1)


def test_reader_of_the_newest_version_costs_vacuum_nothing(path: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    with DeltaTable(path).lease():
        assert now(path, kind) == 1
    assert read_last_vacuum(LocalStore(path)) == 1


def test_vacuum_sees_a_reader_that_starts_before_its_deletion(path: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    look = Vacuum.begin(LocalStore(path), VacuumRequest(0, check_retention=False, kind=kind), in_hours(SOON))
    removable = look.find()
    assert removable.num_rows == 1
    with DeltaTable(path, version=0).lease():
        assert look.drop_needed_now(removable, look.commit_start(removable)).num_rows == 0
        look.record_progress()
    assert read_last_vacuum(LocalStore(path)) == 0


def test_vacuum_sees_a_restore_between_reading_leases_and_log(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    look = Vacuum.begin(LocalStore(path), VacuumRequest(0, check_retention=False), in_hours(SOON))
    removable = look.find()
    looks: list[str] = []
    read, load = Leases.read, Snapshot.load

    def second(what: str) -> None:
        looks.append(what)
        if len(looks) == 2:
            restore(LocalStore(path), version=0)

    def reading(store: ObjectStore, now_ms: int) -> Leases:
        second("leases")
        return read(store, now_ms)

    def loading(store: ObjectStore, *version: int, **named: Any) -> Snapshot:
        second("log")
        return load(store, *version, **named)

    monkeypatch.setattr(Leases, "read", reading)
    monkeypatch.setattr(Snapshot, "load", loading)
    assert look.drop_needed_now(removable).num_rows == 0
    assert {"leases", "log"} <= set(looks)


def test_file_of_a_lease_that_ends_early_waits_for_next_vacuum(path: str) -> None:
    for number in range(3):
        append(path, number, mode="overwrite")
    request = VacuumRequest(0, check_retention=False, kind=VacuumKind.LITE)
    with DeltaTable(path, version=1).lease():
        look = Vacuum.begin(LocalStore(path), request, in_hours(SOON))
        removable = look.find()
    assert look.drop_needed_now(removable).num_rows == 1
    look.delete_or_quarantine(removable["path"])
    look.record_progress()
    assert now(path, VacuumKind.LITE) == 1
    assert on_disk(path) == files_of(path)


def test_file_restored_and_removed_again_while_it_is_read_stays(path: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    restore(LocalStore(path), version=0)
    with DeltaTable(path).lease():
        append(path, 3, mode="overwrite")
        now(path, kind)
        assert ids(path, 2) == [1]


def test_lease_that_has_run_out_keeps_nothing_and_is_deleted(path: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    Lease(LocalStore(path), 0, 60).put()
    assert now(path, kind) == 0
    assert now(path, kind, hours=0.1) == 1
    assert lease_files(path) == []


def test_dry_run_deletes_no_lease(path: str) -> None:
    append(path, 1)
    Lease(LocalStore(path), 0, 60).put()
    Vacuum.begin(LocalStore(path), VacuumRequest(), in_hours(1)).find()
    assert len(lease_files(path)) == 1


def test_unreadable_lease_keeps_all_removed_files(path: str, kind: VacuumKind) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    LocalStore(path).put(f"{LEASE_DIRECTORY}/what is this", b"")
    assert now(path, kind) == 0
    assert now(path, kind, hours=25) == 1


def test_lease_of_a_version_before_the_log_is_refused(path: str, kind: VacuumKind) -> None:
    for number in range(4):
        append(path, number, mode="overwrite")
    DeltaTable(path).checkpoint()
    LocalStore(path).put("_delta_log/_last_vacuum_info", b'{"latestCommitVersionOutsideOfRetentionWindow":1}')
    for version in (0, 1):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    Lease(LocalStore(path), 0).put()
    with pytest.raises(UnsupportedOperationError, match=r"somebody reads version 0 .* commit 1") as raised:
        now(path, kind)
    assert (raised.value.error_class, len(on_disk(path))) == ("DELTA_CANNOT_VACUUM_LEASED", 4)


STEPS = [*sorted(ACTIONS), "read", "read", "end", "full", "lite"]


@given(steps=st.lists(st.sampled_from(STEPS), max_size=14), vectors=st.booleans())
@settings(max_examples=8, deadline=None)
def test_whoever_holds_a_lease_reads_what_it_began_with(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], vectors: bool
) -> None:
    """Whatever is done to the table at the same time. In the end no unneeded file remains."""
    path = str(tmp_path_factory.mktemp("leases") / "t")
    append(path, *range(6), configuration={**FEED, "delta.enableDeletionVectors": str(vectors).lower()})
    readers: list[tuple[int, list[int], HeldLease]] = []
    for number, step in enumerate(steps):
        if step == "read":
            table = DeltaTable(path)
            readers.append((table.version, ids(path), table.lease()))
        elif step == "end" and readers:
            readers.pop(number % len(readers))[2].release()
        elif step in ("full", "lite"):
            newest = ids(path)
            now(path, VacuumKind[step.upper()])
            assert ids(path) == newest
            assert [ids(path, version) for version, _, _ in readers] == [rows for _, rows, _ in readers]
        elif step in ACTIONS:
            with suppress(DataFileError):  # of a RESTORE
                ACTIONS[step](path, 10 * number)
    for _, _, held_lease in readers:
        held_lease.release()
    now(path)
    assert on_disk(path) == files_of(path) | vector_files(path)


# ---------------------------------------------------------------- who holds them


def planned(path: str, **options: str) -> Any:
    source = DeltaSource({"path": path, **options})
    return source.reader(source.schema())


def rows_of(reader: Any) -> Iterator[int]:
    """As Spark's tasks read: they get the plan pickled."""
    parts = reader.partitions()
    task = pickle.loads(pickle.dumps(reader))
    for part in parts:
        for batch in task.read(part):
            yield from batch["id"].to_pylist()


def test_batch_read_holds_one_if_it_is_asked_to(path: str) -> None:
    append(path, 1)
    assert sorted(rows_of(planned(path))) == [1]
    assert lease_files(path) == []
    (name,) = rows_and_leases(path, readLease="2 hours")
    assert name.startswith(f"{0:020}-7200s-")


def rows_and_leases(path: str, **options: str) -> list[str]:
    """A reader that has planned, and begun to read, when a VACUUM runs."""
    append(path, 2)
    rows = rows_of(planned(path, versionAsOf="0", **options))
    append(path, 3, mode="overwrite")
    assert next(rows) == 1
    names = lease_files(path)
    now(path)
    assert ids(path, 0) == [1]
    assert [*rows] == []
    return names


def test_read_of_changes_holds_one_of_the_version_before_them(path: str) -> None:
    append(path, 1, configuration=FEED)
    append(path, 2)
    append(path, 3, mode="overwrite")
    reader = planned(path, readChangeFeed="true", startingVersion="2", readLease="true")
    rows = rows_of(reader)
    assert next(rows) in (1, 2, 3)
    assert [name[:20] for name in lease_files(path)] == [f"{1:020}"]
    now(path)
    assert len([*rows]) == 2


def test_planning_without_the_right_to_write_reads_on(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, 1)

    def refuse(self: LocalStore, path: str, data: bytes) -> None:
        raise PermissionError(13, "read only")

    monkeypatch.setattr(LocalStore, "put", refuse)
    with caplog.at_level(logging.WARNING):
        assert [*rows_of(planned(path, readLease="true"))] == [1]
    assert caplog.text.count("Reading goes on without it") == 1


def stream(path: str, **options: str) -> DeltaStreamReader:
    pinned = pin_stream({"path": path, "maxFilesPerTrigger": "1", "readLease": "true", **options})
    return make_stream_reader(pinned, to_spark_schema(pinned.schema))


def batch(reader: DeltaStreamReader, start: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    parts = reader.partitions(start, end)
    task = pickle.loads(pickle.dumps(reader))
    rows = [row for part in parts for read_batch in task.read(part) for row in read_batch["id"].to_pylist()]
    return rows, end


@pytest.mark.parametrize("options", [{}, {"startingVersion": "0", "ignoreChanges": "true"}], ids=["initial", "commits"])
def test_stream_that_lags_reads_what_was_removed_meanwhile(path: str, kind: VacuumKind, options: dict[str, str]) -> None:
    for number in range(3):
        append(path, number)
    reader = stream(path, **options)
    start = reader.initialOffset()
    rows, place = batch(reader, start)
    append(path, 9, mode="overwrite")
    for number in (10, 11):
        append(path, number)
    now(path, kind)
    for _ in range(2):
        reader.commit(place)
        more, place = batch(reader, place)
        rows += more
    assert sorted(rows) == [0, 1, 2]
    reader.stop()
    assert lease_files(path) == []
    assert now(path, kind) == 3


def test_stream_of_changes_that_lags_reads_them(path: str, kind: VacuumKind) -> None:
    append(path, 0, 1, 2, configuration={**FEED, **VECTORS})
    dml(path, "UPDATE", UPDATED, lambda row: row == 1, lambda row: {"id": row["id"] + 100})
    dml(path, "UPDATE", UPDATED, lambda row: row == 2, lambda row: {"id": row["id"] + 100})
    reader = stream(path, readChangeFeed="true", startingVersion="1")
    _, place = batch(reader, reader.initialOffset())
    reader.commit(place)
    append(path, 9, mode="overwrite")
    now(path, kind)
    rows, _ = batch(reader, place)
    assert sorted(rows) == [2, 102]
    reader.stop()


def test_stream_without_the_option_holds_none(path: str) -> None:
    append(path, 0)
    reader = stream(path, readLease="false")
    batch(reader, reader.initialOffset())
    assert lease_files(path) == []
    reader.stop()
