"""Shallow clones and their notes when the storage of the source or of the clone fails."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from delta_py import DeltaTable
from delta_py.copies.clone import clone_table
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.paths import CLONE_DIRECTORY
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.support.stores.faulty_store import KINDS, Fault, FaultyStore, outcome_of
from tests.unit.vacuum.test_vacuum import append, ids, in_hours

pytestmark = pytest.mark.usefixtures("harmless_post_commit", "no_waits")
LATER = 0.01


def notes(path: Path) -> list[Path]:
    return [file for file in (path / CLONE_DIRECTORY).glob("*") if not file.name.startswith(".")]


@pytest.mark.parametrize("side", ["source", "clone"])
@pytest.mark.parametrize("kind", KINDS)
def test_clone_stands_or_fails_and_vacuum_takes_nothing_of_it(tmp_path: Path, kind: str, side: str) -> None:
    for call in itertools.count():
        path, copy = tmp_path / f"{call}", tmp_path / f"{call}.copy"
        append(str(path), 1)
        store = FaultyStore(open_store(str(path if side == "source" else copy)), Fault(call, **KINDS[kind]))
        source: Any = store if side == "source" else open_store(str(path))
        target: Any = store if side == "clone" else open_store(str(copy))
        _, outcome = outcome_of(lambda source=source, target=target: clone_table(Snapshot.load(source), target))  # type: ignore[misc]
        is_there = (copy / "_delta_log" / f"{0:020}.json").exists()
        assert is_there if outcome == "done" else outcome in ("unknown", "killed") or not is_there
        append(str(path), 2, mode="overwrite")
        append(str(path), 3, mode="overwrite")
        is_told = bool(notes(path))
        assert is_told or side == "source" or not is_there, "only the source's store can have lost the note"
        if is_told and outcome == "refused":
            assert side == "source" or "down" in kind, "who can delete the note has done so"
        vacuum(LocalStore(str(path)), VacuumRequest(retention_hours=0, check_retention=False), in_hours(LATER))
        assert DeltaTable(str(path)).to_arrow().num_rows == 1
        if is_there and is_told:
            assert ids(str(copy)) == [1]
        if len(store.calls) <= call:
            return
