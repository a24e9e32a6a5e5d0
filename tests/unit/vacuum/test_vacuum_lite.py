"""VACUUM LITE: what the log alone says about removed files, and the version that the last VACUUM reached."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.copies.restore import restore
from delta_py.errors import UnsupportedOperationError
from delta_py.log.last_vacuum import LAST_VACUUM_PATH, read_last_vacuum
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectInfo
from delta_py.vacuum.quarantine import QUARANTINE_DIRECTORY
from delta_py.vacuum.vacuum import CHANGE_DATA, REMOVED, Vacuum, Vacuumed, VacuumKind, VacuumRequest, vacuum
from tests.unit.vacuum.test_vacuum import (
    ACTIONS,
    FEED,
    HOUR,
    UPDATED,
    VECTORS,
    WEEK,
    append,
    delete,
    dml,
    files_of,
    ids,
    in_hours,
    on_disk,
    vector_files,
)


class Unlisted(LocalStore):
    """A store whose data directories cannot be listed, and which counts calls."""

    __slots__ = ("listed",)

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.listed: list[str] = []

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        assert directory == QUARANTINE_DIRECTORY, "VACUUM LITE lists nothing else"
        return super().list_recursive(directory)

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        self.listed.append(directory)
        return super().list_from(directory, start)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def lite(path: str, hours_later: float = WEEK + 1, **options: Any) -> Vacuumed:
    return vacuum(Unlisted(path), VacuumRequest(kind=VacuumKind.LITE, **options), in_hours(hours_later))


def full(path: str, hours_later: float = WEEK + 1, **options: Any) -> Vacuumed:
    return vacuum(LocalStore(path), VacuumRequest(**options), in_hours(hours_later))


def dry(path: str, hours_later: float = WEEK + 1, **options: Any) -> dict[str, str]:
    request = VacuumRequest(kind=VacuumKind.LITE, **options)
    removable = Vacuum.begin(Unlisted(path), request, in_hours(hours_later)).find()
    return dict(zip(removable["path"].to_pylist(), removable["reason"].to_pylist(), strict=True))


def noted(path: str) -> int | None:
    return read_last_vacuum(LocalStore(path))


def note(path: str, text: str) -> None:
    (Path(path) / LAST_VACUUM_PATH).write_text(text)


def drop_commits(path: str, *versions: int) -> None:
    for version in versions:
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()


# ---------------------------------------------------------------- what goes


def test_removed_files_go_and_strays_stay(path: str) -> None:
    append(path, 1)
    old = files_of(path)
    append(path, 2, mode="overwrite")
    (Path(path) / "stray.parquet").write_bytes(b"x")
    assert dry(path, WEEK - 1) == {}
    assert dry(path) == dict.fromkeys(old, REMOVED)
    assert noted(path) is None, "a dry run notes nothing"
    assert lite(path, WEEK - 1).deleted == 0
    result = lite(path)
    assert (result.deleted, result.found["size"].null_count) == (1, 0)
    assert on_disk(path) == files_of(path) | {"stray.parquet"}
    assert ids(path) == [2]


def test_no_directory_of_the_table_is_listed(path: str) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["x", "y"]})
    write_delta(path, rows, partition_by=["p"], configuration={**FEED, **VECTORS})
    dml(path, "UPDATE", UPDATED, lambda number: number == 1, lambda row: {**row, "id": 9})
    write_delta(path, rows, mode="overwrite")
    store = Unlisted(path)
    assert vacuum(store, VacuumRequest(kind=VacuumKind.LITE), in_hours(WEEK + 1)).deleted > 0
    assert {directory.partition("/")[0] for directory in store.listed} == {"_delta_log"}


def test_change_data_and_vectors_go_with_their_commits(path: str) -> None:
    append(path, *range(10), configuration={**VECTORS, **FEED})
    dml(path, "UPDATE", UPDATED, lambda number: number == 3, lambda row: {"id": row["id"] + 100})
    first_vectors = vector_files(path)
    delete(path, lambda number: number == 4)
    live = files_of(path) | vector_files(path)
    removable = dry(path)
    assert {reason for name, reason in removable.items() if name.startswith("_change_data/")} == {CHANGE_DATA}
    assert first_vectors <= removable.keys() and live.isdisjoint(removable)
    lite(path)
    assert on_disk(path) == live
    assert ids(path) == [0, 1, 2, 5, 6, 7, 8, 9, 103]


@given(actions=st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=8), vectors=st.booleans(), cut=st.integers(0, 8))
@settings(max_examples=12, deadline=None)
def test_what_is_left_is_what_the_newest_version_needs(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str], vectors: bool, cut: int
) -> None:
    """Whatever has happened to the table, and wherever a VACUUM LITE ran in between: the result is that of a full one."""
    path = str(tmp_path_factory.mktemp("vacuum") / "t")
    append(path, *range(6), configuration={**FEED, "delta.enableDeletionVectors": str(vectors).lower()})
    now = {"retention_hours": 0, "check_retention": False}
    for number, action in enumerate(actions):
        if number == cut and "restore" not in actions[cut:]:
            lite(path, 1, **now)
        ACTIONS[action](path, 10 * number)
    before, needed = ids(path), files_of(path) | vector_files(path)
    assert dry(path, WEEK - 1) == {}
    lite(path, 1, **now)
    assert (on_disk(path), ids(path)) == (needed, before)
    assert full(path, 1, **now).deleted == 0


# ---------------------------------------------------------------- what stays


def test_restored_files_and_kept_versions_stay(path: str) -> None:
    for number in range(4):
        append(path, number, mode="overwrite")
    restore(LocalStore(path), version=1)
    lite(path, keep_versions=(2,))
    assert (ids(path), ids(path, 2)) == ([1], [2])
    assert len(on_disk(path)) == 2


def test_file_removed_again_after_a_restore_gets_new_retention(path: str) -> None:
    append(path, 1)
    (old,) = files_of(path)
    append(path, 2, mode="overwrite")
    restore(LocalStore(path), version=0)
    append(path, 3, mode="overwrite")
    make_older(path, 2 * WEEK, versions=(0, 1, 2))
    assert dry(path, 0) == {name: REMOVED for name in files_of(path, 1)}
    assert dry(path, WEEK + 1)[old] == REMOVED


def make_older(path: str, hours: float, versions: tuple[int, ...]) -> None:
    """Commits, and the removals in them, of this age."""
    then = time.time() - hours * 3600
    for version in versions:
        commit = Path(path) / "_delta_log" / f"{version:020}.json"
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for line in lines:
            if "remove" in line:
                line["remove"]["deletionTimestamp"] -= int(hours * HOUR)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(commit, (then + version, then + version))


def test_restore_that_was_committed_meanwhile_keeps_its_files(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    look = Vacuum.begin(LocalStore(path), VacuumRequest(kind=VacuumKind.LITE), in_hours(WEEK + 1))
    removable = look.find()
    assert removable.num_rows == 1
    restore(LocalStore(path), version=0)
    assert look.drop_needed_now(removable, look.commit_start(removable)).num_rows == 0


@pytest.mark.parametrize("spelling", ["file:{root}/{name}", "{root}/{name}", "./{name}", "x/../{name}"])
def test_vacuum_lite_leaves_other_path_spellings_to_full_vacuum(path: str, spelling: str) -> None:
    append(path, 1)
    (name,) = files_of(path)
    commit = Path(path) / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace(f'"path":"{name}"', f'"path":"{spelling.format(root=path, name=name)}"'))
    append(path, 2, mode="overwrite")
    assert dry(path) == {}
    assert full(path).deleted == 1


@pytest.mark.parametrize("name", ["_delta_log/00000000000000000000.json", "_hidden/x", "../outside", "a/.x", "inner/t/x.parquet"])
def test_removed_name_that_is_not_the_tables_own_stays(path: str, tmp_path: Path, name: str) -> None:
    """A log may claim that anything was removed."""
    append(path, 1)
    append(f"{path}/inner/t", 5)
    file = Path(path) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_bytes(b"x")
    log = Path(path) / "_delta_log" / f"{1:020}.json"
    log.write_text(json.dumps({"remove": {"path": name, "dataChange": True, "deletionTimestamp": 5}}) + "\n")
    assert lite(path).deleted == 0
    assert file.exists() and ids(path) == [1]


# ---------------------------------------------------------------- how far it came


def test_next_one_begins_where_the_last_one_ended(path: str) -> None:
    for number in range(3):
        append(path, number, mode="overwrite")
    assert lite(path).deleted == 2
    assert (Path(path) / LAST_VACUUM_PATH).read_text() == '{"latestCommitVersionOutsideOfRetentionWindow":2}\n'
    assert dry(path, 10 * WEEK) == {}
    DeltaTable(path).checkpoint()
    drop_commits(path, 0)
    append(path, 3, mode="overwrite")
    assert len(dry(path, 10 * WEEK)) == 1
    assert lite(path, 10 * WEEK).deleted == 1
    assert noted(path) == 5, "the version that it had found, without its own commits"


def test_full_one_notes_it_too(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    full(path)
    assert noted(path) == 1
    assert dry(path) == {}


@pytest.mark.parametrize("text", ["{}", '{"latestCommitVersionOutsideOfRetentionWindow":null}', "", "[1]", "x" * 300_000])
def test_note_that_says_nothing_or_is_damaged_means_all_commits(path: str, text: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    note(path, text)
    assert noted(path) is None
    assert lite(path).deleted == 1
    assert noted(path) == 1


def test_note_of_a_version_that_is_not_there_is_not_believed(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    note(path, '{"latestCommitVersionOutsideOfRetentionWindow":99}')
    assert lite(path).deleted == 1
    assert noted(path) == 1


def test_commits_that_are_gone_are_refused(path: str) -> None:
    for number in range(4):
        append(path, number, mode="overwrite")
    DeltaTable(path).checkpoint()
    drop_commits(path, 0, 1)
    with pytest.raises(UnsupportedOperationError, match=r"commit 0.*Run a full VACUUM") as raised:
        lite(path)
    assert (raised.value.error_class, raised.value.sql_state) == ("DELTA_CANNOT_VACUUM_LITE", "55000")
    assert (len(on_disk(path)), DeltaTable(path).version) == (4, 3)
    note(path, '{"latestCommitVersionOutsideOfRetentionWindow":0}')
    with pytest.raises(UnsupportedOperationError, match="came as far as version 0, and commit 1"):
        lite(path)
    note(path, '{"latestCommitVersionOutsideOfRetentionWindow":1}')
    assert lite(path).deleted == 2
    full(path)
    assert on_disk(path) == files_of(path)
    append(path, 9, mode="overwrite")
    assert lite(path).deleted == 1, "the full one has noted how far it came"


def test_vacuum_lite_without_old_commits_does_nothing(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    assert lite(path, 0).deleted == 0
    assert noted(path) is None


def test_commit_with_a_later_removal_is_left_for_the_next_one(path: str) -> None:
    """By another clock than the store's."""
    append(path, 1)
    (old,) = files_of(path)
    ahead = in_hours(2 * WEEK)()
    log = Path(path) / "_delta_log" / f"{1:020}.json"
    log.write_text(json.dumps({"remove": {"path": old, "dataChange": True, "deletionTimestamp": ahead}}) + "\n")
    append(path, 2)
    assert lite(path).deleted == 0
    assert noted(path) == 0
    assert lite(path, 4 * WEEK).deleted == 1


def test_longer_retention_than_the_tables(path: str) -> None:
    append(path, 1, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    append(path, 2, mode="overwrite")
    set_properties(LocalStore(path), {"delta.checkpointInterval": "100"})
    assert dry(path, 1, retention_hours=2) == {}
    assert len(dry(path, 3, retention_hours=2)) == 1


def test_history_has_the_beginning_and_the_end(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    lite(path)
    end, start = DeltaTable(path).history(2).to_pylist()
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert dict(start["operationMetrics"])["numFilesToDelete"] == "1"
    assert int(dict(start["operationMetrics"])["sizeOfDataToDelete"]) > 0
    assert dict(end["operationMetrics"])["numDeletedFiles"] == "1"


class Unnoted(LocalStore):
    """A store that loses the note, or the reply to it."""

    __slots__ = ("after",)

    def __init__(self, root: str, after: bool) -> None:
        super().__init__(root)
        self.after = after

    def put(self, path: str, data: bytes) -> None:
        if path != LAST_VACUUM_PATH or self.after:
            super().put(path, data)
        if path == LAST_VACUUM_PATH:
            raise OSError("no answer")


@pytest.mark.parametrize("after", [False, True])
def test_failed_note_is_logged_and_next_vacuum_rereads_commits(
    path: str, after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    with caplog.at_level(logging.WARNING):
        assert vacuum(Unnoted(path, after), VacuumRequest(kind=VacuumKind.LITE), in_hours(WEEK + 1)).deleted == 1
    assert "how far VACUUM came is not noted" in caplog.text
    assert noted(path) == (1 if after else None)
    lite(path)
    assert (noted(path), ids(path)) == (3, [2])


def test_method_of_the_table(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    time.sleep(0.01)
    table = DeltaTable(path)
    result = table.vacuum(0, enforce_retention_duration=False, lite=True)
    assert (result["reason"].to_pylist(), len(on_disk(path))) == ([REMOVED], 2)
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, lite=True)
    assert on_disk(path) == files_of(path)
