"""Indexes with each storage call failed in turn: the table reads as before, and the next refresh deletes leftover files."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.index import segments
from delta_py.index_commands import index_upkeep
from delta_py.index_commands.index import TableIndexes
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import KINDS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits", "harmless_post_commit")

FILES = 3


def make(path: Path, *, indexed: bool) -> Path:
    for number in range(FILES):
        write_delta(str(path), pa.table({"id": [0, number, 100]}), mode="append")
        if indexed and number == 0:
            TableIndexes(LocalStore(str(path))).create("id")
    return path


def create(store: ObjectStore) -> int:
    return TableIndexes(store).create("id")


def refresh(store: ObjectStore) -> int:
    return TableIndexes(store).refresh()


def drop(store: ObjectStore) -> int:
    return TableIndexes(store).drop("id")


def append(store: ObjectStore) -> int:
    """With the maintenance that follows."""
    version = write_delta("", pa.table({"id": [0, 1, 100]}), mode="append", store=store)
    assert version is not None
    return version


@pytest.mark.parametrize("action", [create, refresh, drop, append], ids=lambda action: action.__name__)
@pytest.mark.parametrize("kind", sampled(KINDS, 3))
def test_index_with_one_call_failed_never_changes_what_is_read(
    tmp_path: Path, action: Callable[[ObjectStore], int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_upkeep, "_DUE_FILES", 2)
    original = make(tmp_path / "original", indexed=action is not create)
    store = FaultyStore(LocalStore(str(shutil.copytree(original, tmp_path / "count"))))
    begin()
    action(store)
    outcomes: Counter[str] = Counter()
    for number in range(len(store.calls)):
        path = shutil.copytree(original, tmp_path / str(number))
        begin()
        faulty = FaultyStore(LocalStore(str(path)), Fault(number, **KINDS[kind]))
        _, outcome = outcome_of(lambda faulty=faulty: action(faulty))  # type: ignore[misc]
        outcomes[outcome] += 1
        check(path, f"{outcome}: {faulty.calls[number]}", appended=action is append)
        shutil.rmtree(path)
    assert outcomes["refused"] + outcomes["killed"] + outcomes["unknown"] > 0, "no fault was felt"


def begin() -> None:
    """As in a new process."""
    index_upkeep._uncovered.clear()
    segments._open_segments.clear()


def check(path: Path, call: str, *, appended: bool) -> None:
    begin()
    matching(path, call, appended)
    in_two_days = time.time_ns() // 1_000_000 + 2 * 86_400_000
    indexes = TableIndexes(LocalStore(str(path)), lambda: in_two_days)
    indexes.refresh()
    named = sum(row["segments"] for row in indexes.list().to_pylist())
    on_disk = [file for file in (path / "_pydelta_index").rglob("*") if file.is_file()]
    assert len(on_disk) == named, call
    assert all((row["uncovered"], row["usable"]) == (0, True) for row in indexes.list().to_pylist()), call
    matching(path, call, appended)
    DeltaTable(str(path)).snapshot.check_integrity()


def matching(path: Path, call: str, appended: bool) -> None:
    table = DeltaTable(str(path))
    files = table.files().num_rows
    assert files == FILES or (appended and files == FILES + 1), call
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted([0, 100] * files + [0, 1, 2] + [1] * (files - FILES)), call
    for value in range(4):
        expected = {0: files + 1, 1: 1 + files - FILES, 2: 1, 3: 0}[value]
        assert table.to_arrow(filter=f"id = {value}").num_rows == expected, call
