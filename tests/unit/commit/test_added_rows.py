"""Whether other writers have added rows that our commit has read: by the rows, if bounds do not decide it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit import added_rows
from delta_py.commit.added_rows import ReadRows
from delta_py.commit.transaction import Transaction
from delta_py.errors import ConcurrentAppendException
from delta_py.expressions.parse import parse_predicate
from delta_py.protocol.actions import AddFile
from delta_py.snapshot import Snapshot
from delta_py.write.data_files import WrittenFiles

PROPERTIES = {"delta.enableDeletionVectors": "true"}


def table(path: Path, ids: list[int], **options: Any) -> Path:
    data = pa.table({"id": ids, "name": [f"n{id}" for id in ids], "part": [id % 2 for id in ids]})
    write_delta(str(path), data, mode="append", configuration=PROPERTIES, **options)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return table(tmp_path / "t", [1, 2, 3])


def append(path: Path, ids: list[int]) -> None:
    table(path, ids)


def read_then(path: Path, predicate: str, other_writer: Callable[[], None], *, only_taken: bool = False) -> int:
    """A commit that has read rows before `other_writer` runs. only_taken: it deletes none of them."""
    snapshot = DeltaTable(str(path)).snapshot
    transaction = Transaction(snapshot)
    transaction.scan(parse_predicate(predicate, snapshot.schema))
    if only_taken:
        transaction.only_deleted_rows_matter()
    other_writer()
    return transaction.add(WrittenFiles(adds=(AddFile("new", {}, 1, 0, stats='{"numRecords":1}'),))).commit("WRITE", {})


def test_file_whose_bounds_hold_the_row_and_whose_rows_do_not(path: Path) -> None:
    assert read_then(path, "id = 50", lambda: append(path, [40, 60])) == 2


def test_file_that_has_the_row(path: Path) -> None:
    with pytest.raises(ConcurrentAppendException, match="id = 50"):
        read_then(path, "id = 50", lambda: append(path, [40, 50, 60]))


def test_update_conflicts_only_with_readers_of_updated_rows(tmp_path: Path) -> None:
    one, other = (table(tmp_path / name, [1, 2, 3]) for name in "ab")

    def update(path: Path) -> None:
        assert DeltaTable(str(path)).update({"name": "'x'"}, predicate="id IN (1, 3)")["numUpdatedRows"] == 2

    assert read_then(one, "id = 2", lambda: update(one), only_taken=True) == 2
    with pytest.raises(ConcurrentAppendException):
        read_then(other, "id = 3", lambda: update(other), only_taken=True)


@pytest.mark.parametrize("predicate", ["id = 50 AND part = 0", "part = 0 AND name LIKE '%50'", "part = 0 AND id % 10 = 1"])
def test_partition_values_and_rows_decide_together(tmp_path: Path, predicate: str) -> None:
    path = table(tmp_path / "p", [1, 2], partition_by=["part"])
    assert read_then(path, predicate, lambda: append(path, [40, 60, 51, 150 + 1])) == 2
    with pytest.raises(ConcurrentAppendException):
        read_then(path, "part = 0", lambda: append(path, [40]))


def test_columns_that_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_delta(str(path), pa.table({"id": [1]}), configuration={"delta.columnMapping.mode": "name"})
    append = lambda ids: write_delta(str(path), pa.table({"id": ids}), mode="append")  # noqa: E731
    assert read_then(path, "id = 50", lambda: append([40, 60])) == 2
    with pytest.raises(ConcurrentAppendException):
        read_then(path, "id = 50", lambda: append([50]))


def test_rows_that_are_deleted_already_do_not_count(path: Path) -> None:
    append(path, [40, 50, 60])
    DeltaTable(str(path)).delete("id = 50")
    add = last_add(path)
    assert add.deletion_vector is not None
    rows = read_rows(path, "id = 50")
    assert rows.may_match([add]) == [False]
    assert read_rows(path, "id = 60").may_match([add]) == [True]


def test_rows_that_cannot_be_read_may_be_there(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    append(path, [40, 60])
    add = last_add(path)
    os.truncate(path / add.path, add.size_bytes // 2)
    assert read_rows(path, "id = 50").may_match([add]) == [True]
    assert add.path in caplog.text


def test_what_the_clock_says_is_no_matter_of_rows(path: Path) -> None:
    append(path, [40, 60])
    adds = [last_add(path)]
    assert read_rows(path, "id = 50 AND current_date() < DATE '1999-01-01'").may_match(adds) == [False]
    assert read_rows(path, "current_date() < DATE '1999-01-01'").may_match(adds) == [True]


def test_files_are_read_once_and_only_few_and_small_ones(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, [40, 60])
    add, read = last_add(path), added_rows.read_files
    reads: list[Any] = []
    monkeypatch.setattr(added_rows, "read_files", lambda state, files: reads.append(files) or read(state, files))
    rows = read_rows(path, "id = 50")
    assert [rows.may_match([add]) for _ in range(3)] == [[False]] * 3 and len(reads) == 1
    assert read_rows(path, "id = 50").may_match([add] * 65) == [True] * 65
    monkeypatch.setattr(added_rows, "_MOST_BYTES", add.size_bytes - 1)
    assert read_rows(path, "id = 50").may_match([add]) == [True]
    assert len(reads) == 1


def test_files_of_more_rows_than_their_bytes_tell_are_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, [40, 60])
    add = last_add(path)
    monkeypatch.setattr(added_rows, "_MOST_ROWS", 4)
    assert read_rows(path, "id = 50").may_match([add, replace(add, stats='{"numRecords":2}')]) == [False, False]
    assert read_rows(path, "id = 50").may_match([add, replace(add, stats='{"numRecords":3}')]) == [True, True]
    assert read_rows(path, "id = 50").may_match([replace(add, stats=None)]) == [True], "which may be any number"


def read_rows(path: Path, predicate: str) -> ReadRows:
    snapshot = DeltaTable(str(path)).snapshot
    return ReadRows.of(snapshot.store, snapshot.config, parse_predicate(predicate, snapshot.schema), "UTC")


def last_add(path: Path) -> AddFile:
    from delta_py.log.commit_reader import read_actions

    snapshot: Snapshot = DeltaTable(str(path)).snapshot
    return next(action for action in read_actions(snapshot.store, snapshot.version) if isinstance(action, AddFile))
