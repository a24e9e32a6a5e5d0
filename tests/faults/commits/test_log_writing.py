"""Every storage call of a commit that is followed by a checkpoint and a log cleanup, failed in turn: the commit exists once or
not at all, every retained version reads as before, and the next commit succeeds.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import DeltaError
from delta_py.row_changes.write import write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

DAY_SECONDS = 86_400


def append(store: Any, number: int, policy: str = "classic") -> int:
    properties = {"delta.checkpointInterval": "2", "delta.logRetentionDuration": "interval 1 day"}
    configuration = {**properties, "delta.checkpointPolicy": policy} if number == 0 else None
    return write_delta(store.root, pa.table({"n": [number]}), mode="append", store=store, configuration=configuration)


def prepare(root: Path, policy: str) -> None:
    """Versions 0 to 3, of which 0 to 2 are days old, with a checkpoint at 2; all steps follow the next commit."""
    root.mkdir()
    for number in range(4):
        assert append(LocalStore(str(root)), number, policy) == number
    log = root / "_delta_log"
    for file in [*log.iterdir(), *log.glob("_sidecars/*")]:
        if file.is_file() and not file.name.startswith(f"{3:020d}"):
            time = file.stat().st_mtime - 5 * DAY_SECONDS
            os.utime(file, (time, time))


def read(root: Path, version: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    for path in Snapshot.load(LocalStore(str(root)), version=version).files()["path"].to_pylist():
        counts.update(pq.ParquetFile(root / path).read()["n"].to_pylist())
    return counts


@pytest.mark.parametrize(("policy", "kind"), sampled(itertools.product(["classic", "v2"], FAULTS), 4))
def test_failed_call_after_a_commit_loses_nothing(tmp_path: Path, kind: str, policy: str) -> None:
    prepare(tmp_path / "count", policy)
    store = FaultyStore(LocalStore(str(tmp_path / "count")))
    assert append(store, 4) == 4
    deleted = [call for call in store.calls if call.startswith("delete")]
    assert f"delete _delta_log/{0:020d}.json" in deleted and f"delete _delta_log/{2:020d}.json" not in deleted
    assert any("checkpoint" in call for call in store.calls if call.startswith("put "))
    felt = [one_fault(tmp_path / str(number), Fault(number, **FAULTS[kind]), policy) for number in range(len(store.calls))]
    assert "done" in felt or "killed" in kind


def one_fault(root: Path, fault: Fault, policy: str) -> str:
    prepare(root, policy)
    store = FaultyStore(LocalStore(str(root)), fault)
    version_made, outcome = outcome_of(lambda: append(store, 4))
    assert version_made == 4 or outcome != "done"
    newest = Snapshot.load(LocalStore(str(root))).version
    assert newest in (3, 4) and (newest, outcome) not in ((3, "done"), (4, "refused")), store.calls[fault.call]
    for version in range(2, newest + 1):
        assert read(root, version) == Counter(range(version + 1)), (version, outcome)
    for version in range(2):  # these may be deleted, but never changed
        try:
            assert read(root, version) == Counter(range(version + 1))
        except DeltaError:
            continue
    for number in range(newest + 1, 8):
        assert append(LocalStore(str(root)), number) == number
    assert read(root, 7) == Counter(range(8))
    return outcome
