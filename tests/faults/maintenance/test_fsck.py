"""FSCK with each storage call of a repair failed in turn: existing rows stay, and the next run completes the repair."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.repair.fsck import fsck
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits", "harmless_post_commit")


def ids(path: Path) -> list[int]:
    sorted_ids: list[int] = sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist())
    return sorted_ids


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a missing file, a truncated checkpoint, a wrong checksum, and a `_last_checkpoint` without a checkpoint."""
    path = tmp_path_factory.mktemp("damaged") / "table"
    for number in range(12):
        write_delta(str(path), pa.table({"id": pa.array([number], pa.int64())}), mode="append")
    live = DeltaTable(str(path)).files().sort_by("modification_time")["path"].to_pylist()
    (path / live[-1]).unlink()
    checkpoint = path / "_delta_log" / f"{10:020d}.checkpoint.parquet"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-50])
    checksum = path / "_delta_log" / f"{11:020d}.crc"
    checksum.write_text(checksum.read_text().replace('"numFiles":12', '"numFiles":5'))
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version":77}')
    return path


def mend(store: FaultyStore | LocalStore) -> None:
    fsck(store, dry_run=False, allow_data_loss=True)


@pytest.mark.parametrize("kind", sampled(FAULTS, 9))
def test_repair_completes_on_the_next_run_after_any_failed_call(damaged: Path, tmp_path: Path, kind: str) -> None:
    shutil.copytree(damaged, tmp_path / "count")
    counted = FaultyStore(LocalStore(str(tmp_path / "count")))
    mend(counted)
    remaining_ids = ids(tmp_path / "count")
    assert len(remaining_ids) == 11
    outcomes: Counter[str] = Counter()
    for number, call in enumerate(counted.calls):
        path = tmp_path / str(number)
        shutil.copytree(damaged, path)
        store = FaultyStore(LocalStore(str(path)), Fault(number, **FAULTS[kind]))
        _, outcome = outcome_of(partial(mend, store))
        outcomes[outcome] += 1
        mend(LocalStore(str(path)))
        assert ids(path) == remaining_ids, call
        assert DeltaTable(str(path)).fsck().num_rows == 0, call
        assert DeltaTable(str(path)).version == 12, call
        assert (path / "_delta_log" / f"{10:020d}.checkpoint.parquet.broken").exists(), call
        shutil.rmtree(path)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"
