"""The maintenance of a log on demand with each storage call failed in turn: versions read as before, and the next run completes
it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.repair.log_upkeep import clean_log, compact_log, write_checksum
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

IN_A_YEAR = 2**42
WORK: dict[str, Callable[[Any], Any]] = {
    "checksum": lambda store: write_checksum(Snapshot.load(store)),
    "compaction": lambda store: compact_log(Snapshot.load(store), 1),
    "clean-up": lambda store: clean_log(store, now_ms=IN_A_YEAR),
}


def make(path: Path) -> Path:
    for number in range(4):
        write_delta(str(path), pa.table({"id": [number]}), mode="append")
    DeltaTable(str(path), version=2).checkpoint()
    (path / "_delta_log" / f"{3:020d}.crc").unlink()
    return path


@pytest.mark.parametrize(("work", "kind"), sampled(itertools.product(WORK, FAULTS), 3))
def test_upkeep_with_one_call_failed_changes_no_version(tmp_path: Path, work: str, kind: str) -> None:
    store = FaultyStore(LocalStore(str(make(tmp_path / "count"))))
    WORK[work](store)
    outcomes = Counter(
        one_fault(tmp_path / str(number), work, Fault(number, **FAULTS[kind])) for number in range(len(store.calls))
    )
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(directory: Path, work: str, fault: Fault) -> str:
    path = make(directory)
    store = FaultyStore(LocalStore(str(path)), fault)
    _, outcome = outcome_of(lambda: WORK[work](store))
    check(path, store.calls[fault.call])
    WORK[work](LocalStore(str(path)))
    check(path, store.calls[fault.call])
    return outcome


def check(path: Path, call: str) -> None:
    for version in (2, 3):
        table = DeltaTable(str(path), version=version)
        assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(version + 1)), call
        table.snapshot.check_integrity()
