"""VACUUM that moves files to quarantine, and its undo, with each storage call failed in turn: each file is at its place or in
quarantine, and the next run completes the work.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import list_quarantine, restore_quarantined
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of
from tests.support.stores.memory_store import MemoryStore

pytestmark = pytest.mark.usefixtures("no_waits")

REQUEST = VacuumRequest(retention_hours=0, check_retention=False, quarantine=True)


def make(store: ObjectStore) -> dict[str, bytes]:
    """Two old files and a live one."""
    for number in range(3):
        write_delta(store.root, pa.table({"id": [number]}), mode="overwrite", store=store)
    return at_place(store)


def at_place(store: ObjectStore) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list_recursive("") if not info.path.startswith("_")}


def in_an_hour() -> int:
    return time.time_ns() // 1_000_000 + 3_600_000


def store_of(kind: str, path: Path) -> ObjectStore:
    return LocalStore(str(path)) if kind == "local" else MemoryStore(now_ms=time.time_ns() // 1_000_000)


def check_whole(store: ObjectStore, files: dict[str, bytes], call: str) -> None:
    files_by_path = at_place(store)
    for row in list_quarantine(store).to_pylist():
        files_by_path.setdefault(row["path"], store.read(row["held_at"]))
    assert files_by_path == files, call
    assert DeltaTable(store.root, store=store).to_arrow()["id"].to_pylist() == [2], call


@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("step", ["aside", "back"])
@pytest.mark.parametrize("kind", sampled(FAULTS, 2))
def test_one_call_failed_loses_no_file(tmp_path: Path, kind: str, step: str, place: str) -> None:
    def attempt(directory: Path, fault: Fault | None) -> tuple[FaultyStore, str]:
        store = store_of(place, directory)
        files = make(store)
        if step == "back":
            vacuum(store, REQUEST, in_an_hour)
        faulty = FaultyStore(store, fault)
        action = (lambda: vacuum(faulty, REQUEST, in_an_hour)) if step == "aside" else (lambda: restore_quarantined(faulty))
        _, outcome = outcome_of(action)
        call = "" if fault is None else faulty.calls[fault.call]
        check_whole(store, files, call)
        vacuum(store, REQUEST, in_an_hour)
        check_whole(store, files, call)
        assert len(at_place(store)) == 1, call
        restore_quarantined(store)
        restore_quarantined(store)
        assert (at_place(store), list_quarantine(store).num_rows) == (files, 0), call
        return faulty, outcome

    counted, outcome = attempt(tmp_path / "count", None)
    assert outcome == "done"
    faults = (Fault(number, **FAULTS[kind]) for number in range(len(counted.calls)))
    outcomes = Counter(attempt(tmp_path / str(fault.call), fault)[1] for fault in faults)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


KILLED = """
import sys, time
from delta_py.vacuum.quarantine import restore_quarantined
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from delta_py.storage.local import LocalStore
store = LocalStore(sys.argv[1])
request = VacuumRequest(retention_hours=0, check_retention=False, quarantine=True, logs=False)
while True:
    vacuum(store, request, lambda: time.time_ns() // 1_000_000 + 3_600_000)
    restore_quarantined(store)
"""


def test_processes_killed_while_files_move_lose_none(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "table"))
    make(store)
    for number in range(60):
        store.put(f"stray {number}", str(number).encode())
    files = at_place(store)
    for file_count in (1, 30, 55):
        child = subprocess.Popen([sys.executable, "-c", KILLED, store.root])
        deadline = time.monotonic() + 60
        while list_quarantine(store).num_rows < file_count:
            assert time.monotonic() < deadline and child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        check_whole(store, files, f"killed when {file_count} files were aside")
    assert restore_quarantined(store).num_rows or at_place(store) == files
    assert (at_place(store), list_quarantine(store).num_rows) == (files, 0)
