"""Checksums, compactions, cleanup and checkpoints of a log on demand: what is written, what stays, what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.checkpoint import cleanup
from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.errors import InvalidOptionError, UnsupportedTableFeatureError, VersionNotFoundError
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.repair.log_upkeep import clean_log, compact_log
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

DAY_MS = 86_400_000


def make(path: Path, commits: int = 4) -> str:
    for number in range(commits):
        write_delta(str(path), pa.table({"id": [number]}), mode="append")
    return str(path)


def log(path: str) -> set[str]:
    return {file.name for file in Path(path, "_delta_log").iterdir()}


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow()["id"].to_pylist())


# ---------------------------------------------------------------- checksums and checkpoints


def test_missing_checksum_is_rewritten_as_its_commit_wrote_it(tmp_path: Path) -> None:
    path = make(tmp_path)
    written = Path(path, "_delta_log", f"{3:020d}.crc")
    before = written.read_bytes()
    assert DeltaTable(path).write_checksum() is False
    written.unlink()
    assert DeltaTable(path).write_checksum() is True
    assert written.read_bytes() == before
    written.write_bytes(b"")  # as after a crash of the machine
    assert DeltaTable(path).write_checksum() is True
    assert written.read_bytes() == before
    DeltaTable(path).snapshot.check_integrity()


def test_checkpoint_makes_a_version_load_without_old_commits(tmp_path: Path) -> None:
    path = make(tmp_path)
    assert DeltaTable(path).checkpoint() == 4
    for version in range(3):
        Path(path, "_delta_log", f"{version:020d}.json").unlink()
    assert ids(path) == [0, 1, 2, 3]
    assert DeltaTable(path).write_checksum() is False


# ---------------------------------------------------------------- compaction


def test_commits_since_the_checkpoint_are_compacted(tmp_path: Path) -> None:
    path = make(tmp_path)
    assert DeltaTable(path).compact_log() == (0, 3)
    name = f"{0:020d}.{3:020d}.compacted.json"
    assert name in log(path)
    assert [file.path.rpartition("/")[2] for file in DeltaTable(path).snapshot.segment.compactions] == [name]
    assert ids(path) == [0, 1, 2, 3]
    DeltaTable(path).checkpoint()
    assert DeltaTable(path).compact_log() is None
    write_delta(path, pa.table({"id": [4]}), mode="append")
    assert DeltaTable(path).compact_log() is None, "a single commit"
    write_delta(path, pa.table({"id": [5]}), mode="append")
    assert DeltaTable(path).compact_log() == (4, 5)
    assert ids(path) == [0, 1, 2, 3, 4, 5]


def test_a_range_of_commits_is_compacted(tmp_path: Path) -> None:
    path = make(tmp_path)
    assert DeltaTable(path).compact_log(1, 2) == (1, 2)
    assert DeltaTable(path, version=2).to_arrow().num_rows == 3
    assert DeltaTable(path, version=2).compact_log(start_version=1) == (1, 2)
    assert DeltaTable(path).compact_log(end_version=2) == (0, 2)


@pytest.mark.parametrize(("start", "end"), [(2, 1), (1, 1), (-1, 2)])
def test_a_range_that_is_none_is_refused(tmp_path: Path, start: int, end: int) -> None:
    with pytest.raises(InvalidOptionError, match="no range"):
        DeltaTable(make(tmp_path)).compact_log(start, end)


def test_commits_that_are_not_there_are_not_found(tmp_path: Path) -> None:
    path = make(tmp_path)
    before = log(path)
    with pytest.raises(VersionNotFoundError, match="version 4"):
        DeltaTable(path).compact_log(1, 9)
    assert log(path) == before


# ---------------------------------------------------------------- clean-up


def expired() -> TableBuilder:
    table = TableBuilder(MemoryStore())
    for version in range(6):
        first = [table.protocol(), table.metadata(configuration={"delta.logRetentionDuration": "interval 2 days"})]
        table.commit(*(first if version == 0 else []), add(f"f{version}"), time_ms=version * DAY_MS)
    snapshot = Snapshot.load(table.store, 3)
    write_checkpoint(table.store, LogWriter(table.store, snapshot.config), load_segment(table.store, 3), now_ms=3 * DAY_MS)
    return table


def test_the_expired_part_of_the_log_goes_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = expired()
    monkeypatch.setattr(cleanup, "BUDGET_SECONDS", 0.0)
    assert clean_log(table.store, now_ms=4 * DAY_MS) == 0
    assert clean_log(table.store, now_ms=20 * DAY_MS) == 3
    assert clean_log(table.store, now_ms=20 * DAY_MS) == 0
    assert Snapshot.load(table.store).num_files == 6


def test_a_log_whose_files_have_not_expired_stays(tmp_path: Path) -> None:
    path = make(tmp_path)
    DeltaTable(path).checkpoint()
    before = log(path)
    assert DeltaTable(path).clean_log() == 0
    assert log(path) == before


def test_a_table_that_may_not_be_written_to_is_left_alone() -> None:
    table = TableBuilder(MemoryStore())
    for version in range(3):
        first = [
            table.protocol(3, 7, features=["redirectWriterOnly-preview"]),
            table.metadata(configuration={"delta.redirectWriterOnly-preview": "{}"}),
        ]
        table.commit(*(first if version == 0 else []), add(f"f{version}"))
    for work in (lambda: compact_log(Snapshot.load(table.store)), lambda: clean_log(table.store)):
        with pytest.raises(UnsupportedTableFeatureError):
            work()
