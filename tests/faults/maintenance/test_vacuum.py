"""VACUUM, full and LITE, with each storage call failed in turn: no file that a version needs is deleted, and the next run
completes the work. A full VACUUM finds the files that LITE does not look for, or may forget.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import VacuumKind, VacuumRequest, vacuum
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

REQUEST = VacuumRequest(retention_hours=0, check_retention=False, keep_versions=(1,))
STRAYS = {"stray", "other"}


def make(path: Path) -> Path:
    """Version 1 is retained, and 3 is the newest. The files of 0 and 2 may be deleted, and two unknown files."""
    for number in range(4):
        write_delta(str(path), pa.table({"id": [number]}), mode="overwrite")
    for name in STRAYS:
        (path / name).write_bytes(b"x")
    return path


def on_disk(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if file.is_file()}


def needed(path: Path) -> set[str]:
    return {name for version in (1, 3) for name in DeltaTable(str(path), version=version).files()["path"].to_pylist()}


def in_an_hour() -> int:
    return time.time_ns() // 1_000_000 + 3_600_000


@pytest.mark.parametrize("lite", [False, True], ids=["full", "lite"])
@pytest.mark.parametrize("kind", sampled(FAULTS, 2))
def test_vacuum_with_a_failed_call_deletes_no_needed_file(tmp_path: Path, kind: str, lite: bool) -> None:
    count = make(tmp_path / "count")
    store = FaultyStore(LocalStore(str(count)))
    request = replace(REQUEST, kind=VacuumKind.LITE) if lite else REQUEST
    assert vacuum(store, request, in_an_hour).deleted == (2 if lite else 4)
    assert on_disk(count) == needed(count) | (STRAYS if lite else set())
    faults = (Fault(number, **FAULTS[kind]) for number in range(len(store.calls)))
    outcomes = Counter(one_fault(tmp_path / str(fault.call), fault, request) for fault in faults)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(directory: Path, fault: Fault, request: VacuumRequest) -> str:
    path = make(directory)
    store = FaultyStore(LocalStore(str(path)), fault)
    expected_files = needed(path) | (STRAYS if request.kind is VacuumKind.LITE else set())
    _, outcome = outcome_of(lambda: vacuum(store, request, in_an_hour).deleted)
    call = store.calls[fault.call]
    assert expected_files <= on_disk(path), call
    assert outcome != "done" or on_disk(path) == expected_files, call
    for version in (1, 3):
        assert DeltaTable(str(path), version=version).to_arrow()["id"].to_pylist() == [version], call
    vacuum(LocalStore(str(path)), request, in_an_hour)
    assert on_disk(path) == expected_files, call
    vacuum(LocalStore(str(path)), REQUEST, in_an_hour)
    assert on_disk(path) == needed(path), call
    return outcome
