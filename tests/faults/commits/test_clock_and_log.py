"""A clock that jumps back, and log files that appear during a write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.commit.transaction import Transaction
from delta_py.definition.request import WriteRequest
from delta_py.errors import ConcurrentAppendException, CorruptTableError, DeltaError, MetadataChangedException, StorageError
from delta_py.log.history import history
from delta_py.row_changes.write import commit_write, plan_write, write_delta
from delta_py.row_changes.write_plans import WritePlan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import WrittenFiles, write_files

pytestmark = pytest.mark.usefixtures("no_waits")

START_MS = 1_700_000_000_000
CLOCKS = {
    "back once": [0, 1_000, 2_000, -50_000, -49_000, 3_000],
    "back and back": [0, -1_000, -2_000, -3_000, -4_000, -5_000],
    "standing": [0, 0, 0, 0, 0, 0],
    "forth": [0, 1_000, 2_000, 3_000, 4_000, 5_000],
    "far ahead for once": [0, 10**9, 1_000, 2_000, 3_000, 4_000],
}


def rows(n: int) -> pa.Table:
    return pa.table({"n": [n]})


def plan(store: LocalStore, data: pa.Table, request: WriteRequest) -> tuple[WritePlan, WrittenFiles]:
    planned_write = plan_write(store, from_arrow_schema(data.schema), request)
    assert isinstance(planned_write, WritePlan)
    return planned_write, write_files(planned_write.state, data.to_batches())


def commit_at(path: Path, n: int, clock_ms: int) -> None:
    """Append a row on a machine with this clock; the commit's file gets this time, too."""
    store = LocalStore(str(path))
    _, written = plan(store, rows(n), WriteRequest("append"))
    transaction = Transaction(Snapshot.load(store), clock_ms=lambda: clock_ms)
    assert transaction.add(written).commit("WRITE", {"mode": "Append"}) == n
    set_time(path, n, clock_ms)


def set_time(path: Path, version: int, time_ms: int) -> None:
    os.utime(path / f"_delta_log/{version:020}.json", ns=(time_ms * 1_000_000, time_ms * 1_000_000))


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("in_commit", [True, False], ids=["in-commit timestamps", "file times"])
def test_clock_that_jumps_keeps_versions_in_order(clock: str, in_commit: bool, tmp_path: Path) -> None:
    configuration = {"delta.enableInCommitTimestamps": str(in_commit).lower(), "delta.checkpointInterval": "3"}
    write_delta(str(tmp_path), rows(0), configuration=configuration)
    set_time(tmp_path, 0, START_MS)
    for n, offset in enumerate(CLOCKS[clock][1:], start=1):
        commit_at(tmp_path, n, START_MS + offset)
    table = DeltaTable(str(tmp_path))
    table.snapshot.check_integrity()
    assert sorted(table.to_arrow()["n"].to_pylist()) == list(range(6))
    entries = history(LocalStore(str(tmp_path))).sort_by("version").to_pylist()
    times = [int(entry["timestamp"].timestamp() * 1000 + 0.5) for entry in entries]
    assert times == sorted(set(times)), "each version is later than the one before"
    for version, time_ms in enumerate(times):
        assert DeltaTable(str(tmp_path), timestamp=time_ms).version == version
        assert sorted(DeltaTable(str(tmp_path), timestamp=time_ms).to_arrow()["n"].to_pylist()) == list(range(version + 1))
        if version:
            assert DeltaTable(str(tmp_path), timestamp=time_ms - 1).version == version - 1
        assert DeltaTable(str(tmp_path), version=version).snapshot.timestamp_ms == time_ms or not in_commit


# ---------------------------------------------------------------- what appears between plan and commit


def data_files(path: Path) -> set[str]:
    return {file.name for file in path.glob("*.parquet")}


def planned(path: Path, appears: Callable[[Path], object], request: WriteRequest | None = None) -> Callable[[], int]:
    store = LocalStore(str(path))
    write_delta(str(path), rows(0))
    planned_write, written = plan(store, rows(9), request or WriteRequest("append"))
    appears(path)
    return lambda: commit_write(store, planned_write, [written])


def test_append_follows_commits_made_after_its_plan(tmp_path: Path) -> None:
    commit = planned(tmp_path, lambda path: [write_delta(str(path), rows(n), mode="append") for n in range(1, 13)])
    assert commit() == 13
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == sorted([*range(13), 9])


def test_overwrite_conflicts_with_rows_added_after_its_plan(tmp_path: Path) -> None:
    commit = planned(tmp_path, lambda path: write_delta(str(path), rows(1), mode="append"), WriteRequest("overwrite"))
    with pytest.raises(ConcurrentAppendException):
        commit()
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [0, 1]
    assert len(data_files(tmp_path)) == 2


def test_append_conflicts_with_a_schema_change_after_its_plan(tmp_path: Path) -> None:
    wide = pa.table({"n": [1], "more": [2]})
    commit = planned(tmp_path, lambda path: write_delta(str(path), wide, mode="append", merge_schema=True))
    with pytest.raises(MetadataChangedException):
        commit()
    assert DeltaTable(str(tmp_path)).version == 1 and len(data_files(tmp_path)) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"not json\n", b'{"add":{"path":3}}\n', b"\xff\xfe\n"])
def test_append_behind_a_commit_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    """The content of the damaged commit is unknown, so no commit may follow it. The files stay, because the commit might be our
    own, cut short."""
    commit = planned(tmp_path, lambda path: (path / f"_delta_log/{1:020}.json").write_bytes(content))
    if content == b"":  # a commit without actions changes nothing
        assert commit() == 2
        return
    with pytest.raises(CorruptTableError, match="Version 1 of the table"):
        commit()
    assert (tmp_path / f"_delta_log/{1:020}.json").read_bytes() == content
    assert not (tmp_path / f"_delta_log/{2:020}.json").exists() and len(data_files(tmp_path)) == 2


def test_append_fails_if_a_directory_has_the_name_of_its_commit(tmp_path: Path) -> None:
    """The directory may have replaced a commit, so the newest version is unknown; the version before it is known."""
    commit = planned(tmp_path, lambda path: (path / f"_delta_log/{1:020}.json").mkdir())
    with pytest.raises(DeltaError):
        commit()
    with pytest.raises(StorageError, match=f"{1:020}.json is no regular file"):
        DeltaTable(str(tmp_path))
    assert DeltaTable(str(tmp_path), version=0).version == 0


@pytest.mark.parametrize(
    "name", [".tmp", f".{1:020}.json.tmp", f"{1:020}.json.bak", f"{7:020}.crc", "notes.txt", "_commits/x.json"]
)
def test_append_beside_files_that_are_no_commits_goes_on(tmp_path: Path, name: str) -> None:
    def appears(path: Path) -> None:
        file = path / "_delta_log" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"whatever")

    assert planned(tmp_path, appears)() == 1
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [0, 9]


def test_append_to_a_log_that_went_away_is_refused(tmp_path: Path) -> None:
    commit = planned(tmp_path, lambda path: (path / f"_delta_log/{0:020}.json").unlink())
    with pytest.raises(DeltaError):
        commit()
    assert not (tmp_path / f"_delta_log/{1:020}.json").exists() and len(data_files(tmp_path)) == 1


def test_append_when_the_table_became_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"

    def appears(path: Path) -> None:
        path.rename(tmp_path / "away")
        path.write_text("a file")

    commit = planned(path, appears)
    with pytest.raises((StorageError, DeltaError)):
        commit()
    assert path.read_text() == "a file" and DeltaTable(str(tmp_path / "away")).version == 0
