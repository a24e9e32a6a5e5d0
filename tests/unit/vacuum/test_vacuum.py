"""VACUUM: which files are deleted, which stay, and what stays if anything fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.copies.clone import clone_table
from delta_py.copies.restore import restore
from delta_py.errors import (
    DataFileError,
    InvalidOptionError,
    LogIntegrityError,
    StorageError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.protocol.actions import Protocol, action_to_line
from delta_py.row_changes.dml import Dml
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import CHANGE_DATA, REMOVED, UNKNOWN, Vacuum, Vacuumed, VacuumKind, VacuumRequest, vacuum
from delta_py.write.task_changes import DELETED, UPDATED
from tests.support.tables.plain_dml import changed, run, target_rows

HOUR = 3_600_000
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def append(path: str, *ids: int, mode: str = "append", **options: Any) -> None:
    write_delta(path, pa.table({"id": pa.array(ids, pa.int64())}), mode=mode, **options)


def dml(
    path: str, operation: str, kind: int, is_wanted: Callable[[int], bool], set_: Callable[[dict[str, Any]], Any] = dict
) -> None:
    one = Dml.begin(LocalStore(path), operation, time_zone="UTC")
    rows = target_rows(one, one.find_candidates(None))
    rows = rows.filter(pa.array([is_wanted(number) for number in rows["id"].to_pylist()], pa.bool_()))
    if rows.num_rows:
        run(one, [[changed(rows, kind, set_)]])


def delete(path: str, is_wanted: Callable[[int], bool]) -> None:
    dml(path, "DELETE", DELETED, is_wanted)


def make_old(path: str, file: str) -> None:
    os.utime(Path(path) / file, (0, 0))


def in_hours(hours: float) -> Callable[[], int]:
    """A clock that is ahead."""
    return lambda: time.time_ns() // 1_000_000 + int(hours * HOUR)


def cleaned(path: str, hours_later: float = 0.0, **options: Any) -> Vacuumed:
    return vacuum(LocalStore(path), VacuumRequest(**options), in_hours(hours_later))


def dry(path: str, hours_later: float = 0.0, **options: Any) -> dict[str, str]:
    removable = Vacuum.begin(LocalStore(path), VacuumRequest(**options), in_hours(hours_later)).find()
    return dict(zip(removable["path"].to_pylist(), removable["reason"].to_pylist(), strict=True))


def files_of(path: str, version: int | None = None) -> set[str]:
    return set(DeltaTable(path, version=version).files()["path"].to_pylist())


def on_disk(path: str) -> set[str]:
    names = {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}
    return {file for file in names if not file.startswith("_delta_log/")}


def ids(path: str, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(path, version=version).to_arrow()["id"].to_pylist())


WEEK = 24 * 7


# ---------------------------------------------------------------- what goes, and when


def test_removed_files_go_when_their_time_is_over(path: str) -> None:
    append(path, 1)
    old = files_of(path)
    append(path, 2, mode="overwrite")
    assert dry(path, WEEK - 1) == {}
    assert dry(path, WEEK + 1) == dict.fromkeys(old, REMOVED)
    assert on_disk(path) == old | files_of(path), "a dry run deletes nothing"
    assert cleaned(path, WEEK - 1).deleted == 0
    assert ids(path, 0) == [1]
    assert cleaned(path, WEEK + 1).deleted == 1
    assert on_disk(path) == files_of(path)
    assert ids(path) == [2]
    with pytest.raises(DataFileError):
        ids(path, 0)


def test_files_that_the_log_does_not_know_go_when_they_are_old(path: str) -> None:
    append(path, 1)
    (Path(path) / "stray.parquet").write_bytes(b"x")
    (Path(path) / "folder").mkdir()
    (Path(path) / "folder" / "stray.txt").write_bytes(b"x")
    assert dry(path, WEEK - 1) == {}
    assert dry(path, WEEK + 1) == {"stray.parquet": UNKNOWN, "folder/stray.txt": UNKNOWN}
    assert cleaned(path, WEEK + 1).deleted == 2
    assert on_disk(path) == files_of(path)


@pytest.mark.parametrize(
    "name", ["_hidden/x.parquet", ".hidden/x", "_x.parquet", ".x.parquet", "a/_b/c", "a/.c", "_delta_index/x", "a/_change_data/x"]
)
def test_hidden_files_stay(path: str, name: str) -> None:
    append(path, 1)
    file = Path(path) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x")
    assert dry(path, 10 * WEEK) == {}


def test_partitions_whose_names_look_hidden_do_not(path: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "_p": ["x"]})
    write_delta(path, rows, partition_by=["_p"])
    old = files_of(path)
    write_delta(path, rows, mode="overwrite")
    assert dry(path, WEEK + 1) == dict.fromkeys(old, REMOVED)


def test_change_data_and_vectors_go_with_their_commits(path: str) -> None:
    append(path, *range(10), configuration={**VECTORS, **FEED})
    dml(path, "UPDATE", UPDATED, lambda number: number == 3, lambda row: {"id": row["id"] + 100})
    first_vectors = vector_files(path)
    delete(path, lambda number: number == 4)
    live = files_of(path) | vector_files(path)
    removable = dry(path, WEEK + 1)
    assert {reason for name, reason in removable.items() if name.startswith("_change_data/")} == {CHANGE_DATA}
    assert first_vectors <= removable.keys()
    cleaned(path, WEEK + 1)
    assert on_disk(path) == live
    assert ids(path) == [0, 1, 2, 5, 6, 7, 8, 9, 103]


def vector_files(path: str) -> set[str]:
    return {name for name in on_disk(path) if "deletion_vector" in name} & {
        descriptor.path for file in DeltaTable(path).scan().scan_files() if (descriptor := file.deletion_vector) is not None
    }


def test_after_optimize_the_small_files_go(path: str) -> None:
    for number in range(5):
        append(path, number)
    small = files_of(path)
    optimize(LocalStore(path), OptimizeRequest(), LocalBinWriters())
    assert dry(path, WEEK - 1) == {}
    assert dry(path, WEEK + 1) == dict.fromkeys(small, REMOVED)
    cleaned(path, WEEK + 1)
    assert ids(path) == list(range(5))


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_tombstones_of_a_checkpoint_keep_files(path: str, policy: str) -> None:
    append(path, 1, configuration={"delta.checkpointPolicy": policy})
    append(path, 2, mode="overwrite")
    DeltaTable(path).checkpoint()
    append(path, 3)
    for name in (0, 1):
        (Path(path) / "_delta_log" / f"{name:020}.json").unlink()
    assert dry(path, WEEK - 1) == {}
    assert len(dry(path, WEEK + 1)) == 1


def test_removal_without_a_time_counts_as_long_ago(path: str) -> None:
    append(path, 1)
    (old,) = files_of(path)
    log = Path(path) / "_delta_log" / f"{1:020}.json"
    log.write_text(f'{{"remove":{{"path":"{old}","dataChange":true}}}}\n')
    assert dry(path, WEEK - 1) == {}, "it is young"
    assert dry(path, WEEK + 1) == {old: REMOVED}


def test_history_has_the_beginning_and_the_end(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    cleaned(path, WEEK + 1)
    end, start = DeltaTable(path).history(2).to_pylist()
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert dict(start["operationMetrics"])["numFilesToDelete"] == "1"
    assert dict(start["operationParameters"]) == {"retentionCheckEnabled": "true", "defaultRetentionMillis": "604800000"}
    assert dict(end["operationParameters"])["status"] == "COMPLETED"
    assert dict(end["operationMetrics"])["numDeletedFiles"] == "1"
    version = DeltaTable(path).version
    cleaned(path, WEEK + 1, logs=False)
    assert DeltaTable(path).version == version


# ---------------------------------------------------------------- what stays


def test_versions_that_are_kept_stay_readable(path: str) -> None:
    for number in range(4):
        append(path, number, mode="overwrite")
    cleaned(path, WEEK + 1, keep_versions=(1,))
    assert ids(path, 1) == [1]
    assert ids(path, 3) == [3]
    with pytest.raises(DataFileError):
        ids(path, 2)
    with pytest.raises(VersionNotFoundError):
        cleaned(path, WEEK + 1, keep_versions=(99,))


def test_table_below_this_one_is_left_alone(path: str, caplog: pytest.LogCaptureFixture) -> None:
    append(path, 1)
    inner = f"{path}/inner/table"
    append(inner, 2)
    append(inner, 3, mode="overwrite")
    (Path(path) / "inner" / "stray").write_bytes(b"x")
    assert dry(path, WEEK + 1) == {"inner/stray": UNKNOWN}
    assert "inner/table is a table of its own" in caplog.text
    cleaned(path, WEEK + 1)
    assert (ids(inner), ids(inner, 0)) == ([3], [2])


@pytest.mark.parametrize("spelling", ["file:{root}/{name}", "{root}/{name}", "file://{root}/{name}", "./{name}", "x/../{name}"])
def test_file_that_the_log_names_in_another_way_stays(path: str, spelling: str) -> None:
    append(path, 1)
    (name,) = files_of(path)
    commit = Path(path) / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    assert text.count(f'"path":"{name}"') == 1
    commit.write_text(text.replace(f'"path":"{name}"', f'"path":"{spelling.format(root=path, name=name)}"'))
    assert dry(path, WEEK + 1) == {}


def test_names_with_odd_letters_stay(path: str) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a b/%20", "ü:=", None]})
    write_delta(path, rows, partition_by=["p"])
    assert dry(path, WEEK + 1) == {}
    assert cleaned(path, WEEK + 1).deleted == 0
    assert ids(path) == [1, 2, 3]


def test_name_that_is_no_text_stays(path: str) -> None:
    append(path, 1)
    with open(os.path.join(os.fsencode(path), b"\xff\xfe.parquet"), "wb") as file:
        file.write(b"x")
    assert dry(path, WEEK + 1) == {}


def test_links_to_directories_are_not_followed(path: str, tmp_path: Path) -> None:
    append(path, 1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.parquet").write_bytes(b"x")
    (Path(path) / "link").symlink_to(tmp_path / "elsewhere")
    assert cleaned(path, WEEK + 1).deleted == 0
    assert (tmp_path / "elsewhere" / "x.parquet").exists()


@pytest.mark.parametrize("kind", list(VacuumKind))
@pytest.mark.parametrize("quarantine", [False, True])
def test_what_a_link_leads_to_stays(path: str, kind: VacuumKind, quarantine: bool, caplog: pytest.LogCaptureFixture) -> None:
    append(path, 1)
    (old,) = files_of(path)
    append(path, 2, mode="overwrite")
    append(path, 3)
    append(path, 3, mode="overwrite")
    (live,) = files_of(path)
    (Path(path) / live).unlink()
    (Path(path) / live).symlink_to(Path(path) / old)
    result = cleaned(path, WEEK + 1, kind=kind, quarantine=quarantine)
    assert result.deleted + result.quarantined == 2
    assert (Path(path) / live).read_bytes() == (Path(path) / old).read_bytes() != b""
    assert "1 files that no version of this table needs stay, because links lead to them" in caplog.text
    (Path(path) / live).unlink()
    (Path(path) / live).write_bytes(b"x")
    assert cleaned(path, WEEK + 1, kind=kind).deleted >= 1
    assert not (Path(path) / old).exists()


def test_every_step_of_a_link_stays(path: str, tmp_path: Path) -> None:
    append(path, 1)
    (live,) = files_of(path)
    table, outside = Path(path), tmp_path / "outside"
    (table / live).rename(table / "bytes")
    (table / "second").symlink_to("bytes")
    outside.symlink_to(table / "second")
    (table / live).symlink_to(f"../{outside.name}")
    (table / "to nothing").symlink_to("nothing")
    (table / "circle").symlink_to("circle")
    (table / os.fsdecode(b"no text \xff")).symlink_to(os.fsdecode(b"nothing \xff"))
    (table / "stray").write_bytes(b"x")
    assert set(dry(path, WEEK + 1)) - {"to nothing", "circle"} == {"stray"}
    assert ids(path) == [1]


def test_a_directory_stays_to_which_a_link_leads(path: str, tmp_path: Path) -> None:
    append(path, 1)
    (live,) = files_of(path)
    table = Path(path)
    (table / "real").mkdir()
    (table / "real" / "stray").write_bytes(b"x")
    (table / "realm").write_bytes(b"x")
    (table / live).rename(table / "real" / live)
    (table / "link").symlink_to("real")
    commit = table / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace(live, f"link/{live}"))
    named_by_a_link = tmp_path / "by a link"
    named_by_a_link.symlink_to(table)
    for name in (path, str(named_by_a_link)):
        assert ids(name) == [1]
        assert dry(name, WEEK + 1) == {"realm": UNKNOWN}


def test_files_of_another_table_that_a_clone_reads_stay(path: str, tmp_path: Path) -> None:
    append(path, 1)
    clone = str(tmp_path / "clone")
    clone_table(Snapshot.load(LocalStore(path)), LocalStore(clone))
    assert cleaned(clone, WEEK + 1).deleted == 0
    assert ids(clone) == [1]


def test_restore_that_was_committed_meanwhile_keeps_its_files(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    look = Vacuum.begin(LocalStore(path), VacuumRequest(), in_hours(WEEK + 1))
    removable = look.find()
    assert removable.num_rows == 1
    assert look.drop_needed_now(removable).num_rows == 1
    restore(LocalStore(path), version=0)
    assert look.drop_needed_now(removable).num_rows == 0
    started = look.commit_start(removable)
    assert started == 3, "after the RESTORE"
    assert look.drop_needed_now(removable, started).num_rows == 0


def test_damaged_state_deletes_nothing(path: str) -> None:
    """A checkpoint that lacks a file, which the version checksum shows."""
    for number in range(3):
        append(path, number)
    checksum = Path(path) / "_delta_log" / f"{2:020}.crc"
    checksum.write_text(checksum.read_text().replace('"numFiles":3', '"numFiles":4'))
    with pytest.raises(LogIntegrityError):
        cleaned(path, WEEK + 1)
    assert len(on_disk(path)) == 3


ACTIONS = {
    "append": lambda path, number: append(path, number, number + 1),
    "overwrite": lambda path, number: append(path, number, number + 1, number + 2, mode="overwrite"),
    "delete": lambda path, number: delete(path, lambda row: row % 3 == number % 3),
    "update": lambda path, number: dml(path, "UPDATE", UPDATED, lambda row: row % 2 == 0, lambda row: {"id": row["id"] + 7}),
    "optimize": lambda path, number: optimize(LocalStore(path), OptimizeRequest(), LocalBinWriters()),
    "restore": lambda path, number: restore(LocalStore(path), version=DeltaTable(path).version // 2),
    "checkpoint": lambda path, number: DeltaTable(path).checkpoint(),
}


@given(actions=st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=8), vectors=st.booleans())
@settings(max_examples=12, deadline=None)
def test_what_is_left_is_what_the_newest_version_needs(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str], vectors: bool
) -> None:
    """Whatever has happened to the table."""
    path = str(tmp_path_factory.mktemp("vacuum") / "t")
    append(path, *range(6), configuration={**FEED, "delta.enableDeletionVectors": str(vectors).lower()})
    for number, action in enumerate(actions):
        ACTIONS[action](path, 10 * number)
    before, needed = ids(path), files_of(path) | vector_files(path)
    assert dry(path, WEEK - 1) == {}
    removable = dry(path, 1, retention_hours=0, check_retention=False)
    assert cleaned(path, 1, retention_hours=0, check_retention=False).deleted == len(removable)
    assert on_disk(path) == needed
    assert ids(path) == before


# ---------------------------------------------------------------- retention


def test_retention_below_the_tables_is_refused(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    with pytest.raises(InvalidOptionError) as raised:
        cleaned(path, 2 * WEEK, retention_hours=WEEK - 1)
    assert raised.value.error_class == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    assert (len(on_disk(path)), DeltaTable(path).version) == (2, 1)
    assert cleaned(path, 1, retention_hours=0, check_retention=False).deleted == 1


def test_retention_of_the_table(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    set_properties(LocalStore(path), {"delta.deletedFileRetentionDuration": "interval 2 hours"})
    assert dry(path, 1) == {}
    assert len(dry(path, 3)) == 1
    assert dry(path, 3, retention_hours=4) == {}


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf")])
def test_retention_that_makes_no_sense(path: str, hours: float) -> None:
    append(path, 1)
    with pytest.raises(InvalidOptionError, match="makes no sense") as caught:
        cleaned(path, retention_hours=hours, check_retention=False)
    assert caught.value.error_class == ("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE" if hours < 0 else "DELTA_ILLEGAL_OPTION")


def test_longer_retention_than_checkpoints_remember(path: str) -> None:
    """The tombstone is in no checkpoint, but in a commit that still exists."""
    append(path, 1, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    (old,) = files_of(path)
    append(path, 2, mode="overwrite")
    DeltaTable(path).checkpoint()
    append(path, 3)
    make_old(path, old)
    assert DeltaTable(path).snapshot.tombstones().num_rows == 0
    assert dry(path, 1, retention_hours=2) == {}
    assert dry(path, 3, retention_hours=2) == {old: UNKNOWN}


@pytest.mark.parametrize("log_begins_late", [False, True])
def test_longer_retention_keeps_files_that_checkpoints_dropped(path: str, log_begins_late: bool) -> None:
    append(path, 0, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    append(path, 1, mode="overwrite")
    (old,) = files_of(path)
    if log_begins_late:
        DeltaTable(path).checkpoint()
        (Path(path) / "_delta_log" / f"{0:020}.json").unlink()
    append(path, 2, mode="overwrite")
    DeltaTable(path).checkpoint()
    set_properties(LocalStore(path), {"delta.deletedFileRetentionDuration": "interval 2 hours"})
    make_old(path, old)
    assert DeltaTable(path).snapshot.tombstones().num_rows == 0
    assert old not in dry(path, 1)
    assert dry(path, 3)[old] == UNKNOWN


def test_longer_retention_than_the_log_is_refused(path: str) -> None:
    append(path, 1, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    append(path, 2, mode="overwrite")
    DeltaTable(path).checkpoint()
    append(path, 3)
    for name in (0, 1):
        (Path(path) / "_delta_log" / f"{name:020}.json").unlink()
    with pytest.raises(InvalidOptionError, match="begins with version 2"):
        dry(path, 1, retention_hours=2)
    assert len(dry(path, 1, retention_hours=0)) == 1


def test_vacuum_fails_if_the_log_is_cleaned_during_its_search(path: str) -> None:
    append(path, 1, configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    append(path, 2, mode="overwrite")
    DeltaTable(path).checkpoint()
    append(path, 3)
    look = Vacuum.begin(LocalStore(path), VacuumRequest(retention_hours=2), in_hours(1))
    for name in (0, 1):
        (Path(path) / "_delta_log" / f"{name:020}.json").unlink()
    with pytest.raises(InvalidOptionError, match="begins with version 2"):
        look.find()


# ---------------------------------------------------------------- what cannot be done


def test_table_that_may_not_be_written_is_not_cleaned(path: str) -> None:
    append(path, 1)
    protocol = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "somethingNew"}))
    log = Path(path) / "_delta_log" / f"{1:020}.json"
    log.write_bytes(action_to_line(protocol) + b"\n")
    with pytest.raises(UnsupportedTableFeatureError, match="somethingNew"):
        cleaned(path, WEEK + 1)


class Failing(LocalStore):
    """Some files cannot be deleted."""

    __slots__ = ("kept",)

    def __init__(self, root: str, kept_paths: set[str]) -> None:
        super().__init__(root)
        self.kept = kept_paths

    def delete(self, path: str) -> None:
        if path in self.kept:
            raise PermissionError(13, "not yours")
        super().delete(path)


def test_what_cannot_be_deleted_is_an_error_after_the_rest_is(path: str) -> None:
    append(path, 1)
    for name in ("a", "b", "c"):
        (Path(path) / name).write_bytes(b"x")
    with pytest.raises(StorageError, match=r"deleted 2 files, and could not delete 1 more, such as b"):
        vacuum(Failing(path, {"b"}), VacuumRequest(), in_hours(WEEK + 1))
    assert on_disk(path) == files_of(path) | {"b"}
    end = DeltaTable(path).history(1).to_pylist()[0]
    assert (end["operation"], dict(end["operationParameters"])["status"]) == ("VACUUM END", "FAILED")


def test_method_of_the_table_is_a_dry_run_unless_told_otherwise(path: str) -> None:
    append(path, 1)
    append(path, 2, mode="overwrite")
    table = DeltaTable(path)
    result = table.vacuum(0, enforce_retention_duration=False)
    assert (result.column_names, result.num_rows, len(on_disk(path))) == (["path", "size", "modification_time", "reason"], 1, 2)
    time.sleep(0.01)
    assert table.vacuum(0, dry_run=False, enforce_retention_duration=False).num_rows == 1
    assert len(on_disk(path)) == 1


def test_longer_and_no_retention_as_in_the_reference_s_test(path: str) -> None:
    append(path, 1)
    for name in ("abc.txt", "bac.txt"):
        (Path(path) / name).write_text("abcde")
    cleaned(path)
    cleaned(path, retention_hours=1000)
    assert {"abc.txt", "bac.txt"} < on_disk(path)
    cleaned(path, 0.1, retention_hours=0.0, check_retention=False)
    assert on_disk(path) == files_of(path)
