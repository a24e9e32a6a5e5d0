"""Processes that change and maintain one table at the same time.

    python -m tests.support.faults.maintenance_processes ROLE PATH NUMBER

ROLE write: appends its own rows and deletes some of them by deletion vectors. optimize: compacts until PATH.stop exists, and
prints the number of bins that it wrote; order: the same in Z-order. batches: one OPTIMIZE with a commit for each bin, orders: in
Z-order. vacuum, lite: one VACUUM without retention. clone: a deep clone at PATH-NUMBER.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.row_changes.dml import Dml
from delta_py.storage.local import LocalStore
from delta_py.write.task_changes import DELETED
from tests.support.tables.plain_dml import changed, run, target_rows

STEPS = 12
_ROWS = 10


def first_id(number: int, step: int) -> int:
    return 10_000 * number + 100 * step


def left(number: int) -> set[int]:
    """The rows of a writer that has finished."""
    return {first_id(number, step) + place for step in range(STEPS) for place in range(_ROWS) if place % 3 or step % 2}


def write(path: str, number: int) -> None:
    chosen = random.Random(number)
    for step in range(STEPS):
        start = first_id(number, step)
        write_delta(path, pa.table({"id": pa.array(range(start, start + _ROWS), pa.int64())}), mode="append")
        time.sleep(chosen.random() * 0.05)
        while step % 2 == 0:
            try:
                _delete(path, {start + place for place in range(_ROWS) if place % 3 == 0})
                break
            except DeltaConcurrentModificationException:
                time.sleep(chosen.random() * 0.02)


def _delete(path: str, ids: set[int]) -> None:
    dml = Dml.begin(LocalStore(path), "DELETE", time_zone="UTC")
    dml.transaction.only_deleted_rows_matter()
    rows = target_rows(dml, dml.find_candidates(None))
    rows = rows.filter(pa.array([number in ids for number in rows["id"].to_pylist()], pa.bool_()))
    assert rows.num_rows == len(ids), (rows.num_rows, ids)
    try:
        run(dml, [[changed(rows, DELETED)]])
    except DeltaConcurrentModificationException:
        dml.abort()
        raise


def main() -> None:
    role, path, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    match role:
        case "write":
            write(path, number)
        case "optimize":
            bins = 0
            while not Path(f"{path}.stop").exists():
                bins += DeltaTable(path).optimize.compact()["numBins"]
            print(bins)
        case "order":
            bins = 0
            while not Path(f"{path}.stop").exists():
                bins += DeltaTable(path).optimize.z_order(["id"])["numBins"]
            print(bins)
        case "batches":
            DeltaTable(path).optimize.compact(batch_bytes=1)
        case "clone":
            DeltaTable(path).clone(f"{path}-{number}")
        case "orders":
            DeltaTable(path).optimize.z_order(["id"], batch_bytes=1)
        case "vacuum" | "lite":
            DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, lite=role == "lite")


if __name__ == "__main__":
    main()
